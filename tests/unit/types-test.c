/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of types.h and locals.h: the program reads its own debug information, so that every
 * offset is known from the compiler that laid it out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "structure/types/locals.h"
#include "structure/types/types.h"

typedef double real;
typedef real coordinate;
struct vector {
    coordinate x, y, z;
};
enum colour { RED, GREEN };
union number {
    int whole;
    double fraction;
    char bytes[8];
};
struct particle {
    struct vector position, velocity;
    float mass;
    unsigned low : 3, middle : 5, wide : 20;
    char tag;
    union number value;
    struct {
        short first, second;
    };
    struct particle *next;
    int matrix[3][4];
    enum colour colour;
    int (*call)(int);
};
struct message {
    int length;
    struct vector parts[];
};
static struct particle particles[100];
static _Thread_local volatile struct particle own_particle;
static struct message *volatile message;
static volatile double sink;

static uintptr_t load_bias(void);

static const char *const golden = "struct particle: 152 bytes\n"
                                  "  0 position: struct vector (24)\n"
                                  "  24 velocity: struct vector (24)\n"
                                  "  48 mass: float (4)\n"
                                  "  52 low: unsigned int (4) bits 416+3\n"
                                  "  52 middle: unsigned int (4) bits 419+5\n"
                                  "  53 wide: unsigned int (4) bits 424+20\n"
                                  "  56 tag: char (1)\n"
                                  "  64 value: union number (8)\n"
                                  "  72 -: struct {...} (4)\n"
                                  "  80 next: struct particle * (8)\n"
                                  "  88 matrix: int [3][4] (48)\n"
                                  "  136 colour: enum colour (4)\n"
                                  "  144 call: function * (8)\n";

static int open_self(void **state)
{
    struct error err;
    struct symbols *symbols = NULL;
    if (symbols_open("/proc/self/exe", &symbols, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    *state = symbols;
    return 0;
}

static int close_self(void **state)
{
    symbols_close(*state);
    return 0;
}

static int first_module(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1;
}

static uintptr_t load_bias(void)
{
    uintptr_t bias = 0;
    (void)dl_iterate_phdr(first_module, &bias);
    return bias;
}

static void describe(struct symbols *symbols, uint32_t id, struct buf *out)
{
    char name[200];
    const struct type *type = types_get(symbols, id);
    buf_printf(out, "%s: %llu bytes\n", types_spell(symbols, id, name, sizeof name),
               (unsigned long long)type->size_bytes);
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct type_field *field = &type->fields[i];
        buf_printf(out, "  %llu %s: %s (%llu)", (unsigned long long)field->offset_bytes,
                   field->name ? field->name : "-", types_spell(symbols, field->type, name, sizeof name),
                   (unsigned long long)types_size(symbols, field->type));
        if (field->bit_size)
            buf_printf(out, " bits %u+%u", field->bit_offset, field->bit_size);
        buf_printf(out, "\n");
    }
}

static uintptr_t here(void)
{
    return (uintptr_t)here - load_bias();
}

static void test_structure(void **state)
{
    struct buf out = {0};
    uint32_t id = types_find(*state, here(), "struct particle");
    assert_true(id != 0);
    assert_int_equal(types_size(*state, id), sizeof(struct particle));
    describe(*state, id, &out);
    assert_string_equal(out.data, golden);
    buf_fini(&out);
}

static void expect_path(struct symbols *symbols, const char *type, uint64_t offset, const char *text, const char *path,
                        uint64_t field_offset, uint64_t field_bytes)
{
    struct type_spot spot;
    types_spot(symbols, types_find(symbols, here(), type), offset, text, &spot);
    assert_string_equal(spot.path, path);
    assert_int_equal(spot.kind, strstr(path, "<padding>") ? SPOT_PADDING : SPOT_FIELD);
    assert_int_equal(spot.offset_bytes, field_offset);
    assert_int_equal(spot.size_bytes, field_bytes);
}

static void test_fields(void **state)
{
    expect_path(*state, "particle", 0, NULL, ".position.x", 0, 8);
    expect_path(*state, "particle", 39, NULL, ".velocity.y", 32, 8);
    expect_path(*state, "particle", 48, NULL, ".mass", 48, 4);
    expect_path(*state, "particle", 56, NULL, ".tag", 56, 1);
    expect_path(*state, "particle", 60, NULL, ".<padding>", 60, 1);
    expect_path(*state, "particle", 74, NULL, ".second", 74, 2);
    expect_path(*state, "particle", 88 + 4 * 4 + 2, NULL, ".matrix[][]", 88, 48);
    expect_path(*state, "particle", offsetof(struct particle, call), NULL, ".call", 144, 8);
}

static void test_shared_places(void **state)
{
    expect_path(*state, "particle", 64, NULL, ".value.<whole|fraction|bytes>", 64, 8);
    expect_path(*state, "particle", 64, "p->value.fraction += 1;", ".value.fraction", 64, 8);
    expect_path(*state, "particle", 70, "p->value.bytes[6]", ".value.bytes[]", 64, 8);
    expect_path(*state, "particle", 70, NULL, ".value.<fraction|bytes>", 64, 8);
    expect_path(*state, "particle", 52, NULL, ".<low|middle|wide>", 52, 4);
    expect_path(*state, "particle", 54, NULL, ".wide", 52, 4);
    expect_path(*state, "particle", 52, "n += p->middle;", ".middle", 52, 4);
    expect_path(*state, "particle", 52, "n += p->middle + p->wide;", ".<middle|wide>", 52, 4);
}

static void expect_block(struct symbols *symbols, const char *type, uint64_t block, uint64_t offset, const char *path)
{
    struct type_spot spot;
    types_spot_in_block(symbols, types_find(symbols, here(), type), block, 0, offset, NULL, &spot);
    assert_string_equal(spot.path, path);
}

static void test_blocks(void **state)
{
    expect_block(*state, "struct vector", 2400, 24 * 7 + 16, "[].z");
    expect_block(*state, "struct vector", 24, 8, ".y");
    expect_block(*state, "struct vector", 0, 24 + 8, "[].y");
    expect_block(*state, "struct message", 8 + 24 * 50, 8 + 24 * 11 + 8, ".parts[].y");
    expect_block(*state, "struct message", 8 + 24 * 50, 0, ".length");
    expect_block(*state, "double", 8000, 808, "[]");
    expect_block(*state, "double", 8, 0, "");
    expect_block(*state, "unsigned long", 80, 9, "[]");
}

static void expect_expression(struct symbols *symbols, uintptr_t at, const char *expression, const char *type)
{
    char name[200];
    uint32_t id = types_of_expression(symbols, at, expression);
    assert_string_equal(types_spell(symbols, id, name, sizeof name), type);
}

static __attribute__((noinline)) void with_locals(struct particle *argument, int n)
{
    volatile double local_array[500];
    struct vector volatile several[20];
    for (int i = 0; i < n; i++) {
        local_array[i] = argument[i].mass;
        several[i % 20].y = local_array[i];
    }
    sink = local_array[n / 2] + several[n % 20].y;
}

static void test_expressions(void **state)
{
    uintptr_t at = (uintptr_t)with_locals - load_bias();
    expect_expression(*state, at, "argument", "struct particle *");
    expect_expression(*state, at, "argument->next", "struct particle *");
    expect_expression(*state, at, "argument[n].position", "struct vector");
    expect_expression(*state, at, "*argument", "struct particle");
    expect_expression(*state, at, "particles", "struct particle [100]");
    expect_expression(*state, at, "particles[3].next->value", "union number");
    expect_expression(*state, at, "argument->second", "short int");
    expect_expression(*state, at, "argument->missing", "void");
    expect_expression(*state, at, "nothing", "void");
    expect_expression(*state, at, "argument + 1", "void");
    expect_expression(*state, at, "message", "struct message *");
}

static void test_statics(void **state)
{
    uint64_t start = 0;
    const char *name = NULL;
    char text[200];
    uintptr_t at = (uintptr_t)&particles[7].mass - load_bias();
    uint32_t id = types_of_static(*state, at, false, &start, &name);
    assert_string_equal(types_spell(*state, id, text, sizeof text), "struct particle [100]");
    assert_string_equal(name, "particles");
    assert_int_equal(start, (uintptr_t)particles - load_bias());
    struct type_spot spot;
    types_spot(*state, id, at - start, NULL, &spot);
    assert_string_equal(spot.path, "[].mass");
    own_particle.mass = particles[7].mass;
#ifdef __aarch64__
    print_message("SKIP (part): gcc describes no place of thread-local variables for aarch64\n");
    return;
#endif
    id = types_of_static(*state, 16, true, &start, &name);
    assert_string_equal(name, "own_particle");
    assert_int_equal(types_size(*state, id), sizeof own_particle);
}

/* Distances below the CFA at which a callee sees the arrays of its caller. */
static __attribute__((noinline, no_sanitize("address"))) void frame(volatile char *(*volatile keep)(volatile char *),
                                                                    int64_t distances[3])
{
    volatile struct vector vectors[50];
    volatile char text[200];
    char *cfa = __builtin_dwarf_cfa();
    distances[0] = cfa - (char *)(uintptr_t)keep((volatile char *)&vectors[10].y);
    distances[1] = cfa - (char *)(uintptr_t)keep(text + 33);
    distances[2] = cfa - (char *)(uintptr_t)keep((volatile char *)vectors) - (int64_t)sizeof vectors - 4096;
}

static volatile char *same(volatile char *p)
{
    return p;
}

static void test_locals(void **state)
{
    int64_t distances[3];
    struct local_spot at;
    uintptr_t function = (uintptr_t)frame - load_bias();
    frame(same, distances);
    const struct local *local = locals_at(*state, function, 0, distances[0], &at);
    assert_non_null(local);
    assert_string_equal(local->name, "vectors");
    assert_string_equal(local->function, "frame");
    assert_int_equal(at.offset_bytes, 10 * sizeof(struct vector) + 8);
    struct type_spot spot;
    types_spot(*state, local->type, at.offset_bytes, NULL, &spot);
    assert_string_equal(spot.path, "[].y");
    local = locals_at(*state, function, 0, distances[1], &at);
    assert_non_null(local);
    assert_string_equal(local->name, "text");
    assert_int_equal(at.offset_bytes, 33);
    assert_null(locals_at(*state, function, 0, distances[2], &at));
    assert_null(locals_at(*state, 1, 0, 16, &at));
}

/* The distance from the CFA depends on the call: the address is that of the array at one of the possible alignments. */
static __attribute__((noinline, no_sanitize("address"))) void
realigned_frame(volatile char *(*volatile keep)(volatile char *), int64_t distances[3])
{
    volatile struct vector lined_up[50] __attribute__((aligned(128)));
    volatile char *first = keep((volatile char *)lined_up);
    char *cfa = __builtin_dwarf_cfa();
    distances[0] = cfa - (char *)(uintptr_t)(first + 500);
    distances[1] = cfa - (char *)(uintptr_t)(first + sizeof lined_up - 1);
    distances[2] = cfa - (char *)(uintptr_t)first + 4096;
}

static __attribute__((noinline)) void call_deeper(unsigned depth, int64_t distances[3])
{
    volatile char more[16];
    if (depth == 0)
        realigned_frame(same, distances);
    else
        call_deeper(depth - 1, distances);
    (void)same(more);
}

static void test_realigned(void **state)
{
#ifdef __x86_64__
    uintptr_t function = (uintptr_t)realigned_frame - load_bias();
    for (unsigned depth = 0; depth < 9; depth++) {
        int64_t distances[3];
        struct local_spot at;
        call_deeper(depth, distances);
        const struct local *local = locals_at(*state, function, 0, distances[0], &at);
        assert_non_null(local);
        assert_string_equal(local->name, "lined_up");
        assert_in_range(500, at.offset_bytes, at.offset_bytes + at.slack_bytes);
        assert_in_range(at.slack_bytes, 0, 112);
        assert_non_null(locals_at(*state, function, 0, distances[1], &at));
        assert_null(locals_at(*state, function, 0, distances[2], &at));
    }
#else
    (void)state;
    (void)call_deeper;
    skip();
#endif
}

/* Numbers that are needed behind calls lie in the frame meanwhile, one after the other in the same place. */
static __attribute__((noinline)) double in_turns(double (*volatile next)(void))
{
    double first = next();
    double sum = next();
    sum += next() * first;
    double second = next();
    sum += next();
    return sum * second;
}

static double one(void)
{
    return 1;
}

static const struct local_place *listed_place(const struct local *local)
{
    for (size_t i = 0; i < local->n_places; i++)
        if (local->places[i].kind == LOCAL_FRAME && local->places[i].is_listed)
            return &local->places[i];
    return NULL;
}

static void test_places_in_turns(void **state)
{
    const struct local *locals = NULL;
    uintptr_t function = (uintptr_t)in_turns - load_bias();
    assert_true(in_turns(one) > 0);
    size_t n = locals_of_function(*state, function, &locals);
    for (size_t i = 0; i < n; i++) {
        const struct local_place *place = listed_place(&locals[i]);
        uint64_t pc = place ? (place->low + place->high) / 2 : 0;
        struct local_spot at;
        if (!place || !locals[i].name)
            continue;
        const struct local *found = locals_at(*state, function, pc, -place->offset, &at);
        assert_ptr_equal(found, &locals[i]);
        assert_int_equal(at.offset_bytes, 0);
        assert_null(locals_at(*state, function, function + 1, -place->offset, &at));
        assert_true(at.is_spill);
        return;
    }
    print_message("no variable here lies in the frame for a part of the code\n");
}

static void test_parameters(void **state)
{
    const struct local *locals = NULL;
    size_t n = locals_of_function(*state, (uintptr_t)with_locals - load_bias(), &locals);
    size_t n_parameters = 0, n_registers = 0;
    for (size_t i = 0; i < n; i++) {
        n_parameters += (locals[i].flags & LOCAL_IS_PARAMETER) != 0;
        for (size_t j = 0; j < locals[i].n_places; j++) {
            assert_true(locals[i].places[j].low < locals[i].places[j].high);
            n_registers += locals[i].places[j].kind == LOCAL_REGISTER;
        }
    }
    assert_int_equal(n_parameters, 2);
    assert_true(n_registers >= 1);
    with_locals(particles, 2);
}

static void test_nothing(void **state)
{
    struct type_spot spot;
    char text[8];
    assert_int_equal(types_find(*state, here(), "struct missing"), 0);
    assert_int_equal(types_find(*state, here(), "double *"), 0);
    assert_int_equal(types_get(*state, 0)->kind, TYPE_UNKNOWN);
    assert_int_equal(types_get(*state, UINT32_MAX)->kind, TYPE_UNKNOWN);
    assert_string_equal(types_spell(*state, 0, text, sizeof text), "void");
    types_spot(*state, 0, 8, NULL, &spot);
    assert_int_equal(spot.kind, SPOT_NONE);
    types_spot(*state, types_find(*state, here(), "struct vector"), 24, NULL, &spot);
    assert_int_equal(spot.kind, SPOT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),  cmocka_unit_test(test_fields),      cmocka_unit_test(test_shared_places),
        cmocka_unit_test(test_blocks),     cmocka_unit_test(test_expressions), cmocka_unit_test(test_statics),
        cmocka_unit_test(test_locals),     cmocka_unit_test(test_realigned),   cmocka_unit_test(test_places_in_turns),
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_nothing),
    };
    message = NULL;
    own_particle.mass = 1;
    particles[0].mass = own_particle.mass;
    return cmocka_run_group_tests(tests, open_self, close_self);
}
