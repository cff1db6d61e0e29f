/* SPDX-License-Identifier: Apache-2.0 */
/* fork_loop: what throughput is measured against: an interpreter that has
 * imported and warmed up the same, and nothing but fork, exit and wait.
 *
 *   fork-loop CLIENTS SECONDS FILE…     runs the files, then that many loops
 *
 * No hook of CPython's is called around the fork, nothing is limited or confined,
 * the child ends at once: what is left is the kernel's work on a process of this
 * size. The memory is laid out as the caller's GLIBC_TUNABLES say. */
#include <Python.h>

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS_MAX 64

static const char settle[] = "import gc\ngc.collect()\ngc.freeze()\n";

static int run_file(const char *path)
{
	autofile *file = fopen(path, "re");

	if (!file)
		return -1;
	return PyRun_SimpleFile(file, path);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t loop(uint64_t end)
{
	uint64_t runs = 0;

	while (now() < end) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 0;
		runs++;
	}
	return runs;
}

int main(int argc, char **argv)
{
	unsigned clients = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
	uint64_t *runs, total = 0, began;

	if (clients < 1 || clients > CLIENTS_MAX || seconds <= 0) {
		fprintf(stderr, "usage: fork-loop CLIENTS SECONDS FILE…\n");
		return 2;
	}
	Py_InitializeEx(0);
	PyRun_SimpleString("import warnings\nwarnings.simplefilter('ignore')\n");
	for (int i = 3; i < argc; i++)
		if (run_file(argv[i]) < 0)
			return 1;
	PyRun_SimpleString(settle);
	runs = mmap(NULL, sizeof *runs * CLIENTS_MAX, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (runs == MAP_FAILED)
		return 1;
	loop(now() + 200000000);
	began = now();
	for (unsigned i = 0; i < clients; i++)
		if (fork() == 0) {
			runs[i] = loop(began + (uint64_t)(seconds * 1e9));
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (unsigned i = 0; i < clients; i++)
		total += runs[i];
	printf("{\"clients\":%u,\"runs\":%llu,\"seconds\":%.6f}\n", clients,
	       (unsigned long long)total, (double)(now() - began) / 1e9);
	return 0;
}
