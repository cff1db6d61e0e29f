/* SPDX-License-Identifier: Apache-2.0 */
/* test_frame: the codec between our processes, and what a hostile peer does to
 * it: cut, oversized, mistagged and doubled frames, and descriptors by the
 * hundred. After each the count of our own descriptors is what it was. */
#include "unit.h"

#include "base/cleanup.h"
#include "proto/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static size_t put_sample(struct bytes *out, uint16_t type, uint64_t id)
{
	size_t at = frame_begin(out, type, id);

	frame_put_text(out, 1, "hello");
	frame_put_number(out, 2, UINT64_C(0x8000000000000001));
	frame_put(out, 3, NULL, 0);
	assert_int_equal(frame_end(out, at), 0);
	return at;
}

static void round_trip(void **state)
{
	autobytes out = {0};
	struct reader reader, fields;
	struct frame frame;
	struct field field;
	uint64_t number = 0;

	put_sample(&out, 7, 99);
	put_sample(&out, 65535, UINT64_MAX);
	reader = reader_of(bytes_span(&out));
	assert_int_equal(frame_next(&reader, 1000, &frame), 1);
	assert_int_equal(frame.type, 7);
	assert_int_equal(frame.id, 99);
	fields = frame_fields(&frame);
	assert_int_equal(frame_next_field(&fields, &field), 1);
	assert_int_equal(field.name, 1);
	assert_true(span_equals(field.value, "hello"));
	assert_int_equal(field_number(&field, &number), -EBADMSG);
	assert_int_equal(frame_next_field(&fields, &field), 1);
	assert_int_equal(field_number(&field, &number), 0);
	assert_true(number == UINT64_C(0x8000000000000001));
	assert_int_equal(frame_next_field(&fields, &field), 1);
	assert_int_equal(field.value.length, 0);
	assert_int_equal(frame_next_field(&fields, &field), 0);
	assert_int_equal(frame_next(&reader, 1000, &frame), 1);
	assert_true(frame.type == 65535 && frame.id == UINT64_MAX);
	assert_int_equal(frame_next(&reader, 1000, &frame), 0);
}

static void the_wire_is_what_the_document_says(void **state)
{
	static const uint8_t wanted[] = {0x45, 0x58, 0x07, 0x00, 0x08, 0, 0, 0, 0x63, 0,   0,  0, 0,
					 0,    0,    0,    0x01, 0x00, 2, 0, 0, 0,    'h', 'i'};
	autobytes out = {0};
	size_t at = frame_begin(&out, 7, 0x63);

	frame_put_text(&out, 1, "hi");
	assert_int_equal(frame_end(&out, at), 0);
	assert_int_equal(out.length, sizeof wanted);
	assert_memory_equal(out.data, wanted, sizeof wanted);
}

static void every_cut_is_refused(void **state)
{
	autobytes out = {0};

	put_sample(&out, 7, 99);
	for (size_t length = 1; length < out.length; length++) {
		struct reader reader = reader_of(span_of(out.data, length));
		struct frame frame = {.type = 1234};

		assert_int_equal(frame_next(&reader, 1000, &frame), -EBADMSG);
		assert_int_equal(frame.type, 1234); /* outputs are left alone */
	}
}

static void every_cut_of_a_field_is_refused(void **state)
{
	static const uint8_t body[] = {1, 0, 3, 0, 0, 0, 'a', 'b', 'c'};

	for (size_t length = 1; length < sizeof body; length++) {
		struct frame frame = {.body = {body, length}};
		struct reader fields = frame_fields(&frame);
		struct field field = {.name = 1234};

		assert_int_equal(frame_next_field(&fields, &field), -EBADMSG);
		assert_int_equal(field.name, 1234);
		/* And it stays refused: a loop that goes on must not find more. */
		assert_true(frame_next_field(&fields, &field) <= 0);
		assert_false(reader_ok(&fields));
	}
}

static void oversized_and_negative_lengths_are_refused(void **state)
{
	static const uint32_t lengths[] = {1001, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0};
	autobytes out = {0};

	put_sample(&out, 7, 99);
	for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
		struct reader reader;
		struct frame frame;

		for (size_t b = 0; b < 4; b++)
			out.data[4 + b] = (uint8_t)(lengths[i] >> (8 * b));
		reader = reader_of(bytes_span(&out));
		assert_int_equal(frame_next(&reader, 1000, &frame), -EBADMSG);
		reader = reader_of(bytes_span(&out));
		assert_int_equal(frame_next(&reader, SIZE_MAX, &frame), -EBADMSG);
	}
}

static void the_body_limit_is_exact(void **state)
{
	autobytes out = {0};
	struct reader reader;
	struct frame frame;

	put_sample(&out, 7, 99);
	reader = reader_of(bytes_span(&out));
	assert_int_equal(frame_next(&reader, out.length - 16, &frame), 1);
	reader = reader_of(bytes_span(&out));
	assert_int_equal(frame_next(&reader, out.length - 17, &frame), -EBADMSG);
}

static void every_wrong_tag_is_refused(void **state)
{
	autobytes out = {0};

	put_sample(&out, 7, 99);
	for (int bit = 0; bit < 16; bit++) {
		struct reader reader;
		struct frame frame;

		out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		reader = reader_of(bytes_span(&out));
		assert_int_equal(frame_next(&reader, 1000, &frame), -EBADMSG);
		out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void a_failed_buffer_gives_no_frame(void **state)
{
	autobytes out = {.ceiling = 20};
	size_t at = frame_begin(&out, 1, 1);
	int pair[2];

	frame_put_text(&out, 1, "too long for it");
	assert_int_equal(frame_end(&out, at), -E2BIG);
	make_pair(pair);
	assert_int_equal(frame_send(pair[0], &out, NULL, 0), -E2BIG);
	close(pair[0]);
	close(pair[1]);
}

/* The other side: what arrives. */

static int receive(int socket, struct frame *frame, size_t *count)
{
	static struct bytes buffer;
	int fds[FRAME_FDS_MAX];
	int r = frame_receive(socket, &buffer, frame, fds, count);

	for (size_t i = 0; i < *count; i++) {
		assert_true(fds[i] > 2);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
	for (size_t i = *count; r >= 0 && i < FRAME_FDS_MAX; i++)
		assert_int_equal(fds[i], -1);
	if (r == 1) /* valid as long as the buffer is */
		assert_true(frame->body.data >= buffer.data &&
			    frame->body.data + frame->body.length <= buffer.data + buffer.length);
	return r;
}

static void send_raw(int socket, const void *data, size_t length)
{
	assert_int_equal(send(socket, data, length, 0), (ssize_t)length);
}

/* Descriptors in as many messages of their own as asked for. */
static ssize_t send_with_fds(int socket, const void *data, size_t length, size_t fd_count,
			     size_t messages)
{
	uint8_t space[4096] __attribute__((aligned(16))) = {0};
	struct iovec iovec = {(void *)(uintptr_t)data, length};
	struct msghdr header = {.msg_iov = &iovec, .msg_iovlen = 1, .msg_control = space};
	struct cmsghdr *cmsg;

	header.msg_controllen = messages * CMSG_SPACE(sizeof(int) * fd_count);
	cmsg = CMSG_FIRSTHDR(&header);
	for (size_t m = 0; m < messages; m++) {
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		for (size_t i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &socket, sizeof(int));
		cmsg = CMSG_NXTHDR(&header, cmsg);
	}
	return sendmsg(socket, &header, 0);
}

static void passes_descriptors(void **state)
{
	autobytes out = {0};
	struct frame frame;
	unsigned before;
	int pair[2], fds[FRAME_FDS_MAX + 1];
	size_t count = 0;

	put_sample(&out, 7, 99);
	make_pair(pair);
	for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
		fds[i] = pair[0];
	before = open_descriptors();
	for (size_t n = 0; n <= FRAME_FDS_MAX; n++) {
		assert_int_equal(frame_send(pair[0], &out, fds, n), 0);
		assert_int_equal(receive(pair[1], &frame, &count), 1);
		assert_int_equal(count, n);
	}
	assert_int_equal(frame_send(pair[0], &out, fds, FRAME_FDS_MAX + 1), -E2BIG);
	assert_int_equal(open_descriptors(), before);
	close(pair[0]);
	assert_int_equal(receive(pair[1], &frame, &count), 0);
	assert_int_equal(frame_send(pair[1], &out, NULL, 0), -EPIPE);
	close(pair[1]);
}

static void malformed_messages_are_refused(void **state)
{
	autobytes good = {0}, twice = {0}, cut = {0}, tail = {0}, large = {0};
	struct frame frame;
	unsigned before;
	size_t count = 0;
	int pair[2];

	put_sample(&good, 7, 99);
	put_sample(&twice, 7, 99);
	put_sample(&twice, 7, 99);
	put_sample(&tail, 7, 99);
	bytes_append(&tail, "x", 1);
	bytes_append(&cut, good.data, good.length - 1);
	bytes_append(&large, good.data, good.length);
	while (large.length < FRAME_MESSAGE_MAX + 1)
		bytes_append(&large, "", 1);
	make_pair(pair);
	before = open_descriptors();
	send_raw(pair[0], cut.data, cut.length);
	send_raw(pair[0], twice.data, twice.length);
	send_raw(pair[0], tail.data, tail.length);
	send_raw(pair[0], "x", 1);
	send_raw(pair[0], large.data, large.length);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(receive(pair[1], &frame, &count), -EBADMSG);
		assert_int_equal(count, 0);
	}
	/* The same with descriptors: all are closed again. */
	for (int i = 0; i < 50; i++) {
		assert_true(send_with_fds(pair[0], cut.data, cut.length, 5, 1) > 0);
		assert_int_equal(receive(pair[1], &frame, &count), -EBADMSG);
		assert_true(send_with_fds(pair[0], large.data, large.length, 5, 1) > 0);
		assert_int_equal(receive(pair[1], &frame, &count), -EBADMSG);
	}
	assert_int_equal(open_descriptors(), before);
	/* A peer that erred is the caller's to drop; the socket itself still works. */
	send_raw(pair[0], good.data, good.length);
	assert_int_equal(receive(pair[1], &frame, &count), 1);
	close(pair[0]);
	close(pair[1]);
}

static void descriptor_spam_leaves_none_behind(void **state)
{
	static const struct {
		size_t fds, messages;
	} cases[] = {{17, 1}, {100, 1}, {253, 1}, {1, 17}, {3, 17}, {16, 2}, {60, 4}};
	autobytes good = {0};
	struct frame frame;
	unsigned before;
	size_t count = 0;
	int pair[2];

	put_sample(&good, 7, 99);
	make_pair(pair);
	before = open_descriptors();
	for (int round = 0; round < 20; round++)
		for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
			if (send_with_fds(pair[0], good.data, good.length, cases[i].fds,
					  cases[i].messages) < 0)
				continue; /* more than the kernel takes at once */
			assert_int_equal(receive(pair[1], &frame, &count), -EBADMSG);
			assert_int_equal(count, 0);
		}
	assert_int_equal(open_descriptors(), before);
	close(pair[0]);
	close(pair[1]);
}

static void an_empty_message_with_descriptors_leaves_none_behind(void **state)
{
	static struct bytes buffer;
	int pair[2], fds[FRAME_FDS_MAX];
	struct frame frame;
	unsigned before;

	make_pair(pair);
	before = open_descriptors();
	for (int i = 0; i < 20; i++) {
		size_t count = 0;

		assert_int_equal(send_with_fds(pair[0], "", 0, 3, 1), 0);
		/* It reads like the end; callers then look at nothing else. */
		assert_true(frame_receive(pair[1], &buffer, &frame, fds, &count) <= 0);
		assert_int_equal(count, 0);
	}
	assert_int_equal(open_descriptors(), before);
	bytes_free(&buffer);
	close(pair[0]);
	close(pair[1]);
}

static void other_control_messages_are_ignored(void **state)
{
	autobytes good = {0};
	struct frame frame;
	size_t count = 0;
	int pair[2], on = 1;

	put_sample(&good, 7, 99);
	make_pair(pair);
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
	assert_true(send_with_fds(pair[0], good.data, good.length, 2, 1) > 0);
	assert_int_equal(receive(pair[1], &frame, &count), 1);
	assert_int_equal(count, 2);
	close(pair[0]);
	close(pair[1]);
}

static void a_full_or_empty_socket_says_so(void **state)
{
	autobytes good = {0};
	struct frame frame;
	size_t count = 0;
	int pair[2], r = 0;

	put_sample(&good, 7, 99);
	make_pair(pair);
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(receive(pair[1], &frame, &count), -EAGAIN);
	for (int i = 0; i < 100000 && r == 0; i++)
		r = frame_send(pair[0], &good, NULL, 0);
	assert_int_equal(r, -EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(the_wire_is_what_the_document_says),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(every_cut_of_a_field_is_refused),
		cmocka_unit_test(oversized_and_negative_lengths_are_refused),
		cmocka_unit_test(the_body_limit_is_exact),
		cmocka_unit_test(every_wrong_tag_is_refused),
		cmocka_unit_test(a_failed_buffer_gives_no_frame),
		cmocka_unit_test(passes_descriptors),
		cmocka_unit_test(malformed_messages_are_refused),
		cmocka_unit_test(descriptor_spam_leaves_none_behind),
		cmocka_unit_test(an_empty_message_with_descriptors_leaves_none_behind),
		cmocka_unit_test(other_control_messages_are_ignored),
		cmocka_unit_test(a_full_or_empty_socket_says_so),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
