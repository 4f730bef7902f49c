/* SPDX-License-Identifier: BSD-3-Clause */
/* Machine code as text: see listing.h. */
#include "structure/listing.h"

#include <elf.h>
#include <stdlib.h>

#include "structure/structure-make.h"

/* A function that only the unwind tables know. */
struct bare_function {
    uint64_t start, end;
    struct structure_function *function;
};

struct listing {
    struct symbols *symbols;
    struct structure *structure;
    struct insn_printer *printer; /* NULL: bytes are shown */
    struct bare_function *bare;   /* [n_bare] in the order in which they were asked for */
    size_t n_bare, cap_bare;
};

/* Length of the instruction that begins with these bytes, for machines without a disassembler: 0 where the bytes do not
 * say it in a simple way. */
static unsigned plain_length(uint16_t machine, uint8_t first)
{
    switch (machine) {
    case EM_AARCH64:
    case EM_PPC64:
        return 4;
    case EM_S390: /* the two top bits say it: z/Architecture Principles of Operation, instruction formats */
        return first < 0x40 ? 2 : first < 0xc0 ? 4 : 6;
    default:
        return 0;
    }
}

int listing_open(const char *path, struct listing **listing, struct error *err)
{
    struct listing *made = calloc(1, sizeof *made);
    *listing = NULL;
    if (!made)
        return error_memory(err);
    int code = symbols_open(path, &made->symbols, err);
    if (code == 0 && !(made->structure = structure_new(made->symbols)))
        code = error_memory(err);
    uint16_t machine = code == 0 ? made->structure->image.machine : 0;
    if (code == 0 && machine == EM_X86_64 && !insn_printer_new(&made->printer))
        code = error_memory(err);
    if (code == 0 && !made->printer && !plain_length(machine, 0))
        code = error_set(err, ERR_UNSUPPORTED,
                         "%s: there is no disassembler for its machine (number %u) in this build; see libzydis-dev",
                         path, machine);
    if (code == 0)
        *listing = made;
    else
        listing_close(made);
    return code;
}

void listing_close(struct listing *listing)
{
    if (!listing)
        return;
    for (size_t i = 0; i < listing->n_bare; i++) {
        structure_function_fini(listing->bare[i].function);
        free(listing->bare[i].function);
    }
    free(listing->bare);
    structure_free(listing->structure);
    symbols_close(listing->symbols);
    free(listing->printer);
    free(listing);
}

/* The function in a range of the unwind tables, with the name that symbols_lookup gives it. */
static const struct structure_function *bare_function(struct listing *listing, uint64_t vaddr)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct bare_function bare = {0};
    for (size_t i = 0; i < listing->n_bare; i++)
        if (vaddr >= listing->bare[i].start && vaddr < listing->bare[i].end)
            return listing->bare[i].function;
    if (!symbols_unwind_range(listing->symbols, vaddr, &bare.start, &bare.end) ||
        !vec_reserve(&listing->bare, &listing->cap_bare, listing->n_bare + 1, sizeof *listing->bare) ||
        !(bare.function = calloc(1, sizeof *bare.function)))
        return NULL;
    if (!structure_bare(listing->structure, bare.start, bare.end, bare.function) || bare.function->n_scopes == 0) {
        structure_function_fini(bare.function);
        free(bare.function);
        return NULL;
    }
    if (!bare.function->scopes[0].name && symbols_lookup(listing->symbols, vaddr, frames))
        bare.function->scopes[0].name = frames[0].function;
    listing->bare[listing->n_bare++] = bare;
    return bare.function;
}

const struct structure_function *listing_function(struct listing *listing, uint64_t vaddr)
{
    const struct structure_function *function = structure_function_at(listing->structure, vaddr);
    return function ? function : bare_function(listing, vaddr);
}

/* Appends the name of what the instruction leads to outside the function, or of the data that it names. */
static void put_reference(struct listing *listing, const struct structure_function *function,
                          const struct insn_reference *reference, struct buf *out)
{
    struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
    struct symbols_data data;
    if (!reference->is_code) {
        if (symbols_data_at(listing->symbols, reference->vaddr, &data) && data.name)
            buf_printf(out, "  # %s", data.name);
        return;
    }
    if (structure_span_at(function, reference->vaddr) == STRUCTURE_NONE &&
        symbols_lookup(listing->symbols, reference->vaddr, frames) && frames[0].function)
        buf_printf(out, " <%s>", frames[0].function);
}

static void put_bytes(const uint8_t *bytes, unsigned n, struct buf *out)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(out, i ? " %02x" : "%02x", bytes[i]);
}

unsigned listing_put(struct listing *listing, const struct structure_function *function, uint64_t vaddr,
                     struct buf *out)
{
    uint64_t n_bytes = 0;
    struct insn_reference reference = {0};
    const uint8_t *bytes = code_image_bytes(&listing->structure->image, vaddr, &n_bytes);
    if (!bytes || n_bytes == 0)
        return 0;
    unsigned n = listing->printer ? insn_printer_put(listing->printer, bytes, n_bytes, vaddr, out, &reference)
                                  : plain_length(listing->structure->image.machine, *bytes);
    if (reference.vaddr)
        put_reference(listing, function, &reference, out);
    if (!listing->printer && n <= n_bytes) {
        put_bytes(bytes, n, out);
        return n;
    }
    if (n == 0 || n > n_bytes) {
        put_bytes(bytes, 1, out);
        return 1;
    }
    return n;
}
