/* SPDX-License-Identifier: BSD-3-Clause */
/* The side file of a profile in memory: spreads, names, freeing, and the writer. The reader is in objects-read.c. */
#include "fmt/objects.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "arena/arena.h"
#include "base/search.h"
#include "base/vec.h"
#include "fmt/file.h"
#include "fmt/json.h"

/* --- spreads --- */

/* Lists of offsets. Lists that are too long are thinned out in the order of a hash of the offsets: in the order of the
 * offsets themselves, every second one could be the same field of a structure. */

static uint64_t hash(uint64_t offset)
{
    offset = (offset ^ offset >> 31) * 0x9e3779b97f4a7c15u;
    return (offset ^ offset >> 29) * 0xbf58476d1ce4e5b9u;
}

bool spread_add(struct spread *spread, uint64_t offset, uint64_t count)
{
    for (size_t i = 0; i < spread->n; i++)
        if (spread->entries[i].offset == offset) {
            spread->entries[i].count += count;
            return true;
        }
    if (spread->n >= 2 * (size_t)SPREAD_MAX)
        spread_reduce(spread);
    if (!vec_reserve(&spread->entries, &spread->capacity, spread->n + 1, sizeof *spread->entries))
        return false;
    spread->entries[spread->n++] = (struct spread_entry){offset, count};
    return true;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = hash(((const struct spread_entry *)a)->offset), y = hash(((const struct spread_entry *)b)->offset);
    return x < y ? -1 : x > y;
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = ((const struct spread_entry *)a)->offset, y = ((const struct spread_entry *)b)->offset;
    return x < y ? -1 : x > y;
}

uint64_t spread_total(const struct spread *spread)
{
    uint64_t total = 0;
    for (size_t i = 0; i < spread->n; i++)
        total += spread->entries[i].count;
    return total;
}

/* Cuts the samples, laid side by side in the list's order, into SPREAD_MAX pieces of equal length; the entry in the
 * middle of each piece stands for it. Entries that are chosen several times become one. */
static void thin_out(struct spread *spread)
{
    uint64_t total = spread_total(spread), end = spread->entries[0].count;
    size_t from = 0, to = 0;
    for (uint64_t piece = 0; piece < SPREAD_MAX; piece++) {
        uint64_t low = total / SPREAD_MAX * piece + total % SPREAD_MAX * piece / SPREAD_MAX;
        uint64_t high = total / SPREAD_MAX * (piece + 1) + total % SPREAD_MAX * (piece + 1) / SPREAD_MAX;
        while (end <= low + (high - low) / 2 && from + 1 < spread->n)
            end += spread->entries[++from].count;
        uint64_t offset = spread->entries[from].offset;
        if (to > 0 && spread->entries[to - 1].offset == offset)
            spread->entries[to - 1].count += high - low;
        else if (high > low)
            spread->entries[to++] = (struct spread_entry){offset, high - low};
    }
    spread->n = to;
}

void spread_reduce(struct spread *spread)
{
    if (spread->n > SPREAD_MAX) {
        qsort(spread->entries, spread->n, sizeof *spread->entries, compare_hashes);
        thin_out(spread);
    }
    if (spread->n)
        qsort(spread->entries, spread->n, sizeof *spread->entries, compare_offsets);
}

void spread_fini(struct spread *spread)
{
    free(spread->entries);
    *spread = (struct spread){0};
}

/* --- reach --- */

#define REACH_KEY "reach"
#define REACH_WORDS 7
#define LINE_WORDS 4

uint64_t reach_total(const struct reach_sum *sum)
{
    uint64_t total = 0;
    for (size_t i = 0; i < REACH_BINS; i++)
        total += sum->bins[i];
    return total;
}

uint64_t reach_line_total(const struct reach_line *line)
{
    uint64_t total = 0;
    for (size_t i = 0; i < PATTERN_SLOTS; i++)
        total += line->slots[i];
    return total;
}

void reach_widen(struct reach_sum *sum, uint32_t shift)
{
    uint64_t bins[REACH_BINS] = {0};
    if (shift <= sum->shift)
        return;
    uint32_t by = shift - sum->shift;
    for (size_t i = 0; i < REACH_BINS; i++)
        bins[by < 6 ? i >> by : 0] += sum->bins[i];
    memcpy(sum->bins, bins, sizeof bins);
    sum->shift = shift;
}

static int compare_reach_blocks(const void *a, const void *b)
{
    const struct reach_block *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

void reach_add_block(struct reach_sum *sum, uint64_t address, uint64_t count)
{
    size_t at = 0;
    if (!count)
        return;
    while (at < REACH_BLOCKS && sum->blocks[at].count && sum->blocks[at].address != address)
        at++;
    if (at == REACH_BLOCKS && sum->blocks[--at].count >= count)
        return;
    if (sum->blocks[at].address == address && sum->blocks[at].count)
        sum->blocks[at].count += count;
    else
        sum->blocks[at] = (struct reach_block){address, count};
    qsort(sum->blocks, REACH_BLOCKS, sizeof sum->blocks[0], compare_reach_blocks);
}

static int compare_reach_lines(const void *a, const void *b)
{
    const struct reach_line *x = a, *y = b;
    uint64_t n = reach_line_total(x), m = reach_line_total(y);
    if (n != m)
        return n > m ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void merge_line(struct reach_line *into, const struct reach_line *from)
{
    into->read_at |= from->read_at;
    into->written_at |= from->written_at;
    into->n_stores += from->n_stores;
    for (size_t i = 0; i < PATTERN_SLOTS; i++)
        into->slots[i] += from->slots[i];
}

void reach_add_line(struct reach *reach, const struct reach_line *line)
{
    size_t at = 0;
    while (at < reach->n_lines && reach->lines[at].line != line->line)
        at++;
    if (at < reach->n_lines)
        merge_line(&reach->lines[at], line);
    else if (reach->n_lines < REACH_LINES)
        reach->lines[reach->n_lines++] = *line;
    else if (reach_line_total(line) > reach_line_total(&reach->lines[REACH_LINES - 1]))
        reach->lines[REACH_LINES - 1] = *line;
    qsort(reach->lines, reach->n_lines, sizeof reach->lines[0], compare_reach_lines);
}

void reach_merge(struct reach_sum *into, const struct reach_sum *from)
{
    struct reach_sum wider = *from;
    if (!reach_total(from))
        return;
    if (!reach_total(into)) {
        *into = *from;
        return;
    }
    reach_widen(into, from->shift);
    reach_widen(&wider, into->shift);
    into->first = from->first < into->first ? from->first : into->first;
    into->last = from->last > into->last ? from->last : into->last;
    into->n_steps += from->n_steps;
    into->n_forward += from->n_forward;
    into->n_loads += from->n_loads;
    into->n_stores += from->n_stores;
    for (size_t i = 0; i < REACH_BINS; i++)
        into->bins[i] += wider.bins[i];
    for (size_t i = 0; i < REACH_BLOCKS; i++)
        reach_add_block(into, from->blocks[i].address, from->blocks[i].count);
}

/* [shift, first, last, steps, forward, loads, stores, [bin, samples ...], [block, samples ...]] */
void reach_put(struct buf *out, const struct reach_sum *sum)
{
    const uint64_t words[REACH_WORDS] = {sum->shift,     sum->first,   sum->last,    sum->n_steps,
                                         sum->n_forward, sum->n_loads, sum->n_stores};
    uint64_t pairs[2 * REACH_BINS];
    size_t n = 0;
    for (size_t i = 0; i < REACH_WORDS; i++) {
        buf_printf(out, i ? ", " : "[");
        json_put_word(out, words[i]);
    }
    for (size_t i = 0; i < REACH_BINS; i++)
        if (sum->bins[i]) {
            pairs[n++] = i;
            pairs[n++] = sum->bins[i];
        }
    buf_printf(out, ", ");
    json_put_words(out, pairs, n);
    n = 0;
    for (size_t i = 0; i < REACH_BLOCKS && sum->blocks[i].count; i++) {
        pairs[n++] = sum->blocks[i].address;
        pairs[n++] = sum->blocks[i].count;
    }
    buf_printf(out, ", ");
    json_put_words(out, pairs, n);
    buf_printf(out, "]");
}

/* [line, read at, written at, stores, slot 0, ... slot 15] */
void reach_line_put(struct buf *out, const struct reach_line *line)
{
    uint64_t words[LINE_WORDS + PATTERN_SLOTS] = {line->line, line->read_at, line->written_at, line->n_stores};
    memcpy(words + LINE_WORDS, line->slots, sizeof line->slots);
    json_put_words(out, words, sizeof words / sizeof words[0]);
}

static size_t take_pairs(struct json_take *take, const json_t *list, size_t most, const char *reason)
{
    size_t n = json_array_size(list);
    if (json_is_array(list) && n % 2 == 0 && n / 2 <= most)
        return n / 2;
    (void)json_take_fail(take, ERR_FORMAT, REACH_KEY, reason);
    return 0;
}

void reach_take(struct json_take *take, const json_t *list, struct reach_sum *sum)
{
    uint64_t shift = json_take_word(take, json_array_get(list, 0), 63, REACH_KEY);
    uint64_t *words[REACH_WORDS] = {&shift,          &sum->first,   &sum->last,    &sum->n_steps,
                                    &sum->n_forward, &sum->n_loads, &sum->n_stores};
    for (size_t i = 1; i < REACH_WORDS; i++)
        *words[i] = json_take_word(take, json_array_get(list, i), UINT64_MAX, REACH_KEY);
    sum->shift = (uint32_t)shift;
    const json_t *bins = json_array_get(list, REACH_WORDS), *blocks = json_array_get(list, REACH_WORDS + 1);
    size_t n_bins = take_pairs(take, bins, REACH_BINS, "a list of bins and samples is expected");
    size_t n_blocks = take_pairs(take, blocks, REACH_BLOCKS, "a list of few blocks and samples is expected");
    for (size_t i = 0; i < n_bins && !take->code; i++) {
        uint64_t bin = json_take_word(take, json_array_get(bins, 2 * i), REACH_BINS - 1, REACH_KEY);
        sum->bins[bin] = json_take_word(take, json_array_get(bins, 2 * i + 1), UINT64_MAX, REACH_KEY);
    }
    for (size_t i = 0; i < n_blocks && !take->code; i++) {
        sum->blocks[i].address = json_take_word(take, json_array_get(blocks, 2 * i), UINT64_MAX, REACH_KEY);
        sum->blocks[i].count = json_take_word(take, json_array_get(blocks, 2 * i + 1), UINT64_MAX, REACH_KEY);
    }
}

void reach_line_take(struct json_take *take, const json_t *list, struct reach_line *line)
{
    uint64_t *words[LINE_WORDS] = {&line->line, &line->read_at, &line->written_at, &line->n_stores};
    if (json_array_size(list) != LINE_WORDS + PATTERN_SLOTS)
        (void)json_take_fail(take, ERR_FORMAT, REACH_KEY, "20 numbers about a line and its slots are expected");
    for (size_t i = 0; i < LINE_WORDS + PATTERN_SLOTS && !take->code; i++)
        *(i < LINE_WORDS ? words[i] : &line->slots[i - LINE_WORDS]) =
            json_take_word(take, json_array_get(list, i), UINT64_MAX, REACH_KEY);
}

/* --- the file --- */

static const char *const kind_names[] = {"none",  "heap",        "mmap", "static", "tls",
                                         "stack", "stack-other", "file", "unknown"};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == VAR_KINDS, "every kind of variable has a name");

/* Name of a kind in files, e.g. "heap"; NULL when there is none. */
static const char *objects_kind_name(uint32_t kind)
{
    return kind < VAR_KINDS ? kind_names[kind] : NULL;
}

int objects_kind_of(const char *name)
{
    for (int i = 0; i < VAR_KINDS; i++)
        if (strcmp(kind_names[i], name) == 0)
            return i;
    return -1;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct objects_variable *x = a, *y = b;
    return (x->node > y->node) - (x->node < y->node);
}

void objects_sort_variables(struct objects_file *file)
{
    if (file->n_variables)
        qsort(file->variables, file->n_variables, sizeof *file->variables, compare_nodes);
}

void objects_put_variable(const struct objects_file *file, uint32_t node, struct buf *out)
{
    static const char *const kinds[] = {"no data",      "block", "mapping",     "static",
                                        "thread-local", "stack", "other stack", "file"};
    size_t i = search_below(file->variables, file->n_variables, SEARCH_KEY(struct objects_variable, node), node);
    bool is_found = i < file->n_variables && file->variables[i].node == node;
    const struct objects_variable *variable = is_found ? &file->variables[i] : NULL;
    uint32_t kind = variable ? variable->kind : 0;
    if (variable && variable->name)
        buf_printf(out, "%s", variable->name);
    else if (kind && kind < sizeof kinds / sizeof *kinds)
        buf_printf(out, "%s %" PRIu32, kinds[kind], node);
    else if (variable && kind)
        buf_printf(out, "unknown");
}

static void free_variable(struct objects_variable *variable)
{
    free(variable->name);
    free(variable->cpus);
    free(variable->stack_offsets);
    free(variable->samples);
    free(variable->latencies);
    for (size_t i = 0; i < variable->n_accesses; i++) {
        spread_fini(&variable->accesses[i].offsets);
        if (variable->accesses[i].lines)
            free(variable->accesses[i].lines->hashes);
        free(variable->accesses[i].lines);
    }
    free(variable->accesses);
    free(variable->homes);
    free(variable->pages);
    free(variable->touches);
    free(variable->meetings);
    free(variable->reach);
}

void objects_fini(struct objects_file *file)
{
    char *const texts[] = {file->host, file->exe,   file->thread_name, file->plan,
                           file->skid, file->state, file->topology};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    for (size_t i = 0; i < file->n_events; i++) {
        free(file->events[i].metric);
        free(file->events[i].name);
    }
    free(file->events);
    free(file->note);
    free(file->sharing_note);
    for (size_t i = 0; i < file->n_variables; i++)
        free_variable(&file->variables[i]);
    free(file->variables);
    for (size_t i = 0; i < file->n_placeholders; i++)
        free(file->placeholders[i].name);
    free(file->placeholders);
    for (size_t i = 0; i < file->n_kernel; i++)
        free(file->kernel[i].name);
    free(file->kernel);
    for (size_t i = 0; i < file->n_jit; i++)
        free(file->jit[i].name);
    free(file->jit);
    for (size_t i = 0; i < file->n_regions; i++)
        free(file->regions[i].name);
    free(file->regions);
    for (size_t i = 0; i < file->n_modules; i++)
        free(file->modules[i].path);
    free(file->modules);
    *file = (struct objects_file){0};
}

/* --- writing --- */

/* Writer of the side file of a profile: see objects.h. One line per event and per variable. */

bool objects_skid_is_json(const char *skid)
{
    json_t *parsed = skid ? json_loads(skid, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool is_json = parsed != NULL;
    json_decref(parsed);
    return is_json;
}

/* The skid figures come as JSON text; what is not valid JSON is kept as a string. */
static void put_skid(struct buf *out, const struct objects_file *file)
{
    buf_printf(out, ",\n\"skid\": ");
    if (file->skid && (file->is_skid_json || objects_skid_is_json(file->skid)))
        buf_append(out, file->skid, strlen(file->skid));
    else
        json_put_text(out, file->skid);
}

static uint32_t version_of(const struct objects_file *file)
{
    return file->version ? file->version : OBJECTS_VERSION;
}

static void put_head(struct buf *out, const struct objects_file *file)
{
    buf_printf(out, "{\"format\": \"%s\", \"version\": %u", OBJECTS_FORMAT, version_of(file));
    json_put_text_at(out, "state", file->state);
    json_put_text_at(out, "host", file->host);
    json_put_text_at(out, "exe", file->exe);
    json_put_word_at(out, "pid", file->pid);
    json_put_word_at(out, "tid", file->tid);
    json_put_word_at(out, "thread_id", file->thread_id);
    json_put_word_at(out, "rank", file->rank);
    if (file->thread_name)
        json_put_text_at(out, "thread_name", file->thread_name);
    buf_printf(out, ",\n\"start_ns\": ");
    json_put_word(out, file->start_ns);
    json_put_word_at(out, "end_ns", file->end_ns);
    json_put_word_at(out, "cpu_time_ns", file->cpu_time_ns);
    buf_printf(out, ",\n\"plan\": ");
    json_put_text(out, file->plan);
    json_put_text_at(out, "topology", file->topology);
    put_skid(out, file);
    buf_printf(out, ",\n\"n_frames\": ");
    json_put_word(out, file->n_frames);
    json_put_key(out, "unwind_stops", 0);
    json_put_words(out, file->unwind_stops, sizeof file->unwind_stops / sizeof file->unwind_stops[0]);
    if (version_of(file) < 3)
        return;
    json_put_word_at(out, "min_bytes", file->min_bytes);
    json_put_word_at(out, "sample_bytes", file->sample_bytes);
    json_put_word_at(out, "mark_ns", file->mark_ns);
    if (version_of(file) < 5)
        return;
    json_put_word_at(out, "user_ns", file->user_ns);
    json_put_word_at(out, "system_ns", file->system_ns);
    if (file->delay_ns)
        json_put_word_at(out, "delay_ns", file->delay_ns);
    if (file->n_page_faults)
        json_put_word_at(out, "page_faults", file->n_page_faults);
    if (file->unmeasured_ns)
        json_put_word_at(out, "unmeasured_ns", file->unmeasured_ns);
    json_put_text_at(out, "note", file->note);
    if (file->sharing_note)
        json_put_text_at(out, "sharing_note", file->sharing_note);
    if (file->birth)
        json_put_word_at(out, "birth", file->birth);
}

static void put_placeholders(struct buf *out, const struct objects_file *file)
{
    buf_printf(out, ",\n\"placeholders\": [");
    for (size_t i = 0; i < file->n_placeholders; i++) {
        buf_printf(out, i ? ", {\"ip\": " : "{\"ip\": ");
        json_put_word(out, file->placeholders[i].ip);
        json_put_text_at(out, "name", file->placeholders[i].name);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_functions(struct buf *out, const char *key, const struct objects_function *functions, size_t n)
{
    if (!n)
        return;
    buf_printf(out, ",\n\"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, i ? ",\n{\"start\": " : "\n{\"start\": ");
        json_put_word(out, functions[i].start);
        json_put_word_at(out, "end", functions[i].end);
        json_put_text_at(out, "name", functions[i].name);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

/* Fates by name, those that occurred. */
static void put_fates(struct buf *out, const uint64_t fates[FATE_MAX])
{
    int n_put = 0;
    json_put_key(out, "fates", 0);
    buf_append(out, "{", 1);
    for (int i = 0; i < FATE_MAX; i++)
        if (fates[i]) {
            json_put_key(out, fate_row(i)->name, n_put++ == 0);
            json_put_word(out, fates[i]);
        }
    buf_append(out, "}", 1);
}

static void put_counters(struct buf *out, const struct objects_event *event)
{
    json_put_word_at(out, "enabled_ns", event->enabled_ns);
    json_put_word_at(out, "running_ns", event->running_ns);
    json_put_word_at(out, "n_throttles", event->n_throttles);
    json_put_word_at(out, "n_no_metric", event->n_no_metric);
    json_put_word_at(out, "n_truncated", event->n_truncated);
    json_put_word_at(out, "n_collisions", event->n_collisions);
    json_put_word_at(out, "has_data_source", event->has_data_source);
}

static void put_events(struct buf *out, const struct objects_file *file)
{
    buf_printf(out, ",\n\"events\": [");
    for (size_t i = 0; i < file->n_events; i++) {
        const struct objects_event *event = &file->events[i];
        buf_printf(out, i ? ",\n{\"metric\": " : "\n{\"metric\": ");
        json_put_text(out, event->metric);
        json_put_text_at(out, "name", event->name);
        json_put_double_at(out, "scale", event->scale);
        json_put_word_at(out, "taken", event->taken);
        json_put_word_at(out, "overflows", event->overflows);
        put_fates(out, event->fates);
        if (version_of(file) > 1)
            put_counters(out, event);
        if (version_of(file) > 4) {
            json_put_word_at(out, "has_address", event->has_address);
            json_put_word_at(out, "is_user_only", event->is_user_only);
        }
        if (event->n_spared) {
            json_put_word_at(out, "n_spared", event->n_spared);
            json_put_word_at(out, "sample_cost_ns", event->sample_cost_ns);
        }
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_cpus(struct buf *out, const struct objects_variable *variable)
{
    json_put_key(out, "cpus", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_cpus; i++) {
        const struct objects_count *count = &variable->cpus[i];
        uint64_t words[3] = {count->cpu, count->metric, count->count};
        if (i)
            buf_append(out, ", ", 2);
        json_put_words(out, words, 3);
    }
    buf_append(out, "]", 1);
}

/* Offsets are signed; they and their counts stay far below 2^53. */
static void put_stack_offsets(struct buf *out, const struct objects_variable *variable)
{
    json_put_key(out, "stack_offsets", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_stack_offsets; i++)
        buf_printf(out, "%s[%lld, %lld]", i ? ", " : "", (long long)variable->stack_offsets[2 * i],
                   (long long)variable->stack_offsets[2 * i + 1]);
    buf_append(out, "]", 1);
}

static void put_samples(struct buf *out, const struct objects_variable *variable)
{
    json_put_key(out, "samples", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_samples; i++) {
        uint64_t words[2] = {variable->samples[i].metric, variable->samples[i].count};
        if (i)
            buf_append(out, ", ", 2);
        json_put_words(out, words, 2);
    }
    buf_append(out, "]", 1);
}

static void put_bins(struct buf *out, const uint64_t bins[OBJECTS_LATENCY_BINS])
{
    int n_put = 0;
    buf_append(out, "[", 1);
    for (uint64_t i = 0; i < OBJECTS_LATENCY_BINS; i++) {
        uint64_t words[2] = {i, bins[i]};
        if (!bins[i])
            continue;
        if (n_put++)
            buf_append(out, ", ", 2);
        json_put_words(out, words, 2);
    }
    buf_append(out, "]", 1);
}

static void put_latencies(struct buf *out, const struct objects_variable *variable)
{
    json_put_key(out, "latencies", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_latencies; i++) {
        const struct objects_latency *latency = &variable->latencies[i];
        const uint64_t words[] = {latency->event, latency->n_samples, latency->cycles, latency->n_remote,
                                  latency->remote_cycles};
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++) {
            buf_printf(out, "%s", j ? ", " : i ? ", [" : "[");
            json_put_word(out, words[j]);
        }
        buf_append(out, ", ", 2);
        put_bins(out, latency->bins);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

/* , pattern, [bins, lines, samples spanned, samples in slot 0, ..., followed, paced, [bits, hash, ...]]; nothing when
 * the pattern is not known, and no hashes when there are none */
static void put_lines(struct buf *out, const struct objects_access *access)
{
    const struct objects_lines *lines = access->lines;
    if (!access->pattern)
        return;
    buf_append(out, ", ", 2);
    json_put_word(out, access->pattern);
    if (!lines)
        return;
    const uint64_t words[] = {lines->n_bins, lines->n_lines, lines->n_spanned};
    for (size_t i = 0; i < 3 + PATTERN_SLOTS; i++) {
        buf_append(out, i ? ", " : ", [", i ? 2 : 3);
        json_put_word(out, i < 3 ? words[i] : lines->slots[i - 3]);
    }
    buf_append(out, ", ", 2);
    json_put_word(out, lines->n_followed);
    buf_append(out, ", ", 2);
    json_put_word(out, lines->n_paced);
    if (lines->n_hashes)
        buf_printf(out, ", [%u", lines->hash_bits);
    for (size_t i = 0; i < lines->n_hashes; i++)
        buf_printf(out, ", %u", lines->hashes[i] - (i ? lines->hashes[i - 1] : 0));
    buf_append(out, "]]", lines->n_hashes ? 2 : 1);
}

/* [event, module, ip, samples, [offset, samples, offset, samples ...]] and, from version 6 on, lines */
static void put_accesses(struct buf *out, const struct objects_variable *variable, uint32_t version)
{
    json_put_key(out, "accesses", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_accesses; i++) {
        const struct objects_access *access = &variable->accesses[i];
        const uint64_t words[] = {access->event, access->module, access->ip, access->n_samples};
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++) {
            buf_printf(out, "%s", j ? ", " : i ? ", [" : "[");
            json_put_word(out, words[j]);
        }
        buf_append(out, ", [", 3);
        for (size_t j = 0; j < access->offsets.n; j++) {
            buf_printf(out, "%s", j ? ", " : "");
            json_put_word(out, access->offsets.entries[j].offset);
            buf_append(out, ", ", 2);
            json_put_word(out, access->offsets.entries[j].count);
        }
        buf_append(out, "]", 1);
        if (version > 5)
            put_lines(out, access);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
}

/* [cpu, metric, home, samples]; home is -1 for pages without one */
static void put_homes(struct buf *out, const struct objects_variable *variable)
{
    json_put_key(out, "homes", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_homes; i++) {
        const struct objects_home *home = &variable->homes[i];
        buf_printf(out, "%s[%u, %u, %lld, ", i ? ", " : "", home->cpu, home->metric,
                   home->home == OBJECTS_NO_HOME ? -1 : (long long)home->home);
        json_put_word(out, home->count);
        buf_append(out, "]", 1);
    }
    buf_append(out, "]", 1);
    json_put_word_at(out, "n_moved", variable->n_moved);
}

/* [pages, asked for, without a page, bytes in huge pages or -1, node, pages, node, pages ...] */
static void put_pages(struct buf *out, const struct objects_pages *pages)
{
    const uint64_t words[] = {pages->n_pages, pages->n_asked, pages->n_none};
    json_put_key(out, "pages", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        json_put_word(out, words[i]);
        buf_append(out, ", ", 2);
    }
    if (pages->huge_bytes == UINT64_MAX)
        buf_append(out, "-1", 2);
    else
        json_put_word(out, pages->huge_bytes);
    for (unsigned node = 0; node < OBJECTS_NODES; node++) {
        if (!pages->n_on[node])
            continue;
        buf_printf(out, ", %u, ", node);
        json_put_word(out, pages->n_on[node]);
    }
    buf_append(out, "]", 1);
}

static void put_meetings(struct buf *out, const struct objects_variable *variable)
{
    if (!variable->n_meetings)
        return;
    json_put_key(out, "meetings", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_meetings; i++) {
        const struct objects_meeting *meeting = &variable->meetings[i];
        const uint64_t words[] = {meeting->key,     meeting->node,     meeting->is_watcher,
                                  meeting->address, meeting->n_bytes,  meeting->accesses,
                                  meeting->n_same,  meeting->n_beside, meeting->n_none};
        if (i)
            buf_append(out, ", ", 2);
        json_put_words(out, words, sizeof words / sizeof *words);
    }
    buf_append(out, "]", 1);
}

static void put_touches(struct buf *out, const struct objects_variable *variable)
{
    if (!variable->n_touches)
        return;
    json_put_key(out, "touches", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < variable->n_touches; i++) {
        const struct objects_touch *touch = &variable->touches[i];
        const uint64_t words[] = {touch->event,    touch->node,      touch->n_samples, touch->n_faults,
                                  touch->first_ns, touch->low_bytes, touch->high_bytes};
        if (i)
            buf_append(out, ", ", 2);
        json_put_words(out, words, touch->low_bytes <= touch->high_bytes ? 7 : 5);
    }
    buf_append(out, "]", 1);
}

static void put_reach(struct buf *out, const struct objects_variable *variable)
{
    const struct reach *reach = variable->reach;
    if (!reach)
        return;
    json_put_key(out, "reach", 0);
    reach_put(out, &reach->sum);
    json_put_key(out, "lines", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < reach->n_lines; i++) {
        buf_printf(out, "%s", i ? ", " : "");
        reach_line_put(out, &reach->lines[i]);
    }
    buf_append(out, "]", 1);
}

static void put_variable(struct buf *out, const struct objects_variable *variable, uint32_t version)
{
    json_put_word(out, variable->node);
    json_put_key(out, "kind", 0);
    if (objects_kind_name(variable->kind))
        json_put_text(out, objects_kind_name(variable->kind));
    else
        json_put_word(out, variable->kind);
    json_put_text_at(out, "name", variable->name);
    json_put_word_at(out, "n_blocks", variable->n_blocks);
    json_put_word_at(out, "bytes", variable->bytes);
    json_put_word_at(out, "n_blocks_freed", variable->n_blocks_freed);
    json_put_word_at(out, "bytes_freed", variable->bytes_freed);
    json_put_word_at(out, "max_block_bytes", variable->max_block_bytes);
    if (variable->max_small_bytes) {
        json_put_word_at(out, "min_small_bytes", variable->min_small_bytes);
        json_put_word_at(out, "max_small_bytes", variable->max_small_bytes);
    }
    json_put_key(out, "classes", 0);
    json_put_words(out, variable->classes, sizeof variable->classes / sizeof variable->classes[0]);
    json_put_word_at(out, "n_inexact", variable->n_inexact);
    put_cpus(out, variable);
    put_stack_offsets(out, variable);
    if (version > 1) {
        put_samples(out, variable);
        put_latencies(out, variable);
    }
    if (version > 2) {
        json_put_word_at(out, "n_blocks_marked", variable->n_blocks_marked);
        json_put_word_at(out, "bytes_marked", variable->bytes_marked);
    }
    if (version > 3)
        put_accesses(out, variable, version);
    if (variable->n_homes)
        put_homes(out, variable);
    if (variable->pages)
        put_pages(out, variable->pages);
    put_touches(out, variable);
    put_meetings(out, variable);
    put_reach(out, variable);
}

static void put_modules(struct buf *out, const struct objects_file *file)
{
    if (!file->n_modules)
        return;
    buf_printf(out, ",\n\"modules\": [");
    for (size_t i = 0; i < file->n_modules; i++) {
        buf_printf(out, i ? ",\n{\"path\": " : "\n{\"path\": ");
        json_put_text(out, file->modules[i].path);
        json_put_word_at(out, "id", file->modules[i].id);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_variables(struct buf *out, const struct objects_file *file)
{
    buf_printf(out, ",\n\"variables\": [");
    for (size_t i = 0; i < file->n_variables; i++) {
        buf_printf(out, i ? ",\n{\"node\": " : "\n{\"node\": ");
        put_variable(out, &file->variables[i], version_of(file));
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

int objects_write_memory(const struct objects_file *file, struct buf *out, struct error *err)
{
    put_head(out, file);
    put_placeholders(out, file);
    put_functions(out, "kernel_functions", file->kernel, file->n_kernel);
    put_functions(out, "jit_functions", file->jit, file->n_jit);
    put_functions(out, "regions", file->regions, file->n_regions);
    put_modules(out, file);
    put_events(out, file);
    put_variables(out, file);
    buf_printf(out, "}\n");
    return out->failed ? error_set(err, ERR_MEMORY, "out of memory while writing a side file") : 0;
}

int objects_write(const struct objects_file *file, const char *path, struct error *err)
{
    struct buf out = {0};
    int code = objects_write_memory(file, &out, err);
    if (!code)
        code = file_replace(path, out.data, out.len_bytes, err);
    buf_fini(&out);
    return code;
}
