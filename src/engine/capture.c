/* SPDX-License-Identifier: Apache-2.0 */
/* capture: stdout and stderr of a run, within its output limit.
 *
 * The limit is for both streams together. Without truncation the first bytes
 * up to the limit are kept and the run is ended. With it, half of the limit is
 * for the beginning of both and a quarter each for their ends. */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

static uint64_t kept(const struct capture streams[2])
{
	return streams[0].head.length + streams[1].head.length;
}

static void add_to_tail(struct capture *capture, const uint8_t *data, size_t length, size_t size)
{
	if (size == 0) {
		capture->dropped += length;
		return;
	}
	if (length > size) {
		capture->dropped += length - size;
		data += length - size;
		length = size;
	}
	while (length > 0) {
		size_t here;

		if (capture->tail.length < size) {
			here = size - capture->tail.length;
			if (here > length)
				here = length;
			if (bytes_append(&capture->tail, data, here) < 0)
				return;
		} else {
			here = size - capture->tail_at;
			if (here > length)
				here = length;
			memcpy(capture->tail.data + capture->tail_at, data, here);
			capture->tail_at = (capture->tail_at + here) % size;
			capture->dropped += here;
		}
		data += here;
		length -= here;
	}
}

size_t capture_add(struct capture streams[2], int which, const void *data, size_t length,
		   uint64_t limit, bool truncate)
{
	struct capture *capture = &streams[which];
	uint64_t head_limit = truncate ? limit / 2 : limit;
	uint64_t used = kept(streams);
	size_t within = used >= head_limit           ? 0
			: length > head_limit - used ? (size_t)(head_limit - used)
						     : length;

	capture->total += length;
	/* Once something was left out of a stream, its head is closed. */
	if (capture->tail.length > 0 || capture->dropped > 0)
		within = 0;
	/* The limit is the bound here, also where it is above BYTES_CEILING. */
	capture->head.ceiling = (size_t)head_limit + 1;
	if (bytes_append(&capture->head, data, within) < 0) {
		capture->head.failed = 0;
		within = 0;
	}
	if (within < length) {
		if (truncate)
			add_to_tail(capture, (const uint8_t *)data + within, length - within,
				    (size_t)limit / 4);
		else
			capture->dropped += length - within;
	}
	return within;
}

void capture_spans(struct capture *capture, struct span spans[CAPTURE_SPANS_MAX])
{
	const struct bytes *tail = &capture->tail;
	size_t at = capture->tail_at;

	spans[0] = bytes_span(&capture->head);
	if (tail->length == 0)
		return;
	if (capture->dropped > 0)
		snprintf(capture->gap, sizeof capture->gap, "\n[… %llu bytes left out …]\n",
			 (unsigned long long)capture->dropped);
	spans[1] = (struct span){(const uint8_t *)capture->gap, strlen(capture->gap)};
	spans[2] = (struct span){tail->data + at, tail->length - at};
	spans[3] = (struct span){tail->data, at};
}

void capture_text(struct capture *capture, struct bytes *out)
{
	struct span spans[CAPTURE_SPANS_MAX] = {0};

	capture_spans(capture, spans);
	out->ceiling = capture->head.length + capture->tail.length + 256;
	for (size_t i = 0; i < CAPTURE_SPANS_MAX; i++)
		bytes_append(out, spans[i].data, spans[i].length);
}

void capture_free(struct capture *capture)
{
	bytes_free(&capture->head);
	bytes_free(&capture->tail);
}
