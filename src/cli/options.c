/* SPDX-License-Identifier: Apache-2.0 */
/* options: see options.h. */
#include "cli/options.h"
#include "cli/cli.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options options_default(void)
{
	return (struct options){.request = {.stdin_fd = -1, .out_directory = -1}};
}

/* Appends to an array of strings that ends with NULL. */
static int add_text(const char ***list, size_t *count, const char *text)
{
	const char **grown = realloc(*list, (*count + 2) * sizeof *grown);

	if (!grown)
		return own_error("out of memory");
	grown[(*count)++] = text;
	grown[*count] = NULL;
	*list = grown;
	return 0;
}

static int add_environment(struct options *options, const char *pair)
{
	int r;

	if (pair[0] == '=' || !strchr(pair, '='))
		return usage_error("--env \"%.60s\": write it as NAME=VALUE", pair);
	r = add_text(&options->environment, &options->environment_count, pair);
	options->request.environment = options->environment;
	return r;
}

/* A path that exists as a whole is taken as it is. */
int options_add_file(struct options *options, const char *what, char *text)
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
		return usage_error("%s %s: %s", what, text, strerror(errno));
	if (fstat(file.fd, &info) < 0 || !S_ISREG(info.st_mode)) {
		close(file.fd);
		return usage_error("%s %s: is not a regular file", what, text);
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

int options_time(const char *option, const char *text, uint64_t *ret_ms)
{
	uint64_t ms = 0;

	if (unit_parse(LIMIT_UNIT_MS, text, &ms) < 0 || ms == 0)
		return usage_error("%s %.40s: write it as %s", option, text,
				   unit_examples(LIMIT_UNIT_MS));
	*ret_ms = ms;
	return 0;
}

static int set_limit(struct options *options, const struct limit_info *info, const char *value)
{
	struct error err = {0};

	if (limit_set_text(&options->limits, info, value, &err) < 0)
		return usage_error("%s %.40s: %s", info->option, value, err.text);
	/* 0 stands for what was not given; the engine's word for "no bytes" is another. */
	if (limit_get(&options->limits, info) == 0)
		*limit_at(&options->limits, info) = UINT64_MAX;
	return 0;
}

static const char **find_text(const struct options_syntax *syntax, const char *option)
{
	for (const struct options_text *text = syntax->texts; text && text->name; text++)
		if (strcmp(text->name, option) == 0)
			return text->value;
	return NULL;
}

/* An option that takes a value: 1 when it was one, 0 when not, or an exit
 * status above 1 when it was wrong. */
static int take_valued(struct options *options, const struct options_syntax *syntax,
		       const char *option, char *value)
{
	const struct limit_info *limit = limit_find_option(option);
	const char **own = find_text(syntax, option);
	size_t at = 0;
	int r = 0;

	while (syntax->valued[at] && strcmp(option, syntax->valued[at]) != 0)
		at++;
	if (!syntax->valued[at] && !own)
		return 0;
	if (!value)
		return usage_error("%s needs a value; see `execpy %s --help`", option,
				   syntax->command);
	if (own) {
		*own = value;
	} else if (limit) {
		r = set_limit(options, limit, value);
	} else if (strcmp(option, "-c") == 0) {
		if (options->has_code)
			return usage_error("-c can be given once");
		options->has_code = true;
		bytes_append_text(&options->code, value);
	} else if (strcmp(option, "--stdin") == 0) {
		r = set_stdin(options, value);
	} else if (strcmp(option, "--policy") == 0) {
		options->request.policy = value;
	} else if (strcmp(option, "--file") == 0) {
		r = options_add_file(options, "--file", value);
	} else if (strcmp(option, "--out") == 0) {
		options->out = value;
	} else if (strcmp(option, "--env") == 0) {
		r = add_environment(options, value);
	} else {
		options->request.template = value;
	}
	return r ? r : 1;
}

static bool take_flag(const struct options_syntax *syntax, const char *option)
{
	for (const struct options_flag *flag = syntax->flags; flag->name; flag++) {
		if (strcmp(flag->name, option) == 0) {
			*flag->value = true;
			return true;
		}
	}
	return false;
}

static void give_limits(struct options *options)
{
	const struct limits *limits = &options->limits;

	options->request.limits = (struct execpy_limits){
		.time_ms = limits->time_ms,
		.cpu_ms = limits->cpu_ms,
		.memory_bytes = limits->memory_bytes,
		.processes = limits->processes,
		.output_bytes = limits->output_bytes,
		.disk_bytes = limits->disk_bytes,
	};
}

int options_parse(struct options *options, const struct options_syntax *syntax, int argc,
		  char **argv)
{
	bool only_paths = false;

	for (int i = 1; i < argc; i++) {
		char *equals, *value = i + 1 < argc ? argv[i + 1] : NULL;
		int r;

		if (!only_paths && strcmp(argv[i], "--") == 0) {
			if (syntax->arguments) {
				options->request.arguments = (const char *const *)&argv[i + 1];
				break;
			}
			only_paths = true;
			continue;
		}
		if (only_paths || argv[i][0] != '-' || strcmp(argv[i], "-") == 0) {
			r = add_text(&options->paths, &options->path_count, argv[i]);
			if (r)
				return 1 + r;
			continue;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(syntax->help, stdout);
			return 1;
		}
		if (take_flag(syntax, argv[i]))
			continue;
		equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
		if (equals) {
			*equals = '\0';
			value = equals + 1;
		}
		r = take_valued(options, syntax, argv[i], value);
		if (r == 0)
			return 1 + usage_error("\"%.60s\" is not an option; see `execpy %s --help`",
					       argv[i], syntax->command);
		if (r > 1)
			return 1 + r;
		i += !equals;
	}
	give_limits(options);
	return 0;
}

int options_load(struct options *options, const char *path, struct execpy_error *err)
{
	int r = 0;

	if (path) {
		bytes_clear(&options->code);
		r = read_whole(path, CODE_BYTES_MAX, &options->code, err);
	}
	options->request.code = options->code.data ? (const char *)options->code.data : "";
	options->request.code_length = options->code.length;
	return r;
}

int options_check_session(const struct options *options)
{
	const struct execpy_limits *limits = &options->request.limits;
	const char *wrong = limits->memory_bytes        ? "--memory"
			    : limits->processes         ? "--processes"
			    : limits->disk_bytes        ? "--disk"
			    : options->request.template ? "--template"
							: NULL;

	if (options->no_daemon)
		return usage_error("--no-daemon: sessions live in a daemon");
	if (wrong)
		return usage_error("%s is the session's own: give it to `execpy session create`",
				   wrong);
	return 0;
}

bool options_share_stdin(const struct options *options)
{
	size_t readers = options->request.stdin_fd == STDIN_FILENO;

	for (size_t i = 0; i < options->path_count; i++)
		readers += strcmp(options->paths[i], "-") == 0;
	return readers > 1;
}

void options_free(struct options *options)
{
	for (size_t i = 0; i < options->request.file_count; i++)
		close(options->files[i].fd);
	free(options->files);
	free(options->environment);
	free(options->paths);
	bytes_free(&options->code);
}
