/* SPDX-License-Identifier: BSD-3-Clause */
/* Examining the machine; see doctor.h. */
#include "doctor.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config.h"
#include "fnbounds/modtab-cache.h"
#include "prepare.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"
#include "sampling/skid.h"

static void print_result(FILE *out, const char *name, bool works, const char *reason, const char *fix)
{
    (void)fprintf(out, "%-12s %s: %s\n", name, works ? "works" : "does not work", reason);
    if (fix && fix[0])
        (void)fprintf(out, "%-12s fix: %s\n", "", fix);
}

static bool print_sources(FILE *out)
{
    bool has_addresses = false, has_hardware = false;
    for (const struct sample_source *const *row = source_table(); *row; row++) {
        struct source_probe probe;
        (*row)->probe(&probe);
        has_hardware |= !probe.is_foreign && (*row)->datacentric_rank >= SOURCE_RANK_HARDWARE;
        if (probe.is_foreign)
            continue;
        print_result(out, (*row)->name[0] ? (*row)->name : "PMU", probe.works, probe.reason, probe.fix);
        has_addresses |= probe.works && (*row)->datacentric_rank > 0;
    }
    if (!has_hardware)
        print_result(out, "hardware", false, "no address sampling is known for this processor",
                     "none; addresses are worked out in software (EADDR)");
    return has_addresses;
}

static bool count_file(const char *name, const char *text, void *ctx)
{
    (void)name;
    (void)text;
    ++*(unsigned *)ctx;
    return true;
}

static bool print_pmu(const struct pmu *pmu, void *ctx)
{
    FILE *out = ctx;
    unsigned n_events = 0, n_terms = 0;
    pmu_visit_events(pmu, count_file, &n_events);
    pmu_visit_terms(pmu, count_file, &n_terms);
    (void)fprintf(out, "%-12s   %s: type %u, %u event%s, %u term%s", "", pmu->name, pmu->type, n_events,
                  n_events == 1 ? "" : "s", n_terms, n_terms == 1 ? "" : "s");
    if (pmu->max_precise)
        (void)fprintf(out, ", precise up to level %u", pmu->max_precise);
    (void)fprintf(out, "%s%s\n", pmu->cpus[0] ? ", CPUs " : "", pmu->cpus);
    return true;
}

static void print_pmus(FILE *out)
{
    (void)fprintf(out, "%-12s as the kernel describes them (hpcrun -L lists their events)\n", "PMUs");
    pmu_visit(print_pmu, out);
}

static void print_kernel(FILE *out, unsigned i, const struct skid_kernel *kernel)
{
    unsigned n = kernel->n_at + kernel->n_next + kernel->n_elsewhere;
    if (n)
        (void)fprintf(out, "%-12s   %s: %.1f %% right behind the stalled instruction, %.1f %% at it, of %u samples "
                           "(%s)\n",
                      "", skid_kernel_name(i), 100.0 * kernel->n_next / n, 100.0 * kernel->n_at / n, n,
                      skid_kernel_text(i));
}

static void print_skid(FILE *out, const char *cache)
{
    static const char *const verdicts[] = {
        [SKID_UNKNOWN] = "too few samples to judge",
        [SKID_HOLDS] = "interrupted programs stop right behind the stalled instruction",
        [SKID_FAILS] = "interrupted programs stop elsewhere than right behind the stall: no software addresses",
    };
    struct skid_result result;
    struct error err;
    if (skid_get(cache, &result, &err) != 0) {
        print_result(out, "skid", false, err.text, "");
        return;
    }
    print_result(out, "skid", result.rule == SKID_HOLDS, verdicts[result.rule <= SKID_FAILS ? result.rule : 0], "");
    (void)fprintf(out, "%-12s   %s, microcode %s, kernel %s, hypervisor %s%s\n", "", result.key.cpu,
                  result.key.microcode, result.key.kernel, result.key.hypervisor,
                  result.is_from_cache ? " (measured earlier)" : "");
    for (unsigned i = 0; i < SKID_KERNELS; i++)
        print_kernel(out, i, &result.kernels[i]);
}

static void print_installation(FILE *out, const char *cache, const struct error *cache_error)
{
    char library[PROGRAM_PATH_MAX], socket[COMPANION_NAME_MAX];
    struct error err;
    int status = prepare_library(library, sizeof library, &err);
    print_result(out, "library", status == 0, status == 0 ? library : err.text, "");
    print_result(out, "cache", cache[0] != '\0', cache[0] ? cache : cache_error->text, "");
    int fd = companion_listen(socket, &err);
    int memory = memfd_create("locus-doctor", MFD_CLOEXEC);
    print_result(out, "companion", fd >= 0 && memory >= 0,
                 fd < 0 ? err.text : memory < 0 ? "memfd_create is refused" : "sockets and memory files", "");
    if (fd >= 0)
        (void)close(fd);
    if (memory >= 0)
        (void)close(memory);
}

/* How call paths are found, as configure chose; with its limits where that is not by our own walker. */
static void print_unwinder(FILE *out)
{
    bool is_own = strcmp(UNWINDER, "own") == 0;
    (void)fprintf(out, "%-12s %s\n", "call paths",
                  is_own ? "walked by tables of our own" : "walked by libunwind, where it is installed (libunwind8):");
    if (is_own)
        return;
    (void)fprintf(out, "%-12s   some microseconds and two system calls a sample, more than 4 KiB of its stack;\n", "");
    (void)fprintf(out, "%-12s   code without unwind information ends a path; no static programs (hpclink)\n", "");
}

/* What a fixture does not describe is left out, not taken from the machine that hpcrun runs on. */
static void print_machine(FILE *out)
{
    struct utsname name;
    struct machine_cpu cpu;
    char release[128] = "";
    machine_cpu(&cpu);
    if (!machine_is_fixture() && uname(&name) == 0)
        (void)fprintf(out, "%s, Linux %s", name.machine, name.release);
    else if (machine_read("/proc/sys/kernel/osrelease", release, sizeof release))
        (void)fprintf(out, "a described machine, Linux %s", release);
    else
        (void)fprintf(out, "a described machine");
    (void)fprintf(out, "%s%s%s\n", cpu.name[0] ? ", " : "", cpu.name, cpu.is_virtual ? " (virtual machine)" : "");
}

int doctor_print(FILE *out)
{
    char cache[PROGRAM_PATH_MAX] = "";
    struct error cache_error = {0};
    if (modtab_default_cache_dir(cache, sizeof cache, &cache_error) != 0)
        cache[0] = '\0';
    print_machine(out);
    bool has_addresses = print_sources(out);
    print_pmus(out);
    if (machine_is_fixture())
        return has_addresses ? 0 : 1;
    print_skid(out, cache[0] ? cache : NULL);
    print_installation(out, cache, &cache_error);
    print_unwinder(out);
    return has_addresses ? 0 : 1;
}
