/* SPDX-License-Identifier: BSD-3-Clause */
/* locus/session.h, locus/table.h: the texts and numbers of the largest row of a report.
 * usage: report DATABASE REPORT, such as "vars" */
#include <locus/session.h>
#include <locus/table.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void print_column(const struct table *table, size_t column)
{
    size_t n = table_rows(table);
    double *numbers = malloc((n + 1) * sizeof *numbers);
    const char **texts = malloc((n + 1) * sizeof *texts);
    bool is_wanted = numbers && texts && !table_is_for_csv(table, column);
    bool is_text = is_wanted && table_get_texts(table, column, 0, n, texts);
    bool is_number = is_wanted && table_get_numbers(table, column, 0, n, numbers);
    for (size_t i = 0; i < n; i++)
        if (is_text && texts[i])
            printf("%s: %s\n", table_key(table, column), texts[i]);
        else if (is_number && !isnan(numbers[i]))
            printf("%s: %g\n", table_key(table, column), numbers[i]);
    free(numbers);
    free(texts);
}

int main(int argc, char **argv)
{
    struct session *session;
    struct answer *answer = NULL;
    struct error err;
    if (argc != 3)
        return 2;
    const char *path = argv[1];
    const struct request request = {.size = sizeof request, .report = argv[2], .top = 1};
    if (session_open(&path, 1, &session, &err) != 0) {
        printf("%s\n", err.text);
        return 1;
    }
    if (session_ask(session, &request, &answer, &err) == 0) {
        const struct table *rows = answer_rows(answer);
        printf("%s of %s by %s: %zu rows, %zu left\n", answer_name(answer), answer_program(answer),
               answer_metric(answer) ? answer_metric(answer) : "-", table_rows(rows), (size_t)answer_n_left(answer));
        for (size_t column = 0; column < table_columns(rows); column++)
            print_column(rows, column);
    } else {
        printf("%s\n", err.text);
    }
    answer_free(answer);
    session_close(session);
    return 0;
}
