/* SPDX-License-Identifier: Apache-2.0 */
/* test_json: the writer of results: whatever the bytes are, what comes out is
 * JSON in UTF-8, and nothing that was UTF-8 is changed. */
#include "unit.h"

#include "base/cleanup.h"
#include "engine/json_stream.h"

#include "base/bounds.h"

static void sequences(void **state)
{
	static const struct {
		const char *bytes;
		size_t length, wanted;
	} cases[] = {
		{"", 0, 0},
		{"\0", 1, 1},
		{"\x7f", 1, 1},
		{"\x80", 1, 0}, /* a continuation alone */
		{"\xbf", 1, 0},
		{"\xc0\x80", 2, 0}, /* NUL, overlong */
		{"\xc1\xbf", 2, 0}, /* DEL, overlong */
		{"\xc2\x80", 2, 2}, /* the first of two */
		{"\xdf\xbf", 2, 2}, /* the last of two */
		{"\xc2", 1, 0},     /* cut */
		{"\xc2\x41", 2, 0},
		{"\xe0\x9f\xbf", 3, 0}, /* overlong */
		{"\xe0\xa0\x80", 3, 3}, /* the first of three */
		{"\xed\x9f\xbf", 3, 3}, /* the last before the surrogates */
		{"\xed\xa0\x80", 3, 0}, /* the first surrogate */
		{"\xed\xbf\xbf", 3, 0}, /* the last surrogate */
		{"\xee\x80\x80", 3, 3},
		{"\xef\xbf\xbf", 3, 3}, /* a noncharacter is still a character */
		{"\xe2\x82", 2, 0},     /* cut */
		{"\xe2\x82\x41", 3, 0},
		{"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
		{"\xf0\x90\x80\x80", 4, 4}, /* the first of four */
		{"\xf4\x8f\xbf\xbf", 4, 4}, /* U+10FFFF */
		{"\xf4\x90\x80\x80", 4, 0}, /* beyond */
		{"\xf5\x80\x80\x80", 4, 0},
		{"\xf8\x88\x80\x80\x80", 5, 0}, /* five bytes */
		{"\xff", 1, 0},
		{"\xfe\xff", 2, 0},
		{"\xf0\x9f\x98", 3, 0}, /* cut */
		{"\xc3\xa9tail", 6, 2},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		if (utf8_sequence(span_of(cases[i].bytes, cases[i].length)) != cases[i].wanted)
			fail_msg("case %zu", i);
}

/* Every sequence of one to four bytes whose bytes are edges, against a decoder
 * of another make: all code points, encoded. */
static void every_code_point_passes(void **state)
{
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		uint8_t utf8[4];
		size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		size_t wanted = c >= 0xd800 && c < 0xe000 ? 0 : length;

		if (length == 1) {
			utf8[0] = (uint8_t)c;
		} else {
			for (size_t i = length; i-- > 1;)
				utf8[i] = (uint8_t)(0x80 | (c >> (6 * (length - 1 - i)) & 0x3f));
			utf8[0] = (uint8_t)((0xf00 >> length & 0xff) | c >> (6 * (length - 1)));
		}
		if (utf8_sequence(span_of(utf8, length)) != wanted)
			fail_msg("U+%04X", c);
		for (size_t cut = 1; cut < length; cut++)
			assert_int_equal(utf8_sequence(span_of(utf8, cut)), 0);
	}
}

static void texts(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *wanted;
		bool lossy;
	} cases[] = {
		{"", 0, "\"\"", false},
		{"plain", 5, "\"plain\"", false},
		{"\"\\/", 3, "\"\\\"\\\\/\"", false},
		{"\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"", false},
		{"\0\x01\x0b\x1f\x7f", 5, "\"\\u0000\\u0001\\u000b\\u001f\\u007f\"", false},
		{"a\0b", 3, "\"a\\u0000b\"", false},
		{"\x1b[31m", 5, "\"\\u001b[31m\"", false},
		{"caf\xc3\xa9", 5, "\"caf\xc3\xa9\"", false},
		{"\xe2\x80\xa8\xf0\x9f\x98\x80", 7, "\"\xe2\x80\xa8\xf0\x9f\x98\x80\"", false},
		{"\xff", 1, "\"\xef\xbf\xbd\"", true},
		{"a\xff"
		 "b",
		 3,
		 "\"a\xef\xbf\xbd"
		 "b\"",
		 true},
		{"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", true},
		{"\xc3", 1, "\"\xef\xbf\xbd\"", true},
		{"\xc3\"", 2, "\"\xef\xbf\xbd\\\"\"", true},
		{"\xe2\x82\n", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\\n\"", true},
		/* A replacement character that was there is no loss. */
		{"\xef\xbf\xbd", 3, "\"\xef\xbf\xbd\"", false},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		autobytes out = {0};
		struct json json = {.out = &out};
		bool lossy = emit_text(&json, span_of(cases[i].bytes, cases[i].length));

		if (lossy != cases[i].lossy || out.length != strlen(cases[i].wanted) ||
		    memcmp(out.data, cases[i].wanted, out.length) != 0)
			fail_msg("case %zu: %.*s", i, (int)out.length, (const char *)out.data);
	}
}

static void commas_and_nesting(void **state)
{
	autobytes out = {0};
	struct json json = {.out = &out};

	emit_begin_object(&json);
	emit_key(&json, "a");
	emit_begin_array(&json);
	emit_end_array(&json);
	emit_key(&json, "b");
	emit_begin_array(&json);
	emit_number(&json, 0);
	emit_number(&json, UINT64_MAX);
	emit_begin_object(&json);
	emit_end_object(&json);
	emit_bool(&json, true);
	emit_bool(&json, false);
	emit_null(&json);
	emit_string(&json, NULL);
	emit_string(&json, "x");
	emit_raw(&json, text_of("[1]"));
	emit_end_array(&json);
	emit_key(&json, "c");
	emit_milliseconds(&json, 1);
	emit_key(&json, "d");
	emit_milliseconds(&json, 1234567);
	emit_end_object(&json);
	assert_bytes(&out, "{\"a\":[],\"b\":[0,18446744073709551615,{},true,false,null,null,\"x\","
			   "[1]],\"c\":0.001,\"d\":1234.567}");
}

static void base64(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *wanted;
	} cases[] = {
		{"", 0, "\"\""},        {"f", 1, "\"Zg==\""},          {"fo", 2, "\"Zm8=\""},
		{"foo", 3, "\"Zm9v\""}, {"\0\xff\xfe", 3, "\"AP/+\""},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		autobytes out = {0};
		struct json json = {.out = &out};

		emit_base64(&json, span_of(cases[i].bytes, cases[i].length));
		assert_bytes(&out, cases[i].wanted);
	}
}

static void a_full_buffer_is_noticed(void **state)
{
	autobytes out = {.ceiling = 10};
	struct json json = {.out = &out};

	emit_text(&json, text_of("0123456789"));
	assert_true(out.failed < 0);
	emit_base64(&json, text_of("0123456789"));
	assert_true(out.length <= 10);
}

/* A text in four spans, parted anywhere, also inside of a character: converted piece by
 * piece it is what it is in one. */
static void a_stream_is_the_same_text(void **state)
{
	static const char *const units[] = {"a",        "\n",           "\"",
					    "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
					    "\xff",     "\xe2\x82"};
	autobytes text = {0}, whole = {0};
	struct json wanted = {.out = &whole};
	bool lossy;

	while (text.length < 3 * JSON_PART_BYTES + 7)
		bytes_append_text(&text, units[text.length * 7 % ARRAY_LENGTH(units)]);
	emit_begin_array(&wanted);
	lossy = emit_text(&wanted, bytes_span(&text));
	emit_base64(&wanted, bytes_span(&text));
	emit_number(&wanted, 1);
	emit_end_array(&wanted);
	for (size_t cut = 0; cut < 40; cut++) {
		size_t first = JSON_PART_BYTES - 20 + cut, second = 2 * JSON_PART_BYTES + 3 * cut;
		const struct span spans[JSON_SPANS_MAX] = {
			span_of((char *)text.data, first),
			span_of((char *)text.data + first, cut % 3),
			span_of((char *)text.data + first + cut % 3, second - first - cut % 3),
			span_of((char *)text.data + second, text.length - second)};
		struct json_stream stream = {0};
		struct json json = json_stream_writer(&stream);
		autobytes out = {0};

		emit_begin_array(&json);
		assert_int_equal(emit_pieces(&json, spans), lossy);
		emit_base64(&json, bytes_span(&text));
		emit_number(&json, 1);
		emit_end_array(&json);
		assert_false(json_stream_is_whole(&stream));
		assert_true(stream.text.length < 100); /* nothing of it was copied */
		while (json_stream_next(&stream, &out))
			;
		assert_int_equal(out.length, whole.length);
		assert_memory_equal(out.data, whole.data, whole.length);
		json_stream_free(&stream);
	}
}

static void a_short_stream_is_whole(void **state)
{
	struct json_stream stream = {0};
	struct json json = json_stream_writer(&stream);

	emit_text(&json, text_of("short"));
	assert_true(json_stream_is_whole(&stream));
	assert_bytes(&stream.text, "\"short\"");
	json_stream_free(&stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences),
		cmocka_unit_test(every_code_point_passes),
		cmocka_unit_test(texts),
		cmocka_unit_test(commas_and_nesting),
		cmocka_unit_test(base64),
		cmocka_unit_test(a_full_buffer_is_noticed),
		cmocka_unit_test(a_stream_is_the_same_text),
		cmocka_unit_test(a_short_stream_is_whole),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
