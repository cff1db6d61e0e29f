/* SPDX-License-Identifier: Apache-2.0 */
/* shell_source: tells whether what was typed is a whole piece of Python. */
#ifndef EXECPY_CLI_SHELL_SOURCE_H
#define EXECPY_CLI_SHELL_SOURCE_H

#include "base/bytes.h"

#include <stdbool.h>

enum source_state {
	SOURCE_EMPTY, /* nothing but blanks and comments */
	SOURCE_OPEN,  /* more lines must follow */
	SOURCE_WHOLE,
};

/* Of lines that each end with a newline. Never fails: what is wrong is whole, so that
 * Python can say what is wrong with it. */
enum source_state source_state(struct span lines);

#endif
