/* SPDX-License-Identifier: Apache-2.0 */
/* limits: see limits.h. */
#include "policy/limits.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct limit_info limit_infos[] = {
#define LIMIT_INFO(name, option, unit, initial, least, most) \
	{#name, option, unit, initial, least, most, offsetof(struct limits, name)},
	LIMIT_TABLE(LIMIT_INFO)
#undef LIMIT_INFO
};

const size_t limit_count = ARRAY_LENGTH(limit_infos);

struct limits limits_default(void)
{
	struct limits limits;

	for (size_t i = 0; i < limit_count; i++)
		*limit_at(&limits, &limit_infos[i]) = limit_infos[i].initial;
	return limits;
}

const struct limit_info *limit_find(const char *name)
{
	for (size_t i = 0; i < limit_count; i++)
		if (strcmp(limit_infos[i].name, name) == 0)
			return &limit_infos[i];
	return NULL;
}

const struct limit_info *limit_find_option(const char *option)
{
	for (size_t i = 0; i < limit_count; i++)
		if (strcmp(limit_infos[i].option, option) == 0)
			return &limit_infos[i];
	return NULL;
}

void unit_describe(enum limit_unit unit, uint64_t value, char *ret_text, size_t size)
{
	static const struct {
		uint64_t bytes;
		const char *name;
	} sizes[] = {{GIB, "GiB"}, {MIB, "MiB"}, {KIB, "KiB"}};

	switch (unit) {
	case LIMIT_UNIT_MS:
		if (value % 1000 == 0)
			snprintf(ret_text, size, "%" PRIu64 " s", value / 1000);
		else
			snprintf(ret_text, size, "%" PRIu64 " ms", value);
		return;
	case LIMIT_UNIT_BYTES:
		for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
			if (value >= sizes[i].bytes && value % sizes[i].bytes == 0) {
				snprintf(ret_text, size, "%" PRIu64 " %s", value / sizes[i].bytes,
					 sizes[i].name);
				return;
			}
		}
		snprintf(ret_text, size, "%" PRIu64 " bytes", value);
		return;
	case LIMIT_UNIT_COUNT:
		break;
	}
	snprintf(ret_text, size, "%" PRIu64, value);
}

void limit_describe(const struct limit_info *info, uint64_t value, char *ret_text, size_t size)
{
	unit_describe(info->unit, value, ret_text, size);
}

int limit_set_number(struct limits *limits, const struct limit_info *info, uint64_t number,
		     struct error *err)
{
	char least[32], most[32], given[32];

	if (number < info->least || number > info->most) {
		limit_describe(info, info->least, least, sizeof least);
		limit_describe(info, info->most, most, sizeof most);
		limit_describe(info, number, given, sizeof given);
		return refuse(err, ERANGE, "limit %s: %s is out of range (%s to %s)", info->name,
			      given, least, most);
	}
	*limit_at(limits, info) = number;
	return 0;
}

static int multiplier(enum limit_unit unit, const char *suffix, uint64_t *ret_factor)
{
	static const struct {
		enum limit_unit unit;
		const char *suffix;
		uint64_t factor;
	} suffixes[] = {
		{LIMIT_UNIT_MS, "", 1000},      {LIMIT_UNIT_MS, "ms", 1},
		{LIMIT_UNIT_MS, "s", 1000},     {LIMIT_UNIT_MS, "m", 60000},
		{LIMIT_UNIT_MS, "h", 3600000},  {LIMIT_UNIT_BYTES, "", 1},
		{LIMIT_UNIT_BYTES, "K", KIB},   {LIMIT_UNIT_BYTES, "M", MIB},
		{LIMIT_UNIT_BYTES, "G", GIB},   {LIMIT_UNIT_BYTES, "KiB", KIB},
		{LIMIT_UNIT_BYTES, "MiB", MIB}, {LIMIT_UNIT_BYTES, "GiB", GIB},
		{LIMIT_UNIT_BYTES, "KB", KIB},  {LIMIT_UNIT_BYTES, "MB", MIB},
		{LIMIT_UNIT_BYTES, "GB", GIB},  {LIMIT_UNIT_COUNT, "", 1},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
		if (suffixes[i].unit == unit && strcasecmp(suffixes[i].suffix, suffix) == 0) {
			*ret_factor = suffixes[i].factor;
			return 0;
		}
	}
	return -EINVAL;
}

const char *unit_examples(enum limit_unit unit)
{
	static const char *const examples[] = {
		[LIMIT_UNIT_MS] = "5s, 250ms or 2m",
		[LIMIT_UNIT_BYTES] = "100M, 64K or 1G",
		[LIMIT_UNIT_COUNT] = "64",
	};

	return examples[unit];
}

/* Decimal digits with an optional fraction ("1.5s"); no sign, no exponent, no
 * white space: strtoull would take "-1" for the largest number there is. */
int unit_parse(enum limit_unit unit, const char *text, uint64_t *ret_number)
{
	uint64_t whole = 0, fraction = 0, scale = 1, factor, number;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
			return -ERANGE;
	if (at == text)
		return -EINVAL;
	if (*at == '.' && unit != LIMIT_UNIT_COUNT) {
		const char *digits = ++at;

		for (; *at >= '0' && *at <= '9' && scale < 1000000; at++) {
			fraction = fraction * 10 + (uint64_t)(*at - '0');
			scale *= 10;
		}
		if (at == digits)
			return -EINVAL;
	}
	if (multiplier(unit, at, &factor) < 0)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, factor, &number) ||
	    __builtin_add_overflow(number, fraction * factor / scale, &number))
		return -ERANGE;
	*ret_number = number;
	return 0;
}

int limit_set_text(struct limits *limits, const struct limit_info *info, const char *text,
		   struct error *err)
{
	uint64_t number;
	int r = unit_parse(info->unit, text, &number);

	if (r == -EINVAL)
		return refuse(err, EINVAL, "limit %s: cannot read \"%.40s\"; write it like %s",
			      info->name, text, unit_examples(info->unit));
	if (r < 0)
		return refuse(err, ERANGE, "limit %s: \"%.40s\" is too large", info->name, text);
	return limit_set_number(limits, info, number, err);
}

int limits_validate(const struct limits *limits, struct error *err)
{
	struct limits copy;

	for (size_t i = 0; i < limit_count; i++) {
		int r = limit_set_number(&copy, &limit_infos[i], limit_get(limits, &limit_infos[i]),
					 err);
		if (r < 0)
			return r;
	}
	return 0;
}

void limits_encode(const struct limits *limits, struct bytes *out, uint16_t field)
{
	uint8_t value[8 * ARRAY_LENGTH(limit_infos)], *at = value;

	for (size_t i = 0; i < limit_count; i++) {
		uint64_t number = limit_get(limits, &limit_infos[i]);

		for (size_t shift = 0; shift < 64; shift += 8)
			*at++ = (uint8_t)(number >> shift);
	}
	frame_put(out, field, value, sizeof value);
}

int limits_decode(struct span value, struct limits *ret_limits, struct error *err)
{
	struct reader reader = reader_of(value);
	struct limits limits;
	int r;

	for (size_t i = 0; i < limit_count; i++)
		*limit_at(&limits, &limit_infos[i]) = reader_u64(&reader);
	if (!reader_ok(&reader) || reader.left != 0)
		return refuse(err, EBADMSG, "limits: not a list of %zu numbers", limit_count);
	r = limits_validate(&limits, err);
	if (r == 0)
		*ret_limits = limits;
	return r;
}
