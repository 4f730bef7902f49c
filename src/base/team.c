/* SPDX-License-Identifier: BSD-3-Clause */
/* What all teams have: see team.h. */
#include "base/team.h"

int team_agree(const struct team *team, int code, struct error *err)
{
    if (!team_is_several(team))
        return code;
    int64_t worst = code;
    team->combine(team, &worst, 1, TEAM_LEAST);
    if (code != 0 || worst == 0)
        return code;
    return error_set(err, ERR_USAGE, TEAM_ENDED);
}
