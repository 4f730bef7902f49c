/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of kinds, and how things are found in it: see item.h. */
#include "answer/item.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"

#define KINDS(ROW)                                                                                                     \
    ROW(item_variable)                                                                                                 \
    ROW(item_field)                                                                                                    \
    ROW(item_type)                                                                                                     \
    ROW(item_site)                                                                                                     \
    ROW(item_function)                                                                                                 \
    ROW(item_loop)                                                                                                     \
    ROW(item_line)                                                                                                     \
    ROW(item_instruction)                                                                                              \
    ROW(item_file)                                                                                                     \
    ROW(item_module)                                                                                                   \
    ROW(item_region)                                                                                                   \
    ROW(item_node)                                                                                                     \
    ROW(item_thread)                                                                                                   \
    ROW(item_process)                                                                                                  \
    ROW(item_rank)                                                                                                     \
    ROW(item_cpu)                                                                                                      \
    ROW(item_numa)                                                                                                     \
    ROW(item_event)

#define DECLARE(name) extern const struct item_kind name;
#define ADDRESS(name) &name,

KINDS(DECLARE)

enum { TWIN_MODULE = 1, TWIN_FILE = 2 }; /* where functions of one name differ */

static const struct item_kind *const kinds[] = {KINDS(ADDRESS)};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const struct item_kind *item_kind_at(size_t i)
{
    return i < N_KINDS ? kinds[i] : NULL;
}

/* Number of the kind with a name of n bytes, N_KINDS when there is none. */
static size_t kind_number(const char *name, size_t n)
{
    size_t i = 0;
    while (i < N_KINDS && !(strlen(kinds[i]->name) == n && memcmp(kinds[i]->name, name, n) == 0))
        i++;
    return i;
}

static size_t number_of(const struct item_kind *kind)
{
    return kind_number(kind->name, strlen(kind->name));
}

const struct item_kind *item_kind_find(const char *name)
{
    return item_kind_at(kind_number(name, strlen(name)));
}

int items_init(struct items *items, const struct model *model, size_t metric, struct error *err)
{
    *items = (struct items){.model = model,
                            .metric = metric,
                            .lists = calloc(N_KINDS, sizeof *items->lists),
                            .is_made = calloc(N_KINDS, sizeof *items->is_made)};
    if (items->lists && items->is_made)
        return 0;
    items_fini(items);
    return error_memory(err);
}

void items_fini(struct items *items)
{
    for (size_t i = 0; items->lists && i < N_KINDS; i++) {
        free(items->lists[i].items);
        strtab_fini(&items->lists[i].names);
    }
    free(items->lists);
    free(items->is_made);
    if (items->has_report)
        report_fini(&items->report);
    if (items->has_functions)
        code_table_fini(&items->functions);
    if (items->has_lines)
        code_table_fini(&items->lines);
    free(items->first_of);
    free(items->twins);
    *items = (struct items){0};
}

/* --- lists --- */

void item_list_add(struct item_list *list, const struct item *item, struct buf *name)
{
    size_t n = list->names.n_strings;
    int64_t id = name->failed || list->failed ? -1 : strtab_intern(&list->names, name->data ? name->data : "");
    buf_fini(name);
    if (id < 0 || !vec_reserve(&list->items, &list->cap, list->n + 1, sizeof *list->items)) {
        list->failed = true;
        return;
    }
    if ((size_t)id < n) {
        double value = list->items[id].value + item->value;
        double most = list->items[id].most;
        if (item->value > most)
            list->items[id] = *item;
        list->items[id].most = item->value > most ? item->value : most;
        list->items[id].value = value;
        list->items[id].name = list->names.strings[id];
        return;
    }
    list->items[list->n] = *item;
    list->items[list->n].most = item->value;
    list->items[list->n++].name = list->names.strings[id];
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? 1 : -1) : (x->ref > y->ref) - (x->ref < y->ref);
}

void item_list_order(struct item_list *list)
{
    struct item_list ordered = {.total = list->total, .failed = list->failed};
    if (list->n > 1)
        qsort(list->items, list->n, sizeof *list->items, compare_items);
    for (size_t i = 0; i < list->n; i++) {
        struct buf name = {0};
        buf_printf(&name, "%s", list->items[i].name);
        item_list_add(&ordered, &list->items[i], &name);
    }
    free(list->items);
    strtab_fini(&list->names);
    *list = ordered;
}

/* The number that a text is, written as numbers are, below an end; ITEM_NONE: it is none. */
static size_t number_below(const char *text, size_t end)
{
    size_t number = 0, len = strspn(text, "0123456789");
    if (!len || text[len] || (*text == '0' && len > 1))
        return ITEM_NONE;
    for (size_t i = 0; i < len && number < end; i++)
        number = 10 * number + (size_t)(text[i] - '0');
    return number < end ? number : ITEM_NONE;
}

size_t item_list_find(const struct item_list *list, const char *name)
{
    if (list->is_numbered)
        return number_below(name, list->n);
    int64_t id = strtab_find(&list->names, name);
    return id < 0 ? ITEM_NONE : (size_t)id;
}

static const struct item_list *list_of(struct items *items, size_t number, struct error *err)
{
    struct item_list *list = &items->lists[number];
    if (!items->is_made[number]) {
        int code = kinds[number]->make(items, list, err);
        if (code == 0 && list->failed)
            code = error_memory(err);
        if (code != 0)
            return NULL;
        items->is_made[number] = true;
    }
    return list;
}

const struct item_list *items_list(struct items *items, const struct item_kind *kind, struct error *err)
{
    return list_of(items, number_of(kind), err);
}

const struct item *items_at(struct items *items, const struct item_kind *kind, size_t i, struct error *err)
{
    struct item_list *list = &items->lists[number_of(kind)];
    char name[24];
    if (list->items[i].name)
        return &list->items[i];
    (void)snprintf(name, sizeof name, "%zu", i);
    int64_t id = strtab_intern(&list->names, name);
    if (id < 0) {
        (void)error_memory(err);
        return NULL;
    }
    list->items[i] = kind->at(items, i);
    list->items[i].name = list->names.strings[id];
    return &list->items[i];
}

size_t items_position(struct items *items, const char *kind, struct buf *name, struct error *err)
{
    const struct item_list *list = name->failed ? NULL : list_of(items, kind_number(kind, strlen(kind)), err);
    size_t position = list ? item_list_find(list, name->data ? name->data : "") : ITEM_NONE;
    if (name->failed)
        (void)error_memory(err);
    buf_fini(name);
    return position;
}

/* --- identities --- */

static int refuse_kind(const char *identity, size_t n, struct error *err)
{
    const char *names[N_KINDS];
    struct buf text = {0}, word = {0};
    for (size_t i = 0; i < N_KINDS; i++)
        names[i] = kinds[i]->name;
    buf_printf(&word, "%.*s", (int)n, identity);
    spelling_suggest(&text, word.data ? word.data : "", names, N_KINDS);
    int code = text.failed || word.failed ? error_memory(err)
                                          : error_set(err, ERR_NOT_FOUND, "'%.100s' is no kind of thing%.600s",
                                                      word.data ? word.data : "", text.data ? text.data : "");
    buf_fini(&text);
    buf_fini(&word);
    return code;
}

static int refuse_name(struct items *items, const struct item_kind *kind, const struct item_list *list,
                       const char *name, struct error *err)
{
    struct buf text = {0};
    const char **names = calloc(list->n + 1, sizeof *names);
    bool ok = names != NULL;
    for (size_t i = 0; ok && i < list->n; i++) {
        const struct item *item = items_at(items, kind, i, err);
        ok = item != NULL;
        names[i] = ok ? item->name : NULL;
    }
    if (ok)
        spelling_suggest(&text, name, names, list->n);
    int code = !ok || text.failed ? error_memory(err)
                                  : error_set(err, ERR_NOT_FOUND, "the database has no %s '%.300s'%.600s", kind->name,
                                              name, text.data ? text.data : "");
    buf_fini(&text);
    free(names);
    return code;
}

/* The one thing whose name ends with a slash and these words: a place without the directories of its file. */
static size_t find_end(const struct item_list *list, const char *words)
{
    size_t found = ITEM_NONE, len = strlen(words);
    for (size_t i = 0; !list->is_numbered && i < list->n; i++) {
        const char *name = list->items[i].name;
        size_t n = strlen(name);
        if (n <= len || name[n - len - 1] != '/' || strcmp(name + n - len, words) != 0)
            continue;
        if (found != ITEM_NONE)
            return ITEM_NONE;
        found = i;
    }
    return found;
}

/* The thing with this full name. */
static size_t find_full(const struct items *items, const struct item_kind *kind, const struct item_list *list,
                        const char *words)
{
    size_t found = ITEM_NONE;
    struct buf name = {0};
    for (size_t i = 0; kind->put_full && i < list->n && found == ITEM_NONE; i++) {
        name.len_bytes = 0;
        kind->put_full(items, &list->items[i], &name);
        if (name.data && !name.failed && strcmp(name.data, words) == 0)
            found = i;
    }
    buf_fini(&name);
    return found;
}

int items_find(struct items *items, const char *identity, const struct item_kind **kind, const struct item **item,
               struct error *err)
{
    size_t n = strcspn(identity, ":"), number = kind_number(identity, n);
    if (number == N_KINDS)
        return refuse_kind(identity, n, err);
    if (!identity[n])
        return error_set(err, ERR_NOT_FOUND, "which %s? Write %s:NAME", kinds[number]->name, kinds[number]->name);
    const struct item_list *list = list_of(items, number, err);
    if (!list)
        return ERR_MEMORY;
    size_t position = item_list_find(list, identity + n + 1);
    if (position == ITEM_NONE)
        position = find_end(list, identity + n + 1);
    if (position == ITEM_NONE)
        position = find_full(items, kinds[number], list, identity + n + 1);
    if (position == ITEM_NONE)
        return refuse_name(items, kinds[number], list, identity + n + 1, err);
    *kind = kinds[number];
    *item = items_at(items, *kind, position, err);
    return *item ? 0 : ERR_MEMORY;
}

/* --- what stands for a thing --- */

/* How a search came to each kind: the thing there, or the reason why there is none, which the first link to it gave and
 * which stands: what other ways would find is something else. The kinds are in the order in which they were reached. */
struct search {
    const struct item *at[N_KINDS];
    const char *missing[N_KINDS];
    size_t queue[N_KINDS], n;
};

/* Sets reaches [N_KINDS]: from which kinds there are links to the target, directly or by others. */
static void find_reaching(size_t target, bool *reaches)
{
    bool is_new = true;
    reaches[target] = true;
    while (is_new) {
        is_new = false;
        for (size_t i = 0; i < N_KINDS; i++)
            for (const struct item_link *link = kinds[i]->links; !reaches[i] && link && link->kind; link++)
                is_new |= reaches[i] = reaches[kind_number(link->kind, strlen(link->kind))];
    }
}

/* Goes on from a kind to those that its links lead to.  err: ERR_MEMORY */
static int follow(struct items *items, struct search *search, size_t from, struct error *err)
{
    for (const struct item_link *link = kinds[from]->links; link && link->kind; link++) {
        size_t to = kind_number(link->kind, strlen(link->kind));
        struct error failure = {0};
        if (search->at[to] || search->missing[to])
            continue;
        const struct item_list *list = list_of(items, to, &failure);
        size_t position = list ? link->find(items, search->at[from], &failure) : ITEM_NONE;
        if (failure.code == ERR_MEMORY)
            return error_memory(err);
        if (position == ITEM_NONE) {
            search->missing[to] = link->missing;
            continue;
        }
        search->at[to] = items_at(items, kinds[to], position, err);
        if (!search->at[to])
            return ERR_MEMORY;
        search->queue[search->n++] = to;
    }
    return 0;
}

/* Why a search did not come to the target: the reason there, or of a kind from which links lead to it. */
static int say_missing(const struct search *search, size_t from, size_t target, struct error *err)
{
    const char *missing = search->missing[target];
    bool reaches[N_KINDS] = {0};
    find_reaching(target, reaches);
    for (size_t i = 0; i < N_KINDS && !missing; i++)
        missing = reaches[i] ? search->missing[i] : NULL;
    if (missing)
        return error_set(err, ERR_NOT_FOUND, "%s", missing);
    return error_set(err, ERR_UNSUPPORTED, "%s %s has no %s", strchr("aeiou", *kinds[from]->name) ? "an" : "a",
                     kinds[from]->name, kinds[target]->name);
}

const struct item *items_stand_in(struct items *items, const struct item_kind *kind, const struct item *item,
                                  const struct item_kind *wanted, struct error *err)
{
    size_t from = number_of(kind), target = number_of(wanted);
    struct search search = {.queue = {from}, .n = 1};
    search.at[from] = item;
    for (size_t i = 0; i < search.n && !search.at[target] && !search.missing[target]; i++)
        if (follow(items, &search, search.queue[i], err) != 0)
            return NULL;
    if (!search.at[target])
        (void)say_missing(&search, from, target, err);
    return search.at[target];
}

/* --- tables that kinds share --- */

struct report *items_report(struct items *items, struct error *err)
{
    if (!items->has_report)
        items->has_report = report_make(items->model, items->metric, false, false, &items->report, err) == 0;
    return items->has_report ? &items->report : NULL;
}

struct code_table *items_functions(struct items *items, struct error *err)
{
    struct code_table *table = &items->functions;
    if (items->has_functions)
        return table;
    if (code_table_make(items->model, items->metric, CODE_FUNCTION, NULL, table, err) != 0)
        return NULL;
    items->has_functions = true;
    items->twins = item_twins(table, &items->first_of);
    if (!items->twins)
        (void)error_memory(err);
    return items->twins ? table : NULL;
}

struct code_table *items_lines(struct items *items, struct error *err)
{
    if (!items->has_lines)
        items->has_lines = code_table_make(items->model, items->metric, CODE_PLACE, NULL, &items->lines, err) == 0;
    return items->has_lines ? &items->lines : NULL;
}

/* --- names --- */

unsigned char *item_twins(const struct code_table *functions, uint32_t **first_of)
{
    size_t n_strings = functions->model->strings.n_strings;
    uint32_t *firsts = calloc(n_strings + 1, sizeof *firsts);
    unsigned char *twins = calloc(n_strings + 1, 1);
    if (twins && functions->model->names_in_full)
        memset(twins, TWIN_MODULE | TWIN_FILE, n_strings);
    for (size_t i = 0; firsts && twins && i < functions->n_rows; i++) {
        const struct code_row *row = &functions->rows[i];
        uint32_t *first = &firsts[row->function];
        *first = *first ? *first : (uint32_t)i + 1;
        twins[row->function] |= (row->module != functions->rows[*first - 1].module ? TWIN_MODULE : 0) |
                                (row->file != functions->rows[*first - 1].file ? TWIN_FILE : 0);
    }
    if (!firsts) {
        free(twins);
        twins = NULL;
    }
    if (first_of && twins)
        *first_of = firsts;
    else
        free(firsts);
    return twins;
}

void item_put_twin(const struct model *model, const unsigned char *twins, const struct code_row *row, struct buf *out)
{
    unsigned differ = twins ? twins[row->function] : 0;
    buf_printf(out, "%s", model_text(model, row->function));
    if (differ & TWIN_MODULE)
        buf_printf(out, "@%s", model_text(model, row->module));
    if (differ & TWIN_FILE)
        buf_printf(out, "@%s", model_text(model, row->file));
}

void item_put_function(struct items *items, uint32_t function, uint32_t file, uint32_t module, struct buf *out)
{
    const struct code_row row = {.function = function, .file = file, .module = module};
    item_put_twin(items->model, items->twins, &row, out);
}

void item_put_code_cell(const struct model *model, const unsigned char *twins, const struct code_row *row,
                        struct table *table)
{
    struct buf text = {0};
    if (!twins && !row->line) {
        table_put_absent(table);
        return;
    }
    if (twins) {
        buf_printf(&text, "function:");
        item_put_twin(model, twins, row, &text);
    } else {
        buf_printf(&text, "line:%s:%u", model_text(model, row->file), row->line);
    }
    table_put_made(table, &text);
}

void item_put_row_cell(const struct report_row *row, struct table *table)
{
    struct buf text = {0};
    if (!row) {
        table_put_absent(table);
        return;
    }
    buf_printf(&text, "variable:");
    item_put_row(row, &text);
    table_put_made(table, &text);
}

void item_put_line(const struct items *items, uint32_t file, uint32_t line, struct buf *out)
{
    buf_printf(out, "%s:%u", model_text(items->model, file), line);
}

void item_put_row(const struct report_row *row, struct buf *out)
{
    buf_printf(out, "%s%s%s", row->name, row->is_twin && row->site && *row->site ? " from " : "",
               row->is_twin && row->site ? row->site : "");
}

void item_put_subject(const struct items *items, const struct item_kind *kind, const struct item *item, struct buf *out)
{
    bool is_function = kind == &item_function;
    if (is_function && items->twins && items->twins[item->function] && item->file)
        buf_printf(out, "%s:", model_text(items->model, item->file));
    buf_printf(out, "%s", is_function ? model_text(items->model, item->function) : item->name);
}
