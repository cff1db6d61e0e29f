/* SPDX-License-Identifier: Apache-2.0 */
/* json_stream: see json_stream.h. */
#include "engine/json_stream.h"

#include "base/bounds.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

/* A multiple of three, so that base64 has padding at its end only. */
#define DATA_BYTES (48 * KIB)

struct json json_stream_writer(struct json_stream *stream)
{
	stream->text.ceiling = SIZE_MAX / 4;
	return (struct json){.out = &stream->text, .parts = &stream->parts};
}

bool json_stream_is_whole(const struct json_stream *stream)
{
	return stream->parts.count == 0;
}

/* The next bytes of a part, copied from as many of its spans as it takes. */
static size_t take(struct json_stream *stream, const struct json_part *part, uint8_t *to,
		   size_t most)
{
	size_t taken = 0;

	while (taken < most && stream->span < JSON_SPANS_MAX) {
		struct span span = part->spans[stream->span];
		size_t here = span.length - stream->offset;

		if (here > most - taken)
			here = most - taken;
		if (here > 0)
			memcpy(to + taken, span.data + stream->offset, here);
		taken += here;
		stream->offset += here;
		if (stream->offset < span.length)
			break;
		stream->span++;
		stream->offset = 0;
	}
	return taken;
}

static bool has_more(const struct json_stream *stream, const struct json_part *part)
{
	for (size_t i = stream->span; i < JSON_SPANS_MAX; i++)
		if (part->spans[i].length > (i == stream->span ? stream->offset : 0))
			return true;
	return false;
}

static void give_text(struct json_stream *stream, const struct json_part *part, struct bytes *out)
{
	uint8_t piece[JSON_PART_BYTES];
	size_t length = stream->carried_length, done;
	bool lossy = false, more;

	memcpy(piece, stream->carried, length);
	length += take(stream, part, piece + length, sizeof piece - length);
	more = has_more(stream, part);
	done = json_escape(out, (struct span){piece, length}, more, &lossy);
	stream->carried_length = length - done;
	memcpy(stream->carried, piece + done, length - done);
}

static void give_data(struct json_stream *stream, const struct json_part *part, struct bytes *out)
{
	uint8_t piece[DATA_BYTES];
	size_t length = take(stream, part, piece, sizeof piece);
	char *room = (char *)bytes_reserve(out, BASE64_ENCODE_RAW_LENGTH(length));

	if (!room)
		return;
	base64_encode_raw(room, length, piece);
	out->length += BASE64_ENCODE_RAW_LENGTH(length);
}

bool json_stream_next(struct json_stream *stream, struct bytes *out)
{
	const struct json_part *part =
		stream->part < stream->parts.count ? &stream->parts.list[stream->part] : NULL;
	size_t until = part ? part->at : stream->text.length;

	if (stream->parts.failed)
		stream->text.failed = -ENOMEM;
	if (stream->text.failed)
		return false;
	if (stream->at < until) {
		size_t length = until - stream->at;

		if (length > JSON_PART_BYTES)
			length = JSON_PART_BYTES;
		bytes_append(out, stream->text.data + stream->at, length);
		stream->at += length;
		return true;
	}
	if (!part)
		return false;
	if (part->base64)
		give_data(stream, part, out);
	else
		give_text(stream, part, out);
	if (!has_more(stream, part)) {
		stream->part++;
		stream->span = stream->offset = stream->carried_length = 0;
	}
	return true;
}

void json_stream_free(struct json_stream *stream)
{
	bytes_free(&stream->text);
	free(stream->parts.list);
	*stream = (struct json_stream){0};
}
