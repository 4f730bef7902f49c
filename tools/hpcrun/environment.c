/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting the program's environment; see environment.h. The runtime takes its plan from the companion: the HPCRUN_*
 * variables are for scripts, for nested hpcruns and for what knows HPCToolkit's. */
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena/arena.h"
#include "base/vec.h"

static struct {
    bool is_incomplete; /* there was no memory for all of it */
} environment;

static void set(const char *name, const char *value)
{
    if (value && value[0] && setenv(name, value, 1) != 0)
        environment.is_incomplete = true;
}

/* Sets a variable to text that was put together for it. */
static void set_text(const char *name, struct buf *text)
{
    if (text->failed)
        environment.is_incomplete = true;
    else
        set(name, text->data);
    buf_fini(text);
}

static void set_number(const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (value)
        set(name, text);
}

static void set_list(const char *name, const char *const *items, unsigned n)
{
    struct buf list = {0};
    for (unsigned i = 0; i < n; i++)
        buf_printf(&list, "%s%s", i ? " " : "", items[i]);
    set_text(name, &list);
}

/* A static program does not heed it, but those that it starts do. */
static void set_preload(const struct prepared *prepared)
{
    struct buf list = {0};
    const char *before = getenv("LD_PRELOAD");
    if (prepared->program.sanitizer[0])
        buf_printf(&list, "%s:", prepared->program.sanitizer);
    buf_printf(&list, "%s", prepared->library);
    if (before && before[0])
        buf_printf(&list, ":%s", before);
    set_text("LD_PRELOAD", &list);
}

/* Programs that are built with the address sanitizer refuse to run behind another library. Those that the program
 * starts are not known beforehand, so all are told not to mind. */
static void set_sanitizer_options(void)
{
    const char *before = getenv("ASAN_OPTIONS");
    struct buf options = {0};
    buf_printf(&options, "%s%sverify_asan_link_order=0", before ? before : "", before && before[0] ? ":" : "");
    set_text("ASAN_OPTIONS", &options);
}

bool environment_set(const struct hpcrun_options *options, const struct prepared *prepared)
{
    set_preload(prepared);
    char companion[COMPANION_ENV_MAX];
    set_sanitizer_options();
    companion_way_keep(prepared->way_fd, prepared->socket, companion);
    set(COMPANION_ENV, companion);
    /* Where the static library of ITT looks for who collects, unless somebody else does: the program's pools may tell
     * of their blocks by it. Not in a static program, which would load a second runtime beside its own. */
    if (!getenv("INTEL_LIBITTNOTIFY64") && !prepared->program.is_static) {
        set("INTEL_LIBITTNOTIFY64", prepared->library);
        set("INTEL_ITTNOTIFY_GROUPS", "heap,structure");
    }
    /* Likewise the code of NVTX, which tells of ranges. */
    if (!getenv("NVTX_INJECTION64_PATH") && !prepared->program.is_static)
        set("NVTX_INJECTION64_PATH", prepared->library);
    set("HPCRUN_OUT_PATH", prepared->setup.dir);
    set(LAUNCH_ENV, prepared->run.id);
    set_list("HPCRUN_EVENT_LIST", options->events, options->n_events);
    set("HPCRUN_PERF_COUNT", options->count);
    set("HPCRUN_TRACE", options->trace ? "1" : NULL);
    set("HPCRUN_DELAY_SAMPLING", options->delay ? "1" : NULL);
    set("HPCRUN_PROCESS_FRACTION", options->fraction);
    set("HPCRUN_MERGE_THREADS", options->merge_threads);
    set("HPCRUN_RETAIN_RECURSION", options->retain_recursion ? "1" : NULL);
    set_number("HPCRUN_MEMSIZE", options->memsize_bytes);
    set_number("HPCRUN_LOW_MEMSIZE", options->low_memsize_bytes);
    set("HPCRUN_LOCAL", prepared->setup.local);
    set_number("HPCRUN_MAX_SIZE", options->max_bytes);
    set("HPCRUN_MEMLEAK_PROB", options->memleak_prob);
    set("HPCRUN_FNBOUNDS_CMD", options->fnbounds);
    set("HPCFNBOUNDS_NUM_THREADS", options->jobs_symtab);
    set_list("HPCRUN_CONTROL_KNOBS", options->knobs, options->n_knobs);
    set_list("HPCRUN_DEBUG_FLAGS", options->debug_flags, options->n_debug_flags);
    if (environment.is_incomplete)
        (void)unsetenv(COMPANION_ENV); /* without it the runtime does nothing */
    return !environment.is_incomplete;
}
