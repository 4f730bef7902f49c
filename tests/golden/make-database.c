/* SPDX-License-Identifier: BSD-3-Clause */
/* make-database FILE.json FILE.db: a database of text (json-database.h) as the locus.db that the tools read. */
#include <stdio.h>
#include <string.h>

#include "../lib/json-database.h"
#include "base/input.h"
#include "database/database.h"
#include "fmt/file.h"

int main(int argc, char **argv)
{
    struct buf text = {0}, bytes = {0};
    struct model model;
    struct error err = {0};
    if (argc != 3 || model_init(&model, &err) != 0)
        return 2;
    int code = file_read(argv[1], &text, &err);
    if (code == 0)
        code = json_database_read(text.data, text.len_bytes, argv[1], &model, &err);
    if (code == 0)
        code = locus_db_write(&model, &bytes, &err);
    FILE *file = code == 0 ? fopen(argv[2], "wb") : NULL;
    bool is_written = file && fwrite(bytes.data, 1, bytes.len_bytes, file) == bytes.len_bytes;
    if (file && fclose(file) != 0)
        is_written = false;
    if (!is_written)
        (void)fprintf(stderr, "make-database: %s\n", code ? err.text : argv[2]);
    buf_fini(&text);
    buf_fini(&bytes);
    model_fini(&model);
    return is_written ? 0 : 1;
}
