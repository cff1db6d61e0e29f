/* SPDX-License-Identifier: Apache-2.0 */
/* session_ask: what clients ask of a session beside runs, and what they are told. */
#include "warden/warden.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void session_put(struct session *session, bool whole, struct bytes *frame)
{
	autobytes body = {0};
	int64_t now = now_us();

	frame_put_text(&body, FIELD_NAME, session->id);
	frame_put_text(&body, FIELD_TYPE, session->template);
	frame_put_number(&body, FIELD_RUNS, session->runs);
	frame_put_number(&body, FIELD_WALL_US, (uint64_t)(now - session->made_us));
	if (!session->cell) {
		frame_put_text(&body, FIELD_TEXT, session->why);
	} else {
		frame_put_number(&body, FIELD_BUSY, session->current != NULL);
		frame_put_number(&body, FIELD_WAIT_US,
				 session->current ? 0 : (uint64_t)(now - session->used_us));
		frame_put_number(&body, FIELD_IDLE_MS, session->idle_ms);
		frame_put_number(&body, FIELD_LIFE_MS, session->life_ms);
		usage_read(session->cell);
		frame_put_number(&body, FIELD_SIZE, session->cell->usage.memory_bytes);
		limits_encode(&session->limits, &body, FIELD_LIMITS);
		bytes_append(&body, session->checkpoints.data, session->checkpoints.length);
		if (whole)
			frame_put(&body, FIELD_POLICY, session->policy.data,
				  session->policy.length);
	}
	frame_put(frame, FIELD_SESSION, body.data, body.length);
}

void session_answer(struct session *session)
{
	struct client *client = session->asker;
	autobytes frame = {0};
	size_t at;

	session->asker = NULL;
	if (!client)
		return;
	at = frame_begin(&frame, MESSAGE_SESSION, session->asked);
	session_put(session, true, &frame);
	bytes_append(&frame, session->lost.data, session->lost.length);
	frame_end(&frame, at);
	client_say(client, &frame, NULL, 0);
}

void session_answer_failed(struct session *session, int number, const char *why)
{
	struct client *client = session->asker;

	session->asker = NULL;
	bytes_clear(&session->later);
	if (client)
		client_say_failed(client, session->asked, number, why);
}

void session_named(struct session *session, const struct frame *frame)
{
	struct reader fields = frame_fields(frame);
	bool is_all = session->step == SESSION_NAMING;
	char text[ERROR_TEXT_MAX] = "";
	struct field field;

	session->naming = 0;
	if (is_all)
		session->step = SESSION_STEADY;
	if (frame->type == MESSAGE_FAILED) {
		frame_text(frame, FIELD_TEXT, text, sizeof text);
		session_answer_failed(session, EINVAL, text);
	} else {
		bytes_clear(&session->checkpoints);
		while (frame_next_field(&fields, &field) == 1)
			if (field.name == FIELD_CHECKPOINT)
				frame_put(&session->checkpoints, FIELD_CHECKPOINT, field.value.data,
					  field.value.length);
		session_answer(session);
	}
	if (is_all)
		session_go_on(session);
}

void session_forget_asker(struct client *client)
{
	struct session *session, *next;

	for (session = TAILQ_FIRST(&client->warden->sessions); session; session = next) {
		next = TAILQ_NEXT(session, entry);
		if (session->asker != client)
			continue;
		session->asker = NULL;
		bytes_clear(&session->later);
		/* Nobody knows its name. */
		if (session->step == SESSION_OPENING) {
			session_end_by_wish(session, "its client went away");
		} else if (session->step == SESSION_BRANCHING) {
			branch_fail(session, EPIPE, "its client went away");
			session_go_on(session);
		}
		next = TAILQ_FIRST(&client->warden->sessions); /* what ends moves */
	}
}

static int interrupt(struct session *session, struct error *err)
{
	struct cell *cell = session->cell;

	if (cell->state != CELL_RUNNING)
		return refuse(err, EINVAL, "session %s: no run goes on", session->id);
	/* As from the run's own client. */
	cell_kill(cell, ENDING_KILLED, KILL_CANCELLED);
	session_answer(session);
	return 0;
}

static int act(struct session *session, const struct frame *frame, enum session_action action,
	       struct error *err)
{
	switch (action) {
	case SESSION_END:
		session->asker = NULL;
		session_end_by_wish(session, "it was ended by its client");
		return 1;
	case SESSION_INTERRUPT:
		return interrupt(session, err);
	case SESSION_CHECKPOINT:
	case SESSION_DROP:
		if (!session->name[0])
			return refuse(err, EINVAL, "a checkpoint has a name of 1 to %d bytes",
				      SESSION_NAME_BYTES_MAX);
		session_name(session, action == SESSION_DROP);
		return 0;
	case SESSION_ROLLBACK:
		session_return(session, CHECKPOINT_NAMED);
		return 0;
	case SESSION_UNDO:
		session_return(session, CHECKPOINT_PREVIOUS);
		return 0;
	case SESSION_FORK:
		return branch_begin(session, frame_number(frame, FIELD_COUNT),
				    frame_number(frame, FIELD_MORE), err);
	default:
		return refuse(err, EBADMSG, "warden: action %d", action);
	}
}

/* Nobody asked for it: its process ended between two runs. */
static bool is_coming_back(const struct session *session)
{
	return !session->current &&
	       (session->step == SESSION_CLEARING || session->step == SESSION_RESUMING);
}

void session_ask_again(struct session *session)
{
	autobytes fields = session->later;
	struct frame frame = {MESSAGE_ACT, session->asked, bytes_span(&fields)};
	struct client *client = session->asker;
	struct error err = {0};

	session->later = (struct bytes){0};
	session->asker = NULL;
	session_act(client, &frame, &err);
}

int session_act(struct client *client, const struct frame *frame, struct error *err)
{
	enum session_action action = (enum session_action)frame_number(frame, FIELD_ACTION);
	char id[40] = "", name[SESSION_NAME_BYTES_MAX + 1] = "";
	struct session *session;
	struct error why = {0};
	int r;

	frame_text(frame, FIELD_SESSION, id, sizeof id);
	frame_text(frame, FIELD_NAME, name, sizeof name);
	session = session_find(client->warden, (struct span){(const uint8_t *)id, strlen(id)});
	if (!session)
		r = refuse(&why, ENOENT, "there is no session %.36s", id);
	else if (!session->cell)
		r = refuse(&why, EIDRM, "session %s has ended: %.200s", session->id, session->why);
	else if (session->asker)
		r = refuse(&why, EBUSY, "session %s: something else was asked of it just now",
			   session->id);
	else if (is_coming_back(session) && action != SESSION_END && action != SESSION_INTERRUPT) {
		session->asker = client;
		session->asked = frame->id;
		r = bytes_append(&session->later, frame->body.data, frame->body.length);
	} else if ((session->current || session->step != SESSION_STEADY) && action != SESSION_END &&
		   action != SESSION_INTERRUPT)
		r = refuse(&why, EBUSY, "session %s: a run goes on", session->id);
	else {
		session->asker = client;
		session->asked = frame->id;
		session->used_us = now_us();
		/* Others may be asked while the judge has yet to look for this name. */
		if (action == SESSION_CHECKPOINT || action == SESSION_DROP ||
		    action == SESSION_ROLLBACK)
			snprintf(session->name, sizeof session->name, "%s", name);
		r = act(session, frame, action, &why);
		if (r < 0)
			session->asker = NULL;
	}
	if (r < 0) {
		client_say_failed(client, frame->id, why.number, why.text);
	} else if (r == 1) {
		autobytes answered = {0};
		size_t at = frame_begin(&answered, MESSAGE_SESSION, frame->id);

		frame_end(&answered, at);
		client_say(client, &answered, NULL, 0);
	}
	return 0;
}

int session_list(struct client *client, const struct frame *frame, struct error *err)
{
	autobytes answered = {0};
	size_t at = frame_begin(&answered, MESSAGE_SESSION, frame->id);
	struct session *session;
	char id[40] = "";

	frame_text(frame, FIELD_SESSION, id, sizeof id);
	TAILQ_FOREACH(session, &client->warden->sessions, entry)
	{
		/* One message holds them all, or as many as fit: the living first asked. */
		if ((id[0] ? strcmp(id, session->id) == 0 : session->cell != NULL) &&
		    session->step != SESSION_OPENING && !session->origin &&
		    answered.length < FRAME_MESSAGE_MAX - 4096)
			session_put(session, id[0] != '\0', &answered);
	}
	frame_end(&answered, at);
	client_say(client, &answered, NULL, 0);
	return 0;
}
