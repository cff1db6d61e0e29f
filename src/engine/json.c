/* SPDX-License-Identifier: Apache-2.0 */
/* json: see json.h. */
#include "engine/json.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <inttypes.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

static void before_value(struct json *json)
{
	if (json->comma)
		bytes_append_text(json->out, ",");
	json->comma = true;
}

void emit_begin_object(struct json *json)
{
	before_value(json);
	bytes_append_text(json->out, "{");
	json->comma = false;
}

void emit_end_object(struct json *json)
{
	bytes_append_text(json->out, "}");
	json->comma = true;
}

void emit_begin_array(struct json *json)
{
	before_value(json);
	bytes_append_text(json->out, "[");
	json->comma = false;
}

void emit_end_array(struct json *json)
{
	bytes_append_text(json->out, "]");
	json->comma = true;
}

void emit_key(struct json *json, const char *key)
{
	before_value(json);
	bytes_append_format(json->out, "\"%s\":", key);
	json->comma = false;
}

size_t utf8_sequence(struct span text)
{
	const uint8_t *at = text.data;
	size_t length;
	uint32_t c;

	if (text.length == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (length > text.length)
		return 0;
	c = at[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[i] & 0x3f);
	}
	if ((length == 3 && c < 0x800) || (length == 4 && c < 0x10000) || c > 0x10ffff ||
	    (c >= 0xd800 && c < 0xe000))
		return 0;
	return length;
}

/* Bytes that stand for themselves. */
static bool is_plain(uint8_t c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* The bytes at the front that need no change. */
static size_t plain_length(struct span text)
{
	size_t plain = 0;

	while (plain < text.length) {
		struct span rest = {text.data + plain, text.length - plain};
		size_t length;

		if (is_plain(rest.data[0])) {
			plain++;
			continue;
		}
		length = rest.data[0] < 0x80 ? 0 : utf8_sequence(rest);
		if (length == 0)
			break;
		plain += length;
	}
	return plain;
}

static void escape_one(struct bytes *out, struct span rest, bool *lossy)
{
	static const char escapes[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	uint8_t c = rest.data[0];

	if (c >= 0x80) {
		bytes_append_text(out, "\xef\xbf\xbd");
		*lossy = true;
	} else if (c == '"' || c == '\\') {
		const uint8_t pair[2] = {'\\', c};

		bytes_append(out, pair, 2);
	} else if (c < sizeof escapes && escapes[c]) {
		const uint8_t pair[2] = {'\\', (uint8_t)escapes[c]};

		bytes_append(out, pair, 2);
	} else {
		bytes_append_format(out, "\\u%04x", c);
	}
}

size_t json_escape(struct bytes *out, struct span text, bool more, bool *lossy)
{
	size_t at = 0;

	while (at < text.length) {
		struct span rest = {text.data + at, text.length - at};
		size_t plain = plain_length(rest);

		bytes_append(out, rest.data, plain);
		at += plain;
		rest = (struct span){text.data + at, text.length - at};
		if (rest.length == 0 || (more && rest.length < 4 && rest.data[0] >= 0xc2))
			break;
		escape_one(out, rest, lossy);
		at++;
	}
	return at;
}

bool emit_piece(struct json *json, struct json_pieces *pieces, struct span data, bool last)
{
	autobytes joined = {0};
	bool lossy = false;
	size_t taken;

	if (pieces->length > 0) {
		bytes_append(&joined, pieces->carried, pieces->length);
		bytes_append(&joined, data.data, data.length);
		data = bytes_span(&joined);
	}
	before_value(json);
	bytes_append_text(json->out, "\"");
	taken = json_escape(json->out, data, !last, &lossy);
	bytes_append_text(json->out, "\"");
	pieces->length = data.length - taken;
	memmove(pieces->carried, data.data + taken, pieces->length);
	return taken > 0;
}

static void note_part(struct json *json, const struct span *spans, size_t count, bool base64)
{
	struct json_parts *parts = json->parts;
	struct json_part *grown = realloc(parts->list, (parts->count + 1) * sizeof *grown);

	if (!grown) {
		parts->failed = true;
		return;
	}
	parts->list = grown;
	grown[parts->count] = (struct json_part){.at = json->out->length, .base64 = base64};
	memcpy(grown[parts->count++].spans, spans, count * sizeof *spans);
}

static bool is_lossy(struct span text)
{
	for (size_t at = 0; at < text.length;) {
		struct span rest = {text.data + at, text.length - at};
		size_t length = rest.data[0] < 0x80 ? 1 : utf8_sequence(rest);

		if (length == 0)
			return true;
		at += length;
	}
	return false;
}

bool emit_text(struct json *json, struct span text)
{
	bool lossy = false;

	before_value(json);
	bytes_append_text(json->out, "\"");
	if (json->parts && text.length >= JSON_PART_BYTES) {
		note_part(json, &text, 1, false);
		lossy = is_lossy(text);
	} else {
		json_escape(json->out, text, false, &lossy);
	}
	bytes_append_text(json->out, "\"");
	return lossy;
}

bool emit_pieces(struct json *json, const struct span spans[JSON_SPANS_MAX])
{
	autobytes whole = {.ceiling = SIZE_MAX / 4};
	size_t length = 0;
	bool lossy;

	for (size_t i = 0; i < JSON_SPANS_MAX; i++)
		length += spans[i].length;
	if (length == spans[0].length)
		return emit_text(json, spans[0]);
	for (size_t i = 0; i < JSON_SPANS_MAX; i++)
		bytes_append(&whole, spans[i].data, spans[i].length);
	if (whole.failed)
		json->out->failed = whole.failed;
	if (!json->parts || length < JSON_PART_BYTES)
		return emit_text(json, bytes_span(&whole));
	before_value(json);
	bytes_append_text(json->out, "\"");
	note_part(json, spans, JSON_SPANS_MAX, false);
	bytes_append_text(json->out, "\"");
	lossy = is_lossy(bytes_span(&whole));
	return lossy;
}

void emit_string(struct json *json, const char *text)
{
	if (text)
		emit_text(json, (struct span){(const uint8_t *)text, strlen(text)});
	else
		emit_null(json);
}

void emit_base64(struct json *json, struct span data)
{
	char *room;

	before_value(json);
	bytes_append_text(json->out, "\"");
	if (json->parts && data.length >= JSON_PART_BYTES) {
		note_part(json, &data, 1, true);
		bytes_append_text(json->out, "\"");
		return;
	}
	room = (char *)bytes_reserve(json->out, BASE64_ENCODE_RAW_LENGTH(data.length));
	if (room) {
		base64_encode_raw(room, data.length, data.data);
		json->out->length += BASE64_ENCODE_RAW_LENGTH(data.length);
	}
	bytes_append_text(json->out, "\"");
}

void emit_number(struct json *json, uint64_t number)
{
	before_value(json);
	bytes_append_format(json->out, "%" PRIu64, number);
}

void emit_count(struct json *json, const char *key, uint64_t number)
{
	emit_key(json, key);
	emit_number(json, number);
}

void emit_milliseconds(struct json *json, uint64_t us)
{
	before_value(json);
	bytes_append_format(json->out, "%" PRIu64 ".%03u", us / 1000, (unsigned)(us % 1000));
}

void emit_bool(struct json *json, bool value)
{
	before_value(json);
	bytes_append_text(json->out, value ? "true" : "false");
}

void emit_null(struct json *json)
{
	before_value(json);
	bytes_append_text(json->out, "null");
}

void emit_lines(struct json *json, const char *lines)
{
	emit_begin_array(json);
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		if (length > 0)
			emit_text(json, (struct span){(const uint8_t *)lines, length});
		lines += length + (lines[length] == '\n');
	}
	emit_end_array(json);
}

void emit_raw(struct json *json, struct span text)
{
	before_value(json);
	bytes_append(json->out, text.data, text.length);
}
