/* SPDX-License-Identifier: Apache-2.0 */
/* limits: the limits of a run (all other bounds: base/bounds.h).
 *
 * The table below drives the command line's options, the request's JSON keys,
 * validation, the result object and the documents. */
#ifndef EXECPY_POLICY_LIMITS_H
#define EXECPY_POLICY_LIMITS_H

#include "base/bounds.h"
#include "base/error.h"
#include "proto/frame.h"

#include <stddef.h>
#include <stdint.h>

/* field, command-line option, unit, default, least, most.
 *
 * 5 s and 100 MB are the defaults that the description of execute_python
 * names; the memory default is 100 MiB, as result.md writes it. Least and most
 * are ours: below the least no Python program gets as far as its first line,
 * above the most a limit no longer limits. Zero and "unlimited" do not exist. */
#define LIMIT_TABLE(X)                                                                \
	X(time_ms, "--time", LIMIT_UNIT_MS, 5000, 10, 24ull * 3600 * 1000)            \
	X(cpu_ms, "--cpu", LIMIT_UNIT_MS, 5000, 10, 24ull * 3600 * 1000)              \
	X(memory_bytes, "--memory", LIMIT_UNIT_BYTES, 100 * MIB, 4 * MIB, 1024 * GIB) \
	X(processes, "--processes", LIMIT_UNIT_COUNT, 64, 1, 4096)                    \
	X(output_bytes, "--output", LIMIT_UNIT_BYTES, 1 * MIB, 0, 1 * GIB)            \
	X(disk_bytes, "--disk", LIMIT_UNIT_BYTES, 64 * MIB, 64 * KIB, 64 * GIB)

enum limit_unit {
	LIMIT_UNIT_MS,    /* "5s", "250ms", "2m", "1h"; a bare number is seconds */
	LIMIT_UNIT_BYTES, /* "100M", "64K", "1G", "1048576"; powers of 1024 */
	LIMIT_UNIT_COUNT,
};

/* A number in words, for limits and whatever else people write: -EINVAL when
 * it cannot be read, -ERANGE when it fits no number; without a message. */
int unit_parse(enum limit_unit unit, const char *text, uint64_t *ret_number);
const char *unit_examples(enum limit_unit unit); /* "100M, 64K or 1G" */
/* "5 s", "100 MiB", "64". */
void unit_describe(enum limit_unit unit, uint64_t value, char *ret_text, size_t size);

struct limits {
#define LIMIT_FIELD(name, option, unit, initial, least, most) uint64_t name;
	LIMIT_TABLE(LIMIT_FIELD)
#undef LIMIT_FIELD
};

struct limit_info {
	const char *name;   /* the JSON key */
	const char *option; /* the command line's */
	enum limit_unit unit;
	uint64_t initial, least, most;
	size_t offset; /* of its uint64_t in struct limits */
};

extern const struct limit_info limit_infos[];
extern const size_t limit_count;

struct limits limits_default(void);

static inline uint64_t *limit_at(struct limits *limits, const struct limit_info *info)
{
	return (uint64_t *)((char *)limits + info->offset);
}

static inline uint64_t limit_get(const struct limits *limits, const struct limit_info *info)
{
	return *(const uint64_t *)((const char *)limits + info->offset);
}

const struct limit_info *limit_find(const char *name);          /* "time_ms"; NULL: none */
const struct limit_info *limit_find_option(const char *option); /* "--time"; NULL: none */

/* Sets one limit from text or number; -EINVAL or -ERANGE with a sentence that
 * names the limit, what was given and what is possible. */
int limit_set_text(struct limits *limits, const struct limit_info *info, const char *text,
		   struct error *err);
int limit_set_number(struct limits *limits, const struct limit_info *info, uint64_t number,
		     struct error *err);
int limits_validate(const struct limits *limits, struct error *err);

/* What a limit is in words. */
void limit_describe(const struct limit_info *info, uint64_t value, char *ret_text, size_t size);

/* As one field of a frame: the table's order, eight bytes each. Decoding
 * validates; -EBADMSG or -ERANGE. */
void limits_encode(const struct limits *limits, struct bytes *out, uint16_t field);
int limits_decode(struct span value, struct limits *ret_limits, struct error *err);

#endif
