/* SPDX-License-Identifier: Apache-2.0 */
/* result_text: a result for a person, and for users of the library. */
#include "engine/engine.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* Columns that are shown under a line: tabs stay tabs, so that carets fit. */
static void append_carets(struct bytes *out, struct span line, uint32_t from, uint32_t to)
{
	uint32_t column = 1;

	for (size_t i = 0; i < line.length && column < from; i++) {
		if ((line.data[i] & 0xc0) == 0x80)
			continue;
		bytes_append_text(out, line.data[i] == '\t' ? "\t" : " ");
		column++;
	}
	do
		bytes_append_text(out, "^");
	while (++column < to && column < from + 200);
}

void result_refusal_text(const struct execpy_result *result, const struct finding *finding,
			 struct bytes *out)
{
	struct span line = result_code_line(result, finding->line);
	char name[32];

	result_file_name(result, name);
	if (finding->line > 0) {
		bytes_append_format(out, "  File \"%s\", line %u\n", name, finding->line);
		if (line.length > 0 && line.length < 500) {
			bytes_append_text(out, "    ");
			bytes_append(out, line.data, line.length);
			bytes_append_text(out, "\n    ");
			append_carets(out, line, finding->column,
				      finding->end_line == finding->line ? finding->end_column : 0);
			bytes_append_text(out, "\n");
		}
	}
	bytes_append_format(out, "%s: %s\n", finding_error_type(finding), finding->message);
}

const char *result_hint(enum execpy_status status)
{
	switch (status) {
	case EXECPY_TIMEOUT:
		return "Make the code finish sooner, or ask for more time; the frames say where it "
		       "stood.";
	case EXECPY_CPU_LIMIT:
		return "Use a cheaper algorithm or less data, or ask for more CPU time; the frames "
		       "say where it stood.";
	case EXECPY_MEMORY_LIMIT:
		return "Work in pieces (chunksize, generators, smaller types), or ask for more "
		       "memory.";
	case EXECPY_OUTPUT_LIMIT:
		return "Print less, write to a file, or ask for a higher output limit.";
	case EXECPY_DISK_LIMIT:
		return "Write less to /workspace and /tmp, or ask for a higher disk limit.";
	case EXECPY_ANOMALY:
		return "The sandbox has no network and starts no programs, and only /workspace and "
		       "/tmp can be written: do without, or write there.";
	case EXECPY_INTERNAL_ERROR:
		return "This is a failure of execpy, not of the code: the run may be tried again.";
	default:
		return NULL;
	}
}

const char *execpy_result_explanation(struct execpy_result *result)
{
	struct bytes *out = &result->explanation;
	const struct finding *cause = verdict_cause(&result->verdict);
	const char *hint = result_hint(result->status);
	uint64_t line = result_stop_line(result);

	if (result->status == EXECPY_OK || result->status == EXECPY_ERROR)
		return NULL;
	bytes_clear(out);
	if (result->status == EXECPY_BLOCKED && cause) {
		result_refusal_text(result, cause, out);
		hint = cause->hint[0] ? cause->hint : NULL;
	} else if (result->status == EXECPY_INTERNAL_ERROR) {
		bytes_append_format(out, "execpy: %s (execpy's own failure: try again)\n",
				    result->reason);
		hint = NULL;
	} else {
		bytes_append_format(out, "execpy: %s", result->reason);
		if (line == 0)
			line = result->anomaly_line;
		if (line > 0) {
			struct span text = result_code_line(result, line);

			bytes_append_format(out, " at line %llu:\n    %.*s",
					    (unsigned long long)line, (int)text.length,
					    (const char *)text.data);
		}
		bytes_append_text(out, "\n");
	}
	if (hint)
		bytes_append_format(out, "hint: %s\n", hint);
	bytes_append(out, "", 1);
	return out->failed ? NULL : (const char *)out->data;
}

static void append_field(const struct execpy_result *result, enum field_name name,
			 const char *otherwise, struct bytes *out)
{
	struct field field;

	if (result->error.length > 0 && result_find_field(result->error, name, &field))
		bytes_append(out, field.value.data, field.value.length);
	else
		bytes_append_text(out, otherwise);
}

/* An exception's, or that of an exit that the code asked for. */
static void take_own_error(const struct execpy_result *result, struct result_error *error)
{
	if (result->error.length == 0) {
		bytes_append_text(&error->type, "SystemExit");
		bytes_append_format(&error->message, "%d", result->exit_code);
	} else {
		append_field(result, FIELD_TYPE, "Exception", &error->type);
		append_field(result, FIELD_TEXT, "", &error->message);
	}
	append_field(result, FIELD_TRACEBACK, "", &error->traceback);
}

bool result_error(struct execpy_result *result, struct result_error *ret_error)
{
	const struct finding *cause = verdict_cause(&result->verdict);
	const char *type = result_limit_type(result->status), *hint = result_hint(result->status);
	const char *message = result->reason, *explanation = execpy_result_explanation(result);

	*ret_error = (struct result_error){0};
	if (result->status == EXECPY_OK)
		return false;
	if (result->status == EXECPY_BLOCKED) {
		type = cause ? finding_error_type(cause) : "SecurityError";
		message = cause ? cause->message : "refused";
		hint = cause && cause->hint[0] ? cause->hint : NULL;
	}
	if (!type && result->status != EXECPY_DISK_LIMIT) {
		take_own_error(result, ret_error);
		return true;
	}
	bytes_append_text(&ret_error->type, type ? type : "DiskLimitError");
	bytes_append_text(&ret_error->message, message);
	if (hint)
		bytes_append_format(&ret_error->message, "\nhint: %s", hint);
	bytes_append_text(&ret_error->traceback, explanation ? explanation : "");
	return true;
}

void result_error_free(struct result_error *error)
{
	bytes_free(&error->type);
	bytes_free(&error->message);
	bytes_free(&error->traceback);
}

size_t execpy_result_findings(struct execpy_result *result,
			      const struct execpy_finding **ret_findings)
{
	size_t count = result->verdict.finding_count;

	if (!result->findings)
		result->findings = calloc(count + 1, sizeof *result->findings);
	if (!result->findings)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct finding *finding = &result->verdict.findings[i];

		result->findings[i] = (struct execpy_finding){
			.rule = rule_infos[finding->rule].id,
			.severity = severity_name(finding->severity),
			.message = finding->message,
			.hint = finding->hint,
			.line = finding->line,
			.column = finding->column,
			.end_line = finding->end_line,
			.end_column = finding->end_column,
		};
	}
	*ret_findings = result->findings;
	return count;
}

const char *execpy_result_line(const struct execpy_result *result, unsigned line,
			       size_t *ret_length)
{
	struct span span = result_code_line(result, line);

	*ret_length = span.length;
	return (const char *)span.data;
}

bool execpy_result_artifact(const struct execpy_result *result, size_t index,
			    struct execpy_artifact *ret_artifact)
{
	const struct collected_file *file = &result->files[index];

	if (index >= result->file_count)
		return false;
	*ret_artifact = (struct execpy_artifact){file->path, file->refused, file->failed,
						 file->size, file->sha256};
	return true;
}
