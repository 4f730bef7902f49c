/* SPDX-License-Identifier: BSD-3-Clause */
/* Value numbering along one path. A value is a number with an offset; copies and additions of constants keep the
 * number, sums are remembered as definitions, and words of the stack frame as slots, so that an address survives as
 * long as anything holds its parts. */
#include "fnbounds/recipe-make.h"

#define N_REGS 64
#define N_SUMS 16
#define N_SLOTS 8
#define N_MASKS 8
#define PREFIX_MAX 16
#define CHASE_STEPS 64
#define NO_VALUE UINT32_MAX

struct value {
    uint32_t id;
    int64_t offset;
};

/* result = left + right * scale + constant; left may be NO_VALUE, and right may count with its lower 32 bits only */
struct sum {
    uint32_t result, left, right;
    int8_t scale;
    bool is_extended;
    int64_t constant;
};

/* The 64-bit word at base + offset holds value. */
struct slot {
    struct value address, value;
};

/* result = left & right */
struct mask {
    uint32_t result;
    struct value left, right;
};

struct machine {
    struct value regs[N_REGS];
    struct mask masks[N_MASKS];
    struct sum sums[N_SUMS];
    struct slot slots[N_SLOTS];
    unsigned n_sums, n_slots, n_masks;
    uint32_t next_id;
};

/* An address in values: base + index * scale + disp, ids NO_VALUE when absent. */
struct address {
    struct value base, index;
    uint32_t loaded; /* id of the value that the instruction loaded, NO_VALUE when it is no 64-bit load */
};

static void machine_init(struct machine *m)
{
    for (unsigned r = 0; r < N_REGS; r++)
        m->regs[r] = (struct value){r, 0};
    m->next_id = N_REGS;
    m->n_sums = m->n_slots = m->n_masks = 0;
}

static struct value fresh(struct machine *m)
{
    return (struct value){m->next_id++, 0};
}

static struct value add_sum(struct machine *m, struct value left, struct value right, int8_t scale, int32_t value)
{
    struct value result = fresh(m);
    if (m->n_sums < N_SUMS)
        m->sums[m->n_sums++] = (struct sum){.result = result.id,
                                            .left = left.id,
                                            .right = right.id,
                                            .scale = scale,
                                            .constant = left.offset + right.offset * scale + value};
    return result;
}

static struct value add_product(struct machine *m, struct value right, const struct insn_effect *effect)
{
    struct value result = add_sum(m, (struct value){NO_VALUE, 0}, right, effect->scale, effect->value);
    if (m->n_sums && m->sums[m->n_sums - 1].result == result.id)
        m->sums[m->n_sums - 1].is_extended = effect->kind == EFFECT_EXTEND;
    return result;
}

static struct value add_mask(struct machine *m, struct value left, struct value right)
{
    struct value result = fresh(m);
    if (m->n_masks < N_MASKS)
        m->masks[m->n_masks++] = (struct mask){result.id, left, right};
    return result;
}

/* True for an operand whose word can be a slot: stack pointer or frame pointer plus a constant. */
static bool is_frame_word(const struct recipe_operand *operand)
{
    return (operand->base == RECIPE_RSP || operand->base == RECIPE_RBP) && !operand->scale &&
           !(operand->flags & (RECIPE_OP_FS | RECIPE_OP_GS | RECIPE_OP_ADDR32));
}

static struct value address_of(const struct machine *m, const struct recipe_operand *operand)
{
    struct value base = m->regs[operand->base];
    base.offset += operand->disp;
    return base;
}

static void forget_slots(struct machine *m, struct value address, unsigned size_bytes)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->n_slots; i++) {
        struct value at = m->slots[i].address;
        bool overlaps =
            at.id == address.id && at.offset < address.offset + size_bytes && address.offset < at.offset + 8;
        if (!overlaps)
            m->slots[n++] = m->slots[i];
    }
    m->n_slots = n;
}

static void remember_slot(struct machine *m, struct value address, struct value value)
{
    forget_slots(m, address, 8);
    if (m->n_slots < N_SLOTS)
        m->slots[m->n_slots++] = (struct slot){address, value};
}

static struct value load_value(struct machine *m, const struct insn *insn)
{
    if (!is_frame_word(&insn->operands[0]))
        return fresh(m);
    struct value address = address_of(m, &insn->operands[0]);
    for (unsigned i = 0; i < m->n_slots; i++)
        if (m->slots[i].address.id == address.id && m->slots[i].address.offset == address.offset)
            return m->slots[i].value;
    struct value value = fresh(m);
    remember_slot(m, address, value);
    return value;
}

static struct value effect_value(struct machine *m, const struct insn *insn, const struct insn_effect *effect)
{
    struct value value;
    switch (effect->kind) {
    case EFFECT_ADD:
        value = m->regs[effect->reg];
        if (effect->source != RECIPE_NO_REG)
            return add_sum(m, value, m->regs[effect->source], effect->scale, effect->value);
        value.offset += effect->value;
        return value;
    case EFFECT_COPY:
        value = m->regs[effect->source];
        value.offset += effect->value;
        return value;
    case EFFECT_CONSTANT:
    case EFFECT_NARROW:
        return fresh(m);
    case EFFECT_SUM:
        return add_sum(m, m->regs[effect->source], m->regs[effect->other], effect->scale, effect->value);
    case EFFECT_MASK:
        return add_mask(m, m->regs[effect->reg], m->regs[effect->source]);
    case EFFECT_SCALE:
    case EFFECT_EXTEND:
        return add_product(m, m->regs[effect->other], effect);
    default:
        return load_value(m, insn);
    }
}

static void note_stores(struct machine *m, const struct insn *insn)
{
    for (unsigned o = 0; o < insn->n_operands; o++) {
        const struct recipe_operand *operand = &insn->operands[o];
        if (operand->flags & RECIPE_OP_WRITE && operand->base < 16 && !operand->scale)
            forget_slots(m, address_of(m, operand), operand->size_bytes ? operand->size_bytes : 8);
    }
    if (insn->kind == INSN_CALL || insn->kind == INSN_REP)
        m->n_slots = 0;
    for (unsigned e = 0; e < insn->n_effects; e++)
        if (insn->effects[e].kind == EFFECT_STORE && is_frame_word(&insn->operands[0]))
            remember_slot(m, address_of(m, &insn->operands[0]), m->regs[insn->effects[e].source]);
}

static void machine_step(struct machine *m, const struct insn *insn)
{
    struct value values[2];
    uint64_t known = 0;
    note_stores(m, insn);
    for (unsigned e = 0; e < insn->n_effects; e++)
        if (insn->effects[e].kind != EFFECT_STORE)
            values[e] = effect_value(m, insn, &insn->effects[e]);
    for (unsigned e = 0; e < insn->n_effects; e++) {
        if (insn->effects[e].kind == EFFECT_STORE)
            continue;
        m->regs[insn->effects[e].reg] = values[e];
        known |= INSN_BIT(insn->effects[e].reg);
    }
    uint64_t lost = insn->writes & (INSN_GPRS | INSN_VECS) & ~known;
    for (unsigned r = 0; lost; r++, lost >>= 1)
        if (lost & 1)
            m->regs[r] = fresh(m);
}

static uint8_t find_reg(const struct machine *m, uint32_t id)
{
    for (uint8_t r = 0; r < N_REGS; r++)
        if (m->regs[r].id == id && (r < 16 || r >= RECIPE_VEC))
            return r;
    return RECIPE_NO_REG;
}

/* Finds a general register for the value and adds its constant difference to *disp. */
static bool use_reg(const struct machine *m, struct value value, int64_t scale, uint8_t *reg, int64_t *disp)
{
    *reg = find_reg(m, value.id);
    if (*reg == RECIPE_NO_REG)
        return false;
    *disp += (value.offset - m->regs[*reg].offset) * scale;
    return true;
}

/* A general register with exactly this value. */
static uint8_t find_same(const struct machine *m, struct value value)
{
    for (uint8_t r = 0; r < 16; r++)
        if (m->regs[r].id == value.id && m->regs[r].offset == value.offset)
            return r;
    return RECIPE_NO_REG;
}

/* Index that was made by a mask, where both of its parts still are in registers: a load that overwrites it needs it no
 * more. */
static bool use_mask(const struct machine *m, struct value value, int64_t scale, struct recipe_operand *out,
                     int64_t *disp)
{
    for (unsigned i = 0; i < m->n_masks; i++) {
        const struct mask *mask = &m->masks[i];
        uint8_t left = find_same(m, mask->left), right = find_same(m, mask->right);
        if (mask->result != value.id || left == RECIPE_NO_REG || right == RECIPE_NO_REG)
            continue;
        out->index = left | RECIPE_INDEX_MASKED;
        out->offset = right;
        *disp += value.offset * scale;
        return true;
    }
    return false;
}

static const struct sum *find_product(const struct machine *m, uint32_t id)
{
    for (unsigned i = 0; i < m->n_sums; i++)
        if (m->sums[i].result == id && m->sums[i].left == NO_VALUE)
            return &m->sums[i];
    return NULL;
}

/* Index value in a register, or as a multiple of one: sets index, scale and INDEX32 of *out. */
static bool use_index(const struct machine *m, struct value value, struct recipe_operand *out, int64_t *disp)
{
    const struct sum *product;
    int64_t scale = out->scale, rest = *disp;
    uint8_t flags = 0;
    while (!use_reg(m, value, scale, &out->index, &rest)) {
        if (!flags && use_mask(m, value, scale, out, &rest))
            break;
        product = find_product(m, value.id);
        if (!product || flags || scale * product->scale > INT8_MAX)
            return false;
        rest += scale * (value.offset + product->constant);
        scale *= product->scale;
        flags = product->is_extended ? RECIPE_OP_INDEX32 : 0;
        value = (struct value){product->right, 0};
    }
    if (flags && out->index >= RECIPE_VEC)
        return false;
    out->scale = (uint8_t)scale;
    out->flags |= flags;
    *disp = rest;
    return true;
}

/* Base value in a word of the frame; disp is then added after the load. */
static bool use_slot(const struct machine *m, uint32_t id, struct recipe_operand *out, int64_t *disp)
{
    bool is_masked = out->scale && out->index & RECIPE_INDEX_MASKED; /* then there is no room */
    for (unsigned i = 0; i < m->n_slots && !is_masked; i++) {
        const struct slot *slot = &m->slots[i];
        uint8_t reg = slot->value.id == id ? find_reg(m, slot->address.id) : RECIPE_NO_REG;
        if (reg != RECIPE_RSP && reg != RECIPE_RBP)
            continue;
        int64_t at = slot->address.offset - m->regs[reg].offset;
        *disp -= slot->value.offset;
        if (at != (int32_t)at || *disp != (int16_t)*disp)
            return false;
        out->base = reg | RECIPE_BASE_DEREF;
        out->offset = (int16_t)*disp;
        *disp = at;
        return true;
    }
    return false;
}

static uint8_t scale_code(int scale)
{
    return (uint8_t)(scale < 0 ? -scale | RECIPE_SCALE_NEGATIVE : scale);
}

/* Base value from a sum one of whose parts is lost, or that is itself lost; needs the index for the other part. */
static bool use_sum(const struct machine *m, const struct sum *sum, struct value value, struct recipe_operand *out,
                    int64_t *disp)
{
    bool is_result = sum->result == value.id;
    int scale = is_result ? sum->scale : -sum->scale;
    int64_t rest = *disp + value.offset + (is_result ? sum->constant : -sum->constant);
    struct value part = {is_result ? sum->left : sum->result, 0};
    uint8_t index;
    if (out->scale || !use_reg(m, (struct value){sum->right, 0}, scale, &index, &rest) || index >= 16)
        return false;
    if (!use_reg(m, part, 1, &out->base, &rest) && !use_slot(m, part.id, out, &rest))
        return false;
    out->index = index;
    out->scale = scale_code(scale);
    *disp = rest;
    return true;
}

/* The same where the other part is lost or there is no room for it: a pointer that has moved on by a stride stands for
 * the one before. */
static bool use_moved(const struct machine *m, const struct sum *sum, struct value value, struct recipe_operand *out,
                      int64_t *disp)
{
    int64_t rest = *disp + value.offset - sum->constant;
    if (sum->left != value.id || !use_reg(m, (struct value){sum->result, 0}, 1, &out->base, &rest))
        return false;
    out->flags |= RECIPE_OP_INEXACT;
    *disp = rest;
    return true;
}

static bool use_sums(const struct machine *m, struct value value, struct recipe_operand *out, int64_t *disp)
{
    for (unsigned i = 0; i < m->n_sums; i++)
        if ((m->sums[i].result == value.id || m->sums[i].left == value.id) && use_sum(m, &m->sums[i], value, out, disp))
            return true;
    for (unsigned i = 0; i < m->n_sums; i++)
        if (use_moved(m, &m->sums[i], value, out, disp))
            return true;
    return false;
}

static bool use_base(const struct machine *m, struct value value, struct recipe_operand *out, int64_t *disp)
{
    if (use_reg(m, value, 1, &out->base, disp))
        return true;
    int64_t behind = *disp + value.offset;
    if (use_slot(m, value.id, out, &behind)) {
        *disp = behind;
        return true;
    }
    return use_sums(m, value, out, disp);
}

/* The load from which register reg at instruction i gets its value, through copies and constants; INSN_NONE when it is
 * something else. Conditional moves count as keeping the register. */
static uint32_t defining_load(const struct flow *flow, uint32_t i, uint8_t reg)
{
    for (unsigned step = 0; step < CHASE_STEPS; step++) {
        i = flow->insns[i].pred;
        if (i == INSN_NONE)
            return INSN_NONE;
        const struct insn *insn = &flow->insns[i];
        if (!(insn->writes & INSN_BIT(reg)))
            continue;
        const struct insn_effect *effect = NULL;
        for (unsigned e = 0; e < insn->n_effects; e++)
            if (insn->effects[e].kind != EFFECT_STORE && insn->effects[e].reg == reg)
                effect = &insn->effects[e];
        if (!effect && insn->reads & INSN_BIT(reg) && insn->reads & INSN_FLAGS && !insn->n_operands)
            continue;
        if (!effect)
            return INSN_NONE;
        if (effect->kind == EFFECT_LOAD)
            return i;
        if (effect->kind == EFFECT_COPY)
            reg = effect->source;
        else if (effect->kind != EFFECT_ADD || effect->source != RECIPE_NO_REG)
            return INSN_NONE;
    }
    return INSN_NONE;
}

/* True when load i takes its base from itself, through other loads of the same field: compilers unroll such loops. */
static bool is_link(const struct flow *flow, uint32_t i)
{
    int32_t disp = flow->insns[i].operands[0].disp;
    uint32_t at = i;
    for (unsigned step = 0; step < CHASE_STEPS; step++) {
        const struct recipe_operand *operand = &flow->insns[at].operands[0];
        if (operand->base >= 16 || operand->scale || operand->disp != disp)
            return false;
        at = defining_load(flow, at, operand->base);
        if (at == INSN_NONE || at == i)
            return at == i;
    }
    return false;
}

/* True when load i follows links that it has read itself: its base comes from itself, or from a load that does. */
static bool is_chase(const struct flow *flow, uint32_t i)
{
    const struct recipe_operand *operand = &flow->insns[i].operands[0];
    if (is_link(flow, i))
        return true;
    uint32_t from = operand->base < 16 ? defining_load(flow, i, operand->base) : INSN_NONE;
    return from != INSN_NONE && is_link(flow, from);
}

static bool finish(struct recipe_operand *out, int64_t disp)
{
    out->disp = (int32_t)disp;
    return disp == (int32_t)disp;
}

/* The link that a chasing load has just read stands for the node it was read from. */
static bool use_proxy(const struct flow *flow, uint32_t i, const struct machine *m, const struct address *address,
                      const struct recipe_operand *operand, struct recipe_operand *out)
{
    int64_t disp = operand->disp;
    if (address->loaded == NO_VALUE || operand->scale || !is_chase(flow, i))
        return false;
    *out = *operand;
    out->flags |= RECIPE_OP_INEXACT;
    return use_reg(m, (struct value){address->loaded, 0}, 1, &out->base, &disp) && finish(out, disp);
}

/* Array element whose index is gone: the start of the array. With scale 1 either part may be the array; the one that is
 * left is taken, and when it is no address the sample counts as lost. */
static void drop_index(struct recipe_operand *out, int64_t *disp)
{
    out->index = RECIPE_NO_REG;
    out->scale = 0;
    out->offset = 0;
    out->flags = (uint8_t)((out->flags & ~RECIPE_OP_INDEX32) | RECIPE_OP_INEXACT);
    if (out->base != RECIPE_NO_REG && *disp < 0)
        *disp = 0;
}

static bool solve(const struct flow *flow, uint32_t i, const struct machine *m, const struct address *address,
                  const struct recipe_operand *operand, uint32_t pc, struct recipe_operand *out)
{
    int64_t disp = operand->disp;
    *out = *operand;
    if (operand->base == RECIPE_RIP)
        disp += (int64_t)flow->insns[i].pc - pc;
    bool has_index = !operand->scale || use_index(m, address->index, out, &disp);
    if (!has_index)
        drop_index(out, &disp);
    if (operand->base >= 16 || use_base(m, address->base, out, &disp))
        return finish(out, disp);
    if (has_index && operand->scale == 1 && out->scale == 1 && out->index < RECIPE_VEC) {
        out->base = out->index;
        drop_index(out, &disp);
        return finish(out, disp);
    }
    return use_proxy(flow, i, m, address, operand, out);
}

/* Walks to the start of the straight line before instruction i, so that copies made there are known. */
static uint32_t line_start(const struct flow *flow, uint32_t i)
{
    for (unsigned n = 0; n < PREFIX_MAX && i; n++, i--)
        if (flow_is_target(flow, i) || !flow_falls_through(flow, i - 1) || flow->insns[i - 1].kind == INSN_CALL)
            break;
    return i;
}

bool value_solve(const struct flow *flow, const struct value_path *path, unsigned which, uint32_t pc,
                 struct recipe_operand *out)
{
    struct machine m;
    struct address address = {{NO_VALUE, 0}, {NO_VALUE, 0}, NO_VALUE};
    uint32_t i = path->insns[0];
    const struct insn *insn = &flow->insns[i];
    const struct recipe_operand *operand = &insn->operands[which];
    machine_init(&m);
    for (uint32_t before = line_start(flow, i); before < i; before++)
        machine_step(&m, &flow->insns[before]);
    if (operand->base < 16)
        address.base = m.regs[operand->base];
    if (operand->scale)
        address.index = m.regs[operand->index];
    machine_step(&m, insn);
    if (insn->n_effects == 1 && insn->effects[0].kind == EFFECT_LOAD)
        address.loaded = m.regs[insn->effects[0].reg].id;
    for (unsigned n = 1; n < path->n; n++)
        machine_step(&m, &flow->insns[path->insns[n]]);
    return solve(flow, i, &m, &address, operand, pc, out);
}
