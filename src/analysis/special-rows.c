/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of rows that are no variables. */
#include "analysis/special-rows.h"

#include <string.h>

static const struct special_row rows[] = {
    {SPECIAL_KERNEL, "an address of the kernel", "CPU time in system calls and page faults, which gives no samples",
     "See strace -c -f for the calls."},
    {"<compute>", "no data waited for", "busy with arithmetic or branches, not waiting for data",
     "Change the code at these lines."},
    {"<waiting>", NULL, "a thread spun until another one came along", "Balance the work of threads or ranks."},
    {"<system call>", "return from the kernel", "on the way back from a system call", "Make fewer or larger calls."},
    {"<address lost>", "an access, address unknown", "an access whose address register had changed already",
     "See the lines for its data."},
    {"<small block>", "small, allocated unseen", "small blocks of unknown origin, and what allocators keep beside them",
     "If it is much, see that DATACENTRIC_SMALL_SITES is not 0."},
    {"<no block>", "memory of no recorded block", "memory of no recorded allocation",
     "If a note names an allocator, do what it says."},
    {"<freed>", "blocks that had been freed", "memory of a block that had been freed",
     "Look for a use after free (-fsanitize=address)."},
    {"<null>", "an address near zero", "an address in the first page, as of a prefetch", "Nothing to do."},
    {"<vdso>", "data that the kernel lends", "data that the kernel lends for its clocks",
     "Ask for the time less often."},
    {"<heap without allocation log>", "a heap that was not followed", "a heap whose allocations were not followed",
     "Measure with hpcrun; link static programs by hpclink."},
    {"<unknown>", "no reason is known", "the profile does not tell why no variable was found", "Nothing to do."},
    {"<not data-centric>", "not looked up", "samples for which no data was looked up",
     "hpcquery tree shows their call paths."},
    {"<profiler>", "the profiler itself", "the profiler's own work and memory",
     "Record fewer blocks: a larger DATACENTRIC_MIN_BYTES."},
    {"<dropped: reentered>", NULL, "samples that came while the profiler was at work",
     "Record fewer blocks: a larger DATACENTRIC_MIN_BYTES."},
    {"<dropped: no thread>", NULL, "samples on threads that the profiler did not see start", "Nothing to do."},
    {"<dropped: arena full>", NULL, "samples for which there was no memory left", "Run with a larger --memsize."},
    {"<dropped: no recipe>", NULL, "samples in code that was not analysed in time", "Run again: the analysis is kept."},
    {"<dropped: raw full>", NULL, "samples that came faster than their code was analysed",
     "Run again: the analysis is kept."},
    {"<dropped: stopped>", NULL, "samples that came while sampling was switched off", "Nothing to do."},
    {"<dropped: forked>", NULL, "samples in a new process, before it was measured", "Nothing to do."},
    {"<dropped: bad record>", NULL, "samples whose record by the kernel makes no sense",
     "If they are many, report the kernel's version."},
    {"<dropped: max size>", NULL, "samples of threads whose files became too large", "Run with a larger --max-size."},
};

const struct special_row *special_rows_at(size_t i)
{
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

const struct special_row *special_rows_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}
