/* SPDX-License-Identifier: Apache-2.0 */
/* shell_print: what came of a run, at the shell's prompt.
 *
 * What the code prints, and the text of its value, go out as they are, as with
 * `execpy run`. Pictures become files: a terminal cannot show them. */
#include "cli/shell.h"
#include "cli/cli.h"
#include "cli/excerpt.h"
#include "cli/outcome.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PICTURES_MAX = 100000 }; /* numbers that are tried */

static const struct {
	const char *mime, *suffix;
} pictures[] = {
	{"image/png", "png"},
	{"image/jpeg", "jpg"},
	{"image/svg+xml", "svg"},
	{"image/gif", "gif"},
};

static void put(struct shell *shell, int fd, const void *data, size_t length)
{
	if (length == 0)
		return;
	if (write_whole(fd, data, length) < 0 && fd == STDOUT_FILENO)
		shell->output_gone = true;
	shell->midline = ((const char *)data)[length - 1] != '\n';
}

void shell_print_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	put(user, stream == EXECPY_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, length);
}

/* A line of ours begins at the left. */
static void begin_line(struct shell *shell)
{
	if (shell->midline && shell->interactive)
		put(shell, STDOUT_FILENO, "\n", 1);
}

static const char *colour(const struct shell *shell, const char *sequence)
{
	return shell->colours ? sequence : "";
}

/* --- pictures --------------------------------------------------------------------- */

/* A file that was not there before: picture-N.png with the next N that is free. */
static int create_picture(struct shell *shell, const char *suffix, char path[PATH_MAX])
{
	const char *directory = shell->pictures ? shell->pictures : ".";
	bool here = strcmp(directory, ".") == 0;
	int fd;

	while (shell->picture < PICTURES_MAX) {
		int length = snprintf(path, PATH_MAX, "%s%spicture-%u.%s", here ? "" : directory,
				      here ? "" : "/", ++shell->picture, suffix);

		if (length >= PATH_MAX)
			return -ENAMETOOLONG;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static void save_picture(struct shell *shell, const char *suffix, const void *data, size_t length)
{
	char path[PATH_MAX] = "";
	autofd fd = create_picture(shell, suffix, path);
	int r = fd < 0 ? fd : write_whole(fd, data, length);

	begin_line(shell);
	if (r < 0)
		fprintf(stderr, "execpy: a picture was not saved: %s: %s\n", path, strerror(-r));
	else
		printf("%s[%s: %zu bytes]%s\n", colour(shell, "\033[36m"), path, length,
		       colour(shell, "\033[0m"));
}

/* --- value and displays ------------------------------------------------------------- */

static void print_bundle(struct shell *shell, const struct execpy_result *result, int index)
{
	const void *data;
	size_t length;

	for (size_t i = 0; i < ARRAY_LENGTH(pictures); i++) {
		if (!execpy_result_bundle(result, index, pictures[i].mime, &data, &length))
			continue;
		save_picture(shell, pictures[i].suffix, data, length);
		return;
	}
	if (!execpy_result_bundle(result, index, "text/plain", &data, &length))
		return;
	begin_line(shell);
	put(shell, STDOUT_FILENO, data, length);
	put(shell, STDOUT_FILENO, "\n", 1);
}

/* --- findings and the end ------------------------------------------------------------ */

static void print_warnings(struct shell *shell, struct execpy_result *result)
{
	const struct execpy_finding *findings = NULL;
	size_t count = execpy_result_findings(result, &findings);

	for (size_t i = 0; i < count; i++) {
		const struct execpy_finding *finding = &findings[i];
		autobytes text = {0};

		if (strcmp(finding->severity, "warn") != 0)
			continue;
		excerpt_text(&text, (struct span){(const uint8_t *)finding->message,
						  strlen(finding->message)});
		fprintf(stderr, "%swarning:%s ", colour(shell, "\033[33m"),
			colour(shell, "\033[0m"));
		if (finding->line > 0)
			fprintf(stderr, "line %u: ", finding->line);
		fprintf(stderr, "%.*s [%s]\n", (int)text.length, (const char *)text.data,
			finding->rule);
	}
}

void shell_print_result(struct shell *shell, struct execpy_result *result)
{
	const char *explanation = execpy_result_explanation(result);
	size_t displays = execpy_result_displays(result);

	for (size_t i = 0; i < displays; i++)
		print_bundle(shell, result, (int)i);
	print_bundle(shell, result, -1);
	begin_line(shell);
	if (explanation)
		fprintf(stderr, "%s%s%s", colour(shell, "\033[31m"), explanation,
			colour(shell, "\033[0m"));
	/* A refusal is explained already. */
	if (execpy_result_status(result) != EXECPY_BLOCKED)
		print_warnings(shell, result);
	outcome_tell_restored(result);
}
