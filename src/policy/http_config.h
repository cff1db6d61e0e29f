/* SPDX-License-Identifier: Apache-2.0 */
/* http_config: how a daemon serves HTTP: where, to whom, and how patiently.
 *
 * The keys stand in the daemon's configuration beside those of config.h. */
#ifndef EXECPY_POLICY_HTTP_CONFIG_H
#define EXECPY_POLICY_HTTP_CONFIG_H

#include "base/error.h"
#include "policy/document.h"
#include "policy/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* field, key in the file, unit, default, least, most, what it is. */
#define HTTP_NUMBER_TABLE(X)                                                                      \
	X(connections, "connections", LIMIT_UNIT_COUNT, 16384, 1, 1000000,                        \
	  "HTTP connections at one moment; more wait to be accepted")                             \
	X(header_ms, "header_time", LIMIT_UNIT_MS, 10000, 10, 3600000,                            \
	  "in which the header of a request must be there, from its first byte on")               \
	X(body_ms, "body_time", LIMIT_UNIT_MS, 60000, 10, 3600000, "and its body, from then on")  \
	X(idle_ms, "keep_alive", LIMIT_UNIT_MS, 75000, 10, 24ull * 3600 * 1000,                   \
	  "how long a connection without a request stays")                                        \
	X(unread_ms, "unread_time", LIMIT_UNIT_MS, 30000, 10, 3600000,                            \
	  "how long a client may take nothing of a response")                                     \
	X(bodies_bytes, "bodies", LIMIT_UNIT_BYTES, 4 * GIB, 1 * MIB, 1024 * GIB,                 \
	  "of requests' bodies kept at one moment; one key's part is a quarter")                  \
	X(compat_time_ms, "compat_time", LIMIT_UNIT_MS, 60000, 10, 24ull * 3600 * 1000,           \
	  "a run's time over an API of others that does not say")                                 \
	X(compat_memory_bytes, "compat_memory", LIMIT_UNIT_BYTES, 512 * MIB, 4 * MIB, 1024 * GIB, \
	  "and its memory")

struct http_numbers {
#define HTTP_NUMBER_FIELD(name, key, unit, initial, least, most, sentence) uint64_t name;
	HTTP_NUMBER_TABLE(HTTP_NUMBER_FIELD)
#undef HTTP_NUMBER_FIELD
};

struct http_number_info {
	const char *key, *sentence;
	enum limit_unit unit;
	uint64_t initial, least, most;
	size_t offset; /* of its uint64_t in struct http_numbers */
};

extern const struct http_number_info http_number_infos[];
extern const size_t http_number_count;

/* Texts; NULL-terminated once there is one, else NULL. */
struct http_config {
	struct http_numbers numbers;
	char **listen;       /* "127.0.0.1:8765", "unix:PATH"; or the one word "none" */
	char **hosts;        /* names of this server, beside those of loopback */
	char **policies;     /* paths of policy files, whose names clients may use */
	char **compat;       /* which APIs of others are served */
	char *compat_policy; /* theirs; NULL: standard */
	char *keys, *certificate, *private_key, *log, *audit; /* paths; NULL: none */
};

void http_config_default(struct http_config *ret_config);
void http_config_free(struct http_config *config); /* may be zero */

/* The key whose event is the current one: 1 when it was one of these and was read with
 * its value, 0 when it is none of them, or a negative errno. `seen` remembers which
 * stood there before. */
#define HTTP_KEYS_MAX 32
int http_config_key(struct document *file, const char *key, bool seen[HTTP_KEYS_MAX],
		    struct http_config *config);
/* Reads a number of a document as its unit is written. */
int config_number(struct document *file, const char *key, enum limit_unit unit,
		  uint64_t *ret_number);
/* "KEY: 5 is out of range (1 to 4)" and -ERANGE, or 0. */
int config_check_number(const char *key, enum limit_unit unit, uint64_t number, uint64_t least,
			uint64_t most, struct error *err);
/* Adds a copy to a NULL-terminated list. */
int text_list_add(char ***list, const char *text, struct error *err);
void text_list_free(char ***list);
size_t text_list_length(char *const *list);

#endif
