/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: a growing buffer with a ceiling, and a reader that cannot overrun.
 *
 * All bytes that come from a guest, a client or another process are read
 * through struct reader. A reader that was asked for more than is there turns
 * `bad` and from then on gives zeros and empty spans; check reader_ok() once
 * at the end instead of after each call. */
#ifndef EXECPY_BASE_BYTES_H
#define EXECPY_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A borrowed run of bytes; not terminated. */
struct span {
	const uint8_t *data;
	size_t length;
};

struct bytes {
	uint8_t *data;
	size_t length;
	size_t capacity;
	size_t ceiling; /* appending beyond fails with -E2BIG; 0: BYTES_CEILING */
	int failed;     /* first failure (negative errno), sticky */
};

/* The ceiling of a buffer that names none: no single object of ours is larger. */
#define BYTES_CEILING ((size_t)256 << 20)

/* Each append returns 0, -E2BIG at the ceiling or -ENOMEM, and remembers the
 * first failure in `failed`: a series may be checked once at its end. */
int bytes_append(struct bytes *bytes, const void *data, size_t length);
int bytes_append_text(struct bytes *bytes, const char *text);
int bytes_append_format(struct bytes *bytes, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Makes room for `length` more bytes and returns where to write them, or NULL.
 * The caller adds what it wrote to `length`. */
uint8_t *bytes_reserve(struct bytes *bytes, size_t length);
void bytes_clear(struct bytes *bytes); /* keeps the memory */
void bytes_free(struct bytes *bytes);
#define autobytes __attribute__((cleanup(bytes_free))) struct bytes

static inline struct span bytes_span(const struct bytes *bytes)
{
	return (struct span){bytes->data, bytes->length};
}

struct reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static inline struct reader reader_of(struct span span)
{
	return (struct reader){span.data, span.length, false};
}

struct span reader_take(struct reader *reader, size_t length);
uint8_t reader_u8(struct reader *reader);
uint16_t reader_u16(struct reader *reader); /* little endian, like all of ours */
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);

/* True when nothing was read past the end. */
static inline bool reader_ok(const struct reader *reader)
{
	return !reader->bad;
}

/* A malloc'ed, terminated copy; NULL when memory is out. NUL bytes inside are
 * kept, so the copy may look shorter to string functions. */
char *span_to_string(struct span span);
/* A text of decimal digits alone, as names in /proc are; -1 for any other. */
int text_number(const char *text);
bool span_equals(struct span span, const char *text);

#endif
