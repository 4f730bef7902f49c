/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at a measured process, one after the other, and the names of what they see. Ordinary code. */
#include "running/running.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/build/heap-name.h"
#include "analysis/build/placeholders.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/vec.h"
#include "fnbounds/modtab-cache.h"

/* --- names for the variables of a process that still runs --- */

/* As its report will have them, as far as its modules can be read here. */

#define KEYS_MAX 64 /* of a kind: the rest is small change, and debug information takes its time */

struct name {
    char name[192], site[320];
    const char *class;
};

/* What names are made with, and those that are known: a look each second asks for the same ones again and again. */
struct running_names {
    const struct running_process *process; /* while one is made */
    const char *tables;
    struct model model;
    bool has_model;
    struct symbolizer *symbolizer;
    struct source_text *source;
    struct strtab keys;
    struct name **names; /* [keys.n_strings] */
    size_t capacity;
};

/* Appends the functions of a place, innermost first. */
static bool push_place(struct running_names *namer, const struct live_place *place, struct path_frame **path, size_t *n,
                       size_t *capacity)
{
    const struct code_frame *frames;
    uint32_t module = symbolizer_module(namer->symbolizer, place->path ? place->path : "");
    if (place->text && module)
        symbolizer_add_function(namer->symbolizer, module, place->vaddr, place->vaddr + 1, place->text);
    size_t n_frames = symbolizer_lookup(namer->symbolizer, module, place->vaddr, &frames);
    if (!vec_reserve(path, capacity, *n + n_frames, sizeof **path))
        return false;
    for (size_t i = n_frames; i-- > 0;)
        (*path)[(*n)++] =
            (struct path_frame){.code = frames[i], .module = module, .vaddr = place->vaddr, .inlined = i > 0};
    return true;
}

static void set_site(const struct running_names *namer, const struct code_frame *code, struct name *variable)
{
    const char *function = symbolizer_text(namer->symbolizer, code->function);
    const char *file = symbolizer_text(namer->symbolizer, code->file);
    if (code->line)
        (void)snprintf(variable->site, sizeof variable->site, "%.150s (%.120s:%u)", function, path_last(file),
                       code->line);
    else
        (void)snprintf(variable->site, sizeof variable->site, "%.150s", function);
}

static void name_heap(struct running_names *namer, const struct live_variable_place *place, struct name *variable)
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

static void name_stack(struct running_names *namer, const struct live_variable_place *place, struct name *variable)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    if (place->n_frames && push_place(namer, &place->frames[0], &path, &n, &capacity) && n) {
        const char *function = symbolizer_text(namer->symbolizer, path[n - 1].code.function);
        (void)snprintf(variable->name, sizeof variable->name, "stack of %.150s", *function ? function : "?");
    }
    free(path);
}

/* The table by which the process itself names its variables. */
static void name_static(const struct running_names *namer, const struct live_variable_place *place, uint64_t var,
                        struct name *variable)
{
    const struct modtab_header *table;
    struct error err;
    bool is_tls = var_key_kind(var) == VAR_TLS;
    uint32_t index = var_key_b(var);
    (void)snprintf(variable->site, sizeof variable->site, "%.300s", place->path ? path_last(place->path) : "");
    if (!place->table_id || modtab_map(namer->tables, place->table_id, &table, &err) != 0)
        return;
    if (index < (is_tls ? table->n_tls_syms : table->n_syms)) {
        const struct modtab_sym *symbol = (is_tls ? modtab_tls_syms(table) : modtab_syms(table)) + index;
        (void)snprintf(variable->name, sizeof variable->name, "%.190s", modtab_string(table, symbol->name));
    }
    modtab_unmap(table);
}

static void name_unknown(const struct live_variable_place *place, struct name *variable)
{
    char reason[128] = "";
    if (place->reason)
        (void)placeholders_reason(place->reason, reason, sizeof reason);
    (void)snprintf(variable->name, sizeof variable->name, "<%.120s>", reason);
}

/* The function that holds a place. */
static void name_code(struct running_names *namer, const struct live_variable_place *place, struct name *variable)
{
    struct path_frame *path = NULL;
    size_t n = 0, capacity = 0;
    const char *module = place->n_frames && place->frames[0].path ? place->frames[0].path : "?";
    (void)snprintf(variable->site, sizeof variable->site, "%.300s", path_last(module));
    if (place->n_frames && push_place(namer, &place->frames[0], &path, &n, &capacity) && n) {
        const struct code_frame *code = &path[n - 1].code;
        bool is_profiler = symbolizer_is_runtime(namer->symbolizer, path[n - 1].module);
        (void)snprintf(variable->name, sizeof variable->name, "%.190s",
                       is_profiler ? "<profiler>" : symbolizer_text(namer->symbolizer, code->function));
        if (code->file)
            (void)snprintf(variable->site, sizeof variable->site, "%.300s",
                           path_last(symbolizer_text(namer->symbolizer, code->file)));
    }
    free(path);
}

static const char *const class_texts[HIT_CLASSES] = {
    [HIT_MEMORY] = "data: of the instruction",
    [HIT_DEPENDENT] = "data: that it was computed from",
    [HIT_COMPUTE] = "computing",
    [HIT_LOST] = "data whose address is lost",
    [HIT_SYSCALL] = "system calls",
    [HIT_PLAIN] = "not known: the event tells no address",
    [HIT_KERNEL_ADDR] = "data: by the hardware or the kernel",
    [HIT_WAITING] = "waiting for another thread",
};

static void name_variable(struct running_names *namer, uint64_t var, const struct live_variable_place *place,
                          struct name *variable)
{
    static const enum variable_class classes[VAR_KINDS] = {
        [VAR_HEAP] = CLASS_HEAP, [VAR_MMAP] = CLASS_MMAP,      [VAR_STATIC] = CLASS_STATIC,
        [VAR_TLS] = CLASS_TLS,   [VAR_STACK] = CLASS_STACK,    [VAR_STACK_OTHER] = CLASS_STACK,
        [VAR_FILE] = CLASS_FILE, [VAR_UNKNOWN] = CLASS_UNKNOWN};
    enum var_kind kind = var_key_kind(var);
    if (kind >= VAR_KINDS)
        return;
    variable->class = model_class_name(classes[kind]);
    if (kind == VAR_HEAP || kind == VAR_MMAP)
        name_heap(namer, place, variable);
    else if (kind == VAR_STACK)
        name_stack(namer, place, variable);
    else if (kind == VAR_STACK_OTHER)
        (void)snprintf(variable->name, sizeof variable->name, "stack of another thread");
    else if (kind == VAR_FILE)
        (void)snprintf(variable->name, sizeof variable->name, "%.190s", place->path ? place->path : "?");
    else if (kind == VAR_UNKNOWN)
        name_unknown(place, variable);
    else
        name_static(namer, place, var, variable);
}

static void name_one(struct running_names *namer, const struct live_sum *sum, struct name *variable)
{
    const struct running_process *process = namer->process;
    struct live_variable_place place;
    struct error err;
    bool is_variable = sum->kind == LIVE_VARIABLE || sum->kind == LIVE_MEMORY;
    *variable = (struct name){.name = "?", .class = is_variable ? "unknown" : ""};
    if (live_place(process->arena, process->size_bytes, sum, &place, &err) != 0)
        return;
    if (is_variable)
        name_variable(namer, sum->key, &place, variable);
    else if (sum->kind == LIVE_CLASS)
        (void)snprintf(variable->name, sizeof variable->name, "%s",
                       sum->key < HIT_CLASSES ? class_texts[sum->key] : "?");
    else if (sum->kind == LIVE_THREAD)
        (void)snprintf(variable->name, sizeof variable->name, "%u%s%s", place.thread, *place.comm ? " " : "",
                       place.comm);
    else
        name_code(namer, &place, variable);
    free(place.frames);
}

static void names_free(struct running_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; names->names && i < names->keys.n_strings; i++)
        free(names->names[i]);
    free(names->names);
    strtab_fini(&names->keys);
    source_text_free(names->source);
    symbolizer_free(names->symbolizer);
    if (names->has_model)
        model_fini(&names->model);
    free(names);
}

static struct running_names *names_new(void)
{
    struct error err;
    struct running_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->has_model = model_init(&names->model, &err) == 0;
    names->symbolizer = names->has_model ? symbolizer_new(&names->model) : NULL;
    names->source = source_text_new(NULL, NULL);
    if (names->symbolizer && names->source)
        return names;
    names_free(names);
    return NULL;
}

/* The name of a sum; NULL when out of memory. Threads are named anew: they may take another name. */
static const struct name *name_of(struct running_names *names, const struct live_sum *sum)
{
    char key[64];
    int kind = sum->kind == LIVE_MEMORY ? LIVE_VARIABLE : (int)sum->kind;
    (void)snprintf(key, sizeof key, "%d %x %llx", kind, sum->module, (unsigned long long)sum->key);
    int64_t at = strtab_find(&names->keys, key);
    if (at < 0) {
        if (!vec_reserve(&names->names, &names->capacity, names->keys.n_strings + 1, sizeof *names->names) ||
            (at = strtab_intern(&names->keys, key)) < 0)
            return NULL;
        names->names[at] = malloc(sizeof **names->names);
        if (names->names[at])
            name_one(names, sum, names->names[at]);
    } else if (sum->kind == LIVE_THREAD && names->names[at]) {
        name_one(names, sum, names->names[at]);
    }
    return names->names[at];
}

/* --- looks --- */

const struct running_past *running_now(const struct running_process *process)
{
    return process->n_past ? &process->past[process->n_past - 1] : NULL;
}

const struct running_past *running_before(const struct running_process *process)
{
    return process->n_past ? &process->past[0] : NULL;
}

double running_elapsed_s(const struct running_process *process)
{
    const struct live *live = &running_now(process)->live;
    double s = ((double)clock_now_ns(CLOCK_REALTIME) - (double)live->start_ns) / CLOCK_S_NS;
    if (process->ended_at_s > 0)
        s -= (double)clock_now_ns(CLOCK_MONOTONIC) / CLOCK_S_NS - process->ended_at_s;
    return s > 0.001 ? s : 0.001;
}

double running_window_s(const struct running_process *process)
{
    return running_now(process)->at_s - running_before(process)->at_s;
}

double running_rate_now(const struct running_process *process, uint32_t event)
{
    uint64_t now = running_now(process)->live.events[event].n_taken;
    uint64_t before = running_before(process)->live.events[event].n_taken;
    double seconds = running_window_s(process);
    return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

static void drop_oldest(struct running_process *process)
{
    live_sums_fini(&process->past[0].sums);
    process->n_past--;
    memmove(process->past, process->past + 1, process->n_past * sizeof *process->past);
}

int running_look(struct running_process *process, bool with_sums, struct error *err)
{
    if (process->n_past == RUNNING_PASTS)
        drop_oldest(process);
    struct running_past *past = &process->past[process->n_past];
    *past = (struct running_past){.at_s = (double)clock_now_ns(CLOCK_MONOTONIC) / CLOCK_S_NS};
    int code = live_look(process->arena, process->size_bytes, &past->live, with_sums ? &past->sums : NULL, err);
    process->is_readable = code == 0;
    process->n_past += code == 0;
    /* Half a second: looks come late on a busy machine. */
    while (process->n_past > 2 && past->at_s - process->past[0].at_s > RUNNING_WINDOW_S + 0.5) {
        drop_oldest(process);
        past--;
    }
    return code;
}

void running_process_fini(struct running_process *process)
{
    while (process->n_past)
        drop_oldest(process);
    names_free(process->names);
    process->names = NULL;
}

/* --- tables of what costs most --- */

/* A sum, and what of it is from before. */
struct change {
    const struct live_sum *sum;
    double n_lately, value_lately;
};

static int by_total(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->sum->value != y->sum->value)
        return x->sum->value > y->sum->value ? -1 : 1;
    return live_sum_compare(x->sum, y->sum);
}

static int by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->value_lately != y->value_lately)
        return x->value_lately > y->value_lately ? -1 : 1;
    return by_total(a, b);
}

/* The changes of a kind, malloc'ed, [*n]; both lists are sorted. */
static struct change *list_changes(const struct running_process *process, enum live_kind kind,
                                   struct running_table *table, size_t *n)
{
    const struct live_sums *now = &running_now(process)->sums, *before = &running_before(process)->sums;
    struct change *changes = calloc(now->n + 1, sizeof *changes);
    size_t at = 0;
    *n = 0;
    for (size_t i = 0; changes && i < now->n; i++) {
        const struct live_sum *sum = &now->sums[i];
        if (sum->kind != kind)
            continue;
        while (at < before->n && live_sum_compare(&before->sums[at], sum) < 0)
            at++;
        bool is_old = at < before->n && live_sum_compare(&before->sums[at], sum) == 0;
        struct change change = {sum, sum->n - (is_old ? before->sums[at].n : 0),
                                sum->value - (is_old ? before->sums[at].value : 0)};
        table->n_all += sum->n;
        table->value_all += sum->value;
        table->n_all_lately += change.n_lately;
        table->value_all_lately += change.value_lately;
        changes[(*n)++] = change;
    }
    return changes;
}

/* Threads have their own keys for one allocation path, and a function has many places. */
static size_t add_row(struct running_row *rows, size_t n, const struct name *name, const struct change *change)
{
    size_t at = 0;
    while (at < n && (strcmp(rows[at].name, name->name) != 0 || strcmp(rows[at].site, name->site) != 0 ||
                      rows[at].class != name->class))
        at++;
    struct running_row *row = &rows[at];
    if (at == n) {
        *row = (struct running_row){.class = name->class};
        memcpy(row->name, name->name, sizeof row->name);
        memcpy(row->site, name->site, sizeof row->site);
    }
    row->n += change->sum->n;
    row->value += change->sum->value;
    row->n_lately += change->n_lately;
    row->value_lately += change->value_lately;
    return at == n ? n + 1 : n;
}

static int rows_by_total(const void *a, const void *b)
{
    const struct running_row *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int rows_by_change(const void *a, const void *b)
{
    const struct running_row *x = a, *y = b;
    if (x->value_lately != y->value_lately)
        return x->value_lately > y->value_lately ? -1 : 1;
    return rows_by_total(a, b);
}

/* Names the first ones of a list. */
static size_t name_first(struct running_process *process, const struct change *changes, size_t n,
                         struct running_row *rows, size_t n_rows)
{
    process->names->process = process;
    process->names->tables = running_now(process)->live.tables;
    for (size_t i = 0; i < n && i < KEYS_MAX; i++) {
        const struct name *name = name_of(process->names, changes[i].sum);
        n_rows = name ? add_row(rows, n_rows, name, &changes[i]) : n_rows;
    }
    return n_rows;
}

void running_sum(struct running_process *process, enum live_kind kind, bool by_lately, struct running_table *table)
{
    size_t n = 0, n_rows = 0;
    *table = (struct running_table){.n = 0};
    if (!process->n_past)
        return;
    struct change *changes = list_changes(process, kind, table, &n);
    struct running_row *rows = calloc(KEYS_MAX, sizeof *rows);
    if (!process->names && !process->is_foreign) /* naming opens files that the process names */
        process->names = names_new();
    if (changes && n)
        qsort(changes, n, sizeof *changes, by_lately ? by_change : by_total);
    if (changes && rows && process->names)
        n_rows = name_first(process, changes, n, rows, 0);
    if (n_rows)
        qsort(rows, n_rows, sizeof *rows, by_lately ? rows_by_change : rows_by_total);
    table->n = n_rows < RUNNING_ROWS ? n_rows : RUNNING_ROWS;
    if (table->n)
        memcpy(table->rows, rows, table->n * sizeof *rows);
    free(changes);
    free(rows);
}
