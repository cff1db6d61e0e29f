/* SPDX-License-Identifier: Apache-2.0 */
/* json_stream: JSON that is made while it is sent, in pieces of bounded size. */
#ifndef EXECPY_ENGINE_JSON_STREAM_H
#define EXECPY_ENGINE_JSON_STREAM_H

#include "engine/json.h"

struct json_stream {
	struct bytes text; /* what was written, without its long parts */
	struct json_parts parts;
	size_t at, part;    /* how far it was given out */
	size_t span;        /* inside of a part: which of its spans, */
	size_t offset;      /* how far in it, */
	uint8_t carried[4]; /* and the beginning of a sequence that the next piece ends */
	size_t carried_length;
};

/* For the writer: what it writes goes into the stream. Text may be appended before and
 * behind. What the parts point at must stay until all was given out. */
struct json json_stream_writer(struct json_stream *stream);
/* Whether nothing is left out: then its text is all of it, and may be taken. */
bool json_stream_is_whole(const struct json_stream *stream);
/* Appends the next piece, of some 100 KiB at most before it is escaped. False when
 * there is no more; stream->text.failed and out->failed say when memory was out. */
bool json_stream_next(struct json_stream *stream, struct bytes *out);
void json_stream_free(struct json_stream *stream);

#endif
