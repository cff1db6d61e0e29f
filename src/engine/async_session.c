/* SPDX-License-Identifier: Apache-2.0 */
/* async_session: what is asked about sessions, see async.h.
 *
 * A question goes to the warden as a query, whose answer makes an event active: so it is
 * told from the loop, like the end of a run. After a return to a checkpoint the workspace
 * is listed once more, since what came back with it is not the next run's doing. */
#include "engine/async.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asking {
	struct query query;
	struct execpy_engine *engine;
	struct session_question question;   /* its texts are the next three, its options are not */
	char (*ids)[EXECPY_SESSION_ID_MAX]; /* of EACH, one after the other */
	size_t next;
	struct execpy_session_info *infos;
	size_t info_count;
	char id[EXECPY_SESSION_ID_MAX], name[EXECPY_SESSION_NAME_MAX], template[64];
	struct run *run; /* the hold that follows a return */
	struct hold hold;
	struct execpy_session_info info;
	session_answered *done;
	void *user;
	void (*released)(void *user); /* by a session that was given up; or NULL */
	void *released_user;
};

static void free_asking(struct asking *asking)
{
	event_free(asking->query.event);
	bytes_free(&asking->query.answer);
	free(asking->ids);
	free(asking->infos);
	free(asking);
}

static void tell(struct asking *asking, const struct execpy_session_info *infos, size_t count,
		 const struct error *why)
{
	static const struct error none = {0};

	asking->done(asking->user, infos, count, why ? why : &none);
	free_asking(asking);
}

static void tell_list(struct asking *asking)
{
	struct reader fields = reader_of(bytes_span(&asking->query.answer));
	struct execpy_session_info info, *infos;
	size_t count = 0;
	struct error err = {0};

	while (session_next(&fields, &info))
		count++;
	infos = calloc(count + 1, sizeof *infos);
	if (!infos) {
		fail(&err, ENOMEM, "sessions");
		tell(asking, NULL, 0, &err);
		return;
	}
	fields = reader_of(bytes_span(&asking->query.answer));
	count = 0;
	while (session_next(&fields, &infos[count]))
		count++;
	tell(asking, infos, count, NULL);
	free(infos);
}

/* Asks about the next; when there is none all is told. */
static void ask_next(struct asking *asking)
{
	struct session_question question = asking->question;
	struct error err = {0};

	if (asking->next == question.id_count) {
		tell(asking, asking->infos, asking->info_count, NULL);
		return;
	}
	question.id = asking->ids[asking->next++];
	bytes_free(&asking->query.answer);
	asking->query.answered = false;
	asking->query.failed = (struct error){0};
	if (session_ask(asking->engine, &question, &asking->query, &err) < 0)
		tell(asking, NULL, 0, &err);
}

static void take_next(struct asking *asking)
{
	struct execpy_session_info *info = &asking->infos[asking->info_count];
	struct error err = {0};

	/* What is gone is in no list. */
	if (session_read_answer(&asking->query, info, NULL, &err) == 0 && !info->ended[0])
		asking->info_count++;
	ask_next(asking);
}

static int only_look(void *user, int workspace, const struct deadline *deadline, struct error *err)
{
	return 0;
}

static void on_looked(void *user, struct execpy_result *result, const struct error *why)
{
	struct asking *asking = user;

	asking->run = NULL;
	/* The session is where it was to return to, whatever became of the look. */
	tell(asking, &asking->info, 1, result ? NULL : why);
	execpy_result_free(result);
}

/* Files that came back are known before the next run begins. */
static void look_again(struct asking *asking)
{
	const struct async async = {
		.session = asking->id, .hold = &asking->hold, .done = on_looked, .user = asking};
	struct error err = {0};

	asking->hold = (struct hold){.use = only_look, .changes = true};
	asking->run = async_begin(asking->engine, NULL, &async, &err);
	if (!asking->run)
		tell(asking, NULL, 0, &err);
}

/* What is said of a question that failed. */
static void explain(const struct asking *asking, struct error *err)
{
	if (asking->question.kind == SESSION_ASK_INFO && err->number == ENOENT)
		refuse(err, ENOENT, "there is no session %.39s", asking->id);
	else if (asking->question.name && err->number != ENOENT && err->number != EIDRM)
		fail_wrap(err, "checkpoint %.63s", asking->name);
}

static bool returns(const struct session_question *question)
{
	return question->kind == SESSION_ASK_ACT &&
	       (question->action == SESSION_ROLLBACK || question->action == SESSION_UNDO);
}

static bool is_fork(const struct session_question *question)
{
	return question->kind == SESSION_ASK_ACT && question->action == SESSION_FORK;
}

static bool tells_several(const struct session_question *question)
{
	return question->kind == SESSION_ASK_LIST || is_fork(question);
}

static void on_answered(evutil_socket_t fd, short what, void *argument)
{
	struct asking *asking = argument;
	const struct session_question *question = &asking->question;
	bool ends = question->kind == SESSION_ASK_ACT && question->action == SESSION_END;
	struct error err = {0};
	int r = query_end(asking->engine, &asking->query, &err);

	if (r == 0 && tells_several(question)) {
		tell_list(asking);
		return;
	}
	if (r == 0 && question->kind == SESSION_ASK_EACH) {
		take_next(asking);
		return;
	}
	if (r == 0 && !ends)
		r = session_read_answer(&asking->query, &asking->info, NULL, &err);
	if (r < 0) {
		explain(asking, &err);
		tell(asking, NULL, 0, &err);
		return;
	}
	/* A warden that is no daemon's knows no names of templates. */
	if (question->kind == SESSION_ASK_OPEN && !asking->info.template[0])
		snprintf(asking->info.template, sizeof asking->info.template, "%s",
			 asking->template);
	if (returns(question))
		look_again(asking);
	else
		tell(asking, &asking->info, ends ? 0 : 1, NULL);
}

static int copy_ids(struct asking *asking, struct error *err)
{
	size_t count = asking->question.id_count;

	asking->ids = calloc(count + 1, sizeof *asking->ids);
	asking->infos = calloc(count + 1, sizeof *asking->infos);
	if (!asking->ids || !asking->infos)
		return fail(err, ENOMEM, "sessions");
	if (count > 0)
		memcpy(asking->ids, asking->question.ids, count * sizeof *asking->ids);
	asking->question.ids = NULL;
	return 0;
}

static void copy_question(struct asking *asking, const struct session_question *question)
{
	asking->question = *question;
	asking->question.options = NULL;
	snprintf(asking->id, sizeof asking->id, "%s", question->id ? question->id : "");
	snprintf(asking->name, sizeof asking->name, "%s", question->name ? question->name : "");
	if (question->options)
		snprintf(asking->template, sizeof asking->template, "%s",
			 session_template(question->options->template));
}

static int begin(struct asking *asking, const struct session_question *question, struct error *err)
{
	struct session_question first = *question;

	if (question->kind == SESSION_ASK_EACH) {
		if (copy_ids(asking, err) < 0)
			return -err->number;
		if (question->id_count == 0)
			return refuse(err, ENOENT, "no session is named");
		first.id = asking->ids[asking->next++];
	}
	if (question->kind == SESSION_ASK_ACT && question->action == SESSION_END)
		session_forget(asking->engine, question->id);
	return session_ask(asking->engine, &first, &asking->query, err);
}

struct asking *async_ask_session(struct execpy_engine *engine,
				 const struct session_question *question, session_answered *done,
				 void *user, struct error *err)
{
	struct asking *asking = calloc(1, sizeof *asking);

	if (asking)
		asking->query.event = event_new(engine->base, -1, 0, on_answered, asking);
	if (!asking || !asking->query.event) {
		free(asking);
		fail(err, ENOMEM, "session");
		return NULL;
	}
	asking->engine = engine;
	asking->done = done;
	asking->user = user;
	copy_question(asking, question);
	if (begin(asking, question, err) < 0) {
		free_asking(asking);
		return NULL;
	}
	return asking;
}

/* Whether it ended or was gone before: nothing of it is there any more. */
static void on_ended(void *user, const struct execpy_session_info *infos, size_t count,
		     const struct error *why)
{
	const struct asking *asking = user;

	if (asking->released)
		asking->released(asking->released_user);
}

/* Who is told of the end, instead of who asked. */
static void answer_to(struct asking *asking, session_answered *done, void (*released)(void *user),
		      void *user)
{
	asking->done = done;
	asking->user = asking;
	asking->released = released;
	asking->released_user = user;
}

void async_end_session(struct execpy_engine *engine, const char *id, void (*released)(void *user),
		       void *user)
{
	const struct session_question question = {
		.kind = SESSION_ASK_ACT, .action = SESSION_END, .id = id};
	struct asking *asking =
		async_ask_session(engine, &question, on_ended, NULL, &(struct error){0});

	if (asking)
		answer_to(asking, on_ended, released, user);
	else if (released)
		released(user);
}

/* They came to be, and nobody is there for them any more. */
static void end_again(void *user, const struct execpy_session_info *infos, size_t count,
		      const struct error *why)
{
	const struct asking *asking = user;
	size_t asked = is_fork(&asking->question) ? asking->question.count : 1;

	for (size_t i = 0; i < count; i++)
		async_end_session(asking->engine, infos[i].id, i < asked ? asking->released : NULL,
				  asking->released_user);
	for (size_t i = count; i < asked; i++)
		if (asking->released)
			asking->released(asking->released_user);
}

void async_abandon_asking(struct asking *asking, void (*released)(void *user), void *user)
{
	if (!asking)
		return;
	if (asking->question.kind == SESSION_ASK_OPEN || is_fork(&asking->question)) {
		answer_to(asking, end_again, released, user);
		return;
	}
	if (asking->run)
		async_abandon(asking->run);
	else
		TAILQ_REMOVE(&asking->engine->queries, &asking->query, entry);
	free_asking(asking);
}
