/* SPDX-License-Identifier: Apache-2.0 */
/* request: what the bodies of runs hold, and whose session a path names. */
#include "server/rest/rest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int take_limits(struct ask *ask, const json_t *object, const struct ask_rules *rules,
		       struct error *err)
{
	static const char *const keys[] = {"time_ms",   "cpu_ms",       "memory_bytes",
					   "processes", "output_bytes", "disk_bytes",
					   NULL};
	const json_t *limits = json_object_get(object, "limits");
	int r = 0;

	if (limits && !json_is_object(limits))
		return refuse(err, EINVAL, "limits must be an object");
	if (limits)
		r = ask_known(limits, "limits.", keys, err);
	return r < 0 ? r : ask_limits(limits, "limits.", rules, &ask->request.limits, err);
}

static int take_output(struct ask *ask, const json_t *object, struct error *err)
{
	const char *output = "end";
	int r = ask_text(object, "", "output", &output, err);

	if (r < 0)
		return r;
	ask->request.truncate_output = strcmp(output, "truncate") == 0;
	return ask->request.truncate_output || strcmp(output, "end") == 0
		       ? 0
		       : refuse(err, EINVAL, "output must be \"end\" or \"truncate\"");
}

static int take_template(struct ask *ask, const json_t *object, const struct ask_rules *rules,
			 struct error *err)
{
	if (rules->in_session && json_object_get(object, "template"))
		return refuse(err, EINVAL,
			      "template is the session's own: it is set when it is created");
	return ask_text(object, "", "template", &ask->request.template, err);
}

int rest_take_run(struct ask *ask, const json_t *object, const struct ask_rules *rules,
		  struct rest_run *ret_run, struct error *err)
{
	static const char *const keys[] = {"code",   "stdin",        "args",   "env",
					   "files",  "limits",       "policy", "template",
					   "output", "return_files", "detach", NULL};
	int r;

	if ((r = ask_known(object, "", keys, err)) < 0 || (r = ask_code(ask, object, err)) < 0 ||
	    (r = ask_policy(object, rules, &ask->request.policy, err)) < 0 ||
	    (r = take_template(ask, object, rules, err)) < 0 ||
	    (r = take_limits(ask, object, rules, err)) < 0 ||
	    (r = take_output(ask, object, err)) < 0 ||
	    (r = ask_flag(object, "", "return_files", &ask->request.return_files, err)) < 0 ||
	    (r = ask_flag(object, "", "detach", &ret_run->detach, err)) < 0 ||
	    (r = ask_arguments(ask, object, err)) < 0 ||
	    (r = ask_environment(ask, object, err)) < 0 ||
	    (r = ask_files(ask, object, REST_FILES_MAX, err)) < 0)
		return r;
	return ask_stdin(ask, object, err);
}

bool rest_take_session(struct rest_call *call)
{
	const char *id = exchange_parameter(call->exchange, "id");

	if (strlen(id) < sizeof call->session && owned_by(call->rest->server, call->tenant, id)) {
		snprintf(call->session, sizeof call->session, "%s", id);
		return true;
	}
	rest_problem(call, 404, "there is no session %.60s", id);
	return false;
}
