/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in its variables and in which lines the samples of a thread lie, by the instruction that accessed them: the
 * call path does not matter for that, so the hits of one instruction are put together. And their reach, whatever the
 * instruction; and where threads met at a line. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "arena/reach.h"
#include "collect/profile.h"

#define COARSE(hash) ((hash) >> (PATTERN_FINE_BITS - PATTERN_HASH_BITS)) /* the bin of a hash */
#define LINE_BINS (1u << PATTERN_HASH_BITS)

/* An access of a variable, found by variable, event, instruction and pattern. */
struct access_entry {
    uint64_t ip, pattern;
    uint32_t variable, event;
    uint32_t access; /* index in the variable's list */
    uint32_t set;    /* index + 1 of its line_set, 0 none */
    uint16_t module;
};

/* The lines of an access: their hashes one by one or, of many, a bit for each bin that these hit. */
struct line_set {
    uint32_t *hashes; /* [n_hashes] of PATTERN_FINE_BITS; in no order, some several times */
    size_t n_hashes, capacity;
    uint64_t *bits; /* [LINE_BINS / 64], NULL: none yet */
    uint64_t first_line, last_line;
};

static struct objects_access *access_of(const struct collected_thread *thread, const struct access_entry *entry)
{
    return &thread->variables[entry->variable].row.accesses[entry->access];
}

static uint64_t hash_of_access(const void *item)
{
    const struct access_entry *entry = item;
    uint64_t hash = entry->ip ^ entry->pattern >> 32;
    return hash ^ (uint64_t)entry->variable << 40 ^ (uint64_t)entry->module << 20 ^ entry->event;
}

static bool is_same_access(const void *a, const void *b)
{
    const struct access_entry *x = a, *y = b;
    return x->variable == y->variable && x->ip == y->ip && x->module == y->module && x->event == y->event &&
           x->pattern == y->pattern;
}

static const struct slots_kind accesses_by_key = {sizeof(struct access_entry), hash_of_access, is_same_access};

/* The variable's access like this one, added when new; NULL when out of memory. Borrowed until the next call. */
static struct access_entry *find_access(struct collected_thread *thread, uint32_t variable,
                                        const struct objects_access *like)
{
    struct collected_variable *owner = &thread->variables[variable];
    struct access_entry entry = {.ip = like->ip,
                                 .pattern = like->pattern,
                                 .variable = variable,
                                 .event = like->event,
                                 .access = (uint32_t)owner->row.n_accesses,
                                 .module = like->module};
    size_t found = slots_find(&thread->access_slots, &accesses_by_key, thread->accesses, &entry);
    if (found != SLOTS_NONE)
        return &thread->accesses[found];
    if (!slots_reserve(&thread->access_slots, &accesses_by_key, thread->accesses, thread->n_accesses) ||
        !vec_reserve(&thread->accesses, &thread->cap_accesses, thread->n_accesses + 1, sizeof entry) ||
        !vec_reserve(&owner->row.accesses, &owner->cap_accesses, owner->row.n_accesses + 1,
                     sizeof *owner->row.accesses))
        return NULL;
    owner->row.accesses[owner->row.n_accesses++] = *like;
    thread->accesses[thread->n_accesses] = entry;
    slots_add(&thread->access_slots, &accesses_by_key, thread->accesses, thread->n_accesses);
    return &thread->accesses[thread->n_accesses++];
}

/* Copies the offsets or places that a hit keeps; returns their number. */
static size_t copy_offsets(const struct view *view, const struct arena_hit *hit, uint64_t offsets[ARENA_OFFSETS_MAX])
{
    size_t n_known = hit->n_offsets < ARENA_OFFSETS_MAX ? (size_t)hit->n_offsets : ARENA_OFFSETS_MAX, n = 0;
    struct arena_offsets head;
    uint32_t capacity = 1;
    if (n_known == 0)
        return 0;
    for (uint32_t ref = hit->offsets, newer = UINT32_MAX; ref && ref < newer; newer = ref, ref = head.next) {
        const char *record = view_record(view, ref, ARENA_OFFSETS, sizeof head);
        if (!record)
            break;
        memcpy(&head, record, sizeof head);
        capacity = arena_offsets_capacity(head.n_values);
        if (capacity == 1 || !view_record(view, ref, ARENA_OFFSETS, sizeof head + head.n_values * sizeof offsets[0]))
            break;
        uint32_t first = capacity - head.n_values;
        for (uint32_t i = 0; i < head.n_values && first + i < n_known; i++)
            memcpy(&offsets[n++], record + sizeof head + i * sizeof offsets[0], sizeof offsets[0]);
    }
    offsets[n++] = hit->first_offset;
    return n;
}

/* Each offset that was kept stands for the same number of samples, up to rounding. */
static bool add_offsets(struct spread *spread, const uint64_t *offsets, size_t n, uint64_t n_samples)
{
    for (size_t i = 0; i < n; i++)
        if (!spread_add(spread, offsets[i], n_samples / n + (i < n_samples % n)))
            return false;
    return true;
}

static bool set_bits(struct line_set *set, const uint64_t *bits)
{
    if (!set->bits && !(set->bits = calloc(LINE_BINS / 64, sizeof *set->bits)))
        return false;
    for (size_t i = 0; bits && i < LINE_BINS / 64; i++)
        set->bits[i] |= bits[i];
    for (size_t i = 0; i < set->n_hashes; i++)
        set->bits[COARSE(set->hashes[i]) / 64] |= UINT64_C(1) << COARSE(set->hashes[i]) % 64;
    set->n_hashes = 0;
    return true;
}

static bool add_hash(struct line_set *set, unsigned hash)
{
    if (set->n_hashes == OBJECTS_HASHES_MAX || set->bits) {
        if (!set_bits(set, NULL))
            return false;
        set->bits[COARSE(hash) / 64] |= UINT64_C(1) << COARSE(hash) % 64;
        return true;
    }
    if (!vec_reserve(&set->hashes, &set->capacity, set->n_hashes + 1, sizeof *set->hashes))
        return false;
    set->hashes[set->n_hashes++] = hash;
    return true;
}

/* Adds the record of the lines of all samples of a hit; false when there is none, or it is incomplete. */
static bool add_record(const struct view *view, const struct arena_hit *hit, struct objects_lines *lines,
                       struct line_set *set)
{
    struct arena_lines head;
    uint64_t bits[ARENA_LINES_WORDS], n_placed = 0;
    const char *record = hit->lines ? view_record(view, hit->lines, ARENA_LINES, sizeof head) : NULL;
    if (!record)
        return false;
    memcpy(&head, record, sizeof head);
    bool has_bits = head.n_words == ARENA_LINES_WORDS;
    if ((head.n_words && !has_bits) || !view_record(view, hit->lines, ARENA_LINES, sizeof head + head.n_words * 8))
        return false;
    if (has_bits)
        memcpy(bits, record + sizeof head, sizeof bits);
    for (unsigned i = 0; i < PATTERN_SLOTS; i++) {
        lines->slots[i] += head.slots[i];
        n_placed += head.slots[i];
    }
    /* the first lines were not known any more when the record was made */
    lines->n_spanned += n_placed > ARENA_OFFSETS_MAX ? n_placed - ARENA_OFFSETS_MAX : 0;
    if (n_placed > ARENA_OFFSETS_MAX && head.n_paced <= n_placed - ARENA_OFFSETS_MAX) {
        lines->n_followed += n_placed - ARENA_OFFSETS_MAX;
        lines->n_paced += head.n_paced;
    }
    set->first_line = head.first_line < set->first_line ? head.first_line : set->first_line;
    set->last_line = head.last_line > set->last_line ? head.last_line : set->last_line;
    return !has_bits || set_bits(set, bits);
}

/* The access's sums of lines, begun when there are none; NULL when out of memory. */
static struct line_set *lines_of(struct collected_thread *thread, struct access_entry *entry,
                                 struct objects_access *access)
{
    if (entry->set)
        return &thread->line_sets[entry->set - 1];
    if (!vec_reserve(&thread->line_sets, &thread->cap_line_sets, thread->n_line_sets + 1, sizeof *thread->line_sets) ||
        !(access->lines = calloc(1, sizeof *access->lines)))
        return NULL;
    thread->line_sets[thread->n_line_sets] = (struct line_set){.first_line = UINT64_MAX};
    entry->set = (uint32_t)++thread->n_line_sets;
    return &thread->line_sets[entry->set - 1];
}

static bool add_lines(struct collected_thread *thread, struct access_entry *entry, const struct arena_hit *hit,
                      const uint64_t *places, size_t n)
{
    struct objects_access *access = access_of(thread, entry);
    bool has_footprint = pattern_has_footprint(access->pattern);
    if (!has_footprint && !pattern_has_contrast(access->pattern))
        return true;
    struct line_set *set = lines_of(thread, entry, access);
    if (!set)
        return false;
    if (add_record(thread->process->view, hit, access->lines, set))
        return true;
    for (size_t i = 0; i < n; i++) {
        access->lines->slots[pattern_place_slot(places[i])]++;
        if (has_footprint && !add_hash(set, pattern_place_fine(places[i])))
            return false;
    }
    return true;
}

/* Replaces places by the offsets in them; returns how many there are. */
static size_t offsets_of_places(uint64_t *places, size_t n)
{
    size_t n_offsets = 0;
    for (size_t i = 0; i < n; i++)
        if (pattern_place_offset(places[i]) != PATTERN_NO_OFFSET)
            places[n_offsets++] = pattern_place_offset(places[i]);
    return n_offsets;
}

void thread_describe_offsets(struct collected_thread *thread, uint32_t variable, const struct arena_hit *hit)
{
    uint64_t offsets[ARENA_OFFSETS_MAX];
    struct objects_access like = {.event = hit->event, .pattern = hit->pattern};
    enum var_kind kind = var_key_kind(hit->var);
    if (thread->path.n == 0 || kind < VAR_HEAP || (kind > VAR_STACK && !hit->pattern))
        return;
    thread_place(thread, thread->path.frames[0].module, thread->path.frames[0].ip, &like.module, &like.ip);
    struct access_entry *entry = find_access(thread, variable, &like);
    if (!entry) {
        thread->tree.failed = true;
        return;
    }
    struct objects_access *access = access_of(thread, entry);
    size_t n = copy_offsets(thread->process->view, hit, offsets);
    uint64_t count = hit->count, n_placed = hit->n_offsets < count ? hit->n_offsets : count;
    access->n_samples += count;
    if (hit->pattern && n) {
        size_t n_kept = n;
        if (!add_lines(thread, entry, hit, offsets, n))
            thread->tree.failed = true;
        n = offsets_of_places(offsets, n);
        n_placed = n == n_kept ? n_placed : n_placed * n / n_kept;
    }
    if (n && !add_offsets(&access->offsets, offsets, n, n_placed))
        thread->tree.failed = true;
}

void thread_describe_touch(struct collected_thread *thread, uint32_t variable, const struct arena_hit *hit,
                           uint32_t node, uint64_t n_faults)
{
    uint64_t offsets[ARENA_OFFSETS_MAX];
    struct collected_variable *owner = &thread->variables[variable];
    struct objects_touch touch = {.event = hit->event,
                                  .node = node,
                                  .n_samples = hit->count,
                                  .n_faults = n_faults,
                                  .first_ns = hit->first_ns,
                                  .low_bytes = UINT64_MAX};
    size_t n = var_key_kind(hit->var) <= VAR_STACK ? copy_offsets(thread->process->view, hit, offsets) : 0;
    for (size_t i = 0; i < n; i++) {
        touch.low_bytes = offsets[i] < touch.low_bytes ? offsets[i] : touch.low_bytes;
        touch.high_bytes = offsets[i] > touch.high_bytes ? offsets[i] : touch.high_bytes;
    }
    if (!vec_reserve(&owner->row.touches, &owner->cap_touches, owner->row.n_touches + 1, sizeof touch)) {
        thread->tree.failed = true;
        return;
    }
    owner->row.touches[owner->row.n_touches++] = touch;
}

/* An access with lines, and what it has in common with those that share its bins. */
struct pooled {
    uint64_t pool;
    uint32_t variable, event;
    uint32_t module, access, set;
    bool has_footprint;
};

static int compare_pooled(const void *a, const void *b)
{
    const struct pooled *x = a, *y = b;
    const uint64_t keys[][2] = {{x->variable, y->variable},           {x->event, y->event}, {x->module, y->module},
                                {x->has_footprint, y->has_footprint}, {x->pool, y->pool},   {x->access, y->access}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool shares_bins(const struct pooled *a, const struct pooled *b)
{
    return a->has_footprint && b->has_footprint && a->variable == b->variable && a->event == b->event &&
           a->module == b->module && a->pool == b->pool;
}

/* Puts the bins of a set into the union; returns how many of them are new there. */
static uint64_t add_bins(struct line_set *set, uint64_t bits[LINE_BINS / 64])
{
    uint64_t n = 0;
    if ((!set->n_hashes && !set->bits) || !set_bits(set, NULL))
        return 0;
    for (size_t i = 0; i < LINE_BINS / 64; i++) {
        n += (uint64_t)__builtin_popcountll(set->bits[i] & ~bits[i]);
        bits[i] |= set->bits[i];
    }
    return n;
}

static int compare_hashes(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Lists the hashes of a set that are not too many. False when out of memory. */
static bool list_hashes(const struct line_set *set, struct objects_lines *lines)
{
    size_t n = set->bits ? 0 : set->n_hashes;
    for (size_t i = 0; set->bits && i < LINE_BINS / 64; i++)
        n += (size_t)__builtin_popcountll(set->bits[i]);
    if (n == 0 || n > OBJECTS_HASHES_MAX)
        return true;
    lines->hashes = malloc(n * sizeof *lines->hashes);
    if (!lines->hashes)
        return false;
    lines->hash_bits = set->bits ? PATTERN_HASH_BITS : PATTERN_FINE_BITS;
    if (!set->bits) {
        memcpy(lines->hashes, set->hashes, n * sizeof *lines->hashes);
        qsort(lines->hashes, n, sizeof *lines->hashes, compare_hashes);
    }
    for (uint32_t hash = 0; set->bits && hash < LINE_BINS; hash++)
        if (set->bits[hash / 64] >> hash % 64 & 1)
            lines->hashes[lines->n_hashes++] = hash;
    for (size_t i = 0; !set->bits && i < n; i++)
        if (i == 0 || lines->hashes[i] != lines->hashes[i - 1])
            lines->hashes[lines->n_hashes++] = lines->hashes[i];
    return true;
}

static void finish_lines(struct collected_thread *thread, const struct pooled *pooled, uint64_t bits[LINE_BINS / 64])
{
    struct line_set *set = &thread->line_sets[pooled->set];
    struct objects_lines *lines = thread->variables[pooled->variable].row.accesses[pooled->access].lines;
    thread->tree.failed = !list_hashes(set, lines) || thread->tree.failed;
    lines->n_bins = add_bins(set, bits);
    if (lines->n_spanned && set->first_line <= set->last_line)
        lines->n_lines = set->last_line - set->first_line + 1;
    free(set->bits);
    free(set->hashes);
    *set = (struct line_set){0};
}

/* Counts the bins of all accesses, those that share them in the order of the variable's list. */
static void finish_sets(struct collected_thread *thread)
{
    uint64_t bits[LINE_BINS / 64];
    struct pooled *list = malloc((thread->n_line_sets + 1) * sizeof *list);
    size_t n = 0;
    if (!list) {
        thread->tree.failed = true;
        return;
    }
    for (size_t i = 0; i < thread->n_accesses; i++) {
        const struct access_entry *entry = &thread->accesses[i];
        if (!entry->set)
            continue;
        const struct objects_access *access = access_of(thread, entry);
        list[n++] = (struct pooled){.pool = pattern_pool(access->pattern),
                                    .variable = entry->variable,
                                    .event = access->event,
                                    .module = access->module,
                                    .access = entry->access,
                                    .set = entry->set - 1,
                                    .has_footprint = pattern_has_footprint(access->pattern)};
    }
    qsort(list, n, sizeof *list, compare_pooled);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !shares_bins(&list[i - 1], &list[i]))
            memset(bits, 0, sizeof bits);
        finish_lines(thread, &list[i], bits);
    }
    free(list);
}

void thread_finish_offsets(struct collected_thread *thread)
{
    finish_sets(thread);
    for (size_t i = 0; i < thread->n_variables; i++)
        for (size_t j = 0; j < thread->variables[i].row.n_accesses; j++)
            spread_reduce(&thread->variables[i].row.accesses[j].offsets);
}

void thread_free_lines(struct collected_thread *thread)
{
    for (size_t i = 0; i < thread->n_line_sets; i++) {
        free(thread->line_sets[i].bits);
        free(thread->line_sets[i].hashes);
    }
    free(thread->line_sets);
}

/* --- reach --- */

static void take_line(struct reach *reach, const struct arena_reach *record, size_t at)
{
    const struct arena_reach_line *place = &record->places[at];
    struct reach_line line = {.line = record->lines[at],
                              .read_at = place->read_at,
                              .written_at = place->written_at,
                              .n_stores = place->n_stores};
    for (size_t i = 0; i < PATTERN_SLOTS; i++)
        line.slots[i] = place->slots[i];
    if (record->n_in_lines[at] && reach_line_total(&line))
        reach_add_line(reach, &line);
}

static void add_reach(struct reach *reach, const struct arena_reach *record)
{
    struct reach_sum sum = {.shift = record->shift,
                            .first = record->first_offset,
                            .last = record->last_offset,
                            .n_steps = record->n_steps,
                            .n_forward = record->n_forward,
                            .n_loads = record->n_loads,
                            .n_stores = record->n_stores};
    _Static_assert(REACH_BINS == ARENA_REACH_BINS && REACH_BLOCKS == ARENA_REACH_BLOCKS &&
                       REACH_LINES == ARENA_REACH_LINES,
                   "files hold what the runtime keeps");
    for (size_t i = 0; i < REACH_BINS; i++)
        sum.bins[i] = record->bins[i];
    for (size_t i = 0; i < REACH_BLOCKS; i++)
        reach_add_block(&sum, record->blocks[i], record->n_in_blocks[i]);
    reach_merge(&reach->sum, &sum);
    for (size_t i = 0; i < REACH_LINES; i++)
        take_line(reach, record, i);
}

static void take_reach(struct collected_thread *thread, const struct arena_reach *record)
{
    const struct declaration *declaration = record->shift < 64 ? thread_declare(thread, record->var, HIT_LOST) : NULL;
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct objects_variable *row = &thread->variables[declaration->variable].row;
    if (!row->reach && !(row->reach = calloc(1, sizeof *row->reach)))
        thread->tree.failed = true;
    else
        add_reach(row->reach, record);
}

void thread_take_reaches(struct collected_thread *thread)
{
    struct record_walk walk = {
        .kind = ARENA_REACHES, .thread = thread->ref, .record_bytes = sizeof(struct arena_reach)};
    const void *record;
    while ((record = view_next(thread->process->view, &walk))) {
        struct arena_reach reach;
        memcpy(&reach, record, sizeof reach);
        take_reach(thread, &reach);
    }
}

/* --- meetings --- */

/* Adds one side of a meeting: a path that ends at leaf, on the variable var. */
static void describe_meeting(struct collected_thread *thread, uint64_t var, uint32_t leaf,
                             const struct objects_meeting *meeting)
{
    bool is_known = leaf && path_of(thread->process->view, leaf, ARENA_NODES, &thread->path);
    const struct declaration *declaration = is_known ? thread_declare(thread, var, HIT_LOST) : NULL;
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    uint32_t variable = declaration->variable;
    uint32_t node = path_insert(thread, &thread->path, declaration->base, HPCRUN_NODE_MEMACCESS);
    struct collected_variable *owner = &thread->variables[variable];
    if (node == TREE_NONE || !vec_reserve(&owner->row.meetings, &owner->cap_meetings, owner->row.n_meetings + 1,
                                          sizeof *owner->row.meetings)) {
        thread->tree.failed = true;
        return;
    }
    owner->row.meetings[owner->row.n_meetings] = *meeting;
    owner->row.meetings[owner->row.n_meetings++].node = node;
}

static void take_meeting(struct collected_thread *thread, uint32_t ref, bool is_watcher)
{
    const struct arena_meeting *record = view_record(thread->process->view, ref, ARENA_MEETINGS, sizeof *record);
    struct objects_meeting meeting = {.key = ref, .is_watcher = is_watcher};
    if (!record || (is_watcher && !record->leaf))
        return;
    meeting.n_same = __atomic_load_n((const uint32_t *)&record->n_same, __ATOMIC_RELAXED);
    meeting.n_beside = __atomic_load_n((const uint32_t *)&record->n_beside, __ATOMIC_RELAXED);
    meeting.n_none = __atomic_load_n((const uint32_t *)&record->n_none, __ATOMIC_RELAXED);
    meeting.address = is_watcher ? record->address : record->other_address;
    meeting.n_bytes = is_watcher ? record->bytes : record->other_bytes;
    meeting.accesses = (is_watcher ? record->accesses : record->other_accesses) & (REACH_READS | REACH_WRITES);
    describe_meeting(thread, is_watcher ? record->var : record->other_var,
                     is_watcher ? record->leaf : record->other_leaf, &meeting);
}

void thread_take_meetings(struct collected_thread *thread)
{
    const struct view *view = thread->process->view;
    struct record_walk walk = {.kind = ARENA_MEETINGS, .record_bytes = sizeof(struct arena_meeting)};
    const struct arena_meeting *record;
    if (!view->header->watches_per_s)
        return;
    while ((record = view_next(view, &walk))) {
        uint32_t other = record->other, owner = view_owner(view, walk.ref, ARENA_MEETINGS, sizeof *record);
        if (owner == thread->ref)
            take_meeting(thread, walk.ref, true);
        if (other == thread->ref)
            take_meeting(thread, walk.ref, false);
    }
}
