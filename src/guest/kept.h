/* SPDX-License-Identifier: Apache-2.0 */
/* kept: the checkpoints that a session can return to, each with the workspace's files
 * as they were. The memory of the files is the judge's. Stage: judge. */
#ifndef EXECPY_GUEST_KEPT_H
#define EXECPY_GUEST_KEPT_H

#include "guest/guest.h"

struct checkpoint {
	struct process process;
	struct snapshot *files; /* the workspace then; NULL: it was too large to keep */
	bool latest, previous;
	char name[SESSION_NAME_BYTES_MAX + 1]; /* "": none */
};

/* The files of all named ones share in the session's memory. */
int kept_open(uint64_t memory_bytes, struct error *err);
size_t kept_count(void);
/* There is no room for one more. */
bool kept_is_full(void);
/* NULL: there is none. */
struct checkpoint *kept_find(enum checkpoint_choice choice, const char *name);
bool kept_has(pid_t pid);
/* Looks at the workspace, beside a runner that may have mapped files of it: for the
 * checkpoint that is added next. */
void kept_look_at_files(pid_t runner);
/* It is the latest now; the one that was is the previous. Takes the process. */
struct checkpoint *kept_add(struct process *process);
/* The workspace becomes what it was then. Nothing may run meanwhile. */
int kept_restore_files(const struct checkpoint *kept, struct error *err);
/* This is what a crash returns to from now on; `asked`: and the way back was asked for. */
void kept_return_to(const struct checkpoint *kept, bool asked);
/* Gives it a name, and the files as they are now: NULL, or why not. */
const char *kept_name(struct checkpoint *latest, const char *name, pid_t runner);
const char *kept_drop_name(const char *name);
void kept_put_names(struct bytes *frame);
/* Kills those that are neither latest, nor previous, nor named. */
void kept_forget_unused(void);
/* It ended, and was waited for. */
void kept_reaped(pid_t pid);

#endif
