/* SPDX-License-Identifier: BSD-3-Clause */
/* What optimised code keeps in its frame: a parameter whose address it hands out, of which debug information says only
 * where it was on entry, and values that wait for the return of a call. */
#include <stdio.h>

#define TURNS 15000000

/* Each round waits for what the one before has stored, on any processor: much longer than a call takes. */
__attribute__((noipa)) static double draw(volatile double *state, const double *factor)
{
    for (int round = 0; round < 4; round++) {
        double x = *state * *factor;
        *state = x - (double)(long)x;
    }
    return *state;
}

__attribute__((noipa)) static double fill(double seed, double factor)
{
    double sum = 0;
    for (int i = 0; i < TURNS; i++)
        sum += draw(&seed, &factor);
    return sum;
}

__attribute__((noipa)) static double bend(double x)
{
    return x * 0.75 + 0.125;
}

__attribute__((noipa)) static double mix(double x)
{
    for (int i = 0; i < TURNS; i++)
        x = bend(x) * bend(x - 1) + bend(x + 1) * bend(x - 0.5) - (double)(i & 1);
    return x;
}

int main(void)
{
    printf("%g %g\n", fill(0.37, 5.1), mix(0.7));
    return 0;
}
