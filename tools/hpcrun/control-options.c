/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the options that say when a program is sampled: see control-options.h. */
#include "control-options.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECONDS_MAX (10 * 366 * 86400.0)

int control_parse_seconds(const char *option, const char *text, uint64_t *ns, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0) || value > SECONDS_MAX)
        return error_set(err, ERR_USAGE, "%s: '%s' is no number of seconds above 0, such as 10 or 0.5.", option, text);
    *ns = (uint64_t)ceil(value * 1e9);
    return 0;
}

int control_parse_whole_seconds(const char *option, const char *text, uint32_t *seconds, struct error *err)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 1) || value > SECONDS_MAX || value != floor(value))
        return error_set(err, ERR_USAGE, "%s: '%s' is no whole number of seconds above 0.", option, text);
    *seconds = (uint32_t)value;
    return 0;
}

/* Number, or distance from a real-time signal; -1 when it is something else. */
static long number_of(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    return *text && !*end && strchr("+-0123456789", *text) ? value : -1;
}

static int signal_named(const char *name)
{
    if (!strncasecmp(name, "SIG", 3))
        name += 3;
    if (!strncasecmp(name, "RTMIN", 5))
        return SIGRTMIN + (name[5] ? (int)number_of(name + 5) : 0);
    if (!strncasecmp(name, "RTMAX", 5))
        return SIGRTMAX + (name[5] ? (int)number_of(name + 5) : 0);
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *known = sigabbrev_np(number);
        if (known && !strcasecmp(known, name))
            return number;
    }
    return (int)number_of(name);
}

static const char *why_not(int number)
{
    static const int of_errors[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof of_errors / sizeof of_errors[0]; i++)
        if (number == of_errors[i])
            return "tells of errors of the program";
    if (number == SIGKILL || number == SIGSTOP)
        return "cannot be caught";
    if (number == SIGURG)
        return "is the one that brings the samples";
    if (number == SIGCHLD || number == SIGCONT || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
        return "has a meaning for parents and shells";
    return number > SIGSYS && number < SIGRTMIN ? "belongs to the C library" : NULL;
}

int control_parse_signal(const char *option, const char *text, uint32_t *number, struct error *err)
{
    int value = signal_named(text);
    if (value < 1 || value > SIGRTMAX)
        return error_set(err, ERR_USAGE, "%s: '%s' is no signal; write USR1, RTMIN+3 or a number.", option, text);
    const char *reason = why_not(value);
    if (reason)
        return error_set(err, ERR_USAGE, "%s: signal %s cannot be taken, because it %s; take USR1, USR2 or RTMIN+3.",
                         option, text, reason);
    *number = (uint32_t)value;
    return 0;
}
