/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as the user writes them: NAME, NAME@period, NAME@fHZ; as in the original, a colon that a digit or an f
 * follows separates too when there is no @. Ordinary code of the launcher. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sampling/event-places.h"
#include "sampling/source.h"

static const char *find_separator(const char *text)
{
    const char *at = strrchr(text, '@'), *close = strrchr(text, '}');
    if (text[0] == '{') /* the thresholds in a group belong to its members */
        return close && close[strcspn(close, "@")] ? close + strcspn(close, "@") : NULL;
    if (at)
        return strcasecmp(at, "@ring") ? at : NULL;
    if (breakpoint_is_named(text)) /* its number is an address */
        return NULL;
    at = strrchr(text, ':');
    if (!at || at == text || at[-1] == ':')
        return NULL;
    const char *digits = at + 1 + (at[1] == 'f');
    size_t n = strspn(digits, "0123456789");
    return n > 0 && digits[n] == '\0' ? at : NULL;
}

static int parse_threshold(const char *event, const char *text, struct source_threshold *threshold, struct error *err)
{
    char *end = NULL;
    threshold->is_given = true;
    threshold->is_frequency = text[0] == 'f' || text[0] == 'F';
    const char *digits = text + threshold->is_frequency;
    errno = 0;
    unsigned long long value = isdigit((unsigned char)digits[0]) ? strtoull(digits, &end, 10) : 0;
    if (!end || *end)
        return error_set(err, ERR_USAGE,
                         "%s: '%s' is neither a period (a number) nor a frequency (f and a number, in Hz).", event,
                         text);
    if (value == 0)
        return error_set(err, ERR_RANGE, "%s: a %s of 0 is impossible.", event,
                         threshold->is_frequency ? "frequency" : "period");
    if (errno == ERANGE || value > (1ull << 62))
        return error_set(err, ERR_RANGE, "%s: %s is too large.", event, text);
    threshold->value = value;
    return 0;
}

int source_parse_threshold(const char *event, const char *text, struct source_threshold *threshold, struct error *err)
{
    *threshold = (struct source_threshold){0};
    return parse_threshold(event, text, threshold, err);
}

int source_parse_event(const char *text, char *name, unsigned n_name, struct source_threshold *threshold,
                       struct error *err)
{
    const char *separator = find_separator(text);
    size_t len = separator ? (size_t)(separator - text) : strlen(text);
    *threshold = (struct source_threshold){0};
    if (len == 0)
        return error_set(err, ERR_USAGE, "'%s' names no event.", text);
    if (len >= n_name)
        return error_set(err, ERR_USAGE, "The event name '%s' is too long.", text);
    memcpy(name, text, len);
    name[len] = '\0';
    return separator ? parse_threshold(text, separator + 1, threshold, err) : 0;
}
