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

/* result = left & right, or, where field is not 0, that of left (recipe_field_unpack) */
struct mask {
    uint32_t result;
    struct value left, right;
    int16_t field;
};

/* What registers and words of the frame hold at one point of the path. */
struct known_values {
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

static void known_values_init(struct known_values *known)
{
    for (unsigned r = 0; r < N_REGS; r++)
        known->regs[r] = (struct value){r, 0};
    known->next_id = N_REGS;
    known->n_sums = known->n_slots = known->n_masks = 0;
}

static struct value fresh(struct known_values *known)
{
    return (struct value){known->next_id++, 0};
}

static struct value add_sum(struct known_values *known, struct value left, struct value right, int8_t scale,
                            int32_t value)
{
    struct value result = fresh(known);
    if (known->n_sums < N_SUMS)
        known->sums[known->n_sums++] = (struct sum){.result = result.id,
                                                    .left = left.id,
                                                    .right = right.id,
                                                    .scale = scale,
                                                    .constant = left.offset + right.offset * scale + value};
    return result;
}

static struct value add_product(struct known_values *known, struct value right, const struct insn_effect *effect)
{
    struct value result = add_sum(known, (struct value){NO_VALUE, 0}, right, effect->scale, effect->value);
    if (known->n_sums && known->sums[known->n_sums - 1].result == result.id)
        known->sums[known->n_sums - 1].is_extended = effect->kind == EFFECT_EXTEND;
    return result;
}

static struct value add_mask(struct known_values *known, struct value left, struct value right)
{
    struct value result = fresh(known);
    if (known->n_masks < N_MASKS)
        known->masks[known->n_masks++] = (struct mask){.result = result.id, .left = left, .right = right};
    return result;
}

/* The field of a register that is the outer field of its inner one; false where it is none. */
static bool field_within(struct recipe_field inner, struct recipe_field outer, struct recipe_field *both)
{
    unsigned moved = inner.is_shifted ? inner.first : 0; /* by which the bits lie lower in the inner one */
    unsigned first = outer.first + moved, end = outer.first + outer.n_bits + moved;
    if (first < inner.first)
        first = inner.first;
    if (end > inner.first + inner.n_bits)
        end = inner.first + inner.n_bits;
    unsigned lowered = moved + (outer.is_shifted ? outer.first : 0);
    if (first >= end || (lowered && lowered != first))
        return false;
    *both = (struct recipe_field){first, end - first, lowered != 0};
    return true;
}

static const struct sum *find_product(const struct known_values *known, uint32_t id)
{
    for (unsigned i = 0; i < known->n_sums; i++)
        if (known->sums[i].result == id && known->sums[i].left == NO_VALUE)
            return &known->sums[i];
    return NULL;
}

static const struct mask *find_mask(const struct known_values *known, uint32_t id)
{
    for (unsigned i = 0; i < known->n_masks; i++)
        if (known->masks[i].result == id)
            return &known->masks[i];
    return NULL;
}

/* A field of the lower half of a register, or of a field, is one of that register. */
static struct value add_field(struct known_values *known, struct value from, struct recipe_field field)
{
    struct value result = fresh(known);
    const struct mask *mask = from.offset == 0 ? find_mask(known, from.id) : NULL;
    if (mask && mask->field && field_within(recipe_field_unpack(mask->field), field, &field))
        from = mask->left;
    const struct sum *half = from.offset == 0 ? find_product(known, from.id) : NULL;
    if (half && half->is_extended && field.first + field.n_bits <= 32)
        from = (struct value){half->right, half->constant};
    if (known->n_masks < N_MASKS)
        known->masks[known->n_masks++] =
            (struct mask){.result = result.id, .left = from, .field = recipe_field_pack(field)};
    return result;
}

/* True for an operand whose word can be a slot: stack pointer or frame pointer plus a constant. */
static bool is_frame_word(const struct recipe_operand *operand)
{
    return (operand->base == RECIPE_RSP || operand->base == RECIPE_RBP) && !operand->scale &&
           !(operand->flags & (RECIPE_OP_FS | RECIPE_OP_GS | RECIPE_OP_ADDR32));
}

static struct value address_of(const struct known_values *known, const struct recipe_operand *operand)
{
    struct value base = known->regs[operand->base];
    base.offset += operand->disp;
    return base;
}

static void forget_slots(struct known_values *known, struct value address, unsigned size_bytes)
{
    unsigned n = 0;
    for (unsigned i = 0; i < known->n_slots; i++) {
        struct value at = known->slots[i].address;
        bool overlaps =
            at.id == address.id && at.offset < address.offset + size_bytes && address.offset < at.offset + 8;
        if (!overlaps)
            known->slots[n++] = known->slots[i];
    }
    known->n_slots = n;
}

static void remember_slot(struct known_values *known, struct value address, struct value value)
{
    forget_slots(known, address, 8);
    if (known->n_slots < N_SLOTS)
        known->slots[known->n_slots++] = (struct slot){address, value};
}

static struct value load_value(struct known_values *known, const struct insn *insn)
{
    if (!is_frame_word(&insn->operands[0]))
        return fresh(known);
    struct value address = address_of(known, &insn->operands[0]);
    for (unsigned i = 0; i < known->n_slots; i++)
        if (known->slots[i].address.id == address.id && known->slots[i].address.offset == address.offset)
            return known->slots[i].value;
    struct value value = fresh(known);
    remember_slot(known, address, value);
    return value;
}

static struct value effect_value(struct known_values *known, const struct insn *insn, const struct insn_effect *effect)
{
    struct value value;
    switch (effect->kind) {
    case EFFECT_ADD:
        value = known->regs[effect->reg];
        if (effect->source != RECIPE_NO_REG)
            return add_sum(known, value, known->regs[effect->source], effect->scale, effect->value);
        value.offset += effect->value;
        return value;
    case EFFECT_COPY:
        value = known->regs[effect->source];
        value.offset += effect->value;
        return value;
    case EFFECT_CONSTANT:
    case EFFECT_NARROW:
        return fresh(known);
    case EFFECT_SUM:
        return add_sum(known, known->regs[effect->source], known->regs[effect->other], effect->scale, effect->value);
    case EFFECT_MASK:
        return add_mask(known, known->regs[effect->reg], known->regs[effect->source]);
    case EFFECT_FIELD:
        return add_field(known, known->regs[effect->source], recipe_field_unpack((int16_t)effect->value));
    case EFFECT_SCALE:
    case EFFECT_EXTEND:
        return add_product(known, known->regs[effect->other], effect);
    default:
        return load_value(known, insn);
    }
}

static void note_stores(struct known_values *known, const struct insn *insn)
{
    for (unsigned o = 0; o < insn->n_operands; o++) {
        const struct recipe_operand *operand = &insn->operands[o];
        if (operand->flags & RECIPE_OP_WRITE && operand->base < 16 && !operand->scale)
            forget_slots(known, address_of(known, operand), operand->size_bytes ? operand->size_bytes : 8);
    }
    if (insn->kind == INSN_CALL || insn->kind == INSN_REP)
        known->n_slots = 0;
    for (unsigned e = 0; e < insn->n_effects; e++)
        if (insn->effects[e].kind == EFFECT_STORE && is_frame_word(&insn->operands[0]))
            remember_slot(known, address_of(known, &insn->operands[0]), known->regs[insn->effects[e].source]);
}

static void apply_insn(struct known_values *known, const struct insn *insn)
{
    struct value values[2];
    uint64_t followed = 0;
    note_stores(known, insn);
    for (unsigned e = 0; e < insn->n_effects; e++)
        if (insn->effects[e].kind != EFFECT_STORE)
            values[e] = effect_value(known, insn, &insn->effects[e]);
    for (unsigned e = 0; e < insn->n_effects; e++) {
        if (insn->effects[e].kind == EFFECT_STORE)
            continue;
        known->regs[insn->effects[e].reg] = values[e];
        followed |= INSN_BIT(insn->effects[e].reg);
    }
    uint64_t lost = insn->writes & (INSN_GPRS | INSN_VECS) & ~followed;
    for (unsigned r = 0; lost; r++, lost >>= 1)
        if (lost & 1)
            known->regs[r] = fresh(known);
}

static uint8_t find_reg(const struct known_values *known, uint32_t id)
{
    for (uint8_t r = 0; r < N_REGS; r++)
        if (known->regs[r].id == id && (r < 16 || r >= RECIPE_VEC))
            return r;
    return RECIPE_NO_REG;
}

/* Finds a general register for the value and adds its constant difference to *disp. */
static bool use_reg(const struct known_values *known, struct value value, int64_t scale, uint8_t *reg, int64_t *disp)
{
    *reg = find_reg(known, value.id);
    if (*reg == RECIPE_NO_REG)
        return false;
    *disp += (value.offset - known->regs[*reg].offset) * scale;
    return true;
}

/* A general register with exactly this value. */
static uint8_t find_same(const struct known_values *known, struct value value)
{
    for (uint8_t r = 0; r < 16; r++)
        if (known->regs[r].id == value.id && known->regs[r].offset == value.offset)
            return r;
    return RECIPE_NO_REG;
}

/* Index that was made by a mask, where both of its parts still are in registers: a load that overwrites it needs it no
 * more. */
static bool use_mask(const struct known_values *known, struct value value, int64_t scale, struct recipe_operand *out,
                     int64_t *disp)
{
    const struct mask *mask = find_mask(known, value.id);
    uint8_t left = mask ? find_same(known, mask->left) : RECIPE_NO_REG;
    uint8_t right = mask && !mask->field ? find_same(known, mask->right) : 0;
    if (left == RECIPE_NO_REG || right == RECIPE_NO_REG)
        return false;
    out->index = left | RECIPE_INDEX_MASKED;
    out->offset = mask->field ? mask->field : right;
    *disp += value.offset * scale;
    return true;
}

/* Index value in a register, or as a multiple of one: sets index, scale and INDEX32 of *out. */
static bool use_index(const struct known_values *known, struct value value, struct recipe_operand *out, int64_t *disp)
{
    const struct sum *product;
    int64_t scale = out->scale, rest = *disp;
    uint8_t flags = 0;
    while (!use_reg(known, value, scale, &out->index, &rest)) {
        if (!flags && use_mask(known, value, scale, out, &rest))
            break;
        product = find_product(known, value.id);
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
static bool use_slot(const struct known_values *known, uint32_t id, struct recipe_operand *out, int64_t *disp)
{
    bool is_masked = out->scale && out->index & RECIPE_INDEX_MASKED; /* then there is no room */
    for (unsigned i = 0; i < known->n_slots && !is_masked; i++) {
        const struct slot *slot = &known->slots[i];
        uint8_t reg = slot->value.id == id ? find_reg(known, slot->address.id) : RECIPE_NO_REG;
        if (reg != RECIPE_RSP && reg != RECIPE_RBP)
            continue;
        int64_t at = slot->address.offset - known->regs[reg].offset;
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

/* Base value that is the sum of a register and of what was made by a mask. */
static bool use_masked_sum(const struct known_values *known, const struct sum *sum, struct value value,
                           struct recipe_operand *out, int64_t *disp)
{
    for (int swapped = 0; swapped < 2 && !out->scale && (!swapped || sum->scale == 1); swapped++) {
        struct recipe_operand trial = *out;
        int64_t rest = *disp + value.offset + sum->constant;
        struct value masked = {swapped ? sum->left : sum->right, 0}, other = {swapped ? sum->right : sum->left, 0};
        if (sum->scale < 1 || !use_mask(known, masked, sum->scale, &trial, &rest) ||
            !use_reg(known, other, 1, &trial.base, &rest) || trial.base >= 16)
            continue;
        trial.scale = (uint8_t)sum->scale;
        *out = trial;
        *disp = rest;
        return true;
    }
    return false;
}

/* Base value from a sum one of whose parts is lost, or that is itself lost; needs the index for the other part. */
static bool use_sum(const struct known_values *known, const struct sum *sum, struct value value,
                    struct recipe_operand *out, int64_t *disp)
{
    bool is_result = sum->result == value.id;
    int scale = is_result ? sum->scale : -sum->scale;
    int64_t rest = *disp + value.offset + (is_result ? sum->constant : -sum->constant);
    struct value part = {is_result ? sum->left : sum->result, 0};
    uint8_t index;
    if (out->scale || !use_reg(known, (struct value){sum->right, 0}, scale, &index, &rest) || index >= 16)
        return false;
    if (!use_reg(known, part, 1, &out->base, &rest) && !use_slot(known, part.id, out, &rest))
        return false;
    out->index = index;
    out->scale = scale_code(scale);
    *disp = rest;
    return true;
}

/* The same where the other part is lost or there is no room for it: a pointer that has moved on by a stride stands for
 * the one before. */
static bool use_moved(const struct known_values *known, const struct sum *sum, struct value value,
                      struct recipe_operand *out, int64_t *disp)
{
    int64_t rest = *disp + value.offset - sum->constant;
    if (sum->left != value.id || !use_reg(known, (struct value){sum->result, 0}, 1, &out->base, &rest))
        return false;
    out->flags |= RECIPE_OP_INEXACT;
    *disp = rest;
    return true;
}

/* Array element whose address was a sum, and its index is gone: the start of the array, see drop_index. */
static bool use_start(const struct known_values *known, const struct sum *sum, struct recipe_operand *out,
                      int64_t *disp)
{
    int64_t rest = *disp + sum->constant;
    bool is_found = !out->scale && sum->left != NO_VALUE &&
                    (use_reg(known, (struct value){sum->left, 0}, 1, &out->base, &rest) ||
                     (sum->scale == 1 && use_reg(known, (struct value){sum->right, 0}, 1, &out->base, &rest)));
    if (!is_found || out->base >= 16)
        return false;
    out->flags |= RECIPE_OP_INEXACT;
    *disp = rest < 0 ? 0 : rest;
    return true;
}

static bool use_sums(const struct known_values *known, struct value value, struct recipe_operand *out, int64_t *disp)
{
    for (unsigned i = 0; i < known->n_sums; i++)
        if ((known->sums[i].result == value.id || known->sums[i].left == value.id) &&
            use_sum(known, &known->sums[i], value, out, disp))
            return true;
    for (unsigned i = 0; i < known->n_sums; i++)
        if (known->sums[i].result == value.id && use_masked_sum(known, &known->sums[i], value, out, disp))
            return true;
    for (unsigned i = 0; i < known->n_sums; i++)
        if (use_moved(known, &known->sums[i], value, out, disp))
            return true;
    for (unsigned i = 0; i < known->n_sums; i++)
        if (known->sums[i].result == value.id && use_start(known, &known->sums[i], out, disp))
            return true;
    return false;
}

static bool use_base(const struct known_values *known, struct value value, struct recipe_operand *out, int64_t *disp)
{
    if (use_reg(known, value, 1, &out->base, disp))
        return true;
    int64_t behind = *disp + value.offset;
    if (use_slot(known, value.id, out, &behind)) {
        *disp = behind;
        return true;
    }
    return use_sums(known, value, out, disp);
}

/* The load from which register reg at instruction i gets its value, through copies and constants; INSN_NONE when it is
 * something else. Conditional moves count as keeping the register. */
static uint32_t defining_load(const struct flow *flow, uint32_t i, uint8_t reg)
{
    for (unsigned step = 0; step < CHASE_STEPS; step++) {
        i = flow_pred(flow, i);
        if (i == INSN_NONE)
            return INSN_NONE;
        const struct insn *insn = flow_insn(flow, i);
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
    int32_t disp = flow_insn(flow, i)->operands[0].disp;
    uint32_t at = i;
    for (unsigned step = 0; step < CHASE_STEPS; step++) {
        const struct recipe_operand *operand = &flow_insn(flow, at)->operands[0];
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
    const struct recipe_operand *operand = &flow_insn(flow, i)->operands[0];
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
static bool use_proxy(const struct flow *flow, uint32_t i, const struct known_values *known,
                      const struct address *address, const struct recipe_operand *operand, struct recipe_operand *out)
{
    int64_t disp = operand->disp;
    if (address->loaded == NO_VALUE || operand->scale || !is_chase(flow, i))
        return false;
    *out = *operand;
    out->flags |= RECIPE_OP_INEXACT;
    return use_reg(known, (struct value){address->loaded, 0}, 1, &out->base, &disp) && finish(out, disp);
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

static bool solve(const struct flow *flow, uint32_t i, const struct known_values *known, const struct address *address,
                  const struct recipe_operand *operand, uint32_t pc, struct recipe_operand *out)
{
    int64_t disp = operand->disp;
    *out = *operand;
    if (operand->base == RECIPE_RIP)
        disp += (int64_t)flow->insns[i].pc - pc;
    bool has_index = !operand->scale || use_index(known, address->index, out, &disp);
    if (!has_index)
        drop_index(out, &disp);
    if (operand->base >= 16 || use_base(known, address->base, out, &disp))
        return finish(out, disp);
    if (has_index && operand->scale == 1 && out->scale == 1 && out->index < RECIPE_VEC) {
        out->base = out->index;
        drop_index(out, &disp);
        return finish(out, disp);
    }
    return use_proxy(flow, i, known, address, operand, out);
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
    struct known_values known;
    struct address address = {{NO_VALUE, 0}, {NO_VALUE, 0}, NO_VALUE};
    uint32_t i = path->insns[0];
    const struct insn *insn = flow_insn(flow, i);
    const struct recipe_operand *operand = &insn->operands[which];
    known_values_init(&known);
    for (uint32_t before = line_start(flow, i); before < i; before++)
        apply_insn(&known, flow_insn(flow, before));
    if (operand->base < 16)
        address.base = known.regs[operand->base];
    if (operand->scale)
        address.index = known.regs[operand->index];
    apply_insn(&known, insn);
    if (insn->n_effects == 1 && insn->effects[0].kind == EFFECT_LOAD)
        address.loaded = known.regs[insn->effects[0].reg].id;
    for (unsigned n = 1; n < path->n; n++)
        apply_insn(&known, flow_insn(flow, path->insns[n]));
    return solve(flow, i, &known, &address, operand, pc, out);
}
