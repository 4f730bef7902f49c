/* SPDX-License-Identifier: BSD-3-Clause */
/* Nests of loops: see cfg.h. The value of a register at a place is a sum of symbols: what it was when the function or a
 * turn of a loop began, what was loaded, and what else no sum tells. How such a symbol moves from turn to turn of a
 * loop follows from the value that the loop brings back to its head. */
#include "structure/cfg/cfg.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define TERMS_MAX 6
#define SYMBOLS_MAX 20000
#define INSNS_MAX 20000 /* of a function: nests of longer ones are not looked for */
#define SLOTS_MAX 48    /* words of the stack frame that count as registers */
#define PLACES (16 + SLOTS_MAX)
#define DEPTH_MAX 300
#define WORK_MAX 3000000 /* steps a function */
#define NO_PLACE 0xff
#define LINE_BYTES 64
#define CACHE_LINES 256 /* half a first-level cache: lines of a walk that long are still there in the next one */
#define CACHE_SETS 64
#define CACHE_WAYS 4 /* half of them */
#define GROUPS_MAX 64
#define OFFSETS_MAX 32
#define WORTH 0.4      /* cache lines for each turn that another order must save ... */
#define WORTH_PART 0.3 /* ... and of all */

struct term {
    uint32_t symbol;
    int64_t scale;
};

/* Sum of scales * symbols and a constant. */
struct form {
    bool is_known;
    uint8_t n_terms;
    int64_t constant;
    struct term terms[TERMS_MAX]; /* [n_terms] by symbol */
};

enum symbol_kind {
    SYMBOL_OTHER = 0, /* made of the registers and the word that insn reads */
    SYMBOL_ENTRY,     /* a place as it was when the function began */
    SYMBOL_TURN,      /* a place as it was when a turn of the loop with head at began */
    SYMBOL_LOAD,      /* the word that insn reads */
    SYMBOL_PRODUCT,   /* of insn's two operands */
    SYMBOL_JOINED     /* a place with another value by each way to block at */
};

struct symbol {
    uint8_t kind, place;
    uint32_t at;     /* instruction, or block */
    bool is_visited; /* its move is being looked for */
};

struct search {
    const struct cfg *cfg;
    const struct loops *loops;
    struct cfg_effect *effects; /* [n_insns] */
    uint8_t *slot;              /* [n_insns] place of the memory operand, NO_PLACE */
    uint32_t *preds_of, *preds; /* [n_blocks + 1] indexes into [n_edges] */
    uint32_t *first;            /* [n_blocks + 1] instructions */
    uint64_t *block_writes;     /* [n_blocks] places, a bit each */
    uint64_t *loop_writes;      /* [loops->n] */
    uint32_t *at_entry;         /* [n_blocks][PLACES] form + 2; 1: being looked for, 0: not yet */
    uint32_t *of_insn;          /* [n_insns] the same of what it writes */
    struct form *forms;         /* [n_forms] */
    size_t n_forms, cap_forms;
    struct symbol *symbols; /* [n_symbols] */
    size_t n_symbols, cap_symbols;
    struct slots by_key; /* of symbols */
    uint8_t slot_base[SLOTS_MAX];
    int64_t slot_disp[SLOTS_MAX];
    unsigned n_slots;
    uint64_t n_work;
};

/* --- sums --- */

static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void add_term(struct form *to, uint32_t symbol, int64_t scale)
{
    unsigned k = 0;
    while (k < to->n_terms && to->terms[k].symbol < symbol)
        k++;
    if (k < to->n_terms && to->terms[k].symbol == symbol) {
        to->terms[k].scale = plus(to->terms[k].scale, scale);
        if (to->terms[k].scale == 0)
            memmove(&to->terms[k], &to->terms[k + 1], (--to->n_terms - k) * sizeof to->terms[0]);
        return;
    }
    if (to->n_terms == TERMS_MAX) {
        to->is_known = false;
        return;
    }
    memmove(&to->terms[k + 1], &to->terms[k], (to->n_terms++ - k) * sizeof to->terms[0]);
    to->terms[k] = (struct term){symbol, scale};
}

static void add_form(struct form *to, const struct form *from, int64_t scale)
{
    to->is_known = to->is_known && from->is_known;
    to->constant = plus(to->constant, times(from->constant, scale));
    for (unsigned k = 0; scale && to->is_known && k < from->n_terms; k++)
        add_term(to, from->terms[k].symbol, times(from->terms[k].scale, scale));
}

static bool has_same_terms(const struct form *a, const struct form *b)
{
    if (a->n_terms != b->n_terms)
        return false;
    for (unsigned k = 0; k < a->n_terms; k++)
        if (a->terms[k].symbol != b->terms[k].symbol || a->terms[k].scale != b->terms[k].scale)
            return false;
    return true;
}

static bool is_same(const struct form *a, const struct form *b)
{
    return a->is_known && b->is_known && a->constant == b->constant && has_same_terms(a, b);
}

/* --- symbols --- */

static uint64_t hash_symbol(const void *item)
{
    const struct symbol *symbol = item;
    return ((uint64_t)symbol->at << 16 | (uint64_t)symbol->place << 8 | symbol->kind) * 0x9e3779b97f4a7c15u;
}

static bool is_same_symbol(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return x->kind == y->kind && x->place == y->place && x->at == y->at;
}

static const struct slots_kind symbol_kind = {sizeof(struct symbol), hash_symbol, is_same_symbol};

/* The sum of this symbol alone. */
static struct form form_of_symbol(struct search *s, enum symbol_kind kind, uint32_t at, uint8_t place)
{
    const struct symbol like = {.kind = (uint8_t)kind, .place = place, .at = at};
    size_t found = s->n_symbols < SYMBOLS_MAX
                       ? slots_put(&s->by_key, &symbol_kind, &s->symbols, &s->n_symbols, &s->cap_symbols, &like)
                       : SLOTS_NONE;
    if (found == SLOTS_NONE)
        return (struct form){0};
    return (struct form){.is_known = true, .n_terms = 1, .terms = {{(uint32_t)found, 1}}};
}

/* --- values --- */

static struct form value_before(struct search *s, uint8_t place, uint32_t insn, unsigned depth);
static struct form value_in(struct search *s, uint8_t place, uint32_t block, uint32_t insn, unsigned depth);

static bool writes(const struct search *s, uint32_t insn, uint8_t place)
{
    const struct cfg_effect *effect = &s->effects[insn];
    if (place >= 16)
        return effect->is_written && s->slot[insn] == place;
    return effect->to == place || effect->writes >> place & 1;
}

static struct form form_of_operand(struct search *s, uint8_t operand, uint32_t insn, unsigned depth)
{
    if (operand == CFG_NOWHERE)
        return (struct form){.is_known = true};
    if (operand < 16)
        return value_before(s, operand, insn, depth);
    if (operand != CFG_MEMORY)
        return (struct form){0};
    return s->slot[insn] != NO_PLACE ? value_before(s, s->slot[insn], insn, depth)
                                     : form_of_symbol(s, SYMBOL_LOAD, insn, 0);
}

static bool is_number(const struct form *form)
{
    return form->is_known && form->n_terms == 0;
}

/* The sum that the instruction makes. */
static struct form result_of(struct search *s, uint32_t insn, unsigned depth)
{
    const struct cfg_effect *effect = &s->effects[insn];
    struct form a = form_of_operand(s, effect->a, insn, depth), b = form_of_operand(s, effect->b, insn, depth), sum;
    if (effect->is_product && !is_number(&a) && !is_number(&b))
        return form_of_symbol(s, SYMBOL_PRODUCT, insn, 0);
    sum = (struct form){.is_known = true, .constant = effect->value};
    if (effect->is_product) {
        add_form(&sum, is_number(&a) ? &b : &a, is_number(&a) ? a.constant : b.constant);
        return sum;
    }
    add_form(&sum, &a, 1);
    add_form(&sum, &b, effect->scale);
    return sum;
}

/* Keeps a form under a memo's word. */
static void keep(struct search *s, uint32_t *memo, const struct form *form)
{
    *memo = 0;
    if (!vec_reserve(&s->forms, &s->cap_forms, s->n_forms + 1, sizeof *s->forms))
        return;
    s->forms[s->n_forms] = *form;
    *memo = (uint32_t)s->n_forms++ + 2;
}

/* What the instruction, which writes to place, leaves there. */
static struct form value_after(struct search *s, uint8_t place, uint32_t insn, unsigned depth)
{
    const struct cfg_effect *effect = &s->effects[insn];
    bool is_sum = effect->is_known && effect->to == (place < 16 ? place : CFG_MEMORY);
    if (!is_sum)
        return form_of_symbol(s, SYMBOL_OTHER, insn, place);
    if (s->of_insn[insn] > 1)
        return s->forms[s->of_insn[insn] - 2];
    if (s->of_insn[insn] == 1 || depth > DEPTH_MAX)
        return (struct form){0};
    s->of_insn[insn] = 1;
    struct form form = result_of(s, insn, depth + 1);
    if (!form.is_known)
        form = form_of_symbol(s, SYMBOL_OTHER, insn, place);
    keep(s, &s->of_insn[insn], &form);
    return form;
}

static bool is_head(const struct search *s, uint32_t block, uint32_t *loop)
{
    *loop = s->loops->loop_of[block];
    return *loop != CFG_NONE && s->loops->items[*loop].header == block;
}

/* The common value of a place at the ends of the blocks before this one, those inside (is_inside) or outside of loop,
 * CFG_NONE: all; not known where they differ. */
static struct form value_joined(struct search *s, uint8_t place, uint32_t block, uint32_t loop, bool is_inside,
                                unsigned depth)
{
    struct form all = {0};
    bool has_any = false;
    for (uint32_t p = s->preds_of[block]; p < s->preds_of[block + 1]; p++) {
        uint32_t from = s->preds[p];
        if (!loops_reach(s->loops, from) ||
            (loop != CFG_NONE && loops_contain(s->loops, loop, s->loops->loop_of[from]) != is_inside))
            continue;
        struct form one = value_in(s, place, from, s->first[from + 1], depth);
        if (!one.is_known || (has_any && !is_same(&one, &all)))
            return (struct form){0};
        all = one;
        has_any = true;
    }
    return all;
}

static struct form find_entry(struct search *s, uint8_t place, uint32_t block, unsigned depth)
{
    uint32_t loop;
    bool is_loop = is_head(s, block, &loop);
    if (block == s->cfg->entry && !is_loop)
        return form_of_symbol(s, SYMBOL_ENTRY, 0, place);
    if (is_loop && s->loops->items[loop].is_irreducible)
        return form_of_symbol(s, SYMBOL_JOINED, block, place);
    if (is_loop && s->loop_writes[loop] >> place & 1)
        return form_of_symbol(s, SYMBOL_TURN, block, place);
    struct form form = value_joined(s, place, block, is_loop ? loop : CFG_NONE, false, depth + 1);
    return form.is_known ? form : form_of_symbol(s, SYMBOL_JOINED, block, place);
}

/* The value of a place where the block begins. */
static struct form value_at_entry(struct search *s, uint8_t place, uint32_t block, unsigned depth)
{
    uint32_t *memo = &s->at_entry[(size_t)block * PLACES + place];
    if (*memo > 1)
        return s->forms[*memo - 2];
    if (*memo == 1 || depth > DEPTH_MAX || s->n_work++ > WORK_MAX)
        return (struct form){0};
    *memo = 1;
    struct form form = find_entry(s, place, block, depth);
    keep(s, memo, &form);
    return form;
}

/* The value of a place in a block, before an instruction of it or, with that of the next block, at its end. */
static struct form value_in(struct search *s, uint8_t place, uint32_t block, uint32_t insn, unsigned depth)
{
    if (s->block_writes[block] >> place & 1)
        for (uint32_t k = insn; k-- > s->first[block];)
            if (writes(s, k, place))
                return value_after(s, place, k, depth);
    return value_at_entry(s, place, block, depth);
}

static struct form value_before(struct search *s, uint8_t place, uint32_t insn, unsigned depth)
{
    return value_in(s, place, s->cfg->block_of[insn], insn, depth);
}

static struct form form_of_address(struct search *s, uint32_t insn, unsigned depth)
{
    const struct cfg_effect *effect = &s->effects[insn];
    struct form address = {.is_known = !effect->is_scattered, .constant = effect->disp};
    uint8_t base = effect->base == CFG_RIP ? CFG_NOWHERE : effect->base;
    struct form part = form_of_operand(s, base, insn, depth);
    add_form(&address, &part, 1);
    part = form_of_operand(s, effect->index, insn, depth);
    add_form(&address, &part, effect->index_scale);
    return address;
}

/* --- moves --- */

/* How a value moves from one turn of a loop to the next. */
struct move {
    enum nest_move kind;
    int64_t bytes;   /* of NEST_CONSTANT; of NEST_VARIED, times the symbol's value */
    uint32_t symbol; /* of NEST_VARIED; NO_SYMBOL: it is more than one product */
};

#define NO_SYMBOL UINT32_MAX
#define STAYS ((struct move){.kind = NEST_CONSTANT})
#define MOVES_SOMEHOW ((struct move){.kind = NEST_UNKNOWN})

static struct move move_of_form(struct search *s, const struct form *form, uint32_t loop, unsigned depth);
static struct move move_of_symbol(struct search *s, uint32_t symbol, uint32_t loop, unsigned depth);

static bool stays(const struct move *move)
{
    return move->kind == NEST_CONSTANT && move->bytes == 0;
}

static void add_move(struct move *to, const struct move *from, int64_t scale)
{
    if (from->kind == NEST_CONSTANT && to->kind == NEST_CONSTANT) {
        to->bytes = plus(to->bytes, times(from->bytes, scale));
    } else if (from->kind == NEST_VARIED && stays(to)) {
        *to = *from;
        to->bytes = times(to->bytes, scale);
    } else if (from->kind > to->kind) {
        *to = *from;
        to->symbol = NO_SYMBOL;
    } else if (to->kind == NEST_VARIED && !stays(from)) {
        bool is_same = from->kind == NEST_VARIED && from->symbol == to->symbol && to->symbol != NO_SYMBOL;
        to->bytes = is_same ? plus(to->bytes, times(from->bytes, scale)) : 0;
        to->symbol = is_same && to->bytes ? to->symbol : NO_SYMBOL;
    }
}

/* Whether nothing in the loop writes to where the instruction reads, as far as sums tell. */
static bool is_kept(struct search *s, uint32_t insn, const struct form *from, uint32_t loop, unsigned depth)
{
    int64_t n_bytes = s->effects[insn].size_bytes;
    for (uint32_t block = 0; block < s->cfg->n_blocks; block++) {
        if (!loops_contain(s->loops, loop, s->loops->loop_of[block]))
            continue;
        s->n_work += s->first[block + 1] - s->first[block];
        for (uint32_t k = s->first[block]; k < s->first[block + 1]; k++) {
            if (!s->effects[k].is_written || s->slot[k] != NO_PLACE)
                continue;
            struct form to = form_of_address(s, k, depth);
            int64_t ahead = plus(to.constant, times(from->constant, -1));
            if (to.is_known && has_same_terms(&to, from) && ahead < n_bytes && ahead > -s->effects[k].size_bytes)
                return false;
        }
    }
    return true;
}

static struct move move_of_load(struct search *s, uint32_t insn, uint32_t loop, unsigned depth)
{
    struct form address = form_of_address(s, insn, depth);
    struct move move = move_of_form(s, &address, loop, depth);
    if (stays(&move))
        return is_kept(s, insn, &address, loop, depth) ? STAYS : MOVES_SOMEHOW;
    return (struct move){.kind = move.kind == NEST_UNKNOWN ? NEST_UNKNOWN : NEST_ROWS};
}

/* Of what is made of registers and a word in another way than by sums: it stays where these do. */
static struct move move_of_other(struct search *s, uint32_t insn, uint32_t loop, unsigned depth)
{
    const struct cfg_effect *effect = &s->effects[insn];
    if (!effect->reads && !effect->is_read)
        return MOVES_SOMEHOW; /* a call's, or the processor's own */
    for (uint8_t reg = 0; reg < 16; reg++) {
        struct form form =
            effect->reads >> reg & 1 ? value_before(s, reg, insn, depth) : (struct form){.is_known = true};
        struct move move = move_of_form(s, &form, loop, depth);
        if (!stays(&move))
            return MOVES_SOMEHOW;
    }
    struct form word = effect->is_read ? form_of_operand(s, CFG_MEMORY, insn, depth) : (struct form){.is_known = true};
    struct move move = move_of_form(s, &word, loop, depth);
    return stays(&move) ? STAYS : MOVES_SOMEHOW;
}

static struct move move_of_product(struct search *s, uint32_t insn, uint32_t loop, unsigned depth)
{
    const struct cfg_effect *effect = &s->effects[insn];
    struct form a = form_of_operand(s, effect->a, insn, depth), b = form_of_operand(s, effect->b, insn, depth);
    struct move move_a = move_of_form(s, &a, loop, depth), move_b = move_of_form(s, &b, loop, depth);
    const struct form *factor = stays(&move_a) ? &a : &b;
    struct move moving = stays(&move_a) ? move_b : move_a;
    if ((!stays(&move_a) && !stays(&move_b)) || stays(&moving) || moving.kind > NEST_VARIED)
        return stays(&moving) ? STAYS : MOVES_SOMEHOW;
    bool is_one = moving.kind == NEST_CONSTANT && factor->n_terms == 1 && factor->constant == 0;
    return (struct move){.kind = NEST_VARIED,
                         .bytes = is_one ? times(moving.bytes, factor->terms[0].scale) : 0,
                         .symbol = is_one ? factor->terms[0].symbol : NO_SYMBOL};
}

/* The value that a form has when the loop begins, as far as it is made of places at its head. */
static struct form before_loop(struct search *s, const struct form *form, uint32_t loop)
{
    struct form sum = {.is_known = form->is_known, .constant = form->constant};
    for (unsigned k = 0; k < form->n_terms; k++) {
        const struct symbol symbol = s->symbols[form->terms[k].symbol];
        struct form one = {.is_known = true, .n_terms = 1, .terms = {{form->terms[k].symbol, 1}}};
        if (symbol.kind == SYMBOL_TURN && symbol.at == s->loops->items[loop].header)
            one = value_joined(s, symbol.place, symbol.at, loop, false, 0);
        add_form(&sum, &one, form->terms[k].scale);
    }
    return sum;
}

/* The instruction whose sum the conditional jump at the end of the block rests on, and that is known; CFG_NONE: none.
 */
static uint32_t tested_at(const struct search *s, uint32_t block)
{
    uint32_t k = s->first[block + 1];
    while (k > s->first[block] && !s->effects[k - 1].is_tested)
        k--;
    return k > s->first[block] && s->effects[k - 1].is_known ? k - 1 : CFG_NONE;
}

static bool is_exit(const struct search *s, uint64_t edge, uint32_t loop)
{
    return s->loops->loop_of[(uint32_t)(edge >> 32)] == loop &&
           !loops_contain(s->loops, loop, s->loops->loop_of[(uint32_t)edge]);
}

/* What a place at the head of a loop, the symbol, is in the loop's last turn, which ends where the sum is 0: the sum
 * holds the place itself, or it says after how many turns that is. */
static struct form value_at_end(struct search *s, uint32_t symbol, uint32_t loop, const struct form *tested,
                                unsigned depth)
{
    const struct symbol place = s->symbols[symbol];
    struct form end = {.is_known = tested->is_known}, first = before_loop(s, tested, loop);
    struct move move = move_of_form(s, tested, loop, depth), own = STAYS;
    for (unsigned k = 0; k < tested->n_terms; k++) {
        const struct symbol *other = &s->symbols[tested->terms[k].symbol];
        int64_t scale = tested->terms[k].scale;
        bool is_turn = other->kind == SYMBOL_TURN && other->at == place.at;
        if (tested->terms[k].symbol == symbol && (scale == 1 || scale == -1)) {
            add_form(&end, tested, -scale);
            add_term(&end, symbol, 1);
            own = (struct move){.kind = NEST_UNKNOWN};
        } else if (is_turn) {
            end.is_known = false;
        }
    }
    if (own.kind == NEST_UNKNOWN && end.is_known)
        return end;
    own = move_of_symbol(s, symbol, loop, depth);
    end = value_joined(s, place.place, place.at, loop, false, depth);
    bool is_counted = move.kind == NEST_CONSTANT && move.bytes && is_number(&first) && own.kind == NEST_CONSTANT &&
                      first.constant % move.bytes == 0;
    end.is_known = end.is_known && is_counted;
    end.constant = plus(end.constant, is_counted ? times(own.bytes, -first.constant / move.bytes) : 0);
    return end;
}

/* Puts the values of the last turns in the places of those at the heads of loops inside this one, where that is known:
 * compilers go on from there. */
static void after_inner_loops(struct search *s, struct form *form, uint32_t loop, unsigned depth)
{
    const struct form copy = *form;
    for (unsigned k = 0; k < copy.n_terms; k++) {
        const struct symbol symbol = s->symbols[copy.terms[k].symbol];
        uint32_t inner = symbol.kind == SYMBOL_TURN ? s->loops->loop_of[symbol.at] : CFG_NONE;
        if (inner == CFG_NONE || inner == loop || !loops_contain(s->loops, loop, inner))
            continue;
        s->n_work += s->cfg->n_edges;
        for (size_t e = 0; e < s->cfg->n_edges; e++) {
            uint32_t from = (uint32_t)(s->cfg->edges[e] >> 32);
            uint32_t test = is_exit(s, s->cfg->edges[e], inner) ? tested_at(s, from) : CFG_NONE;
            if (test == CFG_NONE || !s->effects[s->first[from + 1] - 1].is_equality)
                continue;
            struct form tested = result_of(s, test, depth);
            struct form end = value_at_end(s, copy.terms[k].symbol, inner, &tested, depth);
            if (!end.is_known)
                continue;
            add_term(form, copy.terms[k].symbol, -copy.terms[k].scale);
            add_form(form, &end, copy.terms[k].scale);
            break;
        }
    }
}

/* Of a place at the head of this loop. A place that gets a value which does not depend on what was there has that of
 * the turn before. */
static struct move move_of_turn(struct search *s, uint32_t symbol, uint32_t loop, unsigned depth)
{
    const uint32_t block = s->symbols[symbol].at;
    struct form next = value_joined(s, s->symbols[symbol].place, block, loop, true, depth);
    unsigned k = 0;
    after_inner_loops(s, &next, loop, depth);
    if (!next.is_known)
        return MOVES_SOMEHOW;
    while (k < next.n_terms && next.terms[k].symbol != symbol)
        k++;
    if (k == next.n_terms)
        return move_of_form(s, &next, loop, depth);
    if (next.terms[k].scale != 1)
        return MOVES_SOMEHOW;
    add_term(&next, symbol, -1);
    if (next.n_terms == 0)
        return (struct move){.kind = NEST_CONSTANT, .bytes = next.constant};
    struct move move = move_of_form(s, &next, loop, depth);
    if (!stays(&move))
        return MOVES_SOMEHOW;
    bool is_one = next.n_terms == 1 && next.constant == 0;
    return (struct move){.kind = NEST_VARIED,
                         .bytes = is_one ? next.terms[0].scale : 0,
                         .symbol = is_one ? next.terms[0].symbol : NO_SYMBOL};
}

/* Of a place that has another value by each way to a block: known where these move alike. */
static struct move move_of_joined(struct search *s, uint8_t place, uint32_t block, uint32_t loop, unsigned depth)
{
    struct move all = MOVES_SOMEHOW;
    for (uint32_t p = s->preds_of[block]; p < s->preds_of[block + 1]; p++) {
        uint32_t from = s->preds[p];
        if (!loops_reach(s->loops, from))
            continue;
        struct form form = value_in(s, place, from, s->first[from + 1], depth);
        struct move move = move_of_form(s, &form, loop, depth);
        if (move.kind != NEST_CONSTANT || (all.kind == NEST_CONSTANT && all.bytes != move.bytes))
            return MOVES_SOMEHOW;
        all = move;
    }
    return all;
}

static struct move move_by_kind(struct search *s, uint32_t symbol, uint32_t block, uint32_t loop, unsigned depth)
{
    const struct symbol *found = &s->symbols[symbol];
    uint8_t place = found->place;
    struct form entry;
    switch (found->kind) {
    case SYMBOL_TURN:
        if (s->loops->loop_of[block] == loop)
            return move_of_turn(s, symbol, loop, depth);
        entry = value_joined(s, place, block, s->loops->loop_of[block], false, depth);
        return move_of_form(s, &entry, loop, depth);
    case SYMBOL_LOAD:
        return move_of_load(s, found->at, loop, depth);
    case SYMBOL_PRODUCT:
        return move_of_product(s, found->at, loop, depth);
    case SYMBOL_JOINED:
        return s->loops->items[loop].is_irreducible ? MOVES_SOMEHOW : move_of_joined(s, place, block, loop, depth);
    default:
        return move_of_other(s, found->at, loop, depth);
    }
}

static struct move move_of_symbol(struct search *s, uint32_t symbol, uint32_t loop, unsigned depth)
{
    const struct symbol *found = &s->symbols[symbol];
    bool is_block = found->kind == SYMBOL_TURN || found->kind == SYMBOL_JOINED;
    if (found->kind == SYMBOL_ENTRY)
        return STAYS;
    uint32_t block = is_block ? found->at : s->cfg->block_of[found->at];
    if (!loops_contain(s->loops, loop, s->loops->loop_of[block])) /* it was made before the loop began */
        return STAYS;
    if (found->is_visited || depth > DEPTH_MAX || s->n_work++ > WORK_MAX)
        return MOVES_SOMEHOW;
    s->symbols[symbol].is_visited = true;
    struct move move = move_by_kind(s, symbol, block, loop, depth + 1);
    s->symbols[symbol].is_visited = false;
    return move;
}

static struct move move_of_form(struct search *s, const struct form *form, uint32_t loop, unsigned depth)
{
    struct move sum = form->is_known ? STAYS : MOVES_SOMEHOW;
    const struct form copy = *form; /* the forms may move */
    for (unsigned k = 0; sum.kind != NEST_UNKNOWN && k < copy.n_terms; k++) {
        struct move move = move_of_symbol(s, copy.terms[k].symbol, loop, depth);
        add_move(&sum, &move, copy.terms[k].scale);
    }
    return sum;
}

/* How many turns the loop takes, by the comparison that a conditional jump out of the block rests on; 0: not known. */
static uint64_t turns_by(struct search *s, uint32_t block, uint32_t loop)
{
    uint32_t test = tested_at(s, block);
    if (test == CFG_NONE)
        return 0;
    struct form tested = result_of(s, test, 0);
    struct move move = move_of_form(s, &tested, loop, 0);
    struct form first = before_loop(s, &tested, loop);
    if (move.kind != NEST_CONSTANT || move.bytes == 0 || !is_number(&first))
        return 0;
    return (uint64_t)llabs((long long)first.constant) / (uint64_t)llabs((long long)move.bytes) + 1;
}

static uint64_t turns_of(struct search *s, uint32_t loop)
{
    const struct cfg *cfg = s->cfg;
    for (size_t e = 0; e < cfg->n_edges; e++) {
        uint64_t turns = is_exit(s, cfg->edges[e], loop) ? turns_by(s, (uint32_t)(cfg->edges[e] >> 32), loop) : 0;
        if (turns)
            return turns;
    }
    return 0;
}

/* --- what a loop walks through --- */

/* Accesses of one loop that differ by constants: of one array, as a rule. */
struct group {
    struct form form; /* of the first one */
    struct move moves[NEST_LEVELS_MAX];
    int64_t offsets[OFFSETS_MAX]; /* [n_offsets] from the first one, all different */
    unsigned n_offsets;
};

/* One innermost loop, the loops around it, and its groups. */
struct walked {
    uint32_t loops[NEST_LEVELS_MAX]; /* [n_levels] innermost first */
    unsigned n_levels;
    uint64_t turns; /* of the innermost one, 0: not known */
    struct group groups[GROUPS_MAX];
    unsigned n_groups;
};

static int compare_offsets(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The step from one place that the group visits to the next: compilers unroll loops, and then several accesses lie
 * within one stride. */
static int64_t step_of(const struct group *group, unsigned level)
{
    int64_t stride = llabs((long long)group->moves[level].bytes), places[OFFSETS_MAX], most = 0;
    if (stride == 0 || stride == INT64_MIN)
        return 0;
    for (unsigned k = 0; k < group->n_offsets; k++)
        places[k] = (group->offsets[k] % stride + stride) % stride;
    qsort(places, group->n_offsets, sizeof *places, compare_offsets);
    for (unsigned k = 0; k < group->n_offsets; k++) {
        int64_t next = k + 1 < group->n_offsets ? places[k + 1] : places[0] + stride;
        most = next - places[k] > most ? next - places[k] : most;
    }
    return most;
}

static bool is_far(const struct group *group, unsigned level)
{
    enum nest_move kind = group->moves[level].kind;
    return kind == NEST_CONSTANT ? step_of(group, level) >= LINE_BYTES : kind != NEST_UNKNOWN;
}

static bool is_near(const struct group *group, unsigned level)
{
    int64_t step = group->moves[level].kind == NEST_CONSTANT ? step_of(group, level) : 0;
    return step > 0 && step < LINE_BYTES;
}

/* How many elements the group visits in a turn of the loop: those of a dense walk that was unrolled. */
static double elements_of(const struct group *group)
{
    return is_near(group, 0) ? (double)llabs((long long)group->moves[0].bytes) / (double)step_of(group, 0) : 1;
}

/* Cache lines that the group needs for each turn of the innermost loop, if that were the loop of this level. */
static double lines_of(const struct group *group, unsigned level)
{
    if (is_near(group, level))
        return (double)llabs((long long)group->moves[level].bytes) / LINE_BYTES;
    bool stays = group->moves[level].kind == NEST_CONSTANT && group->moves[level].bytes == 0;
    return stays ? 0 : elements_of(group);
}

/* How many lines of a walk by large steps are still in the first-level cache when the next such walk begins: fewer
 * where the steps are such that the lines take each other's places. */
static uint64_t lines_kept(const struct group *group)
{
    uint64_t step = (uint64_t)step_of(group, 0), sets = CACHE_SETS;
    if (group->moves[0].kind != NEST_CONSTANT || step % LINE_BYTES)
        return CACHE_LINES;
    for (uint64_t lines = step / LINE_BYTES; sets > 1 && lines % 2 == 0; lines /= 2)
        sets /= 2;
    return sets * CACHE_WAYS;
}

/* Whether the walk is so short that its lines are still there when the loop around it comes back to them: by the loop's
 * turns, or as a further loop moves on by a multiple of it, which makes it a tile. */
static bool is_short(const struct walked *walked, const struct group *group)
{
    uint64_t most = lines_kept(group);
    const struct move *own = &group->moves[0];
    uint64_t places =
        own->kind == NEST_CONSTANT ? (uint64_t)llabs((long long)own->bytes) / (uint64_t)step_of(group, 0) : 1;
    if (walked->turns && walked->turns * places <= most)
        return true;
    for (unsigned level = 1; own->kind <= NEST_VARIED && own->bytes && level < walked->n_levels; level++) {
        const struct move *other = &group->moves[level];
        bool is_same = other->kind == own->kind && (own->kind == NEST_CONSTANT || other->symbol == own->symbol);
        int64_t turns = is_same && own->bytes != -1 ? other->bytes / own->bytes : 0;
        if (turns >= 2 && (uint64_t)turns * places <= most && turns * own->bytes == other->bytes)
            return true;
    }
    return false;
}

/* Whether another loop of the nest, as the innermost one, would make the group's large steps small. */
static bool is_better(const struct walked *walked, const struct group *group, unsigned level)
{
    return is_far(group, 0) && is_near(group, level) && !is_short(walked, group);
}

/* Whether the loops lie beside each other. */
static bool is_beside(const struct loops *loops, uint32_t a, uint32_t b)
{
    return !loops_contain(loops, a, b) && !loops_contain(loops, b, a);
}

/* Whether a nest of its own lies beside the loop in one around it, as the update of the rest of a matrix beside a
 * column that it is updated by: the turns of the outer loop then follow from each other. */
static bool has_nest_beside(const struct loops *loops, uint32_t loop, uint32_t outer)
{
    for (uint32_t at = outer + 1; at < loops->n; at++)
        if (loops_contain(loops, outer, at) && is_beside(loops, at, loop) &&
            is_beside(loops, loops->items[at].parent, loop))
            return true;
    return false;
}

static void judge(const struct loops *loops, const struct walked *walked, struct nest *nest)
{
    double most = WORTH;
    *nest = (struct nest){.outer = CFG_NONE};
    for (unsigned level = 1; level < walked->n_levels; level++) {
        double saved = 0, now = 0;
        bool has_better = false, has_worse = false;
        if (has_nest_beside(loops, walked->loops[0], walked->loops[level]))
            break;
        for (unsigned g = 0; g < walked->n_groups; g++) {
            const struct group *group = &walked->groups[g];
            saved += lines_of(group, 0) - lines_of(group, level);
            now += lines_of(group, 0);
            has_better = has_better || is_better(walked, group, level);
            has_worse = has_worse || (is_near(group, 0) && is_far(group, level));
        }
        if (has_better && saved > most && saved > WORTH_PART * now) {
            *nest = (struct nest){.verdict = NEST_SWAP, .level = (uint8_t)level, .outer = walked->loops[level]};
            most = saved;
        } else if (has_better && has_worse && nest->verdict == NEST_FINE) {
            *nest = (struct nest){.verdict = NEST_TILE, .level = (uint8_t)level, .outer = walked->loops[level]};
        }
    }
}

static struct group *group_of(struct search *s, struct walked *walked, const struct form *form)
{
    struct group *group = walked->groups;
    while (group < walked->groups + walked->n_groups && !has_same_terms(&group->form, form))
        group++;
    if (group == walked->groups + GROUPS_MAX)
        return NULL;
    if (group == walked->groups + walked->n_groups) {
        walked->n_groups++;
        *group = (struct group){.form = *form};
        for (unsigned level = 0; level < walked->n_levels; level++)
            group->moves[level] = move_of_form(s, form, walked->loops[level], 0);
    }
    int64_t offset = plus(form->constant, -group->form.constant);
    for (unsigned k = 0; k < group->n_offsets; k++)
        if (group->offsets[k] == offset)
            return group;
    if (group->n_offsets < OFFSETS_MAX)
        group->offsets[group->n_offsets++] = offset;
    return group;
}

static bool is_walking(const struct search *s, uint32_t insn)
{
    const struct cfg_effect *effect = &s->effects[insn];
    return effect->size_bytes && s->slot[insn] == NO_PLACE && (effect->is_read || effect->is_written);
}

/* Adds the accesses of one loop, and its verdict. */
static bool walk_loop(struct search *s, struct walked *walked, struct nests *nests)
{
    size_t first = nests->n_accesses;
    uint32_t loop = walked->loops[0];
    walked->n_groups = 0;
    walked->turns = turns_of(s, loop);
    for (uint32_t block = 0; block < s->cfg->n_blocks; block++) {
        if (s->loops->loop_of[block] != loop)
            continue;
        for (uint32_t k = s->first[block]; k < s->first[block + 1]; k++) {
            if (!is_walking(s, k))
                continue;
            struct form form = form_of_address(s, k, 0);
            struct group *group = form.is_known ? group_of(s, walked, &form) : NULL;
            if (!vec_reserve(&nests->accesses, &nests->cap_accesses, nests->n_accesses + 1, sizeof *nests->accesses))
                return false;
            nests->accesses[nests->n_accesses++] =
                (struct nest_access){.vaddr = s->cfg->insns[k].vaddr,
                                     .loop = loop,
                                     .group = group ? (uint8_t)(group - walked->groups) : NEST_NO_GROUP};
        }
    }
    struct nest *nest = &nests->of_loop[loop];
    judge(s->loops, walked, nest);
    for (size_t i = first; i < nests->n_accesses; i++) {
        struct nest_access *access = &nests->accesses[i];
        const struct group *group = access->group == NEST_NO_GROUP ? NULL : &walked->groups[access->group];
        access->n_levels = group ? (uint8_t)walked->n_levels : 0;
        for (unsigned level = 0; level < access->n_levels; level++) {
            access->kinds[level] = (uint8_t)group->moves[level].kind;
            access->bytes[level] = group->moves[level].kind == NEST_CONSTANT ? step_of(group, level) : 0;
        }
        access->is_far = group && nest->verdict != NEST_FINE && is_better(walked, group, nest->level);
    }
    return true;
}

/* --- one function --- */

/* The word of the stack frame that a memory operand is, as a place; NO_PLACE for others. */
static uint8_t slot_of(struct search *s, const struct cfg_effect *effect)
{
    unsigned k = 0;
    bool is_slot = (effect->base == CFG_RSP || (effect->base == CFG_RBP && effect->disp < 0)) &&
                   effect->index == CFG_NOWHERE && !effect->is_scattered && effect->size_bytes <= 8 &&
                   effect->size_bytes;
    if (!is_slot)
        return NO_PLACE;
    while (k < s->n_slots && (s->slot_base[k] != effect->base || s->slot_disp[k] != effect->disp))
        k++;
    if (k == SLOTS_MAX)
        return NO_PLACE;
    if (k == s->n_slots) {
        s->slot_base[k] = effect->base;
        s->slot_disp[k] = effect->disp;
        s->n_slots++;
    }
    return (uint8_t)(16 + k);
}

static void decode(struct search *s, const struct code_image *image, const struct cfg_decoder *decoder)
{
    const struct cfg *cfg = s->cfg;
    for (size_t k = 0; k < cfg->n_insns; k++) {
        uint64_t n_bytes = 0, vaddr = cfg->insns[k].vaddr;
        const uint8_t *bytes = code_image_bytes(image, vaddr, &n_bytes);
        if (bytes && n_bytes)
            cfg_decode_effect(decoder, bytes, n_bytes, vaddr, &s->effects[k]);
        s->slot[k] = slot_of(s, &s->effects[k]);
    }
}

static void list_blocks(struct search *s)
{
    const struct cfg *cfg = s->cfg;
    uint32_t block = 0;
    for (uint32_t k = 0; k < cfg->n_insns; k++)
        while (block <= cfg->block_of[k])
            s->first[block++] = k;
    while (block <= cfg->n_blocks)
        s->first[block++] = (uint32_t)cfg->n_insns;
    for (size_t e = 0; e < cfg->n_edges; e++)
        s->preds_of[(uint32_t)cfg->edges[e] + 1]++;
    for (size_t b = 0; b < cfg->n_blocks; b++)
        s->preds_of[b + 1] += s->preds_of[b];
    for (size_t e = cfg->n_edges; e-- > 0;) /* fills each block's from its end, which moves to its beginning */
        s->preds[--s->preds_of[(uint32_t)cfg->edges[e] + 1]] = (uint32_t)(cfg->edges[e] >> 32);
    memmove(s->preds_of, s->preds_of + 1, cfg->n_blocks * sizeof *s->preds_of);
    s->preds_of[cfg->n_blocks] = (uint32_t)cfg->n_edges;
    for (uint32_t k = 0; k < cfg->n_insns; k++) {
        const struct cfg_effect *effect = &s->effects[k];
        uint64_t places = effect->writes;
        places |= effect->to < 16 ? UINT64_C(1) << effect->to : 0;
        places |= effect->is_written && s->slot[k] != NO_PLACE ? UINT64_C(1) << s->slot[k] : 0;
        s->block_writes[cfg->block_of[k]] |= places;
    }
    for (uint32_t b = 0; b < cfg->n_blocks; b++)
        for (uint32_t loop = s->loops->loop_of[b]; loop != CFG_NONE; loop = s->loops->items[loop].parent)
            s->loop_writes[loop] |= s->block_writes[b];
}

static bool search_init(struct search *s, const struct cfg *cfg, const struct loops *loops)
{
    size_t n_blocks = cfg->n_blocks, n_insns = cfg->n_insns;
    *s = (struct search){.cfg = cfg, .loops = loops};
    s->effects = calloc(n_insns + 1, sizeof *s->effects);
    s->slot = calloc(n_insns + 1, 1);
    s->preds_of = calloc(n_blocks + 2, sizeof *s->preds_of);
    s->preds = calloc(cfg->n_edges + 1, sizeof *s->preds);
    s->first = calloc(n_blocks + 2, sizeof *s->first);
    s->block_writes = calloc(n_blocks + 1, sizeof *s->block_writes);
    s->loop_writes = calloc(loops->n + 1, sizeof *s->loop_writes);
    s->at_entry = calloc(n_blocks * PLACES + 1, sizeof *s->at_entry);
    s->of_insn = calloc(n_insns + 1, sizeof *s->of_insn);
    return s->effects && s->slot && s->preds_of && s->preds && s->first && s->block_writes && s->loop_writes &&
           s->at_entry && s->of_insn;
}

static void search_fini(struct search *s)
{
    free(s->effects);
    free(s->slot);
    free(s->preds_of);
    free(s->preds);
    free(s->first);
    free(s->block_writes);
    free(s->loop_writes);
    free(s->at_entry);
    free(s->of_insn);
    free(s->forms);
    free(s->symbols);
    slots_fini(&s->by_key);
}

static int compare_accesses(const void *a, const void *b)
{
    const struct nest_access *x = a, *y = b;
    return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static bool has_inner(const struct loops *loops, uint32_t loop)
{
    for (uint32_t at = loop + 1; at < loops->n; at++)
        if (loops->items[at].parent == loop)
            return true;
    return false;
}

/* Goes through all innermost loops that lie in others. */
static bool walk_loops(struct search *s, struct nests *nests)
{
    bool ok = true;
    struct walked *walked = malloc(sizeof *walked);
    for (uint32_t loop = 0; walked && ok && loop < s->loops->n; loop++) {
        walked->n_levels = 0;
        for (uint32_t at = loop; at != CFG_NONE && walked->n_levels < NEST_LEVELS_MAX; at = s->loops->items[at].parent)
            walked->loops[walked->n_levels++] = at;
        nests->of_loop[loop] = (struct nest){.outer = CFG_NONE};
        if (walked->n_levels > 1 && !s->loops->items[loop].is_irreducible && !has_inner(s->loops, loop))
            ok = walk_loop(s, walked, nests);
    }
    ok = ok && walked;
    free(walked);
    return ok;
}

bool nests_find(struct nests *nests, const struct cfg *cfg, const struct loops *loops, const struct code_image *image,
                const struct cfg_decoder *decoder)
{
    struct search search;
    *nests = (struct nests){.of_loop = calloc(loops->n + 1, sizeof *nests->of_loop), .n_loops = loops->n};
    bool ok = nests->of_loop != NULL;
    if (ok && loops->n && cfg->n_blocks && cfg->n_insns <= INSNS_MAX) {
        ok = search_init(&search, cfg, loops);
        if (ok) {
            decode(&search, image, decoder);
            list_blocks(&search);
            ok = walk_loops(&search, nests);
        }
        search_fini(&search);
    }
    if (nests->n_accesses)
        qsort(nests->accesses, nests->n_accesses, sizeof *nests->accesses, compare_accesses);
    if (!ok)
        nests_fini(nests);
    return ok;
}

void nests_fini(struct nests *nests)
{
    free(nests->accesses);
    free(nests->of_loop);
    *nests = (struct nests){0};
}
