/* SPDX-License-Identifier: BSD-3-Clause */
/* A literal of Hatchet as the objects that a program in Python has of it, read where they are: to print them as text
 * and to read that again takes twenty times as long. Python's functions are found in the process, which need not have
 * any; they are those of its stable interface. */
#include "frame/frame.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "frame/literal.h"

enum { MOST_OPEN = 100000 /* nodes one below the other; more are a list that contains itself */ };

/* What is called. */
struct python {
    void *(*type_of)(void *object); /* counts one owner more of the type */
    void (*drop)(void *object);
    int (*next)(void *dictionary, ssize_t *at, void **key, void **value);
    ssize_t (*len_of_list)(void *list), (*len_of_tuple)(void *tuple);
    void *(*of_list)(void *list, ssize_t at), *(*of_tuple)(void *tuple, ssize_t at);
    const char *(*text)(void *object, ssize_t *len_bytes);
    double (*number)(void *object);
    void *(*raised)(void);
    void (*forget)(void);
};

/* Types that are read, exactly these: others may do anything when they are asked. */
enum kind { DICTIONARY, LIST, TUPLE, TEXT, FLOAT, INT, BOOL, NOTHING, KINDS };

struct python_list {
    void *list;
    ssize_t at, n;
    bool is_tuple;
};

struct visit {
    struct reading reading;
    struct python_list *lists; /* [n_lists] that are open; the node of one is reading.open[its index - 1] */
    size_t n_lists, cap_lists;
    struct seen_text {
        void *object;
        uint32_t id;
    } seen[256]; /* by address: the same keys come again and again */
};

/* What a visit came to beside 0 and errors: something that has no place in a literal, or that only a text shows. */
enum { STRANGE = 1 };

/* What the process has of Python, looked up once; the caller's lock guards it. */
static struct {
    struct python python;
    void *types[KINDS]; /* NOTHING: None itself */
    bool is_there;
} of_process;

/* Finds what of Python is called; false: the process has none of it. */
static bool find_python(void)
{
    static const char *const names[KINDS] = {"PyDict_Type",  "PyList_Type", "PyTuple_Type", "PyUnicode_Type",
                                             "PyFloat_Type", "PyLong_Type", "PyBool_Type",  "_Py_NoneStruct"};
    struct python *python = &of_process.python;
    const struct {
        const char *name;
        void *place;
    } functions[] = {{"PyObject_Type", &python->type_of},    {"Py_DecRef", &python->drop},
                     {"PyDict_Next", &python->next},         {"PyList_Size", &python->len_of_list},
                     {"PyList_GetItem", &python->of_list},   {"PyTuple_Size", &python->len_of_tuple},
                     {"PyTuple_GetItem", &python->of_tuple}, {"PyUnicode_AsUTF8AndSize", &python->text},
                     {"PyFloat_AsDouble", &python->number},  {"PyErr_Occurred", &python->raised},
                     {"PyErr_Clear", &python->forget}};
    for (size_t i = 0; !of_process.is_there && i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(RTLD_DEFAULT, functions[i].name);
        if (!found)
            return false;
        memcpy(functions[i].place, &found, sizeof found);
    }
    for (size_t i = 0; !of_process.is_there && i < KINDS; i++)
        if (!(of_process.types[i] = dlsym(RTLD_DEFAULT, names[i])))
            return false;
    of_process.is_there = true;
    return true;
}

static enum kind kind_of(void *object)
{
    enum kind kind = 0;
    if (object == of_process.types[NOTHING])
        return NOTHING;
    void *type = of_process.python.type_of(object);
    while (kind < NOTHING && type != of_process.types[kind])
        kind++;
    of_process.python.drop(type);
    return kind < NOTHING ? kind : KINDS;
}

static struct seen_text *seen_place(struct visit *visit, void *object)
{
    return &visit->seen[(uintptr_t)object / 16 % (sizeof visit->seen / sizeof *visit->seen)];
}

/* The number of a text among those of the reading; STRANGE where it has none. */
static int take_text(struct visit *visit, void *object, uint32_t *id)
{
    ssize_t len_bytes;
    const char *text = of_process.python.text(object, &len_bytes);
    if (!text)
        of_process.python.forget();
    if (!text || strlen(text) != (size_t)len_bytes)
        return STRANGE;
    int64_t found = strtab_intern(&visit->reading.texts, text);
    if (found < 0)
        return ERR_MEMORY;
    *id = (uint32_t)found;
    *seen_place(visit, object) = (struct seen_text){object, *id};
    return 0;
}

static int take_key(struct visit *visit, void *object, uint32_t *id)
{
    const struct seen_text *seen = seen_place(visit, object);
    if (seen->object == object) {
        *id = seen->id;
        return 0;
    }
    return kind_of(object) == TEXT ? take_text(visit, object, id) : STRANGE;
}

static int take_number(void *object, double *number)
{
    *number = of_process.python.number(object);
    if (*number != -1.0 || !of_process.python.raised())
        return 0;
    of_process.python.forget();
    return STRANGE;
}

/* The value of a key: a text or a number. */
static int take_value(struct visit *visit, void *value, struct fact *fact)
{
    const struct seen_text *seen = seen_place(visit, value);
    if (seen->object == value) {
        fact->text = seen->id;
        return 0;
    }
    enum kind kind = kind_of(value);
    fact->is_number = kind == FLOAT || kind == INT || kind == BOOL;
    if (fact->is_number)
        return take_number(value, &fact->number);
    return kind == TEXT ? take_text(visit, value, &fact->text) : STRANGE;
}

/* A key of "frame", "attributes" or "metrics" with its value. */
static int take_fact(struct visit *visit, uint32_t node, bool is_metric, void *key, void *value)
{
    struct reading *reading = &visit->reading;
    struct fact fact = {.node = node, .is_metric = is_metric};
    int code = take_key(visit, key, &fact.key);
    if (code != 0 || value == of_process.types[NOTHING])
        return code;
    if ((code = take_value(visit, value, &fact)) != 0)
        return code;
    if (is_metric && fact.key == WORD_NID) {
        reading->nodes[node].nid = fact.is_number ? fact.number : NAN;
        return 0;
    }
    if (!vec_reserve(&reading->facts, &reading->cap_facts, reading->n_facts + 1, sizeof *reading->facts))
        return ERR_MEMORY;
    reading->facts[reading->n_facts++] = fact;
    return 0;
}

static int take_facts(struct visit *visit, uint32_t node, enum literal_word what, void *facts)
{
    struct reading *reading = &visit->reading;
    size_t first = reading->n_facts;
    ssize_t at = 0;
    void *key, *value;
    int code = kind_of(facts) == DICTIONARY ? 0 : STRANGE;
    while (code == 0 && of_process.python.next(facts, &at, &key, &value))
        code = take_fact(visit, node, what == WORD_METRICS, key, value);
    if (code == 0 && what == WORD_FRAME) {
        literal_keep_frame(reading, node, first);
    } else if (code == 0 && what == WORD_ATTRIBUTES) {
        reading->nodes[node].first_aside = first;
        reading->nodes[node].n_asides = reading->n_facts - first;
    }
    return code;
}

static int open_list(struct visit *visit, void *list)
{
    enum kind kind = kind_of(list);
    if ((kind != LIST && kind != TUPLE) || visit->n_lists >= MOST_OPEN)
        return STRANGE;
    if (!vec_reserve(&visit->lists, &visit->cap_lists, visit->n_lists + 1, sizeof *visit->lists))
        return ERR_MEMORY;
    ssize_t n = kind == LIST ? of_process.python.len_of_list(list) : of_process.python.len_of_tuple(list);
    visit->lists[visit->n_lists++] = (struct python_list){list, 0, n, kind == TUPLE};
    return 0;
}

/* A node, whose children are left for later. */
static int take_node(struct visit *visit, void *object, void **children)
{
    struct reading *reading = &visit->reading;
    struct error err;
    ssize_t at = 0;
    void *key, *value;
    *children = NULL;
    if (kind_of(object) != DICTIONARY)
        return STRANGE;
    int code = literal_open_node(reading, &err);
    uint32_t node = code == 0 ? reading->open[reading->n_open - 1] : 0;
    while (code == 0 && of_process.python.next(object, &at, &key, &value)) {
        uint32_t id = 0;
        code = take_key(visit, key, &id);
        if (code == 0 && id >= WORD_FRAME && id <= WORD_ATTRIBUTES)
            code = take_facts(visit, node, (enum literal_word)id, value);
        else if (code == 0 && id == WORD_CHILDREN)
            *children = kind_of(value) == NOTHING ? NULL : value;
        else if (code == 0)
            code = STRANGE;
    }
    return code == 0 && !reading->nodes[node].has_frame ? STRANGE : code;
}

static int visit_all(struct visit *visit, void *literal)
{
    void *children;
    int code = open_list(visit, literal);
    while (code == 0 && visit->n_lists > 0) {
        struct python_list *list = &visit->lists[visit->n_lists - 1];
        if (list->at == list->n) {
            visit->reading.n_open -= --visit->n_lists > 0;
            continue;
        }
        void *node = (list->is_tuple ? of_process.python.of_tuple : of_process.python.of_list)(list->list, list->at++);
        code = node ? take_node(visit, node, &children) : STRANGE;
        if (code == 0 && children)
            code = open_list(visit, children);
        else if (code == 0)
            visit->reading.n_open--;
    }
    return code;
}

/* How long the text of it would be, at least. */
static size_t bytes_of(const struct reading *reading)
{
    static const char node[] = "{\"frame\":{},\"metrics\":{}}", fact[] = "\"\":\"\",";
    return reading->n_nodes * (sizeof node - 1) + reading->n_facts * (sizeof fact - 1);
}

int frame_open_objects(void *literal, struct frame **frame, struct error *err)
{
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit)
        return error_memory(err);
    visit->reading.in.name = "literal";
    int code = find_python() ? 0 : STRANGE;
    if (code == 0)
        code = literal_begin(&visit->reading, err);
    if (code == 0)
        code = visit_all(visit, literal);
    if (code == 0 && visit->reading.n_nodes == 0)
        code = STRANGE;
    if (code == 0)
        code = literal_make_frame(&visit->reading, bytes_of(&visit->reading), frame, err);
    else if (code == STRANGE)
        code = error_set(err, ERR_UNSUPPORTED, "the literal has what its text alone may show");
    else
        code = error_memory(err);
    literal_fini(&visit->reading);
    free(visit->lists);
    free(visit);
    return code;
}
