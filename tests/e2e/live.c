/* SPDX-License-Identifier: BSD-3-Clause */
/* Three phases in turn, each over another variable, until standard input ends: live.py looks at it meanwhile.
 * Arguments: seconds of a phase, threads. Each phase is told on standard output when it begins, with CLOCK_MONOTONIC.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 200000

static volatile double *red, *green;
static volatile double blue[N];
static volatile int phase, is_over;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *work(void *unused)
{
    double sum = 0;
    (void)unused;
    while (!is_over) {
        volatile double *data = phase == 0 ? red : phase == 1 ? green : blue;
        for (int i = 0; i < N; i++)
            sum += data[i];
    }
    return sum > 1 ? (void *)(size_t)&is_over : NULL;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"red", "green", "blue"};
    static pthread_t threads[256];
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    int n_threads = argc > 2 ? atoi(argv[2]) : 1;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    red = calloc(N, sizeof *red);
    green = calloc(N, sizeof *green);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; !is_over; i++) {
        phase = i % 3;
        printf("%s %.6f\n", names[i % 3], now_s());
        fflush(stdout);
        is_over = poll(&input, 1, (int)(seconds * 1000)) != 0;
    }
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    printf("end %.6f\n", now_s());
    return 7;
}
