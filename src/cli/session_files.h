/* SPDX-License-Identifier: Apache-2.0 */
/* session_files: the files of a session's workspace. */
#ifndef EXECPY_CLI_SESSION_FILES_H
#define EXECPY_CLI_SESSION_FILES_H

#include "cli/options.h"
#include "engine/execpy.h"

/* `execpy session files ID ACTION …`: the paths of `options` behind the id. An exit
 * status. */
int session_files(struct execpy_engine *engine, const char *id, const struct options *options,
		  bool json);

/* What the shell does with files, too. An exit status, with a line printed when it is
 * not 0. */
int session_files_list(struct execpy_engine *engine, const char *id, bool json);
/* `to`: a file, a directory, "-" for stdout, or NULL for the name's last part. A file
 * that is there is replaced once everything has come. */
int session_files_get(struct execpy_engine *engine, const char *id, const char *name,
		      const char *to);
/* PATH or PATH:NAME */
int session_files_put(struct execpy_engine *engine, const char *id, const char *text);

#endif
