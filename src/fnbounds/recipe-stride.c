/* SPDX-License-Identifier: BSD-3-Clause */
/* Strides of addresses in natural loops: see recipe-make.h. An address is a linear form of registers as they were
 * when the loop began, and of the number of turns. Ordinary code. */
#include "fnbounds/recipe-make.h"

#include <stdlib.h>
#include <string.h>

#include "base/access-pattern.h"
#include "base/search.h"
#include "base/vec.h"

#define WORK_MAX 4000000 /* steps a function, over all loops */
#define DEPTH_MAX 8      /* registers made from registers */
#define TERMS_MAX 3
#define STRAIGHT_MAX 32
#define GROUPS_MAX 512 /* of one loop */
#define PLACES_MAX 32  /* of one group */
#define NO_LOOP UINT32_MAX
#define NOT_ASKED (UINT32_MAX - 1)
#define ROTATED_MAX 250 /* instructions of a loop whose end lies in front of its head */
#define FRONTS_MAX 4
#define COPIES_MAX 2
#define TRIES_MAX 8 /* loads that may find the next element, for each other part of it */

/* Sum of scales[k] * register regs[k] as it was before the loop, constant, and stride * turns. */
struct form {
    bool is_known, is_derived;
    bool is_varied; /* and a step for each turn that only the running program knows: */
    uint8_t step_reg;
    int64_t step_scale; /* times that register; 0: not known */
    uint8_t n_terms;
    uint8_t regs[TERMS_MAX];
    int64_t scales[TERMS_MAX];
    int64_t constant, stride;
};

/* A natural loop: all blocks from which the jumps back to its head are reached without passing the head. */
struct loop {
    uint32_t head;    /* number of a block, as in blocks */
    uint32_t *blocks; /* [n_blocks] the first is the head; in order only after sort_blocks() */
    size_t n_blocks, n_insns;
    bool is_closed; /* the head leads to one of them */
    /* by prepare(): */
    uint32_t *body;       /* [n_insns] the instructions, in order */
    uint8_t n_writes[16]; /* of each general register in the body, at most 2 */
    uint32_t writer[16];  /* one of them */
    uint16_t n_steps[16]; /* accesses that move on by the register's value */
};

/* Instructions that walk the same data. */
struct group {
    struct form form; /* of the first one */
    uint32_t pc;
    uint32_t n_places;
    int64_t places[PLACES_MAX]; /* [n_places] constants of their forms, all different, in the order of the code */
};

/* What is known of a head. */
enum head_state { HEAD_UNKNOWN = 0, HEAD_NONE, HEAD_LOOP };

#define ALIGNED_BYTES 16 /* of what allocators return */
#define AHEAD 64         /* instructions of a loop whose patterns are found along with one's */

/* The loops of a function, found when they are asked for. */
struct strides {
    const struct flow *flow;
    struct flow *ordered;      /* the same, for begin(); NULL once that has been tried */
    uint32_t *words;           /* the memory of the arrays of words */
    uint32_t *owner;           /* [n_blocks] head of the innermost loop found so far, NO_LOOP */
    uint32_t *owner_size;      /* [n_blocks] its instructions */
    uint32_t *seen;            /* [n_blocks] number of the walk that was here last */
    uint32_t *latest;          /* [n_blocks] last of the blocks with a jump to a block or to one in front of it */
    uint32_t *around;          /* [n_blocks] head of the innermost loop, NO_LOOP, NOT_ASKED */
    uint32_t *inner;           /* [n_blocks] scratch: blocks at which inner loops may begin */
    uint64_t *patterns;        /* [n_insns] 0 where is_known does not hold */
    uint8_t *states;           /* [n_blocks] enum head_state */
    bool *is_known;            /* [n_insns] its pattern has been found; NULL before begin() */
    struct stride_step *steps; /* [n_insns] where is_known holds */
    size_t words_capacity, patterns_capacity, states_capacity, steps_capacity;
    uint32_t n_walks;
    uint64_t n_steps;
    struct loop loop;
    uint32_t prepared;    /* head of the loop whose body, writes and groups are there, NO_LOOP */
    bool is_settled;      /* no state is HEAD_UNKNOWN */
    struct group *groups; /* [n_groups] of the loop */
    size_t n_groups;
};

/* --- loops --- */

static uint32_t start_of(const struct strides *work, uint32_t block)
{
    return work->flow->blocks[block].start;
}

static void visit(struct strides *work, uint32_t block)
{
    struct loop *loop = &work->loop;
    loop->is_closed = loop->is_closed || block == loop->head;
    if (work->seen[block] == work->n_walks)
        return;
    work->seen[block] = work->n_walks;
    loop->blocks[loop->n_blocks++] = block;
    loop->n_insns += start_of(work, block + 1) - start_of(work, block);
}

/* Appends to the list what leads to its blocks from k on, up to the head; false when that comes to the function's
 * start, or to more than limit instructions. */
static bool walk_back(struct strides *work, size_t k, size_t limit)
{
    const struct flow *flow = work->flow;
    for (; k < work->loop.n_blocks; k++) {
        uint32_t block = work->loop.blocks[k], start = start_of(work, block);
        if (block == 0 || work->n_steps++ > WORK_MAX || work->loop.n_insns > limit)
            return false;
        if (flow_falls_through(flow, start - 1))
            visit(work, block - 1);
        for (uint32_t s = flow->first_source[start]; s < flow->first_source[start + 1]; s++)
            visit(work, flow->block_of[flow->sources[s]]);
    }
    return true;
}

/* Begins an empty list for walks that stop at the head. */
static void begin_walk(struct strides *work, uint32_t head)
{
    work->n_walks++;
    work->prepared = NO_LOOP;
    work->loop.head = head;
    work->loop.n_blocks = work->loop.n_insns = 0;
    visit(work, head);
    work->loop.is_closed = false;
}

/* Whether the head comes before a block in front of it on every path: then the loop was laid out with its end first, as
 * clang does, and continues from there to the head. */
static bool is_end_in_front(struct strides *work, uint32_t head, uint32_t from)
{
    if (work->latest[from] < head || !flow_is_always_before(work->flow, head, from))
        return false;
    begin_walk(work, head);
    size_t limit = work->loop.n_insns + ROTATED_MAX;
    visit(work, from);
    return walk_back(work, 1, limit);
}

/* Whether a jump goes round a loop, if the head comes before it on every path. Compilers put unlikely code behind all
 * else, from where it jumps back without being a loop. */
static bool is_jump_back(const struct flow *flow, uint32_t head, uint32_t jump)
{
    return flow->block_of[jump] >= head && flow->insns[jump].kind != INSN_JMP_INDIRECT;
}

/* Finds the loop with this head: walks back from the jumps to it. False when nothing jumps back, when the loop has
 * another entry, or when the head does not lead to the jumps: then nothing else is known to lead there either. */
static bool find_loop(struct strides *work, uint32_t head)
{
    const struct flow *flow = work->flow;
    uint32_t start = start_of(work, head), fronts[FRONTS_MAX];
    const uint32_t *jumps = flow->sources + flow->first_source[start];
    size_t n_jumps = flow->first_source[start + 1] - flow->first_source[start], n_fronts = 0;
    if (head > 0 && flow_falls_through(flow, start - 1) && is_end_in_front(work, head, head - 1))
        fronts[n_fronts++] = head - 1;
    for (size_t k = 0; k < n_jumps && n_fronts < FRONTS_MAX; k++)
        if (flow->block_of[jumps[k]] < head && is_end_in_front(work, head, flow->block_of[jumps[k]]))
            fronts[n_fronts++] = flow->block_of[jumps[k]];
    begin_walk(work, head);
    for (size_t k = 0; k < n_fronts; k++)
        visit(work, fronts[k]);
    for (size_t k = 0; k < n_jumps; k++)
        if (is_jump_back(flow, head, jumps[k]) && flow_is_always_before(flow, head, flow->block_of[jumps[k]]))
            visit(work, flow->block_of[jumps[k]]);
    bool is_loop = work->loop.n_blocks > 1 || work->loop.is_closed;
    return is_loop && walk_back(work, 1, SIZE_MAX) && work->loop.is_closed;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Most loops have little else between their first and their last block. */
static void sort_blocks(struct strides *work)
{
    struct loop *loop = &work->loop;
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t k = 0; k < loop->n_blocks; k++) {
        first = loop->blocks[k] < first ? loop->blocks[k] : first;
        last = loop->blocks[k] > last ? loop->blocks[k] : last;
    }
    if (last - first > 8 * loop->n_blocks) {
        qsort(loop->blocks, loop->n_blocks, sizeof *loop->blocks, compare_numbers);
        return;
    }
    size_t n = 0;
    for (uint32_t block = first; block <= last; block++)
        if (work->seen[block] == work->n_walks)
            loop->blocks[n++] = block;
}

static void claim_blocks(struct strides *work)
{
    const struct loop *loop = &work->loop;
    for (size_t k = 0; k < loop->n_blocks; k++) {
        uint32_t block = loop->blocks[k];
        if (work->owner[block] != NO_LOOP && work->owner_size[block] <= loop->n_insns)
            continue;
        work->owner[block] = loop->head;
        work->owner_size[block] = (uint32_t)loop->n_insns;
    }
}

static void list_body(struct strides *work)
{
    struct loop *loop = &work->loop;
    size_t n = 0;
    for (size_t k = 0; k < loop->n_blocks; k++)
        for (uint32_t i = start_of(work, loop->blocks[k]); i < start_of(work, loop->blocks[k] + 1); i++)
            loop->body[n++] = i;
}

/* An index that is extended in place stays the same number. */
static uint64_t written_by(const struct insn *insn)
{
    uint64_t writes = insn->writes & INSN_GPRS;
    for (unsigned e = 0; e < insn->n_effects; e++)
        if (insn->effects[e].kind == EFFECT_EXTEND && insn->effects[e].reg == insn->effects[e].other)
            writes &= ~INSN_BIT(insn->effects[e].reg);
    return writes;
}

static void count_writes(struct strides *work)
{
    struct loop *loop = &work->loop;
    memset(loop->n_writes, 0, sizeof loop->n_writes);
    for (size_t k = 0; k < loop->n_insns; k++) {
        uint64_t writes = written_by(flow_insn(work->flow, loop->body[k]));
        for (unsigned r = 0; writes; r++, writes >>= 1) {
            if (!(writes & 1))
                continue;
            loop->n_writes[r] = loop->n_writes[r] ? 2 : 1;
            loop->writer[r] = loop->body[k];
        }
    }
}

/* --- forms --- */

static struct form form_of_reg(const struct strides *work, uint8_t reg, uint32_t at, uint32_t visiting, unsigned depth);

static const struct search_key search_number = {sizeof(uint32_t), 0, sizeof(uint32_t)};

/* Of a field of bits no walk is known. */
static const struct insn_effect *effect_on(const struct insn *insn, uint8_t reg)
{
    for (unsigned e = 0; e < insn->n_effects; e++)
        if (insn->effects[e].kind != EFFECT_STORE && insn->effects[e].reg == reg)
            return insn->effects[e].kind == EFFECT_FIELD ? NULL : &insn->effects[e];
    return NULL;
}

static bool is_moving(const struct form *form)
{
    return form->stride || form->is_varied;
}

/* Steps by different registers are not known in all. */
static void add_step(struct form *to, const struct form *from, int64_t scale)
{
    int64_t both = 0;
    if (!from->is_varied)
        return;
    if (!to->is_varied || (to->step_reg == from->step_reg && to->step_scale && from->step_scale))
        both = to->step_scale + from->step_scale * scale;
    to->is_varied = true;
    to->step_reg = from->step_reg;
    to->step_scale = both >= INT8_MIN && both <= INT8_MAX ? both : 0;
}

static void add_form(struct form *to, const struct form *from, int64_t scale)
{
    to->is_known = to->is_known && from->is_known;
    to->is_derived = to->is_derived || from->is_derived;
    add_step(to, from, scale);
    to->constant += from->constant * scale;
    to->stride += from->stride * scale;
    for (unsigned k = 0; k < from->n_terms; k++) {
        unsigned at = 0;
        while (at < to->n_terms && to->regs[at] != from->regs[k])
            at++;
        if (at == TERMS_MAX) {
            to->is_known = false;
            return;
        }
        if (at == to->n_terms) {
            to->regs[to->n_terms] = from->regs[k];
            to->scales[to->n_terms++] = 0;
        }
        to->scales[at] += from->scales[k] * scale;
    }
}

/* The form of an operand's address; not known with lanes of vectors. */
static struct form form_of_operand(const struct strides *work, const struct insn *insn,
                                   const struct recipe_operand *operand, uint32_t visiting, unsigned depth)
{
    struct form form = {.is_known = true, .constant = operand->disp};
    uint32_t at = (uint32_t)(insn - work->flow->insns);
    if (operand->base == RECIPE_RIP) {
        form.constant += insn->pc;
    } else if (operand->base < 16) {
        struct form base = form_of_reg(work, operand->base, at, visiting, depth);
        add_form(&form, &base, 1);
    }
    if (operand->scale && operand->index < 16) {
        struct form index = form_of_reg(work, operand->index, at, visiting, depth);
        add_form(&form, &index, operand->scale);
    } else if (operand->scale) {
        form.is_known = false;
    }
    return form;
}

/* True when nothing in the loop stores to where insn loads from, as far as the same registers tell. */
static bool is_kept(const struct strides *work, const struct recipe_operand *from)
{
    for (size_t k = 0; k < work->loop.n_insns; k++) {
        const struct insn *insn = flow_insn(work->flow, work->loop.body[k]);
        for (unsigned o = 0; o < insn->n_operands; o++) {
            const struct recipe_operand *to = &insn->operands[o];
            if (to->flags & RECIPE_OP_WRITE && to->base == from->base && to->index == from->index &&
                (from->base == RECIPE_RIP || (to->disp < from->disp + 8 && from->disp < to->disp + to->size_bytes)))
                return false;
        }
    }
    return true;
}

/* Whether copies lead from reg back to itself, and by how much it has moved then. */
static bool is_cycle(const struct strides *work, uint8_t reg, int64_t *stride)
{
    uint8_t at = reg;
    *stride = 0;
    for (unsigned n = 0; n < DEPTH_MAX && at < 16 && work->loop.n_writes[at] == 1; n++) {
        const struct insn_effect *effect = effect_on(flow_insn(work->flow, work->loop.writer[at]), at);
        if (!effect || effect->kind != EFFECT_COPY)
            return false;
        *stride += effect->value;
        at = effect->source;
        if (at == reg)
            return true;
    }
    return false;
}

static struct form form_of_effect(const struct strides *work, const struct insn *insn, const struct insn_effect *effect,
                                  uint32_t visiting, unsigned depth)
{
    struct form form = {.is_known = true, .is_derived = true, .constant = effect->value}, part;
    uint32_t at = (uint32_t)(insn - work->flow->insns);
    switch (effect->kind) {
    case EFFECT_COPY:
    case EFFECT_NARROW:
        part = form_of_reg(work, effect->source, at, visiting, depth);
        add_form(&form, &part, 1);
        break;
    case EFFECT_EXTEND:
        part = form_of_reg(work, effect->other, at, visiting, depth);
        add_form(&form, &part, 1);
        break;
    case EFFECT_SUM:
        part = form_of_reg(work, effect->source, at, visiting, depth);
        add_form(&form, &part, 1);
        part = form_of_reg(work, effect->other, at, visiting, depth);
        add_form(&form, &part, effect->scale);
        break;
    case EFFECT_ADD:
        part = form_of_reg(work, effect->reg, at, visiting, depth);
        add_form(&form, &part, 1);
        if (effect->source != RECIPE_NO_REG) {
            part = form_of_reg(work, effect->source, at, visiting, depth);
            add_form(&form, &part, effect->scale);
        }
        break;
    case EFFECT_SCALE:
        part = form_of_reg(work, effect->other, at, visiting, depth);
        add_form(&form, &part, effect->scale);
        break;
    case EFFECT_CONSTANT:
        break;
    case EFFECT_LOAD:
        form = form_of_operand(work, insn, &insn->operands[0], visiting, depth);
        form.is_known = form.is_known && !is_moving(&form) && is_kept(work, &insn->operands[0]);
        form.n_terms = 1;
        form.regs[0] = effect->reg;
        form.scales[0] = 1;
        form.constant = 0;
        break;
    default:
        form.is_known = false;
        break;
    }
    return form;
}

/* The write of reg that instruction at sees, where it lies in straight code before it; NULL otherwise. Compilers make
 * an address in two steps: mov, then shl. */
static const struct insn *write_before(const struct strides *work, uint8_t reg, uint32_t at)
{
    const struct flow *flow = work->flow;
    for (unsigned n = 0; n < STRAIGHT_MAX && at > 0 && !flow_is_target(flow, at) && flow_falls_through(flow, at - 1);
         n++)
        if (flow_insn(flow, --at)->writes & INSN_BIT(reg))
            return flow_insn(flow, at);
    return NULL;
}

/* The form of the value that instruction at finds in reg. */
static struct form form_of_reg(const struct strides *work, uint8_t reg, uint32_t at, uint32_t visiting, unsigned depth)
{
    struct form form = {.is_known = true, .n_terms = 1, .regs = {reg}, .scales = {1}};
    if (reg >= 16 || visiting >> reg & 1 || depth > DEPTH_MAX)
        return (struct form){0};
    if (work->loop.n_writes[reg] == 0 || is_cycle(work, reg, &form.stride))
        return form;
    bool is_rewritten = work->loop.n_writes[reg] > 1;
    const struct insn *insn =
        is_rewritten ? write_before(work, reg, at) : flow_insn(work->flow, work->loop.writer[reg]);
    const struct insn_effect *effect = insn ? effect_on(insn, reg) : NULL;
    if (!effect)
        return (struct form){0};
    bool is_step = effect->kind == EFFECT_ADD && effect->source < 16 && work->loop.n_writes[effect->source] == 0;
    if (!is_rewritten && is_step) { /* as far as the matrix is wide */
        form.is_varied = true;
        form.step_reg = effect->source;
        form.step_scale = effect->value ? 0 : effect->scale;
        return form;
    }
    if (is_rewritten) /* each step lies before the last one, so that reg may come again */
        return form_of_effect(work, insn, effect, visiting, depth + 1);
    if (effect->kind == EFFECT_ADD && effect->source == RECIPE_NO_REG) {
        form.stride = effect->value;
        return form;
    }
    return form_of_effect(work, insn, effect, visiting | 1u << reg, depth + 1);
}

/* --- patterns --- */

/* A slot of the stack, or a scalar: an operand that no loop moves. */
static bool is_scalar(const struct recipe_operand *operand)
{
    bool is_frame = operand->base == RECIPE_RSP || (operand->base == RECIPE_RBP && operand->disp < 0);
    return operand->flags & RECIPE_OP_STACK || (!operand->scale && (is_frame || operand->base == RECIPE_RIP));
}

static bool same_walk(const struct form *a, const struct form *b)
{
    return a->stride == b->stride && a->is_varied == b->is_varied && a->n_terms == b->n_terms &&
           !memcmp(a->regs, b->regs, a->n_terms) && !memcmp(a->scales, b->scales, a->n_terms * sizeof a->scales[0]);
}

static struct group *find_group(struct strides *work, const struct form *form)
{
    for (size_t g = 0; g < work->n_groups; g++)
        if (same_walk(&work->groups[g].form, form))
            return &work->groups[g];
    return NULL;
}

/* Puts an instruction's address into its group. */
static void join_group(struct strides *work, const struct form *form, uint32_t pc)
{
    struct group *group = find_group(work, form);
    if (!group && work->n_groups < GROUPS_MAX) {
        group = &work->groups[work->n_groups++];
        group->form = *form;
        group->pc = pc;
        group->n_places = 0;
    }
    for (uint32_t k = 0; group && k < group->n_places; k++)
        if (group->places[k] == form->constant)
            return;
    if (group && group->n_places < PLACES_MAX)
        group->places[group->n_places++] = form->constant;
}

static int64_t line_of(int64_t address)
{
    return address >= 0 ? address / PATTERN_LINE_BYTES : -((PATTERN_LINE_BYTES - 1 - address) / PATTERN_LINE_BYTES);
}

/* Which lines a walk has met; a line comes back within the group's spread, so that the last ones are enough. */
struct met {
    int64_t lines[2 * PLACES_MAX];
    unsigned n;
};

static bool meets_first(struct met *met, int64_t line)
{
    const unsigned n_kept = sizeof met->lines / sizeof met->lines[0];
    for (unsigned k = 0; k < met->n && k < n_kept; k++)
        if (met->lines[k] == line)
            return false;
    met->lines[met->n++ % n_kept] = line;
    return true;
}

/* Walks a group from begin bytes behind the start of a line until its places in lines repeat, and again to see which
 * places meet a line first: as many slots as it visits, and as many firsts. */
static void walk_group(const struct group *group, int64_t begin, unsigned *n_slots, unsigned *n_firsts)
{
    struct met met = {.n = 0};
    uint32_t visited = 0, firsts = 0;
    for (unsigned turn = 0; turn < 3 * PATTERN_LINE_BYTES; turn++)
        for (uint32_t k = 0; k < group->n_places; k++) {
            int64_t address = begin + group->places[k] - group->places[0] + (int64_t)turn * group->form.stride;
            int64_t line = line_of(address);
            uint32_t slot = 1u << (address - line * PATTERN_LINE_BYTES) / 4;
            bool is_first = meets_first(&met, line);
            visited |= slot;
            if (is_first && turn >= PATTERN_LINE_BYTES)
                firsts |= slot;
        }
    *n_slots = (unsigned)__builtin_popcount(visited);
    *n_firsts = (unsigned)__builtin_popcount(firsts);
}

/* Adds the slots that the group visits to the pattern. Where an element has several lines and all begin at the same
 * place in one, which the allocator decides, this place decides whether two parts of the element share a line. */
static uint64_t add_slots(const struct group *group, uint64_t pattern)
{
    int64_t stride = group->form.stride;
    bool is_whole = stride % PATTERN_LINE_BYTES == 0 && llabs((long long)stride) > PATTERN_LINE_BYTES;
    unsigned n_slots, n_firsts;
    walk_group(group, 0, &n_slots, &n_firsts);
    for (int64_t begin = ALIGNED_BYTES; is_whole && begin < PATTERN_LINE_BYTES; begin += ALIGNED_BYTES) {
        unsigned n_other;
        walk_group(group, begin, &n_slots, &n_other);
        n_firsts = n_other > n_firsts ? n_other : n_firsts;
    }
    return pattern_with_slots(pattern, n_slots, n_firsts);
}

/* The registers of an operand's address. */
static uint64_t registers_of(const struct recipe_operand *operand)
{
    uint64_t base = operand->base == RECIPE_NO_REG ? 0 : INSN_BIT(operand->base);
    return operand->scale && operand->index != RECIPE_NO_REG ? base | INSN_BIT(operand->index) : base;
}

static bool is_load(const struct insn *insn)
{
    return insn->n_operands && insn->operands[0].flags & RECIPE_OP_READ && !(insn->operands[0].flags & RECIPE_OP_WRITE);
}

#define NO_DATA (INSN_BIT(RECIPE_RSP) | INSN_FLAGS)

/* Of the registers, those that hold something made of what was in made before the instruction. */
static uint64_t made_after(uint64_t made, const struct insn *insn, bool with_loads)
{
    uint64_t reads = with_loads && is_load(insn) ? insn->reads | registers_of(&insn->operands[0]) : insn->reads;
    return reads & made && insn->kind != INSN_CALL ? made | (insn->writes & ~NO_DATA) : made & ~insn->writes;
}

/* The registers that hold, when the loop comes back to place k of its body, something made of what the instruction
 * there has written; or, with_loads, something that was loaded from there. */
static uint64_t made_of(const struct strides *work, size_t k, bool with_loads)
{
    const struct loop *loop = &work->loop;
    uint64_t made = flow_insn(work->flow, loop->body[k])->writes & ~NO_DATA;
    for (size_t step = 1; step < loop->n_insns; step++)
        made = made_after(made, flow_insn(work->flow, loop->body[(k + step) % loop->n_insns]), with_loads);
    return made;
}

/* True when what the load-and-compute instruction at place k of the body computes comes back to it in the next turn. */
static bool is_carried(const struct strides *work, size_t k)
{
    const struct insn *insn = flow_insn(work->flow, work->loop.body[k]);
    bool is_candidate = insn->is_slow && insn->n_operands && insn->operands[0].flags & RECIPE_OP_READ;
    return is_candidate && insn->reads & made_of(work, k, false);
}

/* True when all instructions of the body of which is_carried is true use what the one at place k has computed. */
static bool is_only_chain(const struct strides *work, size_t k)
{
    const struct loop *loop = &work->loop;
    uint64_t made = flow_insn(work->flow, loop->body[k])->writes & ~NO_DATA;
    for (size_t step = 1; step < loop->n_insns; step++) {
        size_t at = (k + step) % loop->n_insns;
        const struct insn *insn = flow_insn(work->flow, loop->body[at]);
        if (!(insn->reads & made) && is_carried(work, at))
            return false;
        made = made_after(made, insn, false);
    }
    return true;
}

/* What is looked for around a place: loads of other parts of the same element, in whose address a register has the same
 * part. One of them may read where to read in the next turn, as in a list. */
struct element {
    const struct recipe_operand *operand; /* of which part */
    bool is_base;                         /* the register is the base of the address, else its index */
    unsigned n_tried;
};

/* Whether the instruction at a place of the body reads where to read in the next turn, through the register. Without a
 * base the parts must be near, or they may be of different arrays. */
static bool reads_next(const struct strides *work, size_t at, uint8_t reg, struct element *element)
{
    const struct insn *insn = flow_insn(work->flow, work->loop.body[at]);
    const struct recipe_operand *own = element->operand, *other = &insn->operands[0];
    if (!is_load(insn) || element->n_tried == TRIES_MAX || (element->is_base ? other->base : other->index) != reg)
        return false;
    if (!element->is_base && (other->base != own->base || other->scale != own->scale ||
                              (own->base >= 16 && llabs((long long)other->disp - own->disp) >= PATTERN_LINE_BYTES)))
        return false;
    element->n_tried++;
    return INSN_BIT(reg) & made_of(work, at, true);
}

/* Looks for such a load where the register has the value that it has at place k of the body: behind that, before it,
 * and around the instruction that copied it. Whichever part is read first waits for the element, and so for the chain.
 */
static bool finds_next(const struct strides *work, size_t k, uint8_t reg, struct element *element, unsigned depth)
{
    const struct loop *loop = &work->loop;
    for (size_t step = 0; step < loop->n_insns; step++) {
        size_t at = (k + step) % loop->n_insns;
        if (reads_next(work, at, reg, element))
            return true;
        if (flow_insn(work->flow, loop->body[at])->writes & INSN_BIT(reg))
            break;
    }
    for (size_t step = 1; step < loop->n_insns; step++) {
        size_t at = (k + loop->n_insns - step) % loop->n_insns;
        const struct insn *insn = flow_insn(work->flow, loop->body[at]);
        if (insn->writes & INSN_BIT(reg)) {
            const struct insn_effect *effect = effect_on(insn, reg);
            return effect && effect->kind == EFFECT_COPY && effect->source < 16 && depth < COPIES_MAX &&
                   finds_next(work, at, effect->source, element, depth + 1);
        }
        if (reads_next(work, at, reg, element))
            return true;
    }
    return false;
}

/* True when the operand at place k of the body, which is read, is a part of an element that tells where to read in the
 * next turn. */
static bool is_chained(const struct strides *work, size_t k)
{
    const struct recipe_operand *operand = &flow_insn(work->flow, work->loop.body[k])->operands[0];
    bool has_base = operand->base < 16 && work->loop.n_writes[operand->base];
    bool has_index = operand->scale && operand->index < 16 && work->loop.n_writes[operand->index];
    struct element by_base = {.operand = operand, .is_base = true}, by_index = {.operand = operand};
    return (has_base && finds_next(work, k, operand->base, &by_base, 0)) ||
           (has_index && finds_next(work, k, operand->index, &by_index, 0));
}

static bool has_pattern(const struct insn *insn)
{
    return insn->n_operands && insn->kind != INSN_CALL && insn->kind != INSN_RET && insn->kind != INSN_REP;
}

static enum pattern_kind irregular_kind(const struct strides *work, size_t k)
{
    bool is_read = flow_insn(work->flow, work->loop.body[k])->operands[0].flags & RECIPE_OP_READ;
    return !is_read ? PATTERN_STORED : is_chained(work, k) ? PATTERN_CHAINED : PATTERN_IRREGULAR;
}

/* The step of an address, where it has no other stride. */
static struct stride_step step_of(const struct strides *work, const struct form *form)
{
    unsigned shift = 0;
    if (!form->is_known || !form->is_varied || !form->step_scale || form->stride)
        return (struct stride_step){0};
    while (shift < 15 && 1u << shift < work->loop.n_steps[form->step_reg])
        shift++;
    return (struct stride_step){.step = (uint8_t)(shift << 4 | form->step_reg), .scale = (int8_t)form->step_scale};
}

static uint64_t pattern_of(struct strides *work, size_t k)
{
    const struct insn *insn = flow_insn(work->flow, work->loop.body[k]);
    const struct recipe_operand *operand = &insn->operands[0];
    struct form form = form_of_operand(work, insn, operand, 0, 0);
    const struct group *group = form.is_known && form.stride ? find_group(work, &form) : NULL;
    bool is_varied = form.is_known && form.is_varied;
    uint32_t head = work->flow->insns[start_of(work, work->loop.head)].pc;
    uint64_t pattern;
    if (is_scalar(operand) || (form.is_known && !is_moving(&form)))
        return pattern_make(PATTERN_FIXED, insn->pc, 0, operand->size_bytes);
    work->steps[work->loop.body[k]] = step_of(work, &form);
    if (is_varied)
        pattern = pattern_make(form.is_derived ? PATTERN_DERIVED : PATTERN_STRIDED, head, 0, operand->size_bytes);
    else if (group)
        pattern = add_slots(group, pattern_make(form.is_derived ? PATTERN_DERIVED : PATTERN_STRIDED, group->pc,
                                                form.stride, operand->size_bytes));
    else
        pattern = pattern_make(irregular_kind(work, k), head, 0, operand->size_bytes);
    if (pattern_has_footprint(pattern))
        pattern = pattern_with_group(pattern, head);
    if (!is_carried(work, k))
        return pattern;
    bool is_serial = pattern_kind(pattern) == PATTERN_IRREGULAR && is_only_chain(work, k);
    return pattern | PATTERN_MIXED | (is_serial ? PATTERN_SERIAL : 0);
}

/* --- on demand --- */

/* Finds out whether a block is the head of a loop, and whose innermost loop that is. */
static void settle(struct strides *work, uint32_t block)
{
    if (work->states[block] != HEAD_UNKNOWN)
        return;
    bool is_head = flow_is_target(work->flow, start_of(work, block)) && find_loop(work, block);
    work->states[block] = is_head ? HEAD_LOOP : HEAD_NONE;
    if (is_head)
        claim_blocks(work);
}

/* Head of the innermost loop around a block. Loops lie apart or inside each other, and a head comes before all of its
 * loop: the first one on the way up the tree of dominators is it. A block on that way lies in all loops that come still
 * further up, so that only those around it need be tried. Where nothing is known to lead, all are searched. */
static uint32_t innermost(struct strides *work, uint32_t block)
{
    const struct flow_block *blocks = work->flow->blocks;
    uint32_t at = block, found = NO_LOOP;
    if (work->around[block] != NOT_ASKED)
        return work->around[block];
    if (blocks[block].first == INSN_NONE) {
        for (uint32_t b = 0; !work->is_settled && b < work->flow->n_blocks; b++)
            settle(work, b);
        work->is_settled = true;
        return work->around[block] = work->owner[block];
    }
    while (at != INSN_NONE && found == NO_LOOP) {
        uint32_t around = work->around[at];
        settle(work, at);
        if (work->states[at] == HEAD_LOOP && work->owner[block] == at)
            found = at;
        else
            at = around == NOT_ASKED || around == at ? blocks[at].dominator : around;
    }
    return work->around[block] = found;
}

/* Makes the loop with this head the current one: its body in order, what that writes, and which of its instructions
 * walk together. Inner loops are found first: what they own walks for itself. */
static bool prepare(struct strides *work, uint32_t head)
{
    const struct flow *flow = work->flow;
    struct loop *loop = &work->loop;
    size_t n_inner = 0;
    if (work->prepared == head)
        return true;
    if (!find_loop(work, head))
        return false;
    for (size_t k = 0; k < loop->n_blocks; k++)
        if (work->states[loop->blocks[k]] == HEAD_UNKNOWN && flow_is_target(flow, start_of(work, loop->blocks[k])))
            work->inner[n_inner++] = loop->blocks[k];
    for (size_t k = 0; k < n_inner; k++)
        settle(work, work->inner[k]);
    if (n_inner && !find_loop(work, head))
        return false;
    sort_blocks(work);
    list_body(work);
    count_writes(work);
    work->n_groups = 0;
    memset(loop->n_steps, 0, sizeof loop->n_steps);
    for (size_t k = 0; k < loop->n_insns && work->n_steps < WORK_MAX; k++) {
        const struct insn *insn = flow_insn(flow, loop->body[k]);
        if (work->owner[flow->block_of[loop->body[k]]] != head || !has_pattern(insn))
            continue;
        struct form form = form_of_operand(work, insn, &insn->operands[0], 0, 0);
        work->n_steps += 16 + work->n_groups;
        if (form.is_known && form.stride && !form.is_varied && !is_scalar(&insn->operands[0]))
            join_group(work, &form, insn->pc);
        if (form.is_known && form.is_varied && form.step_scale)
            loop->n_steps[form.step_reg]++;
    }
    work->prepared = head;
    return true;
}

/* Finds the patterns of instruction i, in the loop with this head, and of those of the loop that follow soon. */
static void fill_from(struct strides *work, uint32_t head, uint32_t i)
{
    const struct loop *loop = &work->loop;
    if (work->n_steps >= WORK_MAX || !prepare(work, head))
        return;
    size_t k = search_below(loop->body, loop->n_insns, search_number, i);
    for (size_t n = 0; n < AHEAD && k < loop->n_insns && work->n_steps < WORK_MAX; n++, k++) {
        uint32_t at = loop->body[k];
        const struct insn *insn = flow_insn(work->flow, at);
        if (work->owner[work->flow->block_of[at]] != head || work->is_known[at] || !has_pattern(insn))
            continue;
        uint64_t pattern = pattern_of(work, k);
        bool is_walking = pattern_kind(pattern) == PATTERN_STRIDED || pattern_kind(pattern) == PATTERN_DERIVED;
        work->n_steps += (insn->is_slow ? loop->n_insns : 0) + (is_walking ? 1000 : 16);
        work->patterns[at] = pattern;
        work->is_known[at] = true;
    }
}

/* False when out of memory. */
static bool reserve(struct strides *work, size_t n_insns, size_t n_blocks)
{
    if (!work->groups)
        work->groups = malloc(GROUPS_MAX * sizeof *work->groups);
    return work->groups && vec_reserve(&work->words, &work->words_capacity, 7 * n_blocks + n_insns, sizeof(uint32_t)) &&
           vec_reserve(&work->patterns, &work->patterns_capacity, n_insns, sizeof *work->patterns) &&
           vec_reserve(&work->steps, &work->steps_capacity, n_insns, sizeof *work->steps) &&
           vec_reserve(&work->states, &work->states_capacity, n_blocks + n_insns, sizeof *work->states);
}

/* Makes what the patterns of instructions in loops need; false when out of memory. */
static bool begin(struct strides *work)
{
    struct flow *flow = work->ordered;
    work->ordered = NULL;
    if (!flow || !flow_find_order(flow) || !reserve(work, flow->n_insns, flow->n_blocks))
        return false;
    uint32_t n = flow->n_blocks, **const arrays[] = {&work->owner,  &work->around, &work->owner_size, &work->seen,
                                                     &work->latest, &work->inner,  &work->loop.blocks};
    for (unsigned a = 0; a < sizeof arrays / sizeof *arrays; a++)
        *arrays[a] = work->words + a * n;
    work->loop.body = work->words + 7 * n;
    memset(work->owner, 0xff, n * sizeof *work->owner);
    memset(work->owner_size, 0, 2 * n * sizeof *work->owner_size);
    memset(work->states, 0, n + flow->n_insns);
    work->n_walks = 0;
    work->n_steps = 0;
    work->prepared = NO_LOOP;
    work->is_settled = false;
    for (uint32_t b = 0, latest = 0; b < n; b++) {
        uint32_t start = start_of(work, b);
        for (uint32_t s = flow->first_source[start]; s < flow->first_source[start + 1]; s++)
            latest = flow->block_of[flow->sources[s]] > latest ? flow->block_of[flow->sources[s]] : latest;
        work->latest[b] = latest;
        work->around[b] = NOT_ASKED;
    }
    work->is_known = (bool *)(work->states + n);
    return true;
}

/* Whether a jump back leads over instruction i, or to or from it: no other one can be in a loop, wherever the blocks of
 * that lie, because the loop comes back from the addresses behind i to those before it. */
static bool is_below_jump_back(const struct flow *flow, uint32_t i)
{
    for (uint32_t to = 0; to <= i; to++)
        for (uint32_t s = flow->first_source[to]; s < flow->first_source[to + 1]; s++)
            if (flow->sources[s] >= i)
                return true;
    return false;
}

uint64_t stride_pattern(const struct flow *flow, uint32_t i)
{
    struct strides *work = flow->strides;
    const struct insn *insn = flow_insn(flow, i);
    const struct recipe_operand *operand = &insn->operands[0];
    if (insn->kind == INSN_REP && insn->n_operands)
        return pattern_make(PATTERN_STRIDED, insn->pc, PATTERN_LINE_BYTES, PATTERN_LINE_BYTES);
    if (!has_pattern(insn) || !work)
        return 0;
    if (work->is_known && work->is_known[i])
        return work->patterns[i];
    bool may_loop = is_below_jump_back(flow, i);
    if (may_loop && !work->is_known && !begin(work))
        return 0;
    uint32_t head = may_loop ? innermost(work, flow->block_of[i]) : NO_LOOP;
    if (head == NO_LOOP)
        return pattern_make(is_scalar(operand)                ? PATTERN_FIXED
                            : operand->flags & RECIPE_OP_READ ? PATTERN_IRREGULAR
                                                              : PATTERN_STORED,
                            flow->insns[0].pc, 0, operand->size_bytes);
    fill_from(work, head, i);
    return work->is_known[i] ? work->patterns[i] : 0;
}

struct stride_step stride_step(const struct flow *flow, uint32_t i)
{
    const struct strides *work = flow->strides;
    return work && work->is_known && work->is_known[i] ? work->steps[i] : (struct stride_step){0};
}

bool stride_begin(struct flow *flow)
{
    struct strides *work = flow->strides ? flow->strides : calloc(1, sizeof *work);
    flow->strides = work;
    if (!work)
        return false;
    work->flow = work->ordered = flow;
    work->is_known = NULL;
    return true;
}

void stride_end(struct flow *flow)
{
    if (!flow->strides)
        return;
    free(flow->strides->words);
    free(flow->strides->patterns);
    free(flow->strides->steps);
    free(flow->strides->states);
    free(flow->strides->groups);
    free(flow->strides);
    flow->strides = NULL;
}
