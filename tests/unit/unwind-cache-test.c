/* SPDX-License-Identifier: BSD-3-Clause */
/* The unwinder's cache under threads that keep replacing each other's rules: every thread has its own tables for the
 * same code addresses, so a rule that is mixed from two of them shows as a wrong frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "runtime/unwind/unwind.h"

#define N_THREADS 3
#define N_FUNCS 16
#define FUNC_BYTES 64
#define WALKS 1000000

/* Where a return address is, in words from the canonical frame address, and an instruction that calls. */
#if defined(__aarch64__)
enum { RETURN_SLOT = -2, CALL_BYTES = 4, CALL = 0x94000000 };
#elif defined(__powerpc64__)
enum { RETURN_SLOT = 2, CALL_BYTES = 4, CALL = 0x48000001 };
#else
enum { RETURN_SLOT = -1, CALL_BYTES = 5, CALL = 0xe8 };
#endif

static uint8_t code[N_FUNCS * FUNC_BYTES];

/* One thread's view: frames of words * 8 bytes. */
struct world {
    struct {
        struct modtab_header header;
        struct modtab_func funcs[N_FUNCS];
        struct modtab_row rows[N_FUNCS];
    } table;
    struct unwind_module module;
    uint64_t stack[512];
    struct unwind_path path;
    unsigned words;
    uint32_t generation;
    uint64_t n_wrong;
};

static struct world worlds[N_THREADS];
static pthread_barrier_t barrier;
static _Thread_local struct world *mine;

static const struct unwind_module *find(uintptr_t pc)
{
    return pc >= mine->module.start && pc < mine->module.end ? &mine->module : NULL;
}

static void set_up_world(struct world *w, unsigned words)
{
    struct modtab_header *h = &w->table.header;
    w->words = words;
    w->generation = words;
    h->end_vaddr = sizeof code;
    h->n_funcs = h->n_rows = N_FUNCS;
    h->funcs_offset = (uint64_t)((char *)w->table.funcs - (char *)h);
    h->rows_offset = (uint64_t)((char *)w->table.rows - (char *)h);
    w->module = (struct unwind_module){(uintptr_t)code, (uintptr_t)code + sizeof code, (uintptr_t)code, h, words};
    for (unsigned f = 0; f < N_FUNCS; f++) {
        w->table.funcs[f] = (struct modtab_func){f * FUNC_BYTES, (f + 1) * FUNC_BYTES};
        w->table.rows[f] = (struct modtab_row){.pc = f * FUNC_BYTES,
                                               .kind = f ? MODTAB_CFA_RSP : MODTAB_END,
                                               .cfa_offset = (int32_t)words * 8,
                                               .rbx_offset = RETURN_SLOT,
                                               .flags = RETURN_SLOT == -1 ? 0 : MODTAB_LINK_SAVED};
    }
    for (unsigned f = N_FUNCS - 1; f > 0; f--) {
        uint64_t *cfa = &w->stack[(N_FUNCS - f) * words];
        cfa[-(int)words] = (uintptr_t)cfa; /* the back chain of POWER */
        cfa[RETURN_SLOT] = (uintptr_t)code + (f - 1) * FUNC_BYTES + 16;
    }
}

static bool is_right(const struct world *w)
{
    if (w->path.stop != UNWIND_COMPLETE || w->path.n_frames != N_FUNCS)
        return false;
    for (unsigned i = 0; i + 1 < N_FUNCS; i++)
        if (w->path.frames[i].cfa != (uintptr_t)&w->stack[(i + 1) * w->words] || w->path.frames[i].module != &w->module)
            return false;
    return true;
}

static void *run(void *argument)
{
    mine = argument;
    struct unwind_start start = {.pc = (uintptr_t)code + (N_FUNCS - 1) * FUNC_BYTES + 16,
                                 .known = (uint64_t)1 << UNWIND_SP};
    struct unwind_bounds bounds = {.low = (uintptr_t)mine->stack, .high = (uintptr_t)(mine->stack + 512)};
    start.gpr[UNWIND_SP] = (uintptr_t)mine->stack;
    (void)pthread_barrier_wait(&barrier);
    for (int i = 0; i < WALKS; i++) {
        mine->path.n_frames = 0;
        (void)unwind_walk_sig(&start, &bounds, find, mine->generation, &mine->path);
        mine->n_wrong += !is_right(mine);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[N_THREADS];
    uint32_t call = CALL;
    for (size_t i = 16; i < sizeof code; i += 16)
        memcpy(code + i - CALL_BYTES, &call, 4);
    for (unsigned i = 0; i < N_THREADS; i++)
        set_up_world(&worlds[i], 3 + 2 * i);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, N_THREADS), 0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, &worlds[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(worlds[i].n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
