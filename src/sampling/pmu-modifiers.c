/* SPDX-License-Identifier: BSD-3-Clause */
/* The letters behind an event and the groups around events; see pmu.h.  src: perf-list(1), "EVENT MODIFIERS" */
#include <stdio.h>
#include <string.h>

#include "sampling/pmu-parts.h"

#define LETTERS "ukhpPGHIDeS"

static size_t count(const char *letters, char letter)
{
    size_t n = 0;
    for (; *letters; letters++)
        n += *letters == letter;
    return n;
}

bool pmu_modifiers_are_valid(const char *letters)
{
    size_t len = strlen(letters);
    if (len == 0 || strspn(letters, LETTERS) != len)
        return false;
    for (const char *letter = LETTERS; *letter; letter++)
        if (count(letters, *letter) > (*letter == 'p' ? 3u : 1u))
            return false;
    return !(strchr(letters, 'p') && strchr(letters, 'P'));
}

static void set_levels(const char *letters, struct perf_event_attr *attr)
{
    if (strpbrk(letters, "ukh")) {
        attr->exclude_user = !strchr(letters, 'u');
        attr->exclude_kernel = !strchr(letters, 'k');
        attr->exclude_hv = !strchr(letters, 'h');
    }
    if (strpbrk(letters, "GH")) {
        attr->exclude_guest = !strchr(letters, 'G');
        attr->exclude_host = !strchr(letters, 'H');
    }
    if (strchr(letters, 'I'))
        attr->exclude_idle = 1;
}

int pmu_apply_modifiers(const char *event, const char *letters, unsigned max_precise, struct perf_event_attr *attr,
                        struct error *err)
{
    if (!letters[0])
        return 0;
    if (!pmu_modifiers_are_valid(letters))
        return error_set(err, ERR_USAGE,
                         "%s: '%s' are no modifiers: u, k, h, G, H, I, D and e once each, and p, pp, ppp or P.",
                         event, letters);
    set_levels(letters, attr);
    if (strpbrk(letters, "pP"))
        attr->precise_ip = (strchr(letters, 'P') ? max_precise : (unsigned)count(letters, 'p')) & 3;
    if (strchr(letters, 'D'))
        attr->pinned = 1;
    if (strchr(letters, 'e'))
        attr->exclusive = 1;
    if (strchr(letters, 'S')) {
        attr->sample_type |= PERF_SAMPLE_READ;
        attr->read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
    }
    return 0;
}

/* One of these letters is among the event's modifiers. */
static bool has_modifier(const char *event, const char *letters)
{
    struct pmu_text text;
    const char *colon = strrchr(event, ':');
    if (pmu_text_parse(event, &text))
        return strpbrk(text.modifiers, letters) != NULL;
    return colon && pmu_modifiers_are_valid(colon + 1) && strpbrk(colon + 1, letters);
}

bool pmu_wants_highest_precision(const char *event)
{
    return has_modifier(event, "P");
}

bool pmu_names_levels(const char *event)
{
    return has_modifier(event, "ukh");
}

/* End of the member at text: a comma or closing brace outside of slashes. */
static size_t member_length(const char *text)
{
    bool is_inside = false;
    size_t len = 0;
    for (; text[len] && (is_inside || (text[len] != ',' && text[len] != '}')); len++)
        is_inside ^= text[len] == '/';
    return len;
}

static int add_member(const char *event, const char *text, size_t len, const char *modifiers, char *member,
                      struct error *err)
{
    bool has_slashes = memchr(text, '/', len) != NULL;
    const char *colon = has_slashes || !modifiers[0] ? "" : ":";
    const char *at = memchr(text, '@', len);
    size_t len_name = at ? (size_t)(at - text) : len;
    if (len == 0)
        return error_set(err, ERR_USAGE, "%s: an event of the group is empty.", event);
    if (memchr(text, '{', len))
        return error_set(err, ERR_USAGE, "%s: groups cannot be nested.", event);
    if (snprintf(member, 256, "%.*s%s%s%.*s", (int)len_name, text, colon, modifiers, (int)(len - len_name),
                 text + len_name) >= 256)
        return error_set(err, ERR_USAGE, "%s: an event of the group is too long.", event);
    return 0;
}

/* The closing brace, with what follows it checked. */
static const char *find_close(const char *event, struct error *err)
{
    const char *close = strrchr(event, '}');
    if (!close) {
        (void)error_set(err, ERR_USAGE, "%s: the group lacks its closing brace.", event);
        return NULL;
    }
    if (close[1] && (close[1] != ':' || !pmu_modifiers_are_valid(close + 2))) {
        (void)error_set(err, ERR_USAGE, "%s: '%s' are no modifiers of a group.", event, close + 1);
        return NULL;
    }
    return close;
}

int pmu_split_group(const char *event, char (*members)[256], unsigned n_max, struct error *err)
{
    unsigned n = 0;
    if (event[0] != '{') {
        if (n_max == 0 || snprintf(members[0], sizeof members[0], "%s", event) >= (int)sizeof members[0])
            return error_set(err, ERR_USAGE, "The event '%.64s...' is too long.", event);
        return 1;
    }
    const char *close = find_close(event, err);
    if (!close)
        return ERR_USAGE;
    const char *modifiers = close[1] ? close + 2 : "";
    for (const char *at = event + 1;; n++) {
        size_t len = member_length(at);
        if (n == n_max)
            return error_set(err, ERR_USAGE, "%s: more than %u events cannot be in one group.", event, n_max);
        int status = add_member(event, at, len, modifiers, members[n], err);
        if (status != 0)
            return status;
        at += len;
        if (at >= close)
            return (int)n + 1;
        at++;
    }
}
