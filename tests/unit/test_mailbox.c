/* SPDX-License-Identifier: Apache-2.0 */
/* test_mailbox: the memory that a cell can write at will, seen from the engine. */
#include "unit.h"

#include "base/cleanup.h"
#include "proto/mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int make(void)
{
	struct error err = {0};
	int fd = mailbox_create(&err);

	assert_true(fd >= 0);
	return fd;
}

static void the_seals_hold(void **state)
{
	autofd fd = make();
	struct stat info;

	assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, (off_t)MAILBOX_BYTES - 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, (off_t)MAILBOX_BYTES + 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fstat(fd, &info), 0);
	assert_int_equal(info.st_size, MAILBOX_BYTES);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void punching_holes_is_harmless(void **state)
{
	autofd fd = make();
	struct error err = {0};
	autobytes out = {0};
	struct mailbox_header *header = mailbox_map(fd, MAILBOX_BYTES, &err);

	assert_non_null(header);
	header->response_length = 5;
	memcpy((uint8_t *)header + MAILBOX_RESPONSE_AT, "hello", 5);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)MAILBOX_RESPONSE_AT, 4096),
			 0);
	assert_int_equal(mailbox_read_response(fd, &out, &err), 0);
	assert_int_equal(out.length, 5);
	assert_memory_equal(out.data, "\0\0\0\0\0", 5);
	munmap(header, MAILBOX_BYTES);
}

static void an_empty_one_has_nothing(void **state)
{
	autofd fd = make();
	struct error err = {0};
	autobytes response = {0}, frames = {0};

	assert_int_equal(mailbox_read_response(fd, &response, &err), 0);
	assert_int_equal(mailbox_read_frames(fd, &frames, &err), 0);
	assert_int_equal(response.length, 0);
	assert_int_equal(frames.length, 0);
}

static void claims_beyond_the_area_are_cut(void **state)
{
	static const uint32_t claims[] = {1,
					  MAILBOX_FRAMES_BYTES,
					  MAILBOX_FRAMES_BYTES + 1,
					  RESPONSE_BYTES_MAX,
					  RESPONSE_BYTES_MAX + 1,
					  0x7fffffff,
					  0x80000000,
					  UINT32_MAX};
	autofd fd = make();
	struct error err = {0};
	struct mailbox_header *header = mailbox_map(fd, sizeof *header, &err);

	assert_non_null(header);
	for (size_t i = 0; i < ARRAY_LENGTH(claims); i++) {
		autobytes response = {.ceiling = RESPONSE_BYTES_MAX}, frames = {0};
		size_t claim = claims[i];

		header->response_length = header->frames_length = claims[i];
		assert_int_equal(mailbox_read_response(fd, &response, &err), 0);
		assert_int_equal(response.length,
				 claim < RESPONSE_BYTES_MAX ? claim : RESPONSE_BYTES_MAX);
		assert_int_equal(mailbox_read_frames(fd, &frames, &err), 0);
		assert_int_equal(frames.length,
				 claim < MAILBOX_FRAMES_BYTES ? claim : MAILBOX_FRAMES_BYTES);
	}
	munmap(header, sizeof *header);
}

static void the_areas_do_not_overlap(void **state)
{
	assert_true(sizeof(struct mailbox_header) <= MAILBOX_FRAMES_AT);
	assert_true(MAILBOX_FRAMES_AT + MAILBOX_FRAMES_BYTES <= MAILBOX_REQUEST_AT);
	assert_true(MAILBOX_REQUEST_AT + MAILBOX_REQUEST_BYTES <= MAILBOX_RESPONSE_AT);
	assert_int_equal(MAILBOX_RESPONSE_AT + RESPONSE_BYTES_MAX, MAILBOX_BYTES);
	/* The largest request that the bounds allow fits. */
	assert_true(CODE_BYTES_MAX + ARGUMENT_BYTES_MAX + ENVIRONMENT_BYTES_MAX + 16 +
			    6 * (1 + ARGUMENT_COUNT_MAX + ENVIRONMENT_COUNT_MAX) <=
		    MAILBOX_REQUEST_BYTES);
}

static void requests_go_in_whole_or_not_at_all(void **state)
{
	autofd fd = make();
	struct error err = {0};
	autobytes request = {0};
	struct mailbox_header *header = mailbox_map(fd, MAILBOX_BYTES, &err);

	assert_non_null(header);
	assert_non_null(bytes_reserve(&request, MAILBOX_REQUEST_BYTES + 1));
	memset(request.data, 'r', MAILBOX_REQUEST_BYTES + 1);
	request.length = MAILBOX_REQUEST_BYTES + 1;
	assert_int_equal(mailbox_write_request(fd, &request, &err), -E2BIG);
	assert_int_equal(header->request_length, 0);
	request.length--;
	assert_int_equal(mailbox_write_request(fd, &request, &err), 0);
	assert_int_equal(header->request_length, MAILBOX_REQUEST_BYTES);
	assert_int_equal(((uint8_t *)header)[MAILBOX_RESPONSE_AT - 1], 'r');
	assert_int_equal(((uint8_t *)header)[MAILBOX_RESPONSE_AT], 0);
	request.failed = -ENOMEM;
	assert_int_equal(mailbox_write_request(fd, &request, &err), -ENOMEM);
	munmap(header, MAILBOX_BYTES);
}

static void something_else_is_not_a_mailbox(void **state)
{
	struct error err = {0};
	autofd fd = memfd_create("other", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_null(mailbox_map(fd, sizeof(struct mailbox_header), &err));
	assert_int_equal(err.number, EBADMSG);
	assert_null(mailbox_map(-1, sizeof(struct mailbox_header), &err));
	assert_int_equal(err.number, EBADF);
}

static void a_short_file_is_an_error_not_a_crash(void **state)
{
	struct error err = {0};
	autobytes out = {0};
	autofd fd = memfd_create("short", MFD_CLOEXEC);
	struct mailbox_header header = {.magic = MAILBOX_MAGIC, .response_length = 10};

	assert_true(mailbox_read_response(fd, &out, &err) < 0);
	assert_int_equal(pwrite(fd, &header, sizeof header, 0), sizeof header);
	assert_int_equal(mailbox_read_response(fd, &out, &err), -EIO);
	assert_int_equal(out.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_seals_hold),
		cmocka_unit_test(punching_holes_is_harmless),
		cmocka_unit_test(an_empty_one_has_nothing),
		cmocka_unit_test(claims_beyond_the_area_are_cut),
		cmocka_unit_test(the_areas_do_not_overlap),
		cmocka_unit_test(requests_go_in_whole_or_not_at_all),
		cmocka_unit_test(something_else_is_not_a_mailbox),
		cmocka_unit_test(a_short_file_is_an_error_not_a_crash),
	};

	return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
