/* SPDX-License-Identifier: Apache-2.0 */
/* outcome: what became of a run, as an exit status and in lines for a person. */
#ifndef EXECPY_CLI_OUTCOME_H
#define EXECPY_CLI_OUTCOME_H

#include "engine/execpy.h"

/* The exit status of `execpy run` (docs/execpy.1); `cancelled_by` is the signal that
 * this command got, or 0. */
int outcome_status(const struct execpy_result *result, int cancelled_by);

/* Says on stderr that a session went on from its checkpoint, and what that lost;
 * nothing for any other run. */
void outcome_tell_restored(struct execpy_result *result);

/* Lines that are a stranger's as one for a terminal, with "; " between, on stderr
 * behind `before`. */
void outcome_tell_lines(const char *before, const char *lines);

/* What befell a session: one line, and the exit status. */
int outcome_session_error(const struct execpy_error *error);

/* True when a call failed with -ENOENT or -EIDRM because there is no such session, and
 * not for another reason, such as a policy file that is not there. */
bool outcome_session_gone(struct execpy_engine *engine, const char *id, int failure);
/* Why there is no engine for sessions: one line, and the exit status. */
int outcome_no_daemon(const struct execpy_error *error);

/* Of every command on a session that could not be carried out. */
enum { EXIT_NOT_DONE = 1 };

#endif
