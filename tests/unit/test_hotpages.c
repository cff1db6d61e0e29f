/* SPDX-License-Identifier: Apache-2.0 */
/* test_hotpages: behind a fork, the pages that the last run wrote to cost no fault. */
#define PY_SSIZE_T_CLEAN
#include "guest/guest.h"

#include "unit.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define PAGES 64

static volatile uint8_t *memory;
static long page_bytes;

static long faults(void)
{
	struct rusage used;

	assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
	return used.ru_minflt;
}

static long write_to(size_t pages)
{
	long before = faults();

	for (size_t i = 0; i < pages; i++)
		memory[i * 2 * (size_t)page_bytes]++;
	return faults() - before;
}

/* As a checkpoint is: it shares all pages, and stays. */
static pid_t fork_frozen(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_learns_and_helps(void **state)
{
	pid_t first, second, third;

	write_to(PAGES);
	first = fork_frozen();
	/* The control: without help each page is copied when it is written to. */
	assert_true(write_to(PAGES) >= PAGES);
	hotpages_before_fork();
	second = fork_frozen();
	hotpages_after_fork();
	assert_true(write_to(PAGES) < PAGES / 4);
	/* What was learnt holds for the next, too, whatever the run wrote to. */
	hotpages_before_fork();
	third = fork_frozen();
	hotpages_after_fork();
	assert_true(write_to(PAGES) < PAGES / 4);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(memory[i * 2 * (size_t)page_bytes], 4);
	end(first);
	end(second);
	end(third);
}

static void test_what_is_gone_is_no_matter(void **state)
{
	pid_t child;

	assert_int_equal(munmap((void *)memory, (size_t)page_bytes * 2 * PAGES), 0);
	child = fork_frozen();
	hotpages_after_fork();
	end(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learns_and_helps),
		cmocka_unit_test(test_what_is_gone_is_no_matter),
	};

	page_bytes = sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, (size_t)page_bytes * 2 * PAGES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise((void *)memory, (size_t)page_bytes * 2 * PAGES, MADV_NOHUGEPAGE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
