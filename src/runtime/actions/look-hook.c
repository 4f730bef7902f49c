/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the pages of an action are to be, and what became of its memory, as the kernel tells it. See actions.h. Runs
 * inside the program's free, and at its end. */
#include "runtime/actions/actions.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#define TEXT_BYTES 16384
#define PAGES_ASKED 512

static struct {
    atomic_flag is_busy; /* another thread looks: this block is not looked at */
    char text[TEXT_BYTES];
    void *pages[PAGES_ASKED];
    int nodes[PAGES_ASKED];
} looking = {.is_busy = ATOMIC_FLAG_INIT};

/* Where the lines of smaps are: the mapping that they are about, and how much of it is asked for. */
struct smaps {
    uintptr_t start, end; /* asked for */
    uintptr_t low, high;  /* of the mapping */
    uint64_t resident, huge;
};

/* A number in the digits of a base; *end: behind it. */
static uint64_t number_at(const char *text, unsigned base, const char **end)
{
    uint64_t value = 0;
    for (;; text++) {
        unsigned digit = *text >= '0' && *text <= '9'   ? (unsigned)(*text - '0')
                         : *text >= 'a' && *text <= 'f' ? (unsigned)(*text - 'a') + 10
                                                        : base;
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    *end = text;
    return value;
}

/* Bytes of the mapping that lie in what is asked for, at most n. */
static uint64_t within(const struct smaps *smaps, uint64_t n)
{
    uintptr_t low = smaps->low > smaps->start ? smaps->low : smaps->start;
    uintptr_t high = smaps->high < smaps->end ? smaps->high : smaps->end;
    uint64_t bytes = high > low ? high - low : 0;
    return n < bytes ? n : bytes;
}

static void take_line(struct smaps *smaps, const char *line)
{
    const char *end;
    if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
        smaps->low = number_at(line, 16, &end);
        smaps->high = *end == '-' ? number_at(end + 1, 16, &end) : 0;
        return;
    }
    bool is_resident = strncmp(line, "Rss:", 4) == 0;
    if (!is_resident && strncmp(line, "AnonHugePages:", 14) != 0)
        return;
    line += is_resident ? 4 : 14;
    while (*line == ' ')
        line++;
    uint64_t n = within(smaps, number_at(line, 10, &end) * 1024);
    if (is_resident)
        smaps->resident += n;
    else
        smaps->huge += n;
}

/* Reads the lines, in the order of their addresses, until they are beyond what is asked for. */
static void read_smaps(int fd, struct smaps *smaps)
{
    size_t n_kept = 0;
    while (smaps->low < smaps->end) {
        long n = action_call(SYS_read, fd, (long)(looking.text + n_kept), (long)(TEXT_BYTES - 1 - n_kept), 0, 0, 0);
        if (n <= 0)
            return;
        looking.text[n_kept + (size_t)n] = '\0';
        char *line = looking.text;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            take_line(smaps, line);
        }
        n_kept = strlen(line);
        if (n_kept >= TEXT_BYTES - 1)
            n_kept = 0;
        memmove(looking.text, line, n_kept);
    }
}

void look_at_huge_pages_hook(uintptr_t start, size_t n_bytes)
{
    struct trial_effect *effect = action_effect_hook();
    struct smaps smaps = {.start = start, .end = start + n_bytes};
    if (atomic_flag_test_and_set(&looking.is_busy))
        return;
    long fd = action_call(SYS_openat, AT_FDCWD, (long)"/proc/self/smaps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd >= 0) {
        read_smaps((int)fd, &smaps);
        (void)action_call(SYS_close, fd, 0, 0, 0, 0, 0);
        action_count(&effect->n_looks, 1);
        action_count(&effect->seen_bytes, smaps.resident);
        action_count(&effect->huge_bytes, smaps.huge);
    }
    atomic_flag_clear(&looking.is_busy);
}

void look_at_nodes_hook(uintptr_t start, size_t n_bytes, uint32_t (*wanted)(size_t offset, size_t n_bytes))
{
    struct trial_effect *effect = action_effect_hook();
    uintptr_t first = (start + ACTION_PAGE - 1) & ~(uintptr_t)(ACTION_PAGE - 1);
    size_t n_all = start + n_bytes > first ? (start + n_bytes - first) / ACTION_PAGE : 0;
    size_t n = n_all < PAGES_ASKED ? n_all : PAGES_ASKED;
    if (!n || atomic_flag_test_and_set(&looking.is_busy))
        return;
    for (size_t i = 0; i < n; i++)
        looking.pages[i] = (void *)(first + n_all * i / n * ACTION_PAGE);
    if (action_call(SYS_move_pages, 0, (long)n, (long)looking.pages, 0, (long)looking.nodes, 0) >= 0) {
        action_count(&effect->n_looks, 1);
        for (size_t i = 0; i < n; i++) {
            unsigned node = (unsigned)looking.nodes[i];
            uint32_t want = wanted ? wanted((uintptr_t)looking.pages[i] - start, n_bytes) : UINT32_MAX;
            if (node >= TRIAL_NODES_MAX) /* no page there yet */
                continue;
            action_count(&effect->n_pages, 1);
            action_count(&effect->n_on[node], 1);
            action_count(&effect->n_wanted, want == UINT32_MAX || want == node);
        }
    }
    atomic_flag_clear(&looking.is_busy);
}

uint64_t nodes_allowed_hook(void)
{
    static _Atomic uint64_t known;
    uint64_t nodes[16] = {0}; /* the kernel may know of many more */
    if (atomic_load_explicit(&known, memory_order_relaxed))
        return known;
    if (!action_allowed_hook(
            action_call(SYS_get_mempolicy, 0, (long)nodes, 8 * sizeof nodes, 0, 4 /* MPOL_F_MEMS_ALLOWED */, 0)))
        nodes[0] = 0;
    atomic_store_explicit(&known, nodes[0] ? nodes[0] : 1, memory_order_relaxed);
    return known;
}

void place_pages_hook(uintptr_t start, size_t n_bytes, int policy, uint64_t nodes)
{
    uintptr_t first = (start + ACTION_PAGE - 1) & ~(uintptr_t)(ACTION_PAGE - 1);
    uintptr_t end = (start + n_bytes + ACTION_PAGE - 1) & ~(uintptr_t)(ACTION_PAGE - 1);
    if (end > first)
        (void)action_allowed_hook(
            action_call(SYS_mbind, (long)first, (long)(end - first), policy, (long)&nodes, 8 * sizeof nodes + 1, 0));
}
