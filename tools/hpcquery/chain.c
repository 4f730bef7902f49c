/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of operations on frames. The words are
 *
 *     STEP [: STEP]... [:] INPUT...
 *
 * and a step is an operation with its operands, or at the end a form or `save DIR`. A step that works on one frame is
 * done on every input until an operation on several makes one of them; that operation says how many inputs there are.
 * In the last step, which the inputs follow, operands that may be left out are those words that are too many for
 * inputs; where any number of inputs is right, those that are no files or pipes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/path.h"
#include "base/spelling.h"
#include "export/derived.h"
#include "export/frames/forms.h"
#include "frame/ops.h"
#include "hpcquery.h"

struct step {
    const char *name;
    const char *operands; /* their names, as in struct frame_operation */
    const struct frame_operation *operation;
    const struct frame_form *form; /* both NULL: it saves the result */
    const char *const *texts;      /* [n_texts] */
    size_t n_texts;
};

struct chain {
    struct step *steps; /* [n_steps], at most one for each word */
    size_t n_steps;
    char **inputs; /* [n_inputs] */
    size_t n_inputs;
    struct frame **frames; /* [n_frames] what the steps so far have made */
    size_t n_frames;
};

static int out_of_memory(void)
{
    return tool_error("hpcquery", "out of memory");
}

/* --- words --- */

static bool is_separator(const char *word)
{
    return strcmp(word, ":") == 0;
}

static const struct frame_operation *find_operation(const char *name)
{
    size_t n;
    const struct frame_operation *operations = frame_operations(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

static bool is_save(const char *word)
{
    return strcmp(word, "save") == 0;
}

bool chain_knows(const char *word)
{
    return find_operation(word) || frame_form_find(word, NULL) || is_save(word);
}

static int unknown_step(const char *name)
{
    char text[512];
    const char *names[128], *found;
    struct buf like = {0};
    struct verb verb;
    size_t n = 0;
    for (; n < 64 && verb_at(n, &verb); n++) {
        if (strcmp(name, verb.kind->name) == 0)
            return tool_usage("hpcquery",
                              "%s is a report and no step of a chain; group, hierarchy and flat are steps, "
                              "tree and table show what comes of them",
                              name);
        names[n] = verb.kind->name;
    }
    for (size_t i = 0; n < 128 && chain_describe_operation(i, &found, text, sizeof text); i++)
        names[n++] = found;
    for (size_t i = 0; n < 128 && chain_describe_form(i, &found, text, sizeof text); i++)
        names[n++] = found;
    spelling_suggest(&like, name, names, n);
    int status = tool_usage("hpcquery", "there is no report or operation '%.100s'%s", name, like.data ? like.data : "");
    buf_fini(&like);
    return status;
}

static int wrong_operands(const struct step *step)
{
    return *step->operands ? tool_usage("hpcquery", "%s: give its operands: %s", step->name, step->operands)
                           : tool_usage("hpcquery", "%s has no operands", step->name);
}

/* How many inputs the chain works on: 0 for any number. */
static size_t n_inputs_wanted(const struct chain *chain)
{
    for (size_t i = 0; i < chain->n_steps; i++)
        if (chain->steps[i].operation && chain->steps[i].operation->n_frames != 1)
            return chain->steps[i].operation->n_frames;
    return 1;
}

/* Adds the step whose name is the first of the words; its operands are not taken yet. Returns an exit status. */
static int add_step(struct chain *chain, char **words)
{
    if (chain->n_steps && !chain->steps[chain->n_steps - 1].operation)
        return tool_usage("hpcquery", "nothing follows %s but inputs", chain->steps[chain->n_steps - 1].name);
    struct step *step = &chain->steps[chain->n_steps++];
    *step = (struct step){.name = words[0], .texts = (const char *const *)words + 1, .operands = ""};
    step->operation = find_operation(words[0]);
    step->form = step->operation ? NULL : frame_form_find(words[0], NULL);
    if (step->operation)
        step->operands = step->operation->operands;
    else if (is_save(words[0]))
        step->operands = "DIR";
    return chain_knows(words[0]) ? 0 : unknown_step(words[0]);
}

/* A step with all its operands, and nothing else. */
static int take_middle(struct chain *chain, char **words, size_t n)
{
    int status = add_step(chain, words);
    size_t n_least, n_most;
    if (status != 0)
        return status;
    struct step *step = &chain->steps[chain->n_steps - 1];
    frame_count_operands(step->operands, &n_least, &n_most);
    step->n_texts = n - 1;
    return step->n_texts < n_least || step->n_texts > n_most ? wrong_operands(step) : 0;
}

static int wrong_inputs(const struct chain *chain, size_t n_given)
{
    size_t n_wanted = n_inputs_wanted(chain);
    if (n_wanted == 0 || n_given == 0)
        return tool_usage("hpcquery", "give %s after the last step",
                          n_wanted == 1 ? "an input"
                          : n_wanted    ? "the inputs"
                                        : "one or more inputs");
    return tool_usage("hpcquery", "these steps work on %s, not on %zu", n_wanted == 1 ? "one input" : "two inputs",
                      n_given);
}

static int take_inputs(struct chain *chain, char **words, size_t n)
{
    size_t n_wanted = n_inputs_wanted(chain);
    chain->inputs = words;
    chain->n_inputs = n;
    return n == 0 || (n_wanted && n != n_wanted) ? wrong_inputs(chain, n) : 0;
}

/* What follows the last separator: the last step and the inputs, or inputs alone. */
static int take_last(struct chain *chain, char **words, size_t n)
{
    size_t n_least, n_most;
    if (chain->n_steps && (n == 0 || (!chain_knows(words[0]) && input_is_there(words[0]))))
        return take_inputs(chain, words, n);
    int status = add_step(chain, words);
    if (status != 0)
        return status;
    struct step *step = &chain->steps[chain->n_steps - 1];
    frame_count_operands(step->operands, &n_least, &n_most);
    size_t n_wanted = n_inputs_wanted(chain), n_rest = n - 1;
    if (n_rest < n_least)
        return wrong_operands(step);
    step->n_texts = n_least;
    while (step->n_texts < n_most && step->n_texts < n_rest &&
           (n_wanted ? n_rest - step->n_texts > n_wanted : !input_is_there(words[1 + step->n_texts])))
        step->n_texts++;
    return take_inputs(chain, words + 1 + step->n_texts, n_rest - step->n_texts);
}

static int parse(struct chain *chain, char **words, size_t n)
{
    int status = 0;
    size_t begin = 0;
    for (size_t i = 0; status == 0 && i < n; i++) {
        if (!is_separator(words[i]))
            continue;
        status = i == begin ? tool_usage("hpcquery", "there is no step before the %s :", begin ? "next" : "first")
                            : take_middle(chain, words + begin, i - begin);
        begin = i + 1;
    }
    return status ? status : take_last(chain, words + begin, n - begin);
}

/* --- work --- */

/* What the user is told about a step that fails. */
static int step_failed(const struct chain *chain, size_t i, const struct error *err)
{
    const char *name = chain->steps[i].name, *reason = err->text;
    size_t len = strlen(name);
    if (strncmp(reason, name, len) == 0 && strncmp(reason + len, ": ", 2) == 0)
        reason += len + 2; /* "query" is named by the library as well */
    if (chain->n_steps == 1)
        return tool_error("hpcquery", "%s: %s", name, reason);
    return tool_error("hpcquery", "step %zu, %s: %s", i + 1, name, reason);
}

/* Replaces *frame by the result of an operation on it. */
static int replace(struct frame **frame, const char *operation, const char *const *texts, size_t n_texts,
                   struct error *err)
{
    struct frame *result;
    int code = frame_run(operation, frame, 1, texts, n_texts, &result, err);
    if (code != 0)
        return code;
    frame_close(*frame);
    *frame = result;
    return 0;
}

/* Adds the columns of --derive. */
static int derive(const struct settings *settings, struct frame **frame, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < settings->n_derived; i++) {
        const char *text = settings->derived[i];
        char *name = derived_name(text);
        if (!name)
            return error_memory(err);
        const char *const texts[] = {name, strchr(text, '=') + 1};
        code = replace(frame, "derive", texts, 2, err);
        free(name);
    }
    return code;
}

int input_open_frame(const struct settings *settings, const char *path, struct frame **frame)
{
    struct error err = {0};
    char of_pipe[INPUT_PATH_BYTES];
    *frame = NULL;
    int status = input_path(path, of_pipe);
    if (status != 0)
        return status;
    if ((settings_ask(settings, ASK_FIELDS) ? frame_open_fields
         : settings->with_parts             ? frame_open_parts
                                            : frame_open)(*of_pipe ? of_pipe : path, frame, &err) != 0) {
        size_t len = strlen(of_pipe); /* people gave it another name */
        bool is_named = len && strncmp(err.text, of_pipe, len) == 0;
        return tool_error("hpcquery", "%s%s", is_named ? path : "", err.text + (is_named ? len : 0));
    }
    if (settings->values[ASK_PROFILES] && replace(frame, "choose", &settings->values[ASK_PROFILES], 1, &err) != 0)
        status = tool_error("hpcquery", "%s: --profiles: %s", path, err.text);
    else if (derive(settings, frame, &err) != 0)
        status = tool_error("hpcquery", "%s: --derive: %s", path, err.text);
    if (status != 0) {
        frame_close(*frame);
        *frame = NULL;
    }
    return status;
}

static const char *const attributes_of_data[] = {"variable", "class", "element_type", "site", "blocks", "element_size"};
static const char *const attributes_of_fields[] = {"field", "field_type"};
static const char *const attributes_of_trees[] = {"tree"};

/* Whether a text has one of n words as a word of its own. */
static bool names_any(const char *text, const char *const *words, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (size_t len; *text; text += len ? len : 1) {
        len = strspn(text, letters);
        for (size_t i = 0; len && i < n; i++)
            if (strlen(words[i]) == len && strncmp(text, words[i], len) == 0)
                return true;
    }
    return false;
}

/* Whether an operand of an operation has one of n words. */
static bool operands_name(const struct chain *chain, const char *const *words, size_t n)
{
    for (size_t i = 0; i < chain->n_steps; i++)
        for (size_t k = 0; chain->steps[i].operation && k < chain->steps[i].n_texts; k++)
            if (names_any(chain->steps[i].texts[k], words, n))
                return true;
    return false;
}

static bool has_operation(const struct chain *chain)
{
    for (size_t i = 0; i < chain->n_steps; i++)
        if (chain->steps[i].operation)
            return true;
    return false;
}

static bool names_fields(const struct chain *chain)
{
    return operands_name(chain, attributes_of_fields, sizeof attributes_of_fields / sizeof *attributes_of_fields);
}

/* Whether what functions consist of is asked for: levels of a hierarchy, or all that a file of callgrind has. */
static bool names_parts(const struct chain *chain)
{
    static const char *const levels[] = {"line", "instruction"};
    for (size_t i = 0; i < chain->n_steps; i++) {
        const struct step *step = &chain->steps[i];
        if (step->form && strcmp(step->name, "callgrind") == 0)
            return true;
        if (step->operation && strcmp(step->name, "hierarchy") == 0 && step->n_texts &&
            names_any(step->texts[0], levels, sizeof levels / sizeof *levels))
            return true;
    }
    return false;
}

/* The tree of a database that the operations are about, "code" or "data"; NULL: both, as the operations say which. */
static const char *choose_tree(const struct settings *settings, const struct chain *chain)
{
    if (settings->values[ASK_TREE])
        return strcmp(settings->values[ASK_TREE], "both") == 0 ? NULL : settings->values[ASK_TREE];
    if (!has_operation(chain) ||
        operands_name(chain, attributes_of_trees, sizeof attributes_of_trees / sizeof *attributes_of_trees))
        return NULL;
    bool of_data = operands_name(chain, attributes_of_data, sizeof attributes_of_data / sizeof *attributes_of_data);
    return of_data || settings_ask(settings, ASK_FIELDS) || names_fields(chain) ? "data" : "code";
}

/* Keeps that tree alone, where a frame has both: they hold the same costs. */
static int keep_tree(struct frame **frame, const char *tree, struct error *err)
{
    struct frame *result;
    int code = frame_choose_tree(*frame, tree, &result, err);
    if (code == 0) {
        frame_close(*frame);
        *frame = result;
    }
    return code;
}

static int keep_trees(const struct settings *settings, struct chain *chain)
{
    struct error err = {0};
    const char *tree = choose_tree(settings, chain);
    for (size_t i = 0; tree && i < chain->n_frames; i++)
        if (keep_tree(&chain->frames[i], tree, &err) != 0)
            return tool_error("hpcquery", "%s: %s", chain->inputs[i], err.text);
    return 0;
}

static int open_inputs(const struct settings *settings, struct chain *chain)
{
    int status = 0;
    struct settings how = *settings;
    how.given |= names_fields(chain) ? ASK(FIELDS) : 0;
    how.with_parts = names_parts(chain);
    chain->frames = calloc(chain->n_inputs, sizeof(struct frame *));
    if (!chain->frames)
        return out_of_memory();
    while (status == 0 && chain->n_frames < chain->n_inputs) {
        status = input_open_frame(&how, chain->inputs[chain->n_frames], &chain->frames[chain->n_frames]);
        chain->n_frames += status == 0;
    }
    return status;
}

/* Does a step on all frames: each by itself, or together. */
static int run_operation(struct chain *chain, const struct step *step, struct error *err)
{
    struct frame *result;
    int code = 0;
    if (step->operation->n_frames == 1) {
        for (size_t i = 0; code == 0 && i < chain->n_frames; i++)
            code = replace(&chain->frames[i], step->name, step->texts, step->n_texts, err);
        return code;
    }
    code = frame_run(step->name, chain->frames, chain->n_frames, step->texts, step->n_texts, &result, err);
    if (code != 0)
        return code;
    while (chain->n_frames)
        frame_close(chain->frames[--chain->n_frames]);
    chain->frames[chain->n_frames++] = result;
    return 0;
}

/* Whether a form is for people: --csv and --json take its place. */
static bool is_text(const struct frame_form *form)
{
    return strcmp(form->name, "tree") == 0 || strcmp(form->name, "table") == 0;
}

/* The form of the result: the last step, or what --csv and --json say; else a tree, but a table of imbalances, which do
 * not add up and name profiles. */
static const struct frame_form *choose_form(const struct settings *settings, const struct chain *chain)
{
    const struct step *last = &chain->steps[chain->n_steps - 1];
    const char *usual = "tree";
    for (size_t i = 0; i < chain->n_steps; i++)
        if (strcmp(chain->steps[i].name, "imbalance") == 0)
            usual = "table";
    bool is_given = strcmp(settings->form, "text") != 0;
    return last->form && !is_given ? last->form : frame_form_find(is_given ? settings->form : usual, NULL);
}

/* Prints in a form, with the columns of -M and those that were derived. */
static int write_named(const struct settings *settings, const struct frame_form *form, struct frame_job *job,
                       struct buf *out, struct error *err)
{
    size_t n = settings->n_metrics + settings->n_derived, n_derived = 0;
    const char **names = calloc(n + 1, sizeof *names);
    bool ok = names;
    for (size_t i = 0; ok && i < settings->n_metrics; i++)
        names[i] = settings->metrics[i];
    for (; ok && n_derived < settings->n_derived; n_derived++)
        ok = (names[settings->n_metrics + n_derived] = derived_name(settings->derived[n_derived]));
    job->named = names;
    job->n_named = n;
    job->is_named = settings->n_metrics > 0;
    int code = ok ? form->write(job, out, err) : error_memory(err);
    while (names && n_derived > 0)
        free((void *)(uintptr_t)names[settings->n_metrics + --n_derived]);
    free(names);
    return code;
}

/* Writes the result in a form. */
static int print(const struct settings *settings, const struct chain *chain, const struct frame_form *form,
                 struct error *err)
{
    struct terminal terminal = terminal_get(settings);
    struct frame_job job = {.frame = chain->frames[0],
                            .top = settings->top > 0 ? (size_t)settings->top : 0,
                            .min_percent = settings->min_percent >= 0 ? settings->min_percent : form->min_percent,
                            .title =
                                strcmp(chain->inputs[0], "-") == 0 ? "standard input" : path_last(chain->inputs[0]),
                            .path = chain->inputs[0],
                            .color = terminal.color,
                            .unicode = terminal.unicode,
                            .columns = terminal.columns};
    struct buf out = {0};
    int status = 0;
    job.column = settings->values[ASK_METRIC] ? frame_find_column(job.frame, settings->values[ASK_METRIC], err)
                                              : frame_default_column(job.frame);
    if (job.column == SIZE_MAX && !settings->values[ASK_METRIC])
        (void)error_set(err, ERR_NOT_FOUND, "there is no column to show");
    int code = job.column == SIZE_MAX ? ERR_NOT_FOUND : write_named(settings, form, &job, &out, err);
    if (code == 0 && out.failed)
        code = error_memory(err);
    if (code == 0)
        status = put_output(settings, &out);
    buf_fini(&out);
    return code ? code : status;
}

static int work(const struct settings *settings, struct chain *chain)
{
    struct error err = {0};
    const struct frame_form *form = choose_form(settings, chain);
    int status = open_inputs(settings, chain);
    status = status ? status : keep_trees(settings, chain);
    for (size_t i = 0; status == 0 && i < chain->n_steps; i++)
        if (chain->steps[i].operation && run_operation(chain, &chain->steps[i], &err) != 0)
            status = step_failed(chain, i, &err);
    if (status != 0)
        return status;
    const struct step *last = &chain->steps[chain->n_steps - 1];
    if (is_save(last->name))
        return frames_save(chain->frames[0], last->texts[0], path_last(chain->inputs[0]), &err) == 0
                   ? 0
                   : step_failed(chain, chain->n_steps - 1, &err);
    int code = print(settings, chain, form, &err);
    return code < 0 ? tool_error("hpcquery", "%s: %s", form->name, err.text) : code;
}

int chain_export(const struct settings *settings, const char *form, char *input)
{
    struct error err;
    char *words[] = {(char *)(uintptr_t)form, input};
    if (is_save(form)) {
        struct settings without_output = *settings;
        char *saving[] = {words[0], (char *)(uintptr_t)settings->values[ASK_OUTPUT], input};
        without_output.values[ASK_OUTPUT] = NULL;
        if (!settings->values[ASK_OUTPUT])
            return tool_usage("hpcquery", "export save: give the new directory with -o DIR");
        return chain_run(&without_output, &chain_kind, saving, 3);
    }
    if (!frame_form_find(form, &err))
        return tool_usage("hpcquery", "export: %s", err.text);
    return chain_run(settings, &chain_kind, words, 2);
}

static const struct ask_note notes[] = {
    {ASK_METRIC, "A table shows every metric that is named, and what is derived; its default is all."},
    {ASK_MIN, "Default in text: 1 for trees."},
    {ASK_FIELDS, "Put the fields of each variable between it and what accesses it, as is done where an operand names "
                 "field or field_type."},
    {0, NULL},
};

const struct report_kind chain_kind = {
    .name = "operations and forms",
    .operands = "STEP [: STEP]... [options] INPUT...",
    .summary = "filter, join, compare and convert profiles, step by step",
    .manual =
        "Steps are operations with their operands, one after the other, each of them on the result of the one "
        "before; between steps stands a : that is a word of its own. The last step may be a form; without one the "
        "result is printed as a tree, or as --csv or --json say. An operation on one input is done on each, until "
        "one on several (add, union, ...) makes one of them. A : may stand before the inputs as well. Conditions, "
        "expressions and queries are described in doc/guide.md.\n\n"
        "An input is one of our databases, one of HPCToolkit (version 4 or experiment.xml), or a file of callgrind, "
        "Caliper (json-split and .cali), Hatchet (literals and to_json), gprof2dot (DOT), pprof, speedscope or folded "
        "stacks. For operations and forms a file may come "
        "through a pipe: - is the standard input.",
    .example = "filter 'time > 5' : flat : table hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(DERIVE) | ASK(PROFILES) | ASK(TREE) | ASK(FIELDS) | ASK(CSV) | ASK(JSON),
    .notes = notes,
};

int chain_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n_words)
{
    (void)kind;
    struct chain chain = {.steps = calloc(n_words + 1, sizeof(struct step))};
    int status = chain.steps ? parse(&chain, words, n_words) : out_of_memory();
    const struct step *last = status == 0 ? &chain.steps[chain.n_steps - 1] : NULL;
    if (status == 0 && strcmp(settings->form, "text") != 0 && !last->operation && !(last->form && is_text(last->form)))
        status = tool_usage("hpcquery", "--%s and %s do not go together", settings->form, last->name);
    if (status == 0 && settings->values[ASK_OUTPUT] && is_save(last->name))
        status = tool_usage("hpcquery", "--output and save do not go together");
    if (status == 0)
        status = work(settings, &chain);
    while (chain.n_frames)
        frame_close(chain.frames[--chain.n_frames]);
    free(chain.frames);
    free(chain.steps);
    return status;
}

/* --- what there is --- */

bool chain_describe_operation(size_t i, const char **name, char *text, size_t n_text)
{
    size_t n;
    const struct frame_operation *operations = frame_operations(&n);
    if (i >= n)
        return false;
    const struct frame_operation *operation = &operations[i];
    const char *inputs = operation->n_frames == 2   ? " (two inputs)"
                         : operation->n_frames == 0 ? " (any number of inputs)"
                                                    : "";
    *name = operation->name;
    (void)snprintf(text, n_text, "%s%s%s%s", operation->operands, *operation->operands ? ": " : "", operation->summary,
                   inputs);
    return true;
}

bool chain_describe_form(size_t i, const char **name, char *text, size_t n_text)
{
    size_t n;
    const struct frame_form *const *forms = frame_forms(&n);
    if (i > n)
        return false;
    *name = i < n ? forms[i]->name : "save";
    (void)snprintf(text, n_text, "%s",
                   i < n ? forms[i]->summary
                         : "DIR: a new directory, which is an input again (after export: save -o DIR)");
    return true;
}

void chain_list_steps(void)
{
    const char *name;
    char text[512];
    for (size_t i = 0; chain_describe_operation(i, &name, text, sizeof text); i++)
        (void)puts(name);
    for (size_t i = 0; chain_describe_form(i, &name, text, sizeof text); i++)
        (void)puts(name);
}
