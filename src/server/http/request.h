/* SPDX-License-Identifier: Apache-2.0 */
/* request: the head of a request, and how its body is framed. Knows no connection. */
#ifndef EXECPY_SERVER_HTTP_REQUEST_H
#define EXECPY_SERVER_HTTP_REQUEST_H

#include "base/bounds.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct request_field {
	char *name, *value; /* the name in lower case; the value without blanks around it */
};

struct request {
	struct bytes head; /* as it came; what points into it is terminated there */
	uint8_t last[3];   /* bytes that the scan has seen */
	const char *method;
	char *path, *query; /* decoded in place: the path without its '?', the query raw */
	struct request_field fields[HTTP_FIELDS_MAX];
	unsigned field_count;
	bool is_1_0, keep_alive, expects_continue, chunked;
	uint64_t length; /* of the body, unless chunked; 0: none */
	const char *host;
};

/* Takes bytes of a head, as many as belong to it: how many those were. *ret_whole says
 * that it is at its end. A status instead of 0 in *ret_refused, with the reason in *why,
 * says that it never becomes a request. */
size_t request_take_head(struct request *request, struct span bytes, bool *ret_whole,
			 unsigned *ret_refused, const char **why);
/* Understands the whole head: 0, or the status with which it is refused, and why. */
unsigned request_parse(struct request *request, const char **why);
/* A field by its lower-case name; of several the first after `after`, or NULL. */
const struct request_field *request_field(const struct request *request, const char *name,
					  const struct request_field *after);
void request_free(struct request *request);

/* Decodes %XX in place, once: false when that is malformed, gives a NUL, or no UTF-8. */
bool request_decode(char *text);

/* A body in chunks (RFC 9112, 7.1), whose framing comes byte by byte. */
struct chunks {
	enum chunk_state {
		CHUNK_SIZE_FIRST,
		CHUNK_SIZE,
		CHUNK_EXTENSION,
		CHUNK_SIZE_LF,
		CHUNK_DATA,
		CHUNK_DATA_CR,
		CHUNK_DATA_LF,
		CHUNK_LAST_CR,
		CHUNK_LAST_LF,
		CHUNK_END,
	} state;
	uint64_t left;   /* of this chunk */
	unsigned digits; /* of its size */
	size_t overhead; /* bytes of extensions and trailers so far */
};

/* Takes from `bytes`: how many. What of them is the body's follows in *ret_data, which
 * may be empty. -1 when this is no chunked body. Done when the state is CHUNK_END. */
long chunks_take(struct chunks *chunks, struct span bytes, struct span *ret_data);

#endif
