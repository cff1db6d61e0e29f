/* SPDX-License-Identifier: Apache-2.0 */
/* session_files: the files of a session's workspace, while no run goes on.
 *
 * Each call takes the session as a run would, gets the workspace's descriptor, and
 * gives it back; so no two get into each other's way. Everything is opened beneath
 * that descriptor with the cell's rights, never through a link. What a caller puts
 * there is not told as the next run's doing. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int session_hold(struct execpy_engine *engine, const char *id, struct hold *hold, struct error *err)
{
	static const struct execpy_request nothing = {
		.code = "", .stdin_fd = -1, .out_directory = -1};
	const struct run_purpose purpose = {.session = id, .hold = hold};
	struct execpy_result *result = NULL;
	struct run *run;
	int r;

	hold->failed.number = EPIPE;
	run = run_start(engine, &nothing, NULL, &purpose, err);
	r = run ? run_wait(run, &result, err) : -err->number;
	if (r == 0 && hold->failed.number)
		r = hold->failed.text[0] ? refuse(err, hold->failed.number, "%s", hold->failed.text)
					 : refuse(err, EPIPE, "%s", execpy_result_reason(result));
	execpy_result_free(result);
	return r;
}

/* The directory that holds `name`, and its last part. */
static int open_parent(int workspace, const char *name, char part[NAME_MAX + 1], struct error *err)
{
	char path[FILE_NAME_BYTES_MAX + 1];
	char *slash;
	int fd;

	snprintf(path, sizeof path, "%s", name);
	slash = strrchr(path, '/');
	snprintf(part, NAME_MAX + 1, "%.255s", slash ? slash + 1 : path);
	if (slash)
		*slash = '\0';
	fd = workspace_open(workspace, slash ? path : ".", O_RDONLY | O_DIRECTORY);
	return fd < 0 ? fail(err, errno, "file %s", name) : fd;
}

/* --- list ------------------------------------------------------------------------ */

static int list_directory(struct workspace_list *list, int parent, const char *name, size_t length,
			  unsigned depth, struct error *err);

static int list_one(struct workspace_list *list, int directory, const char *name, size_t length,
		    unsigned depth, struct error *err)
{
	struct execpy_session_file file = {.path = list->path};
	struct stat info;

	if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* it is gone */
	file.size = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
	file.modified_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
	file.directory = S_ISDIR(info.st_mode);
	file.link = S_ISLNK(info.st_mode);
	file.other = !file.directory && !file.link && !S_ISREG(info.st_mode);
	list->tell(list->user, &file);
	return file.directory ? list_directory(list, directory, name, length, depth + 1, err) : 0;
}

static int list_directory(struct workspace_list *list, int parent, const char *name, size_t length,
			  unsigned depth, struct error *err)
{
	int fd = workspace_open(parent, name, O_RDONLY | O_DIRECTORY), r = 0;
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!directory) {
		close_fd(&fd);
		return depth > 0 && errno == EACCES ? 0 : fail(err, errno, "list %s", name);
	}
	while (r == 0 && (entry = readdir(directory))) {
		size_t base = length, own = strlen(entry->d_name);

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (list->entries++ >= COLLECT_ENTRIES_MAX || depth > FILE_DEPTH_MAX ||
		    base + own + 2 > sizeof list->path) {
			r = refuse(err, E2BIG, "the workspace holds more than is listed");
			break;
		}
		if (base > 0)
			list->path[base++] = '/';
		memcpy(list->path + base, entry->d_name, own + 1);
		r = list_one(list, fd, entry->d_name, base + own, depth, err);
	}
	closedir(directory);
	return r;
}

int workspace_list(void *list, int workspace, const struct deadline *deadline, struct error *err)
{
	return list_directory(list, workspace, ".", 0, 0, err);
}

int execpy_session_files(struct execpy_engine *engine, const char *id,
			 void (*tell)(void *user, const struct execpy_session_file *file),
			 void *user, struct execpy_error *error)
{
	struct workspace_list list = {.tell = tell, .user = user};
	struct hold hold = {.use = workspace_list, .user = &list};

	return session_hold(engine, id, &hold, (struct error *)error);
}

/* --- one file ---------------------------------------------------------------------- */

int workspace_put(void *file, int workspace, const struct deadline *deadline, struct error *err)
{
	return inputs_put_one(workspace, file, true, deadline, err);
}

int execpy_session_put(struct execpy_engine *engine, const char *id, const struct execpy_file *file,
		       struct execpy_error *error)
{
	struct hold hold = {.use = workspace_put, .user = (void *)file, .changes = true};
	struct error *err = (struct error *)error;
	struct stat info;
	int r = request_check_name(file->name, err);

	if (r < 0)
		return r;
	if (fstat(file->fd, &info) < 0)
		return fail(err, errno, "file %s", file->name);
	if (!S_ISREG(info.st_mode))
		return refuse(err, EINVAL, "file %s: is not a regular file", file->name);
	return session_hold(engine, id, &hold, err);
}

static int open_regular(int workspace, const char *name, struct stat *info, struct error *err)
{
	autofd fd = workspace_open(workspace, name, O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return fail(err, errno == ELOOP ? EINVAL : errno, "file %s", name);
	if (fstat(fd, info) < 0 || !S_ISREG(info->st_mode))
		return refuse(err, EINVAL, "file %s: is not a regular file", name);
	return take_fd(&fd);
}

int workspace_open_file(void *user, int workspace, const struct deadline *deadline,
			struct error *err)
{
	struct workspace_file *file = user;
	struct stat info;

	file->fd = open_regular(workspace, file->name, &info, err);
	if (file->fd < 0)
		return -err->number;
	file->size = (uint64_t)info.st_size;
	return 0;
}

int workspace_get(void *user, int workspace, const struct deadline *deadline, struct error *err)
{
	const struct workspace_get *get = user;
	struct stat info;
	autofd fd = open_regular(workspace, get->name, &info, err);
	off_t at = 0;

	if (fd < 0)
		return -err->number;
	if (get->most && (uint64_t)info.st_size > get->most)
		return refuse(err, EFBIG, "file %s: larger than %llu bytes", get->name,
			      (unsigned long long)get->most);
	while (at < info.st_size) {
		ssize_t r = sendfile(get->fd, fd, &at, MIB);

		if (r < 0 && errno != EINTR)
			return fail(err, errno, "file %s: write", get->name);
		if (r == 0)
			break;
	}
	return 0;
}

int execpy_session_get(struct execpy_engine *engine, const char *id, const char *name, int fd,
		       struct execpy_error *error)
{
	struct workspace_get get = {.name = name, .fd = fd};
	struct hold hold = {.use = workspace_get, .user = &get};
	int r = request_check_name(name, (struct error *)error);

	return r < 0 ? r : session_hold(engine, id, &hold, (struct error *)error);
}

int workspace_delete(void *user, int workspace, const struct deadline *deadline, struct error *err)
{
	char part[NAME_MAX + 1];
	autofd parent = open_parent(workspace, user, part, err);

	if (parent < 0)
		return -err->number;
	if (unlinkat(parent, part, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return fail(err, errno, "file %s", (const char *)user);
	return unlinkat(parent, part, AT_REMOVEDIR) < 0
		       ? fail(err, errno, "directory %s", (const char *)user)
		       : 0;
}

int execpy_session_delete(struct execpy_engine *engine, const char *id, const char *name,
			  struct execpy_error *error)
{
	struct hold hold = {.use = workspace_delete, .user = (void *)name, .changes = true};
	int r = request_check_name(name, (struct error *)error);

	return r < 0 ? r : session_hold(engine, id, &hold, (struct error *)error);
}

static int use_rename(void *user, int workspace, const struct deadline *deadline, struct error *err)
{
	const char *const *names = user;
	char from[NAME_MAX + 1], to[NAME_MAX + 1];
	autofd from_parent = open_parent(workspace, names[0], from, err);
	autofd to_parent = from_parent < 0 ? -1 : open_parent(workspace, names[1], to, err);

	if (to_parent < 0)
		return -err->number;
	return renameat2(from_parent, from, to_parent, to, RENAME_NOREPLACE) < 0
		       ? fail(err, errno, "rename %s to %s", names[0], names[1])
		       : 0;
}

int execpy_session_rename(struct execpy_engine *engine, const char *id, const char *from,
			  const char *to, struct execpy_error *error)
{
	const char *names[2] = {from, to};
	struct hold hold = {.use = use_rename, .user = names, .changes = true};
	int r = request_check_name(from, (struct error *)error);

	if (r == 0)
		r = request_check_name(to, (struct error *)error);
	return r < 0 ? r : session_hold(engine, id, &hold, (struct error *)error);
}
