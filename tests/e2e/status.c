/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs until its standard input ends: status.sh looks at it meanwhile. Argument "busy": two threads compute, one over
 * "matrix", one over "counters"; "idle": nothing happens; a number: as many children of the idle kind. A system call
 * that is interrupted is told. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 100000

static volatile unsigned long counters[4096];
static volatile int is_over;

static void *work(void *argument)
{
    volatile unsigned long *matrix = argument;
    unsigned long sum = 0;
    while (!is_over)
        for (int i = 0; i < N; i++)
            sum += matrix[i];
    return NULL;
}

static void *count(void *argument)
{
    (void)argument;
    while (!is_over)
        for (int i = 0; i < N; i++)
            counters[i % 4096]++;
    return NULL;
}

static void wait_for_end(void)
{
    char byte;
    ssize_t n;
    while ((n = read(STDIN_FILENO, &byte, 1)) != 0)
        printf("read: %s\n", n < 0 ? strerror(errno) : "a byte");
}

int main(int argc, char **argv)
{
    int n_children = argc == 2 ? atoi(argv[1]) : 0;
    unsigned long *matrix = calloc(N, sizeof *matrix);
    pthread_t threads[2];
    for (int i = 0; i < n_children; i++) {
        if (fork() == 0) {
            execl("/proc/self/exe", argv[0], "idle", (char *)NULL);
            _exit(1);
        }
    }
    if (argc == 2 && strcmp(argv[1], "busy") == 0) {
        pthread_create(&threads[0], NULL, work, matrix);
        pthread_create(&threads[1], NULL, count, NULL);
        wait_for_end();
        is_over = 1;
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    } else {
        wait_for_end();
    }
    while (wait(NULL) > 0)
        continue;
    printf("end of input\n");
    return 6;
}
