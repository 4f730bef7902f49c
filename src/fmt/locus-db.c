/* SPDX-License-Identifier: BSD-3-Clause */
/* The file locus.db: a model as numbers of variable length, one after the other. One set of functions goes through the
 * model and either writes each field or reads it back, so that both directions agree. When reading, every index and
 * every count is checked here, and no later code needs to. doc/FORMAT.md has the layout. */
#include "fmt/locus-db.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "base/bytes.h"
#include "base/pages.h"

#define BEGINS "LOCUS-DB"
#define ENDS "_locusdb"
#define MARK_BYTES 8

void pass_refuse(struct pass *pass, const char *what, const char *why)
{
    if (pass->code == 0)
        pass->code = error_set(pass->err, ERR_FORMAT, "%.600s: offset %zu: %s: %s", pass->name, pass->at, what, why);
}

static void fail_memory(struct pass *pass)
{
    if (pass->code == 0)
        pass->code = error_set(pass->err, ERR_MEMORY, "out of memory");
}

void pass_put(struct buf *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; value > 127; value >>= 7)
        bytes[n++] = (unsigned char)(value | 128);
    bytes[n++] = (unsigned char)value;
    buf_append(out, bytes, n);
}

uint64_t pass_take(struct pass *pass, const char *what)
{
    uint64_t value = 0;
    if (pass->code == 0 && pass->at < pass->len && pass->data[pass->at] < 128)
        return pass->data[pass->at++];
    for (unsigned shift = 0; pass->code == 0; shift += 7) {
        if (pass->at == pass->len || shift > 63) {
            pass_refuse(pass, what, pass->at == pass->len ? "the file ends here" : "the number is too long");
            return 0;
        }
        unsigned char byte = pass->data[pass->at++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    return 0;
}

/* Writes value, or returns the one that is read, which must be at most `most`. */
uint64_t pass_number(struct pass *pass, uint64_t value, uint64_t most, const char *what)
{
    if (pass->out) {
        pass_put(pass->out, value);
        return value;
    }
    uint64_t read = pass_take(pass, what);
    if (read <= most)
        return read;
    pass_refuse(pass, what, "the number is larger than it can be");
    return 0;
}

void pass_64(struct pass *pass, uint64_t *value, const char *what)
{
    *value = pass_number(pass, *value, UINT64_MAX, what);
}

void pass_32(struct pass *pass, uint32_t *value, uint64_t most, const char *what)
{
    *value = (uint32_t)pass_number(pass, *value, most, what);
}

static void pass_8(struct pass *pass, uint8_t *value, uint64_t most, const char *what)
{
    *value = (uint8_t)pass_number(pass, *value, most, what);
}

void pass_bool(struct pass *pass, bool *value, const char *what)
{
    *value = pass_number(pass, *value, 1, what) != 0;
}

void pass_double(struct pass *pass, double *value, const char *what)
{
    uint64_t bits = htole64(bytes_bits_of(*value));
    if (pass->out) {
        buf_append(pass->out, &bits, sizeof bits);
        return;
    }
    if (pass->code != 0 || pass->len - pass->at < sizeof bits) {
        pass_refuse(pass, what, "the file ends here");
        return;
    }
    memcpy(&bits, pass->data + pass->at, sizeof bits);
    pass->at += sizeof bits;
    *value = bytes_double_of(le64toh(bits));
    if (!isfinite(*value))
        pass_refuse(pass, what, "the value is not finite");
}

/* A text or NULL: its length + 1, or 0, and its bytes. When reading, *text is malloc'ed. */
void pass_text(struct pass *pass, char **text, const char *what)
{
    size_t len = (size_t)pass_number(pass, *text ? strlen(*text) + 1 : 0, UINT64_MAX, what);
    if (pass->out) {
        buf_append(pass->out, *text ? *text : "", len ? len - 1 : 0);
        return;
    }
    if (pass->code != 0 || len == 0)
        return;
    if (len - 1 > pass->len - pass->at) {
        pass_refuse(pass, what, "the file ends within the text");
        return;
    }
    if (memchr(pass->data + pass->at, 0, len - 1)) {
        pass_refuse(pass, what, "the text has a zero byte");
        return;
    }
    *text = strndup((const char *)pass->data + pass->at, len - 1);
    pass->at += len - 1;
    if (!*text)
        fail_memory(pass);
}

/* A list's length, whose items take a byte of the file each at least; 0 after a failure. */
static size_t pass_length(struct pass *pass, size_t n, const char *what)
{
    n = (size_t)pass_number(pass, n, UINT64_MAX, what);
    if (!pass->out && n > pass->len - pass->at)
        pass_refuse(pass, what, "the list is longer than the file");
    return pass->code == 0 ? n : 0;
}

size_t pass_list(struct pass *pass, void *items, size_t n, size_t item_bytes, const char *what)
{
    n = pass_length(pass, n, what);
    if (pass->out || n == 0)
        return n;
    void *made = calloc(n, item_bytes);
    memcpy(items, &made, sizeof made);
    if (!made)
        fail_memory(pass);
    return made ? n : 0;
}

void pass_string(struct pass *pass, const struct model *model, uint32_t *id, const char *what)
{
    pass_32(pass, id, model->strings.n_strings - 1, what);
}

/* --- the parts of a model --- */

static void pass_head(struct pass *pass, struct model *model)
{
    char **texts[] = {&model->program, &model->command, &model->plan, &model->skid, &model->topology};
    uint64_t *words[] = {&model->cpu_time_ns, &model->user_ns,      &model->system_ns, &model->start_ns, &model->end_ns,
                         &model->min_bytes,   &model->sample_bytes, &model->mark_ns,   &model->n_frames};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        pass_text(pass, texts[i], "head");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        pass_64(pass, words[i], "head");
    for (size_t i = 0; i < sizeof model->unwind_stops / sizeof *model->unwind_stops; i++)
        pass_64(pass, &model->unwind_stops[i], "unwind stops");
    pass_32(pass, &model->n_numa_nodes, NUMA_NODES_MAX, "NUMA nodes");
    pass_32(pass, &model->n_killed, UINT32_MAX, "killed threads");
    pass_bool(pass, &model->has_samples, "has_samples");
}

/* The texts of a table, of which each occurs once. */
static void pass_texts(struct pass *pass, struct strtab *table, const char *what)
{
    size_t n = pass_length(pass, table->n_strings, what);
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        char *text = pass->out ? table->strings[i] : NULL;
        pass_text(pass, &text, what);
        if (pass->out)
            continue;
        if (pass->code == 0 && !text)
            pass_refuse(pass, what, "a text is missing");
        int64_t id = text ? strtab_intern(table, text) : -1;
        if (pass->code == 0 && id < 0)
            fail_memory(pass);
        else if (pass->code == 0 && id != (int64_t)i)
            pass_refuse(pass, what, "a text occurs twice");
        free(text);
    }
}

static void pass_notes(struct pass *pass, struct model *model)
{
    size_t n = pass_length(pass, model->n_notes, "notes");
    for (size_t i = 0; i < n && pass->code == 0; i++) {
        char *note = pass->out ? model->notes[i] : NULL;
        pass_text(pass, &note, "note");
        if (!pass->out && note)
            model_note(model, "%s", note);
        if (!pass->out)
            free(note);
    }
}

static void pass_metrics(struct pass *pass, struct model *model)
{
    model->n_metrics = pass_list(pass, &model->metrics, model->n_metrics, sizeof *model->metrics, "metrics");
    if (model->n_metrics > UINT16_MAX) /* as many as a database of version 4 can have */
        pass_refuse(pass, "metrics", "there are too many");
    for (size_t i = 0; i < model->n_metrics && pass->code == 0; i++) {
        struct metric *metric = &model->metrics[i];
        pass_text(pass, &metric->name, "metric");
        pass_text(pass, &metric->description, "metric");
        pass_double(pass, &metric->per_sample, "metric");
        pass_double(pass, &metric->period, "metric");
        pass_64(pass, &metric->n_samples, "metric");
        pass_bool(pass, &metric->hidden, "metric");
        pass_bool(pass, &metric->is_integer, "metric");
        pass_bool(pass, &metric->is_multiplexed, "metric");
        if (pass->code == 0 && !metric->name)
            pass_refuse(pass, "metric", "it has no name");
    }
}

static void pass_processes(struct pass *pass, struct model *model)
{
    model->n_processes = pass_list(pass, &model->processes, model->n_processes, sizeof *model->processes, "processes");
    for (size_t i = 0; i < model->n_processes && pass->code == 0; i++) {
        struct process *process = &model->processes[i];
        uint32_t *words[] = {&process->rank, &process->pid, &process->generation, &process->n_threads,
                             &process->directory};
        pass_text(pass, &process->exe, "process");
        pass_text(pass, &process->host_id, "process");
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            pass_32(pass, words[k], UINT32_MAX, "process");
        pass_64(pass, &process->birth, "process");
        if (pass->code == 0 && (!process->exe || !process->host_id))
            pass_refuse(pass, "process", "it has no name or no host");
    }
}

static void pass_threads(struct pass *pass, struct model *model)
{
    pass_bool(pass, &model->has_thread_list, "threads");
    if (!model->has_thread_list) {
        model->n_threads = pass_number(pass, model->n_threads, 1 << 24, "threads");
        return;
    }
    model->n_threads = pass_list(pass, &model->threads, model->n_threads, sizeof *model->threads, "threads");
    if (model->n_threads && !model->n_processes)
        pass_refuse(pass, "threads", "they have no process");
    for (size_t i = 0; i < model->n_threads && pass->code == 0; i++) {
        pass_32(pass, &model->threads[i].process, model->n_processes - 1, "process of a thread");
        pass_32(pass, &model->threads[i].thread_id, UINT32_MAX, "thread");
        if (!pass->out)
            model->threads[i].profile = i;
    }
}

static void pass_event(struct pass *pass, struct event_sum *event)
{
    uint64_t *words[] = {&event->taken,       &event->overflows,   &event->enabled_ns,  &event->running_ns,
                         &event->n_throttles, &event->n_no_metric, &event->n_truncated, &event->n_collisions};
    pass_text(pass, &event->metric, "event");
    pass_text(pass, &event->name, "event");
    pass_double(pass, &event->scale, "event");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        pass_64(pass, words[i], "event");
    pass_bool(pass, &event->has_data_source, "event");
    pass_bool(pass, &event->has_address, "event");
    pass_bool(pass, &event->is_user_only, "event");
    if (pass->code == 0 && (!event->metric || !event->name))
        pass_refuse(pass, "event", "it has no name");
}

/* Fates by name, since their numbers may change from version to version; those that this version does not know are left
 * out. */
static void pass_fates(struct pass *pass, struct event_sum *event)
{
    uint64_t n_fates = 0;
    for (int i = 0; i < FATE_MAX; i++)
        n_fates += event->fates[i] != 0;
    n_fates = pass_number(pass, n_fates, UINT64_MAX, "fates");
    for (int i = 0; pass->out && i < FATE_MAX; i++)
        if (event->fates[i]) {
            char *name = (char *)(uintptr_t)fate_row(i)->name;
            pass_text(pass, &name, "fate");
            pass_64(pass, &event->fates[i], "fate");
        }
    for (uint64_t k = 0; !pass->out && pass->code == 0 && k < n_fates; k++) {
        char *name = NULL;
        uint64_t count = 0;
        pass_text(pass, &name, "fate");
        pass_64(pass, &count, "fate");
        for (int i = 0; name && i < FATE_MAX; i++)
            if (strcmp(fate_row(i)->name, name) == 0)
                event->fates[i] = count;
        free(name);
    }
}

static void pass_events(struct pass *pass, struct model *model)
{
    model->n_events = pass_list(pass, &model->events, model->n_events, sizeof *model->events, "events");
    for (size_t i = 0; i < model->n_events && pass->code == 0; i++) {
        pass_event(pass, &model->events[i]);
        pass_fates(pass, &model->events[i]);
    }
}

/* --- the tree --- */

#define SCOPE_NUMBERS 10
#define NUMBER_BYTES 10

/* Reads the numbers of a scope where none of them can be cut off. False, and nothing read: one is not as it should be.
 */
static bool take_numbers(struct pass *pass, const uint64_t *most, uint64_t *values)
{
    const unsigned char *at = pass->data + pass->at;
    bool is_right = true;
    if (pass->code != 0 || pass->len - pass->at < SCOPE_NUMBERS * NUMBER_BYTES)
        return false;
    for (size_t i = 0; i < SCOPE_NUMBERS; i++) {
        uint64_t value = *at & 127;
        for (unsigned shift = 7; *at > 127 && shift < 7 * NUMBER_BYTES; shift += 7)
            value |= (uint64_t)(*++at & 127) << shift;
        is_right = is_right && *at < 128 && value <= most[i];
        values[i] = value;
        at++;
    }
    if (is_right)
        pass->at = (size_t)(at - pass->data);
    return is_right;
}

/* There may be millions of scopes. */
static void pass_scope(struct pass *pass, const struct model *model, uint32_t index, struct scope *scope)
{
    static const char *const names[] = {"parent", "kind",   "role", "type", "name",
                                        "file",   "module", "line", "line", "address"};
    const uint64_t id = model->strings.n_strings - 1;
    const uint64_t most[] = {index - 1, SCOPE_INSTRUCTION, ROLE_COUNT - 1, UINT16_MAX, id, id,
                             id,        UINT32_MAX,        UINT32_MAX,     UINT64_MAX};
    uint64_t values[] = {index - 1 - scope->parent, /* near 0 in long chains */
                         scope->kind,
                         scope->role,
                         scope->node_type,
                         scope->name,
                         scope->file,
                         scope->module,
                         scope->line,
                         scope->end_line,
                         scope->vaddr};
    if (pass->out || !take_numbers(pass, most, values))
        for (size_t i = 0; i < SCOPE_NUMBERS; i++)
            values[i] = pass_number(pass, values[i], most[i], names[i]);
    scope->parent = index - 1 - (uint32_t)values[0];
    scope->kind = (uint8_t)values[1];
    scope->role = (uint8_t)values[2];
    scope->node_type = (uint16_t)values[3];
    scope->name = (uint32_t)values[4];
    scope->file = (uint32_t)values[5];
    scope->module = (uint32_t)values[6];
    scope->line = (uint32_t)values[7];
    scope->end_line = (uint32_t)values[8];
    scope->vaddr = values[9];
    if (pass->code == 0 && pass->wanted == DB_ALL && !model_scope_fits(model, index))
        pass_refuse(pass, "kind", "an instruction is not in a statement, or has parts");
}

/* The values that are not 0: how many places further on in [scope][metric], and the value. */
static void pass_values(struct pass *pass, struct model *model)
{
    uint64_t n_values = 0, at = 0, n_places = (uint64_t)model->n_scopes * model->n_metrics;
    double left_out = 0;
    if (!pass->out && pass->wanted == DB_ALL && !(model->own = calloc(n_places + 1, sizeof *model->own)))
        fail_memory(pass);
    if (!pass->out)
        pages_want_large(model->own, n_places * sizeof *model->own);
    for (uint64_t i = 0; pass->out && i < n_places; i++)
        n_values += model->own[i] != 0;
    n_values = pass_number(pass, n_values, n_places, "values");
    for (uint64_t k = 0, next = 0; k < n_values && pass->code == 0; k++, next = at + 1) {
        at = next;
        while (pass->out && model->own[at] == 0)
            at++;
        if (next >= n_places) {
            pass_refuse(pass, "values", "there are more than the tree has room for");
            return;
        }
        at = next + pass_number(pass, at - next, n_places - 1 - next, "place of a value");
        pass_double(pass, pass->wanted == DB_ALL ? &model->own[at] : &left_out, "value");
    }
}

/* Room for n scopes and no more: there may be millions. The first one is there already. */
static void make_room(struct pass *pass, struct model *model, size_t n)
{
    struct scope *made = n > model->cap_scopes ? calloc(n, sizeof *made) : NULL;
    if (made) {
        pages_want_large(made, n * sizeof *made);
        memcpy(made, model->scopes, model->n_scopes * sizeof *made);
        free(model->scopes);
        model->scopes = made;
        model->cap_scopes = n;
    }
    if (n > model->cap_scopes)
        fail_memory(pass);
}

static void pass_tree(struct pass *pass, struct model *model)
{
    bool is_kept = pass->wanted == DB_ALL;
    size_t n = pass_length(pass, model->n_scopes - 1, "scopes");
    if (!pass->out && is_kept)
        make_room(pass, model, n + 1);
    if (pass->code == 0)
        model->n_scopes = n + 1;
    for (uint32_t i = 1; i <= n && pass->code == 0; i++) {
        struct scope left_out = {0};
        pass_scope(pass, model, i, is_kept ? &model->scopes[i] : &left_out);
    }
    if (!pass->out && is_kept && pass->code == 0)
        model_link_scopes(model);
    pass_values(pass, model);
}

/* --- variables --- */

static void pass_parts(struct pass *pass, const struct model *model, struct variable *variable)
{
    variable->n_parts = pass_list(pass, &variable->parts, variable->n_parts, sizeof *variable->parts, "parts");
    for (size_t i = 0; i < variable->n_parts && pass->code == 0; i++) {
        struct variable_part *part = &variable->parts[i];
        pass_string(pass, model, &part->name, "part");
        pass_string(pass, model, &part->file, "part");
        pass_string(pass, model, &part->type, "part");
        pass_32(pass, &part->line, UINT32_MAX, "part");
        pass_64(pass, &part->element_bytes, "part");
        pass_64(pass, &part->size_bytes, "part");
        pass_double(pass, &part->fraction, "part");
        if (!pass->out && pass->code == 0 && !(part->fraction >= 0 && part->fraction <= 1 + 1e-9))
            pass_refuse(pass, "part", "it is no fraction");
    }
    variable->n_part_lines =
        pass_list(pass, &variable->part_lines, variable->n_part_lines, sizeof *variable->part_lines, "lines of parts");
    if (variable->n_part_lines && !variable->n_parts)
        pass_refuse(pass, "lines of parts", "there are no parts");
    for (size_t i = 0; i < variable->n_part_lines && pass->code == 0; i++) {
        struct part_line *line = &variable->part_lines[i];
        pass_32(pass, &line->part, variable->n_parts - 1, "line of a part");
        pass_string(pass, model, &line->function, "line of a part");
        pass_string(pass, model, &line->file, "line of a part");
        pass_32(pass, &line->line, UINT32_MAX, "line of a part");
        pass_string(pass, model, &line->loop.file, "line of a part");
        pass_32(pass, &line->loop.first, UINT32_MAX, "line of a part");
        pass_32(pass, &line->loop.last, UINT32_MAX, "line of a part");
        pass_64(pass, &line->samples, "line of a part");
    }
}

void pass_event_index(struct pass *pass, const struct model *model, uint32_t *event)
{
    if (!pass->out && !model->n_events)
        pass_refuse(pass, "event of a variable", "there is no event");
    else
        pass_32(pass, event, model->n_events - 1, "event of a variable");
}

/* The part of a field: 0 for the whole, else its number + 1. */
static void pass_fields(struct pass *pass, const struct model *model, struct variable *variable)
{
    pass_string(pass, model, &variable->type, "type");
    pass_8(pass, &variable->type_source, TYPE_SOURCES - 1, "type");
    pass_64(pass, &variable->element_bytes, "type");
    variable->n_fields = pass_list(pass, &variable->fields, variable->n_fields, sizeof *variable->fields, "fields");
    for (size_t i = 0; i < variable->n_fields && pass->code == 0; i++) {
        struct variable_field *field = &variable->fields[i];
        uint32_t part = field->part == FIELD_NO_PART ? 0 : field->part + 1;
        pass_event_index(pass, model, &field->event);
        pass_32(pass, &part, variable->n_parts, "part of a field");
        field->part = part ? part - 1 : FIELD_NO_PART;
        pass_string(pass, model, &field->name, "field");
        pass_string(pass, model, &field->type, "field");
        pass_32(pass, &field->flags, UINT32_MAX, "field");
        pass_64(pass, &field->offset_bytes, "field");
        pass_64(pass, &field->size_bytes, "field");
        pass_64(pass, &field->samples, "field");
    }
}

static void pass_sums(struct pass *pass, const struct model *model, struct variable *variable)
{
    variable->n_latencies =
        pass_list(pass, &variable->latencies, variable->n_latencies, sizeof *variable->latencies, "latencies");
    for (size_t i = 0; i < variable->n_latencies && pass->code == 0; i++) {
        struct latency_sum *sum = &variable->latencies[i].sum;
        uint64_t *words[] = {&sum->n_samples, &sum->cycles, &sum->n_remote, &sum->remote_cycles};
        pass_event_index(pass, model, &variable->latencies[i].event);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            pass_64(pass, words[k], "latency");
        for (size_t k = 0; k < LATENCY_BINS; k++)
            pass_64(pass, &sum->bins[k], "latency");
    }
    variable->n_causes = pass_list(pass, &variable->causes, variable->n_causes, sizeof *variable->causes, "causes");
    for (size_t i = 0; i < variable->n_causes && pass->code == 0; i++) {
        struct cause_sum *sum = &variable->causes[i].sum;
        double *values[] = {&sum->memory,    &sum->memory_low, &sum->memory_high,
                            &sum->execution, &sum->unverified, &sum->resident};
        pass_event_index(pass, model, &variable->causes[i].event);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            pass_double(pass, values[k], "cause");
        pass_double(pass, &sum->memory_least, "cause");
        pass_double(pass, &sum->memory_most, "cause");
    }
}

static void pass_walks(struct pass *pass, const struct model *model, struct variable *variable)
{
    variable->n_walks = pass_list(pass, &variable->walks, variable->n_walks, sizeof *variable->walks, "walks");
    for (size_t i = 0; i < variable->n_walks && pass->code == 0; i++) {
        struct variable_walk *walk = &variable->walks[i];
        pass_event_index(pass, model, &walk->event);
        pass_8(pass, &walk->kind, PATTERN_CHAINED, "walk");
        pass_32(pass, &walk->stride_bytes, WALK_STRIDE_MOST, "walk");
        pass_double(pass, &walk->samples, "walk");
        pass_double(pass, &walk->memory, "walk");
    }
}

/* Counts that a variable has for each of n things, or for none. */
static void pass_counts(struct pass *pass, uint64_t **counts, size_t n, const char *what)
{
    size_t n_counts = pass_list(pass, counts, *counts ? n : 0, sizeof **counts, what);
    if (n_counts && n_counts != n)
        pass_refuse(pass, what, "the list has another length");
    for (size_t i = 0; i < n_counts && pass->code == 0; i++)
        pass_64(pass, &(*counts)[i], what);
}

static void pass_variable(struct pass *pass, const struct model *model, struct variable *variable)
{
    uint64_t *words[] = {&variable->size_bytes,      &variable->n_blocks,         &variable->size_freed_bytes,
                         &variable->n_blocks_freed,  &variable->max_block_bytes,  &variable->n_inexact,
                         &variable->n_blocks_marked, &variable->size_marked_bytes};
    pass_string(pass, model, &variable->name, "variable");
    pass_8(pass, &variable->class, CLASS_COUNT - 1, "class");
    pass_string(pass, model, &variable->function, "variable");
    pass_string(pass, model, &variable->file, "variable");
    pass_32(pass, &variable->line, UINT32_MAX, "variable");
    pass_string(pass, model, &variable->module, "variable");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        pass_64(pass, words[i], "variable");
    variable->n_scopes = pass_list(pass, &variable->scopes, variable->n_scopes, sizeof *variable->scopes, "scopes");
    for (size_t i = 0; i < variable->n_scopes && pass->code == 0; i++)
        pass_32(pass, &variable->scopes[i], model->n_scopes - 1, "scope of a variable");
    pass_parts(pass, model, variable);
    pass_fields(pass, model, variable);
    pass_counts(pass, &variable->samples, model->n_metrics, "samples");
    pass_counts(pass, &variable->places, model->n_metrics * model->n_numa_nodes, "places");
    pass_sums(pass, model, variable);
    pass_walks(pass, model, variable);
}

static void pass_variables(struct pass *pass, struct model *model)
{
    model->n_variables = pass_list(pass, &model->variables, model->n_variables, sizeof *model->variables, "variables");
    for (size_t i = 0; i < model->n_variables && pass->code == 0; i++)
        pass_variable(pass, model, &model->variables[i]);
}

static void pass_builds(struct pass *pass, struct model *model)
{
    model->n_builds = pass_list(pass, &model->builds, model->n_builds, sizeof *model->builds, "builds");
    for (size_t i = 0; i < model->n_builds && pass->code == 0; i++) {
        pass_string(pass, model, &model->builds[i].module, "module of a build");
        pass_64(pass, &model->builds[i].build, "build");
    }
}

static void pass_model(struct pass *pass, struct model *model)
{
    pass_head(pass, model);
    pass_notes(pass, model);
    pass_texts(pass, &model->runs, "runs");
    pass_texts(pass, &model->strings, "strings");
    if (pass->code == 0 && !model->strings.n_strings)
        pass_refuse(pass, "strings", "there is none");
    pass_metrics(pass, model);
    pass_processes(pass, model);
    pass_threads(pass, model);
    pass_events(pass, model);
    pass_tree(pass, model);
    pass_variables(pass, model);
    pass_builds(pass, model);
    pass_tables(pass, model);
}

int locus_db_write(const struct model *model, struct buf *out, struct error *err)
{
    struct pass pass = {.out = out, .err = err};
    buf_append(out, BEGINS, MARK_BYTES);
    pass_put(out, DB_VERSION);
    pass_model(&pass, (struct model *)(uintptr_t)model); /* nothing is changed when writing */
    buf_append(out, ENDS, MARK_BYTES);
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing " DATABASE_FILE) : pass.code;
}

bool locus_db_is(const char *bytes, size_t len_bytes)
{
    return len_bytes >= MARK_BYTES && memcmp(bytes, BEGINS, MARK_BYTES) == 0;
}

/* Says of another version whether it is older or newer, and what to do. */
static void check_version(struct pass *pass)
{
    uint64_t version = pass_take(pass, "version");
    if (pass->code != 0 || version == DB_VERSION)
        return;
    pass->code =
        error_set(pass->err, ERR_UNSUPPORTED, "%.600s: offset %d: version %" PRIu64 ", while this program reads %d: %s",
                  pass->name, MARK_BYTES, version, DB_VERSION,
                  version < DB_VERSION ? "make the database anew, with hpcprof from its measurements"
                                       : "a newer version of Locus reads it");
}

int locus_db_read(const char *bytes, size_t len_bytes, const char *name, enum db_part wanted, struct model *model,
                  struct error *err)
{
    struct pass pass = {
        .data = (const unsigned char *)bytes, .at = MARK_BYTES, .name = name, .wanted = wanted, .err = err};
    if (!locus_db_is(bytes, len_bytes))
        return error_set(err, ERR_FORMAT, "%.600s: offset 0: this is not a database of Locus", name);
    if (len_bytes < 2 * MARK_BYTES || memcmp(bytes + len_bytes - MARK_BYTES, ENDS, MARK_BYTES) != 0)
        return error_set(err, ERR_FORMAT, "%.600s: offset %zu: the end is missing: the file has been cut", name,
                         len_bytes);
    pass.len = len_bytes - MARK_BYTES;
    check_version(&pass);
    pass_model(&pass, model);
    if (pass.code == 0 && pass.at != pass.len)
        pass_refuse(&pass, "end", "the file goes on");
    model_set_capacities(model);
    return pass.code;
}
