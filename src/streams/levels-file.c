/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels in a file, which is mapped as it lies: header, rows, stays, blocks, tops, turns, times, tasks, texts and an
 * index (parts.h). It is of one recording of one size and time, and of one version of ours; whatever else it is, it is
 * made anew. A sum over all of it tells damage; header and index have sums of their own, for who reads nothing else. */
#include "config.h"

#include "streams/levels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/input.h"
#include "streams/levels-file.h"
#include "streams/parts.h"

#define MAGIC "LOCUSTIM"
enum { FILE_VERSION = 4, CHUNK = 1 << 20, N_TEXTS = 7, PAGE_BYTES = 4096 };

/* What is known of a task. */
struct file_task {
    int32_t task, process;
    uint64_t n_events;
    uint32_t is_own, has_comm;
};

struct levels_file_header {
    char magic[8];
    uint32_t version, header_bytes;
    char program[32]; /* version that made it */
    uint64_t sum;     /* of all words, this one as 0 */
    uint64_t own_sum; /* of the header, both as 0 */
    /* of the recording: its size, when it was written, and what it can know */
    uint64_t input_bytes;
    int64_t input_s, input_ns;
    int64_t begin_ns, end_ns, wall_ns;
    uint64_t trace_id, n_events, n_lost, n_lost_places;
    uint32_t n_stream_cpus, tier, clock, has_wall, is_synthesised, spare;
    /* of the levels */
    uint64_t n_cpus, n_cut;
    uint64_t n_rows, n_stays, n_blocks, n_tops, n_turns, n_times, n_tasks, n_text_bytes;
    uint64_t n_index_bytes; /* its sums are its own */
};

_Static_assert(sizeof(struct levels_file_header) % 8 == 0 && sizeof(struct level_row) % 8 == 0 &&
                   sizeof(struct level_stay) % 8 == 0 && sizeof(struct level_block) % 8 == 0 &&
                   sizeof(struct level_top) % 8 == 0 && sizeof(struct file_task) % 8 == 0,
               "all parts lie on multiples of eight");

static uint64_t add_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

static void add_words(struct levels_summing *sum, const void *bytes, size_t n_bytes)
{
    const char *at = bytes, *end = n_bytes ? at + n_bytes / 8 * 8 : at; /* of no bytes there may be no place */
    uint64_t word, words[4], a, b, c, d;
    for (; at < end && sum->n % 4; at += sizeof word, sum->n++) {
        memcpy(&word, at, sizeof word);
        sum->lanes[sum->n % 4] = add_word(sum->lanes[sum->n % 4], word);
    }
    a = sum->lanes[0], b = sum->lanes[1], c = sum->lanes[2], d = sum->lanes[3];
    for (; end - at >= (ptrdiff_t)sizeof words; at += sizeof words, sum->n += 4) {
        memcpy(words, at, sizeof words);
        a = add_word(a, words[0]);
        b = add_word(b, words[1]);
        c = add_word(c, words[2]);
        d = add_word(d, words[3]);
    }
    sum->lanes[0] = a, sum->lanes[1] = b, sum->lanes[2] = c, sum->lanes[3] = d;
    for (; at < end; at += sizeof word, sum->n++) {
        memcpy(&word, at, sizeof word);
        sum->lanes[sum->n % 4] = add_word(sum->lanes[sum->n % 4], word);
    }
}

static uint64_t sum_of(const struct levels_summing *sum)
{
    uint64_t all = sum->n;
    for (size_t i = 0; i < 4; i++)
        all = add_word(all, sum->lanes[i]);
    return all;
}

struct levels_key levels_key_of(const char *recording)
{
    struct stat info;
    if (stat(recording, &info) != 0 || !S_ISREG(info.st_mode))
        return (struct levels_key){0};
    return (struct levels_key){.device = info.st_dev,
                               .inode = info.st_ino,
                               .n_bytes = (uint64_t)info.st_size,
                               .s = info.st_mtim.tv_sec,
                               .ns = info.st_mtim.tv_nsec,
                               .owner = info.st_uid,
                               .mode = info.st_mode};
}

bool levels_key_is_same(const struct levels_key *a, const struct levels_key *b)
{
    return a->device == b->device && a->inode == b->inode && a->n_bytes == b->n_bytes && a->s == b->s && a->ns == b->ns;
}

static struct levels_file_header header_for(const struct levels_key *key)
{
    struct levels_file_header header = {.input_bytes = key->n_bytes,
                                        .input_s = key->s,
                                        .input_ns = key->ns,
                                        .version = FILE_VERSION,
                                        .header_bytes = sizeof header};
    memcpy(header.magic, MAGIC, sizeof header.magic);
    (void)snprintf(header.program, sizeof header.program, "%s", PACKAGE_VERSION);
    return header;
}

/* --- mapping --- */

/* Maps a file that is whole. */
static bool map(int fd, size_t n_file, const struct levels_file_header *header, struct levels *levels)
{
    char *at = mmap(NULL, n_file, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return false;
    *levels = (struct levels){.begin_ns = header->begin_ns,
                              .end_ns = header->end_ns,
                              .n_rows = header->n_rows,
                              .n_cpus = header->n_cpus,
                              .n_stays = header->n_stays,
                              .n_blocks = header->n_blocks,
                              .n_tops = header->n_tops,
                              .n_turns = header->n_turns,
                              .n_times = header->n_times,
                              .n_cut = header->n_cut,
                              .map = at,
                              .n_map = n_file};
    levels->rows = (void *)(at + sizeof *header);
    levels->stays = (void *)(levels->rows + levels->n_rows);
    levels->blocks = (void *)(levels->stays + levels->n_stays);
    levels->tops = (void *)(levels->blocks + levels->n_blocks);
    levels->turns = (void *)(levels->tops + levels->n_tops);
    levels->times = (void *)(levels->turns + levels->n_turns);
    return true;
}

/* The next text, which ends before end; NULL: there is none. */
static const char *next_text(const char **at, const char *end)
{
    const char *text = *at, *zero = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    *at = zero ? zero + 1 : end;
    return zero ? text : NULL;
}

/* Takes a text if there is one; false: out of memory, or the file ends. */
static bool take_text(const char **at, const char *end, char **text)
{
    const char *found = next_text(at, end);
    if (found && *found == '+')
        *text = strdup(found + 1);
    return found && (*text || *found != '+');
}

/* A stream without events that says what the recording is. NULL: out of memory, or the texts are none. */
static struct stream *shell_of(const struct levels_file_header *header, const struct levels *mapped, const char *path)
{
    const struct file_task *tasks = (void *)(mapped->times + mapped->n_times + mapped->n_times % 2);
    const char *texts = (const char *)(tasks + header->n_tasks);
    const char *end = texts + header->n_text_bytes;
    struct stream *shell = calloc(1, sizeof *shell);
    char *kind = NULL;
    bool ok = shell && (shell->path = strdup(path)) && take_text(&texts, end, &kind) &&
              take_text(&texts, end, &shell->host) && take_text(&texts, end, &shell->system) &&
              take_text(&texts, end, &shell->clock_text) && take_text(&texts, end, &shell->possible) &&
              take_text(&texts, end, &shell->online) && take_text(&texts, end, &shell->note);
    if (shell) {
        shell->kind = kind && strcmp(kind, "perf.data") == 0 ? "perf.data" : "trace.dat";
        shell->tier = (enum stream_tier)header->tier;
        shell->clock = (enum stream_clock)header->clock;
        shell->has_wall = header->has_wall;
        shell->wall_ns = header->wall_ns;
        shell->trace_id = header->trace_id;
        shell->n_lost = header->n_lost;
        shell->n_lost_places = header->n_lost_places;
        shell->n_cpus = header->n_stream_cpus;
        shell->is_synthesised = header->is_synthesised;
        shell->tasks = calloc(header->n_tasks + 1, sizeof *shell->tasks);
    }
    free(kind);
    ok = ok && shell->tasks;
    for (size_t i = 0; ok && i < header->n_tasks; i++) {
        shell->tasks[i] = (struct stream_task){.task = tasks[i].task,
                                               .process = tasks[i].process,
                                               .n_events = tasks[i].n_events,
                                               .is_own = tasks[i].is_own};
        shell->n_tasks++;
        const char *comm = tasks[i].has_comm ? next_text(&texts, end) : NULL;
        ok = !tasks[i].has_comm || (comm && (shell->tasks[i].comm = strdup(comm)));
    }
    if (!ok)
        stream_close(shell);
    return ok ? shell : NULL;
}

/* --- writing --- */

void levels_file_put(struct levels_file *file, const void *bytes, size_t n_bytes)
{
    const char *at = bytes;
    if (file->failed)
        return;
    add_words(&file->sum, bytes, n_bytes);
    while (n_bytes && !file->failed) {
        ssize_t n = write(file->fd, at, n_bytes);
        file->failed = n < 0 && errno != EINTR;
        at += n > 0 ? n : 0;
        n_bytes -= n > 0 ? (size_t)n : 0;
    }
}

/* The texts of a stream, each with a zero, up to a multiple of eight. */
static void put_texts(const struct stream *stream, struct buf *out)
{
    static const char zeros[8];
    const char *const texts[N_TEXTS] = {stream->kind,     stream->host,   stream->system, stream->clock_text,
                                        stream->possible, stream->online, stream->note};
    for (size_t i = 0; i < N_TEXTS; i++) {
        buf_append(out, texts[i] ? "+" : "-", 1); /* there is one, or not */
        buf_append(out, texts[i] ? texts[i] : "", (texts[i] ? strlen(texts[i]) : 0) + 1);
    }
    for (size_t i = 0; i < stream->n_tasks; i++) {
        if (stream->tasks[i].comm) {
            stream_put_comms(stream, stream->tasks[i].task, out);
            buf_append(out, "", 1);
        }
    }
    buf_append(out, zeros, -out->len_bytes & 7);
}

static void describe(struct levels_file_header *header, const struct levels *levels, const struct stream *stream)
{
    header->begin_ns = levels->begin_ns;
    header->end_ns = levels->end_ns;
    header->wall_ns = stream->wall_ns;
    header->trace_id = stream->trace_id;
    header->n_events = stream->n_events;
    header->n_lost = stream->n_lost;
    header->n_lost_places = stream->n_lost_places;
    header->n_stream_cpus = stream->n_cpus;
    header->tier = stream->tier;
    header->clock = stream->clock;
    header->has_wall = stream->has_wall;
    header->is_synthesised = stream->is_synthesised;
    header->n_cpus = levels->n_cpus;
    header->n_cut = levels->n_cut;
    header->n_rows = levels->n_rows;
    header->n_stays = levels->n_stays;
    header->n_blocks = levels->n_blocks;
    header->n_tops = levels->n_tops;
    header->n_turns = levels->n_turns;
    header->n_times = levels->n_times;
    header->n_tasks = stream->n_tasks;
}

/* A file without a name in the directory of path, which nobody has to remove when we are killed; else one with the
 * name. -1: none can be made. */
static int open_unnamed(const char *path, char *name)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int fd = directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(directory);
    return fd < 0 ? mkostemp(name, O_CLOEXEC) : fd;
}

/* Gives what was written its name. */
static bool publish(int fd, const char *name, const char *path)
{
    struct stat info;
    char self[64];
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    bool is_named =
        fstat(fd, &info) == 0 && (info.st_nlink > 0 || linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0);
    return is_named && rename(name, path) == 0;
}

/* Whether the disk has room for levels: else they would be made in vain. */
static bool has_room(int fd, uint64_t n_bytes)
{
    struct statvfs info;
    return fstatvfs(fd, &info) != 0 || info.f_blocks == 0 || info.f_frsize == 0 ||
           info.f_bavail >= n_bytes / info.f_frsize;
}

bool levels_file_takes(const struct stream *stream)
{
    bool is_known = strcmp(stream->kind, "trace.dat") == 0 || strcmp(stream->kind, "perf.data") == 0;
    return is_known && stream->n_events > 0 && !stream->couplebreak_on;
}

int levels_file_begin(struct levels_file *file, const struct levels_key *key, const char *path, uint64_t n_bytes,
                      struct error *err)
{
    *file = (struct levels_file){.key = key, .path = path, .fd = -1};
    if (!key->n_bytes)
        return error_set(err, ERR_UNSUPPORTED, "%.600s: would be of no file", path);
    file->header = malloc(sizeof *file->header);
    buf_printf(&file->name, "%s.XXXXXX", path);
    if (!file->header || file->name.failed)
        return error_memory(err);
    file->fd = open_unnamed(path, file->name.data);
    if (file->fd >= 0 && !has_room(file->fd, n_bytes))
        return error_set(err, ERR_IO, "%.600s: cannot write: %s", path, strerror(ENOSPC));
    return file->fd < 0 ? error_set(err, ERR_IO, "%.600s: cannot write: %s", path, strerror(errno)) : 0;
}

void levels_file_put_head(struct levels_file *file, const struct levels *levels)
{
    put_texts(file->stream, &file->texts);
    *file->header = header_for(file->key);
    describe(file->header, levels, file->stream);
    file->header->n_text_bytes = file->texts.len_bytes;
    file->header->n_index_bytes = file->index.len_bytes + file->blocks.len_bytes;
    file->header->own_sum = levels_sum(file->header, sizeof *file->header);
    file->failed = file->index.failed || file->blocks.failed || file->texts.failed;
    levels_file_put(file, file->header, sizeof *file->header);
    levels_file_put(file, levels->rows, levels->n_rows * sizeof *levels->rows);
}

/* What is known of tasks, the texts, and the sum, which the head has. */
static void put_end(struct levels_file *file)
{
    for (size_t i = 0; i < file->stream->n_tasks; i++) {
        const struct stream_task *task = &file->stream->tasks[i];
        const struct file_task row = {task->task, task->process, task->n_events, task->is_own, task->comm != NULL};
        levels_file_put(file, &row, sizeof row);
    }
    levels_file_put(file, file->texts.data, file->texts.len_bytes);
    levels_file_put(file, file->index.data, file->index.len_bytes);
    levels_file_put(file, file->blocks.data, file->blocks.len_bytes);
    file->header->sum = sum_of(&file->sum);
    file->failed = file->failed ||
                   pwrite(file->fd, file->header, sizeof *file->header, 0) != (ssize_t)sizeof *file->header ||
                   fchmod(file->fd, file->key->mode & S_IROTH ? 0644 : 0600) != 0;
}

int levels_file_finish(struct levels_file *file, struct levels *levels, struct stream **shell, struct error *err)
{
    struct stat info;
    struct levels mapped;
    put_end(file);
    if (file->failed || fstat(file->fd, &info) != 0 || !map(file->fd, (size_t)info.st_size, file->header, &mapped))
        return error_set(err, ERR_IO, "%.600s: cannot write: %s", file->path, strerror(errno));
    if (shell)
        *shell = shell_of(file->header, &mapped, file->stream->path);
    bool has_shell = !shell || *shell;
    if (!has_shell || !publish(file->fd, file->name.data, file->path)) {
        levels_fini(&mapped);
        if (shell)
            stream_close(*shell);
        return has_shell ? error_set(err, ERR_IO, "%.600s: cannot write: %s", file->path, strerror(errno))
                         : error_memory(err);
    }
    file->is_done = true;
    levels_fini(levels);
    *levels = mapped;
    return 0;
}

void levels_file_drop(struct levels_file *file)
{
    struct stat info;
    bool is_left = file->fd >= 0 && !file->is_done && fstat(file->fd, &info) == 0 && info.st_nlink > 0;
    if (is_left) /* where a file cannot be without a name */
        (void)unlink(file->name.data);
    if (file->fd >= 0)
        (void)close(file->fd);
    buf_fini(&file->texts);
    buf_fini(&file->index);
    buf_fini(&file->blocks);
    buf_fini(&file->name);
    free(file->header);
    file->fd = -1;
}

/* --- room --- */

struct levels_slab {
    struct levels_slab *before;
    size_t n_bytes, n_used;
    bool is_in_file;
};

enum { SLAB_LEAST = 1 << 16, SLAB_MOST = 1 << 24, ROOM_IN_MEMORY = 256 << 20, PASS_BYTES = 64 << 20 };

/* Lets go what of a slab lies in a file: whoever needs it gets it from the system's cache. */
static void rest(const struct levels_slab *slab)
{
    if (slab && slab->is_in_file)
        (void)madvise((char *)(uintptr_t)slab + PAGE_BYTES, slab->n_bytes - PAGE_BYTES, MADV_DONTNEED);
}

/* The next n_bytes of the file; MAP_FAILED: there is none, or the disk is full. */
static void *map_slab(struct levels_room *room, size_t n_bytes)
{
    struct buf name = {0};
    if (!room->file || room->n_bytes < ROOM_IN_MEMORY)
        return MAP_FAILED;
    if (!room->has_file) {
        room->has_file = true;
        buf_printf(&name, "%s.XXXXXX", room->file->path);
        room->fd = name.failed ? -1 : open_unnamed(room->file->path, name.data);
        struct stat info;
        if (room->fd >= 0 && fstat(room->fd, &info) == 0 && info.st_nlink > 0)
            (void)unlink(name.data);
        buf_fini(&name);
    }
    if (room->fd < 0 || posix_fallocate(room->fd, (off_t)room->n_in_file, (off_t)n_bytes) != 0)
        return MAP_FAILED;
    void *at = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, room->fd, (off_t)room->n_in_file);
    room->n_in_file += at == MAP_FAILED ? 0 : n_bytes;
    return at;
}

void levels_room_pass(struct levels_room *room, size_t n_bytes)
{
    room->n_passed += n_bytes;
    if (!room->n_in_file || room->n_passed < PASS_BYTES)
        return;
    room->n_passed = 0;
    for (const struct levels_slab *slab = room->slab; slab; slab = slab->before)
        rest(slab);
}

static bool add_slab(struct levels_room *room)
{
    size_t n = room->slab ? room->slab->n_bytes * 4 : SLAB_LEAST;
    n = n < SLAB_MOST ? n : SLAB_MOST;
    struct levels_slab *more = map_slab(room, n);
    bool is_in_file = more != MAP_FAILED;
    if (!is_in_file)
        more = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED)
        return false;
    levels_room_pass(room, n); /* pieces of all slabs are filled */
    *more = (struct levels_slab){room->slab, n, sizeof *more, is_in_file};
    room->slab = more;
    room->n_bytes += n;
    return true;
}

void *levels_room_take(struct levels_room *room, size_t n_bytes)
{
    struct levels_slab *slab = room->slab;
    n_bytes = (n_bytes + 7) / 8 * 8;
    if ((!slab || slab->n_bytes - slab->n_used < n_bytes) && !add_slab(room))
        return NULL;
    slab = room->slab;
    void *at = (char *)slab + slab->n_used;
    slab->n_used += n_bytes;
    return at;
}

void levels_room_free(struct levels_room *room)
{
    for (struct levels_slab *slab = room->slab, *before; slab; slab = before) {
        before = slab->before;
        (void)munmap(slab, slab->n_bytes);
    }
    if (room->has_file && room->fd >= 0)
        (void)close(room->fd);
    room->slab = NULL;
}

/* --- reading --- */

/* Counts and places in a file, checked. */
static bool add_part(uint64_t *at, uint64_t n, size_t each, uint64_t n_file)
{
    if (n > (n_file - *at) / each)
        return false;
    *at += n * each;
    return true;
}

static bool fits(const struct levels_file_header *header, uint64_t n_file)
{
    uint64_t at = sizeof *header;
    int64_t length_ns;
    return add_part(&at, header->n_rows, sizeof(struct level_row), n_file) &&
           add_part(&at, header->n_stays, sizeof(struct level_stay), n_file) &&
           add_part(&at, header->n_blocks, sizeof(struct level_block), n_file) &&
           add_part(&at, header->n_tops, sizeof(struct level_top), n_file) &&
           add_part(&at, header->n_turns, sizeof(struct level_turn), n_file) &&
           add_part(&at, header->n_times, sizeof(uint32_t), n_file) &&
           add_part(&at, header->n_times % 2, sizeof(uint32_t), n_file) &&
           add_part(&at, header->n_tasks, sizeof(struct file_task), n_file) &&
           add_part(&at, header->n_text_bytes, 1, n_file) && add_part(&at, header->n_index_bytes, 1, n_file) &&
           at == n_file && header->tier <= STREAM_TIER_NONE && header->clock <= STREAM_CLOCK_COUNTER &&
           header->n_stream_cpus <= STREAM_NO_CPU && header->begin_ns <= header->end_ns &&
           !__builtin_sub_overflow(header->end_ns, header->begin_ns, &length_ns);
}

/* Whether the file is that of the recording as it is now, by its head. */
static bool is_wanted(int fd, uint64_t n_file, const struct levels_file_header *wanted,
                      struct levels_file_header *header)
{
    return n_file >= sizeof *header && pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
           memcmp(header->magic, wanted->magic, sizeof header->magic) == 0 && header->version == wanted->version &&
           header->header_bytes == wanted->header_bytes && memcmp(header->program, wanted->program, 32) == 0 &&
           header->input_bytes == wanted->input_bytes && header->input_s == wanted->input_s &&
           header->input_ns == wanted->input_ns && fits(header, n_file);
}

/* The same, and whole. */
static bool is_whole(int fd, uint64_t n_file, const struct levels_file_header *wanted,
                     struct levels_file_header *header)
{
    if (!is_wanted(fd, n_file, wanted, header))
        return false;
    struct levels_file_header first = *header;
    struct levels_summing sum = {.n = 0};
    char *chunk = malloc(CHUNK);
    uint64_t at = sizeof first;
    first.sum = 0;
    add_words(&sum, &first, sizeof first);
    while (chunk && at < n_file) {
        size_t n_wanted = n_file - at < CHUNK ? (size_t)(n_file - at) : CHUNK;
        ssize_t n = pread(fd, chunk, n_wanted, (off_t)at);
        if (n != (ssize_t)n_wanted)
            break;
        add_words(&sum, chunk, n_wanted);
        at += n_wanted;
    }
    free(chunk);
    return at == n_file && sum_of(&sum) == header->sum;
}

/* Whether what rows have lies in the file, each behind the one before. */
static bool rows_fit(const struct levels *levels)
{
    for (size_t i = 0; i < levels->n_rows; i++) {
        const struct level_row *row = &levels->rows[i];
        size_t n_blocks = level_n_blocks(row->n_stays), n_tops = level_n_tops(row->n_stays);
        if (row->kind > LEVEL_TASK || row->n_stays > levels->n_stays ||
            row->first_stay > levels->n_stays - row->n_stays || n_blocks > levels->n_blocks ||
            row->first_block > levels->n_blocks - n_blocks || n_tops > levels->n_tops ||
            row->first_top > levels->n_tops - n_tops)
            return false;
        for (unsigned mark = 0; mark < LEVEL_MARKS; mark++)
            if (row->n_times[mark] > levels->n_times || row->first_time[mark] > levels->n_times - row->n_times[mark] ||
                row->n_turns[mark] > levels->n_turns || row->first_turn[mark] > levels->n_turns - row->n_turns[mark])
                return false;
    }
    return true;
}

/* Opens what levels_make_kept has kept, if somebody may be believed who has written it; -1: it is not. */
static int open_trusted(const char *path, const struct levels_key *key, uint64_t *n_file)
{
    struct stat info;
    int fd = key->n_bytes ? input_open(AT_FDCWD, path, 0, &info) : -1;
    bool is_trusted = fd >= 0 && (info.st_uid == geteuid() || info.st_uid == 0 || info.st_uid == key->owner);
    if (fd >= 0 && !is_trusted)
        (void)close(fd);
    *n_file = is_trusted ? (uint64_t)info.st_size : 0;
    return is_trusted ? fd : -1;
}

struct parts_index *levels_read_index(const struct levels_key *key, const char *path)
{
    struct levels_file_header wanted = header_for(key), header, plain;
    uint64_t n_file;
    void *at = MAP_FAILED;
    int fd = open_trusted(path, key, &n_file);
    bool is_there = fd >= 0 && is_wanted(fd, n_file, &wanted, &header) && header.n_index_bytes > 0;
    if (is_there) {
        plain = header;
        plain.sum = plain.own_sum = 0;
        is_there = levels_sum(&plain, sizeof plain) == header.own_sum;
        at = is_there ? mmap(NULL, n_file, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    }
    if (fd >= 0)
        (void)close(fd);
    return at == MAP_FAILED ? NULL : parts_index_take(at, n_file, n_file - header.n_index_bytes);
}

uint64_t levels_sum(const void *bytes, size_t n_bytes)
{
    struct levels_summing sum = {.n = 0};
    add_words(&sum, bytes, n_bytes);
    return sum_of(&sum);
}

bool levels_map(const char *recording, const struct levels_key *key, const char *path, struct levels *levels,
                struct stream **shell, uint64_t *n_events)
{
    struct levels_file_header wanted = header_for(key), header;
    uint64_t n_file;
    *shell = NULL;
    int fd = open_trusted(path, key, &n_file);
    if (fd < 0)
        return false;
    bool is_there = is_whole(fd, n_file, &wanted, &header) && map(fd, n_file, &header, levels);
    if (is_there) {
        *shell = rows_fit(levels) ? shell_of(&header, levels, recording) : NULL;
        is_there = *shell;
        if (!is_there)
            levels_fini(levels);
    }
    *n_events = is_there ? header.n_events : 0;
    (void)close(fd);
    return is_there;
}
