/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody looks at, as one text: the view, the thing in it, what it is split by and what was left out.
 * "view=annotate&active=line:cg.c:52&metric=EADDR%20(usec)". It is the fragment of a page's address, an argument of
 * hpcquery --at, a line of a file. Keys that are options of reports have their names. Ordinary code. */
#ifndef LOCUS_ANSWER_STATE_H
#define LOCUS_ANSWER_STATE_H

#include "answer/answer.h"
#include "answer/item.h"

enum state_kind {
    STATE_ONE,  /* at most once, with a value */
    STATE_MANY, /* as often as there are values */
    STATE_FLAG  /* "1" */
};

/* A key. option: that of reports which has its name, 0: only views know it. */
struct state_key {
    const char *name;
    enum state_kind kind;
    enum ask option;
    const char *means; /* what its value is */
};

struct state_pair {
    const struct state_key *key;
    char *value; /* owned */
};

/* All zero is empty: nothing is said, and the report of variables is meant. */
struct state {
    struct state_pair *pairs; /* [n] in the order of the keys; of one key as they were added */
    size_t n, cap;
};

/* Key i in the order in which a text has them, NULL behind the last one. */
const struct state_key *state_key_at(size_t i);

/* Reads a text, which may begin with '#'. %XX stands for a byte, + for a blank. *state is empty after an error.
 * err: ERR_USAGE (an unknown key, one that is there twice or has no value, a % without two digits), ERR_MEMORY */
int state_of_text(const char *text, struct state *state, struct error *err);
void state_fini(struct state *state);

/* Adds a value of a key, or puts it in the place of the one that there is. A value of "" takes the key away.
 * err: ERR_USAGE (no such key, or no value of it), ERR_MEMORY */
int state_set(struct state *state, const char *key, const char *value, struct error *err);

/* The first value of a key, NULL when it has none. */
const char *state_get(const struct state *state, const char *key);

/* Appends the text: the same for the same state, and what state_of_text reads as that. */
void state_put_text(const struct state *state, struct buf *out);

/* What a state asks of its database. All zero is empty. */
struct state_query {
    const struct report_kind *report;
    char *subject; /* what the report is about, owned; NULL: all of the database */
};

/* Fills *query with the report that is the view (the first one of all where none is), and what of the active thing it
 * shows. items: of the database; it is used where there is an active thing.
 * err: ERR_NOT_FOUND (there is no such view or thing, or the view cannot show it, and why), ERR_USAGE (by is no way of
 * splitting), ERR_UNSUPPORTED (a trail, or a choice of profiles, which would change the numbers), ERR_MEMORY */
int state_resolve(const struct state *state, struct items *items, struct state_query *query, struct error *err);
void state_query_fini(struct state_query *query);

/* Words of a command line, owned. All zero is empty. */
struct state_words {
    char **words; /* [n] */
    size_t n, cap;
};

/* Fills *words with what stands behind "hpcquery" for the same numbers: the report, its options, what it is about; the
 * database is to follow. Options that the report has not are left out.  err: ERR_MEMORY */
int state_put_words(const struct state *state, const struct state_query *query, struct state_words *words,
                    struct error *err);
void state_words_fini(struct state_words *words);

/* Appends the words as a shell reads them. */
void state_put_line(const struct state_words *words, struct buf *out);

/* Appends the same as a request, a JSON object as session_ask_json (session/session.h) takes it. */
void state_put_request(const struct state *state, const struct state_query *query, struct buf *out);

#endif
