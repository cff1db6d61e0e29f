/* SPDX-License-Identifier: Apache-2.0 */
/* command: a run as a command of its own, from its start to its wait status with
 * all of its output read. */
#include "client.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_MAX 128
#define NUMBERED_MAX  4
#define NUMBERED_SIZE 256

struct state {
	const struct workload *workload;
	int nothing; /* what the commands read: ours is for orders */
	unsigned long number;
	char *arguments[ARGUMENTS_MAX];
	char numbered[NUMBERED_MAX][NUMBERED_SIZE];
	struct bytes out, said, file;
};

static int command_open(const struct workload *workload, void **ret_state, struct error *err)
{
	struct state *state = calloc(1, sizeof *state);

	if (!state)
		return fail(err, ENOMEM, "command");
	state->workload = workload;
	state->nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (state->nothing < 0) {
		free(state);
		return fail(err, errno, "open /dev/null");
	}
	*ret_state = state;
	return 0;
}

static void command_close(void *user)
{
	struct state *state = user;

	bytes_free(&state->out);
	bytes_free(&state->said);
	bytes_free(&state->file);
	close_fd(&state->nothing);
	free(state);
}

/* The arguments, with a number that was not used before for each {n}. */
static int fill_in(struct state *state, struct error *err)
{
	size_t count = 0, numbered = 0;

	state->number++;
	for (char **word = state->workload->command; *word; word++) {
		const char *place = strstr(*word, "{n}");

		if (count == ARGUMENTS_MAX - 1 || (place && numbered == NUMBERED_MAX))
			return refuse(err, E2BIG, "too many arguments");
		if (place) {
			snprintf(state->numbered[numbered], NUMBERED_SIZE, "%.*s%d-%lu%s",
				 (int)(place - *word), *word, (int)getpid(), state->number,
				 place + 3);
			state->arguments[count++] = state->numbered[numbered++];
		} else {
			state->arguments[count++] = *word;
		}
	}
	state->arguments[count] = NULL;
	return 0;
}

/* Shares our memory until it calls exec, so it is as cheap as can be for all
 * commands. Nothing but system calls here. */
static pid_t start(char **arguments, int in, int out, int said, uint64_t as_bytes)
{
	const struct rlimit limit = {as_bytes, as_bytes};
	volatile int failed = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
		    dup2(said, STDERR_FILENO) >= 0 &&
		    (as_bytes == 0 || setrlimit(RLIMIT_AS, &limit) == 0))
			execvp(arguments[0], arguments);
		failed = errno;
		_exit(127);
	}
	if (pid > 0 && failed) {
		waitpid(pid, NULL, 0);
		errno = failed;
		return -1;
	}
	return pid;
}

/* Both streams to their ends. */
static int drain(struct state *state, int out, int said, struct error *err)
{
	struct pollfd polled[2] = {{.fd = out, .events = POLLIN}, {.fd = said, .events = POLLIN}};
	struct bytes *into[2] = {&state->out, &state->said};

	while (polled[0].fd >= 0 || polled[1].fd >= 0) {
		int ready = poll(polled, 2, PATIENCE_MS);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return refuse(err, ETIMEDOUT, "no end in sight");
		for (int i = 0; i < 2; i++) {
			int r = polled[i].revents ? read_some(polled[i].fd, into[i], err) : 1;

			if (r < 0)
				return r;
			if (r == 0)
				polled[i].fd = -1;
		}
	}
	return 0;
}

static int command_run(void *user, struct answer *ret_answer, struct error *err)
{
	struct state *state = user;
	autofd out_read = -1, out_write = -1, said_read = -1, said_write = -1;
	int pipes[2], status = 0, r;
	pid_t pid;

	bytes_clear(&state->out);
	bytes_clear(&state->said);
	bytes_clear(&state->file);
	r = fill_in(state, err);
	if (r < 0)
		return r;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return fail(err, errno, "pipe");
	out_read = pipes[0], out_write = pipes[1];
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return fail(err, errno, "pipe");
	said_read = pipes[0], said_write = pipes[1];
	pid = start(state->arguments, state->nothing, out_write, said_write,
		    state->workload->as_bytes);
	if (pid < 0)
		return fail(err, errno, "start %s", state->arguments[0]);
	close_fd(&out_write);
	close_fd(&said_write);
	r = drain(state, out_read, said_read, err);
	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return fail_wrap(err, "%s", state->arguments[0]);
	snprintf(ret_answer->status, sizeof ret_answer->status,
		 WIFSIGNALED(status) ? "signal %d" : "%d",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (state->workload->wants_file) {
		r = read_whole_file(state->workload->file, &state->file, err);
		if (r < 0)
			return r;
		unlink(state->workload->file);
	}
	ret_answer->out = bytes_span(&state->out);
	ret_answer->said = bytes_span(&state->said);
	ret_answer->file = bytes_span(&state->file);
	return 0;
}

const struct driver command_driver = {command_open, command_run, NULL, command_close};
