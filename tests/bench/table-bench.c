/* SPDX-License-Identifier: BSD-3-Clause */
/* Times a table of an answer, in milliseconds of the best of five: table-bench ROWS fills it with rows of eight cells,
 * shows its first 40 rows as a face does, and prints all of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "table/table.h"

enum { TIMES = 5, SHOWN = 40 };

static const struct column columns[] = {
    {"variable", "variable", CELL_TEXT},  {"file", NULL, CELL_TEXT},        {"line", NULL, CELL_WORD},
    {"samples", "samples", CELL_COUNT},   {"share", "share", CELL_PERCENT}, {"value", NULL, CELL_NUMBER},
    {"address", "address", CELL_ADDRESS}, {"typed", NULL, CELL_FLAG},
};

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void fill(struct table *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "variable_%zu", i);
        table_put_text(table, name);
        table_put_borrowed(table, "/opt/app/src/solver.c");
        table_put_word_if(table, i % 7 != 0, i % 900);
        table_put_count(table, (int64_t)(n - i));
        table_put_number(table, 100.0 * (double)(n - i) / (double)n);
        table_put_number(table, i % 5 ? 0.5 * (double)i : (double)NAN);
        table_put_word(table, 0x7f0000000000 + 64 * i);
        table_put_flag(table, i & 1);
    }
}

/* Reads the first rows of each column and adds them up, so that nothing of it can be left out. */
static double show(const struct table *table, size_t n)
{
    union {
        double number;
        int64_t count;
        uint64_t word;
        const char *text;
    } values[SHOWN];
    unsigned char known[SHOWN];
    double sum = 0;
    for (size_t c = 0; c < table_columns(table); c++) {
        bool is_text = table_get_texts(table, c, 0, n, &values->text);
        bool is_number = table_get_numbers(table, c, 0, n, &values->number);
        for (size_t row = 0; row < n; row++)
            sum += is_text ? *values[row].text : is_number && !isnan(values[row].number) ? values[row].number : 0;
        if (table_get_words(table, c, 0, n, &values->word, known))
            sum += (double)values[n - 1].word + known[n - 1];
    }
    return sum;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    double best[4] = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL}, sum = 0;
    for (int i = 0; i < TIMES; i++) {
        struct table table = TABLE_OF(columns);
        struct buf csv = {0}, json = {0};
        double at[5] = {now_ms()};
        fill(&table, n);
        at[1] = now_ms();
        sum += show(&table, n < SHOWN ? n : SHOWN);
        at[2] = now_ms();
        table_print_csv(&table, &csv);
        at[3] = now_ms();
        table_print_json(&table, "\n", &json);
        at[4] = now_ms();
        if (table.failed || csv.failed || json.failed)
            return 1;
        for (int k = 0; k < 4; k++)
            best[k] = fmin(best[k], at[k + 1] - at[k]);
        buf_fini(&csv);
        buf_fini(&json);
        table_fini(&table);
    }
    printf("table of %zu rows, 8 columns: filled %.0f ms; its first %d rows: %.4f ms (goal 50); as "
           "CSV "
           "%.0f ms, as JSON %.0f ms\n",
           n, best[0], SHOWN, best[1], best[2], best[3]);
    return sum > 0 ? 0 : 1;
}
