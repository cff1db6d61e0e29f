/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: see transfer.h.
 *
 * A record for each entry, a directory before what is in it: its name, what a link
 * says, and of a file its pieces, so that holes stay holes. The end of a directory is a
 * record of its own, which brings the rights and times that it had. The receiver thus
 * always stands in one directory, and every name is a single one in it.
 *
 * Both ends are judges, but the entries are user code's: everything is opened in its
 * directory, never through a link, and what is not told here is not made. */
#include "guest/transfer.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum record_kind { RECORD_END = 1, RECORD_FILE, RECORD_DIRECTORY, RECORD_LINK, RECORD_FIFO };

struct record {
	uint32_t kind, mode;
	uint32_t name_length, link_length;
	uint64_t size;
	struct timespec times[2];
};

/* Of a file: the last one is at its end, and empty. */
struct piece {
	uint64_t at, length;
};

/* --- sending ------------------------------------------------------------------ */

int transfer_put(int out, const void *data, size_t length, struct error *err)
{
	const uint8_t *at = data;

	while (length > 0) {
		ssize_t r = write(out, at, length);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return fail(err, errno, "branch: send files");
		at += r;
		length -= (size_t)r;
	}
	return 0;
}

static int put_record(int out, enum record_kind kind, const struct stat *info, const char *name,
		      const char *link, struct error *err)
{
	struct record record = {
		.kind = kind,
		.mode = info->st_mode & 07777,
		.name_length = (uint32_t)strlen(name),
		.link_length = (uint32_t)strlen(link),
		.size = (uint64_t)info->st_size,
		.times = {info->st_atim, info->st_mtim},
	};
	int r = transfer_put(out, &record, sizeof record, err);

	if (r == 0)
		r = transfer_put(out, name, record.name_length, err);
	return r == 0 ? transfer_put(out, link, record.link_length, err) : r;
}

/* Exactly so many bytes, whatever a child that a run left does to the file. */
static int put_piece(int out, int fd, off_t at, uint64_t length, struct error *err)
{
	struct piece piece = {(uint64_t)at, length};
	int r = transfer_put(out, &piece, sizeof piece, err);

	while (r == 0 && length > 0) {
		ssize_t sent = sendfile(out, fd, &at, length > MIB ? MIB : (size_t)length);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return sent < 0 ? fail(err, errno, "branch: send a file")
					: refuse(err, EAGAIN, "a file changed meanwhile");
		length -= (uint64_t)sent;
	}
	return r;
}

static int put_content(int out, int fd, const struct stat *info, struct error *err)
{
	off_t at = 0;
	int r = 0;

	while (r == 0 && at < info->st_size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 || data >= info->st_size)
			break; /* the rest is a hole */
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole > info->st_size)
			hole = info->st_size;
		r = put_piece(out, fd, data, (uint64_t)(hole - data), err);
		at = hole;
	}
	return r == 0 ? put_piece(out, fd, info->st_size, 0, err) : r;
}

static int send_directory(int out, int parent, const char *name, unsigned depth, struct error *err);

static int send_file(int out, int parent, const char *name, struct error *err)
{
	autofd fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat info;
	int r;

	if (fd < 0 || fstat(fd, &info) < 0)
		return fail(err, errno, "the file %.100s cannot be read", name);
	if (!S_ISREG(info.st_mode))
		return refuse(err, EAGAIN, "the file %.100s changed meanwhile", name);
	r = put_record(out, RECORD_FILE, &info, name, "", err);
	return r == 0 ? put_content(out, fd, &info, err) : r;
}

static int send_entry(int out, int parent, const char *name, unsigned depth, struct error *err)
{
	char link[PATH_MAX] = "";
	struct stat info;

	if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* it went meanwhile */
	if (S_ISREG(info.st_mode))
		return send_file(out, parent, name, err);
	if (S_ISFIFO(info.st_mode))
		return put_record(out, RECORD_FIFO, &info, name, "", err);
	if (S_ISLNK(info.st_mode)) {
		ssize_t length = readlinkat(parent, name, link, sizeof link - 1);

		link[length > 0 ? length : 0] = '\0';
		return put_record(out, RECORD_LINK, &info, name, link, err);
	}
	if (!S_ISDIR(info.st_mode))
		return 0; /* a socket */
	if (depth >= FILE_DEPTH_MAX)
		return refuse(err, ELOOP, "the directory %.100s is nested too deep", name);
	return send_directory(out, parent, name, depth, err);
}

static int send_directory(int out, int parent, const char *name, unsigned depth, struct error *err)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat info;
	int r;

	if (!directory || fstat(fd, &info) < 0) {
		r = fail(err, errno, "the directory %.100s cannot be read", name);
		if (directory)
			closedir(directory);
		else if (fd >= 0)
			close(fd);
		return r;
	}
	r = depth > 0 ? put_record(out, RECORD_DIRECTORY, &info, name, "", err) : 0;
	while (r == 0 && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = send_entry(out, fd, entry->d_name, depth + 1, err);
	closedir(directory);
	return r == 0 ? put_record(out, RECORD_END, &info, "", "", err) : r;
}

int transfer_send(const char *directory, int out, struct error *err)
{
	return send_directory(out, AT_FDCWD, directory, 0, err);
}

/* --- receiving ------------------------------------------------------------------ */

int transfer_get(int in, void *data, size_t length, struct error *err)
{
	uint8_t *at = data;

	while (length > 0) {
		ssize_t r = read(in, at, length);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? fail(err, errno, "branch: receive files")
				     : refuse(err, EPIPE, "branch: the files ended too early");
		at += r;
		length -= (size_t)r;
	}
	return 0;
}

static int get_content(int in, int fd, uint64_t size, struct error *err)
{
	struct piece piece;
	int r;

	while ((r = transfer_get(in, &piece, sizeof piece, err)) == 0 && piece.length > 0) {
		off_t at = (off_t)piece.at;

		while (piece.length > 0) {
			ssize_t moved = splice(in, NULL, fd, &at,
					       piece.length > MIB ? MIB : (size_t)piece.length, 0);

			if (moved < 0 && errno == EINTR)
				continue;
			if (moved <= 0)
				return fail(err, moved < 0 ? errno : EPIPE, "branch: write a file");
			piece.length -= (uint64_t)moved;
		}
	}
	if (r == 0 && ftruncate(fd, (off_t)size) < 0)
		r = fail(err, errno, "branch: write a file");
	return r;
}

static int make_file(int in, int parent, const struct record *record, const char *name,
		     struct error *err)
{
	autofd fd =
		openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return fail(err, errno, "branch: make %.100s", name);
	r = get_content(in, fd, record->size, err);
	if (r == 0 && (fchmod(fd, record->mode) < 0 || futimens(fd, record->times) < 0))
		r = fail(err, errno, "branch: %.100s", name);
	return r;
}

static int receive_entry(int in, int parent, const struct record *record, unsigned depth,
			 struct error *err);

/* Entries until the end of the directory that is open there, which is then as it was. */
static int receive_directory(int in, int fd, unsigned depth, struct error *err)
{
	struct record record;
	int r;

	while ((r = transfer_get(in, &record, sizeof record, err)) == 0 &&
	       record.kind != RECORD_END)
		if ((r = receive_entry(in, fd, &record, depth + 1, err)) < 0)
			return r;
	if (r == 0 && (fchmod(fd, record.mode) < 0 || futimens(fd, record.times) < 0))
		r = fail(err, errno, "branch: rights of a directory");
	return r;
}

static int make_directory(int in, int parent, const char *name, unsigned depth, struct error *err)
{
	autofd fd = -1;

	/* Some are there from the beginning. */
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return fail(err, errno, "branch: make %.100s", name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? fail(err, errno, "branch: open %.100s", name)
		      : receive_directory(in, fd, depth, err);
}

static int receive_entry(int in, int parent, const struct record *record, unsigned depth,
			 struct error *err)
{
	char name[NAME_MAX + 1], link[PATH_MAX];
	int r = 0;

	if (record->name_length == 0 || record->name_length >= sizeof name ||
	    record->link_length >= sizeof link || depth > FILE_DEPTH_MAX + 1)
		return refuse(err, EBADMSG, "branch: a file is not as it should be");
	r = transfer_get(in, name, record->name_length, err);
	if (r == 0)
		r = transfer_get(in, link, record->link_length, err);
	if (r < 0)
		return r;
	name[record->name_length] = link[record->link_length] = '\0';
	switch (record->kind) {
	case RECORD_FILE:
		return make_file(in, parent, record, name, err);
	case RECORD_DIRECTORY:
		return make_directory(in, parent, name, depth, err);
	case RECORD_LINK:
		r = symlinkat(link, parent, name);
		break;
	case RECORD_FIFO:
		r = mkfifoat(parent, name, record->mode);
		break;
	default:
		return refuse(err, EBADMSG, "branch: a file is not as it should be");
	}
	return r < 0 ? fail(err, errno, "branch: make %.100s", name) : 0;
}

int transfer_receive(const char *directory, int in, struct error *err)
{
	autofd fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? fail(err, errno, "branch: open %s", directory)
		      : receive_directory(in, fd, 0, err);
}
