/* SPDX-License-Identifier: BSD-3-Clause */
/* Unwind rows of x86-64 code that has no unwind information, or has some that cannot be true (assembly with a frame
 * description that never mentions its pushes): the frame is followed through all paths of the code. What is not
 * reached, or reached with different frames, gets the row that the caller gives. Ordinary code, untrusted input. */
#include "fnbounds/modtab-height.h"
#include "fnbounds/modtab-make.h"

#include <stdlib.h>
#include <string.h>

#define REGION_BYTES_MAX (4u << 20)
#define STEPS_PER_BYTE_MAX 8 /* a fixed point takes fewer; hostile code shall not take more */

/* The code of one region and what is known before each of its instructions. */
struct region {
    uint8_t *code;
    size_t n;
    uint32_t *state_of;       /* [n] index + 1 into states, 0: no instruction starts here as far as is known */
    struct modtab_vec states; /* struct height */
    struct modtab_vec work;   /* uint32_t offsets */
    size_t low, high;         /* control that leaves [low, high) is not followed */
    struct height jump;       /* before the targets of the last indirect jump */
    bool has_jump;
    size_t n_steps_left;
};

static void arrive(struct region *r, int64_t at, const struct height *h)
{
    if (at < (int64_t)r->low || at >= (int64_t)r->high || r->states.failed)
        return;
    uint32_t offset = (uint32_t)at;
    if (!r->state_of[offset]) {
        modtab_vec_push(&r->states, h, sizeof *h);
        r->state_of[offset] = (uint32_t)r->states.n;
    } else if (!height_meet((struct height *)r->states.items + r->state_of[offset] - 1, h)) {
        return;
    }
    modtab_vec_push(&r->work, &offset, sizeof offset);
}

static void run(struct region *r)
{
    for (; r->work.n && r->n_steps_left && !r->work.failed && !r->states.failed; r->n_steps_left--) {
        uint32_t at = ((uint32_t *)r->work.items)[--r->work.n];
        struct height h = ((struct height *)r->states.items)[r->state_of[at] - 1];
        struct height_flow flow = height_step(r->code + at, r->n - at, &h);
        if (!flow.n_bytes)
            continue;
        if (flow.is_table_jump) {
            r->jump = h;
            r->has_jump = true;
        }
        if (flow.has_target)
            arrive(r, at + flow.target, &h);
        if (flow.falls_through)
            arrive(r, (int64_t)at + flow.n_bytes, &h);
    }
}

static size_t length_at(const struct region *r, size_t at)
{
    struct height ignored = height_at_entry();
    uint32_t n_bytes = height_step(r->code + at, r->n - at, &ignored).n_bytes;
    return n_bytes ? n_bytes : 1;
}

/* Where an indirect jump has been met, the blocks of [low, high) that nothing else leads to are its targets. They do
 * not lead out of the function: what is taken for code here may be a table. */
static void run_jump_targets(struct region *r, size_t low, size_t high)
{
    struct height h = r->jump;
    r->low = low;
    r->high = high;
    for (size_t at = low; at < high; at += length_at(r, at))
        if (!r->state_of[at]) {
            arrive(r, (int64_t)at, &h);
            run(r);
        }
    r->low = 0;
    r->high = r->n;
}

static void run_function(struct region *r, size_t low, size_t high)
{
    struct height h = height_at_entry();
    r->has_jump = false;
    arrive(r, (int64_t)low, &h);
    run(r);
    if (r->has_jump)
        run_jump_targets(r, low, high < r->n ? high : r->n);
}

/* Follows the code from each function's start that no other function has led to. */
static void run_from(struct region *r, uint64_t start, const struct modtab_vec *entries)
{
    const struct modtab_range *e = entries->items;
    size_t low = 0, high = entries->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (e[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < entries->n && e[low].start - start < r->n; low++)
        if (!r->state_of[e[low].start - start])
            run_function(r, e[low].start - start, e[low].end - start);
}

static bool is_padding(uint8_t byte)
{
    return byte == 0x90 || byte == 0xcc || byte == 0;
}

/* Stripped assembly: what nothing has led to is taken for another function where it starts at a multiple of 16. (A
 * block that only a jump table leads to would be taken for one too: then the caller does not validate.) */
static void run_from_rest(struct region *r, uint64_t start)
{
    size_t at = 0, end;
    while (at < r->n && !r->states.failed) {
        if (r->state_of[at]) {
            at += length_at(r, at);
            continue;
        }
        end = at + 1;
        while (end < r->n && !r->state_of[end])
            end++;
        while (at < end && ((start + at) % 16 || is_padding(r->code[at])))
            at++;
        if (at < end)
            run_function(r, at, end);
    }
}

/* Turns states into rows; an instruction without state, or without a known frame, gets the filler. */
static void put_rows(const struct region *r, uint64_t pc, struct modtab_row filler, struct modtab_vec *rows)
{
    for (size_t at = 0; at < r->n; at++) {
        const struct height *h = r->states.items;
        struct modtab_row row = r->state_of[at] ? height_row(h + r->state_of[at] - 1) : filler;
        modtab_add_row(rows, row.kind == MODTAB_BAD ? filler : row, pc + at);
        at += r->state_of[at] ? length_at(r, at) - 1 : 0;
    }
}

void modtab_make_code_rows(const struct modtab_elf *m, uint64_t start, uint64_t end, const struct modtab_vec *entries,
                           struct modtab_row filler, struct modtab_vec *rows)
{
    struct region r = {.n = end - start <= REGION_BYTES_MAX ? end - start : 0};
    r.code = malloc(r.n + 1);
    r.state_of = calloc(r.n + 1, sizeof *r.state_of);
    r.high = r.n;
    r.n_steps_left = r.n * STEPS_PER_BYTE_MAX;
    if (r.code && r.state_of) {
        r.n = r.high = modtab_elf_read(m, start, r.code, r.n);
        run_from(&r, start, entries);
        if (filler.kind == MODTAB_GAP)
            run_from_rest(&r, start);
        put_rows(&r, start - m->header.base_vaddr, filler, rows);
    }
    if (r.n < end - start)
        modtab_add_row(rows, filler, start + r.n - m->header.base_vaddr);
    rows->failed |= !r.code || !r.state_of || r.states.failed || r.work.failed;
    free(r.code);
    free(r.state_of);
    free(r.states.items);
    free(r.work.items);
}
