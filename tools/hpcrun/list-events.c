/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing the list of events; see list-events.h. */
#include "list-events.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sampling/event.h"

#define NAME_COLUMNS 34
#define LEGEND "+ opens on this machine, - does not, * not as it stands: see the number in brackets\n"

struct printer {
    FILE *out;
    char title[320]; /* of the section that has not printed anything yet; empty: it has */
    bool has_legend;
    struct strtab reasons;
};

static void print_section(const char *title, void *ctx)
{
    struct printer *printer = ctx;
    (void)snprintf(printer->title, sizeof printer->title, "%s", title);
}

/* A section without events has no title either. */
static void print_title(struct printer *printer)
{
    if (printer->title[0] && !printer->has_legend)
        (void)fprintf(printer->out, LEGEND);
    printer->has_legend = true;
    if (printer->title[0])
        (void)fprintf(printer->out, "\n%s:\n", printer->title);
    printer->title[0] = '\0';
}

static void print_note(const char *text, void *ctx)
{
    struct printer *printer = ctx;
    print_title(printer);
    (void)fprintf(printer->out, "    %s\n", text);
}

static int64_t note_reason(struct printer *printer, const struct source_probe *probe)
{
    char text[sizeof probe->reason + sizeof probe->fix + 16];
    (void)snprintf(text, sizeof text, "%s%s%s", probe->reason, probe->fix[0] ? "; fix: " : "", probe->fix);
    return strtab_intern(&printer->reasons, text);
}

static void print_event(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                        void *ctx)
{
    static const char letters[] = {[EVENT_OPENS] = '+', [EVENT_REFUSED] = '-', [EVENT_INCOMPLETE] = '*'};
    struct printer *printer = ctx;
    print_title(printer);
    (void)fprintf(printer->out, "  %c %-*s%s%s", letters[mark], summary[0] ? NAME_COLUMNS : 0, name,
                  summary[0] ? " " : "", summary);
    if (mark != EVENT_OPENS)
        (void)fprintf(printer->out, " [%lld]", (long long)note_reason(printer, why) + 1);
    (void)fputc('\n', printer->out);
}

static void skip_text(const char *text, void *ctx)
{
    (void)text;
    (void)ctx;
}

static void print_name(enum event_mark mark, const char *name, const char *summary, const struct source_probe *why,
                       void *ctx)
{
    (void)summary;
    (void)why;
    if (mark == EVENT_OPENS)
        (void)fprintf(ctx, "%s\n", name);
}

int list_event_names(FILE *out)
{
    static const char *const everything[] = {NULL};
    const struct event_lister lister = {skip_text, print_name, skip_text, out};
    (void)event_list(everything, &lister);
    return fflush(out) != 0;
}

unsigned list_events(const char *const *patterns, FILE *out)
{
    struct printer printer = {.out = out};
    const struct event_lister lister = {print_section, print_event, print_note, &printer};
    unsigned n = event_list(patterns, &lister);
    for (size_t i = 0; i < printer.reasons.n_strings; i++)
        (void)fprintf(out, "%s[%zu] %s\n", i ? "" : "\n", i + 1, printer.reasons.strings[i]);
    strtab_fini(&printer.reasons);
    return n;
}
