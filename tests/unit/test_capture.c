/* SPDX-License-Identifier: Apache-2.0 */
/* test_capture: stdout and stderr at, around and beyond the output limit. */
#include "unit.h"

#include "base/cleanup.h"
#include "engine/engine.h"

#define LIMIT 1000

struct streams {
	struct capture of[2];
};

static void add(struct streams *streams, int which, size_t length, bool truncate)
{
	static uint8_t piece[8 * LIMIT];

	memset(piece, 'a' + which, sizeof piece);
	while (length > 0) {
		size_t here = length < sizeof piece ? length : sizeof piece;

		capture_add(streams->of, which, piece, here, LIMIT, truncate);
		length -= here;
	}
}

static void release(struct streams *streams)
{
	capture_free(&streams->of[0]);
	capture_free(&streams->of[1]);
	*streams = (struct streams){0};
}

static void the_limit_is_exact(void **state)
{
	for (int difference = -1; difference <= 1; difference++)
		for (int which = 0; which < 2; which++) {
			struct streams streams = {0};
			size_t length = (size_t)(LIMIT + difference);
			uint8_t piece[LIMIT + 1] = {0};
			size_t within = capture_add(streams.of, which, piece, length, LIMIT, false);

			assert_int_equal(within, difference > 0 ? LIMIT : length);
			assert_int_equal(streams.of[which].total, length);
			assert_int_equal(streams.of[which].dropped, difference > 0 ? 1 : 0);
			assert_int_equal(streams.of[which].head.length, within);
			release(&streams);
		}
}

static void the_limit_is_for_both_streams(void **state)
{
	struct streams streams = {0};
	uint8_t byte = 'x';

	add(&streams, 0, LIMIT / 2, false);
	add(&streams, 1, LIMIT / 2, false);
	assert_int_equal(streams.of[0].dropped + streams.of[1].dropped, 0);
	assert_int_equal(capture_add(streams.of, 1, &byte, 1, LIMIT, false), 0);
	assert_int_equal(capture_add(streams.of, 0, &byte, 1, LIMIT, false), 0);
	assert_int_equal(streams.of[0].dropped, 1);
	assert_int_equal(streams.of[1].dropped, 1);
	assert_int_equal(streams.of[0].total, LIMIT / 2 + 1);
	release(&streams);
}

static void byte_by_byte_is_the_same(void **state)
{
	for (int truncate = 0; truncate < 2; truncate++) {
		struct streams whole = {0}, single = {0};
		uint8_t text[5 * LIMIT];
		autobytes one = {0}, other = {0};

		for (size_t i = 0; i < sizeof text; i++) {
			text[i] = (uint8_t)('a' + i % 26);
			capture_add(single.of, 0, &text[i], 1, LIMIT, truncate);
		}
		capture_add(whole.of, 0, text, sizeof text, LIMIT, truncate);
		capture_text(&whole.of[0], &one);
		capture_text(&single.of[0], &other);
		assert_int_equal(one.length, other.length);
		assert_memory_equal(one.data, other.data, one.length);
		assert_int_equal(whole.of[0].dropped, single.of[0].dropped);
		release(&whole);
		release(&single);
	}
}

static void truncation_keeps_head_and_tail(void **state)
{
	static const size_t lengths[] = {
		LIMIT / 2, LIMIT / 2 + 1, LIMIT / 2 + LIMIT / 4, LIMIT / 2 + LIMIT / 4 + 1,
		LIMIT,     10 * LIMIT};

	for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
		struct streams streams = {0};
		size_t length = lengths[i], kept = LIMIT / 2 + LIMIT / 4;
		char *text = malloc(length), line[64];
		autobytes out = {0};

		for (size_t at = 0; at < length; at++)
			text[at] = (char)('a' + at % 26);
		capture_add(streams.of, 0, text, length, LIMIT, true);
		capture_text(&streams.of[0], &out);
		assert_int_equal(streams.of[0].total, length);
		if (length <= kept) {
			assert_int_equal(streams.of[0].dropped, 0);
			assert_int_equal(out.length, length);
			assert_memory_equal(out.data, text, length);
		} else {
			int used = snprintf(line, sizeof line,
					    "\n[\xe2\x80\xa6 %zu bytes left out \xe2\x80\xa6]\n",
					    length - kept);

			assert_int_equal(streams.of[0].dropped, length - kept);
			assert_int_equal(out.length, kept + (size_t)used);
			assert_memory_equal(out.data, text, LIMIT / 2);
			assert_memory_equal(out.data + LIMIT / 2, line, used);
			assert_memory_equal(out.data + LIMIT / 2 + used, text + length - LIMIT / 4,
					    LIMIT / 4);
		}
		free(text);
		release(&streams);
	}
}

static void memory_stays_within_the_limit(void **state)
{
	struct streams streams = {0};

	for (int i = 0; i < 200; i++) {
		add(&streams, i % 2, 7 * LIMIT + 13, true);
		assert_true(streams.of[0].head.length + streams.of[1].head.length <= LIMIT / 2);
		assert_true(streams.of[0].tail.length <= LIMIT / 4);
		assert_true(streams.of[1].tail.length <= LIMIT / 4);
	}
	assert_int_equal(streams.of[0].total, 100 * (7 * LIMIT + 13));
	assert_int_equal(streams.of[0].dropped, streams.of[0].total - streams.of[0].head.length -
							streams.of[0].tail.length);
	release(&streams);
	for (int i = 0; i < 200; i++)
		add(&streams, i % 2, 7 * LIMIT + 13, false);
	assert_int_equal(streams.of[0].head.length + streams.of[1].head.length, LIMIT);
	release(&streams);
}

static void tiny_limits(void **state)
{
	for (uint64_t limit = 0; limit < 10; limit++)
		for (int truncate = 0; truncate < 2; truncate++) {
			struct streams streams = {0};
			struct capture *capture = &streams.of[0];

			for (int i = 0; i < 50; i++)
				capture_add(streams.of, 0, "0123456789", 10, limit, truncate);
			assert_int_equal(capture->total, 500);
			assert_true(capture->head.length + capture->tail.length <= limit);
			assert_int_equal(capture->head.length + capture->tail.length +
						 capture->dropped,
					 500);
			release(&streams);
		}
}

static void nothing_is_nothing(void **state)
{
	struct streams streams = {0};
	autobytes out = {0};

	assert_int_equal(capture_add(streams.of, 0, "", 0, LIMIT, false), 0);
	assert_int_equal(capture_add(streams.of, 0, "", 0, 0, true), 0);
	capture_text(&streams.of[0], &out);
	assert_int_equal(out.length, 0);
	release(&streams);
}

/* The largest limit that can be asked for must be kept, or told as dropped. */
static void what_is_not_kept_is_counted(void **state)
{
	const uint64_t limit = limit_find("output_bytes")->most;
	const size_t piece_bytes = 16 * MIB;
	struct streams streams = {0};
	uint8_t *piece = calloc(1, piece_bytes);

	assert_non_null(piece);
	for (uint64_t done = 0; done < BYTES_CEILING + 2 * piece_bytes; done += piece_bytes)
		capture_add(streams.of, 0, piece, piece_bytes, limit, false);
	assert_int_equal(streams.of[0].head.length + streams.of[0].dropped, streams.of[0].total);
	free(piece);
	release(&streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_is_exact),
		cmocka_unit_test(the_limit_is_for_both_streams),
		cmocka_unit_test(byte_by_byte_is_the_same),
		cmocka_unit_test(truncation_keeps_head_and_tail),
		cmocka_unit_test(memory_stays_within_the_limit),
		cmocka_unit_test(tiny_limits),
		cmocka_unit_test(nothing_is_nothing),
		cmocka_unit_test(what_is_not_kept_is_counted),
	};

	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
