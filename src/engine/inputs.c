/* SPDX-License-Identifier: Apache-2.0 */
/* inputs: a request's files, on their way into the workspace.
 *
 * The cell is parked: no user code has run in it. Names are taken apart and each
 * part is made or opened beneath the part before, never through a link, with no
 * more rights than the cell itself has: what is made is the code's own, to be
 * changed. Its pages are charged to the client, not to the run's memory. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "engine/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_into(int directory, const char *name, const struct execpy_file *file, bool replace,
		     const struct deadline *deadline, struct error *err)
{
	mode_t mode = file->executable ? 0755 : 0644;
	autofd to = -1;
	off_t offset = 0;
	ssize_t r;

	if (replace && unlinkat(directory, name, 0) < 0 && errno != ENOENT)
		return fail(err, errno, "file %s", file->name);
	to = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (to < 0)
		return fail(err, errno, "file %s", file->name);
	while ((r = sendfile(to, file->fd, &offset, 1 << 20)) > 0 && !deadline_is_over(deadline))
		;
	/* The caller's umask is not the cell's. */
	if (r == 0 && fchmod(to, mode) == 0)
		return 0;
	if (r > 0)
		refuse(err, E2BIG, "file %s: it took too long", file->name);
	else
		fail(err, errno, "file %s", file->name);
	unlinkat(directory, name, 0); /* no half of it stays */
	return -err->number;
}

/* The directory of this name beneath another: its descriptor, or negative. */
static int enter(int directory, const char *name, struct error *err)
{
	bool made = mkdirat(directory, name, 0755) == 0;
	autofd fd = -1;

	if (!made && errno != EEXIST)
		return fail(err, errno, "file: directory %s", name);
	fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (made && fchmod(fd, 0755) < 0))
		return fail(err, errno, "file: directory %s", name);
	return take_fd(&fd);
}

/* request_take() has seen that the name stays in the workspace. */
int inputs_put_one(int workspace, const struct execpy_file *file, bool replace,
		   const struct deadline *deadline, struct error *err)
{
	autofd directory = fcntl(workspace, F_DUPFD_CLOEXEC, 3);
	char path[FILE_NAME_BYTES_MAX + 1], *at = path, *slash;

	if (directory < 0)
		return fail(err, errno, "file %s", file->name);
	snprintf(path, sizeof path, "%s", file->name);
	while ((slash = strchr(at, '/'))) {
		int next;

		*slash = '\0';
		next = enter(directory, at, err);
		if (next < 0)
			return next;
		close(directory);
		directory = next;
		at = slash + 1;
	}
	return copy_into(directory, at, file, replace, deadline, err);
}

int inputs_put(struct run *run, struct error *err)
{
	struct workspace_identity own = workspace_enter(run->workspace);
	int r = 0;

	for (size_t i = 0; i < run->request->file_count && r == 0; i++)
		r = inputs_put_one(run->workspace, &run->request->files[i], run->session != NULL,
				   NULL, err);
	workspace_leave(&own);
	return r;
}
