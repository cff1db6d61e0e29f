/* SPDX-License-Identifier: Apache-2.0 */
/* ask: what a client asks for as JSON, read and checked.
 *
 * All of it returns 0, or -EINVAL with one sentence that names the key. `where` is put
 * before a key that is named, such as "limits."; what is not there leaves the output as
 * it was. Texts borrow from the document. */
#ifndef EXECPY_SERVER_ASK_H
#define EXECPY_SERVER_ASK_H

#include "base/bytes.h"
#include "base/error.h"
#include "engine/execpy.h"
#include "policy/limits.h"

#include <jansson.h>
#include <stdbool.h>

/* What whoever asks may have. */
struct ask_rules {
	struct limits initial;  /* of a run that names none */
	struct limits ceilings; /* what it may name at most */
	char **policies;        /* that it may name, the first for who names none; NULL: those
				 * that are built in or of the daemon, and none */
	bool in_session;        /* memory, processes and disk are the session's */
};

/* At most JSON_VALUES_MAX values, counted before anything is made of them: a tree of small
 * ones takes some hundred times the room of their text. */
bool ask_is_modest(struct span text);
/* One JSON object without duplicate keys; the caller's. NULL and why not. */
json_t *ask_read(struct span text, struct error *err);
/* Refuses a key that is none of these; the last is NULL. */
int ask_known(const json_t *object, const char *where, const char *const *keys, struct error *err);
int ask_text(const json_t *object, const char *where, const char *key, const char **ret_text,
	     struct error *err); /* without a NUL */
int ask_flag(const json_t *object, const char *where, const char *key, bool *ret_flag,
	     struct error *err);
int ask_number(const json_t *object, const char *where, const char *key, uint64_t least,
	       uint64_t most, uint64_t *ret_number, struct error *err);
/* The limits that stand in the object, and those of the rules where none stand. */
int ask_limits(const json_t *object, const char *where, const struct ask_rules *rules,
	       struct execpy_limits *ret_limits, struct error *err);
int ask_policy(const json_t *object, const struct ask_rules *rules, const char **ret_policy,
	       struct error *err);
/* For the engine: 0 there stands for the default, the most for none at all. */
struct execpy_limits ask_to_engine(const struct limits *limits);
/* What a tenant's ceilings leave of the table's. */
void ask_lower(struct limits *limits, const struct execpy_limits *ceilings);

/* A run's request with what it owns. */
struct ask {
	json_t *document; /* that the texts are of; owned when it was read for this */
	struct execpy_request request;
	struct execpy_file *files; /* of request.files */
	const char **arguments;
	char **environment;
};

void ask_init(struct ask *ask);
void ask_free(struct ask *ask);
/* The parts of a request; each takes its key when it is there. */
int ask_code(struct ask *ask, const json_t *object, struct error *err); /* must be there */
int ask_stdin(struct ask *ask, const json_t *object, struct error *err);
int ask_files(struct ask *ask, const json_t *object, size_t most, struct error *err);
/* Files in another shape: room for so many, then each of them. The path is borrowed. */
enum ask_encoding { ASK_TEXT, ASK_BASE64, ASK_HEX };
int ask_begin_files(struct ask *ask, size_t count, struct error *err);
int ask_add_file(struct ask *ask, const char *path, const json_t *content,
		 enum ask_encoding encoding, struct error *err);
int ask_arguments(struct ask *ask, const json_t *object, struct error *err);
int ask_environment(struct ask *ask, const json_t *object, struct error *err);

#endif
