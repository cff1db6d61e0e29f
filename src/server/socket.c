/* SPDX-License-Identifier: Apache-2.0 */
/* socket: see socket.h.
 *
 * The lock is a file that this process holds with flock(): it goes with the
 * process however that ends, so a socket without a locked file beside it is a
 * dead daemon's. It is removed at the end while it is still held; whoever waits
 * to open it looks whether the name still leads to what he locked. */
#include "server/socket.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int place_default(char ret_path[SOCKET_PATH_MAX], struct error *err)
{
	const char *named = getenv("EXECPY_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");
	char path[4096];

	if (named && named[0])
		snprintf(path, sizeof path, "%s", named);
	else if (runtime && runtime[0] == '/')
		snprintf(path, sizeof path, "%s/execpy.sock", runtime);
	else if (geteuid() == 0)
		snprintf(path, sizeof path, "/run/execpy.sock");
	else
		return refuse(err, ENOENT,
			      "XDG_RUNTIME_DIR names no directory for the socket: say where with "
			      "--socket PATH");
	if (strlen(path) >= SOCKET_PATH_MAX)
		return refuse(err, ENAMETOOLONG, "socket %.60s…: longer than %d bytes", path,
			      SOCKET_PATH_MAX - 1);
	memcpy(ret_path, path, strlen(path) + 1);
	return 0;
}

/* Nobody else may put another socket in the place of this one. */
static int check_directory(struct place *place, struct error *err)
{
	const char *slash = strrchr(place->path, '/');
	char directory[SOCKET_PATH_MAX] = ".";
	struct stat status;

	place->name = slash ? slash + 1 : place->path;
	if (slash)
		snprintf(directory, sizeof directory, "%.*s",
			 slash == place->path ? 1 : (int)(slash - place->path), place->path);
	if (!place->name[0])
		return refuse(err, EINVAL, "socket %s: is a directory", place->path);
	place->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place->directory < 0 || fstat(place->directory, &status) < 0)
		return fail(err, errno, "socket %s: directory %s", place->path, directory);
	if (status.st_uid != geteuid() && status.st_uid != 0)
		return refuse(err, EPERM, "socket %s: directory %s belongs to user %u", place->path,
			      directory, (unsigned)status.st_uid);
	if ((status.st_mode & (S_IWGRP | S_IWOTH)) && !(status.st_mode & S_ISVTX))
		return refuse(err, EPERM, "socket %s: others may write in directory %s",
			      place->path, directory);
	return 0;
}

static int busy(struct place *place, int lock, struct error *err)
{
	char pid[16] = "";
	ssize_t length = pread(lock, pid, sizeof pid - 1, 0);

	pid[length > 0 ? length : 0] = '\0';
	pid[strspn(pid, "0123456789")] = '\0';
	return refuse(err, EBUSY, "socket %s: a daemon serves there already%s%s", place->path,
		      pid[0] ? ", process " : "", pid);
}

/* One try; 1 when the file was removed by its last holder meanwhile. */
static int try_lock(struct place *place, struct error *err)
{
	struct stat held, named;
	autofd lock =
		openat(place->directory, place->lock_name,
		       O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

	if (lock < 0 || fstat(lock, &held) < 0)
		return fail(err, errno, "socket %s: lock file %s", place->path, place->lock_name);
	if (!S_ISREG(held.st_mode) || held.st_uid != geteuid())
		return refuse(err, EPERM, "socket %s: the lock file %s is not this user's",
			      place->path, place->lock_name);
	if (flock(lock, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? busy(place, lock, err)
					    : fail(err, errno, "socket %s: lock %s", place->path,
						   place->lock_name);
	if (fstatat(place->directory, place->lock_name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    named.st_ino != held.st_ino || named.st_dev != held.st_dev)
		return 1;
	if (ftruncate(lock, 0) < 0 || dprintf(lock, "%d\n", (int)getpid()) < 0)
		return fail(err, errno, "socket %s: write %s", place->path, place->lock_name);
	place->lock = take_fd(&lock);
	return 0;
}

int place_take(struct place *place, const char *path, struct error *err)
{
	int r;

	*place = (struct place){.directory = -1, .lock = -1, .listener = -1};
	if (!path[0] || strlen(path) >= sizeof place->path)
		return refuse(err, ENAMETOOLONG, "socket \"%.60s\": 1 to %zu bytes are possible",
			      path, sizeof place->path - 1);
	snprintf(place->path, sizeof place->path, "%s", path);
	r = check_directory(place, err);
	if (r < 0)
		return r;
	snprintf(place->lock_name, sizeof place->lock_name, "%s.lock", place->name);
	while ((r = try_lock(place, err)) == 1)
		;
	return r;
}

static void address_of(const struct place *place, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret_address->sun_path, sizeof ret_address->sun_path, "%s", place->path);
}

/* What stands where the socket shall be: only a dead daemon's is removed. */
static int clear_way(struct place *place, struct error *err)
{
	struct sockaddr_un address;
	struct stat status;
	autofd probe = -1;

	if (fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(err, errno, "socket %s", place->path);
	if (!S_ISSOCK(status.st_mode))
		return refuse(err, EEXIST, "socket %s: is there and is no socket", place->path);
	if (status.st_uid != geteuid())
		return refuse(err, EPERM, "socket %s: belongs to user %u", place->path,
			      (unsigned)status.st_uid);
	probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return fail(err, errno, "socket");
	address_of(place, &address);
	/* The wrong type, or a full backlog, is somebody as well. */
	if (connect(probe, (struct sockaddr *)&address, sizeof address) == 0 ||
	    errno != ECONNREFUSED)
		return refuse(err, EADDRINUSE, "socket %s: somebody listens there already",
			      place->path);
	if (unlinkat(place->directory, place->name, 0) < 0 && errno != ENOENT)
		return fail(err, errno, "socket %s: remove a dead daemon's", place->path);
	return 0;
}

int place_listen(struct place *place, int type, struct error *err)
{
	struct sockaddr_un address;
	struct stat status;
	mode_t before;
	int r = clear_way(place, err);

	if (r < 0)
		return r;
	place->listener = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (place->listener < 0)
		return fail(err, errno, "socket");
	address_of(place, &address);
	before = umask(0177);
	r = bind(place->listener, (struct sockaddr *)&address, sizeof address);
	umask(before);
	if (r < 0)
		return fail(err, errno, "socket %s: bind", place->path);
	if (fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(err, errno, "socket %s", place->path);
	place->device = status.st_dev;
	place->inode = status.st_ino;
	if (!S_ISSOCK(status.st_mode) || (status.st_mode & 0777) != 0600 ||
	    status.st_uid != geteuid())
		return refuse(err, EPERM, "socket %s: is not as it was made", place->path);
	if (listen(place->listener, SOMAXCONN) < 0)
		return fail(err, errno, "socket %s: listen", place->path);
	return 0;
}

void place_close(struct place *place)
{
	struct stat status;

	if (place->inode &&
	    fstatat(place->directory, place->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	    status.st_ino == place->inode && status.st_dev == place->device)
		(void)unlinkat(place->directory, place->name, 0);
	place->inode = 0;
	close_fd(&place->listener);
}

void place_leave(struct place *place)
{
	place_close(place);
	if (place->lock >= 0)
		(void)unlinkat(place->directory, place->lock_name, 0);
	close_fd(&place->lock);
	close_fd(&place->directory);
}
