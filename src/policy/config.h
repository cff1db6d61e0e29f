/* SPDX-License-Identifier: Apache-2.0 */
/* config: how a daemon serves: its templates with their pools, its numbers.
 *
 * Written by people in a file (docs/serve.md), handed to the warden in one
 * message a template and one with the numbers. The table below drives the
 * file, the messages, the help and the documents. */
#ifndef EXECPY_POLICY_CONFIG_H
#define EXECPY_POLICY_CONFIG_H

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/error.h"
#include "policy/http_config.h"
#include "policy/limits.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <stddef.h>
#include <stdint.h>

/* field, key in the file, unit, field of the message, default, least, most,
 * what it is. The defaults are for a laptop: the four templates and their
 * pools weigh some 300 MB at most. */
#define DAEMON_NUMBER_TABLE(X)                                                                  \
	X(memory_bytes, "memory", LIMIT_UNIT_BYTES, FIELD_SIZE, 1 * GIB, 64 * MIB, 1024 * GIB,  \
	  "what templates and parked cells may hold together")                                  \
	X(rotate_cells, "rotate_cells", LIMIT_UNIT_COUNT, FIELD_ROTATE_CELLS, 1000, 1, 1000000, \
	  "a template is replaced after so many cells")                                         \
	X(rotate_ms, "rotate_after", LIMIT_UNIT_MS, FIELD_ROTATE_MS, 3600000, 100,              \
	  24ull * 3600 * 1000, "and after so long, whichever is first")                         \
	X(idle_ms, "idle_after", LIMIT_UNIT_MS, FIELD_IDLE_MS, 3600000, 0, 24ull * 3600 * 1000, \
	  "a template that nobody used for so long is dropped; 0: never")                       \
	X(runs, "runs", LIMIT_UNIT_COUNT, FIELD_RUNS, 0, 0, 4096,                               \
	  "runs at one moment; 0: four a processor")                                            \
	X(queue, "queue", LIMIT_UNIT_COUNT, FIELD_QUEUE, 256, 0, 100000,                        \
	  "requests that may wait for a cell; one more is refused")                             \
	X(queue_ms, "queue_wait", LIMIT_UNIT_MS, FIELD_QUEUE_MS, 10000, 10, 3600000,            \
	  "how long a request may wait before it is refused")                                   \
	X(clients, "clients", LIMIT_UNIT_COUNT, FIELD_COUNT, 256, 1, 10000,                     \
	  "engines that are connected at one moment; the HTTP server is one")                   \
	X(sessions, "sessions", LIMIT_UNIT_COUNT, FIELD_SESSIONS, 64, 1, 4096,                  \
	  "sessions at one moment")                                                             \
	X(session_idle_ms, "session_idle", LIMIT_UNIT_MS, FIELD_IDLE_SESSION_MS, 1800000, 100,  \
	  7 * 24ull * 3600 * 1000, "a session that nobody used for so long ends")               \
	X(session_life_ms, "session_life", LIMIT_UNIT_MS, FIELD_LIFE_MS, 24 * 3600000, 1000,    \
	  30 * 24ull * 3600 * 1000, "and so does one that is so old")

struct daemon_numbers {
#define DAEMON_NUMBER_FIELD(name, key, unit, field, initial, least, most, sentence) uint64_t name;
	DAEMON_NUMBER_TABLE(DAEMON_NUMBER_FIELD)
#undef DAEMON_NUMBER_FIELD
};

struct daemon_number_info {
	const char *key, *sentence;
	enum limit_unit unit;
	uint16_t field;
	uint64_t initial, least, most;
	size_t offset; /* of its uint64_t in struct daemon_numbers */
};

extern const struct daemon_number_info daemon_number_infos[];
extern const size_t daemon_number_count;

static inline uint64_t *daemon_number_at(struct daemon_numbers *numbers,
					 const struct daemon_number_info *info)
{
	return (uint64_t *)((char *)numbers + info->offset);
}

static inline uint64_t daemon_number_get(const struct daemon_numbers *numbers,
					 const struct daemon_number_info *info)
{
	return *(const uint64_t *)((const char *)numbers + info->offset);
}

struct template_config {
	char name[TEMPLATE_NAME_BYTES_MAX + 1];
	char **modules; /* imported in this order */
	size_t module_count;
	char *warm_up; /* Python; never NULL in a finished one, may be empty */
	uint64_t pool_min, pool_max;
};

struct daemon_config {
	struct daemon_numbers numbers; /* runs: resolved, never 0 */
	struct template_config *templates;
	size_t template_count;
	struct http_config http; /* not for the warden */
};

/* The built-in templates, the default numbers. */
int config_default(struct daemon_config *ret_config, struct error *err);
/* Parses a configuration's text. `origin` names it in messages, which read
 * "ORIGIN:LINE:COLUMN: what is wrong". *ret_config is unchanged on failure. */
int config_parse(struct span text, const char *origin, struct daemon_config *ret_config,
		 struct error *err);
/* The file at `path`; NULL: config_default(). */
int config_load(const char *path, struct daemon_config *ret_config, struct error *err);
void config_free(struct daemon_config *config); /* may be zero */
#define autoconfig __attribute__((cleanup(config_free))) struct daemon_config

/* Pieces of the above for config_file.c. */
struct daemon_numbers daemon_numbers_default(void);
/* Replaces what is 0 in the file by what this machine asks for. */
void daemon_numbers_resolve(struct daemon_numbers *numbers);
/* 0, or -ERANGE with "KEY: 5 is out of range (1 to 4)". */
int daemon_number_check(const struct daemon_number_info *info, uint64_t number, struct error *err);
/* The name and the default pool; for a built-in one also modules and warm-up. */
int template_config_init(struct template_config *template, const char *name, struct error *err);
int template_config_add_module(struct template_config *template, const char *module,
			       struct error *err);
bool template_name_is_valid(const char *name);
void template_config_free(struct template_config *template); /* may be zero */

/* Whole frames, owner to warden. Decoding trusts nothing that encoding would
 * not have written: -EBADMSG or -ERANGE. What it returns is the caller's. */
void config_encode_template(const struct template_config *template, struct bytes *out);
void config_encode_serve(const struct daemon_numbers *numbers, struct bytes *out);
int config_decode_template(const struct frame *frame, struct template_config *ret_template,
			   struct error *err);
int config_decode_serve(const struct frame *frame, struct daemon_numbers *ret_numbers,
			struct error *err);

#endif
