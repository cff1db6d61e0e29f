/* SPDX-License-Identifier: Apache-2.0 */
/* check: `execpy check`, what the verifier makes of code, without running it. */
#include "cli/cli.h"
#include "cli/excerpt.h"
#include "cli/options.h"
#include "cli/sarif.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "engine/json.h"
#include "policy/rules.h"
#include "policy/text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_REFUSED = 1 };

static const char help_text[] =
	"usage: execpy check [FILE… | - | -c CODE] [OPTION…]\n"
	"\n"
	"Says what the verifier makes of Python code, without running it. Exit status:\n"
	"0 all allowed, 1 any blocked, 2 wrong usage or a file that cannot be read,\n"
	"125 execpy itself failed.\n"
	"\n"
	"  -c CODE              the code itself\n"
	"  --json               print {path, decision, findings}, one object a line\n"
	"  --probe              then run it in a throw-away cell (at most 1 s, 50 MiB) and tell\n"
	"                       what it did: imports, files, processes, sockets, usage\n"
	"  --sarif              print one SARIF 2.1.0 log\n"
	"  --policy NAME|FILE   strict (default), standard, open, or a policy file\n"
	"  --file PATH[:NAME]   a file that would be in the workspace (may be repeated)\n"
	"  --stdin FILE         what the code would read; - is this command's own stdin\n"
	"  --time 5s            the time limit that the code would have\n"
	"  --no-daemon          never use a running daemon\n";

/* All that one call of the command says. */
struct report {
	bool json, is_sarif, probe, colours, many;
	struct sarif sarif;
	size_t allowed, blocked, failed; /* inputs */
	int status;                      /* what weighs most, of all inputs */
};

/* Ours weighs more than the user's mistakes, and those more than a refusal. */
static void settle(struct report *report, int status)
{
	static const int weights[] = {0, EXIT_REFUSED, EXIT_USAGE, EXIT_OURS};
	int heaviest = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(weights); i++)
		if (weights[i] == report->status || weights[i] == status)
			heaviest = weights[i];
	report->status = heaviest;
}

static struct span text_span(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

static int write_out(struct report *report, const struct bytes *out)
{
	int r = out->failed ? out->failed : write_whole(STDOUT_FILENO, out->data, out->length);

	if (r < 0)
		settle(report, own_error("cannot write the verdict: %s", strerror(-r)));
	return r;
}

/* An input that was not judged: one line, and the others are judged all the same. */
static void fail_input(struct report *report, const char *path, const char *why, bool ours)
{
	autobytes line = {0};

	excerpt_text(&line, text_span(why));
	bytes_append(&line, "", 1);
	report->failed++;
	settle(report,
	       (ours ? own_error : usage_error)("%s", line.failed ? why : (char *)line.data));
	if (report->is_sarif)
		sarif_add_failure(&report->sarif, path, why);
}

/* What an input's findings are, by its own lines: of code inside a Markdown
 * fence the engine counts from behind the fence, and tells nothing of it. */
struct findings {
	struct execpy_finding fence;
	const struct execpy_finding *list;
	size_t count;
	unsigned lines_before;
	struct execpy_result *result;
};

static struct findings findings_of(struct span code, struct execpy_result *result)
{
	struct span inner;
	struct findings findings = {.result = result};
	uint32_t lines = 0;

	findings.count = execpy_result_findings(result, &findings.list);
	if (!fence_strip(code, &inner, &lines))
		return findings;
	findings.lines_before = lines;
	findings.count++;
	findings.fence = (struct execpy_finding){
		.rule = rule_infos[RULE_FENCE].id,
		.severity = severity_name(SEVERITY_NOTE),
		.message = rule_infos[RULE_FENCE].message,
		.hint = rule_infos[RULE_FENCE].hint,
	};
	return findings;
}

static struct execpy_finding finding_at(const struct findings *findings, size_t index)
{
	bool fenced = findings->fence.rule != NULL;
	struct execpy_finding finding;

	if (fenced && index == 0)
		return findings->fence;
	finding = findings->list[index - fenced];
	if (finding.line > 0)
		finding.line += findings->lines_before;
	if (finding.end_line > 0)
		finding.end_line += findings->lines_before;
	return finding;
}

static const char *colour_of(const struct report *report, const char *severity)
{
	if (!report->colours)
		return "";
	if (strcmp(severity, "block") == 0)
		return "\033[1;31m";
	return strcmp(severity, "warn") == 0 ? "\033[1;33m" : "\033[1;36m";
}

static void print_finding(const struct report *report, const char *path,
			  const struct findings *findings, size_t index, struct bytes *out)
{
	struct execpy_finding finding = finding_at(findings, index);
	const char *colour = colour_of(report, finding.severity);
	const char *end = report->colours ? "\033[0m" : "";

	bytes_append_text(out, report->colours ? "\033[1m" : "");
	excerpt_text(out, text_span(path));
	if (finding.line > 0)
		bytes_append_format(out, ":%u:%u", finding.line, finding.column);
	bytes_append_format(out, ":%s %s%s:%s ", end, colour, finding.severity, end);
	excerpt_text(out, text_span(finding.message));
	bytes_append_format(out, " [%s]\n", finding.rule);
	if (finding.line > 0) {
		struct span line = {0};
		bool one_line = finding.end_line == finding.line;

		line.data = (const uint8_t *)execpy_result_line(
			findings->result, finding.line - findings->lines_before, &line.length);
		excerpt_line(out, line, finding.column, one_line ? finding.end_column : 0, colour);
	}
	if (finding.hint && finding.hint[0]) {
		bytes_append_text(out, "hint: ");
		excerpt_text(out, text_span(finding.hint));
		bytes_append_text(out, "\n");
	}
}

static void print_text(const struct report *report, const char *path, bool empty,
		       const struct findings *findings, struct bytes *out)
{
	for (size_t i = 0; i < findings->count; i++)
		print_finding(report, path, findings, i, out);
	if (findings->count == 0 && (empty || !report->many)) {
		excerpt_text(out, text_span(path));
		bytes_append_text(out, empty ? ": allowed: it is empty\n" : ": allowed\n");
	}
}

static void emit_place(struct json *json, const char *key, unsigned number)
{
	emit_key(json, key);
	if (number > 0)
		emit_number(json, number);
	else
		emit_null(json);
}

static void print_json(const char *path, bool blocked, const struct findings *findings,
		       struct bytes *out)
{
	struct json json = {.out = out};

	emit_begin_object(&json);
	emit_key(&json, "path");
	emit_string(&json, path);
	emit_key(&json, "decision");
	emit_string(&json, blocked ? "block" : "allow");
	emit_key(&json, "findings");
	emit_begin_array(&json);
	for (size_t i = 0; i < findings->count; i++) {
		struct execpy_finding finding = finding_at(findings, i);

		emit_begin_object(&json);
		emit_key(&json, "rule");
		emit_string(&json, finding.rule);
		emit_key(&json, "severity");
		emit_string(&json, finding.severity);
		emit_key(&json, "message");
		emit_string(&json, finding.message);
		emit_place(&json, "line", finding.line);
		emit_place(&json, "column", finding.column);
		emit_place(&json, "end_line", finding.end_line);
		emit_place(&json, "end_column", finding.end_column);
		emit_key(&json, "hint");
		emit_string(&json, finding.hint && finding.hint[0] ? finding.hint : NULL);
		emit_end_object(&json);
	}
	emit_end_array(&json);
	emit_end_object(&json);
	bytes_append_text(out, "\n");
}

/* A dry run. The decision is the verdict's, or an anomaly's. */
static int tell_probe(struct report *report, struct span code, const char *path,
		      const struct findings *findings, struct execpy_result *result)
{
	enum execpy_status status = execpy_result_status(result);
	bool blocked = status == EXECPY_BLOCKED || status == EXECPY_ANOMALY;
	autobytes out = {0};

	report->blocked += blocked;
	report->allowed += !blocked;
	settle(report, blocked ? EXIT_REFUSED : 0);
	if (report->json) {
		size_t length = 0;
		const char *json = execpy_result_check_json(result, &length);

		bytes_append(&out, json, json ? length : 0);
		bytes_append_text(&out, "\n");
		return write_out(report, &out);
	}
	print_text(report, path, code.length == 0, findings, &out);
	if (status != EXECPY_BLOCKED) {
		size_t length = 0;
		const char *text = execpy_result_probe_text(result, &length);

		bytes_append(&out, text, text ? length : 0);
	}
	return write_out(report, &out);
}

static int tell(struct report *report, struct span code, const char *path,
		struct execpy_result *result)
{
	bool blocked = execpy_result_status(result) == EXECPY_BLOCKED;
	struct findings findings = findings_of(code, result);
	autobytes out = {0};

	if (report->probe && execpy_result_status(result) != EXECPY_INTERNAL_ERROR &&
	    execpy_result_status(result) != EXECPY_CANCELLED)
		return tell_probe(report, code, path, &findings, result);
	if (!blocked && execpy_result_status(result) != EXECPY_OK) {
		const char *reason = execpy_result_reason(result);
		char why[640];

		snprintf(why, sizeof why, "%s: %s", path, reason ? reason : "no verdict");
		fail_input(report, path, why, true);
		return 0;
	}
	report->blocked += blocked;
	report->allowed += !blocked;
	settle(report, blocked ? EXIT_REFUSED : 0);
	if (report->is_sarif) {
		for (size_t i = 0; i < findings.count; i++) {
			struct execpy_finding finding = finding_at(&findings, i);

			sarif_add(&report->sarif, path, &finding);
		}
		return 0;
	}
	if (report->json)
		print_json(path, blocked, &findings, &out);
	else
		print_text(report, path, code.length == 0, &findings, &out);
	return write_out(report, &out);
}

/* One input, once it was read. */
struct input {
	const char *shown;
	struct bytes code;
	struct execpy_error unread; /* why not, if its number is set */
};

/* Inputs that are judged together, and told in their order: as many as keep some
 * cells busy. */
#define GROUP_CODES_MAX (4 * BATCH_CODES_MAX)
#define GROUP_BYTES_MAX (4 * CODE_BYTES_MAX)
struct group {
	struct report *report;
	struct input inputs[GROUP_CODES_MAX];
	struct execpy_code codes[GROUP_CODES_MAX];
	size_t count, told, bytes;
	int result; /* negative: nobody listens any more */
};

static void read_input(struct group *group, struct options *options, const char *path)
{
	struct input *input = &group->inputs[group->count++];

	*input = (struct input){
		.shown = !path                    ? "<string>"
			 : strcmp(path, "-") == 0 ? "<stdin>"
						  : path,
	};
	options_load(options, path, &input->unread);
	input->code = options->code;
	options->code = (struct bytes){0};
	group->bytes += input->code.length;
}

/* Tells what was not read, up to the next input that was; NULL at the end. */
static struct input *next_input(struct group *group)
{
	for (; group->told < group->count; group->told++) {
		struct input *input = &group->inputs[group->told];

		if (input->unread.number == 0)
			return input;
		fail_input(group->report, input->shown, input->unread.text, false);
	}
	return NULL;
}

static void tell_next(void *user, size_t index, struct execpy_result *result)
{
	struct group *group = user;
	struct input *input = next_input(group);

	if (input && group->result == 0)
		group->result = tell(group->report, bytes_span(&input->code), input->shown, result);
	group->told++;
	execpy_result_free(result);
}

static int probe_each(struct group *group, struct execpy_engine *engine,
		      struct execpy_request *request, const struct execpy_code *codes, size_t count,
		      struct execpy_error *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0 && group->result == 0; i++) {
		struct execpy_result *result = NULL;

		request->code = codes[i].code;
		request->code_length = codes[i].code_length;
		r = execpy_probe(engine, request, &result, err);
		if (r == 0)
			tell_next(group, i, result);
	}
	return r;
}

/* Negative when there is no use in going on: the request itself is wrong, there is
 * no engine, or nobody listens. It was told. */
static int judge(struct group *group, struct options *options, struct execpy_engine **engine)
{
	const struct execpy_options engine_options = {.no_daemon = options->no_daemon};
	struct report *report = group->report;
	struct execpy_code *codes = group->codes;
	struct execpy_error err = {0};
	size_t count = 0;
	bool ours = false;
	int r = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct bytes *code = &group->inputs[i].code;

		if (group->inputs[i].unread.number == 0)
			codes[count++] = (struct execpy_code){
				.code = code->data ? (const char *)code->data : "",
				.code_length = code->length,
			};
	}
	if (count > 0 && !*engine) {
		r = execpy_open(&engine_options, engine, &err);
		ours = r < 0;
	}
	if (r == 0 && report->probe)
		r = probe_each(group, *engine, &options->request, codes, count, &err);
	else if (r == 0 && count > 0)
		r = execpy_check_many(*engine, &options->request, codes, count, tell_next, group,
				      &err);
	if (r < 0) {
		struct input *input = next_input(group);

		fail_input(report, input ? input->shown : "execpy", err.text, ours);
		return r;
	}
	next_input(group);
	return group->result;
}

/* All inputs, one group after the other. */
static int judge_all(struct report *report, struct options *options)
{
	size_t count = options->has_code ? 1 : options->path_count;
	struct execpy_engine *engine = NULL;
	autofree struct group *group = malloc(sizeof *group);
	int r = 0;

	if (!group) {
		settle(report, own_error("out of memory"));
		return -ENOMEM;
	}
	group->report = report;
	group->result = 0;
	for (size_t i = 0; i < count && r == 0;) {
		group->count = group->told = group->bytes = 0;
		do
			read_input(group, options, options->has_code ? NULL : options->paths[i]);
		while (++i < count && group->count < GROUP_CODES_MAX &&
		       group->bytes < GROUP_BYTES_MAX);
		r = judge(group, options, &engine);
		for (size_t k = 0; k < group->count; k++)
			bytes_free(&group->inputs[k].code);
	}
	execpy_close(engine);
	return r;
}

static void finish(struct report *report)
{
	autobytes out = {0};

	if (report->is_sarif) {
		sarif_end(&report->sarif, &out);
	} else if (!report->json && report->many) {
		bytes_append_format(&out, "%zu files: %zu blocked, %zu allowed",
				    report->blocked + report->allowed + report->failed,
				    report->blocked, report->allowed);
		if (report->failed)
			bytes_append_format(&out, ", %zu not judged", report->failed);
		bytes_append_text(&out, "\n");
	}
	if (out.length > 0 || out.failed)
		write_out(report, &out);
}

static int check(struct report *report, struct options *options)
{
	size_t count = options->has_code ? 1 : options->path_count;

	if (options->has_code && options->path_count)
		return usage_error("either -c or files, not both");
	if (count == 0)
		return usage_error("what shall be checked? Give FILEs, - for stdin, or -c CODE");
	if (options_share_stdin(options))
		return usage_error("stdin can be read once: as the code, or as what it reads");
	if (report->probe && report->is_sarif)
		return usage_error("--sarif holds findings only: --probe goes with text or --json");
	if (report->json && report->is_sarif)
		return usage_error("either --json or --sarif, not both");
	/* What the code imports is looked up, not loaded. */
	if (!report->probe)
		options->request.template = "bare";
	report->many = count > 1;
	report->colours = colours_wanted();
	signal(SIGPIPE, SIG_IGN);
	sarif_begin(&report->sarif);
	if (judge_all(report, options) == 0)
		finish(report);
	return report->status;
}

int command_check(int argc, char **argv)
{
	static const char *const valued[] = {"-c", "--policy", "--file", "--stdin", "--time", NULL};
	struct report report = {0};
	struct options options = options_default();
	const struct options_flag flags[] = {
		{"--json", &report.json},
		{"--probe", &report.probe},
		{"--sarif", &report.is_sarif},
		{"--no-daemon", &options.no_daemon},
		{NULL, NULL},
	};
	const struct options_syntax syntax = {"check", help_text, flags, valued, NULL, false};
	int status = options_parse(&options, &syntax, argc, argv);

	status = status > 0 ? status - 1 : check(&report, &options);
	sarif_free(&report.sarif);
	options_free(&options);
	return status;
}
