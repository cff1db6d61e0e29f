/* SPDX-License-Identifier: Apache-2.0 */
/* run: `execpy run`, one piece of code from the command line. */
#include "cli/cli.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "policy/limits.h"

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
	"  --no-daemon          never use a running daemon\n";

struct options {
	struct execpy_request request;
	struct limits limits;
	struct bytes code;
	bool has_code, json, no_daemon;
	const char *code_path;
	const char **environment;
	size_t environment_count;
	struct execpy_file *files;
	const char *out;
};

static struct execpy_engine *cancellable;
static volatile sig_atomic_t cancelled_by;

/* The first signal cancels the run, which then ends as it should. */
static void on_signal(int number)
{
	cancelled_by = number;
	if (cancellable)
		execpy_cancel(cancellable);
}

static int add_environment(struct options *options, const char *pair)
{
	const char **grown =
		realloc(options->environment, (options->environment_count + 2) * sizeof *grown);

	if (!grown)
		return own_error("out of memory");
	if (pair[0] == '=' || !strchr(pair, '='))
		return usage_error("--env \"%.60s\": write it as NAME=VALUE", pair);
	grown[options->environment_count++] = pair;
	grown[options->environment_count] = NULL;
	options->environment = grown;
	options->request.environment = grown;
	return 0;
}

/* PATH or PATH:NAME; a path that exists as a whole is taken as it is. */
static int add_file(struct options *options, char *text)
{
	char *colon = strrchr(text, ':'), *slash;
	struct execpy_file *grown, file = {.fd = -1};
	struct stat info;

	if (access(text, F_OK) == 0)
		colon = NULL;
	if (colon)
		*colon = '\0';
	slash = strrchr(text, '/');
	file.name = colon ? colon + 1 : slash ? slash + 1 : text;
	file.fd = open(text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file.fd < 0)
		return usage_error("--file %s: %s", text, strerror(errno));
	if (fstat(file.fd, &info) < 0 || !S_ISREG(info.st_mode)) {
		close(file.fd);
		return usage_error("--file %s: is not a regular file", text);
	}
	file.executable = (info.st_mode & 0111) != 0;
	grown = realloc(options->files, (options->request.file_count + 1) * sizeof *grown);
	if (!grown) {
		close(file.fd);
		return own_error("out of memory");
	}
	grown[options->request.file_count++] = file;
	options->files = grown;
	options->request.files = grown;
	return 0;
}

static int set_stdin(struct options *options, const char *path)
{
	if (strcmp(path, "-") == 0) {
		options->request.stdin_fd = STDIN_FILENO;
		return 0;
	}
	options->request.stdin_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (options->request.stdin_fd < 0)
		return usage_error("--stdin %s: %s", path, strerror(errno));
	return 0;
}

static int set_limit(struct options *options, const char *option, const char *value)
{
	const struct limit_info *info = limit_find_option(option);
	struct error err = {0};

	if (limit_set_text(&options->limits, info, value, &err) < 0)
		return usage_error("%s %.40s: %s", option, value, err.text);
	return 0;
}

/* An option that takes a value: 1 when it was one, 0 when not, or an exit
 * status above 1 when it was wrong. */
static int take_valued(struct options *options, const char *option, char *value)
{
	static const char *const known[] = {"-c",    "--stdin", "--policy",  "--file",
					    "--out", "--env",   "--template"};
	bool is_known = limit_find_option(option) != NULL;
	int r = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
		is_known |= strcmp(option, known[i]) == 0;
	if (!is_known)
		return 0;
	if (!value)
		return usage_error("%s needs a value; see `execpy run --help`", option);
	if (limit_find_option(option)) {
		r = set_limit(options, option, value);
	} else if (strcmp(option, "-c") == 0) {
		options->has_code = true;
		bytes_append_text(&options->code, value);
	} else if (strcmp(option, "--stdin") == 0) {
		r = set_stdin(options, value);
	} else if (strcmp(option, "--policy") == 0) {
		options->request.policy = value;
	} else if (strcmp(option, "--file") == 0) {
		r = add_file(options, value);
	} else if (strcmp(option, "--out") == 0) {
		options->out = value;
	} else if (strcmp(option, "--env") == 0) {
		r = add_environment(options, value);
	} else {
		options->request.template = value;
	}
	return r ? r : 1;
}

/* 0 to go on, or an exit status plus one: 1 stands for success. */
static int parse(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *equals, *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool joined = false;
		int r;

		if (strcmp(argv[i], "--") == 0) {
			options->request.arguments = (const char *const *)&argv[i + 1];
			break;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help_text, stdout);
			return 1;
		}
		if (strcmp(argv[i], "--json") == 0) {
			options->json = true;
			continue;
		}
		if (strcmp(argv[i], "--truncate") == 0) {
			options->request.truncate_output = true;
			continue;
		}
		if (strcmp(argv[i], "--no-daemon") == 0) {
			options->no_daemon = true;
			continue;
		}
		if (argv[i][0] != '-' || strcmp(argv[i], "-") == 0) {
			if (options->code_path)
				return 1 +
				       usage_error("one FILE at a time: \"%.60s\" and \"%.60s\"; "
						   "arguments of the code go after --",
						   options->code_path, argv[i]);
			options->code_path = argv[i];
			continue;
		}
		equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
		if (equals) {
			*equals = '\0';
			value = equals + 1;
			joined = true;
		}
		r = take_valued(options, argv[i], value);
		if (r == 0)
			return 1 +
			       usage_error("\"%.60s\" is not an option; see `execpy run --help`",
					   argv[i]);
		if (r > 1)
			return 1 + r;
		i += !joined;
	}
	return 0;
}

static int load_code(struct options *options)
{
	struct execpy_error err = {0};

	if (options->has_code && options->code_path)
		return usage_error("either -c or a file, not both");
	if (!options->has_code && !options->code_path)
		return usage_error("what shall be run? Give a FILE, - for stdin, or -c CODE");
	if (options->code_path &&
	    read_whole(options->code_path, CODE_BYTES_MAX, &options->code, &err) < 0)
		return usage_error("%s", err.text);
	if (options->request.stdin_fd == STDIN_FILENO && options->code_path &&
	    strcmp(options->code_path, "-") == 0)
		return usage_error("stdin cannot be both the code and what it reads");
	options->request.code = options->code.data ? (const char *)options->code.data : "";
	options->request.code_length = options->code.length;
	return 0;
}

static void give_limits(struct options *options)
{
	const struct limits *limits = &options->limits;

	options->request.limits = (struct execpy_limits){
		.time_ms = limits->time_ms,
		.cpu_ms = limits->cpu_ms,
		.memory_bytes = limits->memory_bytes,
		.processes = limits->processes,
		.output_bytes = limits->output_bytes ? limits->output_bytes : UINT64_MAX,
		.disk_bytes = limits->disk_bytes,
	};
}

static bool output_gone;

static void pass_through(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	int fd = stream == EXECPY_STDOUT ? STDOUT_FILENO : STDERR_FILENO;

	/* Nobody listens any more: go on, for the files and the exit status. */
	if (write_whole(fd, data, length) < 0 && fd == STDOUT_FILENO)
		output_gone = true;
}

static int exit_status(const struct execpy_result *result)
{
	switch (execpy_result_status(result)) {
	case EXECPY_OK:
	case EXECPY_ERROR:
		return execpy_result_exit_code(result);
	case EXECPY_TIMEOUT:
	case EXECPY_CPU_LIMIT:
		return EXIT_TIME;
	case EXECPY_BLOCKED:
	case EXECPY_ANOMALY:
		return EXIT_BLOCKED;
	case EXECPY_MEMORY_LIMIT:
	case EXECPY_OUTPUT_LIMIT:
	case EXECPY_DISK_LIMIT:
		return EXIT_LIMIT;
	case EXECPY_CRASHED:
		return EXIT_SIGNAL + execpy_result_signal(result);
	case EXECPY_CANCELLED:
		return EXIT_SIGNAL + (cancelled_by ? cancelled_by : SIGINT);
	case EXECPY_INTERNAL_ERROR:
		break;
	}
	return EXIT_OURS;
}

static int report(struct options *options, struct execpy_result *result)
{
	const char *explanation = execpy_result_explanation(result);
	int status = exit_status(result);

	if (options->json) {
		size_t length;
		const char *json = execpy_result_json(result, &length);
		int r = json ? write_whole(STDOUT_FILENO, json, length) : -ENOMEM;

		if (r == 0)
			r = write_whole(STDOUT_FILENO, "\n", 1);
		if (r < 0)
			return own_error("cannot write the result: %s", strerror(-r));
		return status;
	}
	if (explanation)
		fputs(explanation, stderr);
	if (output_gone && status == 0)
		return own_error("cannot write the output");
	return status;
}

static int run(struct options *options)
{
	const struct execpy_callbacks callbacks = {.output = options->json ? NULL : pass_through};
	struct sigaction action = {.sa_handler = on_signal};
	struct execpy_engine *engine = NULL;
	struct execpy_result *result = NULL;
	struct execpy_error err = {0};
	int status;

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
	if (execpy_open(NULL, &engine, &err) < 0)
		return own_error("%s", err.text);
	cancellable = engine;
	if (cancelled_by)
		execpy_cancel(engine);
	if (execpy_run(engine, &options->request, &callbacks, &result, &err) < 0)
		status = usage_error("%s", err.text);
	else
		status = report(options, result);
	cancellable = NULL;
	execpy_result_free(result);
	execpy_close(engine);
	return status;
}

int command_run(int argc, char **argv)
{
	struct options options = {
		.request = {.stdin_fd = -1, .out_directory = -1},
		.limits = limits_default(),
	};
	int status = parse(&options, argc, argv);

	if (status > 0) {
		status--;
	} else {
		status = load_code(&options);
		give_limits(&options);
		if (status == 0)
			status = run(&options);
	}
	for (size_t i = 0; i < options.request.file_count; i++)
		close(options.files[i].fd);
	free(options.files);
	free(options.environment);
	bytes_free(&options.code);
	return status;
}
