/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine as sources and the doctor see it: sysfs, procfs, and whether the kernel opens an event. Normally it is
 * this machine; a directory (a fixture of another machine) may replace it, for tests and to examine a user's machine
 * remotely:
 *   DIR/sys/bus/event_source/devices/... and DIR/proc/... as on the machine, and
 *   DIR/opens: one rule per line, "ok" or the name of an errno (EACCES), then conditions, separated by blanks:
 *     type=NAME of a PMU in DIR, of software, tracepoint, hardware, hw-cache, raw or breakpoint, or a number;
 *       (the CPU's own PMU, cpu, cpu_core or armv8_..., also serves hardware, hw-cache and raw);
 *     any field of the attr as FIELD=N, FIELD!=N, FIELD<N, FIELD>N, or FIELD&N (a bit of N is set);
 *     the same with "leader." before the field, for the group's leader; leader=none, leader=any, leader=CONFIG;
 *     # starts a comment. The first rule that matches decides; ENOENT if none matches.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_MACHINE_H
#define LOCUS_SAMPLING_MACHINE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Uses dir in place of this machine; NULL: this machine again. dir is borrowed. err: ERR_IO no such directory */
int machine_use(const char *dir, struct error *err);

/* True when a fixture is used: nothing may be sampled then. */
bool machine_is_fixture(void);

/* The path to open for an absolute path such as /sys/devices; out has n_out bytes. False when it does not fit. */
bool machine_path(const char *path, char *out, size_t n_out);

/* Contents of a small file without its last newline, cut to n_out - 1 bytes. False when it cannot be read. */
bool machine_read(const char *path, char *out, size_t n_out);

/* True when the file or directory exists. */
bool machine_exists(const char *path);

/* An integer from a file, decimal or 0x; fallback when it cannot be read. */
long machine_read_number(const char *path, long fallback);

/* What perf_event_open would answer: 0 or an errno. On this machine it is tried (in the calling process; group_of: attr
 * of the leader, or NULL); for a fixture the rules answer, EINVAL with a message on stderr for a rule that cannot be
 * understood. */
int machine_try_open(const struct perf_event_attr *attr, const struct perf_event_attr *group_of);

/* Adds what the kernel answered (0 or an errno) as a rule to the file that HPCRUN_RECORD_OPENS names, if any. */
void machine_record_open(const struct perf_event_attr *attr, const struct perf_event_attr *group_of, int answer);

/* The CPU according to /proc/cpuinfo: vendor, family, model, stepping, name (x86), PVR (POWER) or MIDR (Arm). */
struct machine_cpu {
    enum { CPU_UNKNOWN, CPU_INTEL, CPU_AMD, CPU_POWER, CPU_ARM } vendor;
    unsigned family, model, stepping;
    unsigned pvr;               /* POWER: version (upper 16 bits of the register) */
    unsigned implementer, part; /* Arm */
    bool is_virtual;            /* hypervisor flag */
    bool has_kpti;              /* page-table isolation is on, if the kernel says so */
    char name[96];
};
/* Reads the CPU's description; CPU_UNKNOWN and zeros if there is none. */
void machine_cpu(struct machine_cpu *cpu);

/* --- fields of an attribute --- */

/* The fields of struct perf_event_attr by name, for rules of fixtures and for printing plans. Bit fields have no
 * address, so a table of offsets will not do. Ordinary code of the launcher. */

#define ATTR_FIELDS_MAX 72

struct attr_field {
    const char *name; /* as in the header; in a union the member in use (sample_freq, wakeup_watermark), else config1 */
    uint64_t value;
    bool is_hex; /* usually shown in hexadecimal */
};

/* All fields of attr in the order of the struct; returns their number. */
unsigned attr_fields(const struct perf_event_attr *attr, struct attr_field fields[ATTR_FIELDS_MAX]);

/* Gets the field of this name; every member of a union has its name. False when there is none. */
bool attr_field_get(const struct perf_event_attr *attr, const char *name, uint64_t *value);

#endif
