/* SPDX-License-Identifier: BSD-3-Clause */
/* What a look at measured processes saw, for people and as JSON. Ordinary code. */
#include "status.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/build/heap-name.h"
#include "analysis/build/placeholders.h"
#include "arena/fate.h"
#include "base/path.h"
#include "base/vec.h"
#include "fmt/json.h"
#include "fnbounds/modtab-cache.h"

/* --- names for the variables of a process that still runs --- */

/* As its report will have them, as far as its modules can be read here. */

#define KEYS_MAX 64 /* the rest is small change, and debug information takes its time */

struct namer {
    const struct status_process *process;
    struct model model;
    struct symbolizer *symbolizer;
    struct source_text *source;
};

/* Appends the functions of a place, innermost first. */
static bool push_place(struct namer *namer, const struct live_place *place, struct path_frame **path, size_t *n,
                       size_t *capacity)
{
    const struct code_frame *frames;
    uint32_t module = symbolizer_module(namer->symbolizer, place->path ? place->path : "");
    size_t n_frames = symbolizer_lookup(namer->symbolizer, module, place->vaddr, &frames);
    if (!vec_reserve(path, capacity, *n + n_frames, sizeof **path))
        return false;
    for (size_t i = n_frames; i-- > 0;)
        (*path)[(*n)++] =
            (struct path_frame){.code = frames[i], .module = module, .vaddr = place->vaddr, .inlined = i > 0};
    return true;
}

static void set_site(const struct namer *namer, const struct code_frame *code, struct status_variable *variable)
{
    const char *function = symbolizer_text(namer->symbolizer, code->function);
    const char *file = symbolizer_text(namer->symbolizer, code->file);
    if (code->line)
        (void)snprintf(variable->site, sizeof variable->site, "%.150s (%.120s:%u)", function, path_last(file),
                       code->line);
    else
        (void)snprintf(variable->site, sizeof variable->site, "%.150s", function);
}

static void name_heap(struct namer *namer, const struct live_variable_place *place, struct status_variable *variable)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    struct heap_name name;
    for (size_t i = 0; i < place->n_frames; i++)
        if (!push_place(namer, &place->frames[i], &path, &n, &capacity))
            break;
    if (n) {
        heap_name_find(namer->symbolizer, namer->source, path, n, &name);
        (void)snprintf(variable->name, sizeof variable->name, "%s", name.name);
        set_site(namer, &path[name.site].code, variable);
    }
    free(path);
}

static void name_stack(struct namer *namer, const struct live_variable_place *place, struct status_variable *variable)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    if (place->n_frames && push_place(namer, &place->frames[0], &path, &n, &capacity) && n)
        (void)snprintf(variable->name, sizeof variable->name, "stack of %.150s",
                       symbolizer_text(namer->symbolizer, path[n - 1].code.function));
    free(path);
}

/* The table by which the process itself names its variables. */
static void name_static(const struct namer *namer, const struct live_variable_place *place, uint64_t var,
                        struct status_variable *variable)
{
    const struct modtab_header *table;
    struct error err;
    bool is_tls = var_key_kind(var) == VAR_TLS;
    uint32_t index = var_key_b(var);
    (void)snprintf(variable->site, sizeof variable->site, "%.300s", place->path ? path_last(place->path) : "");
    if (!place->table_id || modtab_map(namer->process->live.tables, place->table_id, &table, &err) != 0)
        return;
    if (index < (is_tls ? table->n_tls_syms : table->n_syms)) {
        const struct modtab_sym *symbol = (is_tls ? modtab_tls_syms(table) : modtab_syms(table)) + index;
        (void)snprintf(variable->name, sizeof variable->name, "%.190s", modtab_string(table, symbol->name));
    }
    modtab_unmap(table);
}

static void name_unknown(const struct live_variable_place *place, struct status_variable *variable)
{
    char reason[128] = "";
    if (place->reason)
        (void)placeholders_reason(place->reason, reason, sizeof reason);
    (void)snprintf(variable->name, sizeof variable->name, "<%.120s>", reason);
}

static void name_one(struct namer *namer, const struct live_variable *from, struct status_variable *variable)
{
    static const enum variable_class classes[VAR_KINDS] = {
        [VAR_HEAP] = CLASS_HEAP, [VAR_MMAP] = CLASS_MMAP,      [VAR_STATIC] = CLASS_STATIC,
        [VAR_TLS] = CLASS_TLS,   [VAR_STACK] = CLASS_STACK,    [VAR_STACK_OTHER] = CLASS_STACK,
        [VAR_FILE] = CLASS_FILE, [VAR_UNKNOWN] = CLASS_UNKNOWN};
    const struct status_process *process = namer->process;
    enum var_kind kind = var_key_kind(from->var);
    struct live_variable_place place;
    struct error err;
    *variable = (struct status_variable){.n_samples = from->n_samples, .name = "?", .class = "unknown"};
    if (kind >= VAR_KINDS || live_place(process->arena, process->size_bytes, from->var, &place, &err) != 0)
        return;
    variable->class = model_class_name(classes[kind]);
    if (kind == VAR_HEAP || kind == VAR_MMAP)
        name_heap(namer, &place, variable);
    else if (kind == VAR_STACK)
        name_stack(namer, &place, variable);
    else if (kind == VAR_STACK_OTHER)
        (void)snprintf(variable->name, sizeof variable->name, "stack of another thread");
    else if (kind == VAR_FILE)
        (void)snprintf(variable->name, sizeof variable->name, "%.190s", place.path ? place.path : "?");
    else if (kind == VAR_UNKNOWN)
        name_unknown(&place, variable);
    else
        name_static(namer, &place, from->var, variable);
    free(place.frames);
}

static int compare(const void *a, const void *b)
{
    const struct status_variable *x = a, *y = b;
    if (x->n_samples != y->n_samples)
        return x->n_samples > y->n_samples ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Threads have their own keys for one allocation path. */
static size_t add(struct status_variable *variables, size_t n, const struct status_variable *variable)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(variables[i].name, variable->name) == 0 && strcmp(variables[i].site, variable->site) == 0 &&
            variables[i].class == variable->class) {
            variables[i].n_samples += variable->n_samples;
            return n;
        }
    }
    variables[n] = *variable;
    return n + 1;
}

static size_t name_all(struct namer *namer, struct status_variable *all)
{
    size_t n = 0;
    const struct live *live = &namer->process->live;
    for (size_t i = 0; i < live->n_variables && i < KEYS_MAX; i++) {
        struct status_variable variable;
        name_one(namer, &live->variables[i], &variable);
        n = add(all, n, &variable);
    }
    if (n)
        qsort(all, n, sizeof *all, compare);
    return n;
}

/* status-print.c: names the variables with most samples, at most n_max; equal ones are one. Returns their number. */
static size_t status_name(const struct status_process *process, struct status_variable *variables, size_t n_max)
{
    struct namer namer = {.process = process};
    struct status_variable *all = calloc(KEYS_MAX, sizeof *all);
    struct error err;
    size_t n = 0;
    bool has_model = model_init(&namer.model, &err) == 0;
    namer.symbolizer = has_model ? symbolizer_new(&namer.model) : NULL;
    namer.source = source_text_new(NULL, NULL);
    if (all && namer.symbolizer && namer.source)
        n = name_all(&namer, all);
    n = n < n_max ? n : n_max;
    if (n)
        memcpy(variables, all, n * sizeof *all);
    source_text_free(namer.source);
    symbolizer_free(namer.symbolizer);
    if (has_model)
        model_fini(&namer.model);
    free(all);
    return n;
}

/* --- the print --- */

#define VARIABLES_SHOWN 12

static double elapsed_s(const struct live *live)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    double s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)live->start_ns / 1e9;
    return s > 0.001 ? s : 0.001;
}

static double rate_now(const struct status_process *process, uint32_t event)
{
    uint64_t now = process->live.events[event].n_taken, before = process->before.events[event].n_taken;
    return process->seconds > 0 && now > before ? (double)(now - before) / process->seconds : 0;
}

static uint64_t n_taken(const struct live *live)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < live->n_events; i++)
        n += live->events[i].n_taken;
    return n;
}

static bool is_dropped(int fate)
{
    return !fate_is_recorded(fate) && fate < FATE_TAKEN_MAX;
}

static uint64_t n_dropped(const struct live *live)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < live->n_events; i++)
        for (int fate = 0; fate < FATE_TAKEN_MAX; fate++)
            n += is_dropped(fate) ? live->events[i].fates[fate] : 0;
    return n;
}

static void put_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    (void)fprintf(out, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* Characters that would move the cursor become '?'. */
static void put_plain(FILE *out, const char *text)
{
    for (; *text; text++)
        (void)fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
}

static void put_fates(FILE *out, const struct live_event *event)
{
    uint64_t n_decided = 0;
    const char *separator = "";
    (void)fprintf(out, "          ");
    for (int fate = 0; fate < FATE_MAX; fate++) {
        n_decided += fate < FATE_TAKEN_MAX ? event->fates[fate] : 0;
        if (!event->fates[fate])
            continue;
        (void)fprintf(out, "%s%llu %s", separator, (unsigned long long)event->fates[fate], fate_row(fate)->name);
        separator = ", ";
    }
    if (event->n_taken > n_decided)
        (void)fprintf(out, "%s%llu under way", separator, (unsigned long long)(event->n_taken - n_decided));
    (void)fprintf(out, "\n");
}

static void put_variables(const struct status_process *process, FILE *out)
{
    static struct status_variable variables[VARIABLES_SHOWN];
    const struct live *live = &process->live;
    size_t n = status_name(process, variables, VARIABLES_SHOWN);
    if (n)
        (void)fprintf(out, "\n  share   samples  variable               class         comes from\n");
    for (size_t i = 0; i < n; i++) {
        const struct status_variable *variable = &variables[i];
        (void)fprintf(out, "%5.1f %%  %8llu  ", 100 * (double)variable->n_samples / (double)live->n_address_samples,
                      (unsigned long long)variable->n_samples);
        put_plain(out, variable->name);
        (void)fprintf(out, "%*s  %-12s  ", strlen(variable->name) < 21 ? (int)(21 - strlen(variable->name)) : 0, "",
                      variable->class);
        put_plain(out, strcmp(variable->site, variable->name) ? variable->site : "");
        (void)fprintf(out, "\n");
    }
}

void status_print_one(const struct status_process *process, FILE *out)
{
    const struct live *live = &process->live;
    double seconds = elapsed_s(live);
    (void)fprintf(out, "process   %ld: ", (long)process->pid);
    put_plain(out, live->exe[0] ? live->exe : "(starting)");
    (void)fprintf(out, "\ninto      ");
    put_plain(out, process->dir);
    (void)fprintf(out, "\nrunning   %.1f s, %llu thread%s (%llu ended), sampling is %s\n", seconds,
                  (unsigned long long)live->n_threads_live, live->n_threads_live == 1 ? "" : "s",
                  (unsigned long long)(live->n_threads - live->n_threads_live), live->is_sampling ? "on" : "off");
    for (uint32_t i = 0; i < live->n_events; i++) {
        const struct live_event *event = &live->events[i];
        put_plain(out, event->name);
        (void)fprintf(out, "%*s %llu samples, %.0f/s since the start, %.0f/s in the last second\n",
                      strlen(event->name) < 9 ? (int)(9 - strlen(event->name)) : 0, "",
                      (unsigned long long)event->n_taken, (double)event->n_taken / seconds, rate_now(process, i));
        if (event->n_taken)
            put_fates(out, event);
    }
    (void)fprintf(out, "dropped   %llu samples\nmemory    ", (unsigned long long)n_dropped(live));
    put_bytes(out, live->used_bytes);
    (void)fprintf(out, " of ");
    put_bytes(out, live->limit_bytes);
    (void)fprintf(out, " for records; %llu blocks (", (unsigned long long)live->n_blocks);
    put_bytes(out, live->bytes);
    (void)fprintf(out, ") recorded so far\n");
    if (!process->is_foreign) /* naming them opens files that the process names */
        put_variables(process, out);
}

void status_print_list(const struct status_list *list, FILE *out)
{
    (void)fprintf(out, "    PID    SECONDS  THREADS    SAMPLES   PER SECOND   DROPPED     MEMORY  PROGRAM, "
                       "DIRECTORY\n");
    for (size_t i = 0; i < list->n; i++) {
        const struct status_process *process = &list->processes[i];
        double rate = 0;
        for (uint32_t e = 0; e < process->live.n_events; e++)
            rate += rate_now(process, e);
        (void)fprintf(out, "%7ld %10.1f %8llu %10llu %12.0f %9llu %6.1f MiB  ", (long)process->pid,
                      elapsed_s(&process->live), (unsigned long long)process->live.n_threads_live,
                      (unsigned long long)n_taken(&process->live), rate, (unsigned long long)n_dropped(&process->live),
                      (double)process->live.used_bytes / 1048576);
        put_plain(out, process->live.program);
        (void)fprintf(out, "  ");
        put_plain(out, process->dir);
        (void)fprintf(out, "\n");
    }
}

static void json_events(const struct status_process *process, struct buf *out)
{
    const struct live *live = &process->live;
    json_put_key(out, "events", 0);
    buf_printf(out, "[");
    for (uint32_t i = 0; i < live->n_events; i++) {
        const struct live_event *event = &live->events[i];
        bool is_first = true;
        buf_printf(out, i ? ", {\"name\": " : "{\"name\": ");
        json_put_text(out, event->name);
        json_put_word_at(out, "taken", event->n_taken);
        json_put_double_at(out, "per_second", (double)event->n_taken / elapsed_s(live));
        json_put_double_at(out, "per_second_now", rate_now(process, i));
        json_put_key(out, "fates", 0);
        buf_printf(out, "{");
        for (int fate = 0; fate < FATE_MAX; fate++) {
            if (!event->fates[fate])
                continue;
            json_put_key(out, fate_row(fate)->name, is_first);
            json_put_word(out, event->fates[fate]);
            is_first = false;
        }
        buf_printf(out, "}}");
    }
    buf_printf(out, "]");
}

static void json_variables(const struct status_process *process, struct buf *out)
{
    static struct status_variable variables[VARIABLES_SHOWN];
    size_t n = status_name(process, variables, VARIABLES_SHOWN);
    json_put_word_at(out, "address_samples", process->live.n_address_samples);
    json_put_key(out, "variables", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, i ? ", {\"variable\": " : "{\"variable\": ");
        json_put_text(out, variables[i].name);
        json_put_text_at(out, "class", variables[i].class);
        json_put_text_at(out, "alloc_site", variables[i].site);
        json_put_word_at(out, "samples", variables[i].n_samples);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

static void json_process(const struct status_process *process, bool with_variables, struct buf *out)
{
    const struct live *live = &process->live;
    buf_printf(out, "{\"pid\": ");
    json_put_word(out, (uint64_t)process->pid);
    json_put_text_at(out, "program", live->program);
    json_put_text_at(out, "executable", live->exe);
    json_put_text_at(out, "directory", process->dir);
    json_put_word_at(out, "rank", live->rank);
    json_put_double_at(out, "elapsed_s", elapsed_s(live));
    json_put_word_at(out, "threads", live->n_threads_live);
    json_put_word_at(out, "threads_ended", live->n_threads - live->n_threads_live);
    json_put_key(out, "sampling", 0);
    buf_printf(out, live->is_sampling ? "true" : "false");
    json_put_word_at(out, "dropped", n_dropped(live));
    json_put_word_at(out, "memory_bytes", live->used_bytes);
    json_put_word_at(out, "memory_limit_bytes", live->limit_bytes);
    json_put_word_at(out, "blocks", live->n_blocks);
    json_put_word_at(out, "block_bytes", live->bytes);
    json_events(process, out);
    if (with_variables)
        json_variables(process, out);
    buf_printf(out, "}");
}

void status_print_json(const struct status_list *list, FILE *out)
{
    struct buf text = {0};
    buf_printf(&text, "{\"processes\": [");
    for (size_t i = 0; i < list->n; i++) {
        buf_printf(&text, i ? ",\n" : "\n");
        json_process(&list->processes[i], list->n == 1, &text);
    }
    buf_printf(&text, "]}\n");
    (void)fwrite(text.data ? text.data : "", 1, text.len_bytes, out);
    buf_fini(&text);
}
