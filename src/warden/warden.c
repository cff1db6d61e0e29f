/* SPDX-License-Identifier: Apache-2.0 */
/* warden: its loop, its owner, and how it becomes a daemon's.
 *
 * A cold engine owns its warden and is its only client. The owner of a daemon's
 * warden first names its templates, then hands over a listening socket; the
 * warden accepts connections once every template has been loaded. The owner's
 * end is the end of everything. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_US          1000000
#define DRAINED_AFTER_US 500000

void set_timer(struct event *event, int64_t us)
{
	struct timeval delay = {us / 1000000, us % 1000000};

	evtimer_add(event, &delay);
}

struct event *warden_event(struct warden *warden, int fd, short what, enum priority priority,
			   event_callback_fn callback, void *argument)
{
	struct event *event = event_new(warden->base, fd, what, callback, argument);

	if (!event)
		return NULL;
	event_priority_set(event, priority);
	if (fd >= 0 && event_add(event, NULL) < 0) {
		event_free(event);
		return NULL;
	}
	return event;
}

void warden_stop(struct warden *warden, int exit_status)
{
	warden->exit_status = exit_status;
	event_base_loopbreak(warden->base);
}

static void on_tick(evutil_socket_t fd, short what, void *argument)
{
	struct warden *warden = argument;
	struct pool *pool;

	TAILQ_FOREACH(pool, &warden->pools, entry)
	pool_tick(pool);
	if (warden->serving.queue_ms)
		clients_expire(warden);
	sessions_expire(warden);
	if (warden->open)
		event_add(warden->listener_event, NULL);
	set_timer(warden->tick, TICK_US);
}

/* The same user, or root, and nobody else: whoever may connect may do what the
 * owner may. */
static bool may_connect(const struct warden *warden, int socket)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == warden->owner_uid || peer.uid == 0);
}

static void on_connection(evutil_socket_t listener, short what, void *argument)
{
	struct warden *warden = argument;
	struct error err = {0};
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (socket < 0) {
		/* Out of descriptors: not again before the next tick. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			event_del(warden->listener_event);
		return;
	}
	if (!may_connect(warden, socket) ||
	    (warden->serving.clients && warden->client_count > warden->serving.clients) ||
	    !client_add(warden, socket, &err))
		close(socket);
}

void warden_pool_ready(struct warden *warden)
{
	autobytes frame = {0};
	struct pool *pool;
	size_t at;

	if (!warden->daemon || warden->open || warden->listener < 0)
		return;
	TAILQ_FOREACH(pool, &warden->pools, entry)
	if (!pool->current || !pool->current->loaded ||
	    pool->parked_count < (pool->least < pool->target ? pool->least : pool->target))
		return;
	if (!warden->listener_event)
		warden->listener_event =
			warden_event(warden, warden->listener, EV_READ | EV_PERSIST,
				     PRIORITY_ANSWER, on_connection, warden);
	if (!warden->listener_event) {
		warden_stop(warden, 1);
		return;
	}
	warden->open = true;
	at = frame_begin(&frame, MESSAGE_SERVING, 0);
	frame_end(&frame, at);
	client_say(warden->owner, &frame, NULL, 0);
}

void warden_pool_failed(struct warden *warden, const char *why)
{
	if (warden->open)
		return; /* it was loaded once: it is tried again */
	client_say_failed(warden->owner, 0, EPROTO, why);
	warden_stop(warden, 1);
}

int warden_add_pool(struct warden *warden, const struct frame *frame, struct error *err)
{
	struct template_config config;
	autobytes modules = {0};
	struct pool *pool = NULL;
	int r;

	if (warden->listener >= 0 || warden->draining)
		return refuse(err, EBADMSG, "warden: TEMPLATE after SERVE");
	r = config_decode_template(frame, &config, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < config.module_count; i++)
		bytes_append_format(&modules, "%s\n", config.modules[i]);
	if (modules.failed)
		fail(err, ENOMEM, "warden: template");
	else
		pool = pool_make(warden, config.name, &modules, err);
	if (pool) {
		bytes_append_text(&pool->warm_up, config.warm_up);
		pool->least = pool->target = (unsigned)config.pool_min;
		pool->most = (unsigned)config.pool_max;
		warden->daemon = true;
	}
	template_config_free(&config);
	return pool ? 0 : -err->number;
}

/* Cells are many, and each has a dozen descriptors here. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int warden_serve(struct warden *warden, const struct frame *frame, int *listener, struct error *err)
{
	struct pool *pool;
	int r;

	if (!warden->daemon || warden->listener >= 0 || warden->draining)
		return refuse(err, EBADMSG, "warden: SERVE twice, or without templates");
	r = config_decode_serve(frame, &warden->serving, err);
	if (r < 0)
		return r;
	raise_descriptor_limit();
	warden->listener = take_fd(listener);
	evutil_make_socket_nonblocking(warden->listener);
	warden->started_us = now_us();
	TAILQ_FOREACH(pool, &warden->pools, entry)
	{
		pool->used_us = now_us();
		pool->current = template_start(pool, err);
		if (!pool->current)
			return -err->number;
	}
	set_timer(warden->tick, TICK_US);
	return 0;
}

static void on_drained(evutil_socket_t fd, short what, void *argument)
{
	struct warden *warden = argument;

	if (warden->running + warden->queued == 0)
		warden_stop(warden, 0);
}

int warden_drain(struct warden *warden, struct error *err)
{
	if (warden->listener < 0 || warden->draining)
		return refuse(err, EBADMSG, "warden: DRAIN twice, or before SERVE");
	warden->drained = warden_event(warden, -1, 0, PRIORITY_BEHIND, on_drained, warden);
	if (!warden->drained)
		return fail(err, ENOMEM, "warden: drain");
	warden->draining = true;
	warden->open = false;
	free_event(&warden->listener_event);
	close_fd(&warden->listener);
	warden_drained(warden);
	return 0;
}

void warden_drained(struct warden *warden)
{
	/* The owner is one of them. A client that has just connected is about to
	 * ask for its cell. */
	if (warden->draining && warden->client_count == 1)
		warden_stop(warden, 0);
	else if (warden->draining && warden->running + warden->queued == 0)
		set_timer(warden->drained, DRAINED_AFTER_US);
}

/* libevent would write to stderr; what matters comes back as an error. */
static void say_nothing(int severity, const char *message)
{
}

int warden_run(struct warden *warden, int owner, struct error *err)
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
	event_base_priority_init(warden->base, PRIORITY_COUNT);
	TAILQ_INIT(&warden->pools);
	TAILQ_INIT(&warden->templates);
	TAILQ_INIT(&warden->cells);
	TAILQ_INIT(&warden->sessions);
	TAILQ_INIT(&warden->clients);
	warden->listener = -1;
	warden->tick = warden_event(warden, -1, 0, PRIORITY_RUN, on_tick, warden);
	warden->owner = warden->tick ? client_add(warden, owner, err) : NULL;
	if (!warden->owner)
		return refuse(err, ENOMEM, "warden: no event");
	event_base_dispatch(warden->base);
	return 0;
}

void warden_shut_down(struct warden *warden)
{
	/* A keeper's end is the end of everything beneath it; the janitor
	 * removes the cgroups once this process is gone. What is left is memory
	 * and descriptors, which go with the process. */
	template_end_all(warden);
}
