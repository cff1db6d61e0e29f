/* SPDX-License-Identifier: Apache-2.0 */
/* shell: `execpy shell`, a prompt on a session.
 *
 * Theory of operation. Lines are gathered until they are a whole piece of Python
 * (shell_source.c); that is one run of the session. Through a pipe the same happens
 * without prompts. Signals only set what the two places that wait look at: reading a
 * line gives up, and a run is cancelled, which in a session is KeyboardInterrupt. */
#include "cli/shell.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/outcome.h"
#include "cli/shell_source.h"

#include "base/bounds.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help_text[] =
	"usage: execpy shell [OPTION…]\n"
	"\n"
	"A prompt on a session: what is typed runs in the sandbox, and variables, imports\n"
	"and files stay. A new session ends with the shell. Without a daemon the shell has\n"
	"a sandbox of its own. Reads from a pipe, too; the exit status is then that of the\n"
	"last run (see `execpy run`).\n"
	"\n"
	"A line that ends with a colon goes on until an empty line; so do open brackets,\n"
	"strings with three quotes, and a backslash at the end until they are closed.\n"
	"Ctrl-C drops the line, or interrupts the run; Ctrl-D or `exit` leaves; `:help`\n"
	"lists what the shell itself can do.\n"
	"\n"
	"  --session ID         attach to this session, which stays\n"
	"  --pictures DIR       where pictures are saved, as picture-1.png and so on\n"
	"  --policy NAME|FILE   strict (default), standard, open, or a policy file\n"
	"  --template NAME      bare (default), or a template's name\n"
	"  --time 5s            wall-clock limit of a run    --cpu 5s        CPU limit\n"
	"  --output 1M          stdout and stderr of a run   --disk 64M      files\n"
	"  --memory 100M        memory of the session        --processes 64  and threads\n"
	"  --no-daemon          never use a running daemon\n";

/* --- signals ---------------------------------------------------------------------- */

static struct execpy_engine *running;
static volatile sig_atomic_t interrupted_by, ended_by;

static void on_signal(int number)
{
	if (number == SIGINT)
		interrupted_by = number;
	else
		ended_by = number;
	if (running)
		execpy_cancel(running);
}

int shell_interrupted(void)
{
	return interrupted_by;
}

int shell_ended_by(void)
{
	return ended_by;
}

void shell_forget_interrupt(void)
{
	interrupted_by = 0;
}

static void catch_signals(void)
{
	/* Not SA_RESTART: reading a line has to give up. */
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A shell that stops would leave the terminal as the line editor has it. */
	signal(SIGTSTP, SIG_IGN);
}

/* --- runs ------------------------------------------------------------------------- */

static void run(struct shell *shell, struct span code)
{
	const struct execpy_callbacks callbacks = {shell_print_output, shell};
	struct execpy_request request = shell->request;
	struct execpy_error err = {0}, ignored = {0};
	struct execpy_result *result = NULL;
	struct execpy_session_info info;
	int r;

	request.code = (const char *)code.data;
	request.code_length = code.length;
	shell_forget_interrupt();
	running = shell->engine;
	r = execpy_session_run(shell->engine, shell->id, &request, &callbacks, &result, &err);
	running = NULL;
	/* A second Ctrl-C that came too late would cancel the next run: a question takes it. */
	if (shell_interrupted())
		execpy_session_info(shell->engine, shell->id, &info, &ignored);
	if (r < 0) {
		shell->gone = outcome_session_gone(shell->engine, shell->id, r);
		shell->status = outcome_session_error(&err);
		return;
	}
	shell->status = outcome_status(result, interrupted_by);
	shell_print_result(shell, result);
	execpy_result_free(result);
	shell_forget_interrupt();
}

/* --- lines ------------------------------------------------------------------------ */

static bool says(struct span line, const char *word)
{
	while (line.length > 0 && line.data[line.length - 1] <= ' ')
		line.length--;
	return span_equals(line, word);
}

/* What people type to leave a Python prompt. */
static bool leaves(struct span line)
{
	return says(line, "exit") || says(line, "quit") || says(line, "exit()") ||
	       says(line, "quit()");
}

static void take_command(struct shell *shell, struct span line)
{
	char *text = span_to_string(line);

	if (text)
		shell_command(shell, text);
	else
		shell->status = own_error("out of memory");
	free(text);
}

/* Reads and runs to the end. `gathered` holds the lines of what is not whole yet. */
static void loop(struct shell *shell, struct shell_line *lines, struct bytes *gathered)
{
	while (!shell->leave && !shell->gone && !shell_ended_by()) {
		const char *prompt = gathered->length > 0 ? "... " : ">>> ";
		struct span line;
		int r;

		if (shell->interactive && shell->midline)
			fputs("\n", stdout);
		shell->midline = false;
		fflush(stdout);
		r = shell_line_read(lines, prompt, &line);
		if (r == -EINTR && shell->interactive && !shell_ended_by()) {
			fputs("\n", stdout);
			shell_forget_interrupt();
			bytes_clear(gathered);
			continue;
		}
		if (r <= 0) {
			if (shell->interactive)
				fputs("\n", stdout);
			if (r < 0 && r != -EINTR)
				shell->status = own_error("stdin: %s", strerror(-r));
			break;
		}
		if (gathered->length == 0 && leaves(line))
			return;
		if (gathered->length == 0 && line.length > 0 && line.data[0] == ':') {
			take_command(shell, line);
			continue;
		}
		bytes_append(gathered, line.data, line.length);
		bytes_append_text(gathered, "\n");
		if (gathered->failed || gathered->length > CODE_BYTES_MAX) {
			shell->status = usage_error("that is more than %llu bytes of code",
						    (unsigned long long)CODE_BYTES_MAX);
			bytes_free(gathered);
			*gathered = (struct bytes){0};
			continue;
		}
		switch (source_state(bytes_span(gathered))) {
		case SOURCE_OPEN:
			continue;
		case SOURCE_WHOLE:
			run(shell, bytes_span(gathered));
			break;
		case SOURCE_EMPTY:
			break;
		}
		bytes_clear(gathered);
	}
	/* The end of input is the end of what was begun. */
	if (!shell->interactive && !shell->leave && !shell->gone && !shell_ended_by() &&
	    !shell_interrupted() && source_state(bytes_span(gathered)) != SOURCE_EMPTY)
		run(shell, bytes_span(gathered));
}

/* --- the session ------------------------------------------------------------------ */

static int attach(struct shell *shell, const char *id)
{
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};

	if (execpy_session_info(shell->engine, id, &info, &err) < 0)
		return outcome_session_error(&err);
	if (info.ended[0]) {
		outcome_tell_lines("execpy: the session has ended: ", info.ended);
		return EXIT_NOT_DONE;
	}
	memcpy(shell->id, info.id, sizeof shell->id);
	return 0;
}

static int begin(struct shell *shell)
{
	const struct execpy_session_options options = {
		.limits = shell->request.limits,
		.policy = shell->request.policy,
		.template = shell->request.template,
	};
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};

	if (execpy_session_open(shell->engine, &options, &info, &err) < 0)
		return outcome_session_error(&err);
	memcpy(shell->id, info.id, sizeof shell->id);
	/* They are the session's now. */
	shell->request.template = NULL;
	return 0;
}

static int converse(struct shell *shell, const char *session)
{
	struct execpy_error err = {0};
	struct bytes gathered = {0};
	struct shell_line *lines;
	int status = session ? attach(shell, session) : begin(shell);

	if (status)
		return status;
	lines = shell_line_open(shell->interactive);
	if (!lines)
		return own_error("out of memory");
	if (shell->interactive)
		printf("execpy %s: Python in a sandbox, session %s\n"
		       ":help lists commands, Ctrl-D leaves\n",
		       execpy_version(), shell->id);
	loop(shell, lines, &gathered);
	bytes_free(&gathered);
	shell_line_close(lines);
	if (!session && !shell->gone && execpy_session_end(shell->engine, shell->id, &err) < 0)
		outcome_session_error(&err);
	if (shell_ended_by())
		return EXIT_SIGNAL + shell_ended_by();
	if (!shell->interactive && shell_interrupted())
		return EXIT_SIGNAL + SIGINT;
	if (shell->output_gone && shell->status == 0)
		return own_error("cannot write the output");
	return shell->interactive && !shell->gone ? 0 : shell->status;
}

static int open_and_converse(struct shell *shell, const struct options *options,
			     const char *session)
{
	const struct execpy_options how = {
		.no_daemon = options->no_daemon,
		.daemon_only = session != NULL,
	};
	struct execpy_error err = {0};
	struct stat info;
	int status;

	if (shell->pictures && (stat(shell->pictures, &info) < 0 || !S_ISDIR(info.st_mode)))
		return usage_error("--pictures %s: is no directory", shell->pictures);
	shell->request = options->request;
	shell->interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	shell->colours = colours_wanted();
	catch_signals();
	/* What goes to both streams comes in its order. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (execpy_open(&how, &shell->engine, &err) < 0)
		return session ? outcome_no_daemon(&err) : own_error("%s", err.text);
	status = converse(shell, session);
	execpy_close(shell->engine);
	return status;
}

int command_shell(int argc, char **argv)
{
	static const char *const valued[] = {"--template", "--policy",    "--time",
					     "--cpu",      "--memory",    "--output",
					     "--disk",     "--processes", NULL};
	struct options options = options_default();
	struct shell shell = {0};
	const char *session = NULL;
	const struct options_text texts[] = {
		{"--session", &session}, {"--pictures", &shell.pictures}, {NULL, NULL}};
	const struct options_flag flags[] = {{"--no-daemon", &options.no_daemon}, {NULL, NULL}};
	const struct options_syntax syntax = {"shell", help_text, flags, valued, texts, false};
	int status = options_parse(&options, &syntax, argc, argv);

	if (status > 0) {
		status--;
	} else {
		status = session ? options_check_session(&options) : 0;
		if (options.path_count > 0)
			status =
				usage_error("\"%.60s\": the shell takes no file; `execpy run` does",
					    options.paths[0]);
		if (status == 0)
			status = open_and_converse(&shell, &options, session);
	}
	options_free(&options);
	return status;
}
