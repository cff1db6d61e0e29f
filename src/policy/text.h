/* SPDX-License-Identifier: Apache-2.0 */
/* text: questions about source text that need no parser. */
#ifndef EXECPY_POLICY_TEXT_H
#define EXECPY_POLICY_TEXT_H

#include "base/bytes.h"

#include <stdbool.h>

/* How many bytes at its start are ASCII. */
size_t ascii_length(struct span text);
bool utf8_valid(struct span text);
/* Where the first byte that is not UTF-8 stands, or the length. */
size_t utf8_error(struct span text);
/* The largest length of at most `limit` that ends between characters. */
size_t utf8_floor(struct span text, size_t limit);
size_t utf8_count(struct span text); /* code points of valid UTF-8 */

/* A dotted name of identifiers: "os.path". */
bool name_is_dotted(const char *text);

/* True when the text is Markdown with a fenced block: then ret_inner is what
 * stands inside the first fence, and ret_line the number of lines before it.
 * Only white space and prose without a fence may stand around it; text that
 * parses as a module by itself cannot begin with a fence, so nothing that is
 * Python is ever cut. */
bool fence_strip(struct span code, struct span *ret_inner, uint32_t *ret_line);

#endif
