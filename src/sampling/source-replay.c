/* SPDX-License-Identifier: BSD-3-Clause */
/* REPLAY:FILE: a captured or generated ring takes the place of the kernel and the hardware, so that the code for other
 * machines can be tried. The text at the start of the file describes the event; the runtime reads the pieces after it.
 * Format of the file: doc/replay.md. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/spe.h"

#define DECODE_SHIFT 8 /* EVENT_DECODE_SHIFT of arena/arena.h */
#define RING_MIN 4096u
#define RING_MAX (256u << 20)

/* A word that may follow a key, and what it sets. */
struct choice {
    const char *key, *word;
    uint32_t flags, decode;
};

static const struct choice choices[] = {
    {"order", "little", __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : SOURCE_SWAPPED, 0},
    {"order", "big", __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? SOURCE_SWAPPED : 0, 0},
    {"mode", "signal", SOURCE_RING, 0},
    {"mode", "batch", SOURCE_BATCH, 0},
    {"mode", "aux", SOURCE_AUX, 0},
    {"decode", "none", 0, MEM_DECODE_NONE},
    {"decode", "data-src", SOURCE_DATA_SRC, MEM_DECODE_DATA_SRC},
    {"decode", "ibs", SOURCE_DATA_SRC, MEM_DECODE_IBS_RAW},
    {"decode", "spe", SOURCE_DATA_SRC, MEM_DECODE_SPE | SPE_SOURCES_COMMON << DECODE_SHIFT},
    {"decode", "spe-neoverse", SOURCE_DATA_SRC, MEM_DECODE_SPE | SPE_SOURCES_NEOVERSE << DECODE_SHIFT},
    {"decode", "spe-ampere", SOURCE_DATA_SRC, MEM_DECODE_SPE | SPE_SOURCES_AMPERE << DECODE_SHIFT},
    {"address", "no", 0, 0},
    {"address", "yes", SOURCE_ADDRESS, 0},
    {"kernel", "no", 0, 0},
    {"kernel", "yes", SOURCE_KERNEL, 0},
};

/* Numbers that are copied into the event. */
struct number {
    const char *key;
    size_t offset, n_bytes;
};
#define NUMBER(key, field)                                                                                             \
    {                                                                                                                  \
        key, offsetof(struct source_event, field), sizeof(((struct source_event *)0)->field)                           \
    }

static const struct number numbers[] = {
    NUMBER("type", attr.type),
    NUMBER("config", attr.config),
    NUMBER("config1", attr.config1),
    NUMBER("config2", attr.config2),
    NUMBER("period", attr.sample_period),
    NUMBER("sample_type", attr.sample_type),
    NUMBER("read_format", attr.read_format),
    NUMBER("branch_sample_type", attr.branch_sample_type),
    NUMBER("sample_regs_user", attr.sample_regs_user),
    NUMBER("sample_regs_intr", attr.sample_regs_intr),
    NUMBER("ring_bytes", ring_bytes),
    NUMBER("aux_bytes", aux_bytes),
};

static void probe(struct source_probe *out)
{
    *out = (struct source_probe){
        .works = true, .is_foreign = true, .reason = "reads a file; needs nothing of the machine"};
}

static bool take_choice(const char *key, const char *word, struct source_event *row)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (strcmp(key, choices[i].key) != 0 || strcmp(word, choices[i].word) != 0)
            continue;
        row->flags |= choices[i].flags;
        row->decode |= choices[i].decode;
        return true;
    }
    return false;
}

static bool take_number(const char *key, const char *word, struct source_event *row)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 0);
    if (!*word || *end || errno)
        return false;
    if (strcmp(key, "freq") == 0 || strcmp(key, "sample_id_all") == 0) {
        row->attr.freq |= key[0] == 'f' && value;
        row->attr.sample_id_all |= key[0] == 's' && value;
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        uint64_t wide = value;
        uint32_t narrow = (uint32_t)value;
        memcpy((char *)row + numbers[i].offset, numbers[i].n_bytes == sizeof narrow ? (void *)&narrow : (void *)&wide,
               numbers[i].n_bytes);
        return numbers[i].n_bytes == sizeof wide || value <= UINT32_MAX;
    }
    return false;
}

static int take_lines(FILE *file, const char *path, struct source_event *row, struct error *err)
{
    char line[256], key[64], word[128];
    if (!fgets(line, sizeof line, file) || strcmp(line, "LOCUS-RING 1\n") != 0)
        return error_set(err, ERR_FORMAT, "%s: line 1: no recorded ring: it would begin with 'LOCUS-RING 1'.", path);
    for (unsigned n = 2; fgets(line, sizeof line, file); n++) {
        if (line[0] == '\n')
            return 0;
        if (line[0] == '#')
            continue;
        if (sscanf(line, "%63s %127[^\n]", key, word) != 2)
            return error_set(err, ERR_FORMAT, "%s: line %u: a key and a value are expected.", path, n);
        if (strcmp(key, "name") == 0)
            (void)snprintf(row->metric, sizeof row->metric, "%.63s", word);
        else if (!take_choice(key, word, row) && !take_number(key, word, row))
            return error_set(err, ERR_FORMAT, "%s: line %u: '%s %.60s' is not known.", path, n, key, word);
    }
    return error_set(err, ERR_FORMAT, "%s: the text does not end with an empty line.", path);
}

static bool is_ring_size(uint32_t n_bytes)
{
    return n_bytes >= RING_MIN && n_bytes <= RING_MAX && !(n_bytes & (n_bytes - 1));
}

static int check_row(const char *path, struct source_event *row, struct error *err)
{
    uint32_t modes = row->flags & (SOURCE_RING | SOURCE_BATCH | SOURCE_AUX);
    if (!modes || modes & (modes - 1))
        return error_set(err, ERR_FORMAT, "%s: one line 'mode signal', 'mode batch' or 'mode aux' is expected.", path);
    if (!is_ring_size(row->ring_bytes))
        return error_set(err, ERR_RANGE, "%s: ring_bytes %u is not a power of two from 4096 to %u.", path,
                         row->ring_bytes, RING_MAX);
    if (row->flags & SOURCE_AUX ? !is_ring_size(row->aux_bytes) : row->aux_bytes != 0)
        return error_set(err, ERR_RANGE,
                         "%s: aux_bytes %u: mode aux needs a power of two from 4096 to %u, the others "
                         "none.",
                         path, row->aux_bytes, RING_MAX);
    if (row->attr.sample_period == 0)
        row->attr.sample_period = 1;
    row->scale = (double)row->attr.sample_period;
    row->attr.size = sizeof row->attr;
    row->attr.write_backward = modes == SOURCE_RING;
    row->flags |= SOURCE_REPLAY | (row->attr.freq ? SOURCE_WEIGHTED : 0);
    if (row->attr.freq)
        row->scale = 1;
    return 0;
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    const char *path = strchr(event, ':');
    if (!path || !path[1])
        return error_set(err, ERR_USAGE, "%s: write REPLAY:FILE.", event);
    if (threshold->is_given && !threshold->is_standard)
        return error_set(err, ERR_RANGE, "%s takes no period: its file states it.", event);
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_PMU_ADDR, event, "REPLAY", err);
    if (!row)
        return ERR_RANGE;
    char *real = realpath(++path, NULL);
    FILE *file = real ? fopen(real, "re") : NULL;
    int status = file ? take_lines(file, path, row, err)
                      : error_set(err, ERR_IO, "%s: cannot be read: %s.", path, strerror(errno));
    if (file)
        (void)fclose(file);
    if (status == 0 && strlen(real) >= sizeof row->file)
        status = error_set(err, ERR_RANGE, "%s: a path of %zu bytes is too long.", real, strlen(real));
    if (status == 0) {
        (void)snprintf(row->file, sizeof row->file, "%s", real);
        (void)snprintf(row->description, sizeof row->description, "Replay of the ring in %.150s", path);
        status = check_row(path, row, err);
    }
    free(real);
    return status;
}

const struct sample_source source_replay = {
    .name = "REPLAY",
    .summary = "REPLAY:FILE takes the samples of a recorded or generated ring for those of this program",
    .takes_file = true,
    .probe = probe,
    .plan = plan,
};
