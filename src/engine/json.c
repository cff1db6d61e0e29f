/* SPDX-License-Identifier: Apache-2.0 */
/* json: see json.h. */
#include "engine/json.h"

#include <inttypes.h>
#include <nettle/base64.h>
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

bool emit_text(struct json *json, struct span text)
{
	static const char escapes[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	bool lossy = false;
	size_t plain = 0; /* bytes at the front that need no change */

	before_value(json);
	bytes_append_text(json->out, "\"");
	while (plain < text.length) {
		struct span rest = {text.data + plain, text.length - plain};
		size_t length = utf8_sequence(rest);
		uint8_t c = rest.data[0];

		if (length > 0 && c >= ' ' && c != '"' && c != '\\' && c != 0x7f) {
			plain += length;
			continue;
		}
		bytes_append(json->out, text.data, plain);
		if (length == 0) {
			bytes_append_text(json->out, "\xef\xbf\xbd");
			lossy = true;
		} else if (c == '"' || c == '\\') {
			bytes_append_format(json->out, "\\%c", c);
		} else if (c < sizeof escapes && escapes[c]) {
			bytes_append_format(json->out, "\\%c", escapes[c]);
		} else {
			bytes_append_format(json->out, "\\u%04x", c);
		}
		text.data += plain + 1;
		text.length -= plain + 1;
		plain = 0;
	}
	bytes_append(json->out, text.data, plain);
	bytes_append_text(json->out, "\"");
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
