/* SPDX-License-Identifier: Apache-2.0 */
/* files: the workspace of a session, one file or all of it.
 *
 * Each of these takes the session as a run would, so it waits for one that goes on. What
 * comes from a guest is never shown by a browser as a page of this server: it is an
 * attachment, and in a sandbox. */
#include "server/rest/rest.h"

#include "base/cleanup.h"
#include "engine/session_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_call {
	struct rest_call call;
	char *path;
	struct workspace_list list;
	struct workspace_file file;
	struct execpy_file put;
	int archive; /* a descriptor */
	struct json json;
	/* What is answered when it was done. */
	void (*answer)(struct file_call *files);
};

static void release(struct rest_call *call)
{
	struct file_call *files = (struct file_call *)call;

	close_fd(&files->file.fd);
	close_fd(&files->archive);
	free(files->path);
}

static void on_held(void *user, struct execpy_result *result, const struct error *why)
{
	struct file_call *files = user;
	struct rest_call *call = &files->call;
	struct error failed = result ? call->hold.failed : *why;

	call->run = NULL;
	call->result = result;
	if (!result && (why->number == ENOENT || why->number == EIDRM))
		owned_drop(call->rest->server, call->session);
	if (failed.number && !failed.text[0] && result)
		snprintf(failed.text, sizeof failed.text, "%s",
			 result->reason[0] ? result->reason : "the session was not there for it");
	if (failed.number)
		rest_fail(call, &failed);
	else
		files->answer(files);
}

static void done(struct file_call *files)
{
	rest_done(&files->call);
}

/* The call of a request about a session's files; NULL: it was answered. */
static struct file_call *new_call(struct exchange *exchange, bool named)
{
	struct file_call *files = (struct file_call *)rest_call_new(exchange, sizeof *files);
	struct error err = {0};

	if (!files)
		return NULL;
	files->file.fd = files->archive = -1;
	files->answer = done;
	files->call.release = release;
	if (!rest_take_session(&files->call))
		return NULL;
	if (!named)
		return files;
	files->path = strdup(exchange_parameter(exchange, "path"));
	if (!files->path) {
		rest_problem(&files->call, 503, "memory is out");
		return NULL;
	}
	if (request_check_name(files->path, &err) < 0) {
		rest_fail(&files->call, &err);
		return NULL;
	}
	return files;
}

static void hold(struct file_call *files, struct hold hold)
{
	struct rest_call *call = &files->call;
	const struct async async = {
		.session = call->session, .hold = &call->hold, .done = on_held, .user = files};

	call->hold = hold;
	rest_begin(call, NULL, &async);
}

/* --- the list ---------------------------------------------------------------------- */

static void tell_file(void *user, const struct execpy_session_file *file)
{
	session_report_file_json(file, &((struct file_call *)user)->json);
}

static void end_list(struct file_call *files)
{
	emit_end_array(&files->json);
	emit_end_object(&files->json);
	rest_send(&files->call, 200, "application/json");
}

void rest_list_files(struct exchange *exchange)
{
	struct file_call *files = new_call(exchange, false);

	if (!files)
		return;
	files->json = json_stream_writer(&files->call.stream);
	emit_begin_object(&files->json);
	emit_key(&files->json, "files");
	emit_begin_array(&files->json);
	files->list = (struct workspace_list){.tell = tell_file, .user = files};
	files->answer = end_list;
	hold(files, (struct hold){.use = workspace_list, .user = &files->list});
}

/* --- one file ---------------------------------------------------------------------- */

enum range { RANGE_NONE, RANGE_ONE, RANGE_BEYOND };

static bool take_digits(const char **at, uint64_t *ret_number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*ret_number = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0;
}

/* One range of bytes (RFC 9110, 14.1.2). What is none, or several, is left out of
 * account, as it may be. */
static enum range read_range(const char *text, uint64_t size, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t from = 0, to = UINT64_MAX, last;
	bool first;

	if (!text || strncmp(text, "bytes=", 6) != 0)
		return RANGE_NONE;
	text += 6;
	first = take_digits(&text, &from);
	if (*text++ != '-')
		return RANGE_NONE;
	if (first && *text && (!take_digits(&text, &to) || to < from))
		return RANGE_NONE;
	if (!first) {
		if (!take_digits(&text, &last))
			return RANGE_NONE;
		if (last == 0 || size == 0)
			return *text ? RANGE_NONE : RANGE_BEYOND;
		from = last < size ? size - last : 0;
	}
	if (*text)
		return RANGE_NONE;
	if (from >= size)
		return RANGE_BEYOND;
	*ret_from = from;
	*ret_to = to < size ? to : size - 1;
	return RANGE_ONE;
}

static void send_file(struct rest_call *call, int fd, unsigned status, const char *type,
		      uint64_t from, uint64_t length)
{
	struct exchange *exchange = call->exchange;

	exchange_field(exchange, "Content-Disposition", "attachment");
	exchange_field(exchange, "Content-Security-Policy", "sandbox; default-src 'none'");
	exchange_field(exchange, "Cache-Control", "no-store");
	rest_call_free(call);
	exchange_begin(exchange, status, type, (int64_t)length);
	exchange_write_file(exchange, fd, from, length);
	exchange_end(exchange);
}

static void give_file(struct file_call *files)
{
	struct rest_call *call = &files->call;
	uint64_t size = files->file.size, from = 0, to = size ? size - 1 : 0;
	enum range range = read_range(exchange_header(call->exchange, "range"), size, &from, &to);
	uint64_t length = size ? to - from + 1 : 0;

	if (range == RANGE_BEYOND) {
		exchange_field(call->exchange, "Content-Range", "bytes */%" PRIu64, size);
		rest_problem(call, 416, "the file has %" PRIu64 " bytes", size);
		return;
	}
	exchange_field(call->exchange, "Accept-Ranges", "bytes");
	if (range == RANGE_ONE)
		exchange_field(call->exchange, "Content-Range",
			       "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from, to, size);
	send_file(call, take_fd(&files->file.fd), range == RANGE_ONE ? 206 : 200,
		  files_media_type(files->path), from, length);
}

void rest_get_file(struct exchange *exchange)
{
	struct file_call *files = new_call(exchange, true);

	if (!files)
		return;
	files->file.name = files->path;
	files->answer = give_file;
	hold(files, (struct hold){.use = workspace_open_file, .user = &files->file});
}

void rest_put_file(struct exchange *exchange)
{
	struct file_call *files = new_call(exchange, true);

	if (!files)
		return;
	files->put = (struct execpy_file){.name = files->path, .fd = exchange_body_file(exchange)};
	hold(files,
	     (struct hold){
		     .use = workspace_put, .user = &files->put, .changes = true, .apart = true});
}

void rest_delete_file(struct exchange *exchange)
{
	struct file_call *files = new_call(exchange, true);

	if (files)
		hold(files,
		     (struct hold){.use = workspace_delete, .user = files->path, .changes = true});
}

/* --- all of them -------------------------------------------------------------------- */

static void give_archive(struct file_call *files)
{
	struct stat info;

	if (fstat(files->archive, &info) < 0)
		rest_problem(&files->call, 503, "archive: %s", strerror(errno));
	else
		send_file(&files->call, take_fd(&files->archive), 200, "application/x-tar", 0,
			  (uint64_t)info.st_size);
}

/* An archive takes room until the client has read all of it, however slowly it does. */
static bool take_archive(struct rest_call *call)
{
	if (call->tenant->archives < REST_ARCHIVES_MAX) {
		exchange_count(call->exchange, &call->tenant->archives);
		return true;
	}
	exchange_field(call->exchange, "Retry-After", "1");
	rest_problem(call, 429, "you have as many archives under way as you may: %d",
		     REST_ARCHIVES_MAX);
	return false;
}

void rest_get_tar(struct exchange *exchange)
{
	struct file_call *files = new_call(exchange, false);

	if (!files)
		return;
	if (!take_archive(&files->call))
		return;
	files->archive = memfd_create("execpy-archive", MFD_CLOEXEC);
	if (files->archive < 0) {
		rest_problem(&files->call, 503, "archive: %s", strerror(errno));
		return;
	}
	files->answer = give_archive;
	hold(files,
	     (struct hold){.use = workspace_tar_out, .user = &files->archive, .apart = true});
}

void rest_put_tar(struct exchange *exchange)
{
	struct file_call *files = new_call(exchange, false);

	if (!files)
		return;
	files->archive = dup(exchange_body_file(exchange));
	if (files->archive < 0) {
		rest_problem(&files->call, 503, "archive: %s", strerror(errno));
		return;
	}
	hold(files, (struct hold){.use = workspace_tar_in,
				  .user = &files->archive,
				  .changes = true,
				  .apart = true});
}
