/* SPDX-License-Identifier: Apache-2.0 */
/* run_ask: what the warden and the cell are told of a run.
 *
 * A cell is asked for by its template's modules, or by the session whose it is. The
 * request goes along, so that a parked cell runs before it is known here; with files
 * it follows in START, once they are in the workspace. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "base/memfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the cell is to do, in one frame that only the cell reads. */
static void make_request(struct run *run, struct bytes *frame)
{
	const struct execpy_request *request = run->request;
	size_t at = frame_begin(frame, MESSAGE_REQUEST, run->id);
	autobytes policy = {0};

	policy_encode(&run->policy, &policy);
	if (policy.failed)
		frame->failed = policy.failed;
	frame_put(frame, FIELD_POLICY, policy.data, policy.length);
	frame_put(frame, FIELD_CODE, run->result->code.data, run->result->code.length);
	for (size_t i = 0; run->batch && i < run->batch->count; i++) {
		const struct bytes *code = &run->batch->results[i]->code;

		frame_put(frame, FIELD_CODE, code->data, code->length);
	}
	frame_put_number(frame, FIELD_STDIN, request->stdin_fd >= 0);
	frame_put_number(frame, FIELD_WALL_US, run->result->limits.time_ms * 1000);
	frame_put_number(frame, FIELD_CHECK, run->result->check_only);
	frame_put_number(frame, FIELD_PROBE, run->result->probe);
	if (request->picture_pixels)
		frame_put_number(frame, FIELD_PICTURE_PIXELS, request->picture_pixels);
	for (size_t i = 0; i < request->file_count; i++)
		frame_put_text(frame, FIELD_NAME, request->files[i].name);
	for (size_t i = 0; request->arguments && request->arguments[i]; i++)
		frame_put_text(frame, FIELD_ARGUMENT, request->arguments[i]);
	for (size_t i = 0; request->environment && request->environment[i]; i++)
		frame_put_text(frame, FIELD_ENVIRONMENT, request->environment[i]);
	frame_end(frame, at);
}

static enum watch_mode watch_mode(const struct run *run)
{
	if (run->policy.profile == PROFILE_OPEN)
		return WATCH_REPORT;
	return run->policy.profile == PROFILE_STANDARD ? WATCH_STANDARD : WATCH_STRICT;
}

/* Adds the request to a frame, and its descriptor if it needs one. */
static int put_request(struct run *run, struct bytes *frame, int *ret_memory, struct error *err)
{
	autobytes request = {0};

	make_request(run, &request);
	if (request.failed)
		return fail(err, -request.failed, "request");
	if (request.length > MAILBOX_REQUEST_BYTES)
		return refuse(err, E2BIG, "request: larger than %llu bytes with its arguments",
			      (unsigned long long)MAILBOX_REQUEST_BYTES);
	frame_put_number(frame, FIELD_WATCH, watch_mode(run));
	if (run->request->stdin_fd >= 0)
		frame_put_number(frame, FIELD_STDIN, 1);
	if (run->result->probe)
		frame_put_number(frame, FIELD_PROBE, 1);
	if (request.length <= REQUEST_IN_MESSAGE_MAX) {
		frame_put(frame, FIELD_REQUEST, request.data, request.length);
		return 0;
	}
	/* It does not fit into a message. */
	*ret_memory = memfile_write("request", bytes_span(&request), err);
	return *ret_memory < 0 ? *ret_memory : 0;
}

int run_ask_start(struct run *run, struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_START, run->id);
	autofd memory = -1;
	int r = put_request(run, &frame, &memory, err);

	if (r < 0)
		return r;
	frame_end(&frame, at);
	return engine_say(run->engine, &frame, &memory, memory >= 0 ? 1 : 0, err);
}

struct module_list {
	struct bytes *frame;
	char seen[32][128];
	size_t count;
};

static void add_module(void *user, const char *module)
{
	struct module_list *list = user;

	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->seen[i], module) == 0)
			return;
	if (list->count == ARRAY_LENGTH(list->seen))
		return;
	snprintf(list->seen[list->count++], sizeof list->seen[0], "%s", module);
	frame_put_text(list->frame, FIELD_MODULE, module);
}

/* Which cell: the session's, or one of the template that was named or that the code's
 * imports ask for. */
static int put_template(struct run *run, struct bytes *frame, struct error *err)
{
	const char *asked = run->request->template;
	bool automatic = !asked || strcmp(asked, "auto") == 0;
	const char *shown = automatic ? "bare" : asked;
	struct module_list modules = {.frame = frame};
	autobytes name = {0};

	if (run->session) {
		frame_put_text(frame, FIELD_SESSION, run->result->session);
		shown = "bare"; /* until the cell says */
	} else if (!automatic && run->engine->remote && asked[0]) {
		/* A daemon knows its own templates; an empty name would be none. */
		frame_put_text(frame, FIELD_NAME, asked);
	} else if (automatic && !run->retried) {
		imports_scan(bytes_span(&run->result->code), add_module, &modules);
	} else if (!automatic && !imports_template(asked, add_module, &modules)) {
		return refuse(err, EINVAL,
			      "template \"%.40s\": there is auto, bare, numpy, pandas and plot",
			      asked);
	}
	for (size_t i = 0; i < modules.count; i++)
		bytes_append_format(&name, "%s%s", i ? "+" : "", modules.seen[i]);
	bytes_append(&name, "", 1);
	if (automatic && modules.count)
		shown = (const char *)name.data;
	free(run->result->template);
	run->result->template = shown ? strdup(shown) : NULL;
	return run->result->template ? 0 : fail(err, ENOMEM, "request");
}

int run_ask(struct run *run, struct error *err)
{
	autobytes frame = {0};
	autofd memory = -1;
	size_t at;
	int r;

	/* The old id may still have messages under way. */
	run->id = ++run->engine->next_run;
	at = frame_begin(&frame, MESSAGE_ACQUIRE, run->id);
	limits_encode(&run->result->limits, &frame, FIELD_LIMITS);
	frame_put_number(&frame, FIELD_MORE, run->engine->single_run);
	r = put_template(run, &frame, err);
	if (r < 0)
		return r;
	if (run->request->file_count == 0 && !run->hold)
		r = put_request(run, &frame, &memory, err);
	if (r == -E2BIG)
		return r; /* the request's own fault; all else is ours */
	frame_end(&frame, at);
	if (r < 0)
		run_fail(run, err->text);
	else if (run->engine->dead)
		run_fail(run, run->engine->why);
	else if (engine_say(run->engine, &frame, &memory, memory >= 0 ? 1 : 0, err) < 0)
		run_fail(run, err->text);
	return 0;
}
