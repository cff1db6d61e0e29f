/* SPDX-License-Identifier: Apache-2.0 */
/* resources: the files of sessions, as resources: execpy://session/ID/PATH.
 *
 * Each is looked at as a run of its session would, so it waits for one that goes on,
 * and keeps nobody else waiting. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define URI_PREFIX "execpy://session/"
#define FRESH_MS   3600000

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
	emit_count(&json, "size", file->size);
	emit_end_object(&json);
}

static void list_next(struct mcp_call *call);

static void finish_list(struct mcp_call *call, struct execpy_result *result,
			const struct error *why)
{
	/* What has ended has no files. */
	if (!result && (why->number == ENOENT || why->number == EIDRM))
		mcp_forget_session(call->server, call->session);
	list_next(call);
}

/* One session after the other; then the answer. */
static void list_next(struct mcp_call *call)
{
	const struct async what = {.hold = &call->hold};
	struct error err = {0};
	struct bytes message;
	struct json json;

	call->finish = finish_list;
	while (call->step < call->id_count) {
		snprintf(call->session, sizeof call->session, "%s", call->ids[call->step++]);
		call->list = (struct workspace_list){.tell = tell_file, .user = call};
		call->hold = (struct hold){
			.use = workspace_list, .user = &call->list, .failed.number = EPIPE};
		if (mcp_begin(call, &what, &err) == 0)
			return;
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
	if (mcp_collect_sessions(call))
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
	    !mcp_may_use_session(call->server, call->session) ||
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
