/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of forms of frames. */
#include "export/frames/forms.h"

#include <string.h>

extern const struct frame_form form_folded;

static const struct frame_form *const forms[] = {
    &form_folded,
};

const struct frame_form *const *frame_forms(size_t *n)
{
    *n = sizeof forms / sizeof *forms;
    return forms;
}

const struct frame_form *frame_form_find(const char *name, struct error *err)
{
    struct buf names = {0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i]->name, name) == 0) {
            buf_fini(&names);
            return forms[i];
        }
        buf_printf(&names, "%s%s", i ? ", " : "", forms[i]->name);
    }
    (void)error_set(err, ERR_NOT_FOUND, "there is no form '%s'; there are: %s", name, names.data ? names.data : "?");
    buf_fini(&names);
    return NULL;
}
