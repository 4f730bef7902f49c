/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a module and asks its sources of knowledge in this order: DWARF, symbols, unwind tables. */
#include "structure/elf/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/input.h"
#include "base/search.h"
#include "fnbounds/modtab-make.h"
#include "structure/elf/symbols-dwarf.h"

/* --- names in readable form: libstdc++'s demangler, loaded on demand --- */

typedef char *demangle_function(const char *, char *, size_t *, int *);

static struct {
    pthread_once_t once;
    demangle_function *function;
} state = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&state.function, &symbol, sizeof symbol);
}

static demangle_function *demangler(void)
{
    (void)pthread_once(&state.once, load);
    return state.function;
}

/* Rust names are mangled like those of C++ and end in a hash as the last component, "::h0123456789abcdef". */
static void drop_hash(char *readable)
{
    size_t len = strlen(readable), len_hash = strlen("::h") + 16;
    char *hash = len > len_hash ? readable + len - len_hash : NULL;
    if (hash && strncmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == 16)
        *hash = 0;
}

char *demangle_name(const char *name)
{
    int status = 0;
    if (strncmp(name, "_Z", 2) != 0 || !demangler())
        return NULL;
    char *readable = demangler()(name, NULL, NULL, &status);
    if (readable)
        drop_hash(readable);
    return readable;
}

char *demangle_module_name(const char *name)
{
    const char *sign = strncmp(name, "__", 2) == 0 ? strstr(name + 2, "_MOD_") : NULL;
    size_t len = sign ? (size_t)(sign - name) - 2 : 0;
    if (len == 0 || !sign[strlen("_MOD_")])
        return NULL;
    char *readable = malloc(strlen(name) + 1);
    if (!readable)
        return NULL;
    memcpy(readable, name + 2, len);
    memcpy(readable + len, "::", 2);
    strcpy(readable + len + 2, sign + strlen("_MOD_"));
    return readable;
}

/* --- the ELF symbols of a module by kind, sorted for lookup --- */

/* .symtab, .dynsym or the compressed mini table, whichever libdwfl finds (the debug file's first). */

static bool is_in_code(Elf *elf, GElf_Word section)
{
    GElf_Shdr header;
    Elf_Scn *found = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
    return found && gelf_getshdr(found, &header) && header.sh_flags & SHF_EXECINSTR;
}

/* Notes where the module's section of that name lies. */
static void find_section(struct symbols *symbols, const char *name)
{
    GElf_Addr bias;
    GElf_Shdr header;
    size_t names;
    Elf *elf = dwfl_module_getelf(symbols->module, &bias);
    int64_t own = strtab_intern(&symbols->strings, name);
    symbols->section = own < 0 ? NULL : symbols->strings.strings[own];
    symbols->section_low = symbols->section_bytes = 0;
    if (!elf || elf_getshdrstrndx(elf, &names) != 0)
        return;
    for (Elf_Scn *section = NULL; !symbols->section_bytes && (section = elf_nextscn(elf, section));) {
        const char *found = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (found && strcmp(found, name) == 0) {
            symbols->section_low = header.sh_addr;
            symbols->section_bytes = header.sh_size;
        }
    }
}

bool symbols_is_in_section(struct symbols *symbols, uint64_t vaddr, const char *name)
{
    if (!symbols->section || strcmp(symbols->section, name) != 0)
        find_section(symbols, name);
    return vaddr >= symbols->section_low && vaddr - symbols->section_low < symbols->section_bytes;
}

/* elf, section: where it is defined. Assembly code often leaves out the type of its functions but gives their size. */
static int symbol_kind(const GElf_Sym *symbol, Elf *elf, GElf_Word section)
{
    switch (GELF_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        return ELF_SYMBOL_CODE;
    case STT_OBJECT:
    case STT_COMMON:
        return ELF_SYMBOL_DATA;
    case STT_TLS:
        return ELF_SYMBOL_TLS;
    case STT_NOTYPE:
        return symbol->st_size > 0 && is_in_code(elf, section) ? ELF_SYMBOL_CODE : -1;
    default:
        return -1;
    }
}

/* Bytes from a symbol's value to the end of its section; where that is not known, as many as there may be. */
static uint64_t left_of_section(Elf *elf, GElf_Word section, uint64_t value)
{
    GElf_Shdr header;
    Elf_Scn *scn = elf && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
    bool is_known = scn && gelf_getshdr(scn, &header) && value >= header.sh_addr;
    return is_known ? header.sh_size - (value - header.sh_addr) : INT64_MAX;
}

static int bind_rank(uint8_t bind)
{
    return bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 0 : bind == STB_WEAK ? 1 : 2;
}

static int compare_symbols(const void *a, const void *b)
{
    const struct elf_symbol *x = a, *y = b;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    if (bind_rank(x->bind) != bind_rank(y->bind))
        return bind_rank(x->bind) - bind_rank(y->bind);
    if (x->size_bytes != y->size_bytes)
        return x->size_bytes > y->size_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_symbol(struct elf_symbols *list, const struct elf_symbol *symbol)
{
    if (!vec_reserve(&list->items, &list->capacity, list->n + 1, sizeof *list->items))
        return;
    list->items[list->n++] = *symbol;
    if (symbol->size_bytes > list->max_size_bytes)
        list->max_size_bytes = symbol->size_bytes;
}

/* --- the linker's stubs, named by the functions that they lead to --- */

/* A slot of the global offset table, which the loader fills with the address of the function of that name. */
struct import {
    uint64_t slot;
    const char *name; /* borrowed from the ELF file */
};

struct imports {
    struct import *items; /* [n] by slot */
    size_t n, capacity;
};

static int compare_imports(const void *a, const void *b)
{
    const struct import *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static void take_imports(struct imports *imports, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Scn *linked = elf_getscn(elf, header->sh_link);
    Elf_Data *data = elf_getdata(section, NULL), *names = linked ? elf_getdata(linked, NULL) : NULL;
    GElf_Shdr table;
    GElf_Rela rela;
    GElf_Sym symbol;
    if (!data || !names || !gelf_getshdr(linked, &table))
        return;
    for (int i = 0; gelf_getrela(data, i, &rela); i++) {
        bool is_of_function =
            GELF_R_TYPE(rela.r_info) == R_X86_64_JUMP_SLOT || GELF_R_TYPE(rela.r_info) == R_X86_64_GLOB_DAT;
        const char *name = is_of_function && gelf_getsym(names, (int)GELF_R_SYM(rela.r_info), &symbol)
                               ? elf_strptr(elf, table.sh_link, symbol.st_name)
                               : NULL;
        if (name && *name && vec_reserve(&imports->items, &imports->capacity, imports->n + 1, sizeof *imports->items))
            imports->items[imports->n++] = (struct import){rela.r_offset, name};
    }
}

/* Adds the stub at vaddr: "expf@plt". */
static void add_stub(struct symbols *symbols, uint64_t vaddr, uint64_t size_bytes, const char *function)
{
    struct buf name = {0};
    char *readable = demangle_name(function);
    buf_printf(&name, "%s@plt", readable ? readable : function);
    int64_t id = name.failed ? -1 : strtab_intern(&symbols->strings, name.data);
    if (id >= 0)
        add_symbol(&symbols->elf[ELF_SYMBOL_STUB], &(struct elf_symbol){.vaddr = vaddr,
                                                                        .size_bytes = size_bytes,
                                                                        .end = vaddr + size_bytes,
                                                                        .name = symbols->strings.strings[id]});
    free(readable);
    buf_fini(&name);
}

/* Finds the stubs in a section: each jumps through a slot, whose distance from the jump's end is in its bytes. */
static void take_stubs(struct symbols *symbols, Elf_Scn *section, const GElf_Shdr *header,
                       const struct imports *imports)
{
    enum { JUMP_BYTES = 6, STUB_BYTES = 16 };
    Elf_Data *data = elf_getdata(section, NULL);
    const uint8_t *bytes = data ? data->d_buf : NULL;
    size_t stub_bytes = header->sh_entsize == STUB_BYTES / 2 ? STUB_BYTES / 2 : STUB_BYTES;
    for (size_t i = 0; bytes && i + JUMP_BYTES <= data->d_size; i++) {
        int32_t distance;
        if (bytes[i] != 0xff || bytes[i + 1] != 0x25)
            continue;
        memcpy(&distance, bytes + i + 2, sizeof distance);
        const struct import key = {.slot = header->sh_addr + i + JUMP_BYTES + (uint64_t)(int64_t)distance};
        const struct import *found = bsearch(&key, imports->items, imports->n, sizeof key, compare_imports);
        if (found)
            add_stub(symbols, header->sh_addr + i - i % stub_bytes, stub_bytes, found->name);
    }
}

static void symbols_stubs_load(struct symbols *symbols)
{
    GElf_Addr bias;
    GElf_Ehdr file;
    GElf_Shdr header;
    size_t names;
    struct imports imports = {0};
    Elf *elf = dwfl_module_getelf(symbols->module, &bias);
    if (!elf || !gelf_getehdr(elf, &file) || file.e_machine != EM_X86_64 || elf_getshdrstrndx(elf, &names) != 0)
        return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA && header.sh_flags & SHF_ALLOC)
            take_imports(&imports, elf, section, &header);
    if (imports.n)
        qsort(imports.items, imports.n, sizeof *imports.items, compare_imports);
    for (Elf_Scn *section = NULL; imports.n && (section = elf_nextscn(elf, section));) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && strncmp(name, ".plt", 4) == 0 && header.sh_type == SHT_PROGBITS)
            take_stubs(symbols, section, &header, &imports);
    }
    free(imports.items);
}

static void symbols_elf_load(struct symbols *symbols)
{
    int n = dwfl_module_getsymtab(symbols->module);
    for (int i = 1; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr vaddr = 0;
        GElf_Word section = 0;
        Elf *elf = NULL;
        const char *name = dwfl_module_getsym_info(symbols->module, i, &symbol, &vaddr, &section, &elf, NULL);
        int kind = name && *name ? symbol_kind(&symbol, elf, section) : -1;
        if (kind < 0 || section == SHN_UNDEF)
            continue;
        struct elf_symbol item = {.vaddr = kind == ELF_SYMBOL_TLS ? symbol.st_value : vaddr,
                                  .end = vaddr + left_of_section(elf, section, symbol.st_value),
                                  .size_bytes = symbol.st_size,
                                  .name = name,
                                  .bind = GELF_ST_BIND(symbol.st_info)};
        if (item.size_bytes > 0 || kind == ELF_SYMBOL_CODE)
            add_symbol(&symbols->elf[kind], &item);
    }
    symbols_stubs_load(symbols);
    for (int kind = 0; kind < ELF_SYMBOL_KINDS; kind++)
        if (symbols->elf[kind].n)
            qsort(symbols->elf[kind].items, symbols->elf[kind].n, sizeof(struct elf_symbol), compare_symbols);
}

static void symbols_elf_free(struct symbols *symbols)
{
    for (int kind = 0; kind < ELF_SYMBOL_KINDS; kind++)
        free(symbols->elf[kind].items);
}

/* Number of symbols with an address <= vaddr. */
static size_t upper_bound(const struct elf_symbols *list, uint64_t vaddr)
{
    return search_upto(list->items, list->n, SEARCH_KEY(struct elf_symbol, vaddr), vaddr);
}

/* A code symbol without a size (hand-written assembly) reaches to the next symbol in its section: a stripped library
 * may have no other one than _init. */
static bool covers(const struct elf_symbols *list, size_t i, uint64_t vaddr)
{
    const struct elf_symbol *symbol = &list->items[i];
    if (symbol->size_bytes > 0)
        return vaddr - symbol->vaddr < symbol->size_bytes;
    return i + 1 < list->n && vaddr < list->items[i + 1].vaddr && vaddr < symbol->end;
}

const struct elf_symbol *symbols_elf_find(const struct symbols *symbols, enum elf_symbol_kind kind, uint64_t vaddr)
{
    const struct elf_symbols *list = &symbols->elf[kind];
    const struct elf_symbol *best = NULL;
    for (size_t i = upper_bound(list, vaddr); i-- > 0;) {
        const struct elf_symbol *symbol = &list->items[i];
        if (best ? symbol->vaddr != best->vaddr : vaddr - symbol->vaddr > list->max_size_bytes && list->max_size_bytes)
            break;
        if (covers(list, i, vaddr))
            best = symbol;
    }
    return best;
}

/* --- functions of stripped code: the ranges of the unwind tables, which every module has --- */

static void index_ranges(struct symbols *symbols)
{
    struct modtab_elf elf;
    struct modtab_vec fdes = {0};
    symbols->unwind_indexed = true;
    if (modtab_elf_open(&elf, symbols->path, NULL) != 0)
        return;
    modtab_make_fdes(&elf, &fdes);
    const struct modtab_fde *found = fdes.items;
    symbols->ranges_unwind = malloc((fdes.n + 1) * sizeof *symbols->ranges_unwind);
    for (size_t i = 0; symbols->ranges_unwind && i < fdes.n; i++)
        symbols->ranges_unwind[symbols->n_ranges_unwind++] = found[i].range;
    free(fdes.items);
    modtab_elf_close(&elf);
}

bool symbols_unwind_range(struct symbols *symbols, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
    if (!symbols->unwind_indexed)
        index_ranges(symbols);
    size_t low =
        search_upto(symbols->ranges_unwind, symbols->n_ranges_unwind, SEARCH_KEY(struct modtab_range, start), vaddr);
    if (low == 0 || vaddr >= symbols->ranges_unwind[low - 1].end)
        return false;
    *start = symbols->ranges_unwind[low - 1].start;
    *end = symbols->ranges_unwind[low - 1].end;
    return true;
}

/* --- a module, from opening to closing --- */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static const char *own(struct symbols *symbols, const char *text)
{
    int64_t id = strtab_intern(&symbols->strings, text);
    return id < 0 ? NULL : symbols->strings.strings[id];
}

const char *symbols_own_name(struct symbols *symbols, const char *name)
{
    if (!name)
        return NULL;
    char *readable = demangle_name(name);
    if (!readable)
        readable = demangle_module_name(name);
    const char *owned = own(symbols, readable ? readable : name);
    free(readable);
    return owned;
}

/* Removes one "." or "x/.." component ending at *end of the path being built. */
static size_t drop_component(char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len;
}

const char *symbols_own_path(struct symbols *symbols, const char *path)
{
    char out[4096];
    size_t len = 0;
    if (!path || strlen(path) >= sizeof out)
        return path ? own(symbols, path) : NULL;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        bool dot = n == 1 && p[0] == '.';
        bool up =
            n == 2 && p[0] == '.' && p[1] == '.' && len > 1 && strncmp(out + drop_component(out, len - 1), "..", 2);
        if (up) {
            len = drop_component(out, len - 1);
        } else if (!dot && (n > 0 || p == path)) {
            memcpy(out + len, p, n);
            len += n;
            if (p[n] == '/')
                out[len++] = '/';
        }
        p += n + (p[n] == '/');
    }
    out[len] = 0;
    return own(symbols, out);
}

int symbols_open(const char *path, struct symbols **out, struct error *err)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (symbols)
        symbols->path = strdup(path);
    if (!symbols || !symbols->path) {
        free(symbols);
        return error_set(err, ERR_MEMORY, "out of memory while opening %s", path);
    }
    int fd = input_open(AT_FDCWD, path, 0, NULL);
    if (fd < 0) {
        symbols_close(symbols);
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, input_reason(errno));
    }
    symbols->dwfl = dwfl_begin(&callbacks);
    if (symbols->dwfl)
        symbols->module = dwfl_report_elf(symbols->dwfl, path, path, fd, 0, true);
    if (!symbols->module) {
        (void)close(fd); /* else the module owns it */
        const char *reason = dwfl_errmsg(-1);
        (void)error_set(err, ERR_FORMAT, "%s: is not a usable ELF file: %s", path, reason ? reason : "unknown reason");
        symbols_close(symbols);
        return ERR_FORMAT;
    }
    (void)dwfl_report_end(symbols->dwfl, NULL, NULL);
    symbols_elf_load(symbols);
    symbols_dwarf_load(symbols);
    *out = symbols;
    return 0;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    symbols_elf_free(symbols);
    symbols_dwarf_free(symbols);
    if (symbols->types)
        symbols->types_free(symbols->types);
    free(symbols->variables);
    if (symbols->locals)
        symbols->locals_free(symbols->locals);
    if (symbols->slots)
        symbols->slots_free(symbols->slots);
    free(symbols->ranges_unwind);
    free(symbols->path);
    strtab_fini(&symbols->strings);
    if (symbols->dwfl)
        dwfl_end(symbols->dwfl);
    free(symbols);
}

bool symbols_has_debug(const struct symbols *symbols)
{
    return symbols->n_ranges > 0;
}

static bool in_code_section(struct symbols *symbols, uint64_t vaddr)
{
    Dwarf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(symbols->module, &bias);
    size_t n_segments = 0;
    if (!elf || elf_getphdrnum(elf, &n_segments) != 0)
        return false;
    for (size_t i = 0; i < n_segments; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD && segment.p_flags & PF_X &&
            vaddr >= segment.p_vaddr + bias && vaddr < segment.p_vaddr + bias + segment.p_memsz)
            return true;
    }
    return false;
}

/* The one frame that symbols or unwind tables give. */
static size_t lookup_symbol(struct symbols *symbols, uint64_t vaddr, struct symbols_frame *frame)
{
    const struct elf_symbol *symbol = symbols_elf_find(symbols, ELF_SYMBOL_CODE, vaddr);
    uint64_t end;
    if (!symbol)
        symbol = symbols_elf_find(symbols, ELF_SYMBOL_STUB, vaddr);
    *frame = (struct symbols_frame){0};
    if (symbol) {
        frame->function = symbols_own_name(symbols, symbol->name);
        frame->low_vaddr = symbol->vaddr;
        return 1;
    }
    if (!in_code_section(symbols, vaddr))
        return 0;
    if (symbols_unwind_range(symbols, vaddr, &frame->low_vaddr, &end)) {
        char name[32];
        (void)snprintf(name, sizeof name, "func_0x%llx", (unsigned long long)frame->low_vaddr);
        frame->function = own(symbols, name);
    }
    return 1;
}

size_t symbols_lookup(struct symbols *symbols, uint64_t vaddr, struct symbols_frame *frames)
{
    size_t n = symbols_dwarf_lookup(symbols, vaddr, frames);
    if (n > 0 && frames[0].function)
        return n;
    struct symbols_frame by_symbol;
    size_t found = lookup_symbol(symbols, vaddr, &by_symbol);
    if (n == 0) {
        frames[0] = by_symbol;
        return found;
    }
    /* a line table without function entries: assembly */
    frames[0].function = found ? by_symbol.function : NULL;
    frames[0].low_vaddr = found ? by_symbol.low_vaddr : 0;
    return 1;
}

static bool describe_data(struct symbols *symbols, enum elf_symbol_kind kind, uint64_t vaddr, struct symbols_data *data)
{
    const struct elf_symbol *symbol = symbols_elf_find(symbols, kind, vaddr);
    if (!symbol)
        return false;
    *data = (struct symbols_data){
        .name = symbols_own_name(symbols, symbol->name), .vaddr = symbol->vaddr, .size_bytes = symbol->size_bytes};
    const struct dwarf_variable *variable = kind == ELF_SYMBOL_TLS
                                                ? symbols_dwarf_variable_upto(symbols, true, symbol->vaddr)
                                                : symbols_dwarf_variable(symbols, symbol->vaddr);
    if (!variable || variable->vaddr != symbol->vaddr)
        return true;
    data->decl_file = variable->file;
    data->decl_line = variable->line;
    size_t len = variable->name ? strlen(variable->name) : 0;
    /* a static inside a function: the compiler made "name.4" of "name"; a COMMON block: "name_" */
    if (len && strncmp(symbol->name, variable->name, len) == 0 &&
        (symbol->name[len] == '.' || strcmp(symbol->name + len, "_") == 0))
        data->name = variable->name;
    return true;
}

bool symbols_data_at(struct symbols *symbols, uint64_t vaddr, struct symbols_data *data)
{
    return describe_data(symbols, ELF_SYMBOL_DATA, vaddr, data);
}

bool symbols_tls_at(struct symbols *symbols, uint64_t offset, struct symbols_data *data)
{
    return describe_data(symbols, ELF_SYMBOL_TLS, offset, data);
}
