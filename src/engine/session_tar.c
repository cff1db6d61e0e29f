/* SPDX-License-Identifier: Apache-2.0 */
/* session_tar: a workspace as an archive, out and in, by libarchive.
 *
 * Only its tar code is used: nothing of it looks for another format, a filter or a
 * disk, and what it names is checked as any other name before it is made. */
#include "engine/engine.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/collect.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (64 * KIB)

/* An archive's names are UTF-8, whatever the caller's locale is: for libarchive they
 * are what the locale of the thread says. Names that are not stay as they are, of
 * which it warns. */
static locale_t begin_utf8(void)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	return utf8 ? uselocale(utf8) : (locale_t)0;
}

static void end_utf8(locale_t before)
{
	locale_t utf8 = before ? uselocale(before) : (locale_t)0;

	if (utf8)
		freelocale(utf8);
}

static int archive_failed(struct archive *archive, const char *what, struct error *err)
{
	const char *why = archive_error_string(archive);
	int number = archive_errno(archive);

	return refuse(err, number > 0 && number < 4096 ? number : EINVAL, "%s: %s", what,
		      why ? why : "it failed");
}

/* --- out -------------------------------------------------------------------------- */

struct out {
	struct archive *archive;
	int workspace;
	struct error *err;
	int r;
	uint64_t left; /* bytes: holes take no room in the workspace, but here */
	const struct deadline *deadline;
};

static int write_content(struct out *out, int fd, uint64_t size, const char *name)
{
	uint8_t piece[PIECE_BYTES];
	uint64_t at = 0;

	while (at < size) {
		size_t wanted = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
		ssize_t r;

		if (deadline_is_over(out->deadline))
			return refuse(out->err, E2BIG, "archive: it took too long");
		r = pread(fd, piece, wanted, (off_t)at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return fail(out->err, r < 0 ? errno : EIO, "file %s", name);
		if (archive_write_data(out->archive, piece, (size_t)r) < 0)
			return archive_failed(out->archive, "archive", out->err);
		at += (uint64_t)r;
	}
	return 0;
}

static void write_file(void *user, const char *path, uint64_t size, int fd, const char *reason)
{
	struct archive_entry *entry;
	struct out *out = user;
	struct stat info;

	/* What is refused is not handed out this way, either. */
	if (out->r < 0 || reason || fd < 0 || fstat(fd, &info) < 0)
		return;
	if (size > out->left) {
		out->r = refuse(out->err, EFBIG, "archive: the workspace is larger than %llu bytes",
				(unsigned long long)TAR_BYTES_MAX);
		return;
	}
	out->left -= size;
	entry = archive_entry_new();
	if (!entry) {
		out->r = fail(out->err, ENOMEM, "archive");
		return;
	}
	archive_entry_set_pathname(entry, path);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, info.st_mode & 0755);
	archive_entry_set_size(entry, (int64_t)size);
	archive_entry_set_mtime(entry, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
	out->r = archive_write_header(out->archive, entry) >= ARCHIVE_WARN
			 ? write_content(out, fd, size, path)
			 : archive_failed(out->archive, "archive", out->err);
	archive_entry_free(entry);
}

static int write_workspace(struct out *out, int workspace, struct error *err)
{
	const struct collector collector = {
		.workspace = workspace,
		.disk_bytes = UINT64_MAX,
		.deadline = out->deadline,
		.add = write_file,
		.user = out,
	};
	const char *cut;

	out->err = err;
	out->left = TAR_BYTES_MAX;
	cut = collect_workspace(&collector);
	if (out->r == 0 && cut)
		out->r = refuse(err, E2BIG, "archive: %s", cut);
	return out->r;
}

int workspace_tar_out(void *fd, int workspace, const struct deadline *deadline, struct error *err)
{
	struct out out = {.archive = archive_write_new(), .deadline = deadline};
	locale_t before = begin_utf8();
	int r = -ENOMEM;

	if (!out.archive)
		fail(err, ENOMEM, "archive");
	else if (archive_write_set_format_pax_restricted(out.archive) != ARCHIVE_OK ||
		 archive_write_add_filter_none(out.archive) != ARCHIVE_OK ||
		 archive_write_open_fd(out.archive, *(const int *)fd) != ARCHIVE_OK)
		r = archive_failed(out.archive, "archive", err);
	else
		r = write_workspace(&out, workspace, err);
	if (r == 0 && archive_write_close(out.archive) != ARCHIVE_OK)
		r = archive_failed(out.archive, "archive", err);
	archive_write_free(out.archive);
	end_utf8(before);
	return r;
}

int execpy_session_tar_out(struct execpy_engine *engine, const char *id, int fd,
			   struct execpy_error *error)
{
	struct hold hold = {.use = workspace_tar_out, .user = &fd};

	return session_hold(engine, id, &hold, (struct error *)error);
}

/* --- in ---------------------------------------------------------------------------- */

/* As archivers write them: "./a/" is "a". The workspace itself is "". */
static int plain_name(const char *given, char name[FILE_NAME_BYTES_MAX + 1], struct error *err)
{
	size_t length;

	while (strncmp(given, "./", 2) == 0)
		given += 2;
	length = strlen(given);
	while (length > 0 && given[length - 1] == '/')
		length--;
	if (length > FILE_NAME_BYTES_MAX)
		return refuse(err, ENAMETOOLONG, "archive: %.100s…: its name is too long", given);
	memcpy(name, given, length);
	name[length] = '\0';
	if (!length || strcmp(name, ".") == 0) {
		name[0] = '\0';
		return 0;
	}
	return request_check_name(name, err);
}

static int read_content(struct archive *archive, int fd, const char *name,
			const struct deadline *deadline, struct error *err)
{
	uint8_t piece[PIECE_BYTES];
	la_ssize_t r;

	while ((r = archive_read_data(archive, piece, sizeof piece)) > 0) {
		if (deadline_is_over(deadline))
			return refuse(err, E2BIG, "archive: it took too long");
		for (la_ssize_t done = 0; done < r;) {
			ssize_t w = write(fd, piece + done, (size_t)(r - done));

			if (w < 0 && errno != EINTR)
				return fail(err, errno, "archive: %s", name);
			if (w > 0)
				done += w;
		}
	}
	return r < 0 ? archive_failed(archive, "archive", err) : 0;
}

/* Makes the directories on the way to `name`, which is one itself when `all`. */
static int make_way(int workspace, const char *name, bool all, struct error *err)
{
	char path[FILE_NAME_BYTES_MAX + 1];

	for (size_t i = 0;; i++) {
		const char *slash;
		autofd parent = -1, made = -1;

		if (name[i] != '/' && (name[i] || !all)) {
			if (!name[i])
				return 0;
			path[i] = name[i];
			continue;
		}
		path[i] = '\0';
		slash = strrchr(path, '/');
		if (slash) {
			char above[FILE_NAME_BYTES_MAX + 1];

			memcpy(above, path, (size_t)(slash - path));
			above[slash - path] = '\0';
			parent = workspace_open(workspace, above, O_RDONLY | O_DIRECTORY);
		} else {
			parent = workspace_open(workspace, ".", O_RDONLY | O_DIRECTORY);
		}
		if (parent < 0 ||
		    (mkdirat(parent, slash ? slash + 1 : path, 0755) < 0 && errno != EEXIST))
			return fail(err, errno, "archive: directory %s", path);
		made = workspace_open(workspace, path, O_RDONLY | O_DIRECTORY);
		if (made < 0)
			return fail(err, errno, "archive: directory %s", path);
		if (!name[i])
			return 0;
		path[i] = '/';
	}
}

static int take_file(struct archive *archive, struct archive_entry *entry, int workspace,
		     const char *name, const struct deadline *deadline, struct error *err)
{
	const char *slash = strrchr(name, '/');
	char above[FILE_NAME_BYTES_MAX + 1] = ".";
	autofd parent = -1, fd = -1;
	int r = make_way(workspace, name, false, err);

	if (r < 0)
		return r;
	if (slash) {
		memcpy(above, name, (size_t)(slash - name));
		above[slash - name] = '\0';
	}
	parent = workspace_open(workspace, above, O_RDONLY | O_DIRECTORY);
	if (parent < 0)
		return fail(err, errno, "archive: directory %s", above);
	name = slash ? slash + 1 : name;
	if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
		return fail(err, errno, "archive: %s", name);
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return fail(err, errno, "archive: %s", name);
	r = read_content(archive, fd, name, deadline, err);
	if (r < 0)
		unlinkat(parent, name, 0); /* no half of it stays */
	if (r == 0 && fchmod(fd, archive_entry_perm(entry) & 0111 ? 0755 : 0644) < 0)
		return fail(err, errno, "archive: %s", name);
	return r;
}

static int take_entry(struct archive *archive, struct archive_entry *entry, int workspace,
		      const struct deadline *deadline, struct error *err)
{
	const char *given = archive_entry_pathname(entry);
	char name[FILE_NAME_BYTES_MAX + 1];
	int r;

	if (!given)
		return refuse(err, EINVAL, "archive: an entry without a name");
	if (archive_entry_hardlink(entry) || archive_entry_symlink(entry))
		return refuse(err, EINVAL, "archive: %.200s is a link", given);
	if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != AE_IFDIR)
		return refuse(err, EINVAL, "archive: %.200s is no regular file", given);
	r = plain_name(given, name, err);
	if (r < 0 || !name[0])
		return r;
	if (archive_entry_filetype(entry) == AE_IFDIR)
		return make_way(workspace, name, true, err);
	return take_file(archive, entry, workspace, name, deadline, err);
}

static int read_archive(struct archive *archive, int workspace, const struct deadline *deadline,
			struct error *err)
{
	struct archive_entry *entry;
	unsigned count = 0;
	int r = 0, got = ARCHIVE_OK;

	while (r == 0 && (got = archive_read_next_header(archive, &entry)) >= ARCHIVE_WARN &&
	       got != ARCHIVE_EOF)
		r = ++count > COLLECT_ENTRIES_MAX
			    ? refuse(err, E2BIG, "archive: more than %d entries",
				     COLLECT_ENTRIES_MAX)
			    : take_entry(archive, entry, workspace, deadline, err);
	if (r == 0 && got != ARCHIVE_EOF)
		return archive_failed(archive, "archive", err);
	return r;
}

int workspace_tar_in(void *fd, int workspace, const struct deadline *deadline, struct error *err)
{
	struct archive *archive = archive_read_new();
	locale_t before = begin_utf8();
	int r = -ENOMEM;

	if (!archive)
		fail(err, ENOMEM, "archive");
	else if (archive_read_support_format_tar(archive) != ARCHIVE_OK ||
		 archive_read_open_fd(archive, *(const int *)fd, PIECE_BYTES) != ARCHIVE_OK)
		r = archive_failed(archive, "archive", err);
	else
		r = read_archive(archive, workspace, deadline, err);
	archive_read_free(archive);
	end_utf8(before);
	return r;
}

int execpy_session_tar_in(struct execpy_engine *engine, const char *id, int fd,
			  struct execpy_error *error)
{
	struct hold hold = {.use = workspace_tar_in, .user = &fd, .changes = true};

	return session_hold(engine, id, &hold, (struct error *)error);
}
