/* SPDX-License-Identifier: BSD-3-Clause */
/* Would the kernel open this event? On this machine it is asked; a fixture answers by the rules in its file opens.
 * See machine.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampling/attr-fields.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"

#define ERRNO_MAX 134

/* What one open is asked for. */
struct request {
    const struct perf_event_attr *attr, *leader; /* leader may be NULL */
};

/* The rule being read, for messages. */
struct place {
    const char *path;
    unsigned line;
};

static int errno_of(const char *name)
{
    for (int number = 1; number < ERRNO_MAX; number++) {
        const char *known = strerrorname_np(number);
        if (known && !strcmp(known, name))
            return number;
    }
    return !strcmp(name, "EWOULDBLOCK") ? EAGAIN : !strcmp(name, "ENOTSUP") ? EOPNOTSUPP : -1;
}

static bool type_of(const char *name, uint64_t *type)
{
    static const struct {
        const char *name;
        uint64_t type;
    } fixed[] = {{"hardware", PERF_TYPE_HARDWARE}, {"software", PERF_TYPE_SOFTWARE},
                 {"tracepoint", PERF_TYPE_TRACEPOINT}, {"hw-cache", PERF_TYPE_HW_CACHE},
                 {"raw", PERF_TYPE_RAW}, {"breakpoint", PERF_TYPE_BREAKPOINT}};
    struct pmu pmu;
    char *end;
    if (pmu_find(name, &pmu)) {
        *type = pmu.type;
        return true;
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!strcmp(fixed[i].name, name)) {
            *type = fixed[i].type;
            return true;
        }
    *type = strtoull(name, &end, 0);
    return end != name && !*end;
}

/* The CPU's own PMU also serves the kernel's generic events. */
static bool is_type(const char *name, uint64_t type)
{
    uint64_t wanted;
    bool is_cpu = !strcmp(name, "cpu") || !strcmp(name, "cpu_core") || !strncmp(name, "armv8_", 6);
    if (is_cpu && (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW))
        return true;
    return type_of(name, &wanted) && type == wanted;
}

static int complain(const struct place *place, const char *what, const char *condition)
{
    (void)fprintf(stderr, "%s:%u: %s: %s\n", place->path, place->line, condition, what);
    return -1;
}

static bool compare(uint64_t found, const char *operator, uint64_t wanted)
{
    switch (operator[0]) {
    case '!':
        return found != wanted;
    case '<':
        return found < wanted;
    case '>':
        return found > wanted;
    case '&':
        return (found & wanted) != 0;
    default:
        return found == wanted;
    }
}

/* 1 when the condition holds, 0 when not, -1 when it is none. */
static int holds(const char *condition, const struct request *request, const struct place *place)
{
    char field[64];
    uint64_t found, wanted;
    char *end;
    const char *name = condition;
    const struct perf_event_attr *attr = request->attr;
    if (!strcmp(condition, "leader=none"))
        return !request->leader;
    if (!strcmp(condition, "leader=any"))
        return request->leader != NULL;
    if (!strncmp(name, "leader=", 7)) { /* short for leader.config= */
        wanted = strtoull(name + 7, &end, 0);
        return end == name + 7 || *end ? complain(place, "neither none, any nor a number", condition) :
                                         request->leader && request->leader->config == wanted;
    }
    if (!strncmp(name, "leader.", 7)) {
        name += 7;
        attr = request->leader ? request->leader : attr;
    }
    size_t len = strcspn(name, "=!<>&");
    const char *operator = name + len, *value = operator + 1 + (operator[0] == '!');
    (void)snprintf(field, sizeof field, "%.*s", (int)len, name);
    if (!*operator || (operator[0] == '!' && operator[1] != '=') || !attr_field_get(attr, field, &found))
        return complain(place, "no field of perf_event_attr with =, !=, <, > or & and a value", condition);
    if (!strcmp(field, "type"))
        return is_type(value, found) == (operator[0] == '=') && (name == condition || request->leader);
    wanted = strtoull(value, &end, 0);
    if (end == value || *end)
        return complain(place, "the value is no number", condition);
    return compare(found, operator, wanted) && (name == condition || request->leader);
}

/* The answer of a rule, -1 when it does not match. */
static int apply(char *line, const struct request *request, const struct place *place)
{
    char *rest = line;
    line[strcspn(line, "#\n")] = '\0';
    const char *word = strtok_r(rest, " \t", &rest);
    if (!word)
        return -1;
    int answer = strcmp(word, "ok") ? errno_of(word) : 0;
    if (answer < 0) {
        (void)complain(place, "neither ok nor the name of an errno", word);
        return EINVAL;
    }
    while ((word = strtok_r(rest, " \t", &rest))) {
        int held = holds(word, request, place);
        if (held <= 0)
            return held < 0 ? EINVAL : -1;
    }
    return answer;
}

static int ask_rules(const struct request *request)
{
    char path[PATH_MAX], line[1024];
    int answer = -1;
    FILE *file = machine_path("/opens", path, sizeof path) ? fopen(path, "re") : NULL;
    struct place place = {.path = path};
    while (file && answer < 0 && fgets(line, sizeof line, file)) {
        place.line++;
        answer = apply(line, request, &place);
    }
    if (file)
        (void)fclose(file);
    return answer < 0 ? ENOENT : answer;
}

static int open_event(const struct perf_event_attr *attr, int group)
{
    struct perf_event_attr copy = *attr;
    return (int)syscall(SYS_perf_event_open, &copy, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static int ask_kernel(const struct request *request)
{
    int group = request->leader ? open_event(request->leader, -1) : -1;
    if (request->leader && group < 0)
        return errno;
    int fd = open_event(request->attr, group);
    int answer = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    if (group >= 0)
        (void)close(group);
    return answer;
}

int machine_try_open(const struct perf_event_attr *attr, const struct perf_event_attr *group_of)
{
    const struct request request = {attr, group_of};
    if (machine_is_fixture())
        return ask_rules(&request);
    int answer = ask_kernel(&request);
    machine_record_open(attr, group_of, answer);
    return answer;
}
