/* SPDX-License-Identifier: BSD-3-Clause */
/* Making recipes: the bytes of a module, the recipe store, and the maker that fills it. */
#include "fnbounds/recipe-make.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/search.h"

#define VDSO_BYTES_MAX 65536

static int check_header(const struct recipe_image *image, const char *path, struct error *err)
{
    Elf64_Ehdr head;
    if (image->n_bytes < sizeof head || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
        return error_set(err, ERR_FORMAT, "%s is not an ELF file", path);
    memcpy(&head, image->bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != EM_X86_64)
        return error_set(err, ERR_UNSUPPORTED, "%s is not x86-64 code", path);
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phoff > image->n_bytes ||
        (image->n_bytes - head.e_phoff) / sizeof(Elf64_Phdr) < head.e_phnum)
        return error_set(err, ERR_FORMAT, "%s: its program headers lie outside the file", path);
    return 0;
}

static int map_file(struct recipe_image *image, const char *path, struct error *err)
{
    struct stat status;
    int fd = input_open(AT_FDCWD, path, 0, &status);
    if (fd < 0)
        return error_set(err, ERR_IO, "%s: cannot be read: %s", path, input_reason(errno));
    void *bytes = MAP_FAILED;
    if (status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int saved = errno;
    close(fd);
    if (bytes == MAP_FAILED)
        return error_set(err, ERR_IO, "%s: cannot be mapped: %s", path, strerror(saved));
    *image = (struct recipe_image){.bytes = bytes, .n_bytes = (size_t)status.st_size, .is_mapped = true};
    return 0;
}

/* The kernel maps the whole vdso file; its size is the end of the section headers, which come last. */
static int find_vdso(struct recipe_image *image, struct error *err)
{
    const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    Elf64_Ehdr head;
    if (!bytes)
        return error_set(err, ERR_UNSUPPORTED, "this kernel gives no vdso to this process");
    memcpy(&head, bytes, sizeof head);
    uint64_t end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    if (!head.e_shoff || end > VDSO_BYTES_MAX)
        return error_set(err, ERR_FORMAT, "the vdso has an unexpected layout");
    *image = (struct recipe_image){.bytes = bytes, .n_bytes = (size_t)end};
    return 0;
}

/* Unmaps what recipe_image_open mapped. */
static void recipe_image_close(struct recipe_image *image)
{
    if (image->is_mapped)
        munmap((void *)(uintptr_t)image->bytes, image->n_bytes);
    *image = (struct recipe_image){0};
}

/* Maps path, or finds this process's vdso for "[vdso]".  err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED not x86-64 */
static int recipe_image_open(struct recipe_image *image, const char *path, struct error *err)
{
    *image = (struct recipe_image){0};
    int code = strcmp(path, "[vdso]") == 0 ? find_vdso(image, err) : map_file(image, path, err);
    if (code == 0)
        code = check_header(image, path, err);
    if (code != 0)
        recipe_image_close(image);
    return code;
}

/* The file's bytes at ELF virtual address vaddr, NULL when not all n_bytes of them are in one segment of the file.
 * ctx: ordinary code; the result lives until the image is closed. */
static const uint8_t *recipe_image_bytes(const struct recipe_image *image, uint64_t vaddr, size_t n_bytes)
{
    Elf64_Ehdr head;
    memcpy(&head, image->bytes, sizeof head);
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image->bytes + head.e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type != PT_LOAD || vaddr < segment.p_vaddr || vaddr - segment.p_vaddr >= segment.p_filesz)
            continue;
        uint64_t offset = vaddr - segment.p_vaddr;
        if (n_bytes > segment.p_filesz - offset || segment.p_offset > image->n_bytes ||
            segment.p_filesz > image->n_bytes - segment.p_offset)
            return NULL;
        return image->bytes + segment.p_offset + offset;
    }
    return NULL;
}

/* --- the store --- */

/* Layout and growth of the recipe store. Blocks are filled before their slot names them. */

_Static_assert(sizeof(struct recipe) == 48, "recipes are shared between processes");
_Static_assert(sizeof(struct recipe_slot) == 16, "slots are shared between processes");

int recipe_store_init(void *memory, size_t size_bytes, uint32_t n_slots)
{
    struct recipe_store *store = memory;
    uint64_t slots_offset = (sizeof *store + 63) / 64 * 64;
    uint64_t blocks_offset = slots_offset + (uint64_t)n_slots * sizeof(struct recipe_slot);
    if (!n_slots || n_slots & (n_slots - 1) || blocks_offset > size_bytes)
        return ERR_RANGE;
    store->size_bytes = size_bytes;
    store->n_slots = n_slots;
    store->n_used = 0;
    store->slots_offset = slots_offset;
    atomic_store_explicit(&store->next_offset, blocks_offset, memory_order_relaxed);
    memcpy(store->magic, RECIPE_MAGIC, sizeof store->magic);
    return 0;
}

static uint64_t block_bytes(uint32_t n_recipes)
{
    return (sizeof(struct recipe_block) + (uint64_t)n_recipes * sizeof(struct recipe) + 7) / 8 * 8;
}

/* Unpublished block with room for n_recipes recipes at the end of the store, NULL when it does not fit. Abandoned when
 * it is not published before the next call. */
static struct recipe_block *recipe_store_reserve(struct recipe_store *store, uint64_t module_id, uint32_t pc,
                                                 uint32_t n_recipes)
{
    uint64_t offset = atomic_load_explicit(&store->next_offset, memory_order_relaxed);
    uint64_t n_bytes = block_bytes(n_recipes);
    if (offset > store->size_bytes || n_bytes > store->size_bytes - offset || offset / 8 > UINT32_MAX)
        return NULL;
    struct recipe_block *block = (struct recipe_block *)((char *)store + offset);
    block->module_id = module_id;
    block->pc = pc;
    block->n_recipes = n_recipes;
    return block;
}

/* Makes the filled block visible to readers and counts its bytes as used; false when there is no free slot. */
static int recipe_store_publish(struct recipe_store *store, struct recipe_block *block)
{
    struct recipe_slot *slots = (struct recipe_slot *)((char *)store + store->slots_offset);
    uint64_t offset = (uint64_t)((char *)block - (char *)store);
    /* One slot stays empty, so that every search ends. */
    if (store->n_used + 1 >= store->n_slots)
        return ERR_RANGE;
    uint64_t i = recipe_hash(block->module_id, block->pc);
    while (atomic_load_explicit(&slots[i & (store->n_slots - 1)].block, memory_order_relaxed))
        i++;
    struct recipe_slot *slot = &slots[i & (store->n_slots - 1)];
    slot->module_id = block->module_id;
    slot->pc = block->pc;
    store->n_used++;
    uint64_t n_bytes = block_bytes(block->n_recipes);
    atomic_store_explicit(&store->next_offset, offset + n_bytes, memory_order_relaxed);
    atomic_store_explicit(&slot->block, (uint32_t)(offset / 8), memory_order_release);
    return 0;
}

void recipe_store_refuse(struct recipe_store *store, uint64_t module_id, uint32_t pc)
{
    struct recipe_block *block =
        recipe_find_block(store, module_id, pc) ? NULL : recipe_store_reserve(store, module_id, pc, 0);
    if (block)
        (void)recipe_store_publish(store, block);
}

/* --- making --- */

/* The maker: module image + decoder + rules -> published blocks. */

#define FLOWS_KEPT 4
#define FLOW_INSNS_KEPT 8192 /* the memory of a longer function is freed with it */

/* A function that was asked for lately. */
struct kept_flow {
    struct flow flow;
    uint32_t func;
    uint64_t used; /* number of the request that wanted it last, 0: empty */
};

struct recipe_maker {
    const struct modtab_header *table;
    struct recipe_image image;
    struct insn_decoder *decoder;
    struct kept_flow kept[FLOWS_KEPT];
    uint64_t n_requests;
};

int recipe_maker_open(const struct modtab_header *table, const char *elf_path, struct recipe_maker **maker,
                      struct error *err)
{
    struct recipe_maker *m = calloc(1, sizeof *m);
    *maker = NULL;
    if (!m)
        return error_set(err, ERR_MEMORY, "out of memory for the recipes of %s", elf_path);
    m->table = table;
    int code = recipe_image_open(&m->image, elf_path, err);
    if (code == 0 && !(m->decoder = insn_decoder_open()))
        code = error_set(err, ERR_MEMORY, "out of memory for the recipes of %s", elf_path);
    if (code != 0) {
        recipe_maker_close(m);
        return code;
    }
    *maker = m;
    return 0;
}

void recipe_maker_close(struct recipe_maker *maker)
{
    if (!maker)
        return;
    recipe_image_close(&maker->image);
    insn_decoder_close(maker->decoder);
    for (unsigned k = 0; k < FLOWS_KEPT; k++)
        flow_fini(&maker->kept[k].flow);
    free(maker);
}

static const uint8_t *bytes_at_pc(const void *context, uint64_t pc, size_t n_bytes)
{
    const struct recipe_maker *maker = context;
    return recipe_image_bytes(&maker->image, maker->table->base_vaddr + pc, n_bytes);
}

/* Publishes the recipe of instruction i. */
static int publish(const struct recipe_maker *maker, const struct flow *flow, struct recipe_store *store, uint32_t i,
                   struct error *err)
{
    struct recipe made, entry;
    recipe_rules_apply(flow, i, &made);
    made.entry = recipe_rules_entry(flow, i, &entry);
    struct recipe_block *block = recipe_store_reserve(store, maker->table->id, made.pc, 1u + made.entry);
    if (!block)
        return error_set(err, ERR_RANGE, "the recipe store is full (%llu bytes)",
                         (unsigned long long)store->size_bytes);
    block->recipes[0] = made;
    if (made.entry)
        block->recipes[1] = entry;
    if (recipe_store_publish(store, block) != 0)
        return error_set(err, ERR_RANGE, "the recipe store is full (%u places)", store->n_slots);
    return 0;
}

/* The place of a function among those that are kept: its own, or that of the one not wanted for the longest time. */
static struct kept_flow *find_kept(struct recipe_maker *maker, uint32_t func)
{
    struct kept_flow *oldest = maker->kept;
    for (struct kept_flow *kept = maker->kept; kept < maker->kept + FLOWS_KEPT; kept++) {
        if (kept->used && kept->func == func)
            return kept;
        if (kept->used < oldest->used)
            oldest = kept;
    }
    return oldest;
}

/* Decodes a function into kept, unless it is there. */
static int prepare(struct recipe_maker *maker, struct kept_flow *kept, uint32_t func, struct error *err)
{
    const struct modtab_func *range = &modtab_funcs(maker->table)[func];
    uint32_t n_bytes = range->end - range->start;
    if (kept->used && kept->func == func)
        return 0;
    const uint8_t *bytes = range->end > range->start ? bytes_at_pc(maker, range->start, n_bytes) : NULL;
    if (!bytes)
        return error_set(err, ERR_NOT_FOUND, "%s holds no code at %#llx", maker->table->path,
                         (unsigned long long)(maker->table->base_vaddr + range->start));
    if (n_bytes > RECIPE_FUNC_BYTES_MAX)
        return error_set(err, ERR_RANGE, "the function at %#llx of %s has %u bytes",
                         (unsigned long long)(maker->table->base_vaddr + range->start), maker->table->path, n_bytes);
    kept->used = 0;
    if (kept->flow.capacity > FLOW_INSNS_KEPT)
        flow_fini(&kept->flow);
    struct flow_image image = {bytes_at_pc, maker};
    if (!flow_build(&kept->flow, maker->decoder, &image, bytes, range->start, range->end))
        return error_set(err, ERR_MEMORY, "out of memory for a function of %u bytes", n_bytes);
    if (!stride_begin(&kept->flow))
        return error_set(err, ERR_MEMORY, "out of memory for the loops of a function of %u bytes", n_bytes);
    kept->func = func;
    return 0;
}

int recipe_maker_place(struct recipe_maker *maker, struct recipe_store *store, uint32_t pc, struct error *err)
{
    uint64_t vaddr = maker->table->base_vaddr + pc;
    int64_t func = modtab_find_func(maker->table, vaddr);
    if (func < 0)
        return error_set(err, ERR_RANGE, "%s has no function at %#llx", maker->table->path, (unsigned long long)vaddr);
    if (recipe_find_block(store, maker->table->id, pc))
        return 0;
    struct kept_flow *kept = find_kept(maker, (uint32_t)func);
    int code = prepare(maker, kept, (uint32_t)func, err);
    if (code != 0)
        return code;
    kept->used = ++maker->n_requests;
    uint32_t i = flow_find(&kept->flow, pc);
    if (i == INSN_NONE)
        return error_set(err, ERR_NOT_FOUND, "%s has no instruction at %#llx", maker->table->path,
                         (unsigned long long)vaddr);
    return publish(maker, &kept->flow, store, i, err);
}
