/* SPDX-License-Identifier: BSD-3-Clause */
/* locus/frame.h: what the roots of a profile cost by themselves. usage: frame FILE */
#include <locus/frame.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct frame *frame;
    struct error err;
    const double *values;
    size_t n_roots;
    if (argc != 2)
        return 2;
    if (frame_open(argv[1], &frame, &err) != 0) {
        printf("%s\n", err.text);
        return 1;
    }
    size_t column = frame_default_column(frame);
    const uint32_t *roots = frame_roots(frame, &n_roots);
    if (column < frame_n_columns(frame) && frame_values(frame, column, NULL, &values, &err) == 0)
        for (size_t i = 0; i < n_roots; i++)
            printf("%g %s (%s)\n", values[roots[i]], frame_name(frame, roots[i]),
                   frame_kind_name(frame_kind(frame, roots[i])));
    frame_close(frame);
    return 0;
}
