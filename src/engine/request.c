/* SPDX-License-Identifier: Apache-2.0 */
/* request: what a client asked for, checked and taken over before anything is
 * started. What is wrong with it is the client's to mend, and says how. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "policy/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int check_list(const char *const *list, size_t count_max, size_t bytes_max, const char *what,
		      bool pairs, struct error *err)
{
	size_t bytes = 0, count = 0;

	for (; list && list[count]; count++) {
		bytes += strlen(list[count]) + 1;
		if (pairs && (list[count][0] == '=' || !strchr(list[count], '=')))
			return refuse(err, EINVAL, "%s: \"%.60s\" is not NAME=VALUE", what,
				      list[count]);
	}
	if (count > count_max || bytes > bytes_max)
		return refuse(err, E2BIG,
			      "%s: at most %zu with %zu bytes together, not %zu with %zu", what,
			      count_max, bytes_max, count, bytes);
	return 0;
}

/* As the warden will see it: no empty part, no "." and no "..", not too deep. */
static bool stays_beneath(const char *name)
{
	size_t parts = 0;

	if (strlen(name) > FILE_NAME_BYTES_MAX)
		return false;
	for (;; name++, parts++) {
		size_t length = strcspn(name, "/");

		if (length == 0 || length > 255 || parts > FILE_DEPTH_MAX ||
		    (length <= 2 && strspn(name, ".") >= length))
			return false;
		name += length;
		if (!*name)
			return true;
	}
}

int request_check_name(const char *name, struct error *err)
{
	if (!name[0] || name[0] == '/')
		return refuse(err, EINVAL, "file \"%.200s\": its name must be relative", name);
	if (!stays_beneath(name))
		return refuse(err, EINVAL, "file \"%.200s\": its name must stay in the workspace",
			      name);
	return 0;
}

static int check_file(const struct execpy_file *file, bool in_session, struct error *err)
{
	struct stat info;
	int r = request_check_name(file->name, err);

	if (r < 0)
		return r;
	if (!in_session && strcmp(file->name, "main.py") == 0)
		return refuse(err, EINVAL, "file main.py: this name is the code's own");
	if (fstat(file->fd, &info) < 0)
		return fail(err, errno, "file %s", file->name);
	if (!S_ISREG(info.st_mode))
		return refuse(err, EINVAL, "file %s: is not a regular file", file->name);
	return 0;
}

static int hash_inputs(struct run *run, struct error *err)
{
	const struct execpy_request *request = run->request;

	run->inputs = calloc(request->file_count + 1, sizeof *run->inputs);
	if (!run->inputs)
		return fail(err, ENOMEM, "files");
	/* The code is a file there, too: listed only when the run changed it. */
	if (!run->session) {
		run->inputs[0].name = strdup("main.py");
		if (!run->inputs[0].name)
			return fail(err, ENOMEM, "files");
		files_hash_bytes(bytes_span(&run->result->code), run->inputs[0].sha256);
		run->input_count = 1;
	}
	for (size_t i = 0; i < request->file_count; i++) {
		struct input *input = &run->inputs[run->input_count];
		int r = check_file(&request->files[i], run->session != NULL, err);

		if (r < 0)
			return r;
		r = files_hash(request->files[i].fd, input->sha256, err);
		if (r < 0)
			return fail_wrap(err, "file %s", request->files[i].name);
		input->name = strdup(request->files[i].name);
		if (!input->name)
			return fail(err, ENOMEM, "files");
		run->input_count++;
	}
	return 0;
}

/* Memory, processes and disk were set when the session was opened. */
static bool is_session_wide(const struct limit_info *info)
{
	return info->offset == offsetof(struct limits, memory_bytes) ||
	       info->offset == offsetof(struct limits, processes) ||
	       info->offset == offsetof(struct limits, disk_bytes);
}

int request_limits(const struct execpy_limits *asked, const struct known_session *session,
		   struct limits *ret_limits, struct error *err)
{
	const uint64_t given[] = {asked->time_ms,   asked->cpu_ms,       asked->memory_bytes,
				  asked->processes, asked->output_bytes, asked->disk_bytes};

	*ret_limits = session ? session->limits : limits_default();
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t number = given[i];
		int r;

		if (number == 0 || (session && is_session_wide(&limit_infos[i])))
			continue;
		if (number == UINT64_MAX && limit_infos[i].least == 0)
			number = 0;
		r = limit_set_number(ret_limits, &limit_infos[i], number, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void lower(uint64_t *limit, uint64_t most)
{
	if (*limit > most)
		*limit = most;
}

static int check_limits(struct run *run, struct error *err)
{
	struct limits *limits = &run->result->limits;
	int r = request_limits(&run->request->limits, run->session, limits, err);

	if (r == 0 && run->result->probe) {
		lower(&limits->time_ms, PROBE_TIME_MS);
		lower(&limits->cpu_ms, PROBE_TIME_MS);
		lower(&limits->memory_bytes, PROBE_MEMORY_BYTES);
	}
	return r;
}

/* Models wrap code in Markdown fences: what is inside is the code. */
int request_take_code(struct execpy_result *result, struct span code, struct error *err)
{
	struct span inner;

	if (fence_strip(code, &inner, &result->fence_line)) {
		result->fenced = true;
		code = inner;
	}
	bytes_append(&result->code, code.data, code.length);
	return result->code.failed ? fail(err, ENOMEM, "code") : 0;
}

int request_take(struct run *run, struct error *err)
{
	const struct execpy_request *request = run->request;
	struct execpy_result *result = run->result;
	struct span code = {(const uint8_t *)request->code, request->code_length};
	int r;

	if (request->code_length > CODE_BYTES_MAX)
		return refuse(err, E2BIG, "code: %zu bytes are too many; at most %llu",
			      request->code_length, (unsigned long long)CODE_BYTES_MAX);
	if (request->file_count > INPUT_FILES_MAX)
		return refuse(err, E2BIG, "files: at most %d", INPUT_FILES_MAX);
	r = check_list(request->arguments, ARGUMENT_COUNT_MAX, ARGUMENT_BYTES_MAX, "arguments",
		       false, err);
	if (r == 0)
		r = check_list(request->environment, ENVIRONMENT_COUNT_MAX, ENVIRONMENT_BYTES_MAX,
			       "environment", true, err);
	if (r == 0)
		r = check_limits(run, err);
	if (r == 0)
		r = request_take_code(result, code, err);
	if (r == 0 && run->session && !request->policy)
		r = policy_decode(bytes_span(&run->session->policy), &run->policy, err);
	else if (r == 0)
		r = policy_load(request->policy ? request->policy : "strict", &run->policy, err);
	if (r == 0)
		r = hash_inputs(run, err);
	if (r < 0)
		return r;
	result->policy = strdup(run->policy.name);
	if (!result->policy)
		return fail(err, ENOMEM, "request");
	return 0;
}
