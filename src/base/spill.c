/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporary files by place: see spill.h. */
#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int spill_open(struct spill *spill, const char *directory, struct error *err)
{
    char name[4200];
    *spill = (struct spill){.fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)};
    if (spill->fd < 0) { /* not every file system has files without a name */
        (void)snprintf(name, sizeof name, "%.4000s/.locus-XXXXXX", directory);
        spill->fd = mkostemp(name, O_CLOEXEC);
        if (spill->fd >= 0)
            (void)unlink(name);
    }
    if (spill->fd < 0)
        return error_set(err, ERR_IO, "A temporary file cannot be made in %.600s: %s", directory, strerror(errno));
    return 0;
}

void spill_close(struct spill *spill)
{
    if (spill->fd >= 0)
        (void)close(spill->fd);
    spill->fd = -1;
}

int spill_write_at(int fd, const char *name, uint64_t offset, const void *bytes, size_t len_bytes, struct error *err)
{
    const char *rest = bytes;
    while (len_bytes) {
        ssize_t n = pwrite(fd, rest, len_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERR_IO, "%.600s: cannot write: %s", name, strerror(errno));
        rest += n;
        offset += (uint64_t)n;
        len_bytes -= (size_t)n;
    }
    return 0;
}

int spill_read_at(int fd, const char *name, uint64_t offset, void *bytes, size_t len_bytes, struct error *err)
{
    char *rest = bytes;
    while (len_bytes) {
        ssize_t n = pread(fd, rest, len_bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(err, ERR_IO, "%.600s: cannot read: %s", name,
                             n ? strerror(errno) : "the file is shorter than it was");
        rest += n;
        offset += (uint64_t)n;
        len_bytes -= (size_t)n;
    }
    return 0;
}

int spill_append(struct spill *spill, const void *bytes, size_t len_bytes, struct spill_piece *piece, struct error *err)
{
    piece->offset = __atomic_fetch_add(&spill->len_bytes, len_bytes, __ATOMIC_RELAXED);
    piece->len_bytes = len_bytes;
    return spill_write_at(spill->fd, "the temporary file", piece->offset, bytes, len_bytes, err);
}

int spill_read(const struct spill *spill, uint64_t offset, void *bytes, size_t len_bytes, struct error *err)
{
    return spill_read_at(spill->fd, "the temporary file", offset, bytes, len_bytes, err);
}
