/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.dat, version 6, written: the file of trace-cmd and KernelShark. Events come CPU by CPU, each with the bytes
 * that the kernel's ring buffer would hold; what they mean stands in the format texts, which are stored with them.
 * Written from the format alone, for a 64-bit little-endian machine with pages of 4 KiB. Layout: FORMAT.md. Ordinary
 * code. */
#ifndef LOCUS_FMT_TRACE_DAT_H
#define LOCUS_FMT_TRACE_DAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

#define TRACE_DAT_ID_MAX 32767 /* of an event: KernelShark has 16 bits, one of them the sign */
#define TRACE_DAT_PAYLOAD_MAX                                                                                          \
    4060u /* bytes of an event: one page less its head, the event's and a count of lost ones */

/* Kind of an event. text: as tracefs has it in events/SYSTEM/NAME/format, with its id. */
struct trace_dat_format {
    const char *system, *text;
};

/* Name of a task; thread 0 needs none. */
struct trace_dat_task {
    int32_t tid;
    const char *comm;
};

/* What stands before the events. formats: those of one system one after the other. */
struct trace_dat_head {
    uint32_t n_cpus;
    const struct trace_dat_format *formats; /* [n_formats] */
    size_t n_formats;
    const struct trace_dat_task *tasks; /* [n_tasks] */
    size_t n_tasks;
    const char *clock; /* as in trace_clock: "local", "mono", ... */
    const char *uname; /* system, host, release, version, machine: a line of text, NULL for none */
    uint64_t trace_id; /* tells recordings apart */
};

/* One file being written into a buffer. All zero is empty. */
struct trace_dat_writer {
    struct buf *out;
    size_t begin, table;  /* where in out the file begins, and its table of CPUs */
    uint32_t n_cpus, cpu; /* cpu: the one that is being written */
    uint64_t data_offset; /* in the file: where the pages of this CPU begin */
    unsigned char *page;
    uint32_t n_used; /* bytes of events in page; 0: it has not begun */
    uint64_t t_ns;   /* of the last event of this CPU */
    uint64_t n_lost; /* lost before the next event of this CPU, 0: nobody knows how many */
    bool is_losing;  /* some were */
    bool has_lost;   /* before the page that is being filled; page_lost: as n_lost */
    uint64_t page_lost;
};

/* Begins a file behind what out holds; trace_dat_end must follow, whatever fails.
 * err: ERR_MEMORY, ERR_RANGE (no CPU, or too many) */
int trace_dat_begin(struct trace_dat_writer *writer, struct buf *out, const struct trace_dat_head *head,
                    struct error *err);

/* The events that follow are of this CPU; CPUs come in ascending order, those without events may be left out.
 * err: ERR_RANGE */
int trace_dat_cpu(struct trace_dat_writer *writer, uint32_t cpu, struct error *err);

/* Adds an event of this CPU at t_ns, which is not before its last one. payload [n_bytes]: 2 bytes id, 1 byte flags, 1
 * byte preemption count, 4 bytes thread, and its fields; filled up with zeros to a multiple of 4.
 * err: ERR_RANGE (order of time, size) */
int trace_dat_add(struct trace_dat_writer *writer, uint64_t t_ns, const void *payload, uint32_t n_bytes,
                  struct error *err);

/* Before the next event of this CPU n were lost; 0: nobody knows how many. Readers show it with that event, so that
 * what was lost after the last one is not seen. */
void trace_dat_lost(struct trace_dat_writer *writer, uint64_t n);

/* Finishes the file; the writer is empty afterwards, on failure too.  err: ERR_MEMORY */
int trace_dat_end(struct trace_dat_writer *writer, struct error *err);

#endif
