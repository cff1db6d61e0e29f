/* SPDX-License-Identifier: Apache-2.0 */
/* json_check: whether a text is one JSON value and nothing else. Stricter than
 * the writer needs: UTF-8 throughout, no raw control characters, no key twice in
 * one object. Written apart from the writer, so that both would have to err. */
#ifndef EXECPY_TESTS_JSON_CHECK_H
#define EXECPY_TESTS_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSON_DEPTH_MAX 32
#define JSON_KEYS_MAX  128

struct json_check {
	const uint8_t *at, *end;
	const char *wrong;
	int depth;
};

static bool json_wrong(struct json_check *check, const char *what)
{
	if (!check->wrong)
		check->wrong = what;
	return false;
}

static bool json_take(struct json_check *check, const char *text)
{
	size_t length = strlen(text);

	if ((size_t)(check->end - check->at) < length || memcmp(check->at, text, length) != 0)
		return json_wrong(check, text);
	check->at += length;
	return true;
}

static bool json_hex(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* One character of Unicode's table 3-7, "well-formed UTF-8 byte sequences". */
static bool json_character(struct json_check *check)
{
	static const struct {
		uint8_t first_low, first_high, second_low, second_high, more;
	} rows[] = {
		{0x20, 0x7e, 0, 0, 0},       {0xc2, 0xdf, 0x80, 0xbf, 1},
		{0xe0, 0xe0, 0xa0, 0xbf, 2}, {0xe1, 0xec, 0x80, 0xbf, 2},
		{0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
		{0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3},
		{0xf4, 0xf4, 0x80, 0x8f, 3},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const uint8_t *at = check->at;

		if (at[0] < rows[i].first_low || at[0] > rows[i].first_high)
			continue;
		if (check->end - at <= rows[i].more)
			break;
		if (rows[i].more > 0 && (at[1] < rows[i].second_low || at[1] > rows[i].second_high))
			break;
		for (int more = 2; more <= rows[i].more; more++)
			if (at[more] < 0x80 || at[more] > 0xbf)
				return json_wrong(check, "a bad continuation byte");
		check->at += rows[i].more + 1;
		return true;
	}
	return json_wrong(check, "a byte that is not UTF-8, or a control character");
}

static bool json_check_string(struct json_check *check)
{
	if (!json_take(check, "\""))
		return false;
	while (check->at < check->end && *check->at != '"') {
		if (*check->at != '\\') {
			if (!json_character(check))
				return false;
			continue;
		}
		if (check->end - check->at < 2)
			break;
		if (check->at[1] != 'u') {
			if (!strchr("\"\\/bfnrt", check->at[1]))
				return json_wrong(check, "an unknown escape");
			check->at += 2;
			continue;
		}
		if (check->end - check->at < 6)
			break;
		for (int i = 2; i < 6; i++)
			if (!json_hex(check->at[i]))
				return json_wrong(check, "a bad \\u escape");
		check->at += 6;
	}
	return json_take(check, "\"");
}

static bool json_check_number(struct json_check *check)
{
	const uint8_t *start;

	if (check->at < check->end && *check->at == '-')
		check->at++;
	start = check->at;
	while (check->at < check->end && *check->at >= '0' && *check->at <= '9')
		check->at++;
	if (check->at == start || (*start == '0' && check->at - start > 1))
		return json_wrong(check, "a bad number");
	if (check->at < check->end && *check->at == '.') {
		start = ++check->at;
		while (check->at < check->end && *check->at >= '0' && *check->at <= '9')
			check->at++;
		if (check->at == start)
			return json_wrong(check, "a bad fraction");
	}
	return true;
}

static bool json_check_value(struct json_check *check);

static bool json_check_object(struct json_check *check)
{
	const uint8_t *keys[JSON_KEYS_MAX];
	size_t lengths[JSON_KEYS_MAX], count = 0;

	check->at++;
	if (check->at < check->end && *check->at == '}') {
		check->at++;
		return true;
	}
	for (;;) {
		const uint8_t *key = check->at;

		if (!json_check_string(check))
			return false;
		for (size_t i = 0; i < count; i++)
			if (lengths[i] == (size_t)(check->at - key) &&
			    memcmp(keys[i], key, lengths[i]) == 0)
				return json_wrong(check, "a key that is there twice");
		if (count == JSON_KEYS_MAX)
			return json_wrong(check, "more keys than the check knows");
		keys[count] = key;
		lengths[count++] = (size_t)(check->at - key);
		if (!json_take(check, ":") || !json_check_value(check))
			return false;
		if (check->at < check->end && *check->at == ',') {
			check->at++;
			continue;
		}
		return json_take(check, "}");
	}
}

static bool json_check_array(struct json_check *check)
{
	check->at++;
	if (check->at < check->end && *check->at == ']') {
		check->at++;
		return true;
	}
	for (;;) {
		if (!json_check_value(check))
			return false;
		if (check->at < check->end && *check->at == ',') {
			check->at++;
			continue;
		}
		return json_take(check, "]");
	}
}

static bool json_check_value(struct json_check *check)
{
	bool good;

	if (check->at == check->end)
		return json_wrong(check, "an early end");
	if (++check->depth > JSON_DEPTH_MAX)
		return json_wrong(check, "too deep");
	switch (*check->at) {
	case '{':
		good = json_check_object(check);
		break;
	case '[':
		good = json_check_array(check);
		break;
	case '"':
		good = json_check_string(check);
		break;
	case 't':
		good = json_take(check, "true");
		break;
	case 'f':
		good = json_take(check, "false");
		break;
	case 'n':
		good = json_take(check, "null");
		break;
	default:
		good = json_check_number(check);
		break;
	}
	check->depth--;
	return good;
}

/* NULL when it is JSON, else what is wrong; *ret_offset is where. */
static const char *json_check_text(const char *text, size_t length, size_t *ret_offset)
{
	struct json_check check = {(const uint8_t *)text, (const uint8_t *)text + length, NULL, 0};

	if (json_check_value(&check) && check.at != check.end)
		check.wrong = "something after the value";
	*ret_offset = (size_t)(check.at - (const uint8_t *)text);
	return check.wrong;
}

#endif
