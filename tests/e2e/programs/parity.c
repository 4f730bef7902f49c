/* SPDX-License-Identifier: BSD-3-Clause */
/* Two functions that call each other in a circle; the first takes two thirds of the time. */
static volatile unsigned work;

__attribute__((noinline)) static int odd(unsigned n);

__attribute__((noinline)) static int even(unsigned n)
{
    for (int i = 0; i < 2000; i++)
        work += n;
    return n == 0 || odd(n - 1) == 0;
}

__attribute__((noinline)) static int odd(unsigned n)
{
    for (int i = 0; i < 1000; i++)
        work += n;
    return n != 0 && even(n - 1) == 0;
}

int main(void)
{
    int n_even = 0;
    for (int i = 0; i < 20000; i++)
        n_even += even(49);
    return n_even < 0;
}
