/* SPDX-License-Identifier: Apache-2.0 */
/* sessions: the tool for sessions' life.
 *
 * A session is named by its id, which cannot be guessed, by whoever was given it; lists
 * hold only those that were opened here, since a daemon may have others'. Where there are
 * tenants each has a list, and nobody else can name what is in it. */
#include "server/mcp/protocol.h"
#include "server/owned.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void write_info(const struct execpy_session_info *info, struct json *json)
{
	const uint64_t numbers[] = {info->runs,    info->age_ms,  info->unused_ms,
				    info->idle_ms, info->life_ms, info->memory_bytes};
	static const char *const keys[] = {"runs",    "age_ms",  "unused_ms",
					   "idle_ms", "life_ms", "memory_bytes"};

	emit_begin_object(json);
	emit_key(json, "id");
	emit_string(json, info->id);
	emit_key(json, "template");
	emit_string(json, info->template);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		emit_count(json, keys[i], numbers[i]);
	}
	emit_key(json, "busy");
	emit_bool(json, info->busy);
	emit_key(json, "checkpoints");
	emit_begin_array(json);
	for (size_t i = 0; i < info->checkpoint_count; i++)
		emit_string(json, info->checkpoints[i]);
	emit_end_array(json);
	if (info->ended[0]) {
		emit_key(json, "ended");
		emit_string(json, info->ended);
	}
	if (info->lost[0]) {
		emit_key(json, "lost");
		emit_string(json, info->lost);
	}
	emit_end_object(json);
}

static void describe_info(const struct execpy_session_info *info, struct bytes *out)
{
	bytes_append_format(out, "session %s: template %s, %llu runs", info->id, info->template,
			    (unsigned long long)info->runs);
	if (info->busy)
		bytes_append_text(out, ", one goes on");
	for (size_t i = 0; i < info->checkpoint_count; i++)
		bytes_append_format(out, "%s%s",
				    i ? ", " : ", checkpoints: ", info->checkpoints[i]);
	if (info->ended[0])
		bytes_append_format(out, "; it has ended: %s", info->ended);
	else if (info->idle_ms)
		bytes_append_format(out, "; ends when it was not used for %llu s",
				    (unsigned long long)(info->idle_ms / 1000));
	if (info->lost[0])
		bytes_append_format(out, "\nlost: %s", info->lost);
	bytes_append_text(out, "\n");
}

static void answer(struct mcp_call *call, const char *words,
		   const struct execpy_session_info *infos, size_t count)
{
	autobytes text = {0};
	autobytes object = {0};
	struct json structured = {.out = &object};
	struct bytes message;
	struct json json;

	bytes_append_text(&text, words);
	emit_begin_object(&structured);
	emit_key(&structured, "sessions");
	emit_begin_array(&structured);
	for (size_t i = 0; i < count; i++) {
		describe_info(&infos[i], &text);
		write_info(&infos[i], &structured);
	}
	emit_end_array(&structured);
	emit_end_object(&structured);
	mcp_begin_tool_result(call, &message, &json, bytes_span(&text));
	if (object.failed)
		message.failed = object.failed;
	mcp_end_tool_result(call, &message, &json, bytes_span(&object), false);
}

static struct mcp_session *find(const struct mcp_server *server, const char *id)
{
	struct mcp_session *session;

	TAILQ_FOREACH(session, &server->sessions, entry)
	if (strcmp(session->id, id) == 0)
		break;
	return session;
}

/* A warden that is no daemon's knows no names of templates. */
static void name_template(struct mcp_server *server, struct execpy_session_info *info)
{
	const struct mcp_session *session = find(server, info->id);

	if (session && !info->template[0])
		snprintf(info->template, sizeof info->template, "%s", session->template);
}

void mcp_forget_session(struct mcp_server *server, const char *id)
{
	struct mcp_session *session = find(server, id);

	if (server->http)
		owned_drop(server->http, id);
	if (!session)
		return;
	TAILQ_REMOVE(&server->sessions, session, entry);
	server->session_count--;
	free(session);
}

bool mcp_may_use_session(const struct mcp_server *server, const char *id)
{
	return !server->http || owned_by(server->http, server->tenant, id);
}

/* Without memory for it the session is only in no list. */
static void remember_session(struct mcp_server *server, const struct execpy_session_info *info)
{
	struct mcp_session *session;

	if (server->http) {
		owned_add(server->http, server->tenant, info->id);
		return;
	}
	session = calloc(1, sizeof *session);
	if (!session)
		return;
	snprintf(session->id, sizeof session->id, "%s", info->id);
	snprintf(session->template, sizeof session->template, "%s", info->template);
	TAILQ_INSERT_TAIL(&server->sessions, session, entry);
	server->session_count++;
}

bool mcp_collect_sessions(struct mcp_call *call)
{
	struct mcp_server *server = call->server;
	struct mcp_session *session;

	free(call->ids);
	call->id_count = 0;
	if (server->http) {
		call->id_count = owned_ids(server->http, server->tenant, &call->ids);
	} else {
		call->ids = calloc(server->session_count + 1, sizeof *call->ids);
		TAILQ_FOREACH(session, &server->sessions, entry)
		if (call->ids)
			snprintf(call->ids[call->id_count++], sizeof *call->ids, "%s", session->id);
	}
	if (!call->ids)
		mcp_fail(call, MCP_INTERNAL_ERROR, "out of memory");
	return call->ids != NULL;
}

/* Whether to ask first which of those that are counted live. */
static bool should_count(const struct mcp_server *server, unsigned more)
{
	if (server->tenant)
		return owned_should_count(server->tenant, more);
	return server->session_count + more > MCP_SESSIONS_MAX;
}

static bool take_room(struct mcp_call *call, unsigned count)
{
	struct mcp_server *server = call->server;

	if (server->tenant)
		return tenant_take_room(server->tenant, count, &call->room);
	return server->session_count + count <= MCP_SESSIONS_MAX;
}

/* Those that the call made. */
static void remember_sessions(struct mcp_call *call)
{
	tenant_leave_room(&call->room);
	call->makes_sessions = false;
	for (size_t i = 0; i < call->info_count; i++)
		remember_session(call->server, &call->infos[i]);
}

static size_t most(const struct mcp_server *server)
{
	return server->tenant ? server->tenant->sessions_max : MCP_SESSIONS_MAX;
}

/* --- the actions ---------------------------------------------------------------------- */

/* Those that were asked for and are not in the answer have ended. */
static void forget_ended(struct mcp_call *call)
{
	struct mcp_server *server = call->server;

	if (server->http) {
		owned_keep(server->http, server->tenant, call->ids, call->id_count, call->infos,
			   call->info_count);
		return;
	}
	for (size_t i = 0; i < call->id_count; i++) {
		size_t at = 0;

		while (at < call->info_count && strcmp(call->infos[at].id, call->ids[i]) != 0)
			at++;
		if (at == call->info_count)
			mcp_forget_session(server, call->ids[i]);
	}
}

/* Asks which of the sessions in the list live; `finish` goes on. */
static void ask_about_all(struct mcp_call *call,
			  void (*finish)(struct mcp_call *call, struct execpy_result *result,
					 const struct error *why))
{
	struct session_question question = {.kind = SESSION_ASK_EACH};
	struct error err = {0};

	if (!mcp_collect_sessions(call))
		return;
	call->finish = finish;
	if (call->id_count == 0) {
		finish(call, NULL, &err);
		return;
	}
	question.ids = (const char(*)[EXECPY_SESSION_ID_MAX])call->ids;
	question.id_count = call->id_count;
	if (mcp_begin_asking(call, &question, &err) < 0)
		mcp_tool_error(call, "%s", err.text);
}

static void finish_list(struct mcp_call *call, struct execpy_result *result,
			const struct error *why)
{
	if (why->number) {
		mcp_tool_error(call, "%s", why->text);
		return;
	}
	forget_ended(call);
	for (size_t i = 0; i < call->info_count; i++)
		name_template(call->server, &call->infos[i]);
	answer(call, call->info_count ? "" : "there are no sessions\n", call->infos,
	       call->info_count);
}

static void finish_create(struct mcp_call *call, struct execpy_result *result,
			  const struct error *why)
{
	if (call->info_count == 0) {
		mcp_tool_error(call, "%s", why->text);
		return;
	}
	remember_sessions(call);
	answer(call, "", call->infos, call->info_count);
}

/* Its arguments were looked at. */
static void open_session(struct mcp_call *call)
{
	const struct mcp_options *mine = call->server->options;
	const json_t *arguments = json_object_get(call->params, "arguments");
	const char *template = json_string_value(json_object_get(arguments, "template"));
	struct execpy_session_options options = {
		.policy = mine->policy,
		.template = template ? template : mine->template,
	};
	const struct session_question question = {.kind = SESSION_ASK_OPEN, .options = &options};
	struct error err = {0};

	if (!mcp_limit_arguments(call, arguments, false, &options.limits))
		return;
	if (!take_room(call, 1)) {
		mcp_tool_error(call, "there are %zu sessions already, which is the most: end one",
			       most(call->server));
		return;
	}
	call->finish = finish_create;
	if (mcp_begin_asking(call, &question, &err) < 0)
		mcp_tool_error(call, "%s", err.text);
}

static void finish_counting(struct mcp_call *call, struct execpy_result *result,
			    const struct error *why)
{
	if (why->number == 0)
		forget_ended(call);
	open_session(call);
}

static void finish_act(struct mcp_call *call, struct execpy_result *result, const struct error *why)
{
	if (why->number == ENOENT || why->number == EIDRM)
		mcp_forget_session(call->server, call->session);
	if (why->number) {
		mcp_tool_error(call, "%s", why->text);
		return;
	}
	if (call->info_count > 0)
		name_template(call->server, &call->infos[0]);
	answer(call, "", call->infos, call->info_count);
}

static void finish_end(struct mcp_call *call, struct execpy_result *result, const struct error *why)
{
	mcp_forget_session(call->server, call->session);
	if (why->number)
		mcp_tool_error(call, "%s", why->text);
	else
		answer(call, "the session has ended\n", NULL, 0);
}

/* The branches belong to whom the session belongs. */
static void finish_fork(struct mcp_call *call, struct execpy_result *result,
			const struct error *why)
{
	const struct mcp_session *parent = find(call->server, call->session);

	if (why->number) {
		finish_act(call, result, why);
		return;
	}
	for (size_t i = 0; parent && i < call->info_count; i++) {
		struct execpy_session_info *branch = &call->infos[i];

		if (!branch->template[0])
			snprintf(branch->template, sizeof branch->template, "%s", parent->template);
	}
	remember_sessions(call);
	answer(call, "", call->infos, call->info_count);
}

static const struct action {
	const char *name;
	enum session_action action; /* 0: only asked about */
	bool named;
} actions[] = {
	{"info", 0, false},
	{"checkpoint", SESSION_CHECKPOINT, true},
	{"rollback", SESSION_ROLLBACK, true},
	{"undo", SESSION_UNDO, false},
	{"fork", SESSION_FORK, false},
	{"end", SESSION_END, false},
};

/* How many branches are asked for; 0 when that was refused. */
static unsigned take_count(struct mcp_call *call, const json_t *arguments)
{
	const json_t *count = json_object_get(arguments, "count");
	json_int_t wanted = count ? json_integer_value(count) : 1;

	if (wanted >= 1 && wanted <= MCP_BRANCHES_MAX)
		return (unsigned)wanted;
	mcp_tool_error(call, "fork: count must be an integer from 1 to %d", MCP_BRANCHES_MAX);
	return 0;
}

static void begin_act(struct mcp_call *call, enum session_action action, const char *name,
		      unsigned count)
{
	struct session_question question = {
		.kind = action ? SESSION_ASK_ACT : SESSION_ASK_INFO,
		.id = call->session,
		.action = action,
		.name = name,
		.count = count,
	};
	struct error err = {0};

	call->finish = action == SESSION_END    ? finish_end
		       : action == SESSION_FORK ? finish_fork
						: finish_act;
	if (mcp_begin_asking(call, &question, &err) < 0)
		mcp_tool_error(call, "%s", err.text);
}

/* Its count was looked at. */
static void begin_fork(struct mcp_call *call)
{
	unsigned count = take_count(call, json_object_get(call->params, "arguments"));

	if (take_room(call, count))
		begin_act(call, SESSION_FORK, NULL, count);
	else
		mcp_tool_error(call, "there are at most %zu sessions: end some",
			       most(call->server));
}

static void finish_counting_for_fork(struct mcp_call *call, struct execpy_result *result,
				     const struct error *why)
{
	if (why->number == 0)
		forget_ended(call);
	begin_fork(call);
}

static void fork_session(struct mcp_call *call)
{
	unsigned count = take_count(call, json_object_get(call->params, "arguments"));

	if (count == 0)
		return;
	if (should_count(call->server, count))
		ask_about_all(call, finish_counting_for_fork);
	else
		begin_fork(call);
}

static void act(struct mcp_call *call, const struct action *action, const char *id,
		const char *name)
{
	if (!id) {
		mcp_tool_error(call, "%s: session is missing", action->name);
		return;
	}
	if (strlen(id) >= sizeof call->session || !mcp_may_use_session(call->server, id)) {
		mcp_tool_error(call, "there is no session %.60s", id);
		return;
	}
	if (action->named && !name) {
		mcp_tool_error(call, "%s: name is missing: the checkpoint's", action->name);
		return;
	}
	snprintf(call->session, sizeof call->session, "%s", id);
	if (action->action == SESSION_FORK)
		fork_session(call);
	else
		begin_act(call, action->action, name, 0);
}

void mcp_tool_session(struct mcp_call *call, const json_t *arguments)
{
	static const char *const names[] = {"action", "session", "name", "count", "template", NULL};
	const char *action, *session, *name, *template;

	if (!mcp_known_arguments(call, arguments, names) ||
	    !mcp_text_argument(call, arguments, "action", &action) ||
	    !mcp_text_argument(call, arguments, "session", &session) ||
	    !mcp_text_argument(call, arguments, "name", &name) ||
	    !mcp_text_argument(call, arguments, "template", &template))
		return;
	if (action && strcmp(action, "list") == 0) {
		ask_about_all(call, finish_list);
		return;
	}
	if (action && strcmp(action, "create") == 0) {
		if (should_count(call->server, 1))
			ask_about_all(call, finish_counting);
		else
			open_session(call);
		return;
	}
	for (size_t i = 0; action && i < ARRAY_LENGTH(actions); i++) {
		if (strcmp(action, actions[i].name) == 0) {
			act(call, &actions[i], session, name);
			return;
		}
	}
	mcp_tool_error(
		call, "action must be create, list, info, checkpoint, rollback, undo, fork or end");
}
