/* SPDX-License-Identifier: Apache-2.0 */
/* processes: what the judge of a session sees of the others in its cell, and does to
 * them. By /proc, which is the cell's own. Stage: judge. */
#ifndef EXECPY_GUEST_PROCESSES_H
#define EXECPY_GUEST_PROCESSES_H

#include "guest/guest.h"

void process_close(struct process *process);
/* Kills one of ours, which is known to be dying until it was reaped. */
void process_kill(struct process *process);
void process_reaped(pid_t pid);
bool process_is_dying(pid_t pid);
bool processes_are_dying(void);
/* Kills all that is not to be kept, until a look finds nobody new: how many. */
unsigned processes_kill_others(bool (*is_kept)(pid_t pid, pid_t parent));
/* Sends a message with one end of a fresh pair of sockets; the process that will have
 * it is not known yet, its other end is in *ret_process. 0 or a negative errno. */
int process_send_pair(int receiver, enum message type, uint64_t more, struct process *ret_process);
/* When memory is out the kernel takes the code's processes first. A courtesy: the
 * session ends when it is taken in spite of it. */
void process_protect(pid_t pid);
/* What was forked of a checkpoint is the code's again. */
void process_expose(pid_t pid);
/* What a fork of it copies: a gigabyte on pages of 4 KiB has 2 MiB of it. */
unsigned long process_tables_kib(pid_t pid);
/* It can write to files of the workspace without a call that the kernel would see. */
bool process_maps_files(pid_t pid);

#endif
