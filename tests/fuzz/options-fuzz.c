/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target (libFuzzer) for what people write: hpcrun's command line, events with their thresholds and terms, the
 * table of memory events, and the descriptions of machines. What is refused is refused with a message; what is planned
 * is sound. The input is text: after a line "=FILE" comes the content of a file of the machine; before the first, and
 * after "=arguments", each line is an argument. Seeds: the described machines of the tests. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "sampling/event.h"
#include "sampling/machine.h"

#include "../../tools/hpcrun/hpcrun.h"
#include "scratch-dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

enum { ARGUMENTS_MAX = 40, FILES_MAX = 16 };

struct input {
    char *arguments[ARGUMENTS_MAX + 1];
    int n_arguments;
};

/* Makes the folders of a file's name; only names that stay below the directory are taken. */
static bool make_folders(const char *name)
{
    char path[SCRATCH_PATH_MAX];
    if (!name[0] || name[0] == '/' || strstr(name, "..") || strlen(name) > 200)
        return false;
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(path, sizeof path, "%s", name);
        path[slash - name] = '\0';
        (void)mkdir(path, 0700);
    }
    return true;
}

/* The lines up to the next one that begins with "="; each but arguments' are one file's. */
static char *take_file(const char *name, char *text, unsigned n_files)
{
    char *end = strstr(text, "\n=");
    size_t n_bytes = end ? (size_t)(end + 1 - text) : strlen(text);
    if (n_files < FILES_MAX && make_folders(name)) {
        FILE *file = fopen(name, "we");
        if (file) {
            (void)fwrite(text, 1, n_bytes, file);
            (void)fclose(file);
        }
    }
    return text + n_bytes;
}

static void take_input(char *text, struct input *input)
{
    unsigned n_files = 0;
    bool is_argument = true;
    input->arguments[input->n_arguments++] = "hpcrun";
    while (*text) {
        char *line = text, *newline = strchr(text, '\n');
        text = newline ? newline + 1 : text + strlen(text);
        if (newline)
            *newline = '\0';
        if (line[0] == '=') {
            is_argument = !strcmp(line, "=arguments");
            if (!is_argument)
                text = take_file(line + 1, text, n_files++);
        } else if (is_argument && input->n_arguments < ARGUMENTS_MAX) {
            input->arguments[input->n_arguments++] = line;
        }
    }
    input->arguments[input->n_arguments] = NULL;
}

static void check_event(const struct source_plan *plan, uint32_t i)
{
    const struct source_event *event = &plan->events[i];
    check(memchr(event->metric, 0, sizeof event->metric) && event->metric[0], "a planned event has no metric");
    check(memchr(event->name, 0, sizeof event->name) && event->name[0], "a planned event has no name");
    check(memchr(event->description, 0, sizeof event->description) != NULL, "a description does not end");
    check(event->leader <= i, "an event is led by one that comes after it");
    check(event->scale >= 0, "an event counts backwards");
}

static void see_section(const char *title, void *ctx)
{
    *(size_t *)ctx += strlen(title);
}

static void see_event(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                      void *ctx)
{
    *(size_t *)ctx += strlen(name) + strlen(summary);
    if (mark != EVENT_OPENS)
        *(size_t *)ctx += strlen(why->reason) + strlen(why->fix);
}

static void check_options(const struct hpcrun_options *options)
{
    static struct source_plan plan;
    struct error err = {0};
    size_t sum = 0;
    check(options->part > 0 && options->part <= 1, "a fraction is out of range");
    check(options->n_events <= HPCRUN_EVENTS_MAX && options->command, "the options are unsound");
    if (machine_use(".", &err) != 0)
        return;
    if (source_plan_events(options->events, options->n_events, options->count, &plan, &err) == 0) {
        check(plan.n_events > 0 && plan.n_events <= SOURCE_EVENTS_MAX, "a plan has no events");
        for (uint32_t i = 0; i < plan.n_events; i++)
            check_event(&plan, i);
    } else {
        check(err.text[0] != '\0', "a refusal has no message");
    }
    const struct event_lister lister = {see_section, see_event, see_section, &sum};
    if (options->lists)
        sum += event_list((const char *const *)options->command, &lister);
    check(sum != SIZE_MAX, "the compiler may not drop the reads");
    (void)machine_use(NULL, NULL);
}

/* Help goes to nowhere, and tables are sought only where the input puts them. */
static void prepare(void)
{
    static bool is_prepared;
    check(chdir(scratch_directory()) == 0, "the directory has gone");
    if (is_prepared)
        return;
    is_prepared = true;
    check(freopen("/dev/null", "w", stdout) != NULL, "standard output cannot be put away");
    (void)setenv("HPCRUN_PMU_TABLE", "table", 1);
    (void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {0};
    struct hpcrun_options options;
    struct error err = {0};
    char *text = malloc(len_bytes + 1);
    check(text != NULL, "out of memory");
    memcpy(text, data, len_bytes);
    text[len_bytes] = '\0';
    prepare();
    take_input(text, &input);
    int code = hpcrun_options_parse(input.n_arguments, input.arguments, &options, &err);
    check(code >= 0 || err.text[0] != '\0', "a refusal has no message");
    if (code == 0)
        check_options(&options);
    free(text);
    return 0;
}
