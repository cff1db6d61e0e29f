/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: one request and its response: what handlers ask of it (http.h). */
#include "server/http/connection.h"
#include "server/server.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/json.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct exchange *exchange_new(struct connection *connection)
{
	struct exchange *exchange = calloc(1, sizeof *exchange);

	if (!exchange)
		return NULL;
	exchange->connection = connection;
	exchange->body_file = -1;
	exchange->length = -1;
	exchange->request.head.ceiling = HTTP_HEAD_BYTES_MAX + 1;
	exchange->fields.ceiling = RESPONSE_FIELDS_BYTES_MAX;
	exchange->began_us = now_us();
	TAILQ_INIT(&exchange->parts);
	connection->http->exchange_count++;
	return exchange;
}

static void free_part(struct exchange *exchange, struct part *part)
{
	TAILQ_REMOVE(&exchange->parts, part, entry);
	bytes_free(&part->bytes);
	close_fd(&part->fd);
	free(part);
}

void exchange_free(struct exchange *exchange)
{
	if (exchange->state == EXCHANGE_READY)
		TAILQ_REMOVE(&exchange->connection->http->ready, exchange, entry);
	exchange->connection->http->exchange_count--;
	held_body_drop(&exchange->held);
	if (exchange->counted)
		--*exchange->counted;
	exchange->connection->exchange = NULL;
	while (!TAILQ_EMPTY(&exchange->parts))
		free_part(exchange, TAILQ_FIRST(&exchange->parts));
	for (unsigned i = 0; i < exchange->parameter_count; i++)
		free(exchange->parameters[i].value);
	for (unsigned i = 0; i < HTTP_FIELDS_MAX; i++)
		free(exchange->joined[i]);
	free(exchange->queries);
	free(exchange->query);
	bytes_free(&exchange->body);
	bytes_free(&exchange->fields);
	close_fd(&exchange->body_file);
	request_free(&exchange->request);
	free(exchange);
}

/* --- the request ---------------------------------------------------------------- */

struct server *exchange_server(const struct exchange *exchange)
{
	return exchange->connection->http->server;
}

struct tenant *exchange_tenant(const struct exchange *exchange)
{
	return exchange->tenant;
}

const char *exchange_method(const struct exchange *exchange)
{
	return exchange->request.method;
}

const char *exchange_parameter(const struct exchange *exchange, const char *name)
{
	for (unsigned i = 0; i < exchange->parameter_count; i++)
		if (span_equals(exchange->parameters[i].name, name))
			return exchange->parameters[i].value;
	return NULL;
}

/* "a=b&c": name, value, name, value, …, NULL. What is malformed is left out. */
static void split_query(struct exchange *exchange)
{
	size_t count = 0;
	char *at;

	exchange->query = strdup(exchange->request.query ? exchange->request.query : "");
	exchange->queries = calloc(2 * HTTP_QUERY_MAX + 1, sizeof *exchange->queries);
	if (!exchange->query || !exchange->queries)
		return;
	at = exchange->query;
	while (*at && count < HTTP_QUERY_MAX) {
		char *end = at + strcspn(at, "&"), *equals;
		bool last = !*end;

		*end = '\0';
		for (char *plus = at; (plus = strchr(plus, '+'));)
			*plus = ' ';
		equals = strchr(at, '=');
		if (equals)
			*equals++ = '\0';
		else
			equals = at + strlen(at);
		if (*at && request_decode(at) && request_decode(equals)) {
			exchange->queries[2 * count] = at;
			exchange->queries[2 * count++ + 1] = equals;
		}
		at = last ? end : end + 1;
	}
}

const char *exchange_query(const struct exchange *constant, const char *name)
{
	struct exchange *exchange = (struct exchange *)constant; /* decoded when asked for */

	if (!exchange->queries)
		split_query(exchange);
	for (char **pair = exchange->queries; pair && *pair; pair += 2)
		if (strcmp(pair[0], name) == 0)
			return pair[1];
	return NULL;
}

const char *exchange_header(const struct exchange *constant, const char *name)
{
	struct exchange *exchange = (struct exchange *)constant; /* joined when asked for */
	const struct request_field *first = request_field(&exchange->request, name, NULL);
	const struct request_field *next = first;
	struct bytes joined = {0};
	char **place;

	if (!first || !request_field(&exchange->request, name, first))
		return first ? first->value : NULL;
	place = &exchange->joined[first - exchange->request.fields];
	if (!*place) {
		bytes_append_text(&joined, first->value);
		while ((next = request_field(&exchange->request, name, next)))
			bytes_append_format(&joined, ", %s", next->value);
		bytes_append(&joined, "", 1);
		if (joined.failed)
			bytes_free(&joined);
		*place = (char *)joined.data;
	}
	return *place ? *place : first->value;
}

struct span exchange_body(const struct exchange *exchange)
{
	return bytes_span(&exchange->body);
}

int exchange_body_file(const struct exchange *exchange)
{
	return exchange->body_file;
}

void exchange_count(struct exchange *exchange, unsigned *count)
{
	exchange->counted = count;
	++*count;
}

/* --- the response --------------------------------------------------------------- */

void exchange_watch(struct exchange *exchange, const struct exchange_watch *watch)
{
	exchange->watch = *watch;
}

void exchange_field(struct exchange *exchange, const char *name, const char *format, ...)
{
	char value[RESPONSE_FIELD_BYTES_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof value, format, args);
	va_end(args);
	for (char *at = value; *at; at++)
		if ((uint8_t)*at < ' ' || (uint8_t)*at == 0x7f)
			*at = '?';
	bytes_append_format(&exchange->fields, "%s: %s\r\n", name, value);
}

static void write_date(struct evbuffer *output)
{
	time_t now = time(NULL);
	struct tm parts;
	char text[64];

	gmtime_r(&now, &parts);
	strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
	evbuffer_add_printf(output, "Date: %s\r\n", text);
}

void exchange_begin(struct exchange *exchange, unsigned status, const char *media_type,
		    int64_t length)
{
	struct connection *connection = exchange->connection;
	struct evbuffer *output = connection_output(connection);
	bool bodiless = status == 204 || status == 304 || status < 200;

	exchange->state = EXCHANGE_BEGUN;
	exchange->status = status;
	exchange->length = length;
	exchange->without_body = bodiless || (exchange->request.method &&
					      strcmp(exchange->request.method, "HEAD") == 0);
	exchange->chunked = length < 0 && !bodiless && !exchange->request.is_1_0;
	exchange->close |= !exchange->request.keep_alive || connection_is_last(connection) ||
			   (length < 0 && exchange->request.is_1_0);
	evbuffer_add_printf(output, "HTTP/1.1 %u %s\r\n", status, http_reason(status));
	write_date(output);
	if (media_type)
		evbuffer_add_printf(output, "Content-Type: %s\r\n", media_type);
	if (exchange->chunked)
		evbuffer_add_printf(output, "Transfer-Encoding: chunked\r\n");
	else if (length >= 0 && !bodiless)
		evbuffer_add_printf(output, "Content-Length: %lld\r\n", (long long)length);
	if (exchange->close)
		evbuffer_add_printf(output, "Connection: close\r\n");
	else if (exchange->request.is_1_0)
		evbuffer_add_printf(output, "Connection: keep-alive\r\n");
	evbuffer_add_printf(output, "X-Content-Type-Options: nosniff\r\n");
	if (exchange->fields.failed)
		exchange->fields.length = 0;
	evbuffer_add(output, exchange->fields.data, exchange->fields.length);
	evbuffer_add(output, "\r\n", 2);
	connection_watch_output(connection);
}

static void free_data(const void *data, size_t length, void *extra)
{
	free((void *)data);
}

/* A part of the body into the output, framed. `own`: the data is malloc'ed, and
 * goes with the output. */
static void put(struct exchange *exchange, const uint8_t *data, size_t length, bool own)
{
	struct evbuffer *output = connection_output(exchange->connection);
	bool fits =
		exchange->length < 0 || length <= (uint64_t)exchange->length - exchange->written;

	exchange->written += length;
	if (length == 0 || exchange->without_body || !fits) {
		if (own)
			free((void *)data);
		return;
	}
	if (exchange->chunked)
		evbuffer_add_printf(output, "%zx\r\n", length);
	if (own)
		evbuffer_add_reference(output, data, length, free_data, NULL);
	else
		evbuffer_add(output, data, length);
	if (exchange->chunked)
		evbuffer_add(output, "\r\n", 2);
}

static struct part *add_part(struct exchange *exchange)
{
	struct part *part = calloc(1, sizeof *part);

	if (!part) {
		exchange->close = true;
		exchange->written = UINT64_MAX; /* what is missing is seen at its end */
		return NULL;
	}
	part->fd = -1;
	TAILQ_INSERT_TAIL(&exchange->parts, part, entry);
	return part;
}

void exchange_write(struct exchange *exchange, struct span span)
{
	struct part *part;

	if (TAILQ_EMPTY(&exchange->parts)) {
		put(exchange, span.data, span.length, false);
		return;
	}
	part = add_part(exchange);
	if (part)
		bytes_append(&part->bytes, span.data, span.length);
}

void exchange_write_file(struct exchange *exchange, int fd, uint64_t offset, uint64_t length)
{
	struct part *part = add_part(exchange);

	if (!part) {
		close_fd(&fd);
		return;
	}
	part->fd = fd;
	part->offset = offset;
	part->left = length;
	connection_pump(exchange->connection);
}

/* Ends a response that is not what its header says: the client sees the end of the
 * connection where there should be more. */
static void cut(struct exchange *exchange)
{
	exchange->close = true;
	exchange->chunked = false;
	while (!TAILQ_EMPTY(&exchange->parts))
		free_part(exchange, TAILQ_FIRST(&exchange->parts));
}

/* 64 KiB of a file that a guest may be changing: read, never mapped. */
static bool pump_file(struct exchange *exchange, struct part *part)
{
	size_t wanted = part->left < HTTP_FILE_STEP_BYTES ? part->left : HTTP_FILE_STEP_BYTES;
	uint8_t *data = malloc(wanted ? wanted : 1);
	ssize_t length = data ? pread(part->fd, data, wanted, (off_t)part->offset) : -1;

	if (length < 0 || (length == 0 && wanted > 0)) {
		free(data);
		return false;
	}
	put(exchange, data, (size_t)length, true);
	part->offset += (uint64_t)length;
	part->left -= (uint64_t)length;
	return true;
}

static void finish(struct exchange *exchange)
{
	if (exchange->length >= 0 && !exchange->without_body &&
	    exchange->written != (uint64_t)exchange->length)
		cut(exchange);
	if (exchange->chunked && !exchange->without_body)
		evbuffer_add(connection_output(exchange->connection), "0\r\n\r\n", 5);
	server_log_exchange(exchange_server(exchange), exchange);
	if (!exchange->on_stack)
		connection_proceed(exchange->connection);
}

void connection_pump(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	struct part *part;

	if (!exchange || exchange->state < EXCHANGE_BEGUN)
		return;
	while ((part = TAILQ_FIRST(&exchange->parts)) &&
	       evbuffer_get_length(connection_output(connection)) < EXCHANGE_HIGH_BYTES) {
		if (part->fd < 0)
			put(exchange, part->bytes.data, part->bytes.length, false);
		else if (exchange->without_body)
			part->left = 0;
		else if (part->left > 0 && !pump_file(exchange, part))
			cut(exchange);
		if (TAILQ_FIRST(&exchange->parts) == part && (part->fd < 0 || part->left == 0))
			free_part(exchange, part);
	}
	if (exchange->state == EXCHANGE_ENDED && TAILQ_EMPTY(&exchange->parts))
		finish(exchange);
}

void exchange_end(struct exchange *exchange)
{
	exchange->state = EXCHANGE_ENDED;
	exchange->watch = (struct exchange_watch){0};
	if (exchange->is_gone)
		return; /* it is freed when its handler returns */
	if (TAILQ_EMPTY(&exchange->parts))
		finish(exchange);
	else
		connection_pump(exchange->connection);
}

void exchange_respond(struct exchange *exchange, unsigned status, const char *media_type,
		      struct bytes *body)
{
	struct bytes taken = body ? *body : (struct bytes){0};

	if (body)
		*body = (struct bytes){0};
	if (taken.failed) {
		bytes_free(&taken);
		exchange_problem(exchange, 503, "the response does not fit into memory");
		return;
	}
	exchange_begin(exchange, status, media_type, (int64_t)taken.length);
	put(exchange, taken.data, taken.length, true);
	connection_send(exchange->connection);
	exchange_end(exchange);
}

void exchange_break(struct exchange *exchange)
{
	cut(exchange);
	exchange->length = -1;
	exchange_end(exchange);
}

void http_write_problem(struct json *json, unsigned status, const char *detail)
{
	emit_begin_object(json);
	emit_key(json, "type");
	emit_string(json, "about:blank");
	emit_key(json, "title");
	emit_string(json, http_reason(status));
	emit_count(json, "status", status);
	emit_key(json, "detail");
	emit_string(json, detail);
	emit_end_object(json);
}

void exchange_problem(struct exchange *exchange, unsigned status, const char *format, ...)
{
	struct bytes body = {0};
	struct json json = {.out = &body};
	char detail[2 * ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	http_write_problem(&json, status, detail);
	if (body.failed)
		bytes_free(&body);
	exchange_respond(exchange, status, "application/problem+json", &body);
}

/* --- its life ------------------------------------------------------------------- */

size_t exchange_pending(const struct exchange *exchange)
{
	size_t pending = 0;
	const struct part *part;

	TAILQ_FOREACH(part, &exchange->parts, entry)
	pending += part->bytes.length;
	return pending;
}

size_t exchange_unsent(const struct exchange *exchange)
{
	size_t unsent = evbuffer_get_length(connection_output(exchange->connection));

	return unsent + exchange_pending(exchange);
}

void exchange_drained(struct exchange *exchange)
{
	if (exchange->state == EXCHANGE_BEGUN && exchange->watch.drained)
		exchange->watch.drained(exchange->watch.user);
}

void exchange_lose(struct exchange *exchange)
{
	struct exchange_watch watch = exchange->watch;

	if (exchange->on_stack) {
		exchange->is_gone = true;
		return;
	}
	exchange->watch = (struct exchange_watch){0};
	if (exchange->state >= EXCHANGE_HANDLED && exchange->state < EXCHANGE_ENDED && watch.gone)
		watch.gone(watch.user);
	if (exchange->state >= EXCHANGE_HANDLED)
		server_log_exchange(exchange_server(exchange), exchange);
	exchange_free(exchange);
}

void exchange_refuse(struct exchange *exchange, unsigned status, const char *why)
{
	exchange->close = true;
	exchange->connection->http->refused_total++;
	exchange_problem(exchange, status, "%s", why);
}
