/* SPDX-License-Identifier: Apache-2.0 */
/* session_files: see session_files.h. */
#include "cli/session_files.h"
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/session_text.h"

#include "base/cleanup.h"
#include "engine/session_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- list ---------------------------------------------------------------------- */

struct listing {
	struct bytes out;
	struct json json;
	bool is_json;
};

static void add_file(void *user, const struct execpy_session_file *file)
{
	struct listing *listing = user;

	if (listing->is_json)
		session_report_file_json(file, &listing->json);
	else
		session_text_file(file, &listing->out);
}

int session_files_list(struct execpy_engine *engine, const char *id, bool json)
{
	struct listing listing = {.json = {.out = &listing.out}, .is_json = json};
	struct execpy_error err = {0};
	int r;

	if (json)
		emit_begin_array(&listing.json);
	r = execpy_session_files(engine, id, add_file, &listing, &err);
	if (json) {
		emit_end_array(&listing.json);
		bytes_append_text(&listing.out, "\n");
	}
	if (r < 0)
		r = outcome_session_error(&err);
	else if (listing.out.failed)
		r = own_error("out of memory");
	else
		r = cli_print(&listing.out);
	bytes_free(&listing.out);
	return r;
}

/* --- get ----------------------------------------------------------------------- */

/* Where a file is written until all of it is there; then it gets its name. */
struct arrival {
	char path[PATH_MAX], temporary[PATH_MAX];
	int fd;
	bool in_place; /* no regular file is, or may be, at `path`: a device, say */
};

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

static int arrival_begin(struct arrival *arrival, const char *to, const char *name)
{
	struct stat info;
	int length;

	if (!to)
		to = last_part(name);
	length = stat(to, &info) == 0 && S_ISDIR(info.st_mode)
			 ? snprintf(arrival->path, sizeof arrival->path, "%s/%s", to,
				    last_part(name))
			 : snprintf(arrival->path, sizeof arrival->path, "%s", to);
	if (length <= 0 || (size_t)length + sizeof ".XXXXXX" > sizeof arrival->path)
		return usage_error("%.60s…: no name for a file here", to);
	arrival->in_place = stat(arrival->path, &info) == 0 && !S_ISREG(info.st_mode);
	if (arrival->in_place) {
		arrival->fd = open(arrival->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	} else {
		snprintf(arrival->temporary, sizeof arrival->temporary, "%.*s.XXXXXX", length,
			 arrival->path);
		arrival->fd = mkostemp(arrival->temporary, O_CLOEXEC);
	}
	if (arrival->fd < 0)
		return usage_error("%s: %s", arrival->path, strerror(errno));
	return 0;
}

static int arrival_end(struct arrival *arrival, bool complete)
{
	mode_t mask = umask(0);
	int r = 0;

	umask(mask);
	if (complete && !arrival->in_place &&
	    (fchmod(arrival->fd, 0666 & ~mask) < 0 ||
	     rename(arrival->temporary, arrival->path) < 0))
		r = -errno;
	if (close(arrival->fd) < 0 && complete && r == 0)
		r = -errno;
	if (!arrival->in_place && (!complete || r < 0))
		unlink(arrival->temporary);
	return r < 0 ? own_error("%s: %s", arrival->path, strerror(-r)) : 0;
}

/* Lets one call write to where the user wants it. `name` is NULL for an archive. */
static int bring(struct execpy_engine *engine, const char *id, const char *name, const char *to)
{
	struct arrival arrival = {.fd = STDOUT_FILENO};
	bool standard = to && strcmp(to, "-") == 0;
	struct execpy_error err = {0};
	int status = standard ? 0 : arrival_begin(&arrival, to, name ? name : "");
	int r;

	if (status)
		return status;
	r = name ? execpy_session_get(engine, id, name, arrival.fd, &err)
		 : execpy_session_tar_out(engine, id, arrival.fd, &err);
	if (!standard)
		status = arrival_end(&arrival, r == 0);
	return r < 0 ? outcome_session_error(&err) : status;
}

int session_files_get(struct execpy_engine *engine, const char *id, const char *name,
		      const char *to)
{
	return bring(engine, id, name, to);
}

/* --- put ----------------------------------------------------------------------- */

int session_files_put(struct execpy_engine *engine, const char *id, const char *text)
{
	struct options options = options_default();
	autofree char *copy = strdup(text);
	struct execpy_error err = {0};
	int status = copy ? options_add_file(&options, "put", copy) : own_error("out of memory");

	if (status == 0 && execpy_session_put(engine, id, &options.files[0], &err) < 0)
		status = outcome_session_error(&err);
	options_free(&options);
	return status;
}

/* --- the command --------------------------------------------------------------- */

struct job {
	struct execpy_engine *engine;
	const char *id;
	const char *const *words; /* behind the action */
	size_t count;
	bool json;
};

static int list(const struct job *job)
{
	return session_files_list(job->engine, job->id, job->json);
}

static int get(const struct job *job)
{
	return session_files_get(job->engine, job->id, job->words[0],
				 job->count > 1 ? job->words[1] : NULL);
}

static int put(const struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		int status = session_files_put(job->engine, job->id, job->words[i]);

		if (status)
			return status;
	}
	return 0;
}

static int erase(const struct job *job)
{
	struct execpy_error err = {0};

	for (size_t i = 0; i < job->count; i++)
		if (execpy_session_delete(job->engine, job->id, job->words[i], &err) < 0)
			return outcome_session_error(&err);
	return 0;
}

static int move(const struct job *job)
{
	struct execpy_error err = {0};

	if (execpy_session_rename(job->engine, job->id, job->words[0], job->words[1], &err) < 0)
		return outcome_session_error(&err);
	return 0;
}

static int tar_out(const struct job *job)
{
	const char *to = job->count ? job->words[0] : "-";

	if (strcmp(to, "-") == 0 && isatty(STDOUT_FILENO))
		return usage_error("an archive is nothing for a terminal: give a FILE, or > FILE");
	return bring(job->engine, job->id, NULL, to);
}

static int tar_in(const struct job *job)
{
	const char *from = job->count ? job->words[0] : "-";
	bool standard = strcmp(from, "-") == 0;
	autofd opened = standard ? -1 : open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct execpy_error err = {0};

	if (standard && isatty(STDIN_FILENO))
		return usage_error("which archive? Give a FILE, or < FILE");
	if (!standard && opened < 0)
		return usage_error("%s: %s", from, strerror(errno));
	if (execpy_session_tar_in(job->engine, job->id, standard ? STDIN_FILENO : opened, &err) < 0)
		return outcome_session_error(&err);
	return 0;
}

static const struct {
	const char *name, *operands;
	size_t least, most;
	int (*act)(const struct job *job);
} actions[] = {
	{"list", "", 0, 0, list},
	{"get", " NAME [TO]", 1, 2, get},
	{"put", " FILE[:NAME]…", 1, SIZE_MAX, put},
	{"delete", " NAME…", 1, SIZE_MAX, erase},
	{"rename", " FROM TO", 2, 2, move},
	{"tar-out", " [FILE | -]", 0, 1, tar_out},
	{"tar-in", " [FILE | -]", 0, 1, tar_in},
};

int session_files(struct execpy_engine *engine, const char *id, const struct options *options,
		  bool json)
{
	const char *const *words = options->paths + 1;
	size_t count = options->path_count - 1;
	struct job job = {engine, id, words + 1, count ? count - 1 : 0, json};

	if (count == 0)
		return session_files_list(engine, id, json);
	for (size_t i = 0; i < ARRAY_LENGTH(actions); i++) {
		if (strcmp(actions[i].name, words[0]) != 0)
			continue;
		if (job.count < actions[i].least || job.count > actions[i].most)
			return usage_error("write it as `execpy session files ID %s%s`",
					   actions[i].name, actions[i].operands);
		if (json && actions[i].act != list)
			return usage_error("--json goes with `files ID list` alone");
		return actions[i].act(&job);
	}
	return usage_error("\"%.60s\" is nothing to do with files; see `execpy session --help`",
			   words[0]);
}
