/* SPDX-License-Identifier: Apache-2.0 */
/* outcome: see outcome.h. */
#include "cli/outcome.h"
#include "cli/cli.h"
#include "cli/excerpt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int outcome_status(const struct execpy_result *result, int cancelled_by)
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

void outcome_tell_lines(const char *before, const char *lines)
{
	autobytes text = {0};

	bytes_append_text(&text, before);
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		excerpt_text(&text, (struct span){(const uint8_t *)lines, length});
		lines += length;
		while (*lines == '\n')
			lines++;
		if (*lines)
			bytes_append_text(&text, "; ");
	}
	if (!text.failed)
		fprintf(stderr, "%.*s\n", (int)text.length, (const char *)text.data);
}

void outcome_tell_restored(struct execpy_result *result)
{
	bool restored = false;
	const char *lost = NULL;

	if (execpy_result_session_run(result, &restored, &lost) == 0 || !restored)
		return;
	if (lost && *lost)
		outcome_tell_lines("session restored to before this run; lost: ", lost);
	else
		fputs("session restored to before this run\n", stderr);
}

int outcome_session_error(const struct execpy_error *error)
{
	autobytes text = {0};

	excerpt_text(&text, (struct span){(const uint8_t *)error->text, strlen(error->text)});
	bytes_append(&text, "", 1);
	own_error("%s", text.failed ? error->text : (const char *)text.data);
	return EXIT_NOT_DONE;
}

bool outcome_session_gone(struct execpy_engine *engine, const char *id, int failure)
{
	struct execpy_session_info info;
	struct execpy_error ignored = {0};

	if (failure != -ENOENT)
		return failure == -EIDRM;
	return execpy_session_info(engine, id, &info, &ignored) < 0;
}

int outcome_no_daemon(const struct execpy_error *error)
{
	if (error->number != ENOENT && error->number != ECONNREFUSED)
		return own_error("%s", error->text);
	own_error("%s: sessions live in a daemon; start one with `execpy serve`", error->text);
	return EXIT_NOT_DONE;
}
