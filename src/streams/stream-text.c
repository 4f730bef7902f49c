/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event says: its bytes, fields and texts, and its line. */
#include "streams/readers.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "streams/couplebreak.h"
#include "streams/parts.h"

/* Texts are printed by another process, some ahead: whoever lists events asks for the next ones soon. */
struct stream_texts {
    size_t first, n; /* events that have been printed */
    struct buf text;
    uint32_t latency_at[FORMATS_BATCH], info_at[FORMATS_BATCH]; /* [n] in text; NO_TEXT */
};

#define NO_TEXT UINT32_MAX

/* --- bytes and fields --- */

/* The event whose bytes, fields and texts an event has. */
static const struct stream_event *source_of(const struct stream *stream, const struct stream_event *event)
{
    const struct stream_event *origin = couplebreak_origin(stream, event);
    return origin ? origin : event;
}

const struct stream_type *stream_fields_of(const struct stream *stream, const struct stream_event *event)
{
    return stream_type_of(stream, source_of(stream, event)->id);
}

bool stream_event_bytes(const struct stream *stream, const struct stream_event *event, const unsigned char **bytes,
                        size_t *n_bytes)
{
    event = source_of(stream, event);
    if (event->id < 0)
        return false;
    if (stream->reader && stream->reader->payload)
        return stream->reader->payload(stream, event, bytes, n_bytes);
    return stream_plain_bytes(stream, event, bytes, n_bytes);
}

const struct stream_field *stream_field_of(const struct stream_type *type, const char *name)
{
    for (size_t i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return &type->fields[i];
    return NULL;
}

bool stream_field_number(const struct stream *stream, const struct stream_event *event,
                         const struct stream_field *field, int64_t *value)
{
    const unsigned char *bytes;
    size_t n_bytes;
    return stream_event_bytes(stream, event, &bytes, &n_bytes) &&
           stream_number_in(stream, bytes, n_bytes, field, value);
}

/* The bytes of a field whose place is in the event itself, or in a word of it. */
static bool field_bytes(const struct stream *stream, const struct stream_event *event, const struct stream_field *field,
                        const unsigned char **at, size_t *n)
{
    const unsigned char *bytes;
    size_t n_bytes, offset = field->offset, len = field->n_bytes;
    int64_t place;
    if (!stream_event_bytes(stream, event, &bytes, &n_bytes))
        return false;
    if (field->flags & STREAM_FIELD_DYNAMIC) {
        if (offset > n_bytes || n_bytes - offset < 4 ||
            !stream_read_number(bytes + offset, 4, stream->is_swapped, false, &place))
            return false;
        offset = (size_t)(place & 0xffff) + (field->flags & STREAM_FIELD_RELATIVE ? field->offset + 4 : 0);
        len = (size_t)place >> 16;
    }
    if (offset > n_bytes || len > n_bytes - offset)
        return false;
    *at = bytes + offset;
    *n = len;
    return true;
}

void stream_put_field(const struct stream *stream, const struct stream_event *event, const struct stream_field *field,
                      struct buf *out)
{
    const unsigned char *at;
    size_t n;
    int64_t value;
    if (field->flags & STREAM_FIELD_TEXT && field_bytes(stream, event, field, &at, &n)) {
        struct buf text = {0};
        buf_append(&text, at, strnlen((const char *)at, n));
        printable_put(out, text.data);
        out->failed |= text.failed;
        buf_fini(&text);
    } else if (!(field->flags & (STREAM_FIELD_ARRAY | STREAM_FIELD_DYNAMIC)) &&
               stream_field_number(stream, event, field, &value)) {
        buf_printf(out, field->flags & STREAM_FIELD_SIGNED ? "%" PRId64 : "%" PRIu64, value);
    }
}

/* --- latency and info --- */

/* Has events [n] from first printed, as far as they have bytes. */
static int print_ahead(struct stream *stream, struct stream_texts *texts, size_t first, size_t n, struct error *err)
{
    struct formats_record records[FORMATS_BATCH] = {0};
    size_t n_records = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct stream_event *event = &stream->events[first + i];
        struct formats_record *record = &records[n_records];
        *record = (struct formats_record){.t_ns = event->t_ns, .cpu = event->cpu};
        bool has_bytes = event->id >= 0 && stream_event_bytes(stream, event, &record->bytes, &record->n_bytes);
        texts->latency_at[i] = has_bytes ? (uint32_t)n_records++ : NO_TEXT;
    }
    texts->n = 0;
    texts->text.len_bytes = 0;
    int code = formats_print(stream->formats, records, n_records, &texts->text, err);
    for (size_t i = 0; i < n && code == 0; i++) {
        texts->info_at[i] = NO_TEXT;
        if (texts->latency_at[i] == NO_TEXT)
            continue;
        texts->latency_at[i] = (uint32_t)at;
        at += strlen(texts->text.data + at) + 1;
        texts->info_at[i] = (uint32_t)at;
        at += strlen(texts->text.data + at) + 1;
    }
    texts->first = first;
    texts->n = code == 0 ? n : 0;
    return code;
}

/* Makes sure that the event at an index has been printed: alone when it is met by chance, with others behind it when
 * they are gone through. */
static int need_text(struct stream *stream, size_t index, struct error *err)
{
    if (!stream->texts && !(stream->texts = calloc(1, sizeof *stream->texts)))
        return error_memory(err);
    struct stream_texts *texts = stream->texts;
    size_t end = texts->first + texts->n, n = 1;
    if (index >= texts->first && index < end)
        return 0;
    if (texts->n && index >= end && index - end <= 2 * texts->n)
        n = 4 * texts->n < FORMATS_BATCH ? 4 * texts->n : FORMATS_BATCH;
    size_t behind = stream->part ? stream_part_filled(stream, index) : stream->n_events;
    if (n > behind - index)
        n = behind - index;
    return print_ahead(stream, texts, index, n, err);
}

void stream_texts_free(struct stream_texts *texts)
{
    if (texts)
        buf_fini(&texts->text);
    free(texts);
}

static int put_printed(struct stream *stream, const struct stream_event *event, bool is_info, struct buf *out,
                       struct error *err)
{
    size_t index = (size_t)(event - stream->events);
    int code = stream->formats && event->id >= 0 ? need_text(stream, index, err) : 0;
    if (!stream->formats || event->id < 0 || code != 0)
        return code;
    uint32_t at = (is_info ? stream->texts->info_at : stream->texts->latency_at)[index - stream->texts->first];
    if (at != NO_TEXT)
        buf_append(out, stream->texts->text.data + at, strlen(stream->texts->text.data + at));
    return 0;
}

int stream_put_latency(struct stream *stream, const struct stream_event *event, struct buf *out, struct error *err)
{
    event = source_of(stream, event);
    int code = event->id >= 0 && stream->reader && stream->reader->put_latency
                   ? stream->reader->put_latency(stream, event, out, err)
                   : STREAM_ASK_FORMATS;
    return code == STREAM_ASK_FORMATS ? put_printed(stream, event, false, out, err) : code;
}

int stream_put_info(struct stream *stream, const struct stream_event *event, struct buf *out, struct error *err)
{
    event = source_of(stream, event);
    if (event->id == STREAM_ID_LOST) {
        buf_printf(out, STREAM_LOST_NAME "=%" PRId64, event->record ? (int64_t)event->record : -1);
        return 0;
    }
    int code = stream->reader && stream->reader->put_info ? stream->reader->put_info(stream, event, out, err)
                                                          : STREAM_ASK_FORMATS;
    return code == STREAM_ASK_FORMATS ? put_printed(stream, event, true, out, err) : code;
}

/* --- lines --- */

int stream_put_line(struct stream *stream, int number, const struct stream_event *event, struct buf *out,
                    struct error *err)
{
    const struct stream_event *origin = couplebreak_origin(stream, event);
    buf_printf(out, "%d; %" PRId64 "; ", number, event->t_ns);
    printable_put(out, stream_comm(stream, event->task));
    buf_printf(out, "-%" PRId32 "; CPU %u; ", event->task, event->cpu);
    int code = origin ? 0 : stream_put_latency(stream, event, out, err);
    buf_printf(out, "; %s; ", stream_event_name(stream, event));
    if (origin) {
        buf_printf(out, "origin_task_name=");
        printable_put(out, stream_comm(stream, origin->task));
        buf_printf(out, "; origin_pid=%" PRId32 "; 0x%x; ", origin->task, event->visible);
        return stream_put_line(stream, number, origin, out, err);
    }
    code = code ? code : stream_put_info(stream, event, out, err);
    buf_printf(out, "; 0x%x", event->visible);
    return code;
}

/* --- search by text --- */

/* Whether text, in small and capital letters alike, is in what a buffer has. */
static bool contains(const struct buf *buf, const char *text)
{
    return buf->len_bytes && strcasestr(buf->data, text);
}

int stream_says(struct stream *stream, const struct stream_event *event, unsigned columns, const char *text, bool *says,
                struct error *err)
{
    struct buf words = {0};
    int code = 0;
    *says = columns & STREAM_IN_EVENT && strcasestr(stream_event_name(stream, event), text);
    if (!*says && columns & STREAM_IN_TASK) {
        buf_printf(&words, "%s:%" PRId32, stream_comm_at(stream, event->task, event->t_ns), event->task);
        *says = contains(&words, text);
    }
    if (!*says && columns & STREAM_IN_INFO) {
        words.len_bytes = 0;
        code = stream_put_info(stream, event, &words, err);
        *says = code == 0 && contains(&words, text);
    }
    if (code == 0 && words.failed)
        code = error_memory(err);
    buf_fini(&words);
    return code;
}

/* The next event that matches from one on, or the last one before it. */
static size_t step(const struct stream *stream, size_t from, const struct stream_match *match, bool is_back)
{
    return is_back ? stream_previous(stream, from, match) : stream_next(stream, from, match);
}

static int search(struct stream *stream, size_t from, const struct stream_match *match, unsigned columns,
                  const char *text, bool is_back, size_t *index, struct error *err)
{
    bool says = false;
    int code = 0;
    for (*index = step(stream, from, match, is_back); *index != STREAM_NONE && code == 0;
         *index = step(stream, is_back ? *index : *index + 1, match, is_back)) {
        code = stream_says(stream, &stream->events[*index], columns, text, &says, err);
        if (says)
            break;
    }
    return code;
}

int stream_search_next(struct stream *stream, size_t from, const struct stream_match *match, unsigned columns,
                       const char *text, size_t *index, struct error *err)
{
    return search(stream, from, match, columns, text, false, index, err);
}

int stream_search_previous(struct stream *stream, size_t from, const struct stream_match *match, unsigned columns,
                           const char *text, size_t *index, struct error *err)
{
    return search(stream, from, match, columns, text, true, index, err);
}
