/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in its variables the samples of a thread lie, by the instruction that accessed them: the call path does not
 * matter for that, so the hits of one instruction are put together. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "fmt/collect-internal.h"

/* Finds (variable, event, module, ip) among a thread's accesses. */
struct access_slot {
    uint32_t variable; /* index + 1, 0 empty */
    uint32_t access;   /* index in the variable's list */
};

static const struct objects_access *access_at(const struct thread *thread, const struct access_slot *slot)
{
    return &thread->variables[slot->variable - 1].row.accesses[slot->access];
}

static struct access_slot *find_slot(const struct thread *thread, struct access_slot *slots, size_t n_slots,
                                     uint32_t variable, const struct objects_access *like)
{
    uint64_t key = like->ip ^ (uint64_t)variable << 40 ^ (uint64_t)like->module << 20 ^ like->event;
    size_t slot = (size_t)(key * 0x9e3779b97f4a7c15u >> 24) & (n_slots - 1);
    for (; slots[slot].variable; slot = (slot + 1) & (n_slots - 1)) {
        const struct objects_access *access = access_at(thread, &slots[slot]);
        if (slots[slot].variable == variable + 1 && access->ip == like->ip && access->module == like->module &&
            access->event == like->event)
            break;
    }
    return &slots[slot];
}

static bool grow_slots(struct thread *thread)
{
    if (thread->n_accesses * 2 < thread->n_access_slots)
        return true;
    size_t n_slots = thread->n_access_slots ? thread->n_access_slots * 2 : 256;
    struct access_slot *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < thread->n_access_slots; i++) {
        const struct access_slot *from = &thread->access_slots[i];
        if (from->variable)
            *find_slot(thread, slots, n_slots, from->variable - 1, access_at(thread, from)) = *from;
    }
    free(thread->access_slots);
    thread->access_slots = slots;
    thread->n_access_slots = n_slots;
    return true;
}

/* The variable's access like this one, added when new; NULL when out of memory. */
static struct objects_access *find_access(struct thread *thread, uint32_t variable, const struct objects_access *like)
{
    struct variable *owner = &thread->variables[variable];
    if (!grow_slots(thread))
        return NULL;
    struct access_slot *slot = find_slot(thread, thread->access_slots, thread->n_access_slots, variable, like);
    if (!slot->variable) {
        if (!vec_reserve(&owner->row.accesses, &owner->cap_accesses, owner->row.n_accesses + 1,
                         sizeof *owner->row.accesses))
            return NULL;
        owner->row.accesses[owner->row.n_accesses] = *like;
        *slot = (struct access_slot){variable + 1, (uint32_t)owner->row.n_accesses++};
        thread->n_accesses++;
    }
    return &owner->row.accesses[slot->access];
}

/* Copies the offsets that a hit keeps; returns their number. */
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

/* Every offset that was kept stands for as many samples as the others, to the whole number. */
static bool add_offsets(struct spread *spread, const uint64_t *offsets, size_t n, uint64_t n_samples)
{
    for (size_t i = 0; i < n; i++)
        if (!spread_add(spread, offsets[i], n_samples / n + (i < n_samples % n)))
            return false;
    return true;
}

void thread_describe_offsets(struct thread *thread, uint32_t variable, const struct arena_hit *hit)
{
    uint64_t offsets[ARENA_OFFSETS_MAX];
    struct objects_access like = {.event = hit->event};
    enum var_kind kind = var_key_kind(hit->var);
    if (thread->path.n == 0 || kind < VAR_HEAP || kind > VAR_STACK)
        return;
    thread_place(thread, thread->path.frames[0].module, thread->path.frames[0].ip, &like.module, &like.ip);
    struct objects_access *access = find_access(thread, variable, &like);
    if (!access) {
        thread->tree.failed = true;
        return;
    }
    size_t n = copy_offsets(thread->process->view, hit, offsets);
    uint64_t count = hit->count, n_placed = hit->n_offsets < count ? hit->n_offsets : count;
    access->n_samples += count;
    if (n && !add_offsets(&access->offsets, offsets, n, n_placed))
        thread->tree.failed = true;
}

void thread_finish_offsets(struct thread *thread)
{
    for (size_t i = 0; i < thread->n_variables; i++)
        for (size_t j = 0; j < thread->variables[i].row.n_accesses; j++)
            spread_reduce(&thread->variables[i].row.accesses[j].offsets);
}
