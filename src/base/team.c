/* SPDX-License-Identifier: BSD-3-Clause */
/* What all teams have: see team.h. */
#include "base/team.h"

/* By how much the deal k is turned. */
static size_t turn_of(const struct team *team, size_t k)
{
    return (size_t)((uint64_t)k * 0x9e3779b97f4a7c15u >> 32) % team->n_ranks;
}

size_t team_owner(const struct team *team, size_t i)
{
    return (i % team->n_ranks + turn_of(team, i / team->n_ranks)) % team->n_ranks;
}

size_t team_item(const struct team *team, size_t k)
{
    return k * team->n_ranks + (team->rank + team->n_ranks - turn_of(team, k)) % team->n_ranks;
}

size_t team_count(const struct team *team, size_t n)
{
    size_t n_deals = n / team->n_ranks;
    return n_deals + (team_item(team, n_deals) < n);
}

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
