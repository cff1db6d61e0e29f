/* SPDX-License-Identifier: Apache-2.0 */
/* excerpt: a line of code on a terminal, with carets under a range of it. */
#ifndef EXECPY_CLI_EXCERPT_H
#define EXECPY_CLI_EXCERPT_H

#include "base/bytes.h"

/* Text of a stranger's on one line of a terminal: control characters, and
 * those that are invisible or turn the direction of text, are replaced. */
void excerpt_text(struct bytes *out, struct span text);

/* The line, and below it carets from `column` (from 1, in code points) to
 * before `end_column` (0: to the end of the line), in the colour given ("":
 * none). Long lines are cut around the range. Nothing for a line that is not
 * text. */
void excerpt_line(struct bytes *out, struct span line, unsigned column, unsigned end_column,
		  const char *colour);

#endif
