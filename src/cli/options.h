/* SPDX-License-Identifier: Apache-2.0 */
/* options: the command line of the commands that take code. */
#ifndef EXECPY_CLI_OPTIONS_H
#define EXECPY_CLI_OPTIONS_H

#include "base/bytes.h"
#include "engine/execpy.h"
#include "policy/limits.h"

#include <stdbool.h>

struct options {
	struct execpy_request request; /* points into what is below; limits: 0 when not given */
	struct limits limits;
	struct bytes code;  /* of -c, or of the file that was loaded last */
	bool has_code;      /* -c was given */
	const char **paths; /* FILE or -, in order */
	size_t path_count;
	const char *out;
	bool no_daemon;
	struct execpy_file *files;
	const char **environment;
	size_t environment_count;
};

struct options_flag {
	const char *name;
	bool *value;
};

/* An option whose value only its command understands. */
struct options_text {
	const char *name;
	const char **value;
};

/* What one command takes. */
struct options_syntax {
	const char *command, *help;
	const struct options_flag *flags; /* ended by a name that is NULL */
	const char *const *valued;        /* options with a value; NULL-terminated */
	const struct options_text *texts; /* more of them; ended like flags, or NULL */
	bool arguments; /* after -- come arguments of the code, and not more files */
};

struct options options_default(void);

/* Reads the command line. 0 to go on, or an exit status plus one, with a line
 * printed: 1 stands for success, after --help. */
int options_parse(struct options *options, const struct options_syntax *syntax, int argc,
		  char **argv);

/* Makes the request's code what -c gave (`path` is NULL) or what stands in the
 * file. 0, or a negative errno with a line in err. */
int options_load(struct options *options, const char *path, struct execpy_error *err);

/* Adds PATH or PATH:NAME to the request's files. 0, or an exit status with a line
 * printed that begins with `what`. */
int options_add_file(struct options *options, const char *what, char *text);

/* A time such as 5s or 2h. 0, or an exit status with a line printed. */
int options_time(const char *option, const char *text, uint64_t *ret_ms);

/* What a session has, its runs cannot have otherwise. 0, or an exit status with a line
 * printed. */
int options_check_session(const struct options *options);

/* True when the code and what it reads would both come from this command's
 * stdin, or the same stdin would be read twice. */
bool options_share_stdin(const struct options *options);

void options_free(struct options *options);

#endif
