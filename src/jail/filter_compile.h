/* SPDX-License-Identifier: Apache-2.0 */
/* filter_compile: turns the table of system calls into seccomp programs.
 * Used by filter_build and by the test, never at run time. */
#ifndef EXECPY_JAIL_FILTER_COMPILE_H
#define EXECPY_JAIL_FILTER_COMPILE_H

#include "jail/syscalls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_INSTRUCTIONS_MAX 2048 /* the kernel takes 4096 */

struct filter {
	struct sock_filter code[FILTER_INSTRUCTIONS_MAX];
	size_t length;
	bool visited[FILTER_INSTRUCTIONS_MAX]; /* by filter_simulate() */
};

/* Compiles what the stage's filter has to hold: for FILTER_TEMPLATE the whole
 * policy, for FILTER_CELL the calls on which the two stages differ, all others
 * allowed. `numbers` as in syscall_verdict(), `architecture` an AUDIT_ARCH_*.
 * Ends the program with a message when it cannot. */
void filter_compile(enum filter_stage stage, const int numbers[], uint32_t architecture,
		    struct filter *ret_filter);

/* Runs a program on a call as the kernel would, and returns its SECCOMP_RET_*
 * value. Ends the program with a message when the kernel would refuse it. */
uint32_t filter_simulate(struct filter *filter, const struct seccomp_data *data);

#define FILTER_SAMPLES_MAX 512

/* The values of one argument of a call at which its verdict can change, and
 * some between: for the proof and for the test. Returns their count, at least
 * one. */
size_t filter_argument_samples(const int numbers[], int number, unsigned int argument,
			       uint64_t ret_samples[FILTER_SAMPLES_MAX]);

#endif
