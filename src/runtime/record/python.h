/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of Python: what CPython (3.9 to 3.13) is executing, read in its own memory. They become nodes of the call
 * trees in the pseudo module PYTHON_MODULE; their ip is the reference of a string "FUNCTION\nFILE\nLINE\nFIRST": the
 * line that is executed, and the function's first one. The interpreter's structures are read and never changed, and no
 * function of it is called in the signal handler. src: Include/cpython/pystate.h, Include/cpython/code.h,
 * Include/internal/pycore_frame.h, pycore_runtime.h and Objects/locations.md (3.9, 3.10: lnotab_notes.txt) of the five
 * versions. */
#ifndef LOCUS_RUNTIME_RECORD_PYTHON_H
#define LOCUS_RUNTIME_RECORD_PYTHON_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/unwind/unwind.h"

struct thread_state;

/* How an interpreter's frames are linked. One call of its evaluation function executes: */
enum python_linkage {
    PYTHON_ONE_EACH,    /* 3.9, 3.10: one frame, an object */
    PYTHON_C_FRAMES,    /* 3.11: the frames from a _PyCFrame in its stack frame to the first one that is an entry */
    PYTHON_TRAMPOLINES, /* 3.12, 3.13: the frames up to one that lies in its stack frame and belongs to no function */
};

enum python_lines { PYTHON_LNOTAB, PYTHON_LINETABLE, PYTHON_LOCATIONS }; /* 3.9; 3.10; from 3.11 on */

/* Offsets in bytes, on machines with 64 bits; 0: there is no such member. */
struct python_layout {
    uint16_t version; /* major << 8 | minor */
    uint8_t linkage, lines;
    uint16_t runtime_finalizing, runtime_interpreters, runtime_current, runtime_key;
    uint16_t thread_top, thread_id, thread_chunk; /* top: the innermost frame, or the _PyCFrame that has it */
    uint16_t cframe_current, cframe_previous;
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner; /* owner: of PYTHON_C_FRAMES, is_entry */
    uint16_t code_first_line, code_file, code_name, code_lines, code_start, code_version;
    uint16_t text_ascii, text_other;
    int16_t generator_state; /* of the generator that a frame is part of, from the frame on */
};

/* What the interpreter exports. */
struct python_api {
    struct python_layout layout;
    uintptr_t (*current)(void); /* state of the thread that holds the interpreter's lock */
    uintptr_t (*own)(void);     /* state of the calling thread */
    void *(*value_of)(pthread_key_t key);
    intptr_t self_offset; /* pthread_self, from the thread pointer on */
    uintptr_t code_type, text_type, bytes_type, runtime;
    uintptr_t evaluation, evaluation_end; /* the function that executes frames */
};

#define PYTHON_C_STACK 3 /* FRAME_OWNED_BY_CSTACK */
#define PYTHON_FILE_BYTES 347
#define PYTHON_TEXT_BYTES 496
#define PYTHON_WINDOW_BYTES 256
#define PYTHON_TRAIL_BYTES 16

/* Where a search in a line table ended: the next one goes on from there if its instruction lies behind, so that a long
 * function is read once and not once for every line. The bytes before that place tell whether it is still the same
 * table. */
struct python_cursor {
    uintptr_t code, table, at;
    uint64_t length, address;
    int64_t line;
    uint32_t first_line;
    uint8_t trail[PYTHON_TRAIL_BYTES];
};

/* Room for the text of one frame: each of its parts has a maximum length, and there is room for all of them. */
struct python_text {
    bool guarded;                       /* how memory is read: through the kernel, which reports what cannot be read */
    uintptr_t hashed_code, hashed_file; /* 0: none since reading began */
    uint64_t code_hash, file_hash;
    struct python_cursor *cursor; /* of the last search */
    size_t len;
    char text[PYTHON_TEXT_BYTES];
    uint64_t words[PYTHON_FILE_BYTES / 2 + 1]; /* 4 bytes per character */
};

/* A frame of Python in the path of a sample. */
struct python_frame {
    uint64_t hash;   /* of its place */
    uint32_t ref;    /* of the string */
    uint32_t node;   /* in the tree of samples */
    uint32_t native; /* the frame of the evaluation function that executes it: its number from the outermost on */
};

#define PYTHON_FRAMES_MAX 1024

/* The frames of a thread's last two samples, innermost first. All zero: none. */
struct python_path {
    uint32_t which; /* the last one */
    uint32_t n[2];
    uint32_t n_cut[2]; /* so many native frames, from the outermost on, are not the callers of the others */
    uint32_t n_unfit;  /* paths in turn that did not fit */
    uintptr_t state;   /* the interpreter's of the thread, as was seen */
    struct python_cursor cursor;
    struct python_text text;
    struct python_frame frames[2][PYTHON_FRAMES_MAX];
};

/* From now on the interpreter is read.  ctx: ordinary, once */
void python_use_sig(const struct python_api *api);

/* Enters the frames of self->sample_path from number first outwards into the tree of samples, each one that executes
 * Python code below the frames of Python that it executes. Returns the node of that frame, of its Python frames if
 * is_above; 0 when the arena is full. Where what the interpreter says does not fit the stack, the path is that of the
 * native code, and this is counted.  ctx: handler of self */
uint32_t python_insert_sig(struct thread_state *self, uint32_t first, bool is_above);

/* --- private part: places of frames --- */

/* How far the interpreter's memory is trusted: first what it leads to is checked through the kernel. */
enum python_trust { PYTHON_NONE, PYTHON_TRYING, PYTHON_READ };

/* What is read.  ctx: any */
const struct python_api *python_api_sig(void);
enum python_trust python_trust_sig(void);
void python_set_trust_sig(enum python_trust trust);

/* Whether memory is to be read guarded for a thread at pc (0: none): while it is not trusted, and where an evaluation
 * begins. That is its thread's last one before its record is filled, which then names what lay on the stack before,
 * perhaps addresses of nothing. It fills it in its first instructions, _PyEval_EvalFrameDefault in CPython's
 * Python/ceval.c (3.11 and 3.12: tstate->cframe before cframe.current_frame).  ctx: any */
bool python_is_guarded_sig(uintptr_t pc);

/* Reads memory; false when there is nothing to read. _pointer: a word; 0 then.  ctx: any */
bool python_fetch_sig(bool guarded, uintptr_t at, void *to, size_t n_bytes);
uintptr_t python_pointer_sig(bool guarded, uintptr_t at);

/* The interpreter's state of the calling thread, whose frames are mine; 0 when it has none, or its memory may go while
 * it is read. A thread with several interpreters has the state of the first one under its key until 3.11; the one that
 * it runs holds the lock.  ctx: any */
uintptr_t python_state_sig(struct python_path *mine, bool is_guarded);

/* Starts to read frames of this moment. cursor: where searches in line tables go on.  ctx: any */
void python_text_begin_sig(struct python_text *text, struct python_cursor *cursor, bool guarded);

/* Hash of the place that a frame is at, over all that its text is made of; 0 when the frame is not as expected.
 * ctx: any */
uint64_t python_place_sig(struct python_text *text, uintptr_t frame);

/* Reference of the string that describes a frame whose place has this hash. 0 when there is no room; *is_bad: the frame
 * is not as expected.  ctx: any */
uint32_t python_string_sig(struct python_text *text, uintptr_t frame, uint64_t hash, bool *is_bad);

/* Reference of the module of the strings.  ctx: any */
uint32_t python_module_sig(void);

#endif
