/* SPDX-License-Identifier: Apache-2.0 */
/* test_base: the growing buffer, the bounded reader, the error object, descriptors. */
#include "unit.h"

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "base/error.h"
#include "base/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void appends_and_terminates(void **state)
{
	autobytes bytes = {0};

	assert_int_equal(bytes_append(&bytes, NULL, 0), 0);
	assert_int_equal(bytes.length, 0);
	assert_int_equal(bytes_append_text(&bytes, "a"), 0);
	assert_int_equal(bytes_append_format(&bytes, "%d-%s", 42, "x"), 0);
	assert_bytes(&bytes, "a42-x");
	bytes_clear(&bytes);
	assert_int_equal(bytes.length, 0);
	assert_true(bytes.capacity > 0);
}

static void grows_over_many_sizes(void **state)
{
	autobytes bytes = {0};
	uint8_t piece[777];

	for (size_t i = 0; i < sizeof piece; i++)
		piece[i] = (uint8_t)i;
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(bytes_append(&bytes, piece, i % sizeof piece), 0);
	for (size_t i = 0, at = 0; i < 1000; at += i % sizeof piece, i++)
		assert_memory_equal(bytes.data + at, piece, i % sizeof piece);
}

static void ceiling_is_exact(void **state)
{
	autobytes bytes = {.ceiling = 1000};
	uint8_t piece[1000] = {0};

	assert_int_equal(bytes_append(&bytes, piece, 999), 0);
	assert_int_equal(bytes_append(&bytes, piece, 1), 0);
	assert_int_equal(bytes_append(&bytes, piece, 0), 0);
	assert_int_equal(bytes_append(&bytes, piece, 1), -E2BIG);
	assert_int_equal(bytes.length, 1000);
}

static void failure_is_sticky(void **state)
{
	autobytes bytes = {.ceiling = 4};

	assert_int_equal(bytes_append_text(&bytes, "12345"), -E2BIG);
	/* It would fit, but a gap in what was written must not be overlooked. */
	assert_int_equal(bytes_append_text(&bytes, "1"), -E2BIG);
	assert_int_equal(bytes_append_format(&bytes, "%d", 1), -E2BIG);
	assert_null(bytes_reserve(&bytes, 1));
	assert_int_equal(bytes.length, 0);
	bytes_clear(&bytes);
	assert_int_equal(bytes_append_text(&bytes, "1234"), 0);
}

static void huge_lengths_do_not_wrap(void **state)
{
	autobytes bytes = {0};

	assert_int_equal(bytes_append_text(&bytes, "x"), 0);
	assert_null(bytes_reserve(&bytes, SIZE_MAX));
	assert_int_equal(bytes.failed, -E2BIG);
	bytes_clear(&bytes);
	assert_int_equal(bytes_append_text(&bytes, "x"), 0);
	assert_null(bytes_reserve(&bytes, SIZE_MAX - 1));
	bytes_clear(&bytes);
	assert_null(bytes_reserve(&bytes, BYTES_CEILING + 1));
}

static void free_keeps_the_ceiling(void **state)
{
	struct bytes bytes = {.ceiling = 3};

	assert_int_equal(bytes_append_text(&bytes, "abc"), 0);
	bytes_free(&bytes);
	assert_null(bytes.data);
	assert_int_equal(bytes_append_text(&bytes, "abcd"), -E2BIG);
	bytes_free(&bytes);
	bytes_free(&bytes);
}

static void reads_little_endian(void **state)
{
	static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
	struct reader reader = reader_of(span_of(data, sizeof data));

	assert_int_equal(reader_u8(&reader), 1);
	assert_int_equal(reader_u16(&reader), 0x0302);
	assert_int_equal(reader_u32(&reader), 0x07060504);
	assert_true(reader_u64(&reader) == UINT64_C(0xff0e0d0c0b0a0908));
	assert_true(reader_ok(&reader));
	assert_int_equal(reader.left, 0);
}

static void reading_past_the_end_is_remembered(void **state)
{
	static const uint8_t data[] = {0xff, 0xff, 0xff};
	struct reader reader = reader_of(span_of(data, sizeof data));
	struct span span;

	assert_int_equal(reader_u32(&reader), 0);
	assert_false(reader_ok(&reader));
	/* Three bytes are left, but nothing after the failure is to be believed. */
	assert_int_equal(reader_u8(&reader), 0);
	span = reader_take(&reader, 1);
	assert_int_equal(span.length, 0);
	assert_non_null(span.data);
	reader = reader_of(span_of(data, sizeof data));
	span = reader_take(&reader, SIZE_MAX);
	assert_int_equal(span.length, 0);
	assert_false(reader_ok(&reader));
}

static void taking_everything_is_allowed(void **state)
{
	static const uint8_t data[] = {1, 2, 3};
	struct reader reader = reader_of(span_of(data, sizeof data));

	assert_int_equal(reader_take(&reader, 3).length, 3);
	assert_int_equal(reader_take(&reader, 0).length, 0);
	assert_true(reader_ok(&reader));
}

static void spans_compare_whole(void **state)
{
	autofree char *copy = span_to_string(span_of("ab\0cd", 5));

	assert_true(span_equals(text_of("abc"), "abc"));
	assert_false(span_equals(text_of("abc"), "ab"));
	assert_false(span_equals(text_of("ab"), "abc"));
	assert_false(span_equals(span_of("ab\0", 3), "ab"));
	assert_true(span_equals(span_of("", 0), ""));
	assert_memory_equal(copy, "ab\0cd", 6);
}

static void fail_says_what_and_why(void **state)
{
	struct error err = {0};

	assert_int_equal(fail(&err, ENOENT, "open \"%s\"", "x"), -ENOENT);
	assert_int_equal(err.number, ENOENT);
	assert_string_equal(err.text, "open \"x\": No such file or directory");
	assert_int_equal(fail_wrap(&err, "template %d", 7), -ENOENT);
	assert_string_equal(err.text, "template 7: open \"x\": No such file or directory");
	assert_int_equal(refuse(&err, EINVAL, "no"), -EINVAL);
	assert_string_equal(err.text, "no");
}

static void fail_without_a_number_or_an_object(void **state)
{
	struct error err = {0};

	assert_int_equal(fail(&err, 0, "odd"), -EIO);
	assert_int_equal(err.number, EIO);
	assert_string_equal(err.text, "odd");
	assert_int_equal(fail(NULL, EPERM, "x"), -EPERM);
	assert_int_equal(refuse(NULL, EPERM, "x"), -EPERM);
	assert_int_equal(fail_wrap(NULL, "x"), -EIO);
	assert_int_equal(fail(&err, 4095, "x"), -4095);
	assert_string_equal(err.text, "x: unknown error");
}

static void long_texts_are_cut_and_terminated(void **state)
{
	char word[2 * ERROR_TEXT_MAX];
	struct error err = {0};

	memset(word, 'w', sizeof word);
	word[sizeof word - 1] = '\0';
	fail(&err, ENOENT, "%s", word);
	assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
	for (int i = 0; i < 5; i++)
		fail_wrap(&err, "%s", word);
	assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
	assert_int_equal(err.number, ENOENT);
}

static void errno_names(void **state)
{
	assert_string_equal(errno_name(EPERM), "EPERM");
	assert_string_equal(errno_name(4095), "errno 4095");
}

static void ownership_moves(void **state)
{
	unsigned before = open_descriptors();
	int kept;
	char *text = strdup("x"), *taken = take_ptr(text);

	{
		autofd one = dup(0);
		autofd two = dup(0);

		kept = take_fd(&one);
		assert_int_equal(one, -1);
		assert_true(two >= 0);
	}
	assert_int_equal(open_descriptors(), before + 1);
	close_fd(&kept);
	close_fd(&kept);
	assert_int_equal(open_descriptors(), before);
	assert_null(text);
	free(taken);
}

/* In a child, whose streams nobody misses: its status is the first that is wrong. */
static void standard_streams_are_filled(void **state)
{
	for (int closed = 0; closed < 8; closed++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			for (int fd = 0; fd < 3; fd++)
				if (closed & 1 << fd)
					close(fd);
			if (descriptors_fill_standard(NULL) < 0)
				_exit(100);
			for (int fd = 0; fd < 3; fd++)
				if (fcntl(fd, F_GETFD) < 0)
					_exit(1 + fd);
			_exit(open("/dev/null", O_RDONLY) < 3 ? 101 : 0);
		}
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static bool size_of(const char *data, size_t length, uint32_t *ret_width, uint32_t *ret_height)
{
	/* On the heap, so that a sanitizer sees what is read beyond its end. */
	uint8_t *copy = malloc(length + !length);
	bool found;

	assert_non_null(copy);
	memcpy(copy, data, length);
	*ret_width = *ret_height = 0;
	found = picture_size((struct span){copy, length}, ret_width, ret_height);
	free(copy);
	return found;
}

static void pictures_say_their_size(void **state)
{
	static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x0f\xa0\0\0\0\x07";
	/* A comment, two bytes that fill up, a table, and the frame. */
	static const char jpeg[] = "\xff\xd8\xff\xfe\0\4ab\xff\xff\xff\xc4\0\5abc"
				   "\xff\xc2\0\x11\x08\x01\x02\x03\x04\3";
	static const char endless[] = "\xff\xd8\xff\xfe\0\0\xff\xc0\0\x11\x08\1\1\1\1";
	uint32_t width, height;

	assert_true(size_of(png, sizeof png - 1, &width, &height));
	assert_int_equal(width, 4000);
	assert_int_equal(height, 7);
	assert_true(size_of(jpeg, sizeof jpeg - 1, &width, &height));
	assert_int_equal(width, 0x304);
	assert_int_equal(height, 0x102);
	for (size_t length = 0; length < sizeof png - 1; length++)
		assert_false(size_of(png, length, &width, &height));
	for (size_t length = 0; length < sizeof jpeg - 2; length++)
		assert_false(size_of(jpeg, length, &width, &height));
	assert_false(size_of(endless, sizeof endless - 1, &width, &height));
	assert_false(size_of("GIF89a..........................", 32, &width, &height));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_and_terminates),
		cmocka_unit_test(grows_over_many_sizes),
		cmocka_unit_test(ceiling_is_exact),
		cmocka_unit_test(failure_is_sticky),
		cmocka_unit_test(huge_lengths_do_not_wrap),
		cmocka_unit_test(free_keeps_the_ceiling),
		cmocka_unit_test(reads_little_endian),
		cmocka_unit_test(reading_past_the_end_is_remembered),
		cmocka_unit_test(taking_everything_is_allowed),
		cmocka_unit_test(spans_compare_whole),
		cmocka_unit_test(fail_says_what_and_why),
		cmocka_unit_test(fail_without_a_number_or_an_object),
		cmocka_unit_test(long_texts_are_cut_and_terminated),
		cmocka_unit_test(errno_names),
		cmocka_unit_test(ownership_moves),
		cmocka_unit_test(standard_streams_are_filled),
		cmocka_unit_test(pictures_say_their_size),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
