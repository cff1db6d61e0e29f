/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_frame: the frame codec on a hostile peer's bytes and descriptors.
 *
 * The first byte chooses: even, the rest is read as frames in memory; odd, the
 * rest is a script of messages that a peer sends over a socket:
 *
 *     u8 descriptors   u8 messages of control data   u16 length   bytes */
#include "fuzz.h"

#include "proto/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void check_within(struct span inner, struct span outer)
{
	MUST(inner.length <= outer.length);
	MUST(inner.length == 0 ||
	     (inner.data >= outer.data && inner.data + inner.length <= outer.data + outer.length));
}

/* Reads all fields; when all are well-formed, writes the same frame again. */
static void check_frame(const struct frame *frame, struct span whole)
{
	struct reader fields = frame_fields(frame);
	struct bytes again = {0};
	size_t at = frame_begin(&again, frame->type, frame->id);
	struct field field;
	uint64_t number;
	int r;

	while ((r = frame_next_field(&fields, &field)) == 1) {
		check_within(field.value, frame->body);
		MUST(field_number(&field, &number) == (field.value.length == 8 ? 0 : -EBADMSG));
		frame_put(&again, field.name, field.value.data, field.value.length);
	}
	MUST(r == 0 || r == -EBADMSG);
	MUST(frame_end(&again, at) == 0);
	if (r == 0 && reader_ok(&fields)) {
		MUST(again.length == whole.length);
		MUST(memcmp(again.data, whole.data, whole.length) == 0);
	}
	bytes_free(&again);
}

static void in_memory(struct span input)
{
	struct reader reader = reader_of(input);
	struct frame frame;
	int r;

	for (;;) {
		const uint8_t *start = reader.at;

		r = frame_next(&reader, input.length, &frame);
		if (r != 1)
			break;
		check_within(frame.body, input);
		check_frame(&frame, (struct span){start, FRAME_HEADER_BYTES + frame.body.length});
	}
	MUST(r == 0 || r == -EBADMSG);
	MUST(r != 0 || reader.left == 0);
}

static ssize_t peer_sends(int socket, struct span message, size_t fds, size_t controls)
{
	static uint8_t space[8192] __attribute__((aligned(16)));
	struct iovec iovec = {(void *)(uintptr_t)message.data, message.length};
	struct msghdr header = {.msg_iov = &iovec, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	memset(space, 0, sizeof space);
	if (fds > 0 && controls > 0) {
		header.msg_control = space;
		header.msg_controllen = controls * CMSG_SPACE(sizeof(int) * fds);
		MUST(header.msg_controllen <= sizeof space);
		cmsg = CMSG_FIRSTHDR(&header);
		for (size_t c = 0; c < controls; c++) {
			cmsg->cmsg_level = SOL_SOCKET;
			cmsg->cmsg_type = SCM_RIGHTS;
			cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fds);
			for (size_t i = 0; i < fds; i++)
				memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &socket, sizeof(int));
			cmsg = CMSG_NXTHDR(&header, cmsg);
		}
	}
	return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void we_receive(int socket, struct bytes *buffer)
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(socket, buffer, &frame, fds, &count);

	MUST(r == 1 || r == 0 || r == -EBADMSG);
	MUST(count <= FRAME_FDS_MAX);
	MUST(r == 1 || count == 0);
	for (size_t i = 0; i < count; i++) {
		MUST(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
		close(fds[i]);
	}
	if (r == 1) {
		check_within(frame.body, bytes_span(buffer));
		check_frame(&frame, bytes_span(buffer));
	}
}

static void over_a_socket(struct span input)
{
	struct reader reader = reader_of(input);
	struct bytes buffer = {0};
	int pair[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	for (unsigned sent = 0; reader.left > 0 && sent < 64; sent++) {
		size_t fds = reader_u8(&reader) % 40, controls = reader_u8(&reader) % 24;
		size_t length = reader_u16(&reader);
		struct span message =
			reader_take(&reader, length < reader.left ? length : reader.left);

		if (peer_sends(pair[0], message, fds, controls) >= 0)
			we_receive(pair[1], &buffer);
	}
	close(pair[0]);
	we_receive(pair[1], &buffer);
	close(pair[1]);
	bytes_free(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned before;

	if (size == 0)
		return 0;
	if (!before)
		before = fuzz_open_descriptors();
	if (data[0] % 2 == 0) {
		in_memory((struct span){data + 1, size - 1});
		return 0;
	}
	over_a_socket((struct span){data + 1, size - 1});
	MUST(fuzz_open_descriptors() == before);
	return 0;
}
