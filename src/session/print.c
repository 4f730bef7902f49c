/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in the forms of hpcquery, for programs that have a frame and want its text. Ordinary code. */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "export/frames/forms.h"

#define COLUMNS 120

const char *print_form(size_t i)
{
    size_t n;
    const struct frame_form *const *forms = frame_forms(&n);
    return i < n ? forms[i]->name : NULL;
}

const char *print_form_summary(size_t i)
{
    size_t n;
    const struct frame_form *const *forms = frame_forms(&n);
    return i < n ? forms[i]->summary : NULL;
}

/* What a form gets; the column is found by its name. */
static int take_job(struct frame *frame, const struct frame_form *form, const struct print_job *given,
                    struct frame_job *job, struct error *err)
{
    *job = (struct frame_job){
        .frame = frame,
        .column = given->column ? frame_find_column(frame, given->column, err) : frame_default_column(frame),
        .is_named = given->column,
        .named = given->named,
        .n_named = given->n_named,
        .view = {.profiles = given->profiles, .n_profiles = given->n_profiles},
        .top = (size_t)given->top,
        .min_percent = given->has_least ? given->least : form->min_percent,
        .title = given->title ? given->title : "",
        .path = given->path,
        .color = given->color,
        .unicode = given->unicode,
        .columns = given->columns ? given->columns : COLUMNS,
        .depth = given->depth,
    };
    if (job->column != SIZE_MAX)
        return 0;
    return given->column ? ERR_NOT_FOUND : error_set(err, ERR_NOT_FOUND, "there is no column to show");
}

int print_frame(struct frame *frame, const char *form, const struct print_job *job, char **text, size_t *len_bytes,
                struct error *err)
{
    const struct frame_form *found = frame_form_find(form, err);
    struct print_job given = {0};
    struct frame_job made;
    struct buf out = {0};
    if (!found)
        return ERR_NOT_FOUND;
    memcpy(&given, job, job->size < sizeof given ? job->size : sizeof given);
    int code = take_job(frame, found, &given, &made, err);
    if (code == 0)
        code = found->write(&made, &out, err);
    if (code == 0)
        buf_append(&out, "", 1);
    if (code == 0 && out.failed)
        code = error_memory(err);
    if (code != 0) {
        buf_fini(&out);
        return code;
    }
    *text = out.data;
    *len_bytes = out.len_bytes - 1;
    return 0;
}
