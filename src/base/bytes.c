/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: see bytes.h. */
#include "base/bytes.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *bytes_reserve(struct bytes *bytes, size_t length)
{
	size_t ceiling = bytes->ceiling ? bytes->ceiling : BYTES_CEILING;
	size_t wanted, capacity;
	uint8_t *grown;

	if (bytes->failed)
		return NULL;
	if (length > ceiling || bytes->length > ceiling - length) {
		bytes->failed = -E2BIG;
		return NULL;
	}
	wanted = bytes->length + length;
	if (wanted <= bytes->capacity && bytes->data)
		return bytes->data + bytes->length;
	capacity = bytes->capacity ? bytes->capacity : 256;
	while (capacity < wanted)
		capacity *= 2;
	grown = realloc(bytes->data, capacity);
	if (!grown) {
		bytes->failed = -ENOMEM;
		return NULL;
	}
	bytes->data = grown;
	bytes->capacity = capacity;
	return bytes->data + bytes->length;
}

int bytes_append(struct bytes *bytes, const void *data, size_t length)
{
	uint8_t *room = bytes_reserve(bytes, length);

	if (!room)
		return bytes->failed;
	if (length)
		memcpy(room, data, length);
	bytes->length += length;
	return 0;
}

int bytes_append_text(struct bytes *bytes, const char *text)
{
	return bytes_append(bytes, text, strlen(text));
}

int bytes_append_format(struct bytes *bytes, const char *format, ...)
{
	va_list args;
	uint8_t *room;
	int length;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		return bytes->failed = -EINVAL;
	room = bytes_reserve(bytes, (size_t)length + 1);
	if (!room)
		return bytes->failed;
	va_start(args, format);
	vsnprintf((char *)room, (size_t)length + 1, format, args);
	va_end(args);
	bytes->length += (size_t)length;
	return 0;
}

void bytes_clear(struct bytes *bytes)
{
	bytes->length = 0;
	bytes->failed = 0;
}

void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){.ceiling = bytes->ceiling};
}

struct span reader_take(struct reader *reader, size_t length)
{
	struct span span = {reader->at, length};

	if (reader->bad || length > reader->left) {
		reader->bad = true;
		return (struct span){(const uint8_t *)"", 0};
	}
	reader->at += length;
	reader->left -= length;
	return span;
}

static uint64_t little_endian(struct reader *reader, size_t width)
{
	struct span span = reader_take(reader, width);
	uint64_t value = 0;

	for (size_t i = span.length; i-- > 0;)
		value = value << 8 | span.data[i];
	return value;
}

uint8_t reader_u8(struct reader *reader)
{
	return (uint8_t)little_endian(reader, 1);
}

uint16_t reader_u16(struct reader *reader)
{
	return (uint16_t)little_endian(reader, 2);
}

uint32_t reader_u32(struct reader *reader)
{
	return (uint32_t)little_endian(reader, 4);
}

uint64_t reader_u64(struct reader *reader)
{
	return little_endian(reader, 8);
}

char *span_to_string(struct span span)
{
	char *copy = malloc(span.length + 1);

	if (copy) {
		if (span.length)
			memcpy(copy, span.data, span.length);
		copy[span.length] = '\0';
	}
	return copy;
}

bool span_equals(struct span span, const char *text)
{
	return strlen(text) == span.length && memcmp(span.data, text, span.length) == 0;
}

int text_number(const char *text)
{
	int number = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || number > (INT_MAX - 9) / 10)
			return -1;
		number = 10 * number + (*text - '0');
	}
	return number;
}
