/* SPDX-License-Identifier: Apache-2.0 */
/* run_calls: the calls of execpy.h that wait for one run. */
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run_to_end(struct execpy_engine *engine, const struct execpy_request *request,
		      const struct execpy_callbacks *callbacks, const struct run_purpose *purpose,
		      struct execpy_result **ret_result, struct error *err)
{
	struct run *run = run_start(engine, request, callbacks, purpose, err);

	return run ? run_wait(run, ret_result, err) : -err->number;
}

int execpy_run(struct execpy_engine *engine, const struct execpy_request *request,
	       const struct execpy_callbacks *callbacks, struct execpy_result **ret_result,
	       struct execpy_error *error)
{
	const struct run_purpose purpose = {0};

	return run_to_end(engine, request, callbacks, &purpose, ret_result, (struct error *)error);
}

int execpy_check(struct execpy_engine *engine, const struct execpy_request *request,
		 struct execpy_result **ret_result, struct execpy_error *error)
{
	const struct run_purpose purpose = {.check_only = true};

	return run_to_end(engine, request, NULL, &purpose, ret_result, (struct error *)error);
}

int execpy_probe(struct execpy_engine *engine, const struct execpy_request *request,
		 struct execpy_result **ret_result, struct execpy_error *error)
{
	const struct run_purpose purpose = {.probe = true};

	return run_to_end(engine, request, NULL, &purpose, ret_result, (struct error *)error);
}

int execpy_failure(const struct execpy_request *request, const struct execpy_error *reason,
		   struct execpy_result **ret_result)
{
	struct execpy_result *result = calloc(1, sizeof *result);

	if (!result)
		return -ENOMEM;
	result->exit_code = -1;
	result->status = EXECPY_INTERNAL_ERROR;
	result->limits = limits_default();
	result->policy = strdup(request->policy ? request->policy : "strict");
	result->template = strdup(request->template ? request->template : "auto");
	snprintf(result->internal, sizeof result->internal, "%s", reason->text);
	snprintf(result->reason, sizeof result->reason, "%s", reason->text);
	run_make_id(result->id);
	if (!result->policy || !result->template) {
		execpy_result_free(result);
		return -ENOMEM;
	}
	*ret_result = result;
	return 0;
}
