/* SPDX-License-Identifier: Apache-2.0 */
/* picture: see picture.h. */
#include "base/picture.h"

#include <string.h>

#define PNG_HEAD_BYTES 24 /* signature, and IHDR up to its height */

static uint32_t big_endian(const uint8_t *data, size_t bytes)
{
	uint32_t number = 0;

	for (size_t i = 0; i < bytes; i++)
		number = number << 8 | data[i];
	return number;
}

static bool png_size(struct span data, uint32_t *ret_width, uint32_t *ret_height)
{
	static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

	if (data.length < PNG_HEAD_BYTES || memcmp(data.data, signature, sizeof signature) != 0 ||
	    memcmp(data.data + 12, "IHDR", 4) != 0)
		return false;
	*ret_width = big_endian(data.data + 16, 4);
	*ret_height = big_endian(data.data + 20, 4);
	return true;
}

/* SOF0 to SOF15 begin a frame; DHT, JPG and DAC stand among them. */
static bool begins_frame(uint8_t marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
	       marker != 0xcc;
}

/* Segments are markers with a length, until the one that begins a frame. */
static bool jpeg_size(struct span data, uint32_t *ret_width, uint32_t *ret_height)
{
	size_t at = 2;

	if (data.length < 4 || data.data[0] != 0xff || data.data[1] != 0xd8)
		return false;
	while (data.length - at >= 9) {
		const uint8_t *segment = data.data + at;
		size_t length = big_endian(segment + 2, 2);

		if (segment[0] != 0xff)
			return false;
		if (segment[1] == 0xff) { /* fills up */
			at++;
			continue;
		}
		if (begins_frame(segment[1])) {
			*ret_height = big_endian(segment + 5, 2);
			*ret_width = big_endian(segment + 7, 2);
			return true;
		}
		if (length < 2 || length > data.length - at - 2)
			return false;
		at += 2 + length;
	}
	return false;
}

bool picture_size(struct span data, uint32_t *ret_width, uint32_t *ret_height)
{
	return png_size(data, ret_width, ret_height) || jpeg_size(data, ret_width, ret_height);
}
