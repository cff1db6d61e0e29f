/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: see snapshot.h.
 *
 * Entries are kept in the order of the walk, a directory before what is in it; the
 * contents of all files lie one behind the other in a memfd. A file that has the
 * same inode, size and time of change as before has the same content: that time
 * cannot be set. Not so one that is written through a map of it, which changes no
 * time: the caller knows of those, and restoring compares contents. Everything is
 * opened beneath the directory, never through a link. */
#include "guest/snapshot.h"

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Code may have made its directories as deep as a path is long. */
#define RESTORE_DEPTH_MAX 1000

struct entry {
	char *path; /* from the directory on */
	char *link; /* what a symbolic link says, else NULL */
	struct stat info;
	off_t at; /* of a file's content */
};

struct snapshot {
	unsigned references;
	struct entry *entries;
	size_t count, room;
	int contents;
	uint64_t bytes;
};

struct walk {
	struct snapshot *snapshot;
	const struct snapshot_bounds *bounds;
	const char *refused;
};

struct snapshot *snapshot_share(struct snapshot *snapshot)
{
	if (snapshot)
		snapshot->references++;
	return snapshot;
}

uint64_t snapshot_bytes(const struct snapshot *snapshot)
{
	return snapshot ? snapshot->bytes : 0;
}

void snapshot_release(struct snapshot *snapshot)
{
	if (!snapshot || --snapshot->references > 0)
		return;
	for (size_t i = 0; i < snapshot->count; i++) {
		free(snapshot->entries[i].path);
		free(snapshot->entries[i].link);
	}
	free(snapshot->entries);
	close_fd(&snapshot->contents);
	free(snapshot);
}

/* --- taking ----------------------------------------------------------------- */

static struct entry *add(struct walk *walk, const char *path, const struct stat *info)
{
	struct snapshot *snapshot = walk->snapshot;

	if (snapshot->count == walk->bounds->entries) {
		walk->refused = "the workspace holds too many files to be kept";
		return NULL;
	}
	if (snapshot->count == snapshot->room) {
		size_t room = snapshot->room ? 2 * snapshot->room : 16;
		struct entry *grown = realloc(snapshot->entries, room * sizeof *grown);

		if (!grown) {
			walk->refused = "no memory is left to keep the workspace";
			return NULL;
		}
		snapshot->entries = grown;
		snapshot->room = room;
	}
	snapshot->entries[snapshot->count] = (struct entry){.path = strdup(path), .info = *info};
	if (!snapshot->entries[snapshot->count].path) {
		walk->refused = "no memory is left to keep the workspace";
		return NULL;
	}
	return &snapshot->entries[snapshot->count++];
}

static void list(struct walk *walk, int parent, const char *name, const char *path, unsigned depth);

static void list_one(struct walk *walk, int directory, const char *name, const char *path,
		     unsigned depth)
{
	struct entry *entry;
	struct stat info;
	char text[PATH_MAX];
	ssize_t length;

	if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) && !S_ISLNK(info.st_mode))
		return;
	entry = add(walk, path, &info);
	if (!entry)
		return;
	if (S_ISLNK(info.st_mode)) {
		length = readlinkat(directory, name, text, sizeof text - 1);
		text[length > 0 ? length : 0] = '\0';
		entry->link = strdup(text);
	} else if (S_ISDIR(info.st_mode)) {
		list(walk, directory, name, path, depth + 1);
	} else {
		/* A sparse file counts with its holes: they are copied, too. */
		walk->snapshot->bytes += (uint64_t)info.st_size;
		if (walk->snapshot->bytes > walk->bounds->bytes)
			walk->refused = "the workspace is too large to be kept";
	}
}

static void list(struct walk *walk, int parent, const char *name, const char *path, unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!directory || depth > FILE_DEPTH_MAX) {
		walk->refused = "the workspace holds a directory that cannot be read";
		if (directory)
			closedir(directory);
		else if (fd >= 0)
			close(fd);
		return;
	}
	while (!walk->refused && (entry = readdir(directory))) {
		char below[PATH_MAX];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "/" : "",
			     entry->d_name) >= (int)sizeof below)
			walk->refused = "the workspace holds a path that is too long";
		else
			list_one(walk, fd, entry->d_name, below, depth);
	}
	closedir(directory);
}

static bool same(const struct stat *one, const struct stat *other)
{
	return one->st_ino == other->st_ino && one->st_mode == other->st_mode &&
	       one->st_size == other->st_size && one->st_ctim.tv_sec == other->st_ctim.tv_sec &&
	       one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

static bool unchanged(const struct snapshot *now, const struct snapshot *before)
{
	if (!before || now->count != before->count)
		return false;
	for (size_t i = 0; i < now->count; i++)
		if (strcmp(now->entries[i].path, before->entries[i].path) != 0 ||
		    !same(&now->entries[i].info, &before->entries[i].info))
			return false;
	return true;
}

/* Opens the directory of `path` beneath another, and finds its last part. */
static int open_parent(int directory, const char *path, const char **ret_name)
{
	char part[NAME_MAX + 1];
	const char *slash;
	int fd = fcntl(directory, F_DUPFD_CLOEXEC, 3);

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		int next;

		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = next;
		path = slash + 1;
	}
	*ret_name = path;
	return fd;
}

static int copy(int from, off_t from_at, int to, uint64_t size)
{
	while (size > 0) {
		ssize_t r = sendfile(to, from, &from_at, size > MIB ? MIB : (size_t)size);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break; /* it was cut meanwhile */
		size -= (uint64_t)r;
	}
	return 0;
}

static bool keep_contents(struct walk *walk, int directory)
{
	struct snapshot *snapshot = walk->snapshot;
	off_t at = 0;

	snapshot->contents = memfd_create("execpy-snapshot", MFD_CLOEXEC);
	for (size_t i = 0; i < snapshot->count && snapshot->contents >= 0; i++) {
		struct entry *entry = &snapshot->entries[i];
		const char *name;
		autofd parent = -1, fd = -1;

		if (!S_ISREG(entry->info.st_mode))
			continue;
		parent = open_parent(directory, entry->path, &name);
		fd = parent < 0
			     ? -1
			     : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		entry->at = at;
		if (fd < 0 || lseek(snapshot->contents, at, SEEK_SET) < 0 ||
		    copy(fd, 0, snapshot->contents, (uint64_t)entry->info.st_size) < 0) {
			walk->refused = "the workspace holds a file that cannot be read";
			return false;
		}
		at += entry->info.st_size;
	}
	return snapshot->contents >= 0;
}

struct snapshot *snapshot_take(int directory, const struct snapshot_bounds *bounds,
			       struct snapshot *before, const char **ret_refused)
{
	struct walk walk = {.snapshot = calloc(1, sizeof *walk.snapshot), .bounds = bounds};

	*ret_refused = "no memory is left to keep the workspace";
	if (!walk.snapshot)
		return NULL;
	walk.snapshot->references = 1;
	walk.snapshot->contents = -1;
	list(&walk, directory, ".", "", 0);
	if (!walk.refused && unchanged(walk.snapshot, before)) {
		snapshot_release(walk.snapshot);
		return snapshot_share(before);
	}
	if (!walk.refused && keep_contents(&walk, directory))
		return walk.snapshot;
	if (walk.refused)
		*ret_refused = walk.refused;
	snapshot_release(walk.snapshot);
	return NULL;
}

/* --- restoring --------------------------------------------------------------- */

static const struct entry *find(const struct snapshot *snapshot, const char *path)
{
	for (size_t i = 0; i < snapshot->count; i++)
		if (strcmp(snapshot->entries[i].path, path) == 0)
			return &snapshot->entries[i];
	return NULL;
}

static bool same_content(const struct snapshot *snapshot, const struct entry *entry, int parent,
			 const char *name)
{
	static uint8_t one[64 * KIB], other[64 * KIB];
	autofd fd = -1;

	if (!S_ISREG(entry->info.st_mode))
		return true;
	fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	for (off_t at = 0; fd >= 0 && at < entry->info.st_size;) {
		size_t left = (size_t)(entry->info.st_size - at);
		size_t wanted = left < sizeof one ? left : sizeof one;

		if (pread(fd, one, wanted, at) != (ssize_t)wanted ||
		    pread(snapshot->contents, other, wanted, entry->at + at) != (ssize_t)wanted ||
		    memcmp(one, other, wanted) != 0)
			return false;
		at += (off_t)wanted;
	}
	return fd >= 0;
}

/* Removes what is not of the snapshot, or not as it was. */
static int clean(const struct snapshot *snapshot, int parent, const char *name, const char *path,
		 unsigned depth, struct error *err)
{
	DIR *directory;
	struct dirent *item;
	int fd, r = 0;

	/* Code may have taken its own rights away. */
	if (depth > 0 && fchmodat(parent, name, 0700, 0) < 0)
		return fail(err, errno, "session: rights of %s", path);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory)
		return fail(err, errno, "session: open %s", path);
	while (r == 0 && (item = readdir(directory))) {
		char below[PATH_MAX];
		const struct entry *entry;
		struct stat info;

		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
			continue;
		if (snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "/" : "",
			     item->d_name) >= (int)sizeof below ||
		    fstatat(fd, item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
		    depth > RESTORE_DEPTH_MAX) {
			r = refuse(err, ENAMETOOLONG, "session: %.100s cannot be removed", path);
			break;
		}
		entry = find(snapshot, below);
		if (S_ISDIR(info.st_mode)) {
			r = clean(snapshot, fd, item->d_name, below, depth + 1, err);
			if (r == 0 && (!entry || !S_ISDIR(entry->info.st_mode)) &&
			    unlinkat(fd, item->d_name, AT_REMOVEDIR) < 0)
				r = fail(err, errno, "session: remove %s", below);
		} else if (!entry || !same(&entry->info, &info) ||
			   !same_content(snapshot, entry, fd, item->d_name)) {
			if (unlinkat(fd, item->d_name, 0) < 0)
				r = fail(err, errno, "session: remove %s", below);
		}
	}
	closedir(directory);
	return r;
}

static int put_back(const struct snapshot *snapshot, int directory, struct entry *entry,
		    struct error *err)
{
	const struct timespec times[2] = {entry->info.st_atim, entry->info.st_mtim};
	const char *name;
	autofd parent = open_parent(directory, entry->path, &name);
	autofd fd = -1;

	if (parent < 0)
		return fail(err, errno, "session: put back %s", entry->path);
	if (S_ISDIR(entry->info.st_mode)) {
		if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
			return fail(err, errno, "session: put back %s", entry->path);
		return 0;
	}
	if (faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0; /* as it was */
	if (entry->link)
		return symlinkat(entry->link, parent, name) < 0
			       ? fail(err, errno, "session: put back %s", entry->path)
			       : 0;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || copy(snapshot->contents, entry->at, fd, (uint64_t)entry->info.st_size) < 0 ||
	    ftruncate(fd, entry->info.st_size) < 0 || fchmod(fd, entry->info.st_mode & 07777) < 0 ||
	    futimens(fd, times) < 0)
		return fail(err, errno, "session: put back %s", entry->path);
	/* From now on this is the file as it was kept. */
	return fstat(fd, &entry->info) < 0 ? fail(err, errno, "session: %s", entry->path) : 0;
}

int snapshot_restore(int directory, const struct snapshot *snapshot, struct error *err)
{
	int r = fchmod(directory, 0700) < 0 ? fail(err, errno, "session: rights of the workspace")
					    : clean(snapshot, directory, ".", "", 0, err);

	for (size_t i = 0; i < snapshot->count && r == 0; i++)
		r = put_back(snapshot, directory, &snapshot->entries[i], err);
	/* Rights of directories last, and innermost first. */
	for (size_t i = snapshot->count; i-- > 0 && r == 0;) {
		const struct entry *entry = &snapshot->entries[i];
		const char *name;
		autofd parent = -1;

		if (!S_ISDIR(entry->info.st_mode))
			continue;
		parent = open_parent(directory, entry->path, &name);
		if (parent < 0 || fchmodat(parent, name, entry->info.st_mode & 07777, 0) < 0)
			r = fail(err, errno, "session: rights of %s", entry->path);
	}
	return r;
}
