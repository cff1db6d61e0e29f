/* SPDX-License-Identifier: Apache-2.0 */
/* shell_source: see shell_source.h.
 *
 * Theory of operation. Four rules, and a scanner that knows brackets, strings and
 * comments well enough for them; it does not parse. More lines must follow
 *
 *   1. while a bracket or a string with three quotes is open,
 *   2. behind a backslash at the end of a line,
 *   3. once a line ended with a colon outside of brackets, or began with @, until a
 *      line is empty.
 *
 * Otherwise what is there is whole. */
#include "cli/shell_source.h"

#include <string.h>

struct scanner {
	struct span text;
	size_t at;
	size_t depth;     /* of brackets */
	char first, last; /* that count, of the logical line; 0: none yet */
	bool anything;    /* that counts, in all lines */
	bool block;       /* rule 3 */
	bool open;        /* rule 1 or 2, at the end */
	bool blank;       /* the physical line so far */
};

static bool at_text(const struct scanner *scanner, const char *text)
{
	size_t length = strlen(text);

	return scanner->text.length - scanner->at >= length &&
	       memcmp(scanner->text.data + scanner->at, text, length) == 0;
}

/* From the opening quote to behind the closing one, or the end of the line. */
static void skip_string(struct scanner *scanner, char quote)
{
	const char triple[] = {quote, quote, quote, '\0'};
	bool is_triple = at_text(scanner, triple);

	scanner->at += is_triple ? 3 : 1;
	while (scanner->at < scanner->text.length) {
		char c = (char)scanner->text.data[scanner->at];

		if (c == '\\') {
			scanner->at += 2;
			continue;
		}
		if (c == '\n' && !is_triple)
			return; /* it lacks its end: an error */
		if (is_triple ? at_text(scanner, triple) : c == quote) {
			scanner->at += is_triple ? 3 : 1;
			return;
		}
		scanner->at++;
	}
	scanner->open = true;
}

static void end_line(struct scanner *scanner)
{
	if (scanner->depth > 0)
		return;
	if (scanner->last == ':' || scanner->first == '@')
		scanner->block = true;
	scanner->first = scanner->last = '\0';
}

static void take(struct scanner *scanner, char c)
{
	scanner->blank = false;
	scanner->anything = true;
	if (!scanner->first)
		scanner->first = c;
	scanner->last = c;
}

enum source_state source_state(struct span lines)
{
	struct scanner scanner = {.text = lines, .blank = true};
	bool last_was_blank = false;

	while (scanner.at < lines.length) {
		char c = (char)lines.data[scanner.at];

		switch (c) {
		case '\n':
			end_line(&scanner);
			last_was_blank = scanner.blank;
			scanner.blank = true;
			scanner.at++;
			continue;
		case ' ':
		case '\t':
		case '\f':
		case '\r':
			scanner.at++;
			continue;
		case '#':
			scanner.blank = false;
			while (scanner.at < lines.length && lines.data[scanner.at] != '\n')
				scanner.at++;
			continue;
		case '\\':
			take(&scanner, c);
			scanner.at++;
			if (scanner.at < lines.length && lines.data[scanner.at] == '\n') {
				scanner.at++;
				scanner.blank = true;
				scanner.open = scanner.at == lines.length;
			}
			continue;
		case '"':
		case '\'':
			take(&scanner, c);
			skip_string(&scanner, c);
			continue;
		case '(':
		case '[':
		case '{':
			scanner.depth++;
			break;
		case ')':
		case ']':
		case '}':
			scanner.depth -= scanner.depth > 0;
			break;
		default:
			break;
		}
		take(&scanner, c);
		scanner.at++;
	}
	if (scanner.open || scanner.depth > 0)
		return SOURCE_OPEN;
	if (scanner.block && !last_was_blank)
		return SOURCE_OPEN;
	return scanner.anything ? SOURCE_WHOLE : SOURCE_EMPTY;
}
