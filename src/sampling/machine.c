/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine as sources see it: fields of perf_event_attr, files of sysfs and procfs, the processor, which events can
 * be opened, and the recording of all that as a fixture. See machine.h.  src: include/uapi/linux/perf_event.h */
#include "sampling/machine.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampling/pmu.h"

#define ROW(field)                                                                                                     \
    {                                                                                                                  \
#field, (uint64_t)attr->field, false                                                                           \
    }
#define HEX(field)                                                                                                     \
    {                                                                                                                  \
#field, (uint64_t)attr->field, true                                                                            \
    }

static unsigned append(const struct attr_field *rows, unsigned n_rows, struct attr_field *fields, unsigned n)
{
    memcpy(fields + n, rows, n_rows * sizeof *rows);
    return n + n_rows;
}

static unsigned words_before_flags(const struct perf_event_attr *attr, struct attr_field *fields)
{
    const struct attr_field rows[] = {
        ROW(type),        ROW(size),
        HEX(config),      {attr->freq ? "sample_freq" : "sample_period", attr->sample_period, false},
        HEX(sample_type), HEX(read_format),
    };
    return append(rows, sizeof rows / sizeof *rows, fields, 0);
}

static unsigned flags(const struct perf_event_attr *attr, struct attr_field *fields, unsigned n)
{
    const struct attr_field rows[] = {
        ROW(disabled),
        ROW(inherit),
        ROW(pinned),
        ROW(exclusive),
        ROW(exclude_user),
        ROW(exclude_kernel),
        ROW(exclude_hv),
        ROW(exclude_idle),
        ROW(mmap),
        ROW(comm),
        ROW(freq),
        ROW(inherit_stat),
        ROW(enable_on_exec),
        ROW(task),
        ROW(watermark),
        ROW(precise_ip),
        ROW(mmap_data),
        ROW(sample_id_all),
        ROW(exclude_host),
        ROW(exclude_guest),
        ROW(exclude_callchain_kernel),
        ROW(exclude_callchain_user),
        ROW(mmap2),
        ROW(comm_exec),
        ROW(use_clockid),
        ROW(context_switch),
        ROW(write_backward),
        ROW(namespaces),
        ROW(ksymbol),
        ROW(bpf_event),
        ROW(aux_output),
        ROW(cgroup),
        ROW(text_poke),
        ROW(build_id),
        ROW(inherit_thread),
        ROW(remove_on_exec),
        ROW(sigtrap),
    };
    return append(rows, sizeof rows / sizeof *rows, fields, n);
}

static unsigned words_after_flags(const struct perf_event_attr *attr, struct attr_field *fields, unsigned n)
{
    const struct attr_field rows[] = {
        {attr->watermark ? "wakeup_watermark" : "wakeup_events", attr->wakeup_events, false},
        ROW(bp_type),
        HEX(config1),
        HEX(config2),
        HEX(branch_sample_type),
        HEX(sample_regs_user),
        ROW(sample_stack_user),
        ROW(clockid),
        HEX(sample_regs_intr),
        ROW(aux_watermark),
        ROW(sample_max_stack),
        ROW(aux_sample_size),
        HEX(sig_data),
#ifdef PERF_ATTR_SIZE_VER8
        HEX(config3),
#endif
    };
    return append(rows, sizeof rows / sizeof *rows, fields, n);
}

unsigned attr_fields(const struct perf_event_attr *attr, struct attr_field fields[ATTR_FIELDS_MAX])
{
    unsigned n = words_before_flags(attr, fields);
    n = flags(attr, fields, n);
    return words_after_flags(attr, fields, n);
}

bool attr_field_get(const struct perf_event_attr *attr, const char *name, uint64_t *value)
{
    static const struct {
        const char *name, *same;
    } unions[] = {{"sample_freq", "sample_period"},
                  {"wakeup_watermark", "wakeup_events"},
                  {"bp_addr", "config1"},
                  {"bp_len", "config2"}};
    struct attr_field fields[ATTR_FIELDS_MAX];
    struct perf_event_attr plain = *attr;
    plain.freq = plain.watermark = 0;
    for (size_t i = 0; i < sizeof unions / sizeof *unions; i++)
        if (!strcmp(unions[i].name, name))
            name = unions[i].same;
    if (!strcmp(name, "freq") || !strcmp(name, "watermark"))
        plain = *attr;
    unsigned n = attr_fields(&plain, fields);
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(fields[i].name, name)) {
            *value = fields[i].value;
            return true;
        }
    return false;
}

/* --- reading sysfs and procfs --- */

/* Where the launcher reads sysfs and procfs from; see machine.h. */

static struct {
    const char *dir; /* NULL: this machine */
} machine;

int machine_use(const char *dir, struct error *err)
{
    struct stat status;
    char part[PATH_MAX];
    machine.dir = NULL;
    if (!dir)
        return 0;
    if (stat(dir, &status) != 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", dir, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return error_set(err, ERR_IO, "%s describes no machine: it is not a directory.", dir);
    (void)snprintf(part, sizeof part, "%s/sys", dir);
    if (access(part, F_OK) != 0)
        return error_set(err, ERR_IO, "%s describes no machine: it has no directory sys.", dir);
    machine.dir = dir;
    return 0;
}

bool machine_is_fixture(void)
{
    return machine.dir != NULL;
}

bool machine_path(const char *path, char *out, size_t n_out)
{
    int len = snprintf(out, n_out, "%s%s", machine.dir ? machine.dir : "", path);
    return len > 0 && (size_t)len < n_out;
}

bool machine_read(const char *path, char *out, size_t n_out)
{
    char real[PATH_MAX];
    FILE *file = machine_path(path, real, sizeof real) ? fopen(real, "re") : NULL;
    if (!file)
        return false;
    size_t n = fread(out, 1, n_out - 1, file);
    bool is_read = !ferror(file);
    (void)fclose(file);
    if (n > 0 && out[n - 1] == '\n')
        n--;
    out[n] = '\0';
    return is_read;
}

bool machine_exists(const char *path)
{
    char real[PATH_MAX];
    return machine_path(path, real, sizeof real) && access(real, F_OK) == 0;
}

long machine_read_number(const char *path, long fallback)
{
    char text[64], *end;
    if (!machine_read(path, text, sizeof text))
        return fallback;
    long value = strtol(text, &end, 0);
    return end == text ? fallback : value;
}

/* --- the processor --- */

/* Which CPU this is, by /proc/cpuinfo of each architecture; see machine.h. */

#define CPUINFO_BYTES 16384 /* enough for the first processor and more */

/* Value of the first line with this key, cut at its end; false when there is none. */
static bool find_value(const char *text, const char *key, char *value, size_t n_value)
{
    size_t n_key = strlen(key);
    const char *end;
    for (const char *line = text; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (strncmp(line, key, n_key) != 0)
            continue;
        const char *at = line + n_key + strspn(line + n_key, " \t");
        if (*at != ':')
            continue;
        at += 1 + strspn(at + 1, " \t");
        (void)snprintf(value, n_value, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    return false;
}

static unsigned find_number(const char *text, const char *key)
{
    char value[64];
    return find_value(text, key, value, sizeof value) ? (unsigned)strtoul(value, NULL, 0) : 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

static void read_x86(const char *text, const char *vendor, struct machine_cpu *cpu)
{
    char flags[CPUINFO_BYTES];
    cpu->vendor = CPU_UNKNOWN;
    if (!strcmp(vendor, "GenuineIntel"))
        cpu->vendor = CPU_INTEL;
    else if (!strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine"))
        cpu->vendor = CPU_AMD;
    cpu->family = find_number(text, "cpu family");
    cpu->model = find_number(text, "model");
    cpu->stepping = find_number(text, "stepping");
    (void)find_value(text, "model name", cpu->name, sizeof cpu->name);
    cpu->is_virtual = find_value(text, "flags", flags, sizeof flags) && has_word(flags, "hypervisor");
}

static void read_power(const char *text, struct machine_cpu *cpu)
{
    char revision[128] = "";
    cpu->vendor = CPU_POWER;
    (void)find_value(text, "revision", revision, sizeof revision);
    const char *pvr = strstr(revision, "(pvr ");
    cpu->pvr = pvr ? (unsigned)strtoul(pvr + 5, NULL, 16) : 0;
    cpu->name[strcspn(cpu->name, ",")] = '\0';
    cpu->is_virtual = strstr(text, "emulated by qemu") != NULL;
}

static const char *arm_name(unsigned implementer, unsigned part)
{
    static const struct {
        unsigned implementer, part;
        const char *name;
    } known[] = {
        {0x41, 0xd0c, "Arm Neoverse N1"},  {0x41, 0xd49, "Arm Neoverse N2"}, {0x41, 0xd8e, "Arm Neoverse N3"},
        {0x41, 0xd40, "Arm Neoverse V1"},  {0x41, 0xd4f, "Arm Neoverse V2"}, {0x41, 0xd84, "Arm Neoverse V3"},
        {0x41, 0xd4a, "Arm Neoverse E1"},  {0x41, 0xd08, "Arm Cortex-A72"},  {0x46, 0x001, "Fujitsu A64FX"},
        {0x48, 0xd01, "HiSilicon TSV110"}, {0xc0, 0xac3, "Ampere-1"},        {0xc0, 0xac4, "Ampere-1a"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].implementer == implementer && known[i].part == part)
            return known[i].name;
    return NULL;
}

static void read_arm(const char *text, struct machine_cpu *cpu)
{
    cpu->vendor = CPU_ARM;
    cpu->implementer = find_number(text, "CPU implementer");
    cpu->part = find_number(text, "CPU part");
    cpu->stepping = find_number(text, "CPU revision");
    const char *name = arm_name(cpu->implementer, cpu->part);
    if (name)
        (void)snprintf(cpu->name, sizeof cpu->name, "%s", name);
    else
        (void)snprintf(cpu->name, sizeof cpu->name, "Arm implementer %#x part %#x", cpu->implementer, cpu->part);
}

static void read_cpu(struct machine_cpu *cpu)
{
    char text[CPUINFO_BYTES], meltdown[128], vendor[64];
    *cpu = (struct machine_cpu){0};
    if (!machine_read("/proc/cpuinfo", text, sizeof text))
        return;
    if (find_value(text, "vendor_id", vendor, sizeof vendor))
        read_x86(text, vendor, cpu);
    else if (find_value(text, "CPU implementer", vendor, sizeof vendor))
        read_arm(text, cpu);
    else if (find_value(text, "cpu", cpu->name, sizeof cpu->name) && !strncmp(cpu->name, "POWER", 5))
        read_power(text, cpu);
    cpu->is_virtual |= machine_exists("/sys/hypervisor/type") || machine_exists("/proc/device-tree/hypervisor");
    cpu->has_kpti = machine_read("/sys/devices/system/cpu/vulnerabilities/meltdown", meltdown, sizeof meltdown) &&
                    strstr(meltdown, "PTI") != NULL;
}

/* Asked for many times at each start, and the kernel writes the text anew for each: it has a part for every CPU. */
void machine_cpu(struct machine_cpu *cpu)
{
    static struct {
        bool is_known;
        struct machine_cpu cpu;
    } here;
    if (machine_is_fixture()) {
        read_cpu(cpu);
        return;
    }
    if (!here.is_known)
        read_cpu(&here.cpu);
    here.is_known = true;
    *cpu = here.cpu;
}

/* --- what can be opened --- */

/* Would the kernel open this event? On this machine the kernel is asked; for a fixture, the rules in its file `opens`
 * answer.
 * See machine.h. */

#define ERRNO_MAX 134

/* The event of one trial. */
struct open_request {
    const struct perf_event_attr *attr, *leader; /* leader may be NULL */
};

/* The rule being read, for messages. */
struct rule_place {
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
    } fixed[] = {
        {"hardware", PERF_TYPE_HARDWARE}, {"software", PERF_TYPE_SOFTWARE}, {"tracepoint", PERF_TYPE_TRACEPOINT},
        {"hw-cache", PERF_TYPE_HW_CACHE}, {"raw", PERF_TYPE_RAW},           {"breakpoint", PERF_TYPE_BREAKPOINT}};
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

static int complain(const struct rule_place *place, const char *what, const char *condition)
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

/* 1 when the condition holds, 0 when not, -1 when it is not a condition. */
static int holds(const char *condition, const struct open_request *request, const struct rule_place *place)
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
        return end == name + 7 || *end ? complain(place, "neither none, any nor a number", condition)
                                       : request->leader && request->leader->config == wanted;
    }
    if (!strncmp(name, "leader.", 7)) {
        name += 7;
        attr = request->leader ? request->leader : attr;
    }
    size_t len = strcspn(name, "=!<>&");
    const char *operator= name + len, *value = operator+ 1 +(operator[0] == '!');
    (void)snprintf(field, sizeof field, "%.*s", (int)len, name);
    if (!*operator||(operator[0] == '!' && operator[1] != '=') || !attr_field_get(attr, field, &found))
        return complain(place, "no field of perf_event_attr with =, !=, <, > or & and a value", condition);
    if (!strcmp(field, "type"))
        return is_type(value, found) == (operator[0] == '=') && (name == condition || request->leader);
    wanted = strtoull(value, &end, 0);
    if (end == value || *end)
        return complain(place, "the value is not a number", condition);
    return compare(found, operator, wanted) && (name == condition || request->leader);
}

/* The answer of a rule, -1 when it does not match. */
static int apply(char *line, const struct open_request *request, const struct rule_place *place)
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

static int ask_rules(const struct open_request *request)
{
    char path[PATH_MAX], line[1024];
    int answer = -1;
    FILE *file = machine_path("/opens", path, sizeof path) ? fopen(path, "re") : NULL;
    struct rule_place place = {.path = path};
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

static int ask_kernel(const struct open_request *request)
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
    const struct open_request request = {attr, group_of};
    if (machine_is_fixture())
        return ask_rules(&request);
    int answer = ask_kernel(&request);
    machine_record_open(attr, group_of, answer);
    return answer;
}

/* --- recording a machine --- */

/* Records the answers of this machine's kernel as rules for a description of the machine: with HPCRUN_RECORD_OPENS=FILE
 * each trial of an event adds a rule to FILE. A rule names the fields that an answer may depend on, also those that are
 * 0. Ordinary code of the launcher. */

/* A search for a PMU by its type. */
struct pmu_search {
    uint32_t type;
    char name[64];
};

static bool is_wanted(const struct pmu *pmu, void *ctx)
{
    struct pmu_search *wanted = ctx;
    if (pmu->type == wanted->type)
        (void)snprintf(wanted->name, sizeof wanted->name, "%s", pmu->name);
    return pmu->type != wanted->type;
}

/* Types are numbers that change from boot to boot; names stay. */
static void put_type(FILE *out, uint32_t type)
{
    struct pmu_search wanted = {.type = type};
    (void)snprintf(wanted.name, sizeof wanted.name, "%u", type);
    pmu_visit(is_wanted, &wanted);
    (void)fprintf(out, " type=%s", wanted.name);
}

static bool matters(const struct attr_field *field)
{
    static const char *const always[] = {"config",         "config1",      "config2", "sample_type", "precise_ip",
                                         "exclude_kernel", "exclude_user", "freq",    "watermark"};
    static const char *const never[] = {
        "type", "size", "sample_period", "sample_freq", "wakeup_events", "wakeup_watermark", "disabled"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!strcmp(field->name, always[i]))
            return true;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(field->name, never[i]))
            return false;
    return field->value != 0;
}

void machine_record_open(const struct perf_event_attr *attr, const struct perf_event_attr *group_of, int answer)
{
    struct attr_field fields[ATTR_FIELDS_MAX];
    const char *path = getenv("HPCRUN_RECORD_OPENS");
    const char *name = answer ? strerrorname_np(answer) : "ok";
    FILE *out = path && name && !machine_is_fixture() ? fopen(path, "ae") : NULL;
    if (!out)
        return;
    (void)fputs(name, out);
    put_type(out, attr->type);
    unsigned n = attr_fields(attr, fields);
    for (unsigned i = 0; i < n; i++)
        if (matters(&fields[i]))
            (void)fprintf(out, fields[i].is_hex ? " %s=%#llx" : " %s=%llu", fields[i].name,
                          (unsigned long long)fields[i].value);
    if (group_of)
        (void)fprintf(out, " leader.config=%#llx\n", (unsigned long long)group_of->config);
    else
        (void)fputs(" leader=none\n", out);
    (void)fclose(out);
}
