/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a module, and the order in which its sources of knowledge are asked: DWARF, symbols, unwind tables. */
#include "structure/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "structure/demangle.h"
#include "structure/frame-slots.h"
#include "structure/types-internal.h"

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
        return error_set(err, ERR_IO, "%s cannot be opened: %s", path, input_reason(errno));
    }
    symbols->dwfl = dwfl_begin(&callbacks);
    if (symbols->dwfl)
        symbols->module = dwfl_report_elf(symbols->dwfl, path, path, fd, 0, true);
    if (!symbols->module) {
        (void)close(fd); /* else it is the module's */
        const char *reason = dwfl_errmsg(-1);
        (void)error_set(err, ERR_FORMAT, "%s is not a usable ELF file: %s", path, reason ? reason : "unknown reason");
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
    types_free(symbols->types);
    free(symbols->variables);
    locals_free(symbols->locals);
    frame_slots_free(symbols->slots);
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
    *frame = (struct symbols_frame){0};
    if (symbol) {
        frame->function = symbols_own_name(symbols, symbol->name);
        frame->low_vaddr = symbol->vaddr;
        return 1;
    }
    if (!in_code_section(symbols, vaddr))
        return 0;
    if (symbols_unwind_start(symbols, vaddr, &frame->low_vaddr)) {
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
    const struct dwarf_variable *variable =
        kind == ELF_SYMBOL_DATA ? symbols_dwarf_variable(symbols, symbol->vaddr) : NULL;
    if (!variable)
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
