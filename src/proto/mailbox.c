/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox: see mailbox.h. */
#include "proto/mailbox.h"

#include "base/cleanup.h"
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int mailbox_create(struct error *err)
{
	struct mailbox_header header = {.magic = MAILBOX_MAGIC};
	autofd fd = memfd_create("execpy-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return fail(err, errno, "mailbox: memfd_create");
	if (ftruncate(fd, (off_t)MAILBOX_BYTES) < 0)
		return fail(err, errno, "mailbox: ftruncate");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return fail(err, errno, "mailbox: seal");
	if (pwrite(fd, &header, sizeof header, 0) != sizeof header)
		return fail(err, errno, "mailbox: write header");
	return take_fd(&fd);
}

void *mailbox_map(int fd, size_t length, struct error *err)
{
	struct mailbox_header *header =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (header == MAP_FAILED) {
		fail(err, errno, "mailbox: mmap");
		return NULL;
	}
	if (header->magic != MAILBOX_MAGIC) {
		munmap(header, length);
		refuse(err, EBADMSG, "mailbox: not a mailbox");
		return NULL;
	}
	return header;
}

int mailbox_write_request(int fd, const struct bytes *frame, struct error *err)
{
	uint32_t length = (uint32_t)frame->length;

	if (frame->failed)
		return fail(err, -frame->failed, "request");
	if (frame->length > MAILBOX_REQUEST_BYTES)
		return refuse(err, E2BIG, "request: larger than %llu bytes with its arguments",
			      (unsigned long long)MAILBOX_REQUEST_BYTES);
	if (pwrite(fd, frame->data, frame->length, (off_t)MAILBOX_REQUEST_AT) !=
	    (ssize_t)frame->length)
		return fail(err, errno, "mailbox: write request");
	if (pwrite(fd, &length, sizeof length,
		   (off_t)offsetof(struct mailbox_header, request_length)) != sizeof length)
		return fail(err, errno, "mailbox: publish request");
	return 0;
}

static int copy_area(int fd, off_t length_at, off_t area_at, size_t area_bytes, size_t from,
		     struct bytes *frames, struct error *err)
{
	uint32_t length;
	uint8_t *room;

	if (pread(fd, &length, sizeof length, length_at) != sizeof length)
		return fail(err, errno, "mailbox: read length");
	if (length > area_bytes)
		length = (uint32_t)area_bytes;
	if (length < from)
		return refuse(err, ENODATA, "mailbox: there is less");
	room = bytes_reserve(frames, length - from);
	if (!room)
		return fail(err, -frames->failed, "mailbox: copy");
	for (size_t at = from; at < length;) {
		ssize_t r = pread(fd, room + (at - from), length - at, area_at + (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return fail(err, r < 0 ? errno : EIO, "mailbox: read");
		at += (size_t)r;
	}
	frames->length += length - from;
	return 0;
}

int mailbox_read_response(int fd, struct bytes *ret_frames, struct error *err)
{
	bytes_clear(ret_frames);
	return mailbox_read_more(fd, 0, ret_frames, err);
}

int mailbox_read_more(int fd, size_t from, struct bytes *frames, struct error *err)
{
	return copy_area(fd, offsetof(struct mailbox_header, response_length),
			 (off_t)MAILBOX_RESPONSE_AT, RESPONSE_BYTES_MAX, from, frames, err);
}

int mailbox_read_frames(int fd, struct bytes *ret_frames, struct error *err)
{
	bytes_clear(ret_frames);
	return copy_area(fd, offsetof(struct mailbox_header, frames_length),
			 (off_t)MAILBOX_FRAMES_AT, MAILBOX_FRAMES_BYTES, 0, ret_frames, err);
}

int verdict_create(struct error *err)
{
	int fd = memfd_create("execpy-verdict", MFD_CLOEXEC);

	return fd < 0 ? fail(err, errno, "verdict: memfd_create") : fd;
}

int verdict_read(int fd, struct bytes *ret_frames, struct error *err)
{
	return memfile_read(fd, "verdict", VERDICTS_BYTES_MAX, ret_frames, err);
}
