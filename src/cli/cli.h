/* SPDX-License-Identifier: Apache-2.0 */
/* cli: what the commands share. One thin file a command; all logic is the
 * engine's. */
#ifndef EXECPY_CLI_CLI_H
#define EXECPY_CLI_CLI_H

#include "base/bytes.h"
#include "engine/execpy.h"

#include <stdbool.h>

/* Exit statuses of `execpy run` beside the code's own (docs/execpy.1). */
enum {
	EXIT_USAGE = 2,
	EXIT_TIME = 124,    /* time or CPU limit */
	EXIT_OURS = 125,    /* execpy itself failed */
	EXIT_BLOCKED = 126, /* refused by policy, or an anomaly */
	EXIT_LIMIT = 137,   /* memory, output or disk */
	EXIT_SIGNAL = 128,  /* + the signal's number */
};

int command_run(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_mcp(int argc, char **argv);
int command_check(int argc, char **argv);
int command_session(int argc, char **argv);
int command_shell(int argc, char **argv);

/* "execpy: " and one line on stderr; returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for failures that are not the user's; returns EXIT_OURS. */
int own_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads a whole file (or "-": stdin) into `out`, at most `limit` bytes. 0, or a
 * negative errno with a line in err. */
int read_whole(const char *path, size_t limit, struct bytes *out, struct execpy_error *err);

/* Writes everything or says why not: 0 or a negative errno. */
int write_whole(int fd, const void *data, size_t length);

/* The same to stdout: 0, or an exit status with a line printed. */
int cli_print(const struct bytes *out);

/* True when stdout is a terminal that shows colours, and nobody objects. */
bool colours_wanted(void);

#endif
