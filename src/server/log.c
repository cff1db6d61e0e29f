/* SPDX-License-Identifier: Apache-2.0 */
/* log: see log.h.
 *
 * A line is written with one call to a file that was opened for appending, so lines of
 * several processes do not mix. What a client or a guest sent is a JSON string in it:
 * no control character gets into a file that somebody may read in a terminal. */
#include "server/log.h"
#include "server/server.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/json.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static struct span text_span(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

static void emit_time(struct json *json)
{
	struct timespec now;
	struct tm parts;
	char text[64];
	size_t length;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + length, sizeof text - length, ".%03ldZ", now.tv_nsec / 1000000);
	emit_key(json, "time");
	emit_string(json, text);
}

static void emit_word(struct json *json, const char *key, const char *text)
{
	emit_key(json, key);
	if (text)
		emit_text(json, text_span(text));
	else
		emit_null(json);
}

static void write_line(struct logs *logs, int fd, struct bytes *line)
{
	bytes_append(line, "\n", 1);
	if (line->failed || write(fd, line->data, line->length) != (ssize_t)line->length)
		logs->lost++;
}

void server_log_exchange(struct server *server, struct exchange *exchange)
{
	const struct request *request = &exchange->request;
	unsigned hundreds = exchange->status / 100;
	autobytes line = {0};
	struct json json = {.out = &line};

	server->metrics.responses[hundreds < 6 ? hundreds : 0]++;
	if (server->logs.access < 0)
		return;
	emit_begin_object(&json);
	emit_time(&json);
	emit_word(&json, "client", exchange->connection->peer);
	emit_word(&json, "key", exchange->tenant ? exchange->tenant->name : NULL);
	emit_word(&json, "method", request->method);
	emit_word(&json, "path", request->path);
	emit_key(&json, "status");
	if (exchange->status)
		emit_number(&json, exchange->status);
	else
		emit_null(&json); /* the client left before there was one */
	emit_count(&json, "received_bytes", exchange->body_bytes);
	emit_count(&json, "sent_bytes", exchange->written);
	emit_key(&json, "ms");
	emit_milliseconds(&json, (uint64_t)(now_us() - exchange->began_us));
	emit_word(&json, "agent", exchange_header(exchange, "user-agent"));
	emit_end_object(&json);
	write_line(&server->logs, server->logs.access, &line);
}

void audit_run(struct server *server, const struct tenant *tenant, const char *kind,
	       struct span code, const struct execpy_result *result)
{
	char hash[65];
	autobytes line = {0};
	struct json json = {.out = &line};

	if (server->logs.audit < 0)
		return;
	files_hash_bytes(code, hash);
	emit_begin_object(&json);
	emit_time(&json);
	emit_word(&json, "key", tenant ? tenant->name : NULL);
	emit_word(&json, "kind", kind);
	emit_word(&json, "id", result->id);
	emit_word(&json, "session", result->session[0] ? result->session : NULL);
	emit_word(&json, "code_sha256", hash);
	emit_count(&json, "code_bytes", code.length);
	emit_word(&json, "policy", result->policy);
	emit_word(&json, "template", result->template);
	emit_word(&json, "verdict",
		  !result->has_verdict               ? NULL
		  : result->status == EXECPY_BLOCKED ? "block"
						     : "allow");
	emit_word(&json, "status", execpy_status_name(result->status));
	emit_word(&json, "anomaly", result->anomaly_event);
	emit_word(&json, "anomaly_detail", result->anomaly_detail);
	emit_key(&json, "wall_ms");
	emit_milliseconds(&json, result->wall_us);
	emit_key(&json, "cpu_ms");
	emit_milliseconds(&json, result->cpu_us);
	emit_count(&json, "memory_peak_bytes", result->memory_peak_bytes);
	emit_count(&json, "processes_peak", result->processes_peak);
	emit_end_object(&json);
	write_line(&server->logs, server->logs.audit, &line);
}
