/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline-bench FILE [N]: how long it takes to open a recording until its first picture, and then to draw random
 * windows, as a viewer that zooms asks for them: 1500 pixels of 40 rows, packed. Prints milliseconds and MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/vec.h"
#include "session/face.h"

static double now_ms(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static double cpu_ms(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return 1e3 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-3 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Asks for a window; its milliseconds, negative: it failed. */
static double draw(struct session *session, uint64_t from_ns, uint64_t to_ns, double *bytes)
{
    struct buf text = {0}, out = {0};
    struct error err = {0};
    buf_printf(&text, "{\"report\":\"timeline\",\"width\":1500,\"from\":%llu,\"to\":%llu,\"rows\":[",
               (unsigned long long)from_ns, (unsigned long long)to_ns);
    for (int row = 0; row < 40; row++)
        buf_printf(&text, "%s%d", row ? "," : "", row);
    buf_printf(&text, "]}");
    double begin_ms = now_ms();
    int code = session_ask_packed(session, text.data, &out, &err);
    double ms = now_ms() - begin_ms;
    if (code)
        (void)fprintf(stderr, "timeline-bench: %s\n", err.text);
    *bytes += (double)out.len_bytes;
    buf_fini(&text);
    buf_fini(&out);
    return code ? -1 : ms;
}

int main(int argc, char **argv)
{
    const char *const paths[] = {argc > 1 ? argv[1] : ""};
    size_t n = argc > 2 ? (size_t)atol(argv[2]) : 200;
    struct session *session = NULL;
    struct error err = {0};
    struct rusage usage;
    double begin_ms = now_ms(), bytes = 0, *all = calloc(n + 1, sizeof *all);
    if (!all || session_open_streams(paths, 1, &session, &err) != 0) {
        (void)fprintf(stderr, "timeline-bench: %s\n", err.text);
        return 1;
    }
    uint64_t length_ns = 1000000000, random = 88172645463325252u;
    char *text = NULL, *found = NULL;
    if (session_ask_json(session, "{\"report\":\"streams\"}", &text, &err) == 0)
        found = strstr(text, "\"length_ns\": ");
    length_ns = found ? strtoull(found + 13, NULL, 10) : length_ns;
    free(text);
    (void)draw(session, 0, length_ns, &bytes);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("open to first picture: %.0f ms, %.0f ms of CPU time, %.0f MiB\n", now_ms() - begin_ms, cpu_ms(),
           (double)usage.ru_maxrss / 1024);
    bytes = 0;
    for (size_t i = 0; i < n; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t part_ns = length_ns >> random % 24, from_ns = (random >> 8) % (length_ns - part_ns + 1);
        all[i] = draw(session, from_ns, from_ns + part_ns, &bytes);
    }
    qsort(all, n, sizeof *all, compare);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("zoom: median %.1f ms, 95 %% %.1f ms, longest %.1f ms; %.0f KiB each; %.0f MiB\n", all[n / 2],
           all[n * 95 / 100], all[n - 1], bytes / (double)n / 1024, (double)usage.ru_maxrss / 1024);
    session_close(session);
    free(all);
    return 0;
}
