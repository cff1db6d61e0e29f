/* SPDX-License-Identifier: Apache-2.0 */
/* engine: a run through libexecpy, as its users do it: the status looked at, the
 * output taken as it comes, the result made as JSON. */
#include "client.h"

#include "engine/execpy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
	const struct workload *workload;
	struct execpy_engine *engine;
	struct execpy_result *result; /* of the last run */
	struct bytes out;
};

static void take_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	struct state *state = user;

	if (stream == EXECPY_STDOUT)
		bytes_append(&state->out, data, length);
}

static void engine_close(void *user)
{
	struct state *state = user;

	execpy_result_free(state->result);
	execpy_close(state->engine);
	bytes_free(&state->out);
	free(state);
}

static int engine_open(const struct workload *workload, void **ret_state, struct error *err)
{
	struct state *state = calloc(1, sizeof *state);
	const struct execpy_options options = {
		.program_directory = workload->programs,
		.no_daemon = workload->no_daemon,
	};
	struct execpy_error why = {0};

	if (!state)
		return fail(err, ENOMEM, "engine");
	state->workload = workload;
	if (execpy_open(&options, &state->engine, &why) < 0) {
		free(state);
		return refuse(err, why.number, "%s", why.text);
	}
	*ret_state = state;
	return 0;
}

static int engine_run(void *user, struct answer *ret_answer, struct error *err)
{
	struct state *state = user;
	const struct workload *workload = state->workload;
	const struct execpy_callbacks callbacks = {.output = take_output, .user = state};
	const struct execpy_request request = {
		.code = (const char *)workload->code.data,
		.code_length = workload->code.length,
		.stdin_fd = -1,
		.limits = {.time_ms = workload->time_ms,
			   .memory_bytes = workload->memory_bytes,
			   .disk_bytes = workload->disk_bytes},
		.policy = workload->policy,
		.template = workload->template,
		.return_files = workload->wants_file,
		.out_directory = -1,
	};
	struct execpy_error why = {0};
	const char *json;
	size_t length;

	if (execpy_run(state->engine, &request, &callbacks, &state->result, &why) < 0)
		return refuse(err, why.number, "%s", why.text);
	json = execpy_result_json(state->result, &length);
	if (!json)
		return fail(err, ENOMEM, "the result's JSON");
	snprintf(ret_answer->status, sizeof ret_answer->status, "%s",
		 execpy_status_name(execpy_result_status(state->result)));
	ret_answer->out = bytes_span(&state->out);
	ret_answer->said = (struct span){(const uint8_t *)json, length};
	ret_answer->file_in_json = true;
	return 0;
}

static void engine_forget(void *user)
{
	struct state *state = user;

	execpy_result_free(state->result);
	state->result = NULL;
	bytes_clear(&state->out);
}

const struct driver engine_driver = {engine_open, engine_run, engine_forget, engine_close};
