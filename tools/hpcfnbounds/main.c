/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcfnbounds: lists the functions, variables and unwind rows of a load module, and puts its table into a cache. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/options.h"
#include "fnbounds/modtab-cache.h"
#include "fnbounds/modtab-make.h"

/* --- the listings --- */

/* Functions come with their names, which the tables do not hold. */

static int out_of_memory(const struct modtab_elf *m, struct error *err)
{
    return error_set(err, ERR_MEMORY, "%s: out of memory", m->path);
}

static bool find_functions(const struct modtab_elf *m, bool discover, struct modtab_vec *funcs)
{
    struct modtab_vec fdes = {0};
    modtab_make_fdes(m, &fdes);
    modtab_make_funcs(m, &fdes, discover, funcs);
    bool good = !fdes.failed && !funcs->failed;
    free(fdes.items);
    return good;
}

/* A name that can stand in a comment and on a line. */
static void put_name(const char *name, FILE *out)
{
    for (const char *c = name ? name : "(no symbol)"; *c; c++)
        if (*c != '\n' && !(c[0] == '*' && c[1] == '/'))
            putc(*c, out);
}

static bool is_relocatable(const struct modtab_elf *m)
{
    return !m->header.is_fixed;
}

/* Functions, one line each: "0xADDRESS    name"; then the line "num symbols = N, reference offset = 0x..,
 * relocatable = 0|1" of HPCToolkit. discover: also code without symbol and unwind information. Addresses are those of
 * the file.  err: ERR_MEMORY */
static int print_functions(const struct modtab_elf *m, bool discover, FILE *out, struct error *err)
{
    struct modtab_vec funcs = {0};
    bool good = find_functions(m, discover, &funcs);
    const struct modtab_range *f = funcs.items;
    for (size_t i = 0; good && i < funcs.n; i++) {
        fprintf(out, "0x%" PRIx64 "    ", f[i].start);
        put_name(f[i].name, out);
        putc('\n', out);
    }
    if (good)
        fprintf(out, "num symbols = %zu, reference offset = 0x%" PRIx64 ", relocatable = %d\n", funcs.n,
                is_relocatable(m) ? m->header.base_vaddr : 0, is_relocatable(m));
    free(funcs.items);
    return good ? 0 : out_of_memory(m, err);
}

/* The function starts as a C array, for programs that are linked with it.  err: ERR_MEMORY */
static int print_functions_c(const struct modtab_elf *m, bool discover, FILE *out, struct error *err)
{
    struct modtab_vec funcs = {0};
    bool good = find_functions(m, discover, &funcs);
    const struct modtab_range *f = funcs.items;
    if (good)
        fprintf(out, "unsigned long hpcrun_nm_addrs[] = {\n");
    for (size_t i = 0; good && i < funcs.n; i++) {
        fprintf(out, "  0x%" PRIx64 ", /* ", f[i].start);
        put_name(f[i].name, out);
        fprintf(out, " */\n");
    }
    if (good)
        fprintf(out,
                "  0x%" PRIx64 " /* end */\n};\nunsigned long hpcrun_nm_addrs_len = %zu;\n"
                "unsigned long hpcrun_reference_offset = 0x%" PRIx64 ";\nint hpcrun_is_relocatable = %d;\n",
                funcs.n ? f[funcs.n - 1].end : 0, funcs.n + 1, is_relocatable(m) ? m->header.base_vaddr : 0,
                is_relocatable(m));
    free(funcs.items);
    return good ? 0 : out_of_memory(m, err);
}

static void put_variables(const struct modtab_vec *syms, const struct buf *strings, uint64_t bytes_min, FILE *out)
{
    const struct modtab_sym *s = syms->items;
    for (size_t i = 0; i < syms->n; i++) {
        const char *mark = s[i].kind == MODTAB_SYM_TLS ? " (thread-local)" : "";
        if (s[i].size_bytes < bytes_min)
            continue;
        fprintf(out, "0x%" PRIx64 "    ", s[i].vaddr);
        put_name(strings->data + s[i].name, out);
        fprintf(out, "%s\n%" PRIu64 "  ", mark, s[i].size_bytes);
        put_name(strings->data + s[i].name, out);
        fprintf(out, "%s\n", mark);
    }
}

/* Variables of at least bytes_min, two lines each: "0xADDRESS    name" and "SIZE  name"; thread-local ones with their
 * offset in the module's block and the name marked.  err: ERR_MEMORY */
static int print_variables(const struct modtab_elf *m, uint64_t bytes_min, FILE *out, struct error *err)
{
    struct modtab_vec syms = {0}, tls_syms = {0};
    struct buf strings = {0};
    uint32_t has_symtab;
    modtab_make_syms(m, &syms, &tls_syms, &strings, &has_symtab);
    bool good = !syms.failed && !tls_syms.failed && !strings.failed;
    if (good) {
        put_variables(&syms, &strings, bytes_min, out);
        put_variables(&tls_syms, &strings, bytes_min, out);
    }
    free(syms.items);
    free(tls_syms.items);
    buf_fini(&strings);
    return good ? 0 : out_of_memory(m, err);
}

/* The same variables as a C array of address and size, without thread-local ones, for programs that are linked with it.
 * is_empty: an array without any.  err: ERR_MEMORY */
static int print_variables_c(const struct modtab_elf *m, uint64_t bytes_min, bool is_empty, FILE *out,
                             struct error *err)
{
    struct modtab_vec syms = {0}, tls_syms = {0};
    struct buf strings = {0};
    uint32_t has_symtab;
    size_t n = 0;
    if (!is_empty)
        modtab_make_syms(m, &syms, &tls_syms, &strings, &has_symtab);
    bool good = !syms.failed && !tls_syms.failed && !strings.failed;
    const struct modtab_sym *s = syms.items;
    if (good)
        fprintf(out, "unsigned long hpcrun_data_addrs[] = {\n");
    for (size_t i = 0; good && i < syms.n; i++) {
        if (s[i].size_bytes < bytes_min)
            continue;
        fprintf(out, "  0x%" PRIx64 ", %" PRIu64 ", /* ", s[i].vaddr, s[i].size_bytes);
        put_name(strings.data + s[i].name, out);
        fprintf(out, " */\n");
        n++;
    }
    if (good)
        fprintf(out, "  0, 0 /* end */\n};\nunsigned long hpcrun_data_addrs_len = %zu;\n", n);
    free(syms.items);
    free(tls_syms.items);
    buf_fini(&strings);
    return good ? 0 : out_of_memory(m, err);
}

static void put_cfa(const struct modtab_row *row, FILE *out)
{
    static const char *const registers[16] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                              "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    switch (row->kind) {
    case MODTAB_GAP:
        fprintf(out, "no rule");
        break;
    case MODTAB_CFA_DEREF:
        fprintf(out, "cfa=*(%s%+d)%+d", registers[row->reg & 15], row->cfa_offset, row->extra);
        break;
    case MODTAB_CFA_PLT:
        fprintf(out, "cfa=rsp+8+((rip&15)>=%d)*8", row->cfa_offset);
        break;
    case MODTAB_SIGNAL:
        fprintf(out, "signal frame");
        break;
    case MODTAB_END:
        fprintf(out, "outermost");
        break;
    case MODTAB_BAD:
        fprintf(out, "not representable");
        break;
    default:
        fprintf(out, "cfa=%s%+d", registers[row->reg & 15], row->cfa_offset);
    }
    if (row->flags & MODTAB_RA_REG)
        fprintf(out, " ra=%s", registers[row->extra & 15]);
}

static void put_saved(const char *name, int offset, const char *base, FILE *out)
{
    if (base)
        fprintf(out, " %s=*(%s%+d)", name, base, offset);
    else
        fprintf(out, " %s lost", name);
}

static void put_row(const struct modtab_row *row, uint64_t base, FILE *out)
{
    fprintf(out, "0x%" PRIx64 "    ", base + row->pc);
    put_cfa(row, out);
    if (row->flags & (MODTAB_RBP_SAVED | MODTAB_RBP_EXPR | MODTAB_RBP_LOST))
        put_saved("rbp", row->rbp_offset,
                  row->flags & MODTAB_RBP_SAVED  ? "cfa"
                  : row->flags & MODTAB_RBP_EXPR ? "rbp"
                                                 : NULL,
                  out);
    if (row->flags & MODTAB_RBP_REG)
        fprintf(out, " rbp in register %d", row->rbp_offset);
    if (row->flags & (MODTAB_RBX_SAVED | MODTAB_RBX_EXPR | MODTAB_RBX_LOST))
        put_saved("rbx", row->rbx_offset,
                  row->flags & MODTAB_RBX_SAVED  ? "cfa"
                  : row->flags & MODTAB_RBX_EXPR ? "rbp"
                                                 : NULL,
                  out);
    putc('\n', out);
}

/* A row of a machine with a link register: see struct modtab_row. */
static void put_link_row(const struct modtab_row *row, const struct modtab_header *h, FILE *out)
{
    bool is_arm = h->machine == EM_AARCH64;
    const char *fp = is_arm ? "x29" : "r31";
    fprintf(out, "0x%" PRIx64 "    ", h->base_vaddr + row->pc);
    if (row->kind != MODTAB_CFA_RSP && row->kind != MODTAB_CFA_RBP && row->kind != MODTAB_CFA_REG) {
        put_cfa(row, out);
    } else {
        if (row->kind == MODTAB_CFA_RSP)
            fprintf(out, "cfa=%s%+d", is_arm ? "sp" : "r1", row->cfa_offset);
        else
            fprintf(out, "cfa=%c%u%+d", is_arm ? 'x' : 'r', row->reg, row->cfa_offset);
        if (row->flags & MODTAB_LINK_SAVED)
            put_saved("ra", row->rbx_offset * 8, "cfa", out);
        else if (row->flags & MODTAB_RA_REG)
            fprintf(out, " ra=%c%d", is_arm ? 'x' : 'r', row->extra);
        else
            fprintf(out, " ra=%s", is_arm ? "x30" : "lr");
        if (row->flags & (MODTAB_RBP_SAVED | MODTAB_RBP_LOST))
            put_saved(fp, row->rbp_offset * 8, row->flags & MODTAB_RBP_SAVED ? "cfa" : NULL, out);
    }
    putc('\n', out);
}

/* Unwind rows, one line each: address and rule.  err: ERR_MEMORY */
static int print_rows(const struct modtab_elf *m, FILE *out, struct error *err)
{
    struct modtab_vec fdes = {0}, funcs = {0}, rows = {0};
    modtab_make_fdes(m, &fdes);
    modtab_make_funcs(m, &fdes, true, &funcs);
    modtab_make_rows(m, &fdes, &funcs, &rows);
    bool good = !fdes.failed && !funcs.failed && !rows.failed;
    for (size_t i = 0; good && i < rows.n; i++) {
        const struct modtab_row *row = (struct modtab_row *)rows.items + i;
        if (m->header.machine == EM_X86_64)
            put_row(row, m->header.base_vaddr, out);
        else
            put_link_row(row, &m->header, out);
    }
    free(fdes.items);
    free(funcs.items);
    free(rows.items);
    return good ? 0 : out_of_memory(m, err);
}

/* --- the server --- */

/* Other programs ask for the functions and variables of load modules over two descriptors. Answers are made as a whole
 * and then written. */

/* Every message, in both directions, is a head of 16 bytes and n_bytes of contents; all numbers are big-endian:
 *   bytes 0-3 "LFNB", 4-5 version (1), 6-7 type, 8-15 n_bytes.
 * Requests; contents: the path of the module, or [vdso]: */
enum serve_type {
    SERVE_FUNCTIONS = 1,
    SERVE_VARIABLES = 2,
    SERVE_EXIT = 3, /* without contents and without answer */
    /* Answers: */
    SERVE_OK = 16,   /* contents as below */
    SERVE_ERROR = 17 /* contents: a sentence */
};
/* Functions: n, reference offset, 1 if relocatable else 0; then n times start and end: 64 bits each.
 * Variables: n; then n times address, size, kind (enum modtab_sym_kind) and offset of the name: 64 bits each; then the
 * names, each with a 0 behind it. */

#define SERVE_VERSION 1
#define SERVE_HEAD_BYTES 16
#define SERVE_PATH_BYTES_MAX 65536

struct serve_options {
    int fd_in, fd_out;
    bool discover;      /* code that neither symbols nor unwind information cover, too */
    uint64_t bytes_min; /* the smallest variable */
};

/* Reads n bytes; 0 at the end of input, else how many came. */
static size_t read_all(int fd, char *bytes, size_t n)
{
    size_t n_read = 0;
    while (n_read < n) {
        ssize_t got = read(fd, bytes + n_read, n - n_read);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n_read += (size_t)got;
    }
    return n_read;
}

static int write_all(int fd, const char *bytes, size_t n, struct error *err)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return error_set(err, ERR_IO, "the answer cannot be written: %s", strerror(errno));
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

static void put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    char bytes[8];
    bytes_put_be(bytes, value, n_bytes);
    buf_append(out, bytes, n_bytes);
}

static int answer(int fd, enum serve_type type, const struct buf *contents, struct error *err)
{
    struct buf head = {0};
    buf_append(&head, "LFNB", 4);
    put(&head, SERVE_VERSION, 2);
    put(&head, type, 2);
    put(&head, contents->len_bytes, 8);
    int status = head.failed ? error_set(err, ERR_MEMORY, "out of memory for an answer")
                             : write_all(fd, head.data, head.len_bytes, err);
    if (status == 0)
        status = write_all(fd, contents->data, contents->len_bytes, err);
    buf_fini(&head);
    return status;
}

static bool put_functions(const struct modtab_elf *m, bool discover, struct buf *out)
{
    struct modtab_vec fdes = {0}, funcs = {0};
    modtab_make_fdes(m, &fdes);
    modtab_make_funcs(m, &fdes, discover, &funcs);
    bool good = !fdes.failed && !funcs.failed;
    const struct modtab_range *f = funcs.items;
    put(out, funcs.n, 8);
    put(out, m->header.is_fixed ? 0 : m->header.base_vaddr, 8);
    put(out, !m->header.is_fixed, 8);
    for (size_t i = 0; good && i < funcs.n; i++) {
        put(out, f[i].start, 8);
        put(out, f[i].end, 8);
    }
    free(fdes.items);
    free(funcs.items);
    return good && !out->failed;
}

static uint64_t put_syms(const struct modtab_vec *syms, uint64_t bytes_min, struct buf *out)
{
    const struct modtab_sym *s = syms->items;
    uint64_t n = 0;
    for (size_t i = 0; i < syms->n; i++) {
        if (s[i].size_bytes < bytes_min)
            continue;
        put(out, s[i].vaddr, 8);
        put(out, s[i].size_bytes, 8);
        put(out, s[i].kind, 8);
        put(out, s[i].name, 8);
        n++;
    }
    return n;
}

static bool answer_variables(const struct modtab_elf *m, uint64_t bytes_min, struct buf *out)
{
    struct modtab_vec syms = {0}, tls_syms = {0};
    struct buf strings = {0};
    uint32_t has_symtab;
    modtab_make_syms(m, &syms, &tls_syms, &strings, &has_symtab);
    put(out, 0, 8);
    uint64_t n = put_syms(&syms, bytes_min, out) + put_syms(&tls_syms, bytes_min, out);
    buf_append(out, strings.data, strings.len_bytes);
    bool good = !syms.failed && !tls_syms.failed && !strings.failed && !out->failed;
    if (good)
        bytes_put_be(out->data, n, 8);
    free(syms.items);
    free(tls_syms.items);
    buf_fini(&strings);
    return good;
}

static int answer_module(const struct serve_options *options, uint64_t type, const char *path, struct error *err)
{
    struct modtab_elf m;
    struct error reason = {0};
    struct buf out = {0};
    int status = modtab_elf_open(&m, path, &reason);
    if (status == 0) {
        modtab_debug_open(&m);
        bool good = type == SERVE_FUNCTIONS ? put_functions(&m, options->discover, &out)
                                            : answer_variables(&m, options->bytes_min, &out);
        modtab_elf_close(&m);
        if (!good)
            status = error_set(&reason, ERR_MEMORY, "%s: out of memory", path);
    }
    if (status != 0) {
        out.len_bytes = 0;
        buf_append(&out, reason.text, strlen(reason.text));
    }
    status = out.failed ? error_set(err, ERR_MEMORY, "out of memory for an answer")
                        : answer(options->fd_out, status == 0 ? SERVE_OK : SERVE_ERROR, &out, err);
    buf_fini(&out);
    return status;
}

/* One request; *is_over: there are no more. */
static int serve_one(const struct serve_options *options, bool *is_over, struct error *err)
{
    static char path[SERVE_PATH_BYTES_MAX + 1];
    char head[SERVE_HEAD_BYTES];
    size_t n = read_all(options->fd_in, head, sizeof head);
    *is_over = n == 0;
    if (n == 0)
        return 0;
    if (n < sizeof head || memcmp(head, "LFNB", 4) != 0)
        return error_set(err, ERR_FORMAT, "a message does not begin with LFNB and a head of %d bytes",
                         SERVE_HEAD_BYTES);
    uint64_t version = bytes_get_be(head + 4, 2), type = bytes_get_be(head + 6, 2), n_bytes = bytes_get_be(head + 8, 8);
    if (version != SERVE_VERSION)
        return error_set(err, ERR_FORMAT, "a message has version %u, this server speaks version %d", (unsigned)version,
                         SERVE_VERSION);
    if (n_bytes > SERVE_PATH_BYTES_MAX || (type != SERVE_FUNCTIONS && type != SERVE_VARIABLES && type != SERVE_EXIT))
        return error_set(err, ERR_FORMAT, "there is no request of type %u with %llu bytes", (unsigned)type,
                         (unsigned long long)n_bytes);
    if (read_all(options->fd_in, path, n_bytes) != n_bytes)
        return error_set(err, ERR_FORMAT, "the input ends within a message");
    path[n_bytes] = '\0';
    *is_over = type == SERVE_EXIT;
    return *is_over ? 0 : answer_module(options, type, path, err);
}

/* Answers until the end of input or SERVE_EXIT. A module that cannot be read is answered with an error; a message that
 * breaks the protocol ends the server.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
static int serve(const struct serve_options *options, struct error *err)
{
    bool is_over = false;
    int status = 0;
    while (status == 0 && !is_over)
        status = serve_one(options, &is_over, err);
    return status;
}

/* --- the command line --- */

enum {
    OPTION_C = 1,
    OPTION_NO_DISCOVERY,
    OPTION_VARIABLES,
    OPTION_EMPTY,
    OPTION_ROWS,
    OPTION_TABLE,
    OPTION_TEXT,
    OPTION_JOBS,
    OPTION_SERVER,
    OPTION_VERBOSE
};

static const struct option_row rows[] = {
    {OPTION_TEXT, "-t --text", NULL, "Write text. This is the default."},
    {OPTION_C, "-c --c-source", NULL,
     "Write a C array: of the functions' addresses, with -m of the variables' addresses and sizes."},
    {OPTION_VARIABLES, "-m --variables", NULL,
     "Write the variables with address and size instead of the functions: two lines each, those of at least "
     "DATACENTRIC_MIN_BYTES. Parts of data sections that no symbol covers are listed under the name of module and "
     "section."},
    {OPTION_EMPTY, "-x --no-variables", NULL, "With -c: write an array of variables that is empty."},
    {OPTION_NO_DISCOVERY, "-d --no-discovery", NULL,
     "Leave out code that has neither a symbol nor unwind information (as in stripped assembly)."},
    {OPTION_ROWS, "--rows", NULL, "Write the unwind rows instead of the functions."},
    {OPTION_TABLE, "--table", "DIR",
     "Make the module's table in the cache directory DIR, unless it is there already, and print its path. The "
     "runtime maps these tables. DIR may be \"default\": the cache of this user."},
    {OPTION_JOBS, "-js --jobs-symtab", "N",
     "With --table: make the tables of up to N modules at the same time (default HPCFNBOUNDS_NUM_THREADS, else 1)."},
    {OPTION_SERVER, "-s --server", "FD",
     "Answer requests from the descriptor FD on the descriptor that follows as an argument, instead of listing "
     "modules. The messages are described in FORMAT.md."},
    {OPTION_VERBOSE, "-v --verbose", NULL, "Say on standard error what the module is and how much was found."},
    OPTION_ROWS_STANDARD,
    {0, NULL, NULL, NULL},
};

static const struct option_spec spec = {
    .tool = "hpcfnbounds",
    .summary = "list functions, variables and unwind rows of a load module",
    .synopsis = "[-c] [-m | -x | --rows] [-d] [-v] [--] MODULE...\n"
                "--table DIR [-js N] [-v] [--] MODULE...\n"
                "-s FDIN FDOUT [-d]",
    .description = "A module is an ELF executable or shared library, or [vdso] for the one that the kernel maps into "
                   "every process. Functions come from the symbol tables, also those of separate debug files "
                   "(/usr/lib/debug) and of the section .gnu_debugdata, the unwind information, the linker's stubs "
                   "and, unless -d is given, from what code is left over; so stripped files work. Each line holds the "
                   "address in the file and the name; the last line holds the number, the address that the file's "
                   "start has (reference offset), and whether the module can be loaded anywhere (relocatable).",
    .rows = rows,
    .examples = "  hpcfnbounds ./app\nThe functions of a program.\n\n"
                "  DATACENTRIC_MIN_BYTES=1 hpcfnbounds -m libfoo.so\nAll variables of a library.\n\n"
                "  hpcfnbounds --table default ./app '[vdso]'\nMakes two tables beforehand.",
    .environment = "DATACENTRIC_MIN_BYTES  the smallest variable that -m lists, in bytes (default 1024).\n"
                   "HPCFNBOUNDS_NUM_THREADS  how many tables are made at the same time, unless -js is given.",
    .exit_status = "0 when all modules were listed, 1 when one could not be read, 2 for a wrong command line.",
    .see_also = "hpcrun(1), hpcstruct(1)",
};

struct request {
    int what; /* an option of the enum, OPTION_TEXT: functions */
    bool is_c, is_empty, discover, verbose;
    const char *cache_dir;
    unsigned n_jobs;
    int fd_in; /* of the server, -1: none */
};

static int usage(const char *sentence)
{
    return tool_usage("hpcfnbounds", "%s", sentence);
}

static int make_table(const struct request *request, const char *path, struct error *err)
{
    char file[4096];
    uint64_t id;
    int status = modtab_make(path, request->cache_dir, &id, err);
    if (status == 0)
        status = modtab_cache_path(file, sizeof file, request->cache_dir, id, err);
    if (status == 0)
        printf("%s\n", file);
    return status;
}

static void describe(const struct modtab_elf *m)
{
    struct modtab_symtab t;
    (void)fprintf(stderr, "hpcfnbounds: %s: %s, machine %u, id %016llx (%s), %s\n", m->path,
                  m->header.is_fixed ? "fixed address" : "relocatable", (unsigned)m->header.machine,
                  (unsigned long long)m->header.id, m->header.build_id_bytes ? "build id" : "path, size and time",
                  modtab_symtab_open(&t, m, SHT_SYMTAB)   ? "with .symtab"
                  : modtab_symtab_open(&t, m, SHT_DYNSYM) ? "only .dynsym"
                                                          : "no symbols");
}

static int list(const struct request *request, const char *path, struct error *err)
{
    struct modtab_elf m;
    int status = modtab_elf_open(&m, path, err);
    if (status != 0)
        return status;
    modtab_debug_open(&m);
    if (request->verbose)
        describe(&m);
    switch (request->what) {
    case OPTION_VARIABLES:
    case OPTION_EMPTY:
        status = request->is_c ? print_variables_c(&m, min_bytes_of_environment(), request->is_empty, stdout, err)
                               : print_variables(&m, min_bytes_of_environment(), stdout, err);
        break;
    case OPTION_ROWS:
        status = print_rows(&m, stdout, err);
        break;
    default:
        status = request->is_c ? print_functions_c(&m, request->discover, stdout, err)
                               : print_functions(&m, request->discover, stdout, err);
    }
    modtab_elf_close(&m);
    return status;
}

/* Makes the tables in up to n_jobs processes; what fails there fails again, with its message, where it is listed. */
static void make_tables(const struct request *request, char **paths, int n_paths)
{
    unsigned n_running = 0;
    for (int i = 0; i < n_paths; i++) {
        if (n_running == request->n_jobs && wait(NULL) > 0)
            n_running--;
        pid_t pid = fork();
        if (pid == 0)
            _exit(modtab_make(paths[i], request->cache_dir, NULL, NULL) != 0);
        n_running += pid > 0;
    }
    while (wait(NULL) > 0)
        ;
}

static int run(struct request *request, char **paths, int n_paths)
{
    static char default_dir[4096];
    struct error err = {0};
    int failed = 0;
    if (n_paths == 0)
        return usage("no module is given");
    if (request->cache_dir && strcmp(request->cache_dir, "default") == 0) {
        if (modtab_default_cache_dir(default_dir, sizeof default_dir, &err) != 0)
            return tool_error("hpcfnbounds", "%s", err.text);
        request->cache_dir = default_dir;
    }
    if (request->cache_dir && request->n_jobs > 1)
        make_tables(request, paths, n_paths);
    for (int i = 0; i < n_paths; i++)
        if ((request->cache_dir ? make_table(request, paths[i], &err) : list(request, paths[i], &err)) != 0)
            failed = tool_error("hpcfnbounds", "%s", err.text);
    return failed;
}

static bool read_number(const char *text, int max, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 0 || value > max)
        return false;
    *number = (int)value;
    return true;
}

static int run_server(const struct request *request, char **operands, int n_operands)
{
    struct serve_options options = {request->fd_in, 0, request->discover, min_bytes_of_environment()};
    struct error err = {0};
    if (n_operands != 1 || !read_number(operands[0], INT_MAX, &options.fd_out))
        return usage("-s takes two descriptors, such as -s 3 4");
    return serve(&options, &err) == 0 ? 0 : tool_error("hpcfnbounds", "%s", err.text);
}

/* Takes what excludes everything else of its kind; a sentence when it comes after another. */
static const char *choose(struct request *request, int what)
{
    if (request->what != OPTION_TEXT && request->what != what)
        return "-m, -x, --rows and --table exclude each other";
    request->what = what;
    return NULL;
}

/* Takes one option; a sentence when it is wrong. */
static const char *take(struct request *request, int id, const char *value)
{
    int n_jobs;
    switch (id) {
    case OPTION_TEXT:
        return NULL;
    case OPTION_C:
        request->is_c = true;
        return NULL;
    case OPTION_NO_DISCOVERY:
        request->discover = false;
        return NULL;
    case OPTION_VERBOSE:
        request->verbose = true;
        return NULL;
    case OPTION_JOBS:
        if (!read_number(value, 1024, &n_jobs) || n_jobs < 1)
            return "-js takes a number from 1 to 1024";
        request->n_jobs = (unsigned)n_jobs;
        return NULL;
    case OPTION_SERVER:
        return read_number(value, INT_MAX, &request->fd_in) ? NULL : "-s takes two descriptors, such as -s 3 4";
    case OPTION_TABLE:
        request->cache_dir = value;
        return choose(request, id);
    default:
        request->is_empty = id == OPTION_EMPTY;
        return choose(request, id);
    }
}

static int run_tool(int argc, char **argv)
{
    struct request request = {.what = OPTION_TEXT, .discover = true, .fd_in = -1};
    struct option_scan scan = {0};
    struct error err = {0};
    int id, n_jobs = 0;
    if (getenv("HPCFNBOUNDS_NUM_THREADS") && read_number(getenv("HPCFNBOUNDS_NUM_THREADS"), 1024, &n_jobs))
        request.n_jobs = (unsigned)n_jobs;
    while ((id = options_next(&spec, &scan, argc, argv, &err)) != OPTIONS_END) {
        if (id == OPTIONS_BAD)
            return usage(err.text);
        if (options_standard(&spec, id, PACKAGE_VERSION, stdout))
            return 0;
        const char *wrong = take(&request, id, scan.value);
        if (wrong)
            return usage(wrong);
    }
    if (request.is_c && (request.what == OPTION_ROWS || request.what == OPTION_TABLE))
        return usage("-c does not go with --rows and --table");
    if (request.what == OPTION_EMPTY && !request.is_c)
        return usage("-x needs -c");
    if (min_bytes_check(&err) != 0)
        return usage(err.text);
    char **operands = argv + scan.index;
    int status =
        request.fd_in >= 0 ? run_server(&request, operands, scan.n_operands) : run(&request, operands, scan.n_operands);
    if (fflush(stdout) != 0)
        status = tool_error("hpcfnbounds", "standard output cannot be written");
    return status;
}

int main(int argc, char **argv)
{
    return stack_run(run_tool, argc, argv);
}
