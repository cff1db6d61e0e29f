/* SPDX-License-Identifier: Apache-2.0 */
/* collect: what a run left in its workspace.
 *
 * Theory of operation. Nothing of the cell can act any more, so the tree stands
 * still. It is nevertheless hostile: links to anywhere, FIFOs that would hang
 * an open, sparse giants, ten thousand levels. So it is walked without
 * recursion and within bounds, each entry by name beneath its directory's
 * descriptor and never by a path: openat2 may not leave the tree, follow a
 * link or cross a mount. A regular file with one name is opened for reading
 * and handed on; everything else is named with the reason why it was refused. Nothing is ever
 * removed, chowned or chmoded: the tmpfs goes away as a whole. */
#include "engine/collect.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct level {
	DIR *directory;
	size_t name_length; /* of the path up to here */
};

struct walk {
	const struct collector *collector;
	struct workspace_identity own;
	struct level levels[FILE_DEPTH_MAX];
	size_t depth;
	char path[FILE_NAME_BYTES_MAX + 1];
	unsigned entries, files;
	uint64_t bytes;  /* of the files so far, with their holes */
	const char *cut; /* why the walk was ended early */
};

int workspace_open(int directory, const char *name, uint64_t flags)
{
	struct open_how how = {
		.flags = flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};

	return (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
}

struct workspace_identity workspace_enter(int workspace)
{
	struct workspace_identity own = {.uid = geteuid(), .gid = getegid()};
	struct stat info;

	if (own.uid != 0 || fstat(workspace, &info) < 0)
		return own;
	own.changed = true;
	setfsgid(info.st_gid);
	setfsuid(info.st_uid);
	return own;
}

void workspace_leave(const struct workspace_identity *identity)
{
	if (!identity->changed)
		return;
	setfsuid(identity->uid);
	setfsgid(identity->gid);
}

static void say_file(struct walk *walk, uint64_t size, int fd, const char *reason)
{
	const struct collector *collector = walk->collector;

	walk->files++;
	/* What is done with it is done with the caller's rights. */
	workspace_leave(&walk->own);
	collector->add(collector->user, walk->path, size, fd, reason);
	walk->own = workspace_enter(collector->workspace);
}

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "is a symbolic link";
	case S_IFIFO:
		return "is a FIFO";
	case S_IFSOCK:
		return "is a socket";
	case S_IFBLK:
	case S_IFCHR:
		return "is a device";
	default:
		return "is not a regular file";
	}
}

static void visit_file(struct walk *walk, int directory, const char *name)
{
	struct stat info;
	autofd fd = -1;

	/* Only to name what is refused; what counts is the fstat below. */
	if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
		say_file(walk, 0, -1, "cannot be looked at");
		return;
	}
	if (!S_ISREG(info.st_mode)) {
		say_file(walk, 0, -1, kind_name(info.st_mode));
		return;
	}
	fd = workspace_open(directory, name, 0);
	/* Holes take no room, but time to read and memory to return. */
	if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
		say_file(walk, 0, -1, errno == EACCES ? "is not readable" : "cannot be opened");
	else if (info.st_nlink != 1)
		say_file(walk, (uint64_t)info.st_size, -1, "has more than one name");
	else if ((uint64_t)info.st_size > walk->collector->disk_bytes)
		say_file(walk, (uint64_t)info.st_size, -1, "is sparse: larger than the disk limit");
	else if ((uint64_t)info.st_size > walk->collector->disk_bytes - walk->bytes)
		say_file(walk, (uint64_t)info.st_size, -1,
			 "is sparse: with those before it larger than the disk limit");
	else {
		walk->bytes += (uint64_t)info.st_size;
		say_file(walk, (uint64_t)info.st_size, fd, NULL);
	}
}

/* Enters a directory: 1 when entered, 0 when refused (and said). */
static int enter(struct walk *walk, int parent, const char *name, size_t length)
{
	int fd;

	if (walk->depth == FILE_DEPTH_MAX) {
		say_file(walk, 0, -1, "is a directory too deep to follow");
		return 0;
	}
	fd = workspace_open(parent, name, O_DIRECTORY);
	if (fd < 0) {
		if (walk->depth == 0)
			return 0; /* the workspace itself: the caller says so */
		say_file(walk, 0, -1,
			 errno == EACCES ? "is a directory that is not readable"
					 : "is a directory that cannot be opened");
		return 0;
	}
	walk->levels[walk->depth].directory = fdopendir(fd);
	if (!walk->levels[walk->depth].directory) {
		close(fd);
		return 0;
	}
	walk->levels[walk->depth++].name_length = length;
	return 1;
}

static bool over_bounds(struct walk *walk)
{
	if (walk->entries++ >= COLLECT_ENTRIES_MAX)
		walk->cut = "more entries than are looked at";
	else if (walk->files >= COLLECT_FILES_MAX)
		walk->cut = "more files than are listed";
	else if (deadline_is_over(walk->collector->deadline))
		walk->cut = "listing took too long";
	return walk->cut != NULL;
}

static void visit(struct walk *walk, struct level *level, const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), base = level->name_length;
	int directory = dirfd(level->directory);
	struct stat info;

	if (base + length + 2 > sizeof walk->path) {
		/* Told by its directory's name; not by what was visited before. */
		walk->path[base] = '\0';
		say_file(walk, 0, -1, "holds a path that is too long");
		return;
	}
	if (base > 0)
		walk->path[base++] = '/';
	memcpy(walk->path + base, entry->d_name, length + 1);
	if (fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(info.st_mode))
		enter(walk, directory, entry->d_name, base + length);
	else
		visit_file(walk, directory, entry->d_name);
}

const char *collect_workspace(const struct collector *collector)
{
	struct walk walk = {
		.collector = collector,
	};

	walk.own = workspace_enter(collector->workspace);
	/* The root itself: without it there is nothing to name. */
	if (collector->workspace < 0 || !enter(&walk, collector->workspace, ".", 0))
		walk.cut = "the workspace cannot be opened";
	while (walk.depth > 0) {
		struct level *level = &walk.levels[walk.depth - 1];
		struct dirent *entry = readdir(level->directory);

		if (!entry || walk.cut) {
			closedir(level->directory);
			walk.depth--;
		} else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			   !over_bounds(&walk)) {
			visit(&walk, level, entry);
		}
	}
	workspace_leave(&walk.own);
	return walk.cut;
}
