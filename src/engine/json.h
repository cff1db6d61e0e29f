/* SPDX-License-Identifier: Apache-2.0 */
/* json: a streaming writer, for results of any size. */
#ifndef EXECPY_ENGINE_JSON_H
#define EXECPY_ENGINE_JSON_H

#include "base/bytes.h"

#include <stdbool.h>

struct json {
	struct bytes *out;
	bool comma; /* the next value needs one before it */
};

void emit_begin_object(struct json *json);
void emit_end_object(struct json *json);
void emit_begin_array(struct json *json);
void emit_end_array(struct json *json);
/* A key; the next call writes its value. Keys are ours: plain ASCII. */
void emit_key(struct json *json, const char *key);
/* Any bytes: what is not UTF-8 becomes U+FFFD. Returns whether that happened. */
bool emit_text(struct json *json, struct span text);
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

/* The length of the UTF-8 sequence at the start of `text`, or 0 when it is not
 * one (overlong, surrogate, beyond U+10FFFF, cut). */
size_t utf8_sequence(struct span text);

#endif
