/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which an address is classified, with everything that resolve-sig.c asks replaced by a small world in
 * which one address can lie in several places at once, as it does in real programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "arena/arena.h"
#include "runtime/objmap/objmap.h"
#include "runtime/objmap/small.h"
#include "runtime/own/own-call.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/sample.h"

#define ADDRESS 0x7f0000012340u

/* What holds ADDRESS in the world of a test. */
static struct {
    bool in_tls, in_block, in_pool, is_resizing, in_module, has_table, in_arena, in_other_stack, in_mapping, in_small;
    bool has_notes;
    long brk;
    struct loadmap_module module;
    struct modtab_header table; /* with the one symbol that follows it */
    struct modtab_sym symbol;
} world;

const struct loadmap_module *loadmap_find_tls_sig(uintptr_t thread_pointer, uintptr_t address, uint64_t *offset)
{
    *offset = address - thread_pointer;
    return world.in_tls ? &world.module : NULL;
}

const struct loadmap_module *loadmap_find_sig(uintptr_t address)
{
    assert_int_equal(address, ADDRESS);
    return world.in_module ? &world.module : NULL;
}

const struct modtab_header *loadmap_table_sig(const struct loadmap_module *module)
{
    assert_ptr_equal(module, &world.module);
    return world.has_table ? &world.table : NULL;
}

bool objmap_find_sig(unsigned reader, uintptr_t address, struct objmap_block *found)
{
    bool is_pool = address >= OBJMAP_POOL_LAYER;
    (void)reader;
    if (is_pool ? !world.in_pool : !world.in_block)
        return false;
    found->start = address - 8;
    found->end = address + 8;
    found->var = var_key(world.in_mapping ? VAR_MMAP : VAR_HEAP, 0, is_pool ? 78 : 77);
    atomic_init(&found->flags, world.is_resizing ? OBJMAP_RESIZING : 0);
    return true;
}

bool late_find_sig(uintptr_t address, struct resolved *found)
{
    (void)address;
    (void)found;
    return false;
}

bool small_find_sig(uintptr_t address, uintptr_t *start, unsigned *id)
{
    *start = address - 24;
    *id = 5;
    return world.in_small;
}

uint32_t small_ref_sig(unsigned id)
{
    return 500 + id;
}

const struct small_sites *small_sites_sig(void)
{
    static const struct small_sites sites;
    return world.has_notes ? &sites : NULL;
}

void small_recheck_sig(void)
{
}

void arena_range_sig(uintptr_t *low, uintptr_t *high)
{
    *low = world.in_arena ? ADDRESS - 4096 : 4096;
    *high = world.in_arena ? ADDRESS + 4096 : 4096;
}

bool objmap_has_pools_sig(void)
{
    return world.in_pool;
}

uint32_t thread_of_stack_sig(uintptr_t address)
{
    (void)address;
    return world.in_other_stack ? 99 : 0;
}

/* A sandbox that keeps the program break to itself. */
long own_call_sig(long number, ...)
{
    return number == SYS_brk && world.brk ? world.brk : -1;
}

/* A thread on whose stack ADDRESS lies when on_stack. */
static struct thread_state *make_self(bool on_stack)
{
    static struct thread_state self;
    self = (struct thread_state){.ref = 11, .thread_pointer = ADDRESS - 64};
    self.bounds.low = on_stack ? ADDRESS - 4096 : 4096;
    self.bounds.high = on_stack ? ADDRESS + 4096 : 8192;
    return &self;
}

static enum var_kind kind_of(bool on_stack, enum resolve_result expected)
{
    static const struct thread_frame frames[] = {{.cfa = ADDRESS - 16, .node = 21}, {.cfa = ADDRESS + 32, .node = 22}};
    struct resolved found = {0};
    assert_int_equal(resolve_address_sig(make_self(on_stack), ADDRESS, frames, 2, &found), expected);
    return var_key_kind(found.var);
}

static int begin(void **state)
{
    (void)state;
    world = (typeof(world)){.module = {.id = 3, .table_id = 8}};
    world.table.n_syms = 1;
    world.table.syms_offset = (uint64_t)((const char *)&world.symbol - (const char *)&world.table);
    world.symbol = (struct modtab_sym){.vaddr = ADDRESS - 100, .size_bytes = 200};
    return 0;
}

static void test_tls_before_stack_and_heap(void **state)
{
    (void)state;
    world.in_tls = world.in_block = true; /* it lies in the thread's mapping, which somebody allocated */
    assert_int_equal(kind_of(true, RESOLVE_NAMED), VAR_TLS);
}

static void test_heap_before_stack(void **state)
{
    (void)state;
    world.in_block = world.in_other_stack = true; /* stacks of coroutines are allocated */
    assert_int_equal(kind_of(true, RESOLVE_NAMED), VAR_HEAP);
}

static void test_pool_block_before_its_slab(void **state)
{
    (void)state;
    struct resolved found = {0};
    world.in_pool = world.in_block = world.is_resizing = true;
    assert_int_equal(resolve_address_sig(make_self(false), ADDRESS, NULL, 0, &found), RESOLVE_NAMED);
    assert_int_equal(found.var, var_key(VAR_HEAP, 0, 78));
    assert_int_equal(found.offset, 8);
}

static void test_resizing_block_waits(void **state)
{
    (void)state;
    world.in_block = world.is_resizing = true;
    assert_int_equal(kind_of(true, RESOLVE_LATER), VAR_NONE);
}

static void test_static_before_stack_and_file(void **state)
{
    (void)state;
    struct resolved found = {0};
    world.in_module = world.has_table = true;
    assert_int_equal(kind_of(true, RESOLVE_NAMED), VAR_STATIC);
    assert_int_equal(resolve_address_sig(make_self(true), ADDRESS, NULL, 0, &found), RESOLVE_NAMED);
    assert_int_equal(found.offset, 100);
    world.symbol.size_bytes = 100; /* just below */
    assert_int_equal(kind_of(true, RESOLVE_UNKNOWN), VAR_UNKNOWN);
    world.has_table = false; /* never another class only because the table is late */
    assert_int_equal(kind_of(true, RESOLVE_LATER), VAR_NONE);
}

static void test_own_stack_before_other_stack(void **state)
{
    (void)state;
    struct resolved found = {0};
    const struct thread_frame frames[] = {{.cfa = ADDRESS - 16, .node = 21}, {.cfa = ADDRESS + 32, .node = 22}};
    world.in_other_stack = world.in_arena = true;
    assert_int_equal(resolve_address_sig(make_self(true), ADDRESS, frames, 2, &found), RESOLVE_NAMED);
    assert_int_equal(found.var, var_key(VAR_STACK, 0, 22)); /* the frame whose area holds it */
    assert_int_equal(found.offset, 32);                     /* below its CFA */
    assert_int_equal(resolve_address_sig(make_self(true), ADDRESS, frames, 0, &found), RESOLVE_NAMED);
    assert_int_equal(found.var, var_key(VAR_STACK_OTHER, 0, 11)); /* no call path: this thread's stack as a whole */
    assert_int_equal(found.offset, RESOLVE_NO_OFFSET);
}

static void test_own_memory_and_other_stack(void **state)
{
    (void)state;
    world.in_other_stack = true;
    assert_int_equal(kind_of(false, RESOLVE_NAMED), VAR_STACK_OTHER);
    world.in_arena = true;
    assert_int_equal(kind_of(false, RESOLVE_OWN), VAR_NONE);
}

static void test_small_blocks_last(void **state)
{
    (void)state;
    struct resolved found = {0};
    struct thread_state *self = make_self(false);
    world.in_small = true;
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_NAMED);
    assert_int_equal(found.var, var_key(VAR_SMALL, 0, 505));
    assert_int_equal(found.offset, 24);
    self->in_allocator = 1; /* what was there before may be part of a larger block by now */
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_LATER);
    world.in_other_stack = true;
    assert_int_equal(kind_of(false, RESOLVE_NAMED), VAR_STACK_OTHER);
    world.in_block = true; /* a record is of now, a note may be of before */
    assert_int_equal(kind_of(false, RESOLVE_NAMED), VAR_HEAP);
    world.in_mapping = true; /* but what an allocator hands out of its mapping is nearer */
    assert_int_equal(kind_of(false, RESOLVE_NAMED), VAR_SMALL);
    world.in_small = false;
    assert_int_equal(kind_of(false, RESOLVE_NAMED), VAR_MMAP);
}

/* Where small blocks are noted, what was not noted below the break is none. */
static void test_unnoted_is_not_small(void **state)
{
    (void)state;
    struct resolved found = {0};
    struct thread_state *self = make_self(false);
    world.brk = ADDRESS + 4096;
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_UNKNOWN);
    assert_int_equal(found.var, var_key(VAR_UNKNOWN, 0, UNKNOWN_SMALL_BLOCK));
    world.has_notes = true;
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_UNKNOWN);
    assert_int_equal(found.var, var_key(VAR_UNKNOWN, 0, UNKNOWN_NO_BLOCK));
}

static void test_rest_has_reasons(void **state)
{
    (void)state;
    struct resolved found = {0};
    struct thread_state *self = make_self(false);
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_UNKNOWN);
    assert_int_equal(found.var, var_key(VAR_UNKNOWN, 0, UNKNOWN_NO_BLOCK));
    self->in_allocator = 1; /* its result is not known yet */
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_LATER);
    assert_int_equal(resolve_address_sig(self, 16, NULL, 0, &found), RESOLVE_UNKNOWN);
    assert_int_equal(found.var, var_key(VAR_UNKNOWN, 0, UNKNOWN_NULL));
    assert_int_equal(resolve_address_sig(self, UINTPTR_MAX - 64, NULL, 0, &found), RESOLVE_UNKNOWN);
    assert_int_equal(found.var, var_key(VAR_UNKNOWN, 0, UNKNOWN_KERNEL));
    world.in_module = world.module.is_vdso = true;
    assert_int_equal(resolve_address_sig(self, ADDRESS, NULL, 0, &found), RESOLVE_UNKNOWN);
    assert_int_equal(found.var, var_key(VAR_UNKNOWN, 0, UNKNOWN_VDSO));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_tls_before_stack_and_heap, begin),
        cmocka_unit_test_setup(test_heap_before_stack, begin),
        cmocka_unit_test_setup(test_pool_block_before_its_slab, begin),
        cmocka_unit_test_setup(test_resizing_block_waits, begin),
        cmocka_unit_test_setup(test_static_before_stack_and_file, begin),
        cmocka_unit_test_setup(test_own_stack_before_other_stack, begin),
        cmocka_unit_test_setup(test_own_memory_and_other_stack, begin),
        cmocka_unit_test_setup(test_small_blocks_last, begin),
        cmocka_unit_test_setup(test_rest_has_reasons, begin),
        cmocka_unit_test_setup(test_unnoted_is_not_small, begin), /* last: the break is remembered */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
