/* SPDX-License-Identifier: Apache-2.0 */
/* server: a run by a peer that is kept, through a unix socket.
 *
 * Request: u32 milliseconds of time limit, u32 whether the file is wanted, u32
 * length of the code, the code. Answer: u32 lengths of status, stdout, stderr
 * and file, then these. Little endian; one connection, any number of runs. */
#include "client.h"

#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LENGTHS 4

struct state {
	const struct workload *workload;
	int socket;
	struct bytes request, answer;
};

static void server_close(void *user)
{
	struct state *state = user;

	close_fd(&state->socket);
	bytes_free(&state->request);
	bytes_free(&state->answer);
	free(state);
}

static void put_u32(struct bytes *out, uint64_t value)
{
	const uint8_t four[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
				 (uint8_t)(value >> 24)};

	bytes_append(out, four, sizeof four);
}

static int server_open(const struct workload *workload, void **ret_state, struct error *err)
{
	struct state *state = calloc(1, sizeof *state);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (!state)
		return fail(err, ENOMEM, "server");
	state->workload = workload;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", workload->server);
	state->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (state->socket < 0 ||
	    connect(state->socket, (struct sockaddr *)&address, sizeof address) < 0) {
		int number = errno;

		server_close(state);
		return fail(err, number, "connect to %s", workload->server);
	}
	*ret_state = state;
	return 0;
}

static int send_request(struct state *state, struct error *err)
{
	const struct workload *workload = state->workload;

	bytes_clear(&state->request);
	put_u32(&state->request, workload->time_ms);
	put_u32(&state->request, workload->wants_file);
	put_u32(&state->request, workload->code.length);
	bytes_append(&state->request, workload->code.data, workload->code.length);
	for (size_t at = 0; at < state->request.length;) {
		ssize_t sent = send(state->socket, state->request.data + at,
				    state->request.length - at, MSG_NOSIGNAL);

		if (sent < 0)
			return fail(err, errno, "send the request");
		at += (size_t)sent;
	}
	return 0;
}

/* Reads until that many bytes of the answer are there. */
static int await(struct state *state, size_t length, struct error *err)
{
	while (state->answer.length < length) {
		struct pollfd polled = {.fd = state->socket, .events = POLLIN};
		int r = poll(&polled, 1, PATIENCE_MS);

		if (r <= 0)
			return refuse(err, ETIMEDOUT, "no answer");
		r = read_some(state->socket, &state->answer, err);
		if (r <= 0)
			return r < 0 ? r : refuse(err, EPIPE, "the server hung up");
	}
	return 0;
}

static int server_run(void *user, struct answer *ret_answer, struct error *err)
{
	struct state *state = user;
	struct span parts[LENGTHS];
	struct reader reader;
	size_t total = LENGTHS * sizeof(uint32_t);
	int r = send_request(state, err);

	bytes_clear(&state->answer);
	if (r == 0)
		r = await(state, total, err);
	if (r < 0)
		return r;
	reader = reader_of(bytes_span(&state->answer));
	for (size_t i = 0; i < LENGTHS; i++)
		total += parts[i].length = reader_u32(&reader);
	r = await(state, total, err);
	if (r < 0)
		return r;
	reader = reader_of(bytes_span(&state->answer));
	reader_take(&reader, LENGTHS * sizeof(uint32_t));
	for (size_t i = 0; i < LENGTHS; i++)
		parts[i] = reader_take(&reader, parts[i].length);
	snprintf(ret_answer->status, sizeof ret_answer->status, "%.*s", (int)parts[0].length,
		 (const char *)parts[0].data);
	ret_answer->out = parts[1];
	ret_answer->said = parts[2];
	ret_answer->file = parts[3];
	return 0;
}

const struct driver server_driver = {server_open, server_run, NULL, server_close};
