/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes are called: see nodes.h. */
#include "export/nodes.h"

#include "frame/readers.h"

enum frame_kind node_kind(const struct scope *scope)
{
    if (!model_is_procedure(scope))
        return scope->kind == SCOPE_LOOP ? FRAME_LOOP : FRAME_LINE;
    if (scope->role == ROLE_VARIABLE)
        return FRAME_VARIABLE;
    if (scope->role != ROLE_NONE)
        return FRAME_GROUP;
    return scope->kind == SCOPE_INLINED ? FRAME_INLINED : FRAME_FUNCTION;
}

void node_put_name(const struct model *model, uint32_t scope, struct buf *name)
{
    const struct scope *of = &model->scopes[scope];
    const char *file = model_text(model, model_file_of(model, scope));
    struct buf place = {0};
    if (model_is_procedure(of)) {
        buf_printf(name, "%s", model_text(model, of->name));
        return;
    }
    hpctoolkit_place_name(node_kind(of), *file ? file : "<unknown file>", of->line, &place);
    buf_append(name, place.data ? place.data : "", place.len_bytes);
    name->failed |= place.failed;
    buf_fini(&place);
}
