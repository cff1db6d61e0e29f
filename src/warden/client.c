/* SPDX-License-Identifier: Apache-2.0 */
/* client: an engine's connection, its requests by a table, and whose turn it is.
 *
 * Each message has a row: its handler, whether it is about a claim, and in which
 * states of the claim's cell it may come. What does not fit ends the connection,
 * and with it the client's runs: an engine is our own code, so a message out of
 * order is a bug or an attack, and neither is to be guessed at.
 *
 * Fairness. At most `runs` claims are admitted at one moment; the others wait
 * with their client. When one ends, the client that has waited longest for its
 * turn gets one more. While others are connected, a client leaves a quarter of
 * the places to them. */
#include "warden/warden.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void admit(struct warden *warden);

void client_say(struct client *client, const struct bytes *frame, const int *fds, size_t count)
{
	/* Ended later: whoever says something still needs it. A client that lets
	 * its messages pile up is as good as gone. */
	if (frame_send(client->socket, frame, fds, count) < 0)
		event_active(client->event, EV_TIMEOUT, 0);
}

void client_say_failed(struct client *client, uint64_t id, int number, const char *why)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, id);

	frame_put_text(&frame, FIELD_TEXT, why);
	frame_put_number(&frame, FIELD_ERRNO, (uint64_t)number);
	frame_end(&frame, at);
	client_say(client, &frame, NULL, 0);
}

void claim_end(struct claim *claim)
{
	struct client *client = claim->client;
	struct warden *warden = client->warden;

	if (claim->session)
		session_give_up(claim);
	if (claim->admitted) {
		client->running--;
		warden->running--;
	} else {
		client->queued--;
		warden->queued--;
	}
	TAILQ_REMOVE(&client->claims, claim, entry);
	bytes_free(&claim->request);
	close_fd(&claim->request_fd);
	free(claim);
	admit(warden);
	warden_drained(warden);
}

void claim_fail(struct claim *claim, int number, const char *why)
{
	client_say_failed(claim->client, claim->id, number, why);
	claim_end(claim);
}

/* An admitted claim without a cell waits somewhere. */
static void stop_waiting(struct claim *claim)
{
	if (claim->admitted && !claim->session)
		TAILQ_REMOVE(&claim->pool->waiting, claim, turn);
}

static bool may_run(const struct client *client)
{
	const struct warden *warden = client->warden;
	uint64_t runs = warden->serving.runs;
	uint64_t others = runs / 4 > 0 ? runs / 4 : 1;
	bool alone = warden->client_count == (warden->daemon ? 2 : 1); /* with the owner */

	if (client->queued == 0)
		return false;
	if (!runs)
		return true;
	return warden->running < runs && (alone || runs == 1 || client->running < runs - others);
}

/* As many as may run; the client that got one goes to the end of the line. */
static void admit(struct warden *warden)
{
	struct client *client, *next;

	for (client = TAILQ_FIRST(&warden->clients); client; client = next) {
		struct claim *claim;

		next = TAILQ_NEXT(client, entry);
		if (!may_run(client))
			continue;
		TAILQ_FOREACH(claim, &client->claims, entry)
		if (!claim->admitted)
			break;
		claim->admitted = true;
		client->queued--;
		warden->queued--;
		client->running++;
		warden->running++;
		warden->runs_total++;
		TAILQ_REMOVE(&warden->clients, client, entry);
		TAILQ_INSERT_TAIL(&warden->clients, client, entry);
		/* May end the claim, and so come here again: begin anew. */
		if (claim->session)
			session_take(claim);
		else
			pool_take(claim->pool, claim);
		next = TAILQ_FIRST(&warden->clients);
	}
}

void clients_expire(struct warden *warden)
{
	int64_t patience = (int64_t)warden->serving.queue_ms * 1000, now = now_us();
	struct client *client;
	struct claim *claim, *next;
	char why[100];

	snprintf(why, sizeof why, "busy: no cell was free within %llu ms",
		 (unsigned long long)warden->serving.queue_ms);
	TAILQ_FOREACH(client, &warden->clients, entry)
	for (claim = TAILQ_FIRST(&client->claims); claim; claim = next) {
		next = TAILQ_NEXT(claim, entry);
		if (claim->cell || claim->ended || now - claim->asked_us <= patience)
			continue;
		stop_waiting(claim);
		warden->refused_total++;
		claim_fail(claim, EBUSY, why);
		next = TAILQ_FIRST(&client->claims);
	}
}

static struct claim *find_claim(struct client *client, uint64_t id)
{
	struct claim *claim;

	TAILQ_FOREACH(claim, &client->claims, entry)
	if (claim->id == id)
		break;
	return claim;
}

struct handler_context {
	struct client *client;
	const struct frame *frame;
	struct claim *claim; /* or NULL */
	int *fds;
	size_t fd_count;
};

static int read_claim(const struct frame *frame, struct claim *claim, struct bytes *modules,
		      struct span *name, struct span *session, struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct field field;
	uint64_t single = 0;
	int r = 0;

	while (r >= 0 && (r = frame_next_field(&fields, &field)) == 1) {
		if (field.name == FIELD_LIMITS)
			r = limits_decode(field.value, &claim->limits, err);
		else if (field.name == FIELD_MORE)
			r = field_number(&field, &single);
		else if (field.name == FIELD_NAME)
			*name = field.value;
		else if (field.name == FIELD_SESSION)
			*session = field.value;
		else if (field.name == FIELD_MODULE) {
			bytes_append(modules, field.value.data, field.value.length);
			bytes_append_text(modules, "\n");
		}
	}
	claim->single = single != 0;
	return r < 0 && !err->number ? fail(err, -r, "warden: ACQUIRE") : r;
}

/* What is to be run, and how it is watched: of START, or of an ACQUIRE that says
 * both at once. */
static int read_start(struct handler_context *context, struct claim *claim, struct error *err)
{
	struct reader fields = frame_fields(context->frame);
	uint64_t mode = WATCH_STRICT;
	struct field field;

	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_WATCH)
			field_number(&field, &mode);
		else if (field.name == FIELD_PROBE)
			claim->probing = true;
		else if (field.name == FIELD_STDIN)
			claim->feeds = true;
		else if (field.name == FIELD_REQUEST)
			bytes_append(&claim->request, field.value.data, field.value.length);
	}
	if (context->fd_count == 1)
		claim->request_fd = take_fd(&context->fds[0]);
	if (claim->request.failed || (claim->request.length > 0 && claim->request_fd >= 0))
		return refuse(err, EBADMSG, "warden: a request twice");
	claim->watch_mode = mode <= WATCH_STRICT ? (enum watch_mode)mode : WATCH_STRICT;
	claim->started = claim->request.length > 0 || claim->request_fd >= 0;
	return 0;
}

static int handle_start(struct handler_context *context, struct error *err)
{
	struct claim *claim = context->claim;
	int r;

	if (claim->started)
		return refuse(err, EBADMSG, "warden: START twice");
	r = read_start(context, claim, err);
	if (r < 0)
		return r;
	if (!claim->started)
		return refuse(err, EBADMSG, "warden: START without a request");
	/* A session's may be returning to its checkpoint just now: it starts then. */
	if (claim->cell && claim->cell->state == CELL_PARKED)
		cell_start(claim->cell);
	return 0;
}

static int handle_acquire(struct handler_context *context, struct error *err)
{
	struct client *client = context->client;
	struct warden *warden = client->warden;
	struct claim *claim = calloc(1, sizeof *claim);
	struct span name = {NULL, 0}, session = {NULL, 0};
	autobytes modules = {0};
	char why[100];
	int r;

	if (!claim)
		return fail(err, ENOMEM, "warden: claim");
	claim->client = client;
	claim->id = context->frame->id;
	claim->limits = limits_default();
	claim->request_fd = -1;
	claim->asked_us = now_us();
	r = read_claim(context->frame, claim, &modules, &name, &session, err);
	if (r == 0)
		r = read_start(context, claim, err);
	if (r < 0) {
		bytes_free(&claim->request);
		close_fd(&claim->request_fd);
		free(claim);
		return r;
	}
	TAILQ_INSERT_TAIL(&client->claims, claim, entry);
	client->queued++;
	warden->queued++;
	if (session.length > 0) {
		claim->session = session_find(warden, session);
		if (!claim->session) {
			snprintf(why, sizeof why, "there is no session %.*s",
				 session.length < 36 ? (int)session.length : 36,
				 (const char *)session.data);
			claim_fail(claim, ENOENT, why);
			return 0;
		}
		admit(warden);
		return 0;
	}
	claim->pool = warden->daemon ? pool_choose(warden, name, &modules, err)
				     : pool_get(warden, &modules, err);
	if (!claim->pool) {
		claim_fail(claim, err->number, err->text);
		return 0;
	}
	admit(warden);
	claim = find_claim(client, context->frame->id);
	if (claim && !claim->admitted && warden->serving.runs &&
	    warden->queued > warden->serving.queue) {
		warden->refused_total++;
		snprintf(why, sizeof why, "busy: %u runs go on and %u requests wait",
			 warden->running, warden->queued - 1);
		claim_fail(claim, EBUSY, why);
	}
	return 0;
}

static void say_killed(struct claim *claim, uint64_t reason)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_ENDED, claim->id);

	frame_put_number(&frame, FIELD_ENDING, ENDING_KILLED);
	frame_put_number(&frame, FIELD_REASON, reason);
	frame_end(&frame, at);
	client_say(claim->client, &frame, NULL, 0);
}

static int handle_kill(struct handler_context *context, struct error *err)
{
	uint64_t reason = frame_number(context->frame, FIELD_REASON);
	struct claim *claim = context->claim;

	/* What did not begin has done nothing to its session. */
	if (claim->cell && claim->session && !claim->begun) {
		say_killed(claim, reason);
		claim_end(claim);
		return 0;
	}
	if (claim->cell) {
		cell_kill(claim->cell, ENDING_KILLED, reason);
		return 0;
	}
	if (claim->ended)
		return 0;
	stop_waiting(claim);
	say_killed(claim, reason);
	claim_end(claim);
	return 0;
}

static int handle_release(struct handler_context *context, struct error *err)
{
	struct claim *claim = context->claim;

	/* Its session may have ended meanwhile. A run that goes on is given up. */
	if (claim->session)
		session_release(claim, context->fd_count == 1 ? take_fd(&context->fds[0]) : -1);
	else if (claim->ended)
		claim_end(claim);
	return 0;
}

static int handle_open_session(struct handler_context *context, struct error *err)
{
	return session_open(context->client, context->frame, err);
}

static int handle_act(struct handler_context *context, struct error *err)
{
	return session_act(context->client, context->frame, err);
}

static int handle_sessions(struct handler_context *context, struct error *err)
{
	return session_list(context->client, context->frame, err);
}

static int handle_report(struct handler_context *context, struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_REPORT, context->frame->id);

	report_write(context->client->warden, &frame);
	frame_end(&frame, at);
	client_say(context->client, &frame, NULL, 0);
	return 0;
}

static int handle_template(struct handler_context *context, struct error *err)
{
	return warden_add_pool(context->client->warden, context->frame, err);
}

static int handle_serve(struct handler_context *context, struct error *err)
{
	if (context->fd_count != 1)
		return refuse(err, EBADMSG, "warden: SERVE without a socket");
	return warden_serve(context->client->warden, context->frame, &context->fds[0], err);
}

static int handle_drain(struct handler_context *context, struct error *err)
{
	return warden_drain(context->client->warden, err);
}

#define STATE(name) (1u << (name))
#define ANY_STATE   0xffffu

static const struct {
	enum message type;
	bool about_claim, owners;
	unsigned states; /* of its cell, if it has one */
	int (*handle)(struct handler_context *, struct error *);
} handlers[] = {
	{MESSAGE_ACQUIRE, false, false, 0, handle_acquire},
	{MESSAGE_START, true, false, STATE(CELL_PARKED) | STATE(CELL_RESTORING), handle_start},
	{MESSAGE_KILL, true, false, ANY_STATE, handle_kill},
	{MESSAGE_RELEASE, true, false, ANY_STATE, handle_release},
	{MESSAGE_OPEN_SESSION, false, false, 0, handle_open_session},
	{MESSAGE_ACT, false, false, 0, handle_act},
	{MESSAGE_SESSIONS, false, false, 0, handle_sessions},
	{MESSAGE_REPORT, false, false, 0, handle_report},
	{MESSAGE_TEMPLATE, false, true, 0, handle_template},
	{MESSAGE_SERVE, false, true, 0, handle_serve},
	{MESSAGE_DRAIN, false, true, 0, handle_drain},
};

static int dispatch(struct handler_context *context, struct error *err)
{
	const struct frame *frame = context->frame;
	struct client *client = context->client;

	for (size_t i = 0; i < ARRAY_LENGTH(handlers); i++) {
		if (handlers[i].type != (enum message)frame->type)
			continue;
		if (handlers[i].owners && client != client->warden->owner)
			break;
		context->claim = find_claim(client, frame->id);
		if (handlers[i].type == MESSAGE_ACQUIRE && context->claim)
			return refuse(err, EBADMSG, "warden: run %llu exists already",
				      (unsigned long long)frame->id);
		/* A run that ended meanwhile is no error of the engine's. */
		if (handlers[i].about_claim && !context->claim)
			return 0;
		if (handlers[i].about_claim && context->claim->cell &&
		    !(handlers[i].states & STATE(context->claim->cell->state))) {
			/* It may have been killed while the message was under way. */
			if (context->claim->cell->state >= CELL_STOPPING)
				return 0;
			break;
		}
		return handlers[i].handle(context, err);
	}
	return refuse(err, EBADMSG, "warden: message %d is not for now", frame->type);
}

static void on_client(evutil_socket_t socket, short what, void *argument)
{
	struct client *client = argument;
	struct warden *warden = client->warden;
	struct error err = {0};
	struct frame frame;
	int fds[FRAME_FDS_MAX];
	size_t count = 0;
	struct handler_context context = {.client = client, .frame = &frame, .fds = fds};
	int r;

	if (what & EV_TIMEOUT) { /* client_say() gave it up */
		client_gone(client);
		return;
	}
	r = frame_receive(socket, &warden->buffer, &frame, fds, &count);
	if (r == -EAGAIN)
		return;
	if (r == 0) {
		client_gone(client);
		return;
	}
	context.fd_count = count;
	r = r < 0 ? fail(&err, -r, "warden: receive") : dispatch(&context, &err);
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (r < 0) {
		client_say_failed(client, 0, err.number, err.text);
		warden->exit_status = client == warden->owner;
		client_gone(client);
	}
}

static void say_ready(struct client *client)
{
	const struct cgroup_root *cgroups = &client->warden->cgroups;
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_READY, 0);

	frame_put_text(&frame, FIELD_CGROUP, cgroup_mode_name(cgroups->mode));
	if (cgroups->why[0])
		frame_put_text(&frame, FIELD_NOTE, cgroups->why);
	frame_end(&frame, at);
	client_say(client, &frame, NULL, 0);
}

struct client *client_add(struct warden *warden, int socket, struct error *err)
{
	struct client *client = calloc(1, sizeof *client);

	if (!client) {
		fail(err, ENOMEM, "warden: client");
		return NULL;
	}
	client->warden = warden;
	client->socket = socket;
	TAILQ_INIT(&client->claims);
	evutil_make_socket_nonblocking(socket);
	client->event = warden_event(warden, socket, EV_READ | EV_PERSIST, PRIORITY_ANSWER,
				     on_client, client);
	if (!client->event) {
		free(client);
		fail(err, ENOMEM, "warden: client");
		return NULL;
	}
	TAILQ_INSERT_TAIL(&warden->clients, client, entry);
	warden->client_count++;
	say_ready(client);
	return client;
}

/* Those that have no cell yet: the end of the run before would begin one of them. */
static void end_waiting_claims(struct client *client)
{
	struct claim *claim, *next;

	for (claim = TAILQ_FIRST(&client->claims); claim; claim = next) {
		next = TAILQ_NEXT(claim, entry);
		if (claim->cell || claim->ended)
			continue;
		stop_waiting(claim);
		claim_end(claim);
	}
}

void client_gone(struct client *client)
{
	struct warden *warden = client->warden;

	if (client == warden->owner) {
		warden_stop(warden, warden->exit_status);
		return;
	}
	TAILQ_REMOVE(&warden->clients, client, entry);
	warden->client_count--;
	end_waiting_claims(client);
	while (!TAILQ_EMPTY(&client->claims)) {
		struct claim *claim = TAILQ_FIRST(&client->claims);
		struct cell *cell = claim->cell;

		if (cell && !claim->session) {
			cell->claim = NULL;
			cell_kill(cell, ENDING_KILLED, 0);
		}
		claim_end(claim);
	}
	session_forget_asker(client);
	event_free(client->event);
	close(client->socket);
	free(client);
	warden_drained(warden);
}
