/* SPDX-License-Identifier: Apache-2.0 */
/* main: picks the command. */
#include "cli/cli.h"

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024) /* of what does not say how much there is */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{"run", command_run, "run Python code in a sandbox"},
	{"check", command_check, "say what the verifier makes of code, without running it"},
	{"session", command_session, "keep variables and files from run to run"},
	{"shell", command_shell, "type Python at a prompt, in a session"},
	{"serve", command_serve, "keep cells ready, so that runs start at once"},
	{"mcp", command_mcp, "give a model these tools over the Model Context Protocol"},
	{"doctor", command_doctor, "try to break each layer of the sandbox on this host"},
};

__attribute__((format(printf, 1, 0))) static void complain(const char *format, va_list args)
{
	char line[640];

	vsnprintf(line, sizeof line, format, args);
	fprintf(stderr, "execpy: %s\n", line);
}

int usage_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	return EXIT_USAGE;
}

int own_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	return EXIT_OURS;
}

int read_whole(const char *path, size_t limit, struct bytes *out, struct execpy_error *err)
{
	bool standard = strcmp(path, "-") == 0;
	autofd opened = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int fd = standard ? STDIN_FILENO : opened;
	struct stat info;
	size_t guess = READ_BYTES;

	if (fd < 0)
		return fail((struct error *)err, errno, "%s", path);
	/* As much as a file has, and one more to see its end. */
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size < READ_BYTES)
		guess = (size_t)info.st_size + 1;
	bytes_reserve(out, guess);
	for (;;) {
		uint8_t *room = bytes_reserve(out, 1);
		ssize_t r = room ? read(fd, room, out->capacity - out->length) : -1;

		if (!room)
			return fail((struct error *)err, -out->failed, "%s", path);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return fail((struct error *)err, errno, "%s", path);
		if (r == 0)
			return 0;
		out->length += (size_t)r;
		if (out->length > limit)
			return refuse((struct error *)err, E2BIG, "%s: larger than %zu bytes", path,
				      limit);
	}
}

int write_whole(int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length > 0) {
		ssize_t r = write(fd, at, length);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		at += r;
		length -= (size_t)r;
	}
	return 0;
}

int cli_print(const struct bytes *out)
{
	int r = out->failed ? out->failed : write_whole(STDOUT_FILENO, out->data, out->length);

	return r < 0 ? own_error("cannot write: %s", strerror(-r)) : 0;
}

bool colours_wanted(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && no_color[0]) &&
	       !(term && strcmp(term, "dumb") == 0);
}

static void help(FILE *to)
{
	fprintf(to,
		"execpy %s: runs Python that a stranger wrote, and gives back everything that "
		"happened\n\n",
		execpy_version());
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
		fprintf(to, "  execpy %-8s %s\n", commands[i].name, commands[i].summary);
	fprintf(to, "\n`execpy COMMAND --help` tells more.\n");
}

int main(int argc, char **argv)
{
	if (descriptors_fill_standard(NULL) < 0)
		return EXIT_OURS;
	if (argc < 2)
		return usage_error("a command is missing; `execpy --help` lists them");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("execpy %s\n", execpy_version());
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return usage_error("\"%.60s\" is not a command; `execpy --help` lists them", argv[1]);
}
