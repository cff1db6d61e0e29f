/* SPDX-License-Identifier: Apache-2.0 */
/* result_model: a result as a model reads it: one bounded text, and the pictures.
 *
 * stdout stands first and has no label; what follows it is labelled with a word in
 * brackets. When there is too much, each part keeps its head and its tail: what is
 * small beside the whole (the error, what to do about it, the files) is never cut
 * away by what is large (stdout). */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <string.h>

#define CUT_LINE_BYTES  80 /* what the line about a cut may take */
#define NOTES_SHOWN     20
#define FILES_SHOWN     50
#define FILES_LINE_ROOM 200

static const char replacement[] = "\xef\xbf\xbd";

/* Appends what fits into `room` bytes; what is not UTF-8 is replaced. Returns how many
 * bytes of the text that was. */
static size_t append_text(struct bytes *out, struct span text, size_t room)
{
	size_t at = 0, used = 0;

	while (at < text.length) {
		struct span rest = {text.data + at, text.length - at};
		size_t length = utf8_sequence(rest), need = length ? length : 3;

		if (used + need > room)
			break;
		if (length)
			bytes_append(out, rest.data, length);
		else
			bytes_append(out, replacement, 3);
		used += need;
		at += length ? length : 1;
	}
	return at;
}

/* Where a tail of the text begins that takes at most `room` bytes. */
static size_t tail_start(struct span text, size_t room)
{
	size_t at = text.length, used = 0;

	while (at > 0) {
		size_t from = at - 1;

		while (from > 0 && at - from < 4 && (text.data[from] & 0xc0) == 0x80)
			from--;
		if (utf8_sequence((struct span){text.data + from, at - from}) != at - from)
			from = at - 1;
		used += utf8_sequence((struct span){text.data + from, at - from}) ? at - from : 3;
		if (used > room)
			break;
		at = from;
	}
	return at;
}

/* Head and tail, and between them a line that says how much is missing. */
static void append_cut(struct bytes *out, struct span text, size_t room)
{
	size_t before = out->length, head, tail;

	if (text.length <= room && append_text(out, text, room) == text.length)
		return;
	out->length = before;
	room = room > CUT_LINE_BYTES ? room - CUT_LINE_BYTES : 0;
	head = append_text(out, text, room / 2);
	tail = tail_start(text, room / 2);
	if (tail < head)
		tail = head;
	bytes_append_format(out, "\n[... %zu bytes left out ...]\n", tail - head);
	append_text(out, (struct span){text.data + tail, text.length - tail}, room / 2);
}

static struct span trimmed(struct span text)
{
	while (text.length > 0 &&
	       (text.data[text.length - 1] == '\n' || text.data[text.length - 1] == ' '))
		text.length--;
	return text;
}

static void begin_line(struct bytes *out)
{
	if (out->length > 0 && out->data[out->length - 1] != '\n')
		bytes_append_text(out, "\n");
}

static void append_part(struct bytes *out, const char *label, struct span text, size_t room)
{
	text = trimmed(text);
	if (text.length == 0)
		return;
	begin_line(out);
	if (label)
		bytes_append_format(out, "[%s]\n", label);
	append_cut(out, text, room);
	begin_line(out);
}

/* --- bundles ------------------------------------------------------------------- */

static bool find_datum(const struct execpy_result *result, int index, const char *mime,
		       struct span *ret_data)
{
	const void *data;

	if (!execpy_result_bundle(result, index, mime, &data, &ret_data->length))
		return false;
	ret_data->data = data;
	return true;
}

static const char *find_picture(const struct execpy_result *result, int index,
				struct span *ret_data)
{
	if (find_datum(result, index, "image/png", ret_data))
		return "image/png";
	return find_datum(result, index, "image/jpeg", ret_data) ? "image/jpeg" : NULL;
}

void result_pictures(const struct execpy_result *result,
		     void (*tell)(void *user, const char *mime, struct span data), void *user)
{
	int count = (int)result->display_count;

	for (int i = 0; i <= count; i++) {
		struct span data;
		const char *mime = find_picture(result, i == count ? -1 : i, &data);

		if (mime)
			tell(user, mime, data);
	}
}

/* What is shown is text where there is no picture of it. */
static void append_displays(const struct execpy_result *result, struct bytes *out)
{
	struct span data;

	for (int i = 0; i < (int)result->display_count; i++) {
		if (find_picture(result, i, &data) || !find_datum(result, i, "text/plain", &data))
			continue;
		begin_line(out);
		bytes_append(out, data.data, data.length);
	}
}

/* --- the parts ------------------------------------------------------------------- */

static bool ends_with(struct span text, struct span end)
{
	return text.length >= end.length && end.length > 0 &&
	       memcmp(text.data + text.length - end.length, end.data, end.length) == 0;
}

static struct span traceback_of(const struct execpy_result *result)
{
	struct field field;

	if (result->status == EXECPY_BLOCKED || result->error.length == 0 ||
	    !result_find_field(result->error, FIELD_TRACEBACK, &field))
		return (struct span){NULL, 0};
	return trimmed(field.value);
}

static void append_error(struct execpy_result *result, struct bytes *out)
{
	struct span traceback = traceback_of(result);
	const char *explanation = execpy_result_explanation(result);

	if (result->status == EXECPY_OK)
		return;
	if (traceback.length > 0) {
		bytes_append(out, traceback.data, traceback.length);
		bytes_append_text(out, "\n");
	} else if (result->status == EXECPY_ERROR) {
		bytes_append_format(out, "the code ended with exit status %d\n", result->exit_code);
	}
	if (explanation)
		bytes_append_text(out, explanation);
}

static void append_finding(const struct finding *finding, struct bytes *out)
{
	bytes_append_format(out, "[%s] ", severity_name(finding->severity));
	if (finding->line > 0)
		bytes_append_format(out, "line %u: ", finding->line);
	bytes_append_format(out, "%s (%s)", finding->message, rule_infos[finding->rule].id);
	if (finding->hint[0])
		bytes_append_format(out, "; hint: %s", finding->hint);
	bytes_append_text(out, "\n");
}

static void append_findings(const struct execpy_result *result, struct bytes *out)
{
	const struct finding *cause =
		result->verdict.blocked ? verdict_cause(&result->verdict) : NULL;
	size_t shown = 0;

	for (size_t i = 0; i < result->verdict.finding_count; i++) {
		const struct finding *finding = &result->verdict.findings[i];

		if (finding->severity < SEVERITY_WARN || finding == cause)
			continue;
		if (shown++ == NOTES_SHOWN) {
			bytes_append_text(out, "[note] there are more findings\n");
			break;
		}
		append_finding(finding, out);
	}
}

static void append_session(const struct execpy_result *result, struct bytes *out)
{
	if (!result->restored)
		return;
	bytes_append_text(out, "[session] it went on from its last checkpoint: what was changed in "
			       "memory since then is gone");
	for (size_t at = 0; at < result->lost.length && result->lost.data[at];) {
		const char *line = (const char *)result->lost.data + at;
		size_t length = strcspn(line, "\n");

		bytes_append_format(out, "\n  lost: %.*s", (int)length, line);
		at += length + 1;
	}
	bytes_append_text(out, "\n");
}

static void append_files(const struct execpy_result *result, struct bytes *out)
{
	for (size_t i = 0; i < result->file_count && i < FILES_SHOWN; i++) {
		const struct collected_file *file = &result->files[i];

		if (i == 0)
			bytes_append_text(out,
					  result->session[0]
						  ? "[files]\n"
						  : "[files] (gone now; a session keeps them)\n");
		if (file->refused)
			bytes_append_format(out, "%.*s: not handed out: %s\n", FILES_LINE_ROOM,
					    file->path, file->refused);
		else
			bytes_append_format(out, "%.*s: %s, %llu bytes, %s\n", FILES_LINE_ROOM,
					    file->path, file->changed ? "changed" : "created",
					    (unsigned long long)file->size, file->media_type);
	}
	if (result->file_count > FILES_SHOWN)
		bytes_append_format(out, "and %zu more\n", result->file_count - FILES_SHOWN);
	for (size_t i = 0; i < result->deleted_count && i < FILES_SHOWN; i++)
		bytes_append_format(out, "%s%.*s: deleted\n",
				    i == 0 && result->file_count == 0 ? "[files]\n" : "",
				    FILES_LINE_ROOM, result->deleted[i]);
	if (result->files_cut)
		bytes_append_format(out, "[warn] files: %s\n", result->files_cut);
}

/* stderr without the traceback at its end, which is shown as the error. */
static void take_stderr(struct execpy_result *result, struct bytes *out)
{
	struct span traceback = traceback_of(result);

	capture_text(&result->output[1], out);
	out->length = trimmed(bytes_span(out)).length;
	if (ends_with(bytes_span(out), traceback))
		out->length -= traceback.length;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void result_model_text(struct execpy_result *result, size_t limit, struct bytes *out)
{
	autobytes output = {0}, errors = {0}, displays = {0}, error = {0}, notes = {0}, files = {0};
	struct span value = {NULL, 0};
	size_t rest;

	capture_text(&result->output[0], &output);
	take_stderr(result, &errors);
	append_displays(result, &displays);
	find_datum(result, -1, "text/plain", &value);
	append_error(result, &error);
	append_findings(result, &notes);
	append_session(result, &notes);
	if (result->status != EXECPY_BLOCKED) /* else nothing ran */
		append_files(result, &files);
	/* stdout gets what the others leave of it, half of all at least. */
	rest = limit - least(errors.length, limit / 8) - least(displays.length, limit / 12) -
	       least(value.length, limit / 12) - least(error.length, limit / 8) -
	       least(notes.length, limit / 24) - least(files.length, limit / 24) - 256;
	append_part(out, NULL, bytes_span(&output), least(rest, limit));
	append_part(out, "stderr", bytes_span(&errors), limit / 8);
	append_part(out, "display", bytes_span(&displays), limit / 12);
	append_part(out, output.length + displays.length + errors.length ? "value" : NULL, value,
		    limit / 12);
	append_part(out, result->status == EXECPY_OK ? NULL : execpy_status_name(result->status),
		    bytes_span(&error), limit / 8);
	append_part(out, NULL, bytes_span(&notes), limit / 24);
	append_part(out, NULL, bytes_span(&files), limit / 24);
	if (out->length == 0)
		bytes_append_text(out, "(no output)\n");
}

void result_model_verdict(struct execpy_result *result, size_t limit, struct bytes *out)
{
	autobytes error = {0}, notes = {0};

	bytes_append_text(out, result->status == EXECPY_OK ? "allowed: a run would begin\n"
							   : "blocked: nothing of it would run\n");
	append_error(result, &error);
	append_findings(result, &notes);
	append_part(out, NULL, bytes_span(&error), limit / 2);
	append_part(out, NULL, bytes_span(&notes), limit / 3);
}
