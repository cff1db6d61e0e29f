/* SPDX-License-Identifier: Apache-2.0 */
/* sessions: the tool for sessions' life.
 *
 * A session is named by its id, which cannot be guessed, by whoever was given it; lists
 * hold only those that were opened here, since a daemon may have others'. */
#include "server/mcp/protocol.h"

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

static struct mcp_session *find(struct mcp *mcp, const char *id)
{
	struct mcp_session *session;

	TAILQ_FOREACH(session, &mcp->sessions, entry)
	if (strcmp(session->id, id) == 0)
		break;
	return session;
}

/* A warden that is no daemon's knows no names of templates. */
static void name_template(struct mcp *mcp, struct execpy_session_info *info)
{
	const struct mcp_session *session = find(mcp, info->id);

	if (session && !info->template[0])
		snprintf(info->template, sizeof info->template, "%s", session->template);
}

void mcp_forget_session(struct mcp *mcp, const char *id)
{
	struct mcp_session *session = find(mcp, id);

	if (!session)
		return;
	TAILQ_REMOVE(&mcp->sessions, session, entry);
	mcp->session_count--;
	free(session);
}

static void remember(struct mcp *mcp, const struct execpy_session_info *info)
{
	struct mcp_session *session = calloc(1, sizeof *session);

	if (!session)
		return; /* it is only in no list */
	snprintf(session->id, sizeof session->id, "%s", info->id);
	snprintf(session->template, sizeof session->template, "%s", info->template);
	TAILQ_INSERT_TAIL(&mcp->sessions, session, entry);
	mcp->session_count++;
}

static void finish_create(struct mcp_call *call, struct execpy_result *result,
			  const struct error *why)
{
	if (!call->opened.id[0]) {
		mcp_tool_error(call, "%s", why->text);
		return;
	}
	remember(call->mcp, &call->opened);
	answer(call, "", &call->opened, 1);
}

static void create(struct mcp_call *call, const json_t *arguments, const char *template)
{
	const struct mcp_options *mine = call->mcp->options;
	struct execpy_session_options options = {
		.limits = mcp_limits(&mine->limits),
		.policy = mine->policy,
		.template = template ? template : mine->template,
	};
	struct error err = {0};

	if (!mcp_limit_arguments(call, arguments, false, &options.limits))
		return;
	if (call->mcp->session_count >= MCP_SESSIONS_MAX) {
		mcp_tool_error(call, "there are %d sessions already: end one", MCP_SESSIONS_MAX);
		return;
	}
	call->finish = finish_create;
	if (mcp_begin_session(call, &options, &err) < 0)
		mcp_tool_error(call, "%s", err.text);
}

static void list(struct mcp_call *call)
{
	struct mcp *mcp = call->mcp;
	autofree struct execpy_session_info *infos = calloc(mcp->session_count + 1, sizeof *infos);
	struct mcp_session *session, *next;
	size_t count = 0;

	if (!infos) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "out of memory");
		return;
	}
	for (session = TAILQ_FIRST(&mcp->sessions); session; session = next) {
		struct execpy_error err = {0};

		next = TAILQ_NEXT(session, entry);
		if (execpy_session_info(mcp->engine, session->id, &infos[count], &err) < 0 ||
		    infos[count].ended[0])
			mcp_forget_session(mcp, session->id);
		else
			name_template(mcp, &infos[count++]);
	}
	answer(call, count ? "" : "there are no sessions\n", infos, count);
}

struct branches {
	struct mcp *mcp;
	struct execpy_session_info infos[MCP_BRANCHES_MAX];
	size_t count;
};

static void take_branch(void *user, const struct execpy_session_info *info)
{
	struct branches *branches = user;

	remember(branches->mcp, info);
	if (branches->count < ARRAY_LENGTH(branches->infos))
		branches->infos[branches->count++] = *info;
}

static void fork_session(struct mcp_call *call, const char *id, const json_t *count)
{
	autofree struct branches *branches = calloc(1, sizeof *branches);
	json_int_t wanted = count ? json_integer_value(count) : 1;
	struct execpy_error err = {0};

	if (!branches) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "out of memory");
	} else if (!id) {
		mcp_tool_error(call, "fork: session is missing");
	} else if (wanted < 1 || wanted > MCP_BRANCHES_MAX) {
		mcp_tool_error(call, "fork: count must be an integer from 1 to %d",
			       MCP_BRANCHES_MAX);
	} else if (call->mcp->session_count + (size_t)wanted > MCP_SESSIONS_MAX) {
		mcp_tool_error(call, "there are at most %d sessions: end some", MCP_SESSIONS_MAX);
	} else {
		branches->mcp = call->mcp;
		if (execpy_session_fork(call->mcp->engine, id, (unsigned)wanted, false, take_branch,
					branches, &err) < 0)
			mcp_tool_error(call, "%s", err.text);
		else
			answer(call, "", branches->infos, branches->count);
	}
}

static void act(struct mcp_call *call, const char *action, const char *id, const char *name)
{
	struct execpy_engine *engine = call->mcp->engine;
	struct execpy_session_info info;
	struct execpy_error err = {0};
	bool named = strcmp(action, "checkpoint") == 0 || strcmp(action, "rollback") == 0;
	int r;

	if (!id) {
		mcp_tool_error(call, "%s: session is missing", action);
		return;
	}
	if (named && !name) {
		mcp_tool_error(call, "%s: name is missing: the checkpoint's", action);
		return;
	}
	if (strcmp(action, "info") == 0)
		r = execpy_session_info(engine, id, &info, &err);
	else if (strcmp(action, "checkpoint") == 0)
		r = execpy_session_checkpoint(engine, id, name, &info, &err);
	else if (strcmp(action, "rollback") == 0)
		r = execpy_session_rollback(engine, id, name, &info, &err);
	else if (strcmp(action, "undo") == 0)
		r = execpy_session_undo(engine, id, &info, &err);
	else
		r = execpy_session_end(engine, id, &err);
	if (r == -ENOENT || r == -EIDRM || strcmp(action, "end") == 0)
		mcp_forget_session(call->mcp, id);
	if (r < 0)
		mcp_tool_error(call, "%s", err.text);
	else if (strcmp(action, "end") == 0)
		answer(call, "the session has ended\n", NULL, 0);
	else {
		name_template(call->mcp, &info);
		answer(call, "", &info, 1);
	}
}

void mcp_tool_session(struct mcp_call *call, const json_t *arguments)
{
	static const char *const names[] = {"action", "session", "name", "count", "template", NULL};
	static const char *const actions[] = {"info", "checkpoint", "rollback", "undo", "end"};
	const char *action, *session, *name, *template;

	if (!mcp_known_arguments(call, arguments, names) ||
	    !mcp_text_argument(call, arguments, "action", &action) ||
	    !mcp_text_argument(call, arguments, "session", &session) ||
	    !mcp_text_argument(call, arguments, "name", &name) ||
	    !mcp_text_argument(call, arguments, "template", &template))
		return;
	if (action && strcmp(action, "create") == 0) {
		create(call, arguments, template);
		return;
	}
	if (action && strcmp(action, "list") == 0) {
		list(call);
		return;
	}
	if (action && strcmp(action, "fork") == 0) {
		fork_session(call, session, json_object_get(arguments, "count"));
		return;
	}
	for (size_t i = 0; action && i < ARRAY_LENGTH(actions); i++) {
		if (strcmp(action, actions[i]) == 0) {
			act(call, action, session, name);
			return;
		}
	}
	mcp_tool_error(
		call, "action must be create, list, info, checkpoint, rollback, undo, fork or end");
}
