/* SPDX-License-Identifier: Apache-2.0 */
/* run: `execpy run`, one piece of code from the command line. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help_text[] =
	"usage: execpy run [FILE | - | -c CODE] [OPTION…] [-- ARG…]\n"
	"\n"
	"Runs Python in a sandbox. Its stdout and stderr are passed through as they come;\n"
	"the exit status is the code's own, or 124 (time or CPU limit), 125 (execpy itself\n"
	"failed), 126 (refused), 137 (memory, output or disk limit), 128+N (signal N).\n"
	"\n"
	"  -c CODE              the code itself\n"
	"  --json               print the result object instead\n"
	"  --stdin FILE         what the code reads; - is this command's own stdin\n"
	"  --time 5s            wall-clock limit          --cpu 5s        CPU limit\n"
	"  --memory 100M        memory limit              --processes 64  processes and threads\n"
	"  --output 1M          stdout and stderr         --disk 64M      files\n"
	"  --truncate           keep head and tail of too much output instead of ending the run\n"
	"  --policy NAME|FILE   strict, standard, open, or a policy file\n"
	"  --file PATH[:NAME]   put a file into the workspace (may be repeated)\n"
	"  --out DIR            write created and changed files to DIR\n"
	"  --env NAME=VALUE     set a variable (may be repeated)\n"
	"  --template NAME      auto (default), bare, or a template's name\n"
	"  --session ID         in this session of a daemon's: see `execpy session`\n"
	"  --no-daemon          never use a running daemon\n";

static struct execpy_engine *cancellable;
static volatile sig_atomic_t cancelled_by;

/* The first signal cancels the run, which then ends as it should. */
static void on_signal(int number)
{
	cancelled_by = number;
	if (cancellable)
		execpy_cancel(cancellable);
}

/* The one piece of code: 0, or an exit status. */
static int load_code(struct options *options)
{
	struct execpy_error err = {0};

	if (options->path_count > 1)
		return usage_error("one FILE at a time: \"%.60s\" and \"%.60s\"; arguments of the "
				   "code go after --",
				   options->paths[0], options->paths[1]);
	if (options->has_code && options->path_count)
		return usage_error("either -c or a file, not both");
	if (!options->has_code && !options->path_count)
		return usage_error("what shall be run? Give a FILE, - for stdin, or -c CODE");
	if (options_share_stdin(options))
		return usage_error("stdin cannot be both the code and what it reads");
	if (options_load(options, options->path_count ? options->paths[0] : NULL, &err) < 0)
		return usage_error("%s", err.text);
	return 0;
}

static bool output_gone;

static void pass_through(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	int fd = stream == EXECPY_STDOUT ? STDOUT_FILENO : STDERR_FILENO;

	/* Nobody listens any more: go on, for the files and the exit status. */
	if (write_whole(fd, data, length) < 0 && fd == STDOUT_FILENO)
		output_gone = true;
}

/* What was not handed out; a full disk here is a failure of ours. */
static int report_files(const struct execpy_result *result, bool quiet, int status)
{
	struct execpy_artifact artifact;

	for (size_t i = 0; execpy_result_artifact(result, i, &artifact); i++) {
		if (!artifact.refused)
			continue;
		if (!quiet)
			fprintf(stderr, "execpy: %s was not fetched: %s\n", artifact.path,
				artifact.refused);
		if (artifact.failed && status == 0)
			status = EXIT_OURS;
	}
	return status;
}

static int report(struct execpy_result *result, bool json_wanted, bool files_wanted)
{
	const char *explanation = execpy_result_explanation(result);
	int status = outcome_status(result, cancelled_by);

	if (json_wanted) {
		size_t length;
		const char *json = execpy_result_json(result, &length);
		int r = json ? write_whole(STDOUT_FILENO, json, length) : -ENOMEM;

		if (r == 0)
			r = write_whole(STDOUT_FILENO, "\n", 1);
		if (r < 0)
			return own_error("cannot write the result: %s", strerror(-r));
	} else if (explanation) {
		fputs(explanation, stderr);
	}
	if (!json_wanted)
		outcome_tell_restored(result);
	if (files_wanted)
		status = report_files(result, json_wanted, status);
	if (output_gone && status == 0)
		return own_error("cannot write the output");
	return status;
}

static int run(struct options *options, const char *session, bool json)
{
	const struct execpy_callbacks callbacks = {.output = json ? NULL : pass_through};
	const struct execpy_options once = {
		.single_run = true,
		.no_daemon = options->no_daemon,
		.daemon_only = session != NULL,
	};
	struct sigaction action = {.sa_handler = on_signal};
	struct execpy_engine *engine = NULL;
	struct execpy_result *result = NULL;
	struct execpy_error err = {0};
	int status, r;

	if (options->out) {
		if (mkdir(options->out, 0777) < 0 && errno != EEXIST)
			return usage_error("--out %s: %s", options->out, strerror(errno));
		options->request.out_directory =
			open(options->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (options->request.out_directory < 0)
			return usage_error("--out %s: %s", options->out, strerror(errno));
	}
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (execpy_open(&once, &engine, &err) < 0) {
		if (session)
			return outcome_no_daemon(&err);
		if (!json || execpy_failure(&options->request, &err, &result) < 0)
			return own_error("%s", err.text);
		status = report(result, json, false);
		execpy_result_free(result);
		return status;
	}
	cancellable = engine;
	if (cancelled_by)
		execpy_cancel(engine);
	r = session ? execpy_session_run(engine, session, &options->request, &callbacks, &result,
					 &err)
		    : execpy_run(engine, &options->request, &callbacks, &result, &err);
	if (r < 0 && session && outcome_session_gone(engine, session, r))
		status = outcome_session_error(&err);
	else if (r < 0)
		status = usage_error("%s", err.text);
	else
		status = report(result, json, options->out != NULL);
	cancellable = NULL;
	execpy_result_free(result);
	execpy_close(engine);
	return status;
}

int command_run(int argc, char **argv)
{
	static const char *const valued[] = {
		"-c",     "--stdin",  "--time", "--cpu", "--memory", "--processes", "--output",
		"--disk", "--policy", "--file", "--out", "--env",    "--template",  NULL,
	};
	bool json = false;
	const char *session = NULL;
	struct options options = options_default();
	const struct options_text texts[] = {{"--session", &session}, {NULL, NULL}};
	const struct options_flag flags[] = {
		{"--json", &json},
		{"--truncate", &options.request.truncate_output},
		{"--no-daemon", &options.no_daemon},
		{NULL, NULL},
	};
	const struct options_syntax syntax = {
		.command = "run",
		.help = help_text,
		.flags = flags,
		.valued = valued,
		.texts = texts,
		.arguments = true,
	};
	int status = options_parse(&options, &syntax, argc, argv);

	if (status > 0) {
		status--;
	} else {
		status = session ? options_check_session(&options) : 0;
		if (status == 0)
			status = load_code(&options);
		if (status == 0)
			status = run(&options, session, json);
	}
	options_free(&options);
	return status;
}
