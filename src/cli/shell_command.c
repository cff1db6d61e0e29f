/* SPDX-License-Identifier: Apache-2.0 */
/* shell_command: what the shell itself does: lines that begin with a colon. */
#include "cli/shell.h"
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/session_files.h"
#include "cli/session_text.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 3 };

struct command_call {
	struct shell *shell;
	const char *words[WORDS_MAX]; /* the command, then what follows it; or NULL */
};

/* The end of what changed the session. */
static int changed(int r, const struct execpy_session_info *info, const struct execpy_error *err)
{
	if (r < 0)
		return outcome_session_error(err);
	if (info->lost[0])
		outcome_tell_lines("lost: ", info->lost);
	return 0;
}

static int undo(struct command_call *call)
{
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};
	int r = execpy_session_undo(call->shell->engine, call->shell->id, &info, &err);

	return changed(r, &info, &err);
}

static int checkpoint(struct command_call *call)
{
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};
	int r = execpy_session_checkpoint(call->shell->engine, call->shell->id, call->words[1],
					  &info, &err);

	return changed(r, &info, &err);
}

static int rollback(struct command_call *call)
{
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};
	int r = execpy_session_rollback(call->shell->engine, call->shell->id, call->words[1], &info,
					&err);

	return changed(r, &info, &err);
}

static int drop(struct command_call *call)
{
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};
	int r = execpy_session_drop(call->shell->engine, call->shell->id, call->words[1], &info,
				    &err);

	return changed(r, &info, &err);
}

static int files(struct command_call *call)
{
	return session_files_list(call->shell->engine, call->shell->id, false);
}

static int get(struct command_call *call)
{
	return session_files_get(call->shell->engine, call->shell->id, call->words[1],
				 call->words[2]);
}

static int put(struct command_call *call)
{
	return session_files_put(call->shell->engine, call->shell->id, call->words[1]);
}

static int info(struct command_call *call)
{
	struct execpy_session_info found = {0};
	struct execpy_error err = {0};
	autobytes out = {0};

	if (execpy_session_info(call->shell->engine, call->shell->id, &found, &err) < 0)
		return outcome_session_error(&err);
	session_text_info(&found, &out);
	return cli_print(&out);
}

static int quit(struct command_call *call)
{
	call->shell->leave = true;
	return 0;
}

static int help(struct command_call *call);

static const struct {
	const char *name, *operands;
	size_t least, most;
	int (*act)(struct command_call *call);
	const char *summary;
} commands[] = {
	{":help", "", 0, 0, help, "this list"},
	{":undo", "", 0, 0, undo, "return to before the last run"},
	{":checkpoint", " NAME", 1, 1, checkpoint, "keep variables and files under a name"},
	{":rollback", " NAME", 1, 1, rollback, "return to them"},
	{":drop", " NAME", 1, 1, drop, "give a checkpoint up"},
	{":files", "", 0, 0, files, "what is in the workspace"},
	{":get", " NAME [TO]", 1, 2, get, "copy a file out of it"},
	{":put", " FILE[:NAME]", 1, 1, put, "copy a file into it"},
	{":info", "", 0, 0, info, "what the session is like"},
	{":quit", "", 0, 0, quit, "leave; so do exit and Ctrl-D"},
};

static int help(struct command_call *call)
{
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		char usage[40];

		snprintf(usage, sizeof usage, "%s%s", commands[i].name, commands[i].operands);
		printf("%-20s %s\n", usage, commands[i].summary);
	}
	return 0;
}

/* Blanks part words; the last takes the rest, so that names may have blanks. */
static size_t split(char *text, size_t most, const char *words[WORDS_MAX])
{
	size_t count = 0, length = strlen(text);

	while (length > 0 && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	while (*text && count < WORDS_MAX) {
		words[count++] = text;
		if (count > most)
			break;
		text += strcspn(text, " \t");
		if (!*text)
			break;
		*text++ = '\0';
		text += strspn(text, " \t");
	}
	return count;
}

void shell_command(struct shell *shell, const char *line)
{
	struct command_call call = {.shell = shell};
	size_t length = strcspn(line, " \t\r"), count;
	autofree char *copy = strdup(line);
	int status = 0;

	for (size_t i = 0; copy && i < ARRAY_LENGTH(commands); i++) {
		if (strlen(commands[i].name) != length ||
		    strncmp(commands[i].name, line, length) != 0)
			continue;
		count = split(copy, commands[i].most ? commands[i].most : 1, call.words);
		if (count - 1 < commands[i].least || count - 1 > commands[i].most)
			status = usage_error("write it as %s%s", commands[i].name,
					     commands[i].operands);
		else
			status = commands[i].act(&call);
		if (status)
			shell->status = status;
		return;
	}
	shell->status = copy ? usage_error("\"%.40s\" is no command; :help lists them", line)
			     : own_error("out of memory");
}
