/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread's state in the interpreter of Python, and the place of a frame as text: function, file and line. The layouts
 * are those of the interpreter's headers and are checked by the types of the objects that they lead to. Until a first
 * frame has been read completely, and whenever memory may go while it is read, every read goes through the kernel,
 * which reports addresses that cannot be read. See python.h. Runs in the signal handler and inside the program's
 * malloc. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/path.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/record/arena-writer.h"
#include "runtime/record/loadmap.h"
#include "runtime/record/python.h"

#include "base/sigsafe.h"

#define NAME_BYTES 120 /* of a function's name, at most */
#define LINE_BYTES 11  /* a newline and a number */
#define LINE_TABLE_MAX (1u << 20)
#define STRINGS 16384      /* power of two */
#define PLACE_SETS 4096    /* power of two */
#define PLACE_WAYS 8       /* of a set, which is a line of the cache */
#define NO_ROOM UINT32_MAX /* in the place of a reference */
#define LINE_HASH_BYTES 32

_Static_assert(NAME_BYTES + 1 + PYTHON_FILE_BYTES + 2 * LINE_BYTES + 1 <= PYTHON_TEXT_BYTES,
               "there is room for all parts");

enum { OBJECT_TYPE = 8, OBJECT_LENGTH = 16, TEXT_STATE = 32, BYTES_DATA = 32 };

static struct {
    struct python_api api;
    _Atomic int trust; /* enum python_trust */
    _Atomic uint32_t module;
    _Atomic uint32_t strings[STRINGS]; /* references, by the hash of their text */
    /* By the hash of a frame's place: its upper half and, below it, a reference. */
    _Alignas(64) _Atomic uint64_t places[PLACE_SETS][PLACE_WAYS];
} python;

/* The part of a line table that was read last. */
struct line_window {
    struct python_text *text; /* the bytes are in its words */
    uintptr_t start, end, table_end;
};

void python_use_sig(const struct python_api *api)
{
    python.api = *api;
    python_set_trust_sig(PYTHON_TRYING);
}

const struct python_api *python_api_sig(void)
{
    return &python.api;
}

enum python_trust python_trust_sig(void)
{
    return (enum python_trust)atomic_load_explicit(&python.trust, memory_order_acquire);
}

void python_set_trust_sig(enum python_trust trust)
{
    atomic_store_explicit(&python.trust, trust, memory_order_release);
}

uint32_t python_module_sig(void)
{
    return atomic_load_explicit(&python.module, memory_order_acquire);
}

bool python_is_guarded_sig(uintptr_t pc)
{
    enum { BEGIN_BYTES = 512 }; /* the record is filled within 170 of the builds that were looked at, on x86-64 */
    return python_trust_sig() == PYTHON_TRYING || pc - python.api.evaluation < BEGIN_BYTES;
}

bool python_fetch_sig(bool guarded, uintptr_t at, void *to, size_t n_bytes)
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

uintptr_t python_pointer_sig(bool guarded, uintptr_t at)
{
    uintptr_t value = 0;
    if (at & 7)
        return 0;
    if (!guarded)
        return at < 4096 ? 0 : *(const uintptr_t *)at;
    return python_fetch_sig(guarded, at, &value, sizeof value) ? value : 0;
}

void python_text_begin_sig(struct python_text *text, struct python_cursor *cursor, bool guarded)
{
    text->guarded = guarded;
    text->hashed_code = text->hashed_file = 0;
    text->code_hash = text->file_hash = 0;
    text->cursor = cursor;
}

/* --- the thread's state --- */

/* State of the calling thread for the interpreter that it used last, 0 when it has none. Its memory stays as long as
 * the thread runs, unless the interpreter ends. */
static __attribute__((noinline)) uintptr_t own_state(void)
{
    const struct python_api *api = &python.api;
    const int32_t *key = (const int32_t *)(api->runtime + api->layout.runtime_key); /* is it made, and its number */
    return key[0] ? (uintptr_t)api->value_of((pthread_key_t)key[1]) : 0;
}

/* Whether the state, of which nothing is known, is the calling thread's. */
static bool is_own(const struct python_api *api, uintptr_t state)
{
    return python_pointer_sig(true, state + api->layout.thread_id) ==
           arch_thread_pointer_sig() + (uintptr_t)api->self_offset;
}

uintptr_t python_state_sig(struct python_path *mine, bool is_guarded)
{
    const struct python_api *api = &python.api;
    const struct python_layout *layout = &api->layout;
    uintptr_t own = own_state(), ending = *(const uintptr_t *)(api->runtime + layout->runtime_finalizing);
    if (!own || (ending && ending != own) || (own != mine->state && !is_own(api, own)))
        return 0;
    mine->state = own;
    uintptr_t first = *(const uintptr_t *)(api->runtime + layout->runtime_interpreters);
    if (!layout->runtime_current ||
        !python_pointer_sig(is_guarded, first)) /* its first member is the next interpreter */
        return own;
    uintptr_t current = *(const uintptr_t *)(api->runtime + layout->runtime_current);
    return current && current != own && is_own(api, current) ? current : own;
}

/* --- text --- */

static void put(struct python_text *out, const char *text, size_t n)
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
static void put_characters(struct python_text *out, const uint8_t *data, size_t n, unsigned width, size_t max,
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
static bool put_object(struct python_text *out, uintptr_t object, size_t max, bool keep_end)
{
    const struct python_layout *layout = &python.api.layout;
    uint32_t state = 0;
    uint64_t length = 0;
    if (python_pointer_sig(out->guarded, object + OBJECT_TYPE) != python.api.text_type ||
        !python_fetch_sig(out->guarded, object + OBJECT_LENGTH, &length, 8) ||
        !python_fetch_sig(out->guarded, object + TEXT_STATE, &state, 4))
        return false;
    unsigned width = state >> 2 & 7;
    bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    if (!is_compact || (width != 1 && width != 2 && width != 4) || length > 1u << 20)
        return false;
    uint8_t *data = (uint8_t *)out->words;
    uint64_t first = keep_end && length > max ? length - max : 0, n = length - first < max ? length - first : max;
    uintptr_t start = object + (is_ascii ? layout->text_ascii : layout->text_other) + first * width;
    if (n && !python_fetch_sig(out->guarded, start, data, n * width))
        return false;
    put_characters(out, n ? data : (const uint8_t *)"?", n ? n : 1, n ? width : 1, max, keep_end);
    return true;
}

static void put_number(struct python_text *out, uint32_t value)
{
    char digits[10];
    size_t n = 0;
    do
        digits[sizeof digits - ++n] = (char)('0' + value % 10);
    while (value /= 10);
    put(out, digits + sizeof digits - n, n);
}

/* --- line tables --- */

static bool next_byte(struct line_window *window, uintptr_t at, uint8_t *byte)
{
    uint8_t *bytes = (uint8_t *)window->text->words;
    if (at >= window->table_end)
        return false;
    if (at < window->start || at >= window->end) {
        size_t left = window->table_end - at, n = left < PYTHON_WINDOW_BYTES ? left : PYTHON_WINDOW_BYTES;
        if (!python_fetch_sig(window->text->guarded, at, bytes, n))
            return false;
        window->start = at;
        window->end = at + n;
    }
    *byte = bytes[at - window->start];
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

/* Moves the search to where the last one ended, if that helps. */
static void resume(struct python_text *text, uint64_t offset, struct python_cursor *cursor)
{
    const struct python_cursor last = *text->cursor; /* a handler of the program may allocate, too */
    uint8_t trail[PYTHON_TRAIL_BYTES];
    bool is_same = last.code == cursor->code && last.table == cursor->table && last.length == cursor->length &&
                   last.first_line == cursor->first_line && last.address <= offset &&
                   last.at - cursor->at >= PYTHON_TRAIL_BYTES;
    if (is_same && python_fetch_sig(text->guarded, last.at - PYTHON_TRAIL_BYTES, trail, sizeof trail) &&
        memcmp(trail, last.trail, sizeof trail) == 0)
        *cursor = last;
}

static void remember(struct python_text *text, struct python_cursor *cursor)
{
    bool has_trail = cursor->at - (cursor->table + BYTES_DATA) >= PYTHON_TRAIL_BYTES;
    if (has_trail &&
        python_fetch_sig(text->guarded, cursor->at - PYTHON_TRAIL_BYTES, cursor->trail, PYTHON_TRAIL_BYTES))
        *text->cursor = *cursor;
}

/* Entry of the table of 3.11 and later at the cursor: its line (0: it has none), how many bytes of code it is for, and
 * how many bytes it takes. False at the end. */
static bool take_location(struct line_window *window, struct python_cursor *here, int64_t *line, uint64_t *n_bytes)
{
    uint8_t head;
    if (!next_byte(window, here->at, &head) || !(head & 0x80))
        return false;
    unsigned kind = head >> 3 & 15;
    *n_bytes = 2 * ((head & 7) + 1u);
    if (kind == 13 || kind == 14)
        here->line += take_signed(window, here->at + 1);
    else if (kind >= 10 && kind <= 12)
        here->line += kind - 10;
    *line = kind == 15 ? 0 : here->line;
    return true;
}

/* The same of the pairs of bytes of 3.10: length of the code, and the change of the line before it; -128: no line. */
static bool take_pair(struct line_window *window, struct python_cursor *here, int64_t *line, uint64_t *n_bytes)
{
    uint8_t length, change;
    if (!next_byte(window, here->at, &length) || !next_byte(window, here->at + 1, &change))
        return false;
    *n_bytes = length;
    if ((int8_t)change != -128)
        here->line += (int8_t)change;
    *line = (int8_t)change == -128 ? 0 : here->line;
    return true;
}

static uintptr_t after_location(struct line_window *window, uintptr_t at)
{
    uint8_t head;
    for (at++; next_byte(window, at, &head) && !(head & 0x80);)
        at++;
    return at;
}

/* Searches a table of 3.10 or later: each entry is for the code after that of the entry before. */
static uint32_t search_lines(struct python_text *text, struct python_cursor *here, uint64_t offset)
{
    struct line_window window = {.text = text, .table_end = here->at + here->length};
    bool is_pairs = python.api.layout.lines == PYTHON_LINETABLE;
    int64_t line;
    uint64_t n_bytes;
    resume(text, offset, here);
    for (;;) {
        struct python_cursor before = *here;
        bool is_entry =
            is_pairs ? take_pair(&window, here, &line, &n_bytes) : take_location(&window, here, &line, &n_bytes);
        if (!is_entry)
            return here->first_line;
        if (offset >= here->address && offset < here->address + n_bytes) {
            remember(text, &before);
            return line <= 0 ? here->first_line : (uint32_t)line;
        }
        here->address += n_bytes;
        here->at = is_pairs ? here->at + 2 : after_location(&window, here->at);
    }
}

/* Searches a table of 3.9: pairs of steps of code and line from one place where a line begins to the next. */
static uint32_t search_steps(struct python_text *text, struct python_cursor *here, uint64_t offset)
{
    struct line_window window = {.text = text, .table_end = here->at + here->length};
    uint8_t step, change;
    while (next_byte(&window, here->at, &step) && next_byte(&window, here->at + 1, &change)) {
        here->address += step;
        if (here->address > offset)
            break;
        here->line += (int8_t)change;
        here->at += 2;
    }
    return here->line <= 0 ? here->first_line : (uint32_t)here->line;
}

/* The line of the instruction at offset in the code; the function's first line when the table does not say. */
static uint32_t line_at(struct python_text *text, uintptr_t code, uint64_t offset, uint32_t first_line)
{
    struct python_cursor here = {.code = code, .first_line = first_line, .line = first_line};
    here.table = python_pointer_sig(text->guarded, code + python.api.layout.code_lines);
    here.at = here.table + BYTES_DATA;
    if (python_pointer_sig(text->guarded, here.table + OBJECT_TYPE) != python.api.bytes_type ||
        !python_fetch_sig(text->guarded, here.table + OBJECT_LENGTH, &here.length, 8) || here.length > LINE_TABLE_MAX)
        return first_line;
    return python.api.layout.lines == PYTHON_LNOTAB ? search_steps(text, &here, offset)
                                                    : search_lines(text, &here, offset);
}

/* --- frames --- */

/* Offset in bytes of the instruction that the frame executes, in its code. */
static uint64_t instruction_offset(bool guarded, uintptr_t frame, uintptr_t code)
{
    const struct python_layout *layout = &python.api.layout;
    int32_t last = 0;
    if (layout->linkage == PYTHON_ONE_EACH) {
        (void)python_fetch_sig(guarded, frame + layout->frame_instruction, &last, 4);
        return last < 0 ? 0 : (uint64_t)last * (layout->lines == PYTHON_LNOTAB ? 1 : 2);
    }
    uintptr_t instruction = python_pointer_sig(guarded, frame + layout->frame_instruction),
              start = code + layout->code_start;
    return instruction >= start ? instruction - start : 0;
}

/* False when the frame is not as expected. */
static bool describe_frame(uintptr_t frame, struct python_text *out)
{
    const struct python_layout *layout = &python.api.layout;
    uintptr_t code = python_pointer_sig(out->guarded, frame + layout->frame_code);
    uint32_t first_line = 0;
    out->len = 0;
    if (python_pointer_sig(out->guarded, code + OBJECT_TYPE) != python.api.code_type ||
        !python_fetch_sig(out->guarded, code + layout->code_first_line, &first_line, 4) ||
        !put_object(out, python_pointer_sig(out->guarded, code + layout->code_name), NAME_BYTES, false))
        return false;
    put(out, "\n", 1);
    if (!put_object(out, python_pointer_sig(out->guarded, code + layout->code_file), PYTHON_FILE_BYTES, true))
        return false;
    put(out, "\n", 1);
    put_number(out, line_at(out, code, instruction_offset(out->guarded, frame, code), first_line));
    put(out, "\n", 1);
    put_number(out, first_line);
    out->text[out->len] = '\0';
    return true;
}

/* The caller holds the arena's lock. */
static uint32_t add_string(_Atomic uint32_t *slot, const struct python_text *out)
{
    if (!atomic_load_explicit(&python.module, memory_order_relaxed))
        atomic_store_explicit(&python.module, loadmap_pseudo_sig(PYTHON_MODULE, 0), memory_order_release);
    uint32_t ref = arena_shared_string_sig(out->text);
    if (ref)
        atomic_store_explicit(slot, ref, memory_order_release);
    return ref;
}

/* The string's reference; NO_ROOM, or 0 when another thread keeps it from being added. */
static uint32_t string_of(const struct python_text *out)
{
    _Atomic uint32_t *slot = arena_string_place_sig(python.strings, STRINGS, out->text, out->len);
    uint32_t ref = slot ? atomic_load_explicit(slot, memory_order_acquire) : NO_ROOM;
    if (ref || !arena_shared_begin_sig())
        return ref;
    ref = add_string(slot, out);
    arena_shared_end_sig();
    return ref;
}

/* Hash of a string object's text, because another string may later be at the same address: the hash that the object
 * stores or, where it has none (as most file names), a hash of the text that we copy. */
static uint64_t hash_of_text(struct python_text *text, uintptr_t object)
{
    struct {
        uint64_t length, hash;
        uint32_t state;
    } head = {0};
    const struct python_layout *layout = &python.api.layout;
    if (!python_fetch_sig(text->guarded, object + OBJECT_LENGTH, &head, sizeof head))
        return 0;
    uint64_t width = head.state >> 2 & 7, n = head.length < PYTHON_FILE_BYTES ? head.length : PYTHON_FILE_BYTES;
    uint64_t hash = bytes_mix(head.length, head.hash), first = (head.length - n) * width;
    bool is_ascii = head.state >> 6 & 1;
    if (head.hash + 1 || width > 4 || head.length > 1u << 20)
        return hash;
    text->words[n * width / 8] = 0; /* the bytes after the text in its last word */
    uintptr_t start = object + (is_ascii ? layout->text_ascii : layout->text_other) + first;
    if (!python_fetch_sig(text->guarded, start, text->words, n * width))
        return hash;
    for (size_t i = 0; i < n * width; i += 8)
        hash = bytes_mix(hash, text->words[i / 8]);
    return hash;
}

/* Hash of the beginning of a line table: the code of two modules that differ by empty lines at their top is told apart
 * by nothing else, as the first line of both is 1. */
static uint64_t hash_of_lines(bool guarded, uintptr_t table)
{
    uint64_t words[LINE_HASH_BYTES / 8] = {0}, length = 0;
    if (!python_fetch_sig(guarded, table + OBJECT_LENGTH, &length, 8))
        return 0;
    size_t n = length < sizeof words ? length : sizeof words;
    uint64_t hash = bytes_mix(table, length);
    if (!python_fetch_sig(guarded, table + BYTES_DATA, words, n))
        return hash;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = bytes_mix(hash, words[i]);
    return hash;
}

/* Hash of a code object, over all that the texts of its frames are made of but the line; 0 when it is none. */
static uint64_t hash_of_code(struct python_text *text, uintptr_t code)
{
    const struct python_layout *layout = &python.api.layout;
    uint64_t words[16], hash = bytes_mix(0xcbf29ce484222325u, code);
    unsigned first = layout->code_first_line & ~7u, n = (layout->code_lines + 8u - first) / 8;
    if (python_pointer_sig(text->guarded, code + OBJECT_TYPE) != python.api.code_type || n > 16 ||
        !python_fetch_sig(text->guarded, code + first, words, n * 8))
        return 0;
    uint64_t *file = &words[(layout->code_file - first) / 8], *name = &words[(layout->code_name - first) / 8];
    if (text->hashed_file != *file) {
        text->hashed_file = *file;
        text->file_hash = hash_of_text(text, *file);
    }
    *file = text->file_hash;
    *name = hash_of_text(text, *name);
    words[n - 1] = hash_of_lines(text->guarded, words[n - 1]);
    for (unsigned i = 0; i < n; i++)
        hash = bytes_mix(hash, words[i]);
    return hash;
}

uint64_t python_place_sig(struct python_text *text, uintptr_t frame)
{
    const struct python_layout *layout = &python.api.layout;
    uint64_t place = 0;
    uintptr_t code = python_pointer_sig(text->guarded, frame + layout->frame_code);
    if (text->hashed_code != code) {
        text->code_hash = hash_of_code(text, code);
        text->hashed_code = code;
    }
    size_t n_bytes = layout->linkage == PYTHON_ONE_EACH ? 4 : 8;
    if (!text->code_hash || !python_fetch_sig(text->guarded, frame + layout->frame_instruction, &place, n_bytes))
        return 0;
    uint64_t hash = bytes_mix(text->code_hash, place);
    return hash ? hash : 1;
}

/* Keeps the reference for a place, in the place of a random other one if need be. */
static void keep_place(_Atomic uint64_t *set, uint64_t hash, uint32_t ref)
{
    unsigned way = hash >> 12 & (PLACE_WAYS - 1);
    for (unsigned i = 0; i < PLACE_WAYS; i++)
        if (!atomic_load_explicit(&set[i], memory_order_relaxed)) {
            way = i;
            break;
        }
    atomic_store_explicit(&set[way], hash >> 32 << 32 | ref, memory_order_release);
}

uint32_t python_string_sig(struct python_text *text, uintptr_t frame, uint64_t hash, bool *is_bad)
{
    _Atomic uint64_t *set = python.places[hash & (PLACE_SETS - 1)];
    *is_bad = !hash;
    for (unsigned i = 0; hash && i < PLACE_WAYS; i++) {
        uint64_t known = atomic_load_explicit(&set[i], memory_order_acquire);
        if (known >> 32 == hash >> 32 && (uint32_t)known)
            return (uint32_t)known == NO_ROOM ? 0 : (uint32_t)known;
    }
    *is_bad = !hash || !describe_frame(frame, text);
    uint32_t ref = *is_bad ? 0 : string_of(text);
    if (ref)
        keep_place(set, hash, ref);
    return ref == NO_ROOM ? 0 : ref;
}
