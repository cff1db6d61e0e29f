/* SPDX-License-Identifier: Apache-2.0 */
/* json: a streaming writer, for results of any size.
 *
 * What is long can be left out of what is written, and noted instead: the stream
 * (json_stream.h) converts it piece by piece when it is sent, so that it is never held
 * a second time. */
#ifndef EXECPY_ENGINE_JSON_H
#define EXECPY_ENGINE_JSON_H

#include "base/bytes.h"

#include <stdbool.h>

#define JSON_SPANS_MAX 4

/* A text, or data for base64, that stands at an offset of what was written. It is what
 * the spans are one behind the other, and they must stay. */
struct json_part {
	size_t at;
	bool base64;
	struct span spans[JSON_SPANS_MAX];
};

struct json_parts {
	struct json_part *list;
	size_t count;
	bool failed; /* memory is out */
};

struct json {
	struct bytes *out;
	bool comma;               /* the next value needs one before it */
	struct json_parts *parts; /* where long texts and data are noted; NULL: none are */
};

void emit_begin_object(struct json *json);
void emit_end_object(struct json *json);
void emit_begin_array(struct json *json);
void emit_end_array(struct json *json);
/* A key; the next call writes its value. Keys are ours: plain ASCII. */
void emit_key(struct json *json, const char *key);
/* Any bytes: what is not UTF-8 becomes U+FFFD. Returns whether that happened. */
bool emit_text(struct json *json, struct span text);
/* The same of several spans, one text; an empty one ends them. */
bool emit_pieces(struct json *json, const struct span spans[JSON_SPANS_MAX]);
void emit_string(struct json *json, const char *text); /* NULL: null */
void emit_base64(struct json *json, struct span data);
void emit_number(struct json *json, uint64_t number);
void emit_count(struct json *json, const char *key, uint64_t number); /* with its key */
void emit_milliseconds(struct json *json, uint64_t us);               /* 1.234 */
void emit_bool(struct json *json, bool value);
void emit_null(struct json *json);
/* The lines of a text, as an array of strings. */
void emit_lines(struct json *json, const char *lines);
/* JSON that is already written, such as a guest's application/json: must have
 * been checked. */
void emit_raw(struct json *json, struct span text);

/* What a text is inside of its quotes. With `more` to follow, what may be the beginning
 * of a sequence at its end is left: returns how much was taken. */
size_t json_escape(struct bytes *out, struct span text, bool more, bool *lossy);

/* A text that comes piece by piece, each to be a string of its own. */
struct json_pieces {
	uint8_t carried[4]; /* the beginning of a sequence that the next piece ends */
	size_t length;
};
/* Writes the next piece as a string, cut where a sequence ends; the last is cut anywhere.
 * False when there is nothing to say yet; then it is empty. */
bool emit_piece(struct json *json, struct json_pieces *pieces, struct span data, bool last);

/* The length of the UTF-8 sequence at the start of `text`, or 0 when it is not
 * one (overlong, surrogate, beyond U+10FFFF, cut). */
size_t utf8_sequence(struct span text);

#endif
