/* SPDX-License-Identifier: Apache-2.0 */
/* outbox: the cell's side of the mailbox (proto/mailbox.h). */
#include "guest/guest.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define VERDICT_STAYS_BYTES 4096

static struct mailbox_header *mailbox;
static pid_t owner;
static int verdict = -1;
static off_t verdict_at; /* where the next is written */
static bool mute;

static uint8_t *area(size_t offset)
{
	return (uint8_t *)mailbox + offset;
}

int outbox_open(int fd, struct error *err)
{
	mailbox = mailbox_map(fd, MAILBOX_BYTES, err);
	owner = getpid();
	return mailbox ? 0 : -err->number;
}

void *outbox_place(size_t *ret_size)
{
	*ret_size = MAILBOX_BYTES;
	return mailbox;
}

void outbox_moved(void *place)
{
	mailbox = place;
}

void outbox_touch(void)
{
	volatile uint8_t *response = area(MAILBOX_RESPONSE_AT);

	(void)*(volatile uint8_t *)area(MAILBOX_REQUEST_AT);
	*response = 0;
}

struct span outbox_request(void)
{
	size_t length = atomic_load(&mailbox->request_length);

	if (length > MAILBOX_REQUEST_BYTES)
		length = 0;
	return (struct span){area(MAILBOX_REQUEST_AT), length};
}

void outbox_take_verdict(int fd)
{
	verdict = fd;
}

int outbox_write_verdict(const struct bytes *frame)
{
	size_t done = 0;

	if (frame->failed)
		return frame->failed;
	while (done < frame->length) {
		ssize_t r = pwrite(verdict, frame->data + done, frame->length - done,
				   verdict_at + (off_t)done);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			done += (size_t)r;
	}
	verdict_at += (off_t)done;
	return 0;
}

int outbox_close_verdict(void)
{
	return close(verdict) < 0 ? -errno : 0;
}

int outbox_renew_verdict(void)
{
	static const uint8_t none[FRAME_HEADER_BYTES];

	/* Without its header it is no verdict; a page that stays need not be made anew. */
	if (verdict_at > VERDICT_STAYS_BYTES && ftruncate(verdict, 0) < 0)
		return -errno;
	if (pwrite(verdict, none, sizeof none, 0) != sizeof none)
		return -errno;
	verdict_at = 0;
	return 0;
}

void outbox_own(void)
{
	owner = getpid();
}

int outbox_append(const struct bytes *frames)
{
	uint32_t used;

	if (frames->failed)
		return frames->failed;
	if (!mailbox || mute)
		return 0;
	used = atomic_load(&mailbox->response_length);
	if (getpid() != owner)
		return -EPERM;
	if (used > RESPONSE_BYTES_MAX || frames->length > RESPONSE_BYTES_MAX - used)
		return -ENOSPC;
	memcpy(area(MAILBOX_RESPONSE_AT + used), frames->data, frames->length);
	atomic_store(&mailbox->response_length, used + (uint32_t)frames->length);
	return 0;
}

void outbox_mute(bool muted)
{
	mute = muted;
}

uint8_t *outbox_frames_area(size_t *ret_size)
{
	*ret_size = MAILBOX_FRAMES_BYTES;
	return mailbox ? area(MAILBOX_FRAMES_AT) : NULL;
}

void outbox_frames_publish(size_t length)
{
	atomic_store(&mailbox->frames_length, (uint32_t)length);
}

void outbox_finish(int exit_status)
{
	if (getpid() == owner)
		atomic_store(&mailbox->done, 1 + ((uint32_t)exit_status & 0xff));
	/* Whoever waits for the end of the output has it before this process is
	 * taken apart. */
	close_range(0, ~0U, 0);
	_exit(exit_status);
}
