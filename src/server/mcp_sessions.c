/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_sessions: the tool for sessions' life, and their files as resources.
 *
 * A session is named by its id, which cannot be guessed, by whoever was given it; lists
 * hold only those that were opened here, since a daemon may have others'. */
#include "server/mcp_protocol.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define URI_PREFIX "execpy://session/"
#define FRESH_MS   3600000

/* --- the tool -------------------------------------------------------------------------- */

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
		emit_key(json, keys[i]);
		emit_number(json, numbers[i]);
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
	struct bytes message;
	struct json json;

	bytes_append_text(&text, words);
	for (size_t i = 0; i < count; i++)
		describe_info(&infos[i], &text);
	mcp_begin_result(call, &message, &json);
	emit_key(&json, "content");
	emit_begin_array(&json);
	emit_begin_object(&json);
	emit_key(&json, "type");
	emit_string(&json, "text");
	emit_key(&json, "text");
	emit_text(&json, bytes_span(&text));
	emit_end_object(&json);
	emit_end_array(&json);
	emit_key(&json, "structuredContent");
	emit_begin_object(&json);
	emit_key(&json, "sessions");
	emit_begin_array(&json);
	for (size_t i = 0; i < count; i++)
		write_info(&infos[i], &json);
	emit_end_array(&json);
	emit_end_object(&json);
	emit_key(&json, "isError");
	emit_bool(&json, false);
	mcp_end_result(call, &message, &json);
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

static void forget(struct mcp *mcp, const char *id)
{
	struct mcp_session *session = find(mcp, id);

	if (!session)
		return;
	TAILQ_REMOVE(&mcp->sessions, session, entry);
	mcp->session_count--;
	free(session);
}

static void create(struct mcp_call *call, const json_t *arguments, const char *template)
{
	struct mcp *mcp = call->mcp;
	struct execpy_session_options options = {
		.limits = mcp_limits(&mcp->options->limits),
		.policy = mcp->options->policy,
		.template = template ? template : mcp->options->template,
	};
	struct execpy_session_info info;
	struct execpy_error err = {0};
	struct mcp_session *session;

	if (!mcp_limit_arguments(call, arguments, false, &options.limits))
		return;
	if (mcp->session_count == MCP_SESSIONS_MAX) {
		mcp_tool_error(call, "there are %d sessions already: end one", MCP_SESSIONS_MAX);
		return;
	}
	session = calloc(1, sizeof *session);
	if (!session) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "out of memory");
		return;
	}
	if (execpy_session_open(mcp->engine, &options, &info, &err) < 0) {
		free(session);
		mcp_tool_error(call, "%s", err.text);
		return;
	}
	snprintf(session->id, sizeof session->id, "%s", info.id);
	snprintf(session->template, sizeof session->template, "%s", info.template);
	TAILQ_INSERT_TAIL(&mcp->sessions, session, entry);
	mcp->session_count++;
	answer(call, "", &info, 1);
}

static void list(struct mcp_call *call)
{
	struct mcp *mcp = call->mcp;
	autofree struct execpy_session_info *infos = calloc(MCP_SESSIONS_MAX, sizeof *infos);
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
			forget(mcp, session->id);
		else
			name_template(mcp, &infos[count++]);
	}
	answer(call, count ? "" : "there are no sessions\n", infos, count);
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
		forget(call->mcp, id);
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
	static const char *const names[] = {"action", "session", "name", "template", NULL};
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
	for (size_t i = 0; action && i < ARRAY_LENGTH(actions); i++) {
		if (strcmp(action, actions[i]) == 0) {
			act(call, action, session, name);
			return;
		}
	}
	mcp_tool_error(call,
		       "action must be create, list, info, checkpoint, rollback, undo or end");
}

/* --- resources ------------------------------------------------------------------------- */

void mcp_write_uri(struct json *json, const char *session, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-._~/";
	autobytes uri = {0};

	bytes_append_format(&uri, URI_PREFIX "%s/", session);
	for (; *path; path++)
		if (strchr(plain, *path))
			bytes_append(&uri, path, 1);
		else
			bytes_append_format(&uri, "%%%02X", (unsigned char)*path);
	emit_text(json, bytes_span(&uri));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes a URI apart into call->session and call->name. */
static bool take_uri(struct mcp_call *call, const char *uri)
{
	size_t length = strlen(URI_PREFIX), used = 0;
	const char *slash;

	if (strncmp(uri, URI_PREFIX, length) != 0)
		return false;
	uri += length;
	slash = strchr(uri, '/');
	if (!slash || (size_t)(slash - uri) >= sizeof call->session || slash == uri)
		return false;
	snprintf(call->session, sizeof call->session, "%.*s", (int)(slash - uri), uri);
	call->name = strdup(slash + 1);
	if (!call->name)
		return false;
	for (const char *at = slash + 1; *at; at++) {
		int c = (unsigned char)*at;

		if (c == '%') {
			int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);

			if (low < 0 || high * 16 + low == 0)
				return false;
			c = high * 16 + low;
			at += 2;
		}
		call->name[used++] = (char)c;
	}
	call->name[used] = '\0';
	return true;
}

static void tell_file(void *user, const struct execpy_session_file *file)
{
	struct mcp_call *call = user;
	struct json json = {.out = &call->part, .comma = call->part_count > 0};

	if (file->directory || file->link || file->other || call->part_count == MCP_RESOURCES_MAX)
		return;
	call->part_count++;
	emit_begin_object(&json);
	emit_key(&json, "uri");
	mcp_write_uri(&json, call->session, file->path);
	emit_key(&json, "name");
	emit_text(&json, (struct span){(const uint8_t *)file->path, strlen(file->path)});
	emit_key(&json, "mimeType");
	emit_string(&json, files_media_type(file->path));
	emit_key(&json, "size");
	emit_number(&json, file->size);
	emit_end_object(&json);
}

static void list_next(struct mcp_call *call);

static void finish_list(struct mcp_call *call, struct execpy_result *result,
			const struct error *why)
{
	/* What has ended has no files. */
	if (!result && (why->number == ENOENT || why->number == EIDRM)) {
		forget(call->mcp, call->session);
		call->step--;
	}
	list_next(call);
}

/* One session after the other; then the answer. */
static void list_next(struct mcp_call *call)
{
	const struct async what = {.hold = &call->hold};
	struct mcp_session *session;
	struct error err = {0};
	struct bytes message;
	struct json json;
	size_t at;

	call->finish = finish_list;
	for (;;) {
		at = 0;
		TAILQ_FOREACH(session, &call->mcp->sessions, entry)
		if (at++ == call->step)
			break;
		if (!session)
			break;
		call->step++;
		snprintf(call->session, sizeof call->session, "%s", session->id);
		call->list = (struct workspace_list){.tell = tell_file, .user = call};
		call->hold = (struct hold){
			.use = workspace_list, .user = &call->list, .failed.number = EPIPE};
		if (mcp_begin(call, &what, &err) == 0)
			return;
		if (err.number == ENOENT || err.number == EIDRM) {
			forget(call->mcp, call->session);
			call->step--;
		}
	}
	mcp_begin_cacheable(call, &message, &json, 0, "private");
	emit_key(&json, "resources");
	emit_begin_array(&json);
	if (call->part_count > 0)
		emit_raw(&json, bytes_span(&call->part));
	emit_end_array(&json);
	mcp_end_result(call, &message, &json);
}

void mcp_list_resources(struct mcp_call *call)
{
	list_next(call);
}

void mcp_list_templates(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, FRESH_MS, "public");
	emit_key(&json, "resourceTemplates");
	emit_begin_array(&json);
	emit_begin_object(&json);
	emit_key(&json, "uriTemplate");
	emit_string(&json, URI_PREFIX "{session}/{+path}");
	emit_key(&json, "name");
	emit_string(&json, "session file");
	emit_key(&json, "title");
	emit_string(&json, "A file of a session");
	emit_key(&json, "description");
	emit_string(&json, "A file in the working directory of a session, by its path there.");
	emit_end_object(&json);
	emit_end_array(&json);
	mcp_end_result(call, &message, &json);
}

static bool is_text(struct span data)
{
	for (size_t at = 0; at < data.length;) {
		size_t length = utf8_sequence((struct span){data.data + at, data.length - at});

		if (length == 0 || data.data[at] == '\0')
			return false;
		at += length;
	}
	return true;
}

static void write_contents(struct mcp_call *call, const char *uri, struct span data)
{
	bool text = is_text(data);
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, 0, "private");
	emit_key(&json, "contents");
	emit_begin_array(&json);
	emit_begin_object(&json);
	emit_key(&json, "uri");
	emit_string(&json, uri);
	emit_key(&json, "mimeType");
	emit_string(&json, files_media_type(call->name));
	emit_key(&json, text ? "text" : "blob");
	if (text)
		emit_text(&json, data);
	else
		emit_base64(&json, data);
	emit_end_object(&json);
	emit_end_array(&json);
	mcp_end_result(call, &message, &json);
}

static void refuse_read(struct mcp_call *call, const char *uri, const struct error *why)
{
	switch (why->number) {
	case ENOENT:
	case EIDRM:
	case ENOTDIR:
	case EINVAL:
		mcp_resource_not_found(call, uri);
		break;
	default:
		mcp_fail(call, MCP_INTERNAL_ERROR, "%s", why->text[0] ? why->text : "not read");
	}
}

static void finish_read(struct mcp_call *call, struct execpy_result *result,
			const struct error *why)
{
	const char *uri = json_string_value(json_object_get(call->params, "uri"));
	struct span data = {NULL, 0};
	struct stat info;
	void *map = NULL;

	if (!result || call->hold.failed.number) {
		refuse_read(call, uri, result ? &call->hold.failed : why);
		return;
	}
	if (fstat(call->get.fd, &info) < 0) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "resource: %s", strerror(errno));
		return;
	}
	data.length = (size_t)info.st_size;
	if (data.length > 0)
		map = mmap(NULL, data.length, PROT_READ, MAP_PRIVATE, call->get.fd, 0);
	if (map == MAP_FAILED) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "resource: %s", strerror(errno));
		return;
	}
	data.data = map;
	write_contents(call, uri, data);
	if (map)
		munmap(map, data.length);
}

void mcp_read_resource(struct mcp_call *call)
{
	const json_t *text = json_object_get(call->params, "uri");
	const char *uri = json_string_value(text);
	const struct async what = {.hold = &call->hold};
	struct error err = {0};

	if (!uri) {
		mcp_fail(call, MCP_INVALID_PARAMS, "resources/read: uri must be a text");
		return;
	}
	if (strlen(uri) != json_string_length(text) || !take_uri(call, uri) ||
	    request_check_name(call->name, &err) < 0) {
		mcp_resource_not_found(call, uri);
		return;
	}
	call->get = (struct workspace_get){
		.name = call->name,
		.fd = memfd_create("execpy-resource", MFD_CLOEXEC),
		.most = MCP_RESOURCE_BYTES_MAX,
	};
	if (call->get.fd < 0) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "resource: %s", strerror(errno));
		return;
	}
	call->hold =
		(struct hold){.use = workspace_get, .user = &call->get, .failed.number = EPIPE};
	call->finish = finish_read;
	if (mcp_begin(call, &what, &err) < 0)
		refuse_read(call, uri, &err);
}
