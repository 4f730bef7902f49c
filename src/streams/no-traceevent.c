/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats of tracepoints where libtraceevent is not installed: there are none, and files that need them are refused. */
#include "streams/formats.h"

int formats_open(const struct formats_input *input, struct stream_formats **formats, struct error *err)
{
    (void)formats;
    return error_set(err, ERR_UNSUPPORTED,
                     "%.600s: the formats of its events cannot be read; "
                     "install libtraceevent-dev and build anew",
                     input->path);
}

void formats_close(struct stream_formats *formats)
{
    (void)formats;
}

struct stream_type *formats_take_types(struct stream_formats *formats, size_t *n)
{
    (void)formats;
    *n = 0;
    return NULL;
}

const char *formats_text_of(const struct stream_formats *formats, const char *name)
{
    (void)formats;
    (void)name;
    return NULL;
}

int formats_print(struct stream_formats *formats, const struct formats_record *records, size_t n, struct buf *out,
                  struct error *err)
{
    (void)formats;
    (void)records;
    (void)n;
    (void)out;
    return error_set(err, ERR_UNSUPPORTED, "events cannot be printed without libtraceevent");
}

int formats_set_condition(struct stream_formats *formats, const char *condition, struct error *err)
{
    (void)formats;
    return error_set(err, ERR_UNSUPPORTED, "%.200s: events cannot be filtered by fields without libtraceevent",
                     condition);
}

int formats_match(struct stream_formats *formats, const struct formats_record *records, size_t n, bool *is_hidden,
                  struct error *err)
{
    (void)formats;
    (void)records;
    (void)n;
    (void)is_hidden;
    return error_set(err, ERR_UNSUPPORTED, "events cannot be filtered by fields without libtraceevent");
}
