/* SPDX-License-Identifier: Apache-2.0 */
/* session-tool: the calls of libexecpy on sessions, for tests.
 *
 * Reads one JSON object a line from stdin, {"call": …, …}, and answers each with one:
 * {"ok": …}, {"result": …} or {"errno": …, "text": …}.
 *
 *     session-tool DIRECTORY [SOCKET]    where the programs are; a daemon's socket */
#include "engine/execpy.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static struct execpy_engine *engine;
static char collected[1 << 20];

static const char *text(json_t *call, const char *key)
{
	return json_string_value(json_object_get(call, key));
}

static uint64_t number(json_t *call, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(call, key));
}

static struct execpy_limits limits_of(json_t *call)
{
	return (struct execpy_limits){
		.time_ms = number(call, "time_ms"),
		.cpu_ms = number(call, "cpu_ms"),
		.memory_bytes = number(call, "memory_bytes"),
		.processes = number(call, "processes"),
		.output_bytes = number(call, "output_bytes"),
		.disk_bytes = number(call, "disk_bytes"),
	};
}

static json_t *info_json(const struct execpy_session_info *info)
{
	json_t *names = json_array();

	for (size_t i = 0; i < info->checkpoint_count; i++)
		json_array_append_new(names, json_string(info->checkpoints[i]));
	return json_pack("{ss,ss,sI,sI,sI,sI,sI,sI,sb,ss,ss,so,sI}", "id", info->id, "template",
			 info->template, "runs", (json_int_t)info->runs, "age_ms",
			 (json_int_t)info->age_ms, "unused_ms", (json_int_t)info->unused_ms,
			 "idle_ms", (json_int_t)info->idle_ms, "life_ms", (json_int_t)info->life_ms,
			 "memory_bytes", (json_int_t)info->memory_bytes, "busy", info->busy,
			 "ended", info->ended, "lost", info->lost, "checkpoints", names,
			 "memory_limit", (json_int_t)info->limits.memory_bytes);
}

static void answer(int r, json_t *ok, const struct execpy_error *error)
{
	json_t *object =
		r < 0 ? json_pack("{ss,ss}", "errno", strerrorname_np(-r), "text", error->text)
		      : json_pack("{so}", "ok", ok ? ok : json_true());

	json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	fflush(stdout);
	json_decref(object);
}

static void on_alarm(int signal_number)
{
	execpy_cancel(engine);
}

static void call_run(json_t *call)
{
	const char *const none[] = {NULL};
	const char *code = text(call, "code"), *stdin_path = text(call, "stdin");
	const char *put = text(call, "put"), *put_from = text(call, "put_from");
	struct execpy_file file = {.name = put, .fd = put ? open(put_from, O_RDONLY) : -1};
	uint64_t cancel_ms = number(call, "cancel_ms");
	struct execpy_request request = {
		.code = code,
		.code_length = strlen(code),
		.arguments = none,
		.stdin_fd = stdin_path ? open(stdin_path, O_RDONLY) : -1,
		.files = &file,
		.file_count = put != NULL,
		.limits = limits_of(call),
		.policy = text(call, "policy"),
		.return_files = json_is_true(json_object_get(call, "return_files")),
		.out_directory = -1,
	};
	struct itimerval timer = {
		{0, 0}, {(time_t)(cancel_ms / 1000), (suseconds_t)(cancel_ms % 1000) * 1000}};
	struct execpy_result *result = NULL;
	struct execpy_error error = {0};
	int r;

	setitimer(ITIMER_REAL, &timer, NULL);
	r = execpy_session_run(engine, text(call, "id"), &request, NULL, &result, &error);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	if (request.stdin_fd >= 0)
		close(request.stdin_fd);
	if (file.fd >= 0)
		close(file.fd);
	if (r < 0) {
		answer(r, NULL, &error);
		return;
	}
	printf("{\"result\":%s}\n", execpy_result_json(result, NULL));
	fflush(stdout);
	execpy_result_free(result);
}

static void tell_session(void *user, const struct execpy_session_info *info)
{
	json_array_append_new(user, info_json(info));
}

static void tell_file(void *user, const struct execpy_session_file *file)
{
	json_array_append_new(user, json_pack("{ss,sI,sb,sb,sb}", "path", file->path, "size",
					      (json_int_t)file->size, "directory", file->directory,
					      "link", file->link, "other", file->other));
}

static void call_other(json_t *call, const char *what)
{
	const char *id = text(call, "id"), *name = text(call, "name"), *path = text(call, "path");
	struct execpy_session_info info = {0};
	struct execpy_error error = {0};
	json_t *list = json_array(), *ok = NULL;
	int r = -ENOSYS, fd = -1;

	if (strcmp(what, "open") == 0) {
		const struct execpy_session_options options = {
			.limits = limits_of(call),
			.policy = text(call, "policy"),
			.template = text(call, "template"),
			.idle_ms = number(call, "idle_ms"),
			.life_ms = number(call, "life_ms"),
		};

		r = execpy_session_open(engine, &options, &info, &error);
		ok = info_json(&info);
	} else if (strcmp(what, "info") == 0) {
		r = execpy_session_info(engine, id, &info, &error);
		ok = info_json(&info);
	} else if (strcmp(what, "list") == 0) {
		r = execpy_session_list(engine, tell_session, list, &error);
		ok = json_incref(list);
	} else if (strcmp(what, "checkpoint") == 0) {
		r = execpy_session_checkpoint(engine, id, name, &info, &error);
		ok = info_json(&info);
	} else if (strcmp(what, "rollback") == 0) {
		r = execpy_session_rollback(engine, id, name, &info, &error);
		ok = info_json(&info);
	} else if (strcmp(what, "undo") == 0) {
		r = execpy_session_undo(engine, id, &info, &error);
		ok = info_json(&info);
	} else if (strcmp(what, "drop") == 0) {
		r = execpy_session_drop(engine, id, name, &info, &error);
		ok = info_json(&info);
	} else if (strcmp(what, "fork") == 0) {
		r = execpy_session_fork(engine, id, (unsigned)number(call, "count"),
					json_is_true(json_object_get(call, "same_random")),
					tell_session, list, &error);
		ok = json_incref(list);
	} else if (strcmp(what, "interrupt") == 0) {
		r = execpy_session_interrupt(engine, id, &error);
	} else if (strcmp(what, "end") == 0) {
		r = execpy_session_end(engine, id, &error);
	} else if (strcmp(what, "files") == 0) {
		r = execpy_session_files(engine, id, tell_file, list, &error);
		ok = json_incref(list);
	} else if (strcmp(what, "put") == 0) {
		struct execpy_file file = {.name = name, .fd = fd = open(path, O_RDONLY)};

		r = execpy_session_put(engine, id, &file, &error);
	} else if (strcmp(what, "get") == 0) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		r = execpy_session_get(engine, id, name, fd, &error);
	} else if (strcmp(what, "delete") == 0) {
		r = execpy_session_delete(engine, id, name, &error);
	} else if (strcmp(what, "rename") == 0) {
		r = execpy_session_rename(engine, id, name, text(call, "to"), &error);
	} else if (strcmp(what, "tar_out") == 0) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		r = execpy_session_tar_out(engine, id, fd, &error);
	} else if (strcmp(what, "tar_in") == 0) {
		fd = open(path, O_RDONLY);
		r = execpy_session_tar_in(engine, id, fd, &error);
	}
	if (fd >= 0)
		close(fd);
	answer(r, r < 0 ? NULL : json_incref(ok ? ok : json_true()), &error);
	json_decref(list);
	json_decref(ok);
}

int main(int argc, char **argv)
{
	const struct execpy_options options = {
		.program_directory = argc > 1 ? argv[1] : NULL,
		.no_daemon = argc < 3,
		.socket = argc < 3 ? NULL : argv[2],
	};
	struct execpy_error error = {0};

	signal(SIGALRM, on_alarm);
	if (execpy_open(&options, &engine, &error) < 0) {
		fprintf(stderr, "session-tool: %s\n", error.text);
		return 1;
	}
	while (fgets(collected, sizeof collected, stdin)) {
		json_error_t bad;
		json_t *call = json_loads(collected, 0, &bad);
		const char *what = call ? text(call, "call") : NULL;

		if (!what) {
			fprintf(stderr, "session-tool: %s\n", call ? "no call" : bad.text);
			return 2;
		}
		if (strcmp(what, "run") == 0)
			call_run(call);
		else
			call_other(call, what);
		json_decref(call);
	}
	execpy_close(engine);
	return 0;
}
