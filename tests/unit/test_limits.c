/* SPDX-License-Identifier: Apache-2.0 */
/* test_limits: what is and is not a limit, in text and in numbers (R25). */
#include "unit.h"

#include "base/cleanup.h"
#include "policy/limits.h"

#include <errno.h>

static int parse(const char *option, const char *text, uint64_t *ret_value)
{
	const struct limit_info *info = limit_find_option(option);
	struct limits limits = limits_default();
	struct error err = {0};
	int r;

	assert_non_null(info);
	r = limit_set_text(&limits, info, text, &err);
	*ret_value = limit_get(&limits, info);
	if (r < 0) {
		/* Refused as a whole: the default stands, and the sentence names the limit. */
		assert_int_equal(*ret_value, info->initial);
		assert_non_null(strstr(err.text, info->name));
		assert_null(strchr(err.text, '\n'));
		assert_int_equal(err.number, -r);
	}
	return r;
}

static void units_and_fractions(void **state)
{
	static const struct {
		const char *option, *text;
		uint64_t value;
	} cases[] = {
		{"--time", "5", 5000},
		{"--time", "5s", 5000},
		{"--time", "5S", 5000},
		{"--time", "250ms", 250},
		{"--time", "2m", 120000},
		{"--time", "1h", 3600000},
		{"--time", "24h", 86400000},
		{"--time", "0.5", 500},
		{"--time", "1.5s", 1500},
		{"--time", "0.010", 10},
		{"--time", "0.05m", 3000},
		{"--time", "00005", 5000},
		{"--time", "1.999999s", 1999},
		{"--cpu", "10ms", 10},
		{"--memory", "100M", 104857600},
		{"--memory", "4194304", 4194304},
		{"--memory", "1G", 1073741824},
		{"--memory", "1.5G", 1610612736},
		{"--memory", "4096K", 4194304},
		{"--memory", "100MiB", 104857600},
		{"--memory", "100mb", 104857600},
		{"--memory", "1024G", UINT64_C(1) << 40},
		{"--processes", "1", 1},
		{"--processes", "4096", 4096},
		{"--output", "0", 0},
		{"--output", "0.5K", 512},
		{"--disk", "64K", 65536},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint64_t value = 0;
		int r = parse(cases[i].option, cases[i].text, &value);

		if (r != 0 || value != cases[i].value)
			fail_msg("%s %s: %d, %llu", cases[i].option, cases[i].text, r,
				 (unsigned long long)value);
	}
}

static void what_is_not_a_number_is_refused(void **state)
{
	static const char *const texts[] = {
		"",    "-1",   "-0",  "+5",        " 5",   "5 ",  "5 s",   "5s ",      "1e3",
		"1E3", "0x10", "inf", "nan",       "5,5",  "5.",  ".5",    "5..5",     "5.5.5",
		"s",   "ms",   "5ss", "5d",        "5mss", "\t5", "5\n",   "five",     "5s5",
		"--5", "5-",   "5%",  "unlimited", "none", "0b1", "1_000", "\xd9\xa5", "5\xc2\xa0s",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
		for (size_t j = 0; j < limit_count; j++) {
			uint64_t value;
			int r = parse(limit_infos[j].option, texts[i], &value);

			if (r != -EINVAL)
				fail_msg("%s \"%s\": %d, %llu", limit_infos[j].option, texts[i], r,
					 (unsigned long long)value);
		}
}

static void units_of_others_are_refused(void **state)
{
	uint64_t value;

	assert_int_equal(parse("--time", "5M5", &value), -EINVAL);
	assert_int_equal(parse("--time", "5G", &value), -EINVAL);
	assert_int_equal(parse("--memory", "5s", &value), -EINVAL);
	assert_int_equal(parse("--memory", "5T", &value), -EINVAL);
	assert_int_equal(parse("--processes", "64K", &value), -EINVAL);
	assert_int_equal(parse("--processes", "1.0", &value), -EINVAL);
}

static void zero_huge_and_overflowing_are_refused(void **state)
{
	static const char *const texts[] = {
		"9223372036854775807",  /* 2^63 - 1 */
		"9223372036854775808",  /* 2^63 */
		"18446744073709551615", /* 2^64 - 1 */
		"18446744073709551616", /* 2^64 */
		"18446744073709551617", /* wraps to 1 */
		"36893488147419103232", /* 2^65 */
		"18446744073709556616", /* wraps to 5000 */
		"99999999999999999999999999999999999999999999999999999999999999999999",
	};
	static const char *const wrapping[] = {
		"18014398509481984K", /* 2^54 K = 2^64 */
		"17592186044416M",    /* 2^44 M = 2^64 */
		"17179869184G",       /* 2^34 G = 2^64 */
		"17179869185G",       /* wraps to 1 G */
		"17179869183.999999G",
	};
	uint64_t value;

	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
		for (size_t j = 0; j < limit_count; j++)
			assert_int_equal(parse(limit_infos[j].option, texts[i], &value), -ERANGE);
	for (size_t i = 0; i < ARRAY_LENGTH(wrapping); i++) {
		assert_int_equal(parse("--memory", wrapping[i], &value), -ERANGE);
		assert_int_equal(parse("--disk", wrapping[i], &value), -ERANGE);
	}
	assert_int_equal(parse("--time", "5124095576030431h", &value), -ERANGE);
	assert_int_equal(parse("--time", "0", &value), -ERANGE);
	assert_int_equal(parse("--time", "0.009", &value), -ERANGE);
	assert_int_equal(parse("--time", "0.000001", &value), -ERANGE);
	assert_int_equal(parse("--cpu", "0ms", &value), -ERANGE);
	assert_int_equal(parse("--memory", "0", &value), -ERANGE);
	assert_int_equal(parse("--processes", "0", &value), -ERANGE);
	assert_int_equal(parse("--disk", "0", &value), -ERANGE);
}

static void the_edges_of_the_table(void **state)
{
	for (size_t i = 0; i < limit_count; i++) {
		const struct limit_info *info = &limit_infos[i];
		struct limits limits = limits_default();
		struct error err = {0};

		assert_int_equal(limit_get(&limits, info), info->initial);
		assert_int_equal(limit_set_number(&limits, info, info->least, &err), 0);
		assert_int_equal(limit_get(&limits, info), info->least);
		assert_int_equal(limit_set_number(&limits, info, info->most, &err), 0);
		assert_int_equal(limit_get(&limits, info), info->most);
		assert_int_equal(limit_set_number(&limits, info, info->most + 1, &err), -ERANGE);
		if (info->least > 0)
			assert_int_equal(limit_set_number(&limits, info, info->least - 1, &err),
					 -ERANGE);
		assert_int_equal(limit_get(&limits, info), info->most);
		/* Doubled as a sum of two never wraps, and as microseconds neither. */
		assert_true(info->most <= UINT64_MAX / 1000000);
		assert_ptr_equal(limit_find(info->name), info);
		assert_ptr_equal(limit_find_option(info->option), info);
	}
	assert_null(limit_find("nothing"));
	assert_null(limit_find_option("--nothing"));
	assert_null(limit_find(""));
}

static void the_defaults_are_those_of_the_description(void **state)
{
	struct limits limits = limits_default();

	assert_int_equal(limits.time_ms, 5000);
	assert_int_equal(limits.cpu_ms, 5000);
	assert_int_equal(limits.memory_bytes, 104857600);
	assert_int_equal(limits.processes, 64);
	assert_int_equal(limits.output_bytes, 1048576);
	assert_int_equal(limits.disk_bytes, 67108864);
}

static void over_the_wire(void **state)
{
	struct limits limits = limits_default(), found = {0};
	struct error err = {0};
	autobytes body = {0};
	struct reader reader;
	struct field field;

	limits.time_ms = 1234;
	limits_encode(&limits, &body, 7);
	reader = reader_of(bytes_span(&body));
	assert_int_equal(frame_next_field(&reader, &field), 1);
	assert_int_equal(field.name, 7);
	assert_int_equal(limits_decode(field.value, &found, &err), 0);
	assert_memory_equal(&limits, &found, sizeof limits);
	for (size_t length = 0; length < field.value.length; length++)
		assert_int_equal(limits_decode(span_of(field.value.data, length), &found, &err),
				 -EBADMSG);
	bytes_append(&body, "", 1);
	assert_int_equal(limits_decode(span_of(body.data + 6, body.length - 6), &found, &err),
			 -EBADMSG);
	/* Values are validated there, too: a bad one is not clipped. */
	for (size_t i = 0; i < limit_count; i++) {
		struct limits bad = limits_default();
		autobytes other = {0};

		*limit_at(&bad, &limit_infos[i]) = UINT64_MAX;
		assert_int_equal(limits_validate(&bad, &err), -ERANGE);
		limits_encode(&bad, &other, 7);
		assert_int_equal(
			limits_decode(span_of(other.data + 6, other.length - 6), &found, &err),
			-ERANGE);
	}
	assert_memory_equal(&limits, &found, sizeof limits);
}

static void in_words(void **state)
{
	static const struct {
		const char *name;
		uint64_t value;
		const char *words;
	} cases[] = {
		{"time_ms", 5000, "5 s"},
		{"time_ms", 1500, "1500 ms"},
		{"memory_bytes", 100 * MIB, "100 MiB"},
		{"memory_bytes", 3 * GIB, "3 GiB"},
		{"memory_bytes", 1537, "1537 bytes"},
		{"output_bytes", 0, "0 bytes"},
		{"processes", 64, "64"},
	};
	char text[40], tiny[4];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		limit_describe(limit_find(cases[i].name), cases[i].value, text, sizeof text);
		assert_string_equal(text, cases[i].words);
	}
	limit_describe(limit_find("memory_bytes"), 100 * MIB, tiny, sizeof tiny);
	assert_string_equal(tiny, "100");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_and_fractions),
		cmocka_unit_test(what_is_not_a_number_is_refused),
		cmocka_unit_test(units_of_others_are_refused),
		cmocka_unit_test(zero_huge_and_overflowing_are_refused),
		cmocka_unit_test(the_edges_of_the_table),
		cmocka_unit_test(the_defaults_are_those_of_the_description),
		cmocka_unit_test(over_the_wire),
		cmocka_unit_test(in_words),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
