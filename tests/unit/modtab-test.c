/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of fnbounds/modtab-cache.h and the table maker, on ELF files that the test compiles itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fnbounds/modtab-cache.h"

static struct {
    char dir[64];
    bool has_compiler;
} test;

static const char source[] =
    "#include <stdlib.h>\n"
    "int exported_array[300] = {1};\n"
    "extern int alias_array[300] __attribute__((alias(\"exported_array\")));\n"
    "static char hidden_bytes[5000];\n"
    "int common_block[64] __attribute__((common));\n"
    "__thread int thread_counter[10];\n"
    "__thread char thread_init[3] = {1, 2, 3};\n"
    "__attribute__((noinline)) int inner(int *p, int n) { int s = 0;"
    " for (int i = 0; i < n; i++) s += p[i] + thread_counter[i % 10]; return s; }\n"
    "__attribute__((noinline)) int outer(int n) { int *p = __builtin_alloca(n * 4 + 16);"
    " p[0] = n; hidden_bytes[n]++; return inner(p, n) + common_block[n] + thread_init[0]; }\n"
    "int main(int argc, char **argv) { (void)argv; return outer(argc) + exported_array[argc] + "
    "(int)(long)getenv(\"X\"); }\n";

static const char *in_dir(const char *name)
{
    static char path[4][160];
    static int next;
    next = (next + 1) % 4;
    (void)snprintf(path[next], sizeof path[next], "%s/%s", test.dir, name);
    return path[next];
}

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
    char command[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return system(command) == 0;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(test.dir, "/tmp/modtab-test-XXXXXX");
    if (!mkdtemp(test.dir))
        return -1;
    FILE *file = fopen(in_dir("a.c"), "w");
    if (!file)
        return -1;
    (void)fputs(source, file);
    (void)fclose(file);
    const char *d = test.dir;
    test.has_compiler = run("cd %s && cc -O2 -pie -fPIE a.c -o pie -Wl,--build-id && cc -O2 -no-pie a.c -o fixed && "
                            "cc -O2 -shared -fPIC -Wl,-soname,liba.so.1 a.c -o liba.so && strip -o stripped pie && "
                            "strip -o lib-stripped.so liba.so",
                            d);
    if (!test.has_compiler)
        print_message("SKIP: no C compiler to make the ELF files with\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)run("rm -rf %s", test.dir);
    return 0;
}

static const struct modtab_header *make(const char *name)
{
    struct error err = {0};
    uint64_t id = 0;
    const struct modtab_header *table = NULL;
    if (!test.has_compiler)
        skip();
    if (modtab_make(in_dir(name), in_dir("cache"), &id, &err) != 0)
        fail_msg("%s", err.text);
    if (modtab_map(in_dir("cache"), id, &table, &err) != 0)
        fail_msg("%s", err.text);
    assert_null(modtab_check_code_sig(table));
    return table;
}

static const struct modtab_sym *find_sym(const struct modtab_header *t, const char *name, bool is_tls)
{
    const struct modtab_sym *syms = is_tls ? modtab_tls_syms(t) : modtab_syms(t);
    uint64_t n = is_tls ? t->n_tls_syms : t->n_syms;
    for (uint64_t i = 0; i < n; i++)
        if (strcmp(modtab_string(t, syms[i].name), name) == 0)
            return &syms[i];
    return NULL;
}

static void check_symbols(const struct modtab_header *t)
{
    const struct modtab_sym *sym = find_sym(t, "alias_array", false);
    assert_non_null(sym);
    assert_int_equal(sym->size_bytes, 1200);
    assert_int_equal(sym->kind, MODTAB_SYM_OBJECT);
    assert_null(find_sym(t, "exported_array", false));
    assert_int_equal(modtab_find_sym(modtab_syms(t), t->n_syms, sym->vaddr + 1199), sym - modtab_syms(t));
    sym = find_sym(t, "hidden_bytes", false);
    assert_non_null(sym);
    assert_int_equal(sym->size_bytes, 5000);
    sym = find_sym(t, "common_block", false);
    assert_non_null(sym);
    assert_int_equal(sym->size_bytes, 256);
    sym = find_sym(t, "thread_counter", true);
    assert_non_null(sym);
    assert_int_equal(sym->size_bytes, 40);
    assert_int_equal(sym->kind, MODTAB_SYM_TLS);
    assert_true(sym->vaddr + 40 <= t->tls_bytes);
    assert_null(find_sym(t, "thread_counter", false));
    assert_true(t->has_symtab);
}

/* Every function that unwind information covers has a row, and the first one says: nothing pushed yet. */
static void check_rows(const struct modtab_header *t)
{
    const struct modtab_func *funcs = modtab_funcs(t);
    uint64_t n_plain = 0;
    assert_true(t->n_funcs >= 5);
    assert_true(t->n_rows > 10);
    for (uint64_t i = 0; i < t->n_funcs; i++) {
        const struct modtab_row *row = modtab_find_row(t, t->base_vaddr + funcs[i].start);
        assert_non_null(row);
        assert_int_equal(modtab_find_func(t, t->base_vaddr + funcs[i].start), i);
        assert_int_equal(modtab_find_func(t, t->base_vaddr + funcs[i].end - 1), i);
        n_plain += row->kind == MODTAB_CFA_RSP && row->cfa_offset == 8;
    }
    assert_true(n_plain >= 4);
    assert_null(modtab_find_row(t, t->end_vaddr));
    assert_null(modtab_find_row(t, t->base_vaddr - 1));
    assert_int_equal(modtab_find_func(t, t->end_vaddr + ((uint64_t)1 << 32)), -1);
}

static uint64_t count_rows(const struct modtab_header *t, enum modtab_row_kind kind)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < t->n_rows; i++)
        n += modtab_rows(t)[i].kind == kind;
    return n;
}

static void test_pie(void **state)
{
    (void)state;
    const struct modtab_header *t = make("pie");
    check_symbols(t);
    check_rows(t);
    assert_int_equal(t->is_fixed, 0);
    assert_int_equal(t->base_vaddr, 0);
    assert_int_equal(t->build_id_bytes, 20);
    assert_int_equal(t->id, modtab_id_of_build_id(t->build_id, 20));
#ifdef __x86_64__
    assert_true(count_rows(t, MODTAB_CFA_RBP) >= 1); /* outer calls alloca */
    assert_true(count_rows(t, MODTAB_END) >= 1);     /* _start */
    assert_true(count_rows(t, MODTAB_CFA_PLT) >= 1);
#endif
    assert_int_equal(count_rows(t, MODTAB_BAD), 0);
    modtab_unmap(t);
}

static void test_fixed(void **state)
{
    (void)state;
    const struct modtab_header *t = make("fixed");
    check_symbols(t);
    check_rows(t);
    assert_int_equal(t->is_fixed, 1);
    assert_true(t->base_vaddr > 0);
    modtab_unmap(t);
}

static void test_shared_library(void **state)
{
    (void)state;
    const struct modtab_header *t = make("liba.so");
    check_symbols(t);
    check_rows(t);
    modtab_unmap(t);
}

static void test_stripped(void **state)
{
    (void)state;
    const struct modtab_header *t = make("pie");
    uint64_t n_funcs = t->n_funcs;
    modtab_unmap(t);
    t = make("stripped");
    assert_int_equal(t->has_symtab, 1); /* the better table of the same build id is kept */
    modtab_unmap(t);
    (void)run("rm -f %s/*.lmt", in_dir("cache"));
    t = make("stripped");
    check_rows(t);
    assert_int_equal(t->has_symtab, 0);
    assert_null(find_sym(t, "hidden_bytes", false));
    const struct modtab_sym *region = find_sym(t, "stripped .bss", false);
    assert_non_null(region);
    assert_int_equal(region->kind, MODTAB_SYM_REGION);
    assert_true(region->size_bytes >= 5000);
    assert_true(t->n_funcs + 4 >= n_funcs); /* all but the unnamed ones without unwind information */
    modtab_unmap(t);
    t = make("pie"); /* same build id, more symbols: made again */
    assert_int_equal(t->has_symtab, 1);
    modtab_unmap(t);
    t = make("lib-stripped.so");
    assert_non_null(find_sym(t, "liba.so.1 .bss", false));
    assert_non_null(find_sym(t, "alias_array", false)); /* exported: in .dynsym */
    modtab_unmap(t);
}

static void test_id_without_build_id(void **state)
{
    (void)state;
    if (!test.has_compiler || !run("cp %s %s", in_dir("fixed"), in_dir("copy")) ||
        !run("objcopy --remove-section .note.gnu.build-id %s 2>/dev/null", in_dir("copy")))
        skip();
    struct stat st;
    const struct modtab_header *t = make("copy");
    assert_int_equal(stat(in_dir("copy"), &st), 0);
    assert_int_equal(t->build_id_bytes, 0);
    assert_int_equal(t->id,
                     modtab_id_of_file(st.st_ino, (uint64_t)st.st_size,
                                       (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec));
    modtab_unmap(t);
}

static void test_vdso(void **state)
{
    (void)state;
    struct error err = {0};
    uint64_t id;
    const struct modtab_header *t;
    if (modtab_make(MODTAB_VDSO, in_dir("cache"), &id, &err) != 0) {
        print_message("SKIP: %s\n", err.text);
        skip();
    }
    assert_int_equal(modtab_map(in_dir("cache"), id, &t, &err), 0);
    assert_true(t->n_funcs > 1);
    assert_string_equal(t->path, MODTAB_VDSO);
    modtab_unmap(t);
}

static void test_ids(void **state)
{
    (void)state;
    const uint8_t id[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, zero[20] = {0};
    assert_int_equal(modtab_id_of_build_id(id, 20), 0x0102030405060708);
    assert_int_equal(modtab_id_of_build_id(zero, 20), 1);
    assert_int_not_equal(modtab_id_of_build_id(id, 4), modtab_id_of_build_id(id, 5));
    assert_int_not_equal(modtab_id_of_file(7, 1, 2), modtab_id_of_file(7, 2, 2));
    assert_int_not_equal(modtab_id_of_file(7, 1, 2), modtab_id_of_file(8, 1, 2));
}

static void put(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Damages the table at one place or length; it must be refused and made again. */
static void check_damage(const char *path, uint64_t id, const char *good, size_t n_good, size_t at, size_t n)
{
    struct error err = {0};
    const struct modtab_header *t = NULL;
    char *bad = malloc(n_good);
    assert_non_null(bad);
    memcpy(bad, good, n_good);
    for (size_t i = at; i < n_good && i < at + 8; i++)
        bad[i] = (char)~bad[i];
    (void)unlink(path);
    put(path, bad, n);
    free(bad);
    assert_int_equal(modtab_map(in_dir("cache"), id, &t, &err), ERR_FORMAT);
    assert_null(t);
    assert_non_null(strstr(err.text, ".lmt"));
    t = make("pie");
    assert_int_equal(t->id, id);
    modtab_unmap(t);
}

static void test_damaged_tables(void **state)
{
    (void)state;
    char path[256];
    const struct modtab_header *t = make("pie");
    uint64_t id = t->id, n = t->file_bytes;
    char *good = malloc(n);
    assert_non_null(good);
    memcpy(good, t, n);
    modtab_unmap(t);
    assert_int_equal(modtab_cache_path(path, sizeof path, in_dir("cache"), id, NULL), 0);
    const struct modtab_header *h = (const struct modtab_header *)(const void *)good;
    const size_t places[] = {0,
                             offsetof(struct modtab_header, version),
                             offsetof(struct modtab_header, file_bytes),
                             offsetof(struct modtab_header, id),
                             offsetof(struct modtab_header, rows_offset),
                             offsetof(struct modtab_header, n_rows),
                             offsetof(struct modtab_header, n_syms),
                             offsetof(struct modtab_header, strings_bytes),
                             h->syms_offset + offsetof(struct modtab_sym, size_bytes),
                             h->syms_offset + offsetof(struct modtab_sym, name),
                             n - 8};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        check_damage(path, id, good, n, places[i], n);
    for (size_t length = 0; length < n; length += n / 7 + 1)
        check_damage(path, id, good, n, n, length);
    free(good);
}

/* Damaged rows do not show in the header: the maker must see them all the same. */
static void test_damaged_rows(void **state)
{
    (void)state;
    char path[256];
    const struct modtab_header *t = make("pie");
    uint64_t id = t->id, offset = t->rows_offset;
    modtab_unmap(t);
    assert_int_equal(modtab_cache_path(path, sizeof path, in_dir("cache"), id, NULL), 0);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, (off_t)offset), 4);
    close(fd);
    modtab_unmap(make("pie"));
}

static void test_race(void **state)
{
    (void)state;
    enum { N = 12 };
    pid_t pids[N];
    if (!test.has_compiler)
        skip();
    (void)run("rm -rf %s", in_dir("race"));
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            const struct modtab_header *t;
            uint64_t id;
            bool good = modtab_make(in_dir("liba.so"), in_dir("race/deep/er"), &id, NULL) == 0 &&
                        modtab_map(in_dir("race/deep/er"), id, &t, NULL) == 0;
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    int n_tables = 0, n_temporary = 0;
    DIR *dir = opendir(in_dir("race/deep/er"));
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        n_tables += strstr(entry->d_name, ".lmt") != NULL;
        n_temporary += strncmp(entry->d_name, ".table", 6) == 0;
    }
    closedir(dir);
    assert_int_equal(n_tables, 1);
    assert_int_equal(n_temporary, 0);
}

static void test_refusals(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(modtab_make(in_dir("a.c"), in_dir("cache"), NULL, &err), ERR_FORMAT);
    assert_non_null(strstr(err.text, "a.c"));
    assert_int_equal(modtab_make(in_dir("absent"), in_dir("cache"), NULL, &err), ERR_IO);
    assert_int_equal(modtab_make(test.dir, in_dir("cache"), NULL, &err), ERR_IO);
    if (!test.has_compiler)
        return;
    assert_int_equal(modtab_make(in_dir("fixed"), in_dir("a.c"), NULL, &err), ERR_IO);
    assert_int_equal(modtab_make(in_dir("fixed"), "/proc/none", NULL, &err), ERR_IO);
    assert_int_equal(modtab_make(in_dir("fixed"), "", NULL, &err), ERR_RANGE);
}

/* Cut and overwritten ELF files: an answer or an error, never a crash. */
static void test_hostile_elf(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    if (!test.has_compiler)
        skip();
    int fd = open(in_dir("liba.so"), O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_true(n > 4096);
    unsigned random = 1;
    for (int i = 0; i < 300; i++) {
        random = random * 1103515245u + 12345u;
        size_t at = (random >> 4) % (size_t)(i < 200 ? 2048 : n);
        size_t length = i % 5 == 0 ? (random >> 3) % (size_t)n : (size_t)n;
        char kept = bytes[at];
        bytes[at] = (char)(random >> 20);
        (void)unlink(in_dir("hostile"));
        put(in_dir("hostile"), bytes, length);
        struct error err = {0};
        uint64_t id;
        const struct modtab_header *t = NULL;
        if (modtab_make(in_dir("hostile"), in_dir("hostile-cache"), &id, &err) == 0) {
            assert_int_equal(modtab_map(in_dir("hostile-cache"), id, &t, &err), 0);
            assert_null(modtab_check_code_sig(t));
        } else {
            assert_true(strlen(err.text) > 10);
        }
        modtab_unmap(t);
        bytes[at] = kept;
    }
}

static void test_default_dir(void **state)
{
    (void)state;
    char dir[256], expected[256];
    struct error err = {0};
    (void)setenv("XDG_CACHE_HOME", in_dir("xdg"), 1);
    assert_int_equal(modtab_default_cache_dir(dir, sizeof dir, &err), 0);
    assert_string_equal(dir, in_dir("xdg/locus"));
    (void)setenv("XDG_CACHE_HOME", "/proc", 1); /* nobody can write there */
    (void)setenv("HOME", in_dir("home"), 1);
    assert_int_equal(modtab_default_cache_dir(dir, sizeof dir, &err), 0);
    assert_string_equal(dir, in_dir("home/.cache/locus"));
    (void)setenv("HOME", "/proc", 1);
    assert_int_equal(modtab_default_cache_dir(dir, sizeof dir, &err), 0);
    (void)snprintf(expected, sizeof expected, "locus-%u", (unsigned)geteuid());
    assert_non_null(strstr(dir, expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pie),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_shared_library),
        cmocka_unit_test(test_stripped),
        cmocka_unit_test(test_id_without_build_id),
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_damaged_tables),
        cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hostile_elf),
        cmocka_unit_test(test_default_dir),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
