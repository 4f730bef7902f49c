/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over its corpus without a fuzzer: what follows the line [CORPUS] in tests/fuzz/corpora.txt, an
 * input in hexadecimal digits a line. So what a fuzzer once found to be worth keeping is tried in every build. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* The length in bytes, -1 when the line is not made of pairs of digits. */
static long take_line(const char *line, uint8_t *bytes)
{
    long n_bytes = 0;
    for (; *line && *line != '\n'; line += 2) {
        if (digit(line[0]) < 0 || digit(line[1]) < 0)
            return -1;
        bytes[n_bytes++] = (uint8_t)(digit(line[0]) * 16 + digit(line[1]));
    }
    return n_bytes;
}

int main(void)
{
    static char path[4096];
    const char *source = getenv("LOCUS_SRCDIR");
    unsigned n_inputs = 0;
    bool is_ours = false;
    char *line = NULL;
    size_t capacity = 0;
    (void)snprintf(path, sizeof path, "%s/tests/fuzz/corpora.txt", source ? source : ".");
    FILE *corpus = fopen(path, "r");
    if (!corpus) {
        (void)fprintf(stderr, "%s cannot be opened\n", path);
        return 1;
    }
    while (getline(&line, &capacity, corpus) > 0) {
        if (line[0] == '[')
            is_ours = strcmp(line, "[" CORPUS "]\n") == 0;
        if (line[0] == '[' || !is_ours)
            continue;
        uint8_t *bytes = malloc(strlen(line));
        long n_bytes = bytes ? take_line(line, bytes) : -1;
        if (n_bytes < 0) {
            (void)fprintf(stderr, "%s: line %u of " CORPUS " is no input\n", path, n_inputs + 1);
            return 1;
        }
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)n_bytes);
        free(bytes);
        n_inputs++;
    }
    free(line);
    (void)fclose(corpus);
    printf("%u inputs\n", n_inputs);
    return n_inputs < 10;
}
