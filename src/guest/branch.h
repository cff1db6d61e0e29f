/* SPDX-License-Identifier: Apache-2.0 */
/* branch: what the judges do when a session is branched. Stage: judge. */
#ifndef EXECPY_GUEST_BRANCH_H
#define EXECPY_GUEST_BRANCH_H

#include "guest/guest.h"

/* Whether a branch can be made of a checkpoint, which then begins to compare its memory
 * with its template's. All three: 0, or negative with the reason. */
int branch_ask(const struct process *checkpoint, struct error *err);
/* Sends a branch all of it: this judge's names and files, the checkpoint's memory.
 * `wanted` is the word of the process that takes over. */
int branch_give(const struct process *checkpoint, uint64_t run, struct span wanted, int files,
		int memory, struct error *err);
/* In the branch: `blank` becomes a checkpoint. */
int branch_take(const struct process *blank, int files, int memory, uint64_t *ret_run,
		struct error *err);

#endif
