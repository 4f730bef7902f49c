/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of any size piece by piece. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/input.h"
#include "base/spill.h"
#include "fmt/trace.h"

enum { PIECE_RECORDS = 4096, HEAD_BYTES = 32, OLD_HEAD_BYTES = 24, RECORD_BYTES_MAX = 16 };

struct visit {
    const char *path;
    int fd;
    uint64_t file_bytes, offset;
    size_t record_bytes;
};

/* Reads the header; the records begin at offset. */
static int begin(struct visit *visit, struct error *err)
{
    char head[HEAD_BYTES];
    struct stat info;
    struct trace_file trace = {0};
    visit->fd = input_open(AT_FDCWD, visit->path, 0, &info);
    if (visit->fd < 0)
        return error_set(err, ERR_IO, "%.600s: cannot open: %s", visit->path, input_reason(errno));
    visit->file_bytes = (uint64_t)info.st_size;
    size_t len = visit->file_bytes < sizeof head ? (size_t)visit->file_bytes : sizeof head;
    int code = spill_read_at(visit->fd, visit->path, 0, head, len, err);
    if (code == 0 && len >= OLD_HEAD_BYTES && memcmp(head + 18, "01.00", 5) == 0)
        len = OLD_HEAD_BYTES;
    if (code == 0)
        code = trace_read_memory(head, len, visit->path, &trace, err);
    visit->offset = len;
    visit->record_bytes = trace.flags & TRACE_FLAG_DATACENTRIC ? RECORD_BYTES_MAX : 12;
    trace_fini(&trace);
    uint64_t rest = (visit->file_bytes - len) % visit->record_bytes;
    if (code == 0 && rest)
        code = error_set(err, ERR_FORMAT, "%.600s: offset %llu: truncated in the last record", visit->path,
                         (unsigned long long)(visit->file_bytes - rest));
    return code;
}

static int visit_records(struct visit *visit, int (*take)(void *, const struct trace_record *, size_t, struct error *),
                         void *context, struct error *err)
{
    char bytes[PIECE_RECORDS * RECORD_BYTES_MAX];
    struct trace_record records[PIECE_RECORDS];
    int code = 0;
    while (code == 0 && visit->offset < visit->file_bytes) {
        uint64_t n = (visit->file_bytes - visit->offset) / visit->record_bytes;
        n = n < PIECE_RECORDS ? n : PIECE_RECORDS;
        code = spill_read_at(visit->fd, visit->path, visit->offset, bytes, n * visit->record_bytes, err);
        for (size_t i = 0; i < n; i++) {
            const char *record = bytes + i * visit->record_bytes;
            records[i] = (struct trace_record){.time = bytes_get_be(record, 8),
                                               .node = (uint32_t)bytes_get_be(record + 8, 4),
                                               .metric = TRACE_NO_METRIC};
            if (visit->record_bytes == RECORD_BYTES_MAX)
                records[i].metric = (uint32_t)bytes_get_be(record + 12, 4);
        }
        visit->offset += n * visit->record_bytes;
        if (code == 0)
            code = take(context, records, n, err);
    }
    return code;
}

int trace_visit(const char *path,
                int (*take)(void *context, const struct trace_record *records, size_t n_records, struct error *err),
                void *context, struct error *err)
{
    struct visit visit = {.path = path, .fd = -1};
    int code = begin(&visit, err);
    if (code == 0)
        code = visit_records(&visit, take, context, err);
    if (visit.fd >= 0)
        (void)close(visit.fd);
    return code;
}
