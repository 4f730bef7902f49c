/* SPDX-License-Identifier: BSD-3-Clause */
/* Breakpoints as events; see event-places.h. */
#include <ctype.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/event-places.h"

#define PREFIX "mem:"

bool breakpoint_is_named(const char *event)
{
    return !strncmp(event, PREFIX, sizeof PREFIX - 1) && isdigit((unsigned char)event[sizeof PREFIX - 1]);
}

/* The kinds of access behind a colon; 0 when the letters are none (they are modifiers then). */
static uint32_t access_of(const char *letters, size_t len)
{
    uint32_t access = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t bit = letters[i] == 'r' ? HW_BREAKPOINT_R :
                       letters[i] == 'w' ? HW_BREAKPOINT_W :
                       letters[i] == 'x' ? HW_BREAKPOINT_X : 0;
        if (!bit || access & bit)
            return 0;
        access |= bit;
    }
    return access;
}

static int parse_number(const char *event, const char **at, const char *what, uint64_t *value, struct error *err)
{
    char *end;
    errno = 0;
    *value = strtoull(*at, &end, 0);
    if (end == *at || !isdigit((unsigned char)**at) || errno)
        return error_set(err, ERR_USAGE, "%s: there is no %s at '%s'; the form is mem:ADDRESS[/BYTES][:rwx].", event,
                         what, *at);
    *at = end;
    return 0;
}

static int check(const char *event, const struct perf_event_attr *attr, struct error *err)
{
    if (attr->bp_len != 1 && attr->bp_len != 2 && attr->bp_len != 4 && attr->bp_len != 8)
        return error_set(err, ERR_RANGE, "%s: a breakpoint covers 1, 2, 4 or 8 bytes.", event);
    if (!(attr->bp_type & HW_BREAKPOINT_X) && attr->bp_addr % attr->bp_len)
        return error_set(err, ERR_RANGE, "%s: the address is no multiple of its %llu bytes.", event,
                         (unsigned long long)attr->bp_len);
    if (attr->bp_type != HW_BREAKPOINT_X && attr->bp_type & HW_BREAKPOINT_X)
        return error_set(err, ERR_USAGE, "%s: x cannot be combined with r or w.", event);
    return 0;
}

int breakpoint_encode(const char *event, struct perf_event_attr *attr, const char **modifiers, struct error *err)
{
    uint64_t address, n_bytes = 0;
    const char *at = event + sizeof PREFIX - 1;
    int status = parse_number(event, &at, "address", &address, err);
    if (status == 0 && *at == '/') {
        at++;
        status = parse_number(event, &at, "number of bytes", &n_bytes, err);
    }
    if (status != 0)
        return status;
    uint32_t access = *at == ':' ? access_of(at + 1, strcspn(at + 1, ":")) : 0;
    if (access)
        at += 1 + strcspn(at + 1, ":");
    if (*at && *at != ':')
        return error_set(err, ERR_USAGE, "%s: '%s' is not understood; the form is mem:ADDRESS[/BYTES][:rwx].", event,
                         at);
    *modifiers = *at ? at + 1 : at;
    attr->type = PERF_TYPE_BREAKPOINT;
    attr->config = 0;
    attr->bp_type = access ? access : HW_BREAKPOINT_RW;
    attr->bp_addr = address;
    attr->bp_len = n_bytes ? n_bytes : access == HW_BREAKPOINT_X ? sizeof(long) : sizeof(uint32_t);
    return check(event, attr, err);
}
