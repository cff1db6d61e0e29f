/* SPDX-License-Identifier: Apache-2.0 */
/* engine: one warden, its socket, and the runs that it serves. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *execpy_version(void)
{
	return EXECPY_VERSION;
}

int engine_say(struct execpy_engine *engine, const struct bytes *frame, const int *fds,
	       size_t count, struct error *err)
{
	struct pollfd polled = {.fd = engine->socket, .events = POLLOUT};
	int r = frame_send(engine->socket, frame, fds, count);

	/* Many messages at once, such as files: it takes them in its time. */
	while (r == -EAGAIN && poll(&polled, 1, WARDEN_TAKES_MS) > 0)
		r = frame_send(engine->socket, frame, fds, count);
	/* A warden that ended has said why, and its end is seen on its socket. */
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? fail(err, -r, "engine: tell the warden") : 0;
}

static void died(struct execpy_engine *engine, const char *why)
{
	struct run *run, *next;
	struct query *query;

	if (engine->dead)
		return;
	engine->dead = true;
	snprintf(engine->why, sizeof engine->why, "%s", why);
	if (engine->socket_event)
		event_del(engine->socket_event);
	for (run = TAILQ_FIRST(&engine->runs); run; run = next) {
		next = TAILQ_NEXT(run, entry);
		run_engine_died(run);
	}
	TAILQ_FOREACH(query, &engine->queries, entry)
	event_active(query->event, EV_TIMEOUT, 0);
}

static void on_message(evutil_socket_t socket, short what, void *argument)
{
	struct execpy_engine *engine = argument;
	char text[ERROR_TEXT_MAX] = "the warden failed";
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	struct run *run;
	int r = frame_receive(socket, &engine->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		died(engine, r == 0 ? "the warden ended" : "the warden sent what is no message");
		return;
	}
	if (frame.type == MESSAGE_READY) {
		frame_text(&frame, FIELD_CGROUP, engine->cgroup_mode, sizeof engine->cgroup_mode);
		frame_text(&frame, FIELD_NOTE, engine->cgroup_why, sizeof engine->cgroup_why);
		engine->ready = true;
	} else if (frame.type == MESSAGE_FAILED && frame.id == 0) {
		frame_text(&frame, FIELD_TEXT, text, sizeof text);
		died(engine, text);
	} else {
		TAILQ_FOREACH(run, &engine->runs, entry)
		if (run->id == frame.id)
			break;
		if (!run)
			query_message(engine, &frame);
		if (run)
			run_message(run, &frame, fds, count);
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
}

static void on_cancel(evutil_socket_t fd, short what, void *argument)
{
	struct execpy_engine *engine = argument;
	uint64_t count;
	struct run *run;

	if (read(fd, &count, sizeof count) != sizeof count)
		return;
	TAILQ_FOREACH(run, &engine->runs, entry)
	run_cancel(run);
}

void execpy_cancel(struct execpy_engine *engine)
{
	const uint64_t one = 1;
	ssize_t r = write(engine->cancel_fd, &one, sizeof one);

	(void)r; /* full means that it was asked already */
}

/* libevent would write to stderr; what matters comes back as an error. */
static void say_nothing(int severity, const char *message)
{
}

static int listen_to_warden(struct execpy_engine *engine, struct error *err)
{
	evutil_make_socket_nonblocking(engine->socket);
	errno = 0;
	engine->socket_event =
		event_new(engine->base, engine->socket, EV_READ | EV_PERSIST, on_message, engine);
	if (!engine->socket_event || event_add(engine->socket_event, NULL) < 0)
		return fail(err, errno ? errno : ENOMEM, "engine: watch the warden (epoll_ctl)");
	return 0;
}

static int start(struct execpy_engine *engine, const struct execpy_options *options,
		 struct error *err)
{
	struct event_config *config = event_config_new();
	int r;

	engine->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->cancel_fd < 0)
		return fail(err, errno, "engine: eventfd");
	r = descriptors_left(DESCRIPTORS_OF_EVENT_BASE, err);
	if (r < 0) {
		event_config_free(config);
		return r;
	}
	event_set_log_callback(say_nothing);
	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK |
						      EVENT_BASE_FLAG_PRECISE_TIMER);
		engine->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!engine->base)
		return refuse(err, ENOMEM, "engine: no event loop");
	r = remote_connect(engine, options, err);
	if (r == 0)
		r = spawn_warden(engine, options, err);
	if (r < 0)
		return r;
	r = listen_to_warden(engine, err);
	if (r < 0)
		return r;
	engine->cancel_event =
		event_new(engine->base, engine->cancel_fd, EV_READ | EV_PERSIST, on_cancel, engine);
	if (!engine->cancel_event || event_add(engine->cancel_event, NULL) < 0)
		return fail(err, errno ? errno : ENOMEM, "engine: watch for cancels (epoll_ctl)");
	return 0;
}

int engine_revive(struct execpy_engine *engine, struct error *err)
{
	const struct execpy_options options = {.socket = engine->socket_path,
					       .dial = engine->dial,
					       .dial_user = engine->dial_user};
	int r;

	if (!engine->dead || !engine->remote)
		return 0;
	if (engine->socket_event)
		event_free(engine->socket_event);
	engine->socket_event = NULL;
	close_fd(&engine->socket);
	r = remote_connect(engine, &options, err);
	if (r == 1)
		r = listen_to_warden(engine, err);
	if (r < 0) {
		snprintf(engine->why, sizeof engine->why, "%s", err->text);
		return r;
	}
	engine->dead = engine->ready = false;
	sessions_forget(engine); /* they were the other warden's */
	return 0;
}

int execpy_open(const struct execpy_options *options, struct execpy_engine **ret_engine,
		struct execpy_error *error)
{
	struct error *err = (struct error *)error;
	struct execpy_engine *engine = calloc(1, sizeof *engine);
	int r;

	if (!engine)
		return fail(err, ENOMEM, "engine");
	engine->socket = engine->cancel_fd = -1;
	engine->single_run = options && options->single_run;
	TAILQ_INIT(&engine->runs);
	TAILQ_INIT(&engine->queries);
	TAILQ_INIT(&engine->known);
	r = start(engine, options, err);
	if (r < 0) {
		execpy_close(engine);
		return r;
	}
	*ret_engine = engine;
	return 0;
}

void execpy_close(struct execpy_engine *engine)
{
	if (!engine)
		return;
	while (!TAILQ_EMPTY(&engine->runs))
		run_free(TAILQ_FIRST(&engine->runs));
	/* Sessions that were given up while they were opened: what is told of them now
	 * connects to no daemon anew. */
	engine->remote = false;
	if (!TAILQ_EMPTY(&engine->queries)) {
		died(engine, "the engine was closed");
		event_base_loop(engine->base, EVLOOP_NONBLOCK);
	}
	sessions_forget(engine);
	/* The warden ends with its socket, and its janitor, the process that was
	 * started, once everything of it is gone. */
	close_fd(&engine->socket);
	if (engine->warden > 0)
		while (waitpid(engine->warden, NULL, 0) < 0 && errno == EINTR)
			;
	if (engine->socket_event)
		event_free(engine->socket_event);
	if (engine->cancel_event)
		event_free(engine->cancel_event);
	if (engine->base)
		event_base_free(engine->base);
	close_fd(&engine->cancel_fd);
	bytes_free(&engine->buffer);
	free(engine->socket_path);
	free(engine);
}

const char *execpy_cgroup_mode(const struct execpy_engine *engine, const char **ret_why)
{
	/* Known once the warden has said READY. */
	while (!engine->ready && !engine->dead)
		event_base_loop(engine->base, EVLOOP_ONCE);
	if (ret_why)
		*ret_why = engine->cgroup_why[0] ? engine->cgroup_why : NULL;
	return engine->cgroup_mode;
}
