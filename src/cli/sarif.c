/* SPDX-License-Identifier: Apache-2.0 */
/* sarif: see sarif.h. The rules come from the verifier's own table. */
#include "cli/sarif.h"

#include "policy/rules.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA_URI                                                            \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/" \
	"sarif-schema-2.1.0.json"

static const char *level_of(enum severity severity)
{
	static const char *const levels[] = {
		[SEVERITY_OFF] = "none",
		[SEVERITY_NOTE] = "note",
		[SEVERITY_WARN] = "warning",
		[SEVERITY_BLOCK] = "error",
	};

	return levels[severity];
}

/* {"text": …} */
static void emit_message(struct json *json, const char *key, const char *text)
{
	emit_key(json, key);
	emit_begin_object(json);
	emit_key(json, "text");
	emit_string(json, text);
	emit_end_object(json);
}

/* A path as a URI reference (RFC 3986): relative ones stay relative. */
static void emit_uri(struct json *json, const char *path)
{
	autobytes uri = {0};

	while (strncmp(path, "./", 2) == 0)
		for (path += 2; *path == '/';)
			path++;
	if (path[0] == '/')
		bytes_append_text(&uri, "file://");
	for (; *path; path++) {
		uint8_t c = (uint8_t)*path;

		if (c < 0x80 && (isalnum(c) || strchr("-._~/", c)))
			bytes_append(&uri, &c, 1);
		else
			bytes_append_format(&uri, "%%%02X", c);
	}
	emit_text(json, bytes_span(&uri));
}

static void emit_artifact(struct json *json, const char *path)
{
	emit_key(json, "artifactLocation");
	emit_begin_object(json);
	emit_key(json, "uri");
	emit_uri(json, path);
	emit_end_object(json);
}

static void emit_region(struct json *json, const struct execpy_finding *finding)
{
	const struct {
		const char *key;
		unsigned number;
	} bounds[] = {
		{"startLine", finding->line},
		{"startColumn", finding->column},
		{"endLine", finding->end_line},
		{"endColumn", finding->end_column},
	};

	if (finding->line == 0)
		return;
	emit_key(json, "region");
	emit_begin_object(json);
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		if (bounds[i].number == 0)
			continue;
		emit_count(json, bounds[i].key, bounds[i].number);
	}
	emit_end_object(json);
}

static void emit_location(struct json *json, const char *path, const struct execpy_finding *finding)
{
	emit_key(json, "locations");
	emit_begin_array(json);
	emit_begin_object(json);
	emit_key(json, "physicalLocation");
	emit_begin_object(json);
	emit_artifact(json, path);
	if (finding)
		emit_region(json, finding);
	emit_end_object(json);
	emit_end_object(json);
	emit_end_array(json);
}

static void emit_rule(struct json *json, const struct rule_info *rule)
{
	autobytes help = {0};

	emit_begin_object(json);
	emit_key(json, "id");
	emit_string(json, rule->id);
	emit_message(json, "shortDescription", rule->matches);
	bytes_append_format(&help, "%s. Why: %s.", rule->hint, rule->reason);
	bytes_append(&help, "", 1);
	emit_message(json, "help", help.failed ? rule->hint : (const char *)help.data);
	emit_key(json, "defaultConfiguration");
	emit_begin_object(json);
	emit_key(json, "level");
	emit_string(json, level_of(rule->severity[PROFILE_STRICT]));
	emit_end_object(json);
	emit_key(json, "properties");
	emit_begin_object(json);
	emit_key(json, "tags");
	emit_begin_array(json);
	emit_string(json, rule->kind);
	emit_end_array(json);
	emit_end_object(json);
	emit_end_object(json);
}

void sarif_begin(struct sarif *sarif)
{
	sarif->result_list = (struct json){.out = &sarif->results};
	sarif->notification_list = (struct json){.out = &sarif->notifications};
	emit_begin_array(&sarif->result_list);
	emit_begin_array(&sarif->notification_list);
}

void sarif_add(struct sarif *sarif, const char *path, const struct execpy_finding *finding)
{
	struct json *json = &sarif->result_list;
	enum rule rule = rule_find(finding->rule);
	enum severity severity = SEVERITY_BLOCK;

	severity_parse(finding->severity, &severity);
	emit_begin_object(json);
	emit_key(json, "ruleId");
	emit_string(json, finding->rule);
	if (rule != RULE_COUNT) {
		emit_count(json, "ruleIndex", rule);
	}
	emit_key(json, "level");
	emit_string(json, level_of(severity));
	emit_message(json, "message", finding->message);
	emit_location(json, path, finding);
	if (finding->hint && finding->hint[0]) {
		emit_key(json, "properties");
		emit_begin_object(json);
		emit_key(json, "hint");
		emit_string(json, finding->hint);
		emit_end_object(json);
	}
	emit_end_object(json);
}

void sarif_add_failure(struct sarif *sarif, const char *path, const char *why)
{
	struct json *json = &sarif->notification_list;

	emit_begin_object(json);
	emit_key(json, "level");
	emit_string(json, "error");
	emit_message(json, "message", why);
	emit_location(json, path, NULL);
	emit_end_object(json);
}

static void emit_driver(struct json *json)
{
	emit_key(json, "tool");
	emit_begin_object(json);
	emit_key(json, "driver");
	emit_begin_object(json);
	emit_key(json, "name");
	emit_string(json, "execpy");
	emit_key(json, "version");
	emit_string(json, execpy_version());
	emit_key(json, "rules");
	emit_begin_array(json);
	for (size_t i = 0; i < RULE_COUNT; i++)
		emit_rule(json, &rule_infos[i]);
	emit_end_array(json);
	emit_end_object(json);
	emit_end_object(json);
}

void sarif_end(struct sarif *sarif, struct bytes *out)
{
	struct json json = {.out = out};
	bool complete;

	emit_end_array(&sarif->result_list);
	emit_end_array(&sarif->notification_list);
	complete = sarif->notifications.length == strlen("[]");
	if (sarif->results.failed || sarif->notifications.failed) {
		out->failed =
			sarif->results.failed ? sarif->results.failed : sarif->notifications.failed;
		return;
	}
	emit_begin_object(&json);
	emit_key(&json, "$schema");
	emit_string(&json, SCHEMA_URI);
	emit_key(&json, "version");
	emit_string(&json, "2.1.0");
	emit_key(&json, "runs");
	emit_begin_array(&json);
	emit_begin_object(&json);
	emit_driver(&json);
	emit_key(&json, "columnKind");
	emit_string(&json, "unicodeCodePoints");
	emit_key(&json, "invocations");
	emit_begin_array(&json);
	emit_begin_object(&json);
	emit_key(&json, "executionSuccessful");
	emit_bool(&json, complete);
	if (!complete) {
		emit_key(&json, "toolExecutionNotifications");
		emit_raw(&json, bytes_span(&sarif->notifications));
	}
	emit_end_object(&json);
	emit_end_array(&json);
	emit_key(&json, "results");
	emit_raw(&json, bytes_span(&sarif->results));
	emit_end_object(&json);
	emit_end_array(&json);
	emit_end_object(&json);
	bytes_append_text(out, "\n");
}

void sarif_free(struct sarif *sarif)
{
	bytes_free(&sarif->results);
	bytes_free(&sarif->notifications);
}
