/* SPDX-License-Identifier: Apache-2.0 */
/* warden: the engine's requests, by a table.
 *
 * Each message has a row: its handler, whether a run of that id must exist, and
 * in which states of its cell it may come. What does not fit ends the warden:
 * the engine is our own code, so a message out of order is a bug or an attack,
 * and neither is to be guessed at. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void stop(struct warden *warden, int exit_status)
{
	warden->exit_status = exit_status;
	if (warden->base)
		event_base_loopbreak(warden->base);
}

void warden_say(struct warden *warden, const struct bytes *frame, const int *fds, size_t count)
{
	int r = frame_send(warden->engine, frame, fds, count);

	if (r < 0)
		stop(warden, r == -EPIPE || r == -ECONNRESET ? 0 : 1);
}

void warden_say_failed(struct warden *warden, uint64_t run, const char *why)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, run);

	frame_put_text(&frame, FIELD_TEXT, why);
	frame_end(&frame, at);
	warden_say(warden, &frame, NULL, 0);
}

struct handler_context {
	struct warden *warden;
	const struct frame *frame;
	struct cell *cell; /* of the run, or NULL */
	int *fds;
	size_t fd_count;
};

/* A resource that nothing can enforce here is refused, not ignored. Memory
 * without a cgroup is sampled and RLIMIT_DATA backs it; processes have
 * RLIMIT_NPROC of the cell's own user namespace; CPU is sampled. */
static int handle_acquire(struct handler_context *context, struct error *err)
{
	struct warden *warden = context->warden;
	struct reader fields = frame_fields(context->frame);
	struct limits limits = limits_default();
	autobytes modules = {0};
	struct template *template;
	uint64_t once = 0;
	struct field field;
	struct cell *cell;
	int r = 0;

	while (r >= 0 && frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_LIMITS)
			r = limits_decode(field.value, &limits, err);
		else if (field.name == FIELD_MORE)
			r = field_number(&field, &once);
		else if (field.name == FIELD_MODULE) {
			bytes_append(&modules, field.value.data, field.value.length);
			bytes_append_text(&modules, "\n");
		}
	}
	if (r < 0)
		return r;
	template = template_get(warden, &modules, err);
	cell = template ? cell_make(template, &limits, err) : NULL;
	if (!cell) {
		warden_say_failed(warden, context->frame->id, err->text);
		return 0;
	}
	template->once = once != 0;
	cell->run = context->frame->id;
	cell->has_run = true;
	cell->asked_us = now_us();
	return 0;
}

static int handle_put(struct handler_context *context, struct error *err)
{
	struct reader fields = frame_fields(context->frame);
	struct span name = {NULL, 0};
	struct error why = {0};
	struct field field;
	uint64_t mode = 0644;

	if (context->fd_count != 1)
		return refuse(err, EBADMSG, "warden: PUT without a descriptor");
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_NAME)
			name = field.value;
		else if (field.name == FIELD_NUMBER)
			field_number(&field, &mode);
	}
	if (cell_put(context->cell, name, mode, context->fds[0], &why) < 0) {
		autobytes frame = {0};
		size_t at = frame_begin(&frame, MESSAGE_PUT_FAILED, context->frame->id);

		frame_put_text(&frame, FIELD_TEXT, why.text);
		frame_end(&frame, at);
		warden_say(context->warden, &frame, NULL, 0);
	}
	return 0;
}

static int handle_start(struct handler_context *context, struct error *err)
{
	struct reader fields = frame_fields(context->frame);
	struct field field;
	uint64_t mode = WATCH_STRICT;

	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_WATCH)
			field_number(&field, &mode);
		else if (field.name == FIELD_PROBE)
			context->cell->probing = true;
	context->cell->watch_mode = mode <= WATCH_STRICT ? (enum watch_mode)mode : WATCH_STRICT;
	cell_start(context->cell);
	return 0;
}

static int handle_kill(struct handler_context *context, struct error *err)
{
	struct reader fields = frame_fields(context->frame);
	struct field field;
	uint64_t reason = 0;

	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_REASON)
			field_number(&field, &reason);
	cell_kill(context->cell, ENDING_KILLED, reason);
	return 0;
}

static int handle_collect(struct handler_context *context, struct error *err)
{
	collect_workspace(context->cell);
	return 0;
}

static int handle_release(struct handler_context *context, struct error *err)
{
	cell_release(context->cell);
	return 0;
}

#define STATE(name) (1u << (name))
#define ANY_STATE   0xffffu

static const struct {
	enum message type;
	bool needs_run;
	unsigned states;
	int (*handle)(struct handler_context *, struct error *);
} handlers[] = {
	{MESSAGE_ACQUIRE, false, 0, handle_acquire},
	{MESSAGE_PUT, true, STATE(CELL_PARKED), handle_put},
	{MESSAGE_START, true, STATE(CELL_PARKED), handle_start},
	{MESSAGE_KILL, true, ANY_STATE, handle_kill},
	{MESSAGE_COLLECT, true, STATE(CELL_ENDED), handle_collect},
	{MESSAGE_RELEASE, true, ANY_STATE, handle_release},
};

static int dispatch(struct handler_context *context, struct error *err)
{
	const struct frame *frame = context->frame;

	for (size_t i = 0; i < ARRAY_LENGTH(handlers); i++) {
		if (handlers[i].type != (enum message)frame->type)
			continue;
		context->cell = cell_find_run(context->warden, frame->id);
		if (!handlers[i].needs_run && context->cell)
			return refuse(err, EBADMSG, "warden: run %llu exists already",
				      (unsigned long long)frame->id);
		/* A run that failed meanwhile is no error of the engine's. */
		if (handlers[i].needs_run && !context->cell)
			return 0;
		if (handlers[i].needs_run && !(handlers[i].states & STATE(context->cell->state))) {
			/* It may have been killed while the message was under way. */
			if (context->cell->state >= CELL_RUNNING)
				return 0;
			break;
		}
		return handlers[i].handle(context, err);
	}
	return refuse(err, EBADMSG, "warden: message %d is not for now", frame->type);
}

static void on_engine(evutil_socket_t socket, short what, void *argument)
{
	struct warden *warden = argument;
	struct error err = {0};
	struct frame frame;
	int fds[FRAME_FDS_MAX];
	size_t count = 0;
	struct handler_context context = {.warden = warden, .frame = &frame, .fds = fds};
	int r = frame_receive(socket, &warden->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	if (r == 0) {
		stop(warden, 0);
		return;
	}
	context.fd_count = count;
	r = r < 0 ? fail(&err, -r, "warden: receive") : dispatch(&context, &err);
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (r < 0) {
		warden_say_failed(warden, 0, err.text);
		stop(warden, 1);
	}
}

static void say_ready(struct warden *warden)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_READY, 0);

	frame_put_text(&frame, FIELD_CGROUP, cgroup_mode_name(warden->cgroups.mode));
	if (warden->cgroups.why[0])
		frame_put_text(&frame, FIELD_NOTE, warden->cgroups.why);
	frame_end(&frame, at);
	warden_say(warden, &frame, NULL, 0);
}

/* libevent would write to stderr; what matters comes back as an error. */
static void say_nothing(int severity, const char *message)
{
}

int warden_run(struct warden *warden, struct error *err)
{
	struct event_config *config = event_config_new();

	if (descriptors_left(DESCRIPTORS_OF_EVENT_BASE, err) < 0) {
		event_config_free(config);
		return -err->number;
	}
	event_set_log_callback(say_nothing);
	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV |
						      EVENT_BASE_FLAG_PRECISE_TIMER |
						      EVENT_BASE_FLAG_NOLOCK);
		warden->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!warden->base)
		return refuse(err, ENOMEM, "warden: no event loop");
	TAILQ_INIT(&warden->templates);
	TAILQ_INIT(&warden->cells);
	warden->engine_event =
		event_new(warden->base, warden->engine, EV_READ | EV_PERSIST, on_engine, warden);
	if (!warden->engine_event || event_add(warden->engine_event, NULL) < 0)
		return refuse(err, ENOMEM, "warden: no event");
	say_ready(warden);
	event_base_dispatch(warden->base);
	return 0;
}

void warden_shut_down(struct warden *warden)
{
	/* A keeper's end is the end of everything beneath it; the janitor
	 * removes the cgroups once this process is gone. */
	template_end_all(warden);
	event_free(warden->engine_event);
	event_base_free(warden->base);
}
