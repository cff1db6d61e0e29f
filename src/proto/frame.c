/* SPDX-License-Identifier: Apache-2.0 */
/* frame: see frame.h. */
#include "proto/frame.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void put_little_endian(uint8_t *at, uint64_t value, size_t width)
{
	for (size_t i = 0; i < width; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

size_t frame_begin(struct bytes *out, uint16_t type, uint64_t id)
{
	uint8_t header[FRAME_HEADER_BYTES];
	size_t start = out->length;

	put_little_endian(header, FRAME_MAGIC, 2);
	put_little_endian(header + 2, type, 2);
	put_little_endian(header + 4, 0, 4);
	put_little_endian(header + 8, id, 8);
	bytes_append(out, header, sizeof header);
	return start;
}

void frame_put(struct bytes *out, uint16_t field, const void *data, size_t length)
{
	uint8_t header[FRAME_FIELD_BYTES];

	if (length > UINT32_MAX) {
		out->failed = -E2BIG;
		return;
	}
	put_little_endian(header, field, 2);
	put_little_endian(header + 2, length, 4);
	bytes_append(out, header, sizeof header);
	bytes_append(out, data, length);
}

void frame_put_text(struct bytes *out, uint16_t field, const char *text)
{
	frame_put(out, field, text, strlen(text));
}

void frame_put_number(struct bytes *out, uint16_t field, uint64_t number)
{
	uint8_t value[8];

	put_little_endian(value, number, sizeof value);
	frame_put(out, field, value, sizeof value);
}

int frame_end(struct bytes *out, size_t start)
{
	size_t length;

	if (out->failed)
		return out->failed;
	length = out->length - start - FRAME_HEADER_BYTES;
	if (length > UINT32_MAX)
		return out->failed = -E2BIG;
	put_little_endian(out->data + start + 4, length, 4);
	return 0;
}

int frame_next(struct reader *reader, size_t body_max, struct frame *ret_frame)
{
	struct frame frame;
	uint16_t magic;
	uint32_t length;

	if (reader->left == 0)
		return 0;
	magic = reader_u16(reader);
	frame.type = reader_u16(reader);
	length = reader_u32(reader);
	frame.id = reader_u64(reader);
	if (!reader_ok(reader) || magic != FRAME_MAGIC || length > body_max)
		return -EBADMSG;
	frame.body = reader_take(reader, length);
	if (!reader_ok(reader))
		return -EBADMSG;
	*ret_frame = frame;
	return 1;
}

struct reader frame_fields(const struct frame *frame)
{
	return reader_of(frame->body);
}

int frame_next_field(struct reader *reader, struct field *ret_field)
{
	struct field field;
	uint32_t length;

	if (reader->left == 0 && reader_ok(reader))
		return 0;
	field.name = reader_u16(reader);
	length = reader_u32(reader);
	field.value = reader_take(reader, length);
	if (!reader_ok(reader))
		return -EBADMSG;
	*ret_field = field;
	return 1;
}

int field_number(const struct field *field, uint64_t *ret_number)
{
	struct reader reader = reader_of(field->value);

	if (field->value.length != 8)
		return -EBADMSG;
	*ret_number = reader_u64(&reader);
	return 0;
}

uint64_t frame_number(const struct frame *frame, uint16_t name)
{
	struct reader fields = frame_fields(frame);
	struct field field;
	uint64_t number = 0;

	while (frame_next_field(&fields, &field) == 1)
		if (field.name == name)
			field_number(&field, &number);
	return number;
}

void frame_text(const struct frame *frame, uint16_t name, char *text, size_t size)
{
	struct reader fields = frame_fields(frame);
	struct field field;

	while (frame_next_field(&fields, &field) == 1)
		if (field.name == name)
			snprintf(text, size, "%.*s", (int)field.value.length,
				 (const char *)field.value.data);
}

int frame_send(int socket, const struct bytes *message, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr header;
		uint8_t space[CMSG_SPACE(sizeof(int) * FRAME_FDS_MAX)];
	} control = {0};
	struct iovec iovec = {message->data, message->length};
	struct msghdr header = {.msg_iov = &iovec, .msg_iovlen = 1};
	ssize_t sent;

	if (message->failed)
		return message->failed;
	if (fd_count > FRAME_FDS_MAX || message->length > FRAME_MESSAGE_MAX)
		return -E2BIG;
	if (fd_count > 0) {
		struct cmsghdr *cmsg;

		header.msg_control = control.space;
		header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == message->length ? 0 : -EMSGSIZE;
}

/* Collects the descriptors of all SCM_RIGHTS messages. A peer may send more
 * than fit: the kernel then drops the surplus and sets MSG_CTRUNC. */
static size_t collect_fds(struct msghdr *header, int fds[FRAME_FDS_MAX])
{
	size_t count = 0;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg; cmsg = CMSG_NXTHDR(header, cmsg)) {
		size_t here;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		here = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
			if (count < FRAME_FDS_MAX)
				fds[count++] = fd;
			else
				close(fd);
		}
	}
	return count;
}

int frame_receive(int socket, struct bytes *buffer, struct frame *ret_frame,
		  int ret_fds[FRAME_FDS_MAX], size_t *ret_fd_count)
{
	union {
		struct cmsghdr header;
		uint8_t space[CMSG_SPACE(sizeof(int) * FRAME_FDS_MAX)];
	} control;
	struct iovec iovec;
	struct msghdr header = {
		.msg_iov = &iovec,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space,
	};
	struct reader reader;
	ssize_t received;
	size_t count;
	int r;

	bytes_clear(buffer);
	iovec.iov_base = bytes_reserve(buffer, FRAME_MESSAGE_MAX);
	if (!iovec.iov_base)
		return buffer->failed;
	iovec.iov_len = FRAME_MESSAGE_MAX;
	/* A peer that ended with unread messages is first reported as a reset,
	 * once; what it had sent before is still there. */
	for (unsigned resets = 0;;) {
		received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
		if (received >= 0 || (errno != EINTR && (errno != ECONNRESET || resets++ > 0)))
			break;
	}
	if (received < 0)
		return errno == ECONNRESET ? 0 : -errno;

	for (size_t i = 0; i < FRAME_FDS_MAX; i++)
		ret_fds[i] = -1;
	*ret_fd_count = count = collect_fds(&header, ret_fds);
	if (received == 0) {
		/* The end, or an empty message, which may carry descriptors. */
		for (size_t i = 0; i < count; i++)
			close_fd(&ret_fds[i]);
		*ret_fd_count = 0;
		return 0;
	}
	buffer->length = (size_t)received;
	reader = reader_of(bytes_span(buffer));
	r = frame_next(&reader, FRAME_MESSAGE_MAX, ret_frame);
	if (r == 1 && reader.left == 0 && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	for (size_t i = 0; i < count; i++)
		close_fd(&ret_fds[i]);
	*ret_fd_count = 0;
	return -EBADMSG;
}
