/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the frames of CPython 3.11. The layouts are those of its headers and are checked by the types of the objects
 * that they lead to. Until a first frame has been read completely, and whenever the thread does not hold the
 * interpreter's lock (NumPy gives it up around calloc), every read goes through the kernel, which reports addresses
 * that cannot be read. See alloc-events.h. Runs inside the program's malloc: no malloc, no stdio. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "runtime/allocs/alloc-events.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/thread.h"

#define FRAMES_MAX 16
#define TEXT_BYTES 480
#define NAME_BYTES 120 /* of a function's name, at most */
#define LINE_BYTES 11  /* a newline and a number */
#define FILE_BYTES (TEXT_BYTES - NAME_BYTES - 1 - LINE_BYTES - 1)
#define LINE_TABLE_MAX (1u << 20)
#define STRINGS 16384 /* power of two */
#define PROBES 16
#define WINDOW_BYTES 256
#define PLACES 8192        /* power of two */
#define NO_ROOM UINT32_MAX /* in the place of a reference */
#define TRAIL_BYTES 16
#define LINE_HASH_BYTES 32

/* Offsets in bytes, on machines with 64 bits. */
enum {
    THREAD_CFRAME = 56,
    CFRAME_CURRENT = 8,
    FRAME_CODE = 32,
    FRAME_PREVIOUS = 48,
    FRAME_INSTRUCTION = 56,
    CODE_FIRST_LINE = 72,
    CODE_FILE = 112,
    CODE_NAME = 128, /* qualified */
    CODE_LINES = 136,
    CODE_START = 184,
    OBJECT_TYPE = 8,
    OBJECT_LENGTH = 16,
    TEXT_STATE = 32,
    TEXT_ASCII = 48,
    TEXT_OTHER = 72,
    BYTES_DATA = 32
};

enum trust { TRUST_NONE = 0, TRUST_TRYING, TRUST_READ };

static struct {
    struct python_api api;
    _Atomic int trust; /* enum trust */
    _Atomic uint32_t module;
    _Atomic uint32_t strings[STRINGS]; /* references, by the hash of their text */
    _Atomic uint64_t places[PLACES];   /* by the hash of a frame's place: its upper half and, below it, a reference */
} python;

/* The text of one frame. Each part has a maximum length, and there is room for all of them. */
struct frame_text {
    char text[TEXT_BYTES];
    size_t len;
    bool guarded; /* how it is read */
};

/* The part of a line table that was read last. */
struct line_window {
    bool guarded;
    uintptr_t start, end, table_end;
    uint8_t bytes[WINDOW_BYTES];
};

void python_use(const struct python_api *api)
{
    python.api = *api;
    atomic_store_explicit(&python.trust, TRUST_TRYING, memory_order_release);
}

/* Reads memory. guarded: through the kernel, which reports when there is nothing to read. */
static bool fetch(bool guarded, uintptr_t at, void *to, size_t n_bytes)
{
    if (at < 4096)
        return false;
    if (!guarded) {
        memcpy(to, (const void *)at, n_bytes);
        return true;
    }
    struct iovec local = {to, n_bytes}, remote = {(void *)at, n_bytes};
    long pid = own_call_sig(SYS_getpid);
    return own_call_sig(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0) == (long)n_bytes;
}

static uintptr_t fetch_pointer(bool guarded, uintptr_t at)
{
    uintptr_t value = 0;
    return fetch(guarded, at, &value, sizeof value) ? value : 0;
}

static void put(struct frame_text *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n && out->len + 1 < sizeof out->text; i++)
        out->text[out->len++] = text[i];
}

/* One character in UTF-8, up to 4 bytes; returns their number. A value that is no character, such as a surrogate,
 * becomes '?'. */
static size_t encode(uint32_t c, char *bytes)
{
    if ((c >= 0xd800 && c < 0xe000) || c >= 0x110000)
        c = '?';
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
    return n;
}

/* Character i of a string object's data, of width bytes each; newlines separate the parts of a frame's text. */
static uint32_t character(const uint8_t *data, size_t i, unsigned width)
{
    uint32_t c = data[i];
    uint16_t half;
    if (width == 2) {
        memcpy(&half, data + 2 * i, 2);
        c = half;
    } else if (width == 4) {
        memcpy(&c, data + 4 * i, 4);
    }
    return c == '\n' ? ' ' : c;
}

/* Appends n characters, cut between two characters at max bytes. keep_end: their end is kept and not their beginning.
 */
static void put_characters(struct frame_text *out, const uint8_t *data, size_t n, unsigned width, size_t max,
                           bool keep_end)
{
    char bytes[4];
    size_t first = 0, n_bytes = 0;
    for (size_t i = n; keep_end && i > 0; i--) {
        n_bytes += encode(character(data, i - 1, width), bytes);
        if (n_bytes > max) {
            first = i;
            break;
        }
    }
    n_bytes = 0;
    for (size_t i = first; i < n; i++) {
        size_t more = encode(character(data, i, width), bytes);
        if (n_bytes + more > max)
            return;
        put(out, bytes, more);
        n_bytes += more;
    }
}

/* Appends a string object, at most max bytes, '?' for an empty one. */
static bool put_object(struct frame_text *out, uintptr_t object, size_t max, bool keep_end)
{
    uint32_t state = 0;
    uint64_t length = 0;
    if (fetch_pointer(out->guarded, object + OBJECT_TYPE) != python.api.text_type ||
        !fetch(out->guarded, object + OBJECT_LENGTH, &length, 8) ||
        !fetch(out->guarded, object + TEXT_STATE, &state, 4))
        return false;
    unsigned width = state >> 2 & 7;
    bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    if (!is_compact || (width != 1 && width != 2 && width != 4) || length > 1u << 20)
        return false;
    uint8_t data[4 * FILE_BYTES];
    uint64_t first = keep_end && length > max ? length - max : 0, n = length - first < max ? length - first : max;
    if (n && !fetch(out->guarded, object + (is_ascii ? TEXT_ASCII : TEXT_OTHER) + first * width, data, n * width))
        return false;
    put_characters(out, n ? data : (const uint8_t *)"?", n ? n : 1, n ? width : 1, max, keep_end);
    return true;
}

static void put_number(struct frame_text *out, uint32_t value)
{
    char digits[10];
    size_t n = 0;
    do
        digits[sizeof digits - ++n] = (char)('0' + value % 10);
    while (value /= 10);
    put(out, digits + sizeof digits - n, n);
}

static bool next_byte(struct line_window *window, uintptr_t at, uint8_t *byte)
{
    if (at >= window->table_end)
        return false;
    if (at < window->start || at >= window->end) {
        size_t left = window->table_end - at, n = left < WINDOW_BYTES ? left : WINDOW_BYTES;
        if (!fetch(window->guarded, at, window->bytes, n))
            return false;
        window->start = at;
        window->end = at + n;
    }
    *byte = window->bytes[at - window->start];
    return true;
}

/* Reads a number of the line table: 6 bits per byte, the lowest first, then the sign in the lowest bit. */
static int64_t take_signed(struct line_window *window, uintptr_t at)
{
    uint64_t value = 0;
    uint8_t byte = 0x40;
    for (unsigned shift = 0; byte & 0x40 && shift < 36; shift += 6) {
        if (!next_byte(window, at++, &byte))
            return 0;
        value |= (uint64_t)(byte & 0x3f) << shift;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Where the thread's last search in a line table ended: the next one goes on from there if its instruction lies behind,
 * so that a long function that allocates at every line is read once and not once for every line. The bytes before that
 * place tell whether it is still the same table. */
struct line_cursor {
    uintptr_t code, table, at;
    uint64_t length, address;
    int64_t line;
    uint32_t first_line;
    uint8_t trail[TRAIL_BYTES];
};

static _Thread_local struct line_cursor last_cursor __attribute__((tls_model("initial-exec")));

/* Moves the search to where the last one ended, if that helps. */
static void resume(bool guarded, uint64_t offset, struct line_cursor *cursor)
{
    const struct line_cursor last = last_cursor; /* a handler of the program may allocate, too */
    uint8_t trail[TRAIL_BYTES];
    bool is_same = last.code == cursor->code && last.table == cursor->table && last.length == cursor->length &&
                   last.first_line == cursor->first_line && last.address <= offset &&
                   last.at - cursor->at >= TRAIL_BYTES;
    if (is_same && fetch(guarded, last.at - TRAIL_BYTES, trail, sizeof trail) &&
        memcmp(trail, last.trail, sizeof trail) == 0)
        *cursor = last;
}

static void remember(bool guarded, struct line_cursor *cursor)
{
    bool has_trail = cursor->at - (cursor->table + BYTES_DATA) >= TRAIL_BYTES;
    if (has_trail && fetch(guarded, cursor->at - TRAIL_BYTES, cursor->trail, TRAIL_BYTES))
        last_cursor = *cursor;
}

/* The line of the instruction at offset in the code; the function's first line when the table does not say. */
static uint32_t line_at(bool guarded, uintptr_t code, uint64_t offset, uint32_t first_line)
{
    struct line_cursor here = {.code = code, .first_line = first_line, .line = first_line};
    uint8_t head;
    here.table = fetch_pointer(guarded, code + CODE_LINES);
    here.at = here.table + BYTES_DATA;
    if (fetch_pointer(guarded, here.table + OBJECT_TYPE) != python.api.bytes_type ||
        !fetch(guarded, here.table + OBJECT_LENGTH, &here.length, 8) || here.length > LINE_TABLE_MAX)
        return first_line;
    struct line_window window = {.guarded = guarded, .table_end = here.at + here.length};
    resume(guarded, offset, &here);
    while (next_byte(&window, here.at, &head) && head & 0x80) {
        unsigned kind = head >> 3 & 15;
        uint64_t n_bytes = 2 * ((head & 7) + 1u);
        int64_t line = here.line;
        if (kind == 13 || kind == 14)
            line += take_signed(&window, here.at + 1);
        else if (kind >= 10 && kind <= 12)
            line += kind - 10;
        if (offset >= here.address && offset < here.address + n_bytes) {
            remember(guarded, &here);
            return kind == 15 || line <= 0 ? first_line : (uint32_t)line;
        }
        here.line = line;
        here.address += n_bytes;
        for (here.at++; next_byte(&window, here.at, &head) && !(head & 0x80);)
            here.at++;
    }
    return first_line;
}

/* False when the frame is not as expected. */
static bool describe_frame(uintptr_t frame, struct frame_text *out)
{
    uintptr_t code = fetch_pointer(out->guarded, frame + FRAME_CODE),
              instruction = fetch_pointer(out->guarded, frame + FRAME_INSTRUCTION);
    uint32_t first_line = 0;
    out->len = 0;
    if (fetch_pointer(out->guarded, code + OBJECT_TYPE) != python.api.code_type ||
        !fetch(out->guarded, code + CODE_FIRST_LINE, &first_line, 4) ||
        !put_object(out, fetch_pointer(out->guarded, code + CODE_NAME), NAME_BYTES, false))
        return false;
    put(out, "\n", 1);
    if (!put_object(out, fetch_pointer(out->guarded, code + CODE_FILE), FILE_BYTES, true))
        return false;
    put(out, "\n", 1);
    uint64_t offset = instruction >= code + CODE_START ? instruction - (code + CODE_START) : 0;
    put_number(out, line_at(out->guarded, code, offset, first_line));
    out->text[out->len] = '\0';
    return true;
}

/* The caller holds the arena's lock. */
static uint32_t add_string(_Atomic uint32_t *slot, const struct frame_text *out)
{
    if (!atomic_load_explicit(&python.module, memory_order_relaxed))
        atomic_store_explicit(&python.module, loadmap_pseudo_sig(PYTHON_MODULE, 0), memory_order_release);
    uint32_t ref = arena_shared_string_sig(out->text);
    if (ref)
        atomic_store_explicit(slot, ref, memory_order_release);
    return ref;
}

/* The string's reference; NO_ROOM, or 0 when another thread keeps it from being added. */
static uint32_t string_of(const struct frame_text *out)
{
    uint64_t hash = bytes_hash(BYTES_HASH_START, out->text, out->len);
    for (unsigned i = 0; i < PROBES; i++) {
        _Atomic uint32_t *slot = &python.strings[(hash + i) & (STRINGS - 1)];
        uint32_t ref = atomic_load_explicit(slot, memory_order_acquire);
        const struct arena_string *string = ref ? arena_record_sig(ref) : NULL;
        if (string && (string->len_bytes != out->len || memcmp(string->text, out->text, out->len) != 0))
            continue;
        if (!string && arena_shared_begin_sig()) {
            ref = add_string(slot, out);
            arena_shared_end_sig();
        }
        return ref;
    }
    return NO_ROOM;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Hash of a string object's text, because another string may later be at the same address: the hash that the object
 * stores or, where it has none (as most file names), a hash of the text that we copy. */
static uint64_t hash_of_text(bool guarded, uintptr_t object)
{
    struct {
        uint64_t length, hash;
        uint32_t state;
    } head = {0};
    uint64_t words[FILE_BYTES / 2 + 1]; /* 4 bytes per character */
    if (!fetch(guarded, object + OBJECT_LENGTH, &head, sizeof head))
        return 0;
    uint64_t width = head.state >> 2 & 7, n = head.length < FILE_BYTES ? head.length : FILE_BYTES;
    uint64_t hash = mix(head.length, head.hash), first = (head.length - n) * width;
    bool is_ascii = head.state >> 6 & 1;
    if (head.hash + 1 || width > 4 || head.length > 1u << 20)
        return hash;
    words[n * width / 8] = 0; /* the bytes after the text in its last word */
    if (!fetch(guarded, object + (is_ascii ? TEXT_ASCII : TEXT_OTHER) + first, words, n * width))
        return hash;
    for (size_t i = 0; i < n * width; i += 8)
        hash = mix(hash, words[i / 8]);
    return hash;
}

/* Hash of the beginning of a line table: the code of two modules that differ by empty lines at their top is told apart
 * by nothing else, as the first line of both is 1. */
static uint64_t hash_of_lines(bool guarded, uintptr_t table)
{
    uint64_t words[LINE_HASH_BYTES / 8] = {0}, length = 0;
    if (!fetch(guarded, table + OBJECT_LENGTH, &length, 8))
        return 0;
    size_t n = length < sizeof words ? length : sizeof words;
    uint64_t hash = mix(table, length);
    if (!fetch(guarded, table + BYTES_DATA, words, n))
        return hash;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = mix(hash, words[i]);
    return hash;
}

/* Hash of the place that a frame is at, over all that its text is made of; 0 when the frame is not as expected. */
static uint64_t hash_of_place(bool guarded, uintptr_t frame)
{
    uint64_t words[(CODE_LINES + 8 - CODE_FIRST_LINE) / 8 + 2] = {0}, hash = 0xcbf29ce484222325u;
    const size_t n_code = sizeof words / sizeof *words - 2;
    uintptr_t code = fetch_pointer(guarded, frame + FRAME_CODE);
    if (fetch_pointer(guarded, code + OBJECT_TYPE) != python.api.code_type ||
        !fetch(guarded, code + CODE_FIRST_LINE, words, n_code * 8))
        return 0;
    words[n_code] = code;
    words[n_code + 1] = fetch_pointer(guarded, frame + FRAME_INSTRUCTION);
    words[(CODE_FILE - CODE_FIRST_LINE) / 8] = hash_of_text(guarded, words[(CODE_FILE - CODE_FIRST_LINE) / 8]);
    words[(CODE_NAME - CODE_FIRST_LINE) / 8] = hash_of_text(guarded, words[(CODE_NAME - CODE_FIRST_LINE) / 8]);
    words[(CODE_LINES - CODE_FIRST_LINE) / 8] = hash_of_lines(guarded, words[(CODE_LINES - CODE_FIRST_LINE) / 8]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = mix(hash, words[i]);
    return hash;
}

/* Reference of the string that describes a frame. 0 when there is no room; *is_bad is set when the frame is not as
 * expected. */
static uint32_t string_of_frame(uintptr_t frame, struct frame_text *out, bool *is_bad)
{
    uint64_t hash = hash_of_place(out->guarded, frame);
    _Atomic uint64_t *slot = &python.places[hash & (PLACES - 1)];
    uint64_t known = atomic_load_explicit(slot, memory_order_acquire);
    *is_bad = !hash;
    if (hash && known >> 32 == hash >> 32 && (uint32_t)known)
        return (uint32_t)known == NO_ROOM ? 0 : (uint32_t)known;
    *is_bad = !hash || !describe_frame(frame, out);
    uint32_t ref = *is_bad ? 0 : string_of(out);
    if (ref)
        atomic_store_explicit(slot, hash >> 32 << 32 | ref, memory_order_release);
    return ref == NO_ROOM ? 0 : ref;
}

/* Counts Python frames that were lost: the block keeps the name that native code gives it. */
static void count_lost(void)
{
    atomic_fetch_add_explicit(&arena_header_sig()->n_python_lost, 1, memory_order_relaxed);
}

/* A function of its own because of its large stack frame: programs without Python pay only for a load. */
static __attribute__((noinline)) uint32_t add_frames(struct thread_state *self, uint32_t node, int trust)
{
    uint32_t refs[FRAMES_MAX];
    size_t n = 0;
    struct frame_text out;
    uintptr_t thread = python.api.own();
    if (!thread)
        return node;
    /* without the interpreter's lock another thread may end the interpreter and free the state */
    out.guarded = trust == TRUST_TRYING || python.api.current() != thread;
    uintptr_t frame = fetch_pointer(out.guarded, fetch_pointer(out.guarded, thread + THREAD_CFRAME) + CFRAME_CURRENT);
    while (frame && n < FRAMES_MAX) {
        bool is_bad = false;
        refs[n] = string_of_frame(frame, &out, &is_bad);
        if (is_bad) {
            if (trust == TRUST_TRYING)
                atomic_store_explicit(&python.trust, TRUST_NONE, memory_order_release);
            break;
        }
        if (trust == TRUST_TRYING)
            atomic_store_explicit(&python.trust, TRUST_READ, memory_order_release);
        if (!refs[n++]) {
            count_lost();
            return node;
        }
        frame = fetch_pointer(out.guarded, frame + FRAME_PREVIOUS);
    }
    while (n > 0) {
        uint32_t child =
            cct_child_sig(&self->allocs, node, refs[--n], atomic_load_explicit(&python.module, memory_order_acquire));
        if (!child)
            break;
        node = child;
    }
    return node;
}

uint32_t python_path_hook(struct thread_state *self, uint32_t node)
{
    int trust = atomic_load_explicit(&python.trust, memory_order_acquire);
    return trust != TRUST_NONE && node ? add_frames(self, node, trust) : node;
}
