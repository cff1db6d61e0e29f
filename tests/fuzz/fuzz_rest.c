/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rest: any bytes as the body of a request of the REST API.
 *
 * The first byte says which route, and whether events are wanted. The request goes over a
 * real connection; the engine's warden has ended, so that each run ends at once with a
 * failure of ours; all else is as it is. Whatever came, there is one whole response, of
 * JSON, and nothing is left of the request. */
#include "server/http/connection.h"
#include "server/keys.h"
#include "server/server.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include "json_check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct execpy_engine engine = {.socket = -1, .cancel_fd = -1, .dead = true};
static struct server server;

static const char *const paths[] = {
	"/v1/run",
	"/v1/batch",
	"/v1/check",
	"/v1/probe",
	"/v1/sessions",
	"/v1/sessions/ses_0/run",
	"/v1/sessions/ses_0/checkpoint",
	"/v1/sessions/ses_0/rollback",
};

static const struct server_part *rest(void)
{
	for (size_t i = 0; server_parts[i]; i++)
		if (strcmp(server_parts[i]->name, "rest") == 0)
			return server_parts[i];
	return NULL;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct http_config config;
	struct error err = {0};

	(void)argc;
	(void)argv;
	TAILQ_INIT(&engine.runs);
	TAILQ_INIT(&engine.queries);
	TAILQ_INIT(&engine.known);
	snprintf(engine.why, sizeof engine.why, "there is no warden");
	engine.base = event_base_new();
	MUST(engine.base);
	http_config_default(&config);
	server = (struct server){.engine = &engine,
				 .base = engine.base,
				 .numbers = config.numbers,
				 .logs = {.access = -1, .audit = -1}};
	http_config_free(&config);
	keys_none(&server.tenants);
	http_init(&server.http, &server, engine.base);
	MUST(rest() && rest()->begin(&server, &err) == 0);
	return 0;
}

static void send_all(int fd, struct bytes *request)
{
	size_t sent = 0;

	while (sent < request->length) {
		ssize_t r = send(fd, request->data + sent, request->length - sent, MSG_NOSIGNAL);

		if (r > 0)
			sent += (size_t)r;
		event_base_loop(engine.base, EVLOOP_NONBLOCK);
	}
}

/* Until the server has closed. */
static void receive_all(int fd, struct bytes *response)
{
	for (unsigned turns = 0; turns < 100000; turns++) {
		uint8_t *room = bytes_reserve(response, 65536);
		ssize_t r;

		MUST(room);
		event_base_loop(engine.base, EVLOOP_NONBLOCK);
		while (http_turn(&server.http))
			;
		r = recv(fd, room, 65536, 0);
		if (r == 0)
			return;
		if (r > 0)
			response->length += (size_t)r;
	}
	MUST(!"the connection is closed");
}

/* Takes the framing of chunks away. */
static struct span join_chunks(struct span body)
{
	struct chunks chunks = {0};
	uint8_t *to = (uint8_t *)body.data;
	struct span joined = {body.data, 0};

	while (chunks.state != CHUNK_END) {
		struct span data;
		long taken = chunks_take(&chunks, body, &data);

		MUST(taken > 0);
		if (data.length > 0)
			memmove(to + joined.length, data.data, data.length);
		joined.length += data.length;
		body.data += taken;
		body.length -= (size_t)taken;
	}
	MUST(body.length == 0);
	return joined;
}

static void look_at_json(const uint8_t *text, size_t length)
{
	size_t offset = 0;
	const char *wrong = json_check_text((const char *)text, length, &offset);

	if (wrong)
		fprintf(stderr, "%s at %zu\n", wrong, offset);
	MUST(!wrong);
}

static void look_at_lines(struct span body, const char *prefix)
{
	while (body.length > 0) {
		const uint8_t *newline = memchr(body.data, '\n', body.length);
		struct span line = {body.data, (size_t)(newline - body.data)};
		size_t skip = strlen(prefix);

		MUST(newline);
		if (line.length > skip && memcmp(line.data, prefix, skip) == 0)
			look_at_json(line.data + skip, line.length - skip);
		body.data += line.length + 1;
		body.length -= line.length + 1;
	}
}

static void look_at(struct span response)
{
	static const char end[] = "\r\n\r\n";
	const uint8_t *at = memmem(response.data, response.length, end, 4);
	struct span head, body;
	unsigned status;

	MUST(at && response.length > 12 && memcmp(response.data, "HTTP/1.1 ", 9) == 0);
	head = (struct span){response.data, (size_t)(at - response.data)};
	body = (struct span){at + 4, response.length - head.length - 4};
	status = (unsigned)strtoul((const char *)response.data + 9, NULL, 10);
	MUST(status == 200 || status == 202 || (status >= 400 && status <= 503));
	if (memmem(head.data, head.length, "chunked", 7))
		body = join_chunks(body);
	if (memmem(head.data, head.length, "event-stream", 12))
		look_at_lines(body, "data: ");
	else if (memmem(head.data, head.length, "ndjson", 6))
		look_at_lines(body, "");
	else
		look_at_json(body.data, body.length);
}

static void ask(const char *path, bool events, struct span body)
{
	autobytes request = {0}, response = {0};
	int ends[2];

	bytes_append_format(&request,
			    "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
			    "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
			    path, events ? "Accept: text/event-stream\r\n" : "", body.length);
	bytes_append(&request, body.data, body.length);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	connection_begin(&server.http, ends[0], "fuzz", true, NULL);
	send_all(ends[1], &request);
	receive_all(ends[1], &response);
	close(ends[1]);
	look_at(bytes_span(&response));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned descriptors;

	if (size == 0)
		return 0;
	ask(paths[data[0] % ARRAY_LENGTH(paths)], data[0] & 0x80,
	    (struct span){data + 1, size - 1});
	while (server.http.connection_count > 0)
		event_base_loop(engine.base, EVLOOP_ONCE);
	MUST(TAILQ_EMPTY(&engine.runs) && TAILQ_EMPTY(&engine.queries));
	MUST(server.tenants.everybody.runs == 0);
	/* Detached runs keep what came of them; a new beginning has none. */
	rest()->end(&server);
	MUST(rest()->begin(&server, &(struct error){0}) == 0);
	if (descriptors == 0)
		descriptors = fuzz_open_descriptors();
	MUST(fuzz_open_descriptors() == descriptors);
	return 0;
}
