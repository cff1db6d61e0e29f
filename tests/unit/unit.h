/* SPDX-License-Identifier: Apache-2.0 */
/* unit: what the unit tests share. */
#ifndef EXECPY_TESTS_UNIT_H
#define EXECPY_TESTS_UNIT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
/* cmocka's name for it is ours already (base/error.h). */
#undef fail
#undef fail_msg
#define fail_msg(...)                      \
	do {                               \
		print_error(__VA_ARGS__);  \
		print_error("\n");         \
		_fail(__FILE__, __LINE__); \
	} while (0)

#include "base/bytes.h"

/* How many descriptors this process has open. */
static inline unsigned open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static inline struct span span_of(const void *data, size_t length)
{
	return (struct span){data, length};
}

static inline struct span text_of(const char *text)
{
	return span_of(text, strlen(text));
}

#define assert_bytes(bytes, text)                                                  \
	do {                                                                       \
		assert_int_equal((bytes)->length, strlen(text));                   \
		if ((bytes)->length > 0)                                           \
			assert_memory_equal((bytes)->data, text, (bytes)->length); \
	} while (0)

/* Runs `body` in a child; what it returns, from 0 to 99, is the child's status.
 * A child that died of a signal gives 1000 and the signal. Children never use
 * cmocka: it jumps out of a failed assertion. */
static inline int in_child(int (*body)(void *), void *argument)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body(argument));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
