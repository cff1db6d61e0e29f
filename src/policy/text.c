/* SPDX-License-Identifier: Apache-2.0 */
/* text: see text.h. */
#include "policy/text.h"

#include <ctype.h>
#include <string.h>

/* Eight bytes at a time: nearly all code is nothing but ASCII. */
size_t ascii_length(struct span text)
{
	size_t at = 0;
	uint64_t eight;

	for (; text.length - at >= sizeof eight; at += sizeof eight) {
		memcpy(&eight, text.data + at, sizeof eight);
		if (eight & UINT64_C(0x8080808080808080))
			break;
	}
	while (at < text.length && text.data[at] < 0x80)
		at++;
	return at;
}

size_t utf8_error(struct span text)
{
	size_t at = 0;

	while (at < text.length) {
		const uint8_t *p = text.data + at;
		size_t left = text.length - at, more;
		uint32_t least, point;

		if (*p < 0x80) {
			at += ascii_length((struct span){p, left});
			continue;
		}
		if (*p >= 0xc2 && *p <= 0xdf)
			more = 1, least = 0x80, point = *p & 0x1fu;
		else if ((*p & 0xf0) == 0xe0)
			more = 2, least = 0x800, point = *p & 0x0fu;
		else if (*p >= 0xf0 && *p <= 0xf4)
			more = 3, least = 0x10000, point = *p & 0x07u;
		else
			return at;
		if (left <= more)
			return at;
		for (size_t i = 1; i <= more; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return at;
			point = point << 6 | (p[i] & 0x3fu);
		}
		if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
			return at;
		at += more + 1;
	}
	return at;
}

bool utf8_valid(struct span text)
{
	return utf8_error(text) == text.length;
}

size_t utf8_floor(struct span text, size_t limit)
{
	if (limit >= text.length)
		return text.length;
	while (limit > 0 && (text.data[limit] & 0xc0) == 0x80)
		limit--;
	return limit;
}

size_t utf8_count(struct span text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.length; i++)
		count += (text.data[i] & 0xc0) != 0x80;
	return count;
}

/* The line at `at`, without its end; the next one's start in *ret_next. */
static struct span line_at(struct span text, size_t at, size_t *ret_next)
{
	const uint8_t *start = text.data + at;
	const uint8_t *end = memchr(start, '\n', text.length - at);
	size_t length = end ? (size_t)(end - start) : text.length - at;

	*ret_next = at + length + (end ? 1 : 0);
	if (length && start[length - 1] == '\r')
		length--;
	return (struct span){start, length};
}

/* How many fence characters (at least three, ` or ~) open the line; 0: none. */
static size_t fence_length(struct span line, uint8_t *ret_mark)
{
	size_t indent = 0, count = 0;
	uint8_t mark;

	while (indent < line.length && indent < 4 && line.data[indent] == ' ')
		indent++;
	if (indent == 4 || indent >= line.length)
		return 0;
	mark = line.data[indent];
	if (mark != '`' && mark != '~')
		return 0;
	while (indent + count < line.length && line.data[indent + count] == mark)
		count++;
	if (count < 3)
		return 0;
	*ret_mark = mark;
	return count;
}

/* A closing fence: the mark at least as often, and nothing else. */
static bool closes(struct span line, uint8_t mark, size_t count)
{
	uint8_t other = 0;
	size_t length = fence_length(line, &other);

	if (length < count || other != mark)
		return false;
	for (size_t i = 0; i < line.length; i++)
		if (line.data[i] != mark && line.data[i] != ' ' && line.data[i] != '\t')
			return false;
	return true;
}

bool fence_strip(struct span code, struct span *ret_inner, uint32_t *ret_line)
{
	size_t at = 0, next, count = 0, start;
	uint8_t mark = 0;
	uint32_t line = 0;

	if (code.length >= 3 && memcmp(code.data, "\xef\xbb\xbf", 3) == 0)
		at = 3;
	/* Up to the fence only prose may stand: a few lines. */
	for (; at < code.length && line < 20; at = next, line++) {
		count = fence_length(line_at(code, at, &next), &mark);
		if (count)
			break;
	}
	if (!count)
		return false;
	/* A fence after other lines: those lines must not be Python that has
	 * the fence inside a string; three quotes there are the only way. */
	if (memmem(code.data, at, "\"\"\"", 3) || memmem(code.data, at, "'''", 3))
		return false;
	line_at(code, at, &next);
	line++;
	start = next;
	for (at = start; at < code.length; at = next) {
		struct span here = line_at(code, at, &next);

		if (closes(here, mark, count))
			break;
	}
	*ret_inner = (struct span){code.data + start, at - start};
	*ret_line = line;
	return true;
}

bool name_is_dotted(const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (isdigit((unsigned char)*text) || *text == '.'))
			return false;
		if (!isalnum((unsigned char)*text) && *text != '_' && *text != '.')
			return false;
		start = *text == '.';
	}
	return !start;
}
