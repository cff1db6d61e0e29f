/* SPDX-License-Identifier: Apache-2.0 */
/* compat: what the APIs that clients of others already speak have in common.
 *
 * Each is a part of the server that is off unless the configuration names it. They are
 * calls of REST (rest/rest.h) in another language: the same requests, ceilings, sessions
 * and counts. Keys that such a client sends and that mean nothing here are passed over. */
#ifndef EXECPY_SERVER_COMPAT_COMPAT_H
#define EXECPY_SERVER_COMPAT_COMPAT_H

#include "server/rest/rest.h"

/* Clients send null for what they do not say. */
void compat_drop_nulls(json_t *object);
/* What the tenant may have, and has when the API does not say. */
struct ask_rules compat_rules(const struct rest_call *call);
/* The configured policy when the tenant may have it, else the tenant's first. */
const char *compat_policy(const struct rest_call *call);
/* Takes a limit that was asked for, between what is possible and the ceiling. */
uint64_t compat_within(uint64_t asked, uint64_t least, uint64_t most);
/* Whether a language is named by one of Python's names. */
bool compat_is_python(const char *language);
/* stderr, and behind it why the run was ended, if it was: appended. */
void compat_stderr(struct execpy_result *result, struct bytes *out);
/* A 200 of JSON in the call's stream; what it points at is the call's. */
void compat_send(struct rest_call *call);

#endif
