/* SPDX-License-Identifier: Apache-2.0 */
/* report: see report.h. */
#include "engine/report.h"
#include "engine/engine.h"
#include "engine/json.h"

#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Where each field of the two bodies goes. Times come in microseconds. */
struct place_of_field {
	enum field_name field;
	size_t offset;
	bool is_time;
};

static const struct place_of_field of_daemon[] = {
	{FIELD_PID, offsetof(struct daemon_report, process), false},
	{FIELD_WALL_US, offsetof(struct daemon_report, up_ms), true},
	{FIELD_CLIENTS, offsetof(struct daemon_report, clients), false},
	{FIELD_SESSIONS, offsetof(struct daemon_report, sessions), false},
	{FIELD_RUNS, offsetof(struct daemon_report, running), false},
	{FIELD_QUEUE, offsetof(struct daemon_report, waiting), false},
	{FIELD_COUNT, offsetof(struct daemon_report, runs), false},
	{FIELD_MISSES, offsetof(struct daemon_report, misses), false},
	{FIELD_REFUSED, offsetof(struct daemon_report, refused), false},
	{FIELD_MEMORY_PEAK, offsetof(struct daemon_report, memory_bytes), false},
	{FIELD_SIZE, offsetof(struct daemon_report, memory_bound_bytes), false},
};

static const struct place_of_field of_template[] = {
	{FIELD_POOL_MIN, offsetof(struct template_report, pool_min), false},
	{FIELD_POOL_MAX, offsetof(struct template_report, pool_max), false},
	{FIELD_POOL_TARGET, offsetof(struct template_report, target), false},
	{FIELD_PARKED, offsetof(struct template_report, parked), false},
	{FIELD_RUNS, offsetof(struct template_report, running), false},
	{FIELD_HITS, offsetof(struct template_report, hits), false},
	{FIELD_MISSES, offsetof(struct template_report, misses), false},
	{FIELD_SIZE, offsetof(struct template_report, parked_bytes), false},
	{FIELD_MEMORY_PEAK, offsetof(struct template_report, template_bytes), false},
	{FIELD_COUNT, offsetof(struct template_report, cells), false},
	{FIELD_WALL_US, offsetof(struct template_report, age_ms), true},
};

/* True when the field is one of the table's. */
static bool take(const struct field *field, const struct place_of_field *places, size_t count,
		 void *report)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t number = 0;

		if (places[i].field != (enum field_name)field->name)
			continue;
		(void)field_number(field, &number);
		*(uint64_t *)((char *)report + places[i].offset) =
			places[i].is_time ? number / 1000 : number;
		return true;
	}
	return false;
}

static void take_text(const struct field *field, char *text, size_t size)
{
	size_t length = field->value.length < size - 1 ? field->value.length : size - 1;

	memcpy(text, field->value.data, length);
	text[length] = '\0';
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static void read_template(struct span body, struct template_report *template)
{
	struct reader fields = reader_of(body);
	struct field field;

	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_NAME)
			take_text(&field, template->name, sizeof template->name);
		else if (field.name == FIELD_NOTE)
			take_text(&field, template->why, sizeof template->why);
		else
			take(&field, of_template, ARRAY_LENGTH(of_template), template);
		/* Its age is told while it is loaded. */
		template->loaded |= field.name == FIELD_WALL_US;
	}
}

static void read_report(struct span body, struct daemon_report *report)
{
	struct reader fields = reader_of(body);
	struct field field;

	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_CGROUP)
			take_text(&field, report->cgroups, sizeof report->cgroups);
		else if (field.name == FIELD_TEMPLATE && report->template_count < TEMPLATES_MAX)
			read_template(field.value, &report->templates[report->template_count++]);
		else
			take(&field, of_daemon, ARRAY_LENGTH(of_daemon), report);
	}
}

int report_ask(const char *socket, struct daemon_report *ret_report, struct error *err)
{
	struct daemon_report report = {0};
	autobytes question = {0}, buffer = {0};
	size_t at = frame_begin(&question, MESSAGE_REPORT, 0);
	autofd fd = remote_dial(remote_named(socket), report.socket, err);
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	int r;

	frame_end(&question, at);
	if (fd < 0)
		return fd;
	r = frame_send(fd, &question, NULL, 0);
	if (r < 0)
		return fail(err, -r, "ask the daemon at %s", report.socket);
	/* It greets every client first; while its warden starts it is silent. */
	while ((r = poll(&polled, 1, WARDEN_TAKES_MS)) > 0) {
		int fds[FRAME_FDS_MAX];
		struct frame frame;
		size_t count = 0;

		r = frame_receive(fd, &buffer, &frame, fds, &count);
		if (r <= 0)
			return refuse(err, ECONNRESET, "the daemon at %s ended the connection",
				      report.socket);
		for (size_t i = 0; i < count; i++)
			close_fd(&fds[i]);
		if (frame.type != MESSAGE_REPORT)
			continue;
		read_report(frame.body, &report);
		*ret_report = report;
		return 0;
	}
	return r < 0 ? fail(err, errno, "ask the daemon at %s", report.socket)
		     : refuse(err, ETIMEDOUT,
			      "the daemon at %s does not answer: it is starting, "
			      "or it hangs",
			      report.socket);
}

struct reporting {
	struct query query;
	struct execpy_engine *engine;
	void (*done)(void *user, const struct daemon_report *report, const struct error *why);
	void *user;
};

static void free_reporting(struct reporting *reporting)
{
	event_free(reporting->query.event);
	bytes_free(&reporting->query.answer);
	free(reporting);
}

static void on_report(evutil_socket_t fd, short what, void *argument)
{
	struct reporting *reporting = argument;
	struct daemon_report *report = calloc(1, sizeof *report);
	struct error err = {0};
	int r = query_end(reporting->engine, &reporting->query, &err);

	if (r == 0 && !report)
		r = fail(&err, ENOMEM, "report");
	if (r == 0)
		read_report(bytes_span(&reporting->query.answer), report);
	reporting->done(reporting->user, r == 0 ? report : NULL, &err);
	free(report);
	free_reporting(reporting);
}

struct reporting *report_begin(struct execpy_engine *engine,
			       void (*done)(void *user, const struct daemon_report *report,
					    const struct error *why),
			       void *user, struct error *err)
{
	struct reporting *reporting = calloc(1, sizeof *reporting);
	autobytes question = {0};
	size_t at;

	if (reporting)
		reporting->query.event = event_new(engine->base, -1, 0, on_report, reporting);
	if (!reporting || !reporting->query.event) {
		free(reporting);
		fail(err, ENOMEM, "report");
		return NULL;
	}
	reporting->engine = engine;
	reporting->done = done;
	reporting->user = user;
	reporting->query.id = ++engine->next_run;
	at = frame_begin(&question, MESSAGE_REPORT, reporting->query.id);
	frame_end(&question, at);
	if (query_send(engine, &reporting->query, &question, err) < 0) {
		free_reporting(reporting);
		return NULL;
	}
	return reporting;
}

void report_abandon(struct reporting *reporting)
{
	if (!reporting)
		return;
	TAILQ_REMOVE(&reporting->engine->queries, &reporting->query, entry);
	free_reporting(reporting);
}

static void emit_template(struct json *json, const struct template_report *template)
{
	emit_begin_object(json);
	emit_key(json, "name");
	emit_string(json, template->name);
	emit_count(json, "pool_min", template->pool_min);
	emit_count(json, "pool_max", template->pool_max);
	emit_count(json, "target", template->target);
	emit_count(json, "parked", template->parked);
	emit_count(json, "running", template->running);
	emit_count(json, "hits", template->hits);
	emit_count(json, "misses", template->misses);
	emit_count(json, "parked_bytes", template->parked_bytes);
	emit_key(json, "loaded");
	emit_bool(json, template->loaded);
	emit_count(json, "template_bytes", template->template_bytes);
	emit_count(json, "cells", template->cells);
	emit_count(json, "age_ms", template->age_ms);
	emit_key(json, "why");
	emit_string(json, template->why[0] ? template->why : NULL);
	emit_end_object(json);
}

int report_json(const struct daemon_report *report, struct bytes *out)
{
	struct json json = {.out = out};

	emit_begin_object(&json);
	emit_key(&json, "socket");
	emit_text(&json, (struct span){(const uint8_t *)report->socket, strlen(report->socket)});
	emit_count(&json, "process", report->process);
	emit_key(&json, "cgroups");
	emit_string(&json, report->cgroups);
	emit_count(&json, "up_ms", report->up_ms);
	emit_count(&json, "clients", report->clients);
	emit_count(&json, "sessions", report->sessions);
	emit_count(&json, "running", report->running);
	emit_count(&json, "waiting", report->waiting);
	emit_count(&json, "runs", report->runs);
	emit_count(&json, "misses", report->misses);
	emit_count(&json, "refused", report->refused);
	emit_count(&json, "memory_bytes", report->memory_bytes);
	emit_count(&json, "memory_bound_bytes", report->memory_bound_bytes);
	emit_key(&json, "templates");
	emit_begin_array(&json);
	for (size_t i = 0; i < report->template_count; i++)
		emit_template(&json, &report->templates[i]);
	emit_end_array(&json);
	emit_end_object(&json);
	return out->failed;
}
