/* SPDX-License-Identifier: Apache-2.0 */
/* excerpt: see excerpt.h.
 *
 * A cell is one column of a terminal. Tabs go to the next multiple of eight
 * cells, wide characters take two, combining ones none; so that the carets
 * stand right wherever they are shown, both lines are made of cells. */
#include "cli/excerpt.h"

#include "engine/json.h"
#include "policy/text.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

enum {
	TAB_CELLS = 8,
	LINE_CELLS_MAX = 120, /* of a line, before it is cut */
	CELLS_BEFORE = 40,    /* of a line that is cut, before the range */
};

#define INDENT      "    "
#define REPLACEMENT "\xef\xbf\xbd"

/* One character as it is shown. */
struct glyph {
	const char *text;
	size_t length;
	unsigned cells;
	char own[4];
};

static uint32_t code_point(struct span sequence)
{
	static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t point = sequence.data[0] & masks[sequence.length];

	for (size_t i = 1; i < sequence.length; i++)
		point = point << 6 | (sequence.data[i] & 0x3f);
	return point;
}

/* Invisible, or turning the direction of what follows. */
static bool is_hidden(uint32_t point)
{
	return (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2060 && point <= 0x206f) || point == 0x061c || point == 0xfeff ||
	       (point >= 0xe0000 && point <= 0xe007f);
}

/* Widths as the C.UTF-8 locale knows them, whatever the user's is. */
static int width_of(uint32_t point)
{
	static locale_t unicode;
	locale_t before;
	int width;

	if (!unicode)
		unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!unicode)
		return 1;
	before = uselocale(unicode);
	width = wcwidth((wchar_t)point);
	uselocale(before);
	return width;
}

/* Takes one character off the text; `at` is the cell in which it begins. */
static struct glyph next_glyph(struct span *text, unsigned at)
{
	struct span sequence = {text->data, utf8_sequence(*text)};
	struct glyph glyph = {REPLACEMENT, sizeof REPLACEMENT - 1, 1, ""};
	uint32_t point;
	int width;

	text->data += sequence.length ? sequence.length : 1;
	text->length -= sequence.length ? sequence.length : 1;
	if (sequence.length == 0)
		return glyph;
	point = code_point(sequence);
	if (point == '\t') {
		glyph.text = "        ";
		glyph.length = glyph.cells = TAB_CELLS - at % TAB_CELLS;
	} else if (point < 0x20 || point == 0x7f) {
		/* The pictures of control characters are U+2400 to U+2421. */
		uint32_t picture = point == 0x7f ? 0x21 : point;

		memcpy(glyph.own, "\xe2\x90", 2);
		glyph.own[2] = (char)(0x80 | picture);
		glyph.text = NULL;
		glyph.length = 3;
	} else {
		width = width_of(point);
		if (width >= 0 && !is_hidden(point)) {
			glyph.text = (const char *)sequence.data;
			glyph.length = sequence.length;
			glyph.cells = (unsigned)width;
		}
	}
	return glyph;
}

static void append_glyph(struct bytes *out, const struct glyph *glyph)
{
	bytes_append(out, glyph->text ? glyph->text : glyph->own, glyph->length);
}

void excerpt_text(struct bytes *out, struct span text)
{
	while (text.length > 0) {
		struct glyph glyph = next_glyph(&text, 0);

		append_glyph(out, &glyph);
	}
}

/* Which cells a range takes. */
struct extent {
	unsigned from, to, total;
};

static struct extent measure(struct span line, unsigned column, unsigned end_column)
{
	struct extent extent = {0};
	unsigned at = 0;

	for (unsigned number = 1; line.length > 0; number++) {
		if (number == column)
			extent.from = at;
		if (number == end_column)
			extent.to = at;
		at += next_glyph(&line, at).cells;
		/* Behind the last character, as for an unexpected end. */
		if (line.length == 0 && number < column)
			extent.from = at;
		if (line.length == 0 && (end_column == 0 || number < end_column))
			extent.to = at;
	}
	extent.total = at;
	if (extent.to <= extent.from)
		extent.to = extent.from + 1;
	return extent;
}

static void append_repeated(struct bytes *out, char character, unsigned count)
{
	uint8_t *room = bytes_reserve(out, count);

	if (!room)
		return;
	memset(room, character, count);
	out->length += count;
}

void excerpt_line(struct bytes *out, struct span line, unsigned column, unsigned end_column,
		  const char *colour)
{
	struct extent extent;
	unsigned first = 0, last, at = 0, shown = 0;

	while (line.length > 0 &&
	       (line.data[line.length - 1] == '\r' || line.data[line.length - 1] == '\f'))
		line.length--;
	if (line.length == 0 || !utf8_valid(line) || memchr(line.data, 0, line.length))
		return;
	extent = measure(line, column, end_column);
	last = extent.total;
	if (extent.total > LINE_CELLS_MAX) {
		if (extent.from > CELLS_BEFORE)
			first = extent.from - CELLS_BEFORE;
		if (last > first + LINE_CELLS_MAX)
			last = first + LINE_CELLS_MAX;
	}
	bytes_append_text(out, first > 0 ? INDENT "…" : INDENT);
	while (line.length > 0 && at < last) {
		struct glyph glyph = next_glyph(&line, at);

		/* A character that is cut in two counts as spaces. */
		if (at >= first)
			append_glyph(out, &glyph);
		else if (at + glyph.cells > first)
			append_repeated(out, ' ', at + glyph.cells - first);
		at += glyph.cells;
	}
	bytes_append_text(out, last < extent.total ? "…\n" : "\n");
	shown = extent.to < at || extent.from >= at ? extent.to : at;
	append_repeated(out, ' ', sizeof INDENT - 1 + (first > 0) + extent.from - first);
	bytes_append_text(out, colour);
	append_repeated(out, '^', shown - extent.from);
	bytes_append_text(out, colour[0] ? "\033[0m\n" : "\n");
}
