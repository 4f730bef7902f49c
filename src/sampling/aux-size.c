/* SPDX-License-Identifier: BSD-3-Clause */
/* Size of AUX areas; see aux-size.h. Ordinary code of the launcher. */
#include "sampling/aux-size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampling/machine.h"

#define AUX_PAGES_MAX 32
#define AUX_PAGES_MIN 4
#define AUX_BYTES_MAX (UINT64_C(1) << 20)
#define RING_PAGES 2   /* control and data page beside each AUX area ... */
#define FAULTS_PAGES 2 /* ... and of FAULTS beside them */
#define MLOCK_KB_DEFAULT 516
#define CAP_IPC_LOCK_BIT 14

/* Text behind key in a file of "key value" lines; false when there is none. */
static bool find_line(const char *path, const char *key, char *value, size_t n_value)
{
    char text[4096];
    const char *at = machine_read(path, text, sizeof text) ? strstr(text, key) : NULL;
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    (void)snprintf(value, n_value, "%.*s", (int)strcspn(at, " \t\n"), at);
    return true;
}

static uint64_t read_page_bytes(void)
{
    char text[32];
    if (machine_is_fixture() && find_line("/proc/self/smaps", "KernelPageSize:", text, sizeof text))
        return strtoull(text, NULL, 10) * 1024;
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Number of CPUs in a list such as 0-3,8,10-11. */
static unsigned count_cpus(const char *list)
{
    unsigned n = 0;
    while (*list) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (end == list)
            return n;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        n += last >= first ? (unsigned)(last - first + 1) : 0;
        list = end + (*end == ',');
    }
    return n;
}

void aux_limits_read(struct aux_limits *limits)
{
    char text[256];
    *limits = (struct aux_limits){.page_bytes = read_page_bytes(), .n_cpus = 1, .n_areas = 1,
                                   .memlock_bytes = UINT64_MAX};
    long mlock_kb = machine_read_number("/proc/sys/kernel/perf_event_mlock_kb", MLOCK_KB_DEFAULT);
    limits->mlock_kb = mlock_kb > 0 ? (uint64_t)mlock_kb : 0;
    if (machine_read("/sys/devices/system/cpu/online", text, sizeof text) && count_cpus(text) > 0)
        limits->n_cpus = count_cpus(text);
    if (find_line("/proc/self/limits", "Max locked memory", text, sizeof text) && strcmp(text, "unlimited") != 0)
        limits->memlock_bytes = strtoull(text, NULL, 10);
    limits->is_unlimited = machine_read_number("/proc/sys/kernel/perf_event_paranoid", 2) < 0;
    if (find_line("/proc/self/status", "CapEff:", text, sizeof text))
        limits->is_unlimited |= (strtoull(text, NULL, 16) >> CAP_IPC_LOCK_BIT & 1) != 0;
}

static uint64_t thread_bytes(const struct aux_limits *limits, uint64_t aux_bytes)
{
    return limits->n_areas * (aux_bytes + RING_PAGES * limits->page_bytes) + FAULTS_PAGES * limits->page_bytes;
}

static uint64_t allowed_bytes(const struct aux_limits *limits)
{
    if (limits->is_unlimited || limits->memlock_bytes == UINT64_MAX)
        return UINT64_MAX;
    return limits->mlock_kb * 1024 * limits->n_cpus + limits->memlock_bytes;
}

void aux_size_choose(const struct aux_limits *limits, struct aux_size *size)
{
    uint64_t allowed = allowed_bytes(limits), least = AUX_PAGES_MIN * limits->page_bytes;
    uint64_t most = limits->hardware_bytes && limits->hardware_bytes < AUX_BYTES_MAX ? limits->hardware_bytes
                                                                                     : AUX_BYTES_MAX;
    uint64_t aux_bytes = AUX_PAGES_MAX * limits->page_bytes;
    while (aux_bytes > least && (aux_bytes > most || thread_bytes(limits, aux_bytes) > allowed / limits->n_cpus))
        aux_bytes /= 2;
    bool fits = thread_bytes(limits, aux_bytes) <= allowed;
    *size = (struct aux_size){
        .aux_bytes = fits ? (uint32_t)aux_bytes : 0,
        .ring_bytes = (uint32_t)limits->page_bytes,
        .needed_bytes = thread_bytes(limits, least),
        .allowed_bytes = allowed,
        .n_threads = allowed == UINT64_MAX ? UINT64_MAX : allowed / thread_bytes(limits, aux_bytes),
    };
}
