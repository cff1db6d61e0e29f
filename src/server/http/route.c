/* SPDX-License-Identifier: Apache-2.0 */
/* route: which handler a path is for. */
#include "server/http/connection.h"
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

/* What of a path stands for a name of the pattern. */
struct match {
	struct span names[ROUTE_PARAMETERS_MAX], values[ROUTE_PARAMETERS_MAX];
	unsigned count;
};

static struct span span_of(const char *text, size_t length)
{
	return (struct span){(const uint8_t *)text, length};
}

/* Literal segments are compared as they came: one spelling is enough for ours. */
static bool matches(const char *pattern, const char *path, struct match *match)
{
	match->count = 0;
	while (*pattern == '/' && *path == '/') {
		size_t wanted = strcspn(++pattern, "/"), length = strcspn(++path, "/");
		bool rest = wanted > 3 && pattern[0] == '{' && pattern[wanted - 2] == '*';

		if (wanted > 2 && pattern[0] == '{') {
			if (!*path || length == 0 || match->count == ROUTE_PARAMETERS_MAX)
				return false;
			match->names[match->count] = span_of(pattern + 1, wanted - (rest ? 3 : 2));
			match->values[match->count++] = span_of(path, rest ? strlen(path) : length);
			if (rest)
				return true;
		} else if (wanted != length || memcmp(pattern, path, length) != 0) {
			return false;
		}
		pattern += wanted;
		path += length;
	}
	return !*pattern && !*path;
}

/* They were decoded once before (request.c), so they can be. */
static bool keep(struct exchange *exchange, const struct match *match)
{
	for (unsigned i = 0; i < match->count; i++) {
		char *value = span_to_string(match->values[i]);

		if (!value || !request_decode(value)) {
			free(value);
			return false;
		}
		exchange->parameters[i].name = match->names[i];
		exchange->parameters[i].value = value;
		exchange->parameter_count = i + 1;
	}
	return true;
}

static bool method_matches(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static void allow(struct bytes *allowed, const char *method)
{
	bytes_append_format(allowed, "%s%s", allowed->length ? ", " : "", method);
	if (strcmp(method, "GET") == 0)
		bytes_append_text(allowed, ", HEAD");
}

const struct route *route_find(struct exchange *exchange, unsigned *ret_status,
			       struct bytes *allowed)
{
	struct server *server = exchange->connection->http->server;
	const struct request *request = &exchange->request;
	struct match match;

	for (size_t i = 0; server_parts[i]; i++) {
		if (!server_part_is_on(server, server_parts[i]))
			continue;
		for (const struct route *route = server_parts[i]->routes; route && route->method;
		     route++) {
			if (!matches(route->path, request->path, &match))
				continue;
			if (!method_matches(route, request->method)) {
				allow(allowed, route->method);
				continue;
			}
			if (keep(exchange, &match))
				return route;
			*ret_status = 503;
			return NULL;
		}
	}
	*ret_status = allowed->length ? 405 : 404;
	return NULL;
}
