/* SPDX-License-Identifier: Apache-2.0 */
/* info: what this server runs, how, and for whom.
 *
 * What is installed only Python knows: a run of ours asks it, once. Which templates there
 * are the daemon is asked each time. */
#include "server/rest/rest.h"

#include <string.h>

static const char survey[] =
	"import importlib.metadata as metadata, json, sys\n"
	"found = {d.metadata['Name']: d.version for d in metadata.distributions() if d.metadata}\n"
	"packages = [{'name': n, 'version': v} for n, v in sorted(found.items()) if n and v]\n"
	"print(json.dumps({'python': '%d.%d.%d' % sys.version_info[:3], 'packages': packages}))\n";

struct info_call {
	struct rest_call call;
	struct daemon_report report;
};

static void write_templates(struct info_call *info, struct json *json)
{
	emit_key(json, "templates");
	emit_begin_array(json);
	for (size_t i = 0; i < info->report.template_count; i++) {
		const struct template_report *template = &info->report.templates[i];

		emit_begin_object(json);
		emit_key(json, "name");
		emit_string(json, template->name);
		emit_key(json, "loaded");
		emit_bool(json, template->loaded);
		emit_count(json, "parked", template->parked);
		emit_end_object(json);
	}
	emit_end_array(json);
}

static void write_limits(const struct ask_rules *rules, struct json *json)
{
	emit_key(json, "limits");
	emit_begin_object(json);
	for (size_t i = 0; i < limit_count; i++) {
		emit_key(json, limit_infos[i].name);
		emit_begin_object(json);
		emit_count(json, "default", limit_get(&rules->initial, &limit_infos[i]));
		emit_count(json, "least", limit_infos[i].least);
		emit_count(json, "most", limit_get(&rules->ceilings, &limit_infos[i]));
		emit_end_object(json);
	}
	emit_end_object(json);
}

static void write_policies(const struct ask_rules *rules, struct json *json)
{
	static const char *const builtin[] = {"strict", "standard", "open", NULL};
	const char *const *policies =
		rules->policies ? (const char *const *)rules->policies : builtin;

	emit_key(json, "policies");
	emit_begin_array(json);
	for (; *policies; policies++)
		emit_string(json, *policies);
	emit_end_array(json);
}

static void write_tenant(const struct tenant *tenant, struct json *json)
{
	emit_key(json, "tenant");
	emit_begin_object(json);
	emit_key(json, "name");
	emit_string(json, tenant->name);
	emit_count(json, "runs", tenant->runs);
	emit_count(json, "runs_max", tenant->runs_max);
	emit_count(json, "sessions", tenant->sessions);
	emit_count(json, "sessions_max", tenant->sessions_max);
	emit_end_object(json);
}

static void write_json(struct json *json, const char *key, const char *text)
{
	emit_key(json, key);
	if (text)
		emit_raw(json, (struct span){(const uint8_t *)text, strlen(text)});
	else
		emit_null(json);
}

static void answer(struct info_call *info)
{
	struct rest_call *call = &info->call;
	const struct ask_rules rules = rest_rules(call->tenant);
	struct json json = json_stream_writer(&call->stream);

	emit_begin_object(&json);
	emit_key(&json, "version");
	emit_string(&json, execpy_version());
	write_json(&json, "python", call->rest->python);
	write_json(&json, "packages", call->rest->packages);
	write_templates(info, &json);
	write_limits(&rules, &json);
	write_policies(&rules, &json);
	write_tenant(call->tenant, &json);
	emit_end_object(&json);
	rest_send(call, 200, "application/json");
}

/* It is our own code, but it ran where a module may have said something: what is no JSON
 * is not told. */
static void keep_packages(struct rest *rest, struct execpy_result *result)
{
	struct bytes text = {0};
	json_t *read;

	capture_text(&result->output[0], &text);
	read = json_loadb((const char *)text.data, text.length, JSON_REJECT_DUPLICATES, NULL);
	bytes_free(&text);
	if (read && !rest->packages) {
		rest->python = json_dumps(json_object_get(read, "python"), JSON_ENCODE_ANY);
		rest->packages = json_dumps(json_object_get(read, "packages"), JSON_COMPACT);
	}
	json_decref(read);
}

static void on_survey(void *user, struct execpy_result *result, const struct error *why)
{
	struct info_call *info = user;

	info->call.run = NULL;
	info->call.result = result;
	if (result && result->status == EXECPY_OK)
		keep_packages(info->call.rest, result);
	answer(info);
}

static void ask_python(struct info_call *info)
{
	struct rest_call *call = &info->call;
	const struct async async = {.done = on_survey, .user = info};
	struct execpy_request *request = &call->ask.request;

	request->code = survey;
	request->code_length = sizeof survey - 1;
	request->policy = "open";
	request->template = "bare";
	request->limits.time_ms = request->limits.cpu_ms = REST_SURVEY_MS;
	call->run = async_begin(call->rest->server->engine, request, &async, &(struct error){0});
	if (!call->run)
		answer(info);
}

static void on_report(void *user, const struct daemon_report *report, const struct error *why)
{
	struct info_call *info = user;

	info->call.reporting = NULL;
	if (!report) {
		rest_fail(&info->call, why);
		return;
	}
	info->report = *report;
	if (info->call.rest->packages)
		answer(info);
	else
		ask_python(info);
}

void rest_handle_info(struct exchange *exchange)
{
	struct info_call *info = (struct info_call *)rest_call_new(exchange, sizeof *info);
	struct error err = {0};

	if (!info)
		return;
	info->call.reporting = report_begin(info->call.rest->server->engine, on_report, info, &err);
	if (!info->call.reporting)
		rest_fail(&info->call, &err);
}
