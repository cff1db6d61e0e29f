/* SPDX-License-Identifier: Apache-2.0 */
/* headers: see headers.h.
 *
 * Theory of operation. A request of the stateless revision repeats parts of its body in its
 * header, for machines on the way that do not read bodies. They must be the same in both,
 * else such a machine lets something through that it never saw. What the header must have
 * is told by the body, so a request that says that it is of that revision in either place
 * is held to it. All else is of a revision that begins with `initialize`. */
#include "server/mcp/headers.h"

#include "base/cleanup.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SENTINEL_BEGIN "=?base64?"
#define SENTINEL_END   "?="

/* --- what a field repeats ------------------------------------------------------------ */

static bool is_encoded(const char *field)
{
	size_t length = strlen(field), begin = strlen(SENTINEL_BEGIN), end = strlen(SENTINEL_END);

	return length >= begin + end && strncmp(field, SENTINEL_BEGIN, begin) == 0 &&
	       strcmp(field + length - end, SENTINEL_END) == 0;
}

/* The one encoding of a value is compared, so that padding and alphabet are strict. */
static bool is_same(const char *field, const json_t *value)
{
	size_t length = json_string_length(value), begin = strlen(SENTINEL_BEGIN);
	size_t encoded_length = BASE64_ENCODE_RAW_LENGTH(length);
	autofree char *encoded = NULL;

	if (!is_encoded(field))
		return strlen(field) == length &&
		       memcmp(field, json_string_value(value), length) == 0;
	if (strlen(field) != begin + encoded_length + strlen(SENTINEL_END))
		return false;
	encoded = malloc(encoded_length + 1);
	if (!encoded)
		return false;
	base64_encode_raw(encoded, length, (const uint8_t *)json_string_value(value));
	return memcmp(field + begin, encoded, encoded_length) == 0;
}

/* A field that must be there, and say what the body says. */
static int agree(const char *name, const char *field, const json_t *value, struct error *err)
{
	if (!field) {
		refuse(err, EINVAL, "Header mismatch: %s is missing", name);
		return MCP_HEADER_MISMATCH;
	}
	if (is_same(field, value))
		return 0;
	refuse(err, EINVAL, "Header mismatch: %s is \"%.60s\", and the body says \"%.60s\"", name,
	       field, json_string_value(value));
	return MCP_HEADER_MISMATCH;
}

/* What Mcp-Name repeats: NULL for methods that have no name, or lack theirs. */
static const json_t *name_of(const struct mcp_message *message)
{
	static const struct {
		const char *method, *member;
	} named[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};

	for (size_t i = 0; i < ARRAY_LENGTH(named); i++) {
		const json_t *value = json_object_get(message->params, named[i].member);

		if (strcmp(message->method, named[i].method) == 0)
			return json_is_string(value) ? value : NULL;
	}
	return NULL;
}

static int judge_stateless(const struct mcp_headers *headers, const struct mcp_message *message,
			   struct error *err)
{
	const json_t *method = json_object_get(message->object, "method");
	const json_t *name = name_of(message);
	const char *revision = mcp_revision(message);
	int r = 0;

	if (!headers->revision) {
		refuse(err, EINVAL, "Header mismatch: MCP-Protocol-Version is missing");
		return MCP_HEADER_MISMATCH;
	}
	if (revision && strcmp(revision, headers->revision) != 0) {
		refuse(err, EINVAL,
		       "Header mismatch: MCP-Protocol-Version is \"%.60s\", and the body says "
		       "\"%.60s\"",
		       headers->revision, revision);
		return MCP_HEADER_MISMATCH;
	}
	/* The protocol says what is wrong with another revision; its fields may be others. */
	if (!revision || strcmp(revision, MCP_STATELESS_REVISION) != 0)
		return 0;
	r = agree("Mcp-Method", headers->method, method, err);
	if (r == 0 && name)
		r = agree("Mcp-Name", headers->name, name, err);
	return r;
}

int mcp_judge_headers(const struct mcp_headers *headers, const struct mcp_message *message,
		      enum mcp_era *ret_era, struct error *err)
{
	const char *revision = headers->revision;
	bool begins = strcmp(message->method, "initialize") == 0;
	bool names = json_object_get(json_object_get(message->params, "_meta"),
				     MCP_META_REVISION) != NULL;

	if (revision && strcmp(revision, MCP_STATELESS_REVISION) == 0)
		names = true;
	/* One that we never heard of, and nothing else that tells. */
	if (revision && !mcp_is_legacy_revision(revision) && !headers->session && !begins)
		names = true;
	*ret_era = names ? MCP_STATELESS : MCP_LEGACY;
	if (names) /* what a notification repeats is not defined */
		return message->form == MCP_REQUEST ? judge_stateless(headers, message, err) : 0;
	if (revision && !mcp_is_legacy_revision(revision) && !begins) {
		refuse(err, EINVAL, "MCP-Protocol-Version: \"%.60s\" is not supported", revision);
		return MCP_INVALID_REQUEST;
	}
	return 0;
}

/* --- media types --------------------------------------------------------------------- */

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* A token that ends at one of these characters or a blank is this word, or "*". */
static bool takes(const char *at, size_t length, const char *word)
{
	return (length == 1 && *at == '*') ||
	       (length == strlen(word) && strncasecmp(at, word, length) == 0);
}

/* "type/subtype" at the start of this; ret_rest is behind it. */
static bool takes_type(const char *range, const char *type, const char *subtype,
		       const char **ret_rest)
{
	size_t first = strcspn(range, "/;, \t"), second;
	const char *behind = range + first;

	second = *behind == '/' ? strcspn(behind + 1, ";, \t") : 0;
	*ret_rest = *behind == '/' ? behind + 1 + second : behind;
	return *behind == '/' && takes(range, first, type) && takes(behind + 1, second, subtype);
}

/* ";q=0", "; q=0.0" among the parameters that begin here. */
static bool is_refused(const char *parameters, size_t length)
{
	const char *end = parameters + length;

	for (const char *at = parameters; at < end; at++) {
		const char *name = *at == ';' ? skip_blanks(at + 1) : NULL;

		if (name && strncasecmp(name, "q=0", 3) == 0)
			return strcspn(name + 3, "123456789;,") == strcspn(name + 3, ";,");
	}
	return false;
}

bool mcp_accepts(const char *ranges, const char *type, const char *subtype)
{
	if (!ranges)
		return true;
	while (*ranges) {
		const char *rest;
		bool taken = takes_type(skip_blanks(ranges), type, subtype, &rest);
		size_t length = strcspn(rest, ",");

		if (taken && !is_refused(rest, length))
			return true;
		ranges = rest + length + (rest[length] == ',');
	}
	return false;
}

bool mcp_is_json(const char *content_type)
{
	const char *rest;

	/* A type that is given is no range. */
	return content_type && !strchr(content_type, '*') &&
	       takes_type(skip_blanks(content_type), "application", "json", &rest);
}
