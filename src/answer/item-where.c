/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of things that say where and how a sample was taken: threads, processes, ranks, CPUs, memory nodes, and the
 * events that are counted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer/item.h"

/* --- threads, processes and ranks --- */

/* Adds the threads by what they are called in one way of splitting. */
static int make_threads_by(struct items *items, struct item_list *list, enum split_by by)
{
    const struct model *model = items->model;
    const struct split_naming naming = split_naming_of(model);
    for (uint32_t i = 0; i < model->n_threads; i++) {
        struct buf name = {0};
        split_put_column(model, &naming, by, i, &name);
        item_list_add(list, &(struct item){.value = NAN, .ref = i}, &name);
    }
    return 0;
}

/* The item of that way of splitting that a thread belongs to. */
static size_t find_by(struct items *items, const struct item *item, enum split_by by, struct error *err)
{
    const struct split_naming naming = split_naming_of(items->model);
    struct buf name = {0};
    split_put_column(items->model, &naming, by, (uint32_t)item->ref, &name);
    return items_position(items, split_by_name(by), &name, err);
}

static int make_threads(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    return make_threads_by(items, list, SPLIT_THREAD);
}

static int make_processes(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    return make_threads_by(items, list, SPLIT_PROCESS);
}

static int make_ranks(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    return model_has_ranks(items->model) ? make_threads_by(items, list, SPLIT_RANK) : 0;
}

static size_t thread_of(struct items *items, const struct item *item, struct error *err)
{
    return find_by(items, item, SPLIT_THREAD, err);
}

static size_t process_of(struct items *items, const struct item *item, struct error *err)
{
    return find_by(items, item, SPLIT_PROCESS, err);
}

static size_t rank_of(struct items *items, const struct item *item, struct error *err)
{
    return find_by(items, item, SPLIT_RANK, err);
}

#define TO_THREAD                                                                                                      \
    {                                                                                                                  \
        "thread", thread_of, "it has no threads"                                                                       \
    }
#define TO_PROCESS                                                                                                     \
    {                                                                                                                  \
        "process", process_of, "its process is not known"                                                              \
    }
#define TO_RANK                                                                                                        \
    {                                                                                                                  \
        "rank", rank_of, "the program is not one of several ranks"                                                     \
    }
#define LINKS_END                                                                                                      \
    {                                                                                                                  \
        NULL, NULL, NULL                                                                                               \
    }

static const struct item_link thread_links[] = {TO_PROCESS, TO_RANK, LINKS_END};
static const struct item_link process_links[] = {TO_RANK, TO_THREAD, LINKS_END};
static const struct item_link rank_links[] = {TO_PROCESS, TO_THREAD, LINKS_END};

const struct item_kind item_thread = {
    "thread", "a thread, called as --by thread does", make_threads, thread_links, NULL, NULL};
const struct item_kind item_process = {
    "process", "a process, called as --by process does", make_processes, process_links, NULL, NULL};
const struct item_kind item_rank = {"rank", "a rank of an MPI program", make_ranks, rank_links, NULL, NULL};

/* --- CPUs and memory nodes --- */

static void put_place(const struct model *model, size_t machine, uint32_t number, struct buf *out)
{
    buf_printf(out, "%u", number);
    if (model->n_machines > 1)
        buf_printf(out, "@%s", model->machines[machine].host_id);
}

#define PLACE_REF(machine, number) ((uint64_t)(machine) << 32 | (number))

static int make_cpus(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    const struct model *model = items->model;
    for (size_t i = 0; i < model->n_machines; i++)
        for (size_t j = 0; j < model->machines[i].n_cpus; j++) {
            struct buf name = {0};
            put_place(model, i, model->machines[i].cpus[j].cpu, &name);
            item_list_add(list, &(struct item){.value = NAN, .ref = PLACE_REF(i, j)}, &name);
        }
    return 0;
}

static int make_numa(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    const struct model *model = items->model;
    for (size_t i = 0; i < model->n_machines; i++)
        for (size_t j = 0; j < model->machines[i].n_cpus; j++) {
            struct buf name = {0};
            uint32_t node = model->machines[i].cpus[j].node;
            if (node == PLACE_UNKNOWN)
                continue;
            put_place(model, i, node, &name);
            item_list_add(list, &(struct item){.value = NAN, .ref = PLACE_REF(i, node)}, &name);
        }
    return 0;
}

static size_t numa_of_cpu(struct items *items, const struct item *item, struct error *err)
{
    size_t machine = item->ref >> 32;
    uint32_t node = items->model->machines[machine].cpus[(uint32_t)item->ref].node;
    struct buf name = {0};
    if (node == PLACE_UNKNOWN)
        return ITEM_NONE;
    put_place(items->model, machine, node, &name);
    return items_position(items, "numa-node", &name, err);
}

static const struct item_link cpu_links[] = {{"numa-node", numa_of_cpu, "its memory node is not known"}, LINKS_END};

const struct item_kind item_cpu = {"cpu", "a CPU of a machine", make_cpus, cpu_links, NULL, NULL};
const struct item_kind item_numa = {"numa-node", "a memory node of a machine", make_numa, NULL, NULL, NULL};

/* --- events --- */

static int make_events(struct items *items, struct item_list *list, struct error *err)
{
    (void)err;
    const struct model *model = items->model;
    for (size_t i = 0; i < model->n_metrics; i++) {
        struct buf name = {0};
        if (model->metrics[i].hidden)
            continue;
        buf_printf(&name, "%s", model->metrics[i].name);
        item_list_add(list, &(struct item){.value = NAN, .ref = i}, &name);
    }
    return 0;
}

const struct item_kind item_event = {
    "event", "an event or another metric, which reports are about", make_events, NULL, NULL, NULL};
