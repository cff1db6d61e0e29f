/* SPDX-License-Identifier: Apache-2.0 */
/* session: times what a session does, through a daemon's socket.
 *
 *     bench-session SOCKET TEMPLATE MEMORY_MIB GAP_MS COUNT SETUP CODE [CRASH]
 *     bench-session SOCKET TEMPLATE MEMORY_MIB GAP_MS COUNT SETUP CODE =rollback
 *     bench-session SOCKET TEMPLATE MEMORY_MIB GAP_MS COUNT SETUP CODE =fork[N]
 *
 * After SETUP has run, each round sends CODE, whose value must grow by one each time,
 * and prints the microseconds from call to result. With CRASH each round first has
 * that code end the runner; then the time is that from the crash's call to the result
 * of CODE behind it. With =rollback a checkpoint is returned to instead, with =fork CODE
 * runs in a fresh branch, and with =fork100 a hundred branches are made, in one of which
 * it does. The last line says "memory BYTES": the session's, or what a branch has that did
 * nothing yet. */
#include "engine/execpy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct execpy_engine *engine;
static struct execpy_session_info session;
static struct execpy_error error;

static void give_up(const char *what)
{
	fprintf(stderr, "bench-session: %s: %s\n", what, error.text);
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static struct execpy_result *run_in(const char *id, const char *code)
{
	const struct execpy_request request = {
		.code = code,
		.code_length = strlen(code),
		.stdin_fd = -1,
		.out_directory = -1,
		.limits = {.time_ms = 60000, .cpu_ms = 60000},
	};
	struct execpy_result *result;

	if (execpy_session_run(engine, id, &request, NULL, &result, &error) < 0)
		give_up("run");
	return result;
}

static struct execpy_result *run(const char *code)
{
	return run_in(session.id, code);
}

/* The value is checked, not assumed. */
static void must_be(struct execpy_result *result, long expected)
{
	char text[64];
	size_t length;
	const char *json = execpy_result_json(result, &length);

	snprintf(text, sizeof text, "\"value\":{\"text/plain\":\"%ld\"}", expected);
	if (execpy_result_status(result) != EXECPY_OK || !strstr(json, text)) {
		fprintf(stderr, "bench-session: not %s: %s\n", text, json);
		exit(1);
	}
	execpy_result_free(result);
}

struct branches {
	size_t count;
	struct execpy_session_info infos[128];
};

static void take_branch(void *user, const struct execpy_session_info *info)
{
	struct branches *branches = user;

	branches->infos[branches->count++] = *info;
}

/* Returns the microseconds from the call to the answer of the last one. */
static double time_branches(unsigned count, const char *code, uint64_t *ret_memory)
{
	static struct branches branches;
	double began = now_us(), took;

	branches.count = 0;
	if (execpy_session_fork(engine, session.id, count, false, take_branch, &branches, &error) <
	    0)
		give_up("fork");
	must_be(run_in(branches.infos[count - 1].id, code), 1);
	took = now_us() - began;
	*ret_memory = branches.infos[0].memory_bytes;
	for (size_t i = 0; i < branches.count; i++)
		if (execpy_session_end(engine, branches.infos[i].id, &error) < 0)
			give_up("end");
	return took;
}

int main(int argc, char **argv)
{
	struct execpy_options options = {.socket = argc > 1 ? argv[1] : NULL};
	struct execpy_session_options wanted = {.policy = "open"};
	const char *crash = argc > 8 ? argv[8] : NULL;
	unsigned branches = 0;
	uint64_t memory = 0;
	long gap_ms, count;

	if (argc < 8) {
		fprintf(stderr, "usage: bench-session SOCKET TEMPLATE MEMORY_MIB GAP_MS COUNT "
				"SETUP CODE [CRASH]\n");
		return 2;
	}
	wanted.template = argv[2];
	wanted.limits.memory_bytes = strtoull(argv[3], NULL, 10) << 20;
	gap_ms = strtol(argv[4], NULL, 10);
	count = strtol(argv[5], NULL, 10);
	if (execpy_open(&options, &engine, &error) < 0 ||
	    execpy_session_open(engine, &wanted, &session, &error) < 0)
		give_up("open");
	execpy_result_free(run(argv[6]));
	if (crash && strncmp(crash, "=fork", 5) == 0)
		branches = crash[5] ? (unsigned)strtoul(crash + 5, NULL, 10) : 1;
	if (crash && strcmp(crash, "=rollback") == 0 &&
	    execpy_session_checkpoint(engine, session.id, "here", NULL, &error) < 0)
		give_up("checkpoint");
	for (long i = 0; i < count; i++) {
		const struct timespec gap = {gap_ms / 1000, gap_ms % 1000 * 1000000};
		double began;

		nanosleep(&gap, NULL);
		if (branches > 0) {
			printf("%.1f\n", time_branches(branches, argv[7], &memory));
			continue;
		}
		began = now_us();
		if (crash && strcmp(crash, "=rollback") == 0) {
			if (execpy_session_rollback(engine, session.id, "here", NULL, &error) < 0)
				give_up("rollback");
		} else if (crash) {
			execpy_result_free(run(crash));
		}
		must_be(run(argv[7]), crash && strcmp(crash, "=rollback") == 0 ? 1 : i + 1);
		printf("%.1f\n", now_us() - began);
	}
	if (execpy_session_info(engine, session.id, &session, &error) < 0)
		give_up("info");
	printf("memory %llu\n", (unsigned long long)(branches > 0 ? memory : session.memory_bytes));
	if (execpy_session_end(engine, session.id, &error) < 0)
		give_up("end");
	execpy_close(engine);
	return 0;
}
