/* SPDX-License-Identifier: Apache-2.0 */
/* standby: a runner that is forked of the latest checkpoint ahead of need.
 *
 * Theory of operation. Whoever tries code that crashes tries it again. So for some
 * runs behind a crash the checkpoint is told to fork a runner in the next pause
 * already, which then waits as any runner does between runs: a crash takes it for
 * what it finds, and does not wait for a fork and for what comes with it. A session
 * that does not crash has none, and pays one fork a run. It is of one checkpoint, and
 * goes when another comes behind it.
 *
 * Code may kill it as it may a checkpoint: then a return takes the longer way. Stage:
 * judge. */
#ifndef EXECPY_GUEST_STANDBY_H
#define EXECPY_GUEST_STANDBY_H

#include "guest/guest.h"

/* Something crashed. */
void standby_expect(void);
/* This is what is returned to from now on: a standby of another one is killed. */
void standby_follow(const struct process *checkpoint);
/* When one is to be made; -1: not at all. In a session that is idle. */
int64_t standby_due_us(void);
/* Asks the checkpoint for it. */
void standby_ask(const struct process *checkpoint);
/* It is on its way since *ret_asked_us: the socket on which it will say that it is
 * there. -1: none is. */
int standby_socket(int64_t *ret_asked_us);
/* Hears that. */
void standby_hear(void);
/* It came to its end, or took too long. */
void standby_forget(void);
bool standby_is(pid_t pid);
/* How many processes that makes; -1: that is not yet known. */
int standby_count(void);
/* True when there is one of this checkpoint: the caller's from now on, with what it
 * cannot bring back. */
bool standby_take(const struct process *checkpoint, struct process *ret_runner,
		  char ret_lost[SESSION_LOST_MAX]);

#endif
