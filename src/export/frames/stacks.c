/* SPDX-License-Identifier: BSD-3-Clause */
/* Call paths of a frame: see stacks.h. Items are found by parent and identity, numbered anew in pre-order, and what is
 * too small goes to the item above it; each step is one pass over nodes or items. */
#include "export/frames/stacks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/input.h"

/* --- nodes --- */

bool stacks_is_place(const struct frame *frame, uint32_t node)
{
    enum frame_kind kind = frame_kind(frame, node);
    return kind == FRAME_LINE || kind == FRAME_CALL || kind == FRAME_INSTRUCTION;
}

uint64_t stacks_address(const struct frame *frame, size_t offset, uint32_t node)
{
    double address = offset != SIZE_MAX ? frame_attribute_number(frame, offset, node) : 0;
    return address > 0 && address < 1e18 ? (uint64_t)address : 0;
}

uint64_t *stacks_lowest(const struct frame *frame, size_t offset)
{
    uint32_t n = (uint32_t)frame_n_nodes(frame);
    uint64_t *lowest = calloc((size_t)n + 1, sizeof *lowest);
    for (uint32_t node = n; lowest && offset != SIZE_MAX && node-- > 0;) {
        size_t n_parents;
        const uint32_t *parents = frame_parents(frame, node, &n_parents);
        enum frame_kind kind = frame_kind(frame, node);
        uint64_t own = frame_kind_is_function(kind) ? 0 : stacks_address(frame, offset, node);
        if (own && (!lowest[node] || own < lowest[node]))
            lowest[node] = own;
        if (kind == FRAME_FUNCTION || !lowest[node] || !n_parents)
            continue;
        uint64_t *above = &lowest[parents[0]];
        *above = !*above || lowest[node] < *above ? lowest[node] : *above;
    }
    return lowest;
}

static uint32_t parent_of(const struct frame *frame, uint32_t node)
{
    size_t n;
    const uint32_t *parents = frame_parents(frame, node, &n);
    return n ? parents[0] : FRAME_NONE;
}

bool *stacks_data_nodes(const struct frame *frame, bool *has_code)
{
    uint32_t n = (uint32_t)frame_n_nodes(frame);
    bool *is_data = calloc((size_t)n + 1, sizeof *is_data);
    *has_code = false;
    for (uint32_t node = 0; is_data && node < n; node++) {
        uint32_t parent = parent_of(frame, node);
        is_data[node] = parent == FRAME_NONE ? frames_is_data(frame, node) : is_data[parent];
        *has_code |= !is_data[node];
    }
    return is_data;
}

bool stacks_shows(const struct frame_job *job, size_t column)
{
    return job->is_named ? column == job->column || column == frame_column_pair(job->frame, job->column)
                         : !frame_column_is_hidden(job->frame, column);
}

void stacks_put_name(struct buf *out, const char *name)
{
    printable_put(out, name && *name ? name : "?");
}

void stacks_put_cut(struct buf *out, const char *name, size_t max,
                    void (*put)(struct buf *out, const char *at, size_t len_bytes))
{
    struct buf plain = {0};
    size_t n = 0;
    stacks_put_name(&plain, name);
    for (const char *at = plain.data ? plain.data : ""; *at; n++) {
        size_t len = printable_utf8(at);
        len = len ? len : 1;
        if (n + 1 >= max && at[len]) {
            buf_printf(out, "\u2026");
            break;
        }
        put(out, at, len);
        at += len;
    }
    out->failed |= plain.failed;
    buf_fini(&plain);
}

/* --- own costs --- */

/* The columns of a node's own costs and, where there are none, of inclusive ones. */
static int find_columns(const struct frame_job *job, size_t *own, size_t *inclusive, struct error *err)
{
    enum frame_sums sums = frame_column_sums(job->frame, job->column);
    *own = sums == FRAME_EXCLUSIVE ? job->column : SIZE_MAX;
    *inclusive = sums == FRAME_INCLUSIVE ? job->column : SIZE_MAX;
    if (sums == FRAME_PLAIN)
        return error_set(err, ERR_UNSUPPORTED, "this form needs costs that add up, and those of column '%.300s' do not",
                         frame_column_name(job->frame, job->column));
    if (sums == FRAME_INCLUSIVE)
        *own = frame_column_pair(job->frame, job->column);
    return 0;
}

static bool are_whole(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]) && rint(values[i]) != values[i])
            return false;
    return true;
}

/* What inclusive values leave to each node; less than a billionth of them is what rounding leaves. */
static void subtract_children(const struct frame *frame, const double *inclusive, double *own)
{
    uint32_t n = (uint32_t)frame_n_nodes(frame);
    for (uint32_t node = 0; node < n; node++)
        own[node] = inclusive[node] > 0 ? inclusive[node] : 0;
    for (uint32_t node = 0; node < n; node++) {
        uint32_t parent = parent_of(frame, node);
        if (parent != FRAME_NONE && inclusive[node] > 0)
            own[parent] -= inclusive[node];
    }
    for (uint32_t node = 0; node < n; node++)
        if (!(own[node] > 1e-9 * inclusive[node]))
            own[node] = 0;
}

/* The own costs of all nodes, malloc'ed. */
static int find_own(const struct frame_job *job, size_t *column, double **own, struct error *err)
{
    size_t inclusive, n = frame_n_nodes(job->frame);
    const double *values;
    int code = find_columns(job, column, &inclusive, err);
    if (code == 0)
        code = frame_values(job->frame, *column != SIZE_MAX ? *column : inclusive, &job->view, &values, err);
    if (code != 0)
        return code;
    *own = malloc((n + 1) * sizeof **own);
    if (!*own)
        return error_memory(err);
    if (*column == SIZE_MAX)
        subtract_children(job->frame, values, *own);
    for (size_t i = 0; *column != SIZE_MAX && i < n; i++)
        (*own)[i] = values[i] > 0 && isfinite(values[i]) ? values[i] : 0;
    return 0;
}

/* --- items --- */

/* An item while its number still is that of its first visit. */
struct found {
    uint32_t parent, node;
    const char *identity;
    double self, total;
};

static uint64_t hash_found(const void *item)
{
    const struct found *found = item;
    return bytes_hash_text(bytes_hash(BYTES_HASH_START, &found->parent, sizeof found->parent), found->identity);
}

static bool is_same_found(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->parent == y->parent && (x->identity == y->identity || strcmp(x->identity, y->identity) == 0);
}

static const struct slots_kind founds_kind = {sizeof(struct found), hash_found, is_same_found};

struct finding {
    const struct frame *frame;
    struct found *items; /* [n], parents before their children */
    size_t n, capacity;
    struct slots slots;
    uint32_t *order; /* [n] items in pre-order */
    uint32_t *into;  /* [n] the item that has their cost, in numbers of pre-order */
};

/* Which item has the cost of a node. False when out of memory. */
static bool find_item(struct finding *finding, uint32_t node, uint32_t *of)
{
    uint32_t parent = parent_of(finding->frame, node);
    uint32_t above = parent == FRAME_NONE ? FRAME_NONE : of[parent];
    if (above != FRAME_NONE && stacks_is_place(finding->frame, node)) {
        of[node] = above;
        return true;
    }
    struct found like = {.parent = above, .node = node, .identity = frame_identity(finding->frame, node)};
    size_t at = slots_put(&finding->slots, &founds_kind, &finding->items, &finding->n, &finding->capacity, &like);
    of[node] = (uint32_t)at;
    return at != SLOTS_NONE;
}

/* Items of all nodes, with their own costs and totals. */
static bool find_items(struct finding *finding, const double *own, uint32_t *of)
{
    uint32_t n = (uint32_t)frame_n_nodes(finding->frame);
    bool has_code;
    bool *is_data = stacks_data_nodes(finding->frame, &has_code), ok = is_data != NULL;
    for (uint32_t node = 0; ok && node < n; node++) {
        of[node] = FRAME_NONE;
        if (is_data[node] && has_code)
            continue;
        ok = find_item(finding, node, of);
        if (ok)
            finding->items[of[node]].self += own[node];
    }
    free(is_data);
    for (size_t i = finding->n; ok && i-- > 0;) {
        struct found *found = &finding->items[i];
        found->total += found->self;
        if (found->parent != FRAME_NONE)
            finding->items[found->parent].total += found->total;
    }
    return ok;
}

/* --- their order --- */

/* Puts the items into pre-order: a stack of lists of siblings takes the place of recursion. */
static bool order_items(struct finding *finding)
{
    size_t n = finding->n, n_open = 0, n_ordered = 0;
    uint32_t *first = malloc((n + 1) * sizeof *first), *next = malloc((n + 1) * sizeof *next);
    uint32_t *open = malloc((n + 1) * sizeof *open);
    finding->order = malloc((n + 1) * sizeof *finding->order);
    bool ok = first && next && open && finding->order;
    for (size_t i = 0; ok && i <= n; i++)
        first[i] = FRAME_NONE;
    for (size_t i = n; ok && i-- > 0;) { /* lists in the order of the first visit; first[n]: the roots */
        size_t parent = finding->items[i].parent == FRAME_NONE ? n : finding->items[i].parent;
        next[i] = first[parent];
        first[parent] = (uint32_t)i;
    }
    if (ok && first[n] != FRAME_NONE)
        open[n_open++] = first[n];
    while (n_open > 0) {
        uint32_t item = open[n_open - 1];
        finding->order[n_ordered++] = item;
        n_open--;
        if (next[item] != FRAME_NONE)
            open[n_open++] = next[item];
        if (first[item] != FRAME_NONE)
            open[n_open++] = first[item];
    }
    free(first);
    free(next);
    free(open);
    return ok;
}

/* Makes the items that are large enough; the others' costs go to the ones above them. */
static bool keep_items(struct finding *finding, double least, struct stacks *stacks)
{
    stacks->items = malloc((finding->n + 1) * sizeof *stacks->items);
    finding->into = malloc((finding->n + 1) * sizeof *finding->into);
    if (!stacks->items || !finding->into)
        return false;
    for (size_t i = 0; i < finding->n; i++) {
        uint32_t old = finding->order[i];
        const struct found *found = &finding->items[old];
        uint32_t parent = found->parent == FRAME_NONE ? FRAME_NONE : finding->into[found->parent];
        bool is_kept = found->total > 0 && (parent == FRAME_NONE || found->total >= least);
        finding->into[old] = is_kept ? stacks->n : parent;
        if (is_kept)
            stacks->items[stacks->n++] = (struct stack){found->node, parent, 0, found->self, found->total};
        else if (parent != FRAME_NONE)
            stacks->items[parent].self += found->self;
    }
    for (uint32_t i = stacks->n; i-- > 0;) {
        struct stack *item = &stacks->items[i];
        item->end = item->end ? item->end : i + 1;
        if (item->parent != FRAME_NONE && stacks->items[item->parent].end < item->end)
            stacks->items[item->parent].end = item->end;
    }
    return true;
}

static bool make_items(const struct frame_job *job, const double *own, struct stacks *stacks)
{
    struct finding finding = {.frame = job->frame};
    size_t n = frame_n_nodes(job->frame);
    stacks->of = malloc((n + 1) * sizeof *stacks->of);
    bool ok = stacks->of && find_items(&finding, own, stacks->of) && order_items(&finding);
    for (size_t i = 0; ok && i < finding.n; i++)
        stacks->total += finding.items[i].parent == FRAME_NONE ? finding.items[i].total : 0;
    ok = ok && keep_items(&finding, job->min_percent / 100 * stacks->total, stacks);
    for (size_t i = 0; ok && i < n; i++)
        stacks->of[i] = stacks->of[i] == FRAME_NONE ? FRAME_NONE : finding.into[stacks->of[i]];
    slots_fini(&finding.slots);
    free(finding.items);
    free(finding.order);
    free(finding.into);
    return ok;
}

int stacks_make(const struct frame_job *job, struct stacks *stacks, struct error *err)
{
    double *own = NULL;
    *stacks = (struct stacks){0};
    if (!frame_is_tree(job->frame))
        return error_set(err, ERR_UNSUPPORTED, "this form needs call paths, and a node of the graph has two callers");
    int code = find_own(job, &stacks->column, &own, err);
    if (code == 0 && !make_items(job, own, stacks))
        code = error_memory(err);
    stacks->is_whole = code == 0 && are_whole(own, frame_n_nodes(job->frame));
    if (code == 0 && !(stacks->total > 0))
        code = error_set(err, ERR_NOT_FOUND, "there is nothing to show: no node has a cost in column '%.300s'",
                         frame_column_name(job->frame, job->column));
    free(own);
    return code;
}

void stacks_fini(struct stacks *stacks)
{
    free(stacks->items);
    free(stacks->of);
    *stacks = (struct stacks){0};
}

int stacks_check_length(const struct stacks *stacks, struct error *err)
{
    static const double frames_max = 1 << 28;
    uint32_t *depths = malloc(((size_t)stacks->n + 1) * sizeof *depths);
    double n_frames = 0;
    if (!depths)
        return error_memory(err);
    for (uint32_t i = 0; i < stacks->n; i++) {
        const struct stack *item = &stacks->items[i];
        depths[i] = item->parent == FRAME_NONE ? 1 : depths[item->parent] + 1;
        n_frames += item->self > 0 ? depths[i] : 0;
    }
    free(depths);
    if (n_frames > frames_max)
        return error_set(err, ERR_RANGE,
                         "this form writes each path in full, here %.0f names in all; leave out small costs, or choose "
                         "speedscope",
                         n_frames);
    return 0;
}

/* --- costs --- */

int stacks_costs(const struct stacks *stacks, struct stack_cost **costs, size_t *n, struct error *err)
{
    *n = 0;
    *costs = malloc(((size_t)stacks->n + 1) * sizeof **costs);
    for (uint32_t i = 0; *costs && i < stacks->n; i++)
        if (stacks->items[i].self > 0)
            (*costs)[(*n)++] = (struct stack_cost){i, stacks->items[i].self};
    return *costs ? 0 : error_memory(err);
}

/* A cost of a profile. */
struct profile_cost {
    uint32_t profile;
    struct stack_cost cost;
};

/* The frame's nodes in the order of their items, those without one left out: [*n], malloc'ed. */
static uint32_t *nodes_by_item(const struct frame *frame, const struct stacks *stacks, size_t *n)
{
    size_t n_nodes = frame_n_nodes(frame);
    uint32_t *nodes = malloc((n_nodes + 1) * sizeof *nodes);
    size_t *starts = calloc((size_t)stacks->n + 2, sizeof *starts);
    for (size_t i = 0; nodes && starts && i < n_nodes; i++)
        if (stacks->of[i] != FRAME_NONE)
            starts[stacks->of[i] + 1]++;
    for (uint32_t i = 0; starts && i < stacks->n; i++)
        starts[i + 1] += starts[i];
    *n = starts ? starts[stacks->n] : 0;
    for (uint32_t i = 0; nodes && starts && i < n_nodes; i++)
        if (stacks->of[i] != FRAME_NONE)
            nodes[starts[stacks->of[i]]++] = i;
    if (!starts) {
        free(nodes);
        nodes = NULL;
    }
    free(starts);
    return nodes;
}

/* The cells of all nodes, by item: *cells [*n], malloc'ed also after a failure. */
static int take_cells(const struct frame_job *job, const struct stacks *stacks, const size_t *place_of,
                      struct profile_cost **cells, size_t *n, struct error *err)
{
    size_t n_nodes, capacity = 0;
    uint32_t *nodes = nodes_by_item(job->frame, stacks, &n_nodes);
    int code = nodes ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < n_nodes; i++) {
        const struct frame_cell *row;
        size_t n_row = 0;
        code = frame_cells(job->frame, stacks->column, nodes[i], &row, &n_row, err);
        if (code == 0 && !vec_reserve(cells, &capacity, *n + n_row, sizeof **cells))
            code = error_memory(err);
        for (size_t k = 0; code == 0 && k < n_row; k++)
            if (row[k].value > 0 && isfinite(row[k].value) && place_of[row[k].profile] != SIZE_MAX)
                (*cells)[(*n)++] =
                    (struct profile_cost){(uint32_t)place_of[row[k].profile], {stacks->of[nodes[i]], row[k].value}};
    }
    free(nodes);
    return code;
}

/* Where each profile of the frame is in the view, SIZE_MAX: not at all. malloc'ed. */
static size_t *places_in_view(const struct frame_job *job, size_t *n)
{
    size_t n_profiles = frame_n_profiles(job->frame);
    size_t *place_of = malloc((n_profiles + 1) * sizeof *place_of);
    *n = job->view.profiles ? job->view.n_profiles : n_profiles;
    for (size_t i = 0; place_of && i < n_profiles; i++)
        place_of[i] = job->view.profiles ? SIZE_MAX : i;
    for (size_t i = 0; place_of && job->view.profiles && i < *n; i++)
        if (job->view.profiles[i] < n_profiles)
            place_of[job->view.profiles[i]] = i;
    return place_of;
}

/* Cells by profile; those of the same item become one. */
static int sort_cells(const struct profile_cost *cells, size_t n, size_t n_profiles, struct stack_cost **costs,
                      size_t **starts, struct error *err)
{
    size_t *ends = calloc(n_profiles + 2, sizeof *ends);
    *costs = malloc((n + 1) * sizeof **costs);
    *starts = calloc(n_profiles + 2, sizeof **starts);
    if (!ends || !*costs || !*starts) {
        free(ends);
        return error_memory(err);
    }
    for (size_t i = 0; i < n; i++)
        ends[cells[i].profile + 1]++;
    for (size_t i = 0; i < n_profiles; i++)
        ends[i + 1] += ends[i];
    memcpy(*starts, ends, (n_profiles + 1) * sizeof *ends);
    for (size_t i = 0; i < n; i++)
        (*costs)[ends[cells[i].profile]++] = cells[i].cost;
    free(ends);
    size_t to = 0;
    for (size_t i = 0; i < n_profiles; i++) {
        size_t from = (*starts)[i], first = to;
        for ((*starts)[i] = to; from < (*starts)[i + 1]; from++)
            if (to > first && (*costs)[to - 1].item == (*costs)[from].item)
                (*costs)[to - 1].value += (*costs)[from].value;
            else
                (*costs)[to++] = (*costs)[from];
    }
    (*starts)[n_profiles] = to;
    return 0;
}

int stacks_costs_by_profile(const struct frame_job *job, const struct stacks *stacks, struct stack_cost **costs,
                            size_t **starts, struct error *err)
{
    size_t n_profiles, n = 0;
    size_t *place_of = places_in_view(job, &n_profiles);
    struct profile_cost *cells = NULL;
    *costs = NULL;
    *starts = NULL;
    int code = place_of ? 0 : error_memory(err);
    if (code == 0 && n_profiles > 1 && job->view.aggregate == FRAME_SUM && stacks->column != SIZE_MAX) {
        code = take_cells(job, stacks, place_of, &cells, &n, err);
        if (code == 0)
            code = sort_cells(cells, n, n_profiles, costs, starts, err);
    }
    free(place_of);
    free(cells);
    if (code != 0) {
        free(*costs);
        free(*starts);
        *costs = NULL;
        *starts = NULL;
    }
    return code;
}

/* --- spans --- */

struct spanning {
    const struct stacks *stacks;
    struct stack_span *spans; /* [n] */
    size_t n;
    size_t *open; /* [n_open] spans that have not ended */
    size_t n_open;
    double at;
};

static void end_spans(struct spanning *spanning, uint32_t item)
{
    while (spanning->n_open > 0) {
        struct stack_span *span = &spanning->spans[spanning->open[spanning->n_open - 1]];
        if (item != FRAME_NONE && item < spanning->stacks->items[span->item].end)
            return;
        span->end = spanning->at;
        spanning->n_open--;
    }
}

/* Begins the spans of an item and of those above it that are not open: from the item up, then turned around. */
static void begin_spans(struct spanning *spanning, uint32_t item)
{
    uint32_t top = spanning->n_open ? spanning->spans[spanning->open[spanning->n_open - 1]].item : FRAME_NONE;
    size_t first = spanning->n;
    for (; item != top; item = spanning->stacks->items[item].parent)
        spanning->spans[spanning->n++] = (struct stack_span){item, spanning->at, spanning->at};
    for (size_t a = first, b = spanning->n; a + 1 < b; a++) {
        struct stack_span kept = spanning->spans[--b];
        spanning->spans[b] = spanning->spans[a];
        spanning->spans[a] = kept;
    }
    for (; first < spanning->n; first++)
        spanning->open[spanning->n_open++] = first;
}

int stacks_spans(const struct stacks *stacks, const struct stack_cost *costs, size_t n, struct stack_span **spans,
                 size_t *n_spans, struct error *err)
{
    struct spanning spanning = {.stacks = stacks,
                                .spans = malloc(((size_t)stacks->n + 1) * sizeof *spanning.spans),
                                .open = malloc(((size_t)stacks->n + 1) * sizeof *spanning.open)};
    bool ok = spanning.spans && spanning.open;
    for (size_t i = 0; ok && i < n; i++) {
        end_spans(&spanning, costs[i].item);
        begin_spans(&spanning, costs[i].item);
        spanning.at += costs[i].value;
    }
    if (ok)
        end_spans(&spanning, FRAME_NONE);
    free(spanning.open);
    *spans = spanning.spans;
    *n_spans = spanning.n;
    if (ok)
        return 0;
    free(spanning.spans);
    *spans = NULL;
    return error_memory(err);
}

/* --- numbers --- */

double stacks_scale(const double *values, size_t n)
{
    double sum = 0, factor = 1;
    for (size_t i = 0; i < n; i++)
        sum += isfinite(values[i]) ? fabs(values[i]) : 0;
    if (are_whole(values, n) || !(sum > 0))
        return 1;
    while (sum * factor < 1e9 && factor < 1e18)
        factor *= 10;
    return factor;
}

const char *stacks_unit(const char *column, bool is_whole)
{
    if (strstr(column, "(usec)"))
        return "microseconds";
    if (strstr(column, "(sec)") || (strcmp(column, "time") == 0 && !is_whole))
        return "seconds";
    return strstr(column, "(byte)") || strncmp(column, "Bytes", 5) == 0 ? "bytes" : "count";
}
