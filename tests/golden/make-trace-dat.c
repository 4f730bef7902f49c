/* SPDX-License-Identifier: BSD-3-Clause */
/* make-trace-dat FILE N: writes N events of our own making as trace.dat, and to standard output what every reader must
 * find in it, one event a line in the order of the file: CPU, time, thread, system and name, text; "lost CPU N" before
 * the event that shows it. For trace-dat-write.py. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmt/file.h"
#include "fmt/trace-dat.h"

enum { N_CPUS = 6, ID_SWITCH = 372, ID_NOTE = 30001, N_TASKS = 40 };

#define COMMON(id)                                                                                                     \
    "ID: " #id "\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                       \
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                             \
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                     \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char switch_format[] = "name: hop\n" COMMON(
    372) "\tfield:char prev[16];\toffset:8;\tsize:16;\tsigned:0;\n"
         "\tfield:int prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
         "\tfield:long state;\toffset:32;\tsize:8;\tsigned:1;\n"
         "\tfield:int next_pid;\toffset:40;\tsize:4;\tsigned:1;\n\n"
         "print fmt: \"%s:%d [%ld] ==> %d\", REC->prev, REC->prev_pid, REC->state, REC->next_pid\n";

static const char note_format[] =
    "name: note\n" COMMON(30001) "\tfield:__data_loc char[] text;\toffset:8;\tsize:4;\tsigned:0;\n"
                                 "\tfield:unsigned int n;\toffset:12;\tsize:4;\tsigned:0;\n\n"
                                 "print fmt: \"n=%u text=%s\", REC->n, __get_str(text)\n";

struct maker {
    struct trace_dat_writer writer;
    uint64_t seed;
    uint32_t cpu, n;
    uint64_t t_ns;
};

static uint32_t draw(struct maker *maker, uint32_t below)
{
    maker->seed = maker->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(maker->seed >> 33) % below;
}

static void put(unsigned char *payload, size_t offset, uint64_t value, size_t n_bytes)
{
    memcpy(payload + offset, &value, n_bytes);
}

static uint32_t make_switch(struct maker *maker, unsigned char *payload, int tid)
{
    int next = 1000 + (int)draw(maker, N_TASKS);
    long state = (long)draw(maker, 3);
    (void)snprintf((char *)payload + 8, 16, "task-%d", tid);
    put(payload, 0, ID_SWITCH, 2);
    put(payload, 24, (uint64_t)tid, 4);
    put(payload, 32, (uint64_t)state, 8);
    put(payload, 40, (uint64_t)next, 4);
    printf("%u %" PRIu64 " %d test/hop task-%d:%d [%ld] ==> %d\n", maker->cpu, maker->t_ns, tid, tid, tid, state, next);
    return 44;
}

static uint32_t make_note(struct maker *maker, unsigned char *payload, int tid)
{
    char text[320];
    uint32_t len = draw(maker, 310);
    for (uint32_t i = 0; i < len; i++)
        text[i] = (char)('a' + draw(maker, 26));
    text[len] = '\0';
    put(payload, 0, ID_NOTE, 2);
    put(payload, 8, 16 | (uint64_t)(len + 1) << 16, 4);
    put(payload, 12, maker->n, 4);
    memcpy(payload + 16, text, len + 1);
    printf("%u %" PRIu64 " %d test/note n=%u text=%s\n", maker->cpu, maker->t_ns, tid, maker->n, text);
    return 16 + len + 1;
}

static int make_event(struct maker *maker, struct error *err)
{
    unsigned char payload[400] = {0};
    uint32_t n = maker->n++;
    int tid = 1000 + (int)draw(maker, N_TASKS);
    maker->t_ns += draw(maker, 3000);
    if (n % 5000 == 4999)
        maker->t_ns += (UINT64_C(1) << 27) - 1500;
    if (n % 60000 == 59999)
        maker->t_ns += UINT64_C(5000000000);
    if (n % 40000 == 39999) {
        uint64_t n_lost = draw(maker, 2) ? 1 + draw(maker, 100) : 0;
        trace_dat_lost(&maker->writer, n_lost);
        printf("lost %u %" PRIu64 "\n", maker->cpu, n_lost);
    }
    put(payload, 4, (uint64_t)tid, 4);
    uint32_t n_bytes = draw(maker, 10) ? make_switch(maker, payload, tid) : make_note(maker, payload, tid);
    return trace_dat_add(&maker->writer, maker->t_ns, payload, n_bytes, err);
}

int main(int argc, char **argv)
{
    static const uint32_t cpus[] = {0, 1, 3, 5};
    static const struct trace_dat_format formats[] = {{"test", switch_format}, {"test", note_format}};
    static char names[N_TASKS][16];
    static struct trace_dat_task tasks[N_TASKS];
    struct maker maker = {.seed = 15};
    struct error err = {0};
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    for (int i = 0; i < N_TASKS; i++) {
        (void)snprintf(names[i], sizeof names[i], "task-%d", 1000 + i);
        tasks[i] = (struct trace_dat_task){1000 + i, names[i]};
    }
    const struct trace_dat_head head = {.n_cpus = N_CPUS,
                                        .formats = formats,
                                        .n_formats = 2,
                                        .tasks = tasks,
                                        .n_tasks = N_TASKS,
                                        .clock = "mono",
                                        .uname = "Linux host 6.1 #1 x86_64",
                                        .trace_id = 15};
    struct buf out = {0};
    int code = argc > 2 ? trace_dat_begin(&maker.writer, &out, &head, &err) : ERR_USAGE;
    for (size_t i = 0; code == 0 && i < 4; i++) {
        maker.cpu = cpus[i];
        maker.t_ns = UINT64_C(1000000000) + i;
        code = trace_dat_cpu(&maker.writer, cpus[i], &err);
        for (uint32_t k = 0; code == 0 && k < n / 4; k++)
            code = make_event(&maker, &err);
    }
    if (code == 0)
        code = trace_dat_end(&maker.writer, &err);
    if (code == 0)
        code = file_write_new(argv[1], out.data, out.len_bytes, &err);
    buf_fini(&out);
    if (code != 0)
        (void)fprintf(stderr, "make-trace-dat: %s\n", err.text);
    return code != 0;
}
