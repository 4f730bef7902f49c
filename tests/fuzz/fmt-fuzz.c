/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for every reader of src/fmt: no input may crash or leak, and what a reader accepts must write
 * back to the same bytes. Seeds: the inputs below tests/golden. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/any.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check(int holds, const char *sentence)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", sentence);
    abort();
}

/* What we wrote is read, and written again to the same bytes. */
static void check_again(const struct buf *binary)
{
    struct any_file file = {0};
    struct buf again = {0};
    struct error err = {0};
    check(any_read_memory(binary->data, binary->len_bytes, "again", &file, &err) == 0, "what was written is refused");
    check(any_write(&file, &again, &err) == 0, "what was written is not written again");
    check(again.len_bytes == binary->len_bytes && memcmp(again.data, binary->data, again.len_bytes) == 0,
          "what was written is not written again to the same bytes");
    any_fini(&file);
    buf_fini(&again);
}

/* len_bytes 0: the input is text, which may be laid out anew. */
static void check_file(const struct any_file *file, const uint8_t *data, size_t len_bytes)
{
    struct buf text = {0}, json = {0}, binary = {0};
    struct error err = {0};
    any_put_text(file, &text);
    any_put_json(file, &json);
    int code = any_write(file, &binary, &err);
    if (code == 0 && binary.len_bytes > 10 && memcmp(binary.data, V4_BEGINS, 10) == 0)
        check_again(&binary);
    else if (code == 0 && len_bytes)
        check(binary.len_bytes == len_bytes && memcmp(binary.data, data, len_bytes) == 0,
              "what was read is not written back to the same bytes");
    buf_fini(&text);
    buf_fini(&json);
    buf_fini(&binary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static const char *const names[] = {"fuzz", "fuzz.log", "fuzz.objects"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct any_file file = {0};
        struct error err = {0};
        if (any_read_memory((const char *)data, len_bytes, names[i], &file, &err) == 0)
            check_file(&file, data, i == 0 && len_bytes && (data[0] == 'H' || data[0] == 'L') ? len_bytes : 0);
        else
            check(err.text[0] != '\0' && !file.row, "a refusal has no message");
        any_fini(&file);
    }
    struct any_file file = {0};
    if (any_read_json_memory((const char *)data, len_bytes, "fuzz.json", &file, NULL) == 0)
        check_file(&file, data, 0);
    any_fini(&file);
    return 0;
}
