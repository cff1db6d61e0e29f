/* SPDX-License-Identifier: Apache-2.0 */
/* shell: what the files of `execpy shell` share. */
#ifndef EXECPY_CLI_SHELL_H
#define EXECPY_CLI_SHELL_H

#include "base/bytes.h"
#include "engine/execpy.h"

#include <limits.h>
#include <stdbool.h>

struct shell {
	struct execpy_engine *engine;
	char id[EXECPY_SESSION_ID_MAX];
	struct execpy_request request; /* what every run has: limits, policy */
	bool interactive;              /* stdin and stdout are a terminal */
	bool colours;
	bool midline;         /* what was printed last did not end its line */
	bool output_gone;     /* nobody reads our stdout any more */
	const char *pictures; /* the directory where they are saved */
	unsigned picture;     /* the number of the last one */
	int status;           /* of the last run, or of what failed after it */
	bool leave;           /* the user asked for it */
	bool gone;            /* the session has ended */
};

/* Signals, as they stand: the last that asked to stop what goes on (SIGINT) or the
 * shell (SIGTERM, SIGHUP); 0: none. shell_running is cancelled by each. */
int shell_interrupted(void);
int shell_ended_by(void);
void shell_forget_interrupt(void);

/* shell_line.c: lines, from an editor on a terminal, else as they are. */
struct shell_line;
/* Never NULL but when memory is out. */
struct shell_line *shell_line_open(bool interactive);
/* 1 with the next line, without its newline, which is valid until the next call; 0 at
 * the end of input; -EINTR after a signal; another negative errno. */
int shell_line_read(struct shell_line *line, const char *prompt, struct span *ret_text);
/* Keeps the history; says on stderr why it cannot. */
void shell_line_close(struct shell_line *line);

/* shell_print.c: what came of a run. */
void shell_print_output(void *user, enum execpy_stream stream, const void *data, size_t length);
void shell_print_result(struct shell *shell, struct execpy_result *result);

/* shell_command.c: a line that begins with a colon. */
void shell_command(struct shell *shell, const char *line);

#endif
