/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls: which system calls a template and a cell may make.
 *
 * Theory of operation. syscalls.def is the policy. At build time filter_build
 * turns it into two seccomp programs for one architecture, runs them in a
 * simulator against syscall_verdict() for every number and for the edges of
 * every argument rule, and writes them as C. At run time they are two constant
 * arrays: no parsing, no allocation, no library.
 *
 *   filter_template  the whole policy, about 115 us to install, once a
 *                    template; every cell inherits it by fork
 *   filter_cell      only what a cell has less, about 45 us, once a cell
 *
 * Of several filters the kernel takes the strictest verdict, and of two errnos
 * that of the filter that came last, so a denial in the cell always wins. A
 * call made for another architecture (int 0x80) ends the process. */
#ifndef EXECPY_JAIL_SYSCALLS_H
#define EXECPY_JAIL_SYSCALLS_H

#include "base/error.h"

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

enum filter_stage {
	FILTER_TEMPLATE = 1,
	FILTER_CELL = 2,
	FILTER_INIT = 4, /* not of the table: see filter.c */
};

enum argument_operation {
	ARGUMENT_IN = 1, /* the masked value is one of the values */
	ARGUMENT_NOT_IN,
	ARGUMENT_BETWEEN, /* values[0] <= the masked value <= values[1] */
};

#define ARGUMENT_VALUES_MAX 16
#define RULE_CONDITIONS_MAX 2

struct argument_condition {
	enum argument_operation operation; /* 0: no condition */
	unsigned int argument;             /* 0 to 5 */
	uint32_t mask;
	unsigned int value_count;
	uint32_t values[ARGUMENT_VALUES_MAX];
	const char *argument_name, *mask_text, *values_text; /* as the table spells them */
};

struct syscall_rule {
	const char *call;
	unsigned int stages; /* of FILTER_TEMPLATE | FILTER_CELL */
	struct argument_condition conditions[RULE_CONDITIONS_MAX];
	int verdict; /* 0: allowed; else the errno */
	const char *reason;
};

extern const struct syscall_rule syscall_rules[];
extern const size_t syscall_rule_count;

/* The rule that decides about one call in one stage, by reading the table; NULL
 * for a call that it does not name. `numbers` holds each rule's call number,
 * or -1 where the architecture has no such call. In the cell's stage this is
 * what both filters together say. */
const struct syscall_rule *syscall_rule_for(const int numbers[], enum filter_stage stage,
					    int number, const uint64_t arguments[6]);

/* 0 for allowed, else the errno. */
int syscall_verdict(const int numbers[], enum filter_stage stage, int number,
		    const uint64_t arguments[6]);

/* Written by filter_build for the architecture of the build. */
extern const int syscall_rule_numbers[];
extern const struct sock_filter filter_template[], filter_cell[];
extern const size_t filter_template_length, filter_cell_length;

/* Installs the stage's filter on every thread of the calling process, sets
 * no_new_privs, and then checks that the filter is there by making a call that
 * it refuses. Returns 0, or a negative errno: the process must then not go on,
 * since it may be unfiltered.
 *
 * FILTER_TEMPLATE runs in the template before its first import; FILTER_CELL in
 * the cell, last of all, since what the template has more is gone after it;
 * FILTER_INIT in an init, when all that is left is to wait.
 * Async-signal-safe, allocates nothing. */
int filter_install(enum filter_stage stage, struct error *err);

#endif
