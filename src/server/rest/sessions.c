/* SPDX-License-Identifier: Apache-2.0 */
/* sessions: their life: what is done with them beside running code. */
#include "server/rest/rest.h"

#include "base/cleanup.h"
#include "engine/session_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* When it ends if nobody uses it: text of RFC 3339, or null. */
static void write_expiry(const struct execpy_session_info *info, struct json *json)
{
	uint64_t idle = info->idle_ms > info->unused_ms ? info->idle_ms - info->unused_ms : 0;
	uint64_t life = info->life_ms > info->age_ms ? info->life_ms - info->age_ms : 0;
	struct timespec now;
	struct tm parts;
	char text[40];
	time_t at;

	emit_key(json, "expires_at");
	if ((!info->idle_ms && !info->life_ms) || info->ended[0]) {
		emit_null(json);
		return;
	}
	if (!info->idle_ms || (info->life_ms && life < idle))
		idle = life;
	clock_gettime(CLOCK_REALTIME, &now);
	at = now.tv_sec + (time_t)((idle + (uint64_t)now.tv_nsec / 1000000) / 1000);
	gmtime_r(&at, &parts);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
	emit_string(json, text);
}

static void write_session(const struct execpy_session_info *info, struct json *json)
{
	emit_begin_object(json);
	session_report_members(info, json);
	write_expiry(info, json);
	emit_end_object(json);
}

static void answer(struct rest_call *call, unsigned status, const struct execpy_session_info *info)
{
	struct json json = json_stream_writer(&call->stream);

	write_session(info, &json);
	rest_send(call, status, "application/json");
}

/* --- those that there are -------------------------------------------------------- */

struct list_call {
	struct rest_call call;
	char (*ids)[EXECPY_SESSION_ID_MAX]; /* that are asked about; NULL: all of the daemon */
	size_t id_count;
	void (*next)(struct list_call *list);  /* instead of the list; or NULL */
	struct execpy_session_options options; /* of one that is to be opened */
	struct session_question fork;          /* when branches are to be made */
};

static void release_list(struct rest_call *call)
{
	free(((struct list_call *)call)->ids);
}

static void write_list(struct rest_call *call, unsigned status,
		       const struct execpy_session_info *infos, size_t count)
{
	struct json json = json_stream_writer(&call->stream);

	emit_begin_object(&json);
	emit_key(&json, "sessions");
	emit_begin_array(&json);
	for (size_t i = 0; i < count; i++)
		write_session(&infos[i], &json);
	emit_end_array(&json);
	emit_end_object(&json);
	rest_send(call, status, "application/json");
}

static void on_list(void *user, const struct execpy_session_info *infos, size_t count,
		    const struct error *why)
{
	struct list_call *list = user;

	list->call.asking = NULL;
	if (why->number) {
		rest_fail(&list->call, why);
		return;
	}
	if (list->ids)
		owned_keep(list->call.rest->server, list->call.tenant, list->ids, list->id_count,
			   infos, count);
	if (list->next)
		list->next(list);
	else
		write_list(&list->call, 200, infos, count);
}

/* Asks which sessions of the tenant live. */
static void ask_list(struct list_call *list)
{
	struct rest_call *call = &list->call;
	struct session_question question = {.kind = SESSION_ASK_LIST};
	struct error err = {0};

	if (!owned_all(call->rest->server, call->tenant) || list->next) {
		list->id_count = owned_ids(call->rest->server, call->tenant, &list->ids);
		question = (struct session_question){
			.kind = SESSION_ASK_EACH,
			.ids = (const char(*)[EXECPY_SESSION_ID_MAX])list->ids,
			.id_count = list->id_count};
		if (list->id_count == 0) {
			on_list(list, NULL, 0, &err);
			return;
		}
	}
	call->asking =
		async_ask_session(call->rest->server->engine, &question, on_list, list, &err);
	if (!call->asking)
		rest_fail(call, &err);
}

static struct list_call *new_list(struct exchange *exchange)
{
	struct list_call *list = (struct list_call *)rest_call_new(exchange, sizeof *list);

	if (list)
		list->call.release = release_list;
	return list;
}

void rest_list_sessions(struct exchange *exchange)
{
	struct list_call *list = new_list(exchange);

	if (list)
		ask_list(list);
}

/* Goes on with `next` when the tenant's sessions that live are known. */
static void when_counted(struct list_call *list, unsigned more,
			 void (*next)(struct list_call *list))
{
	list->next = next;
	if (owned_should_count(list->call.tenant, more))
		ask_list(list);
	else
		next(list);
}

/* --- one is opened ---------------------------------------------------------------- */

static void on_opened(void *user, const struct execpy_session_info *infos, size_t count,
		      const struct error *why)
{
	struct list_call *list = user;
	struct rest_call *call = &list->call;

	call->asking = NULL;
	if (count == 0) {
		rest_fail(call, why);
		return;
	}
	tenant_leave_room(&call->room);
	owned_add(call->rest->server, call->tenant, infos[0].id);
	exchange_field(call->exchange, "Location", "/v1/sessions/%s", infos[0].id);
	answer(call, 201, &infos[0]);
}

static void open_now(struct list_call *list)
{
	struct rest_call *call = &list->call;
	const struct session_question question = {.kind = SESSION_ASK_OPEN,
						  .options = &list->options};
	struct error err = {0};

	if (!tenant_take_room(call->tenant, 1, &call->room)) {
		rest_problem(call, 429, "you have as many sessions as you may: %u",
			     call->tenant->sessions_max);
		return;
	}
	call->asking =
		async_ask_session(call->rest->server->engine, &question, on_opened, list, &err);
	if (!call->asking)
		rest_fail(call, &err);
}

static int take_options(struct rest_call *call, struct execpy_session_options *options,
			struct error *err)
{
	static const char *const keys[] = {"policy", "limits", "template", "idle_ttl_ms", NULL};
	static const char *const limits[] = {"time_ms",   "cpu_ms",       "memory_bytes",
					     "processes", "output_bytes", "disk_bytes",
					     NULL};
	const json_t *object = call->ask.document, *given = json_object_get(object, "limits");
	const struct ask_rules rules = rest_rules(call->tenant);
	int r;

	if (given && !json_is_object(given))
		return refuse(err, EINVAL, "limits must be an object");
	if ((r = ask_known(object, "", keys, err)) < 0 ||
	    (given && (r = ask_known(given, "limits.", limits, err)) < 0) ||
	    (r = ask_limits(given, "limits.", &rules, &options->limits, err)) < 0 ||
	    (r = ask_policy(object, &rules, &options->policy, err)) < 0 ||
	    (r = ask_text(object, "", "template", &options->template, err)) < 0)
		return r;
	return ask_number(object, "", "idle_ttl_ms", 1000, REST_IDLE_MS_MAX, &options->idle_ms,
			  err);
}

void rest_open_session(struct exchange *exchange)
{
	struct list_call *list = new_list(exchange);
	struct error err = {0};

	if (!list || !rest_read(&list->call, true))
		return;
	if (take_options(&list->call, &list->options, &err) < 0)
		rest_fail(&list->call, &err);
	else
		when_counted(list, 1, open_now);
}

/* --- something is done with one ---------------------------------------------------- */

static void on_answer(void *user, const struct execpy_session_info *infos, size_t count,
		      const struct error *why)
{
	struct rest_call *call = user;

	call->asking = NULL;
	if (why->number == ENOENT || why->number == EIDRM)
		owned_drop(call->rest->server, call->session);
	/* What was asked for is right in itself: it is the session that cannot. */
	if (why->number == EINVAL)
		rest_problem(call, 409, "%s", why->text);
	else if (why->number)
		rest_fail(call, why);
	else if (count > 0)
		answer(call, 200, &infos[0]);
	else
		rest_done(call);
}

static void on_ended(void *user, const struct execpy_session_info *infos, size_t count,
		     const struct error *why)
{
	struct rest_call *call = user;

	owned_drop(call->rest->server, call->session);
	on_answer(call, NULL, 0, why);
}

static void on_interrupted(void *user, const struct execpy_session_info *infos, size_t count,
			   const struct error *why)
{
	on_answer(user, NULL, 0, why);
}

static void ask(struct rest_call *call, struct session_question question, session_answered *done)
{
	struct error err = {0};

	question.id = call->session;
	call->asking = async_ask_session(call->rest->server->engine, &question, done, call, &err);
	if (!call->asking)
		rest_fail(call, &err);
}

static void act(struct exchange *exchange, enum session_action action, session_answered *done)
{
	static const char *const named_keys[] = {"name", NULL};
	static const char *const no_keys[] = {NULL};
	bool named = action == SESSION_CHECKPOINT || action == SESSION_ROLLBACK;
	struct rest_call *call = rest_call_new(exchange, sizeof *call);
	const char *name = NULL;
	struct error err = {0};

	if (!call || !rest_take_session(call) || !rest_read(call, !named))
		return;
	if (ask_known(call->ask.document, "", named ? named_keys : no_keys, &err) < 0 ||
	    ask_text(call->ask.document, "", "name", &name, &err) < 0)
		rest_fail(call, &err);
	else if (named && !name)
		rest_problem(call, 400, "name is missing: the checkpoint's, a text");
	else
		ask(call,
		    (struct session_question){
			    .kind = SESSION_ASK_ACT, .action = action, .name = name},
		    done);
}

static void on_forked(void *user, const struct execpy_session_info *infos, size_t count,
		      const struct error *why)
{
	struct rest_call *call = user;

	if (why->number) {
		on_answer(call, NULL, 0, why);
		return;
	}
	call->asking = NULL;
	tenant_leave_room(&call->room);
	for (size_t i = 0; i < count; i++)
		owned_add(call->rest->server, call->tenant, infos[i].id);
	write_list(call, 201, infos, count);
}

static int take_fork(struct rest_call *call, struct session_question *question, struct error *err)
{
	static const char *const keys[] = {"n", "same_random", NULL};
	const json_t *object = call->ask.document;
	uint64_t count = 1;
	int r;

	if ((r = ask_known(object, "", keys, err)) < 0 ||
	    (r = ask_number(object, "", "n", 1, BRANCHES_MAX, &count, err)) < 0)
		return r;
	question->count = (unsigned)count;
	return ask_flag(object, "", "same_random", &question->same_random, err);
}

static void fork_now(struct list_call *list)
{
	struct rest_call *call = &list->call;

	if (tenant_take_room(call->tenant, list->fork.count, &call->room))
		ask(call, list->fork, on_forked);
	else
		rest_problem(call, 429, "with %u more you have more sessions than you may: %u",
			     list->fork.count, call->tenant->sessions_max);
}

void rest_fork(struct exchange *exchange)
{
	struct list_call *list = new_list(exchange);
	struct error err = {0};

	if (!list || !rest_take_session(&list->call) || !rest_read(&list->call, true))
		return;
	list->fork = (struct session_question){.kind = SESSION_ASK_ACT, .action = SESSION_FORK};
	if (take_fork(&list->call, &list->fork, &err) < 0)
		rest_fail(&list->call, &err);
	else
		when_counted(list, list->fork.count, fork_now);
}

void rest_checkpoint(struct exchange *exchange)
{
	act(exchange, SESSION_CHECKPOINT, on_answer);
}

void rest_rollback(struct exchange *exchange)
{
	act(exchange, SESSION_ROLLBACK, on_answer);
}

void rest_undo(struct exchange *exchange)
{
	act(exchange, SESSION_UNDO, on_answer);
}

void rest_interrupt(struct exchange *exchange)
{
	act(exchange, SESSION_INTERRUPT, on_interrupted);
}

void rest_drop_checkpoint(struct exchange *exchange)
{
	struct rest_call *call = rest_call_new(exchange, sizeof *call);
	const char *name = exchange_parameter(exchange, "name");

	if (call && rest_take_session(call))
		ask(call,
		    (struct session_question){
			    .kind = SESSION_ASK_ACT, .action = SESSION_DROP, .name = name},
		    on_answer);
}

void rest_get_session(struct exchange *exchange)
{
	struct rest_call *call = rest_call_new(exchange, sizeof *call);

	if (call && rest_take_session(call))
		ask(call, (struct session_question){.kind = SESSION_ASK_INFO}, on_answer);
}

void rest_end_session(struct exchange *exchange)
{
	struct rest_call *call = rest_call_new(exchange, sizeof *call);

	if (call && rest_take_session(call))
		ask(call, (struct session_question){.kind = SESSION_ASK_ACT, .action = SESSION_END},
		    on_ended);
}
