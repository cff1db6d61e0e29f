/* SPDX-License-Identifier: Apache-2.0 */
/* memfile: see memfile.h. */
#include "base/memfile.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int memfile_write(const char *what, struct span content, struct error *err)
{
	char name[64];
	autofd fd = -1;
	size_t done = 0;

	snprintf(name, sizeof name, "execpy-%s", what);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return fail(err, errno, "%s: memfd_create", what);
	while (done < content.length) {
		ssize_t r = pwrite(fd, content.data + done, content.length - done, (off_t)done);

		if (r < 0 && errno != EINTR)
			return fail(err, errno, "%s: write", what);
		if (r > 0)
			done += (size_t)r;
	}
	return take_fd(&fd);
}

int memfile_read(int fd, const char *what, size_t length_max, struct bytes *content,
		 struct error *err)
{
	off_t length = lseek(fd, 0, SEEK_END);
	uint8_t *room;

	bytes_clear(content);
	if (length < 0 || (uint64_t)length > length_max)
		return refuse(err, EBADMSG, "%s: odd length", what);
	room = bytes_reserve(content, (size_t)length);
	if (!room)
		return fail(err, -content->failed, "%s", what);
	if (pread(fd, room, (size_t)length, 0) != (ssize_t)length)
		return fail(err, errno, "%s: read", what);
	content->length = (size_t)length;
	return 0;
}
