/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session answers about files of other tools, which are frames without a model. Ordinary code. */
#ifndef LOCUS_SESSION_FOREIGN_H
#define LOCUS_SESSION_FOREIGN_H

#include "answer/answer.h"
#include "frame/frame.h"
#include "session/session.h"

/* Fills *answer with what a request asks of the frame that the file at path gave: functions, lines, nodes, or what it
 * is (session). answer_fini frees it, unless this fails; path must live as long.  err: ERR_UNSUPPORTED (another
 * report), ERR_NOT_FOUND (no such metric), as frame_values */
int foreign_answer(struct frame *frame, const char *path, const struct request *request, struct answer *answer,
                   struct error *err);

#endif
