/* SPDX-License-Identifier: Apache-2.0 */
/* http: a run by POST /v1/run, over one connection to loopback that is kept. */
#include "client.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct state {
	int socket;
	struct bytes request, answer, out;
};

static void http_close(void *user)
{
	struct state *state = user;

	close_fd(&state->socket);
	bytes_free(&state->request);
	bytes_free(&state->answer);
	bytes_free(&state->out);
	free(state);
}

static void write_request(const struct workload *workload, struct bytes *request)
{
	struct bytes body = {0};
	struct json json = {.out = &body};

	emit_begin_object(&json);
	emit_key(&json, "code");
	emit_text(&json, bytes_span(&workload->code));
	emit_key(&json, "limits");
	emit_begin_object(&json);
	if (workload->time_ms)
		emit_count(&json, "time_ms", workload->time_ms);
	if (workload->memory_bytes)
		emit_count(&json, "memory_bytes", workload->memory_bytes);
	emit_end_object(&json);
	emit_end_object(&json);
	bytes_append_format(request,
			    "POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\n"
			    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
			    body.length);
	bytes_append(request, body.data, body.length);
	bytes_free(&body);
}

static int http_open(const struct workload *workload, void **ret_state, struct error *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)workload->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct state *state = calloc(1, sizeof *state);
	const int yes = 1;

	if (!state)
		return fail(err, ENOMEM, "http");
	state->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (state->socket < 0 ||
	    connect(state->socket, (struct sockaddr *)&address, sizeof address) < 0 ||
	    setsockopt(state->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0) {
		int number = errno;

		http_close(state);
		return fail(err, number, "connect to port %u", workload->port);
	}
	write_request(workload, &state->request);
	*ret_state = state;
	return 0;
}

/* Where the body begins and how long it is; 0 while the head is not whole. */
static size_t read_head(const struct bytes *answer, size_t *ret_length)
{
	static const char field[] = "Content-Length: ", end[] = "\r\n\r\n";
	const uint8_t *at = memmem(answer->data, answer->length, end, sizeof end - 1);
	const uint8_t *length;

	if (!at)
		return 0;
	length = memmem(answer->data, (size_t)(at - answer->data), field, sizeof field - 1);
	*ret_length = length ? strtoull((const char *)length + sizeof field - 1, NULL, 10) : 0;
	return (size_t)(at - answer->data) + sizeof end - 1;
}

/* The text of a member, whose escapes are those of our own writer. */
static void take_text(struct span json, const char *key, struct bytes *out)
{
	const char *at = memmem(json.data, json.length, key, strlen(key));
	const char *end = (const char *)json.data + json.length;

	bytes_clear(out);
	for (at = at ? at + strlen(key) : end; at < end && *at != '"'; at++) {
		char c = *at;

		if (c == '\\' && at + 1 < end)
			c = *++at == 'n' ? '\n' : *at;
		bytes_append(out, &c, 1);
	}
}

static int http_run(void *user, struct answer *ret_answer, struct error *err)
{
	struct state *state = user;
	size_t at = 0, length = 0;
	struct span body;

	bytes_clear(&state->answer);
	if (send(state->socket, state->request.data, state->request.length, MSG_NOSIGNAL) !=
	    (ssize_t)state->request.length)
		return fail(err, errno, "send the request");
	while (at == 0 || state->answer.length < at + length) {
		struct pollfd polled = {.fd = state->socket, .events = POLLIN};
		int r = poll(&polled, 1, PATIENCE_MS);

		if (r <= 0)
			return refuse(err, ETIMEDOUT, "no answer");
		r = read_some(state->socket, &state->answer, err);
		if (r <= 0)
			return r < 0 ? r : refuse(err, EPIPE, "the server hung up");
		at = at ? at : read_head(&state->answer, &length);
	}
	body = (struct span){state->answer.data + at, length};
	take_text(body, "\"status\":\"", &state->out);
	snprintf(ret_answer->status, sizeof ret_answer->status, "%.*s", (int)state->out.length,
		 (const char *)state->out.data);
	take_text(body, "\"stdout\":\"", &state->out);
	ret_answer->out = bytes_span(&state->out);
	ret_answer->said = body;
	ret_answer->file_in_json = true;
	return 0;
}

const struct driver http_driver = {http_open, http_run, NULL, http_close};
