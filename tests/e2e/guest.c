/* SPDX-License-Identifier: BSD-3-Clause */
/* A guest of other tools (hosts.sh): grows its stack again and again in new threads, allocates, computes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned deep(int n)
{
    volatile char block[4000];
    memset((void *)(size_t)block, n, sizeof block);
    return n ? deep(n - 1) + (unsigned char)block[n % 4000] % 2 : 1;
}

static void *work(void *argument)
{
    unsigned sum = 0;
    for (int i = 0; i < 60; i++) {
        char *volatile block = malloc(5000 + (size_t)i);
        memset(block, i, 5000);
        sum += (unsigned char)block[i];
        free(block);
        sum += deep(200);
    }
    *(unsigned *)argument = sum;
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    unsigned sums[3];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &sums[i]))
            return 90;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 300; i++)
        sums[2] = deep(1500);
    printf("%u %u %u\n", sums[0], sums[1], sums[2]);
    return 3;
}
