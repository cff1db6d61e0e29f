/* SPDX-License-Identifier: Apache-2.0 */
/* admit: whose a request is, and whether it may come from where it comes.
 *
 * A page of any site can have a browser send requests to a server on loopback, and with a
 * name that its own server of names points there (DNS rebinding) even read the answers. So
 * the host that a request is for must be one of ours, and when a browser says which page a
 * request comes from, that must be a page of ours. */
#include "server/keys.h"
#include "server/server.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char name_letters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

/* The host of "NAME:PORT", "[::1]:PORT" or "NAME", without the brackets. */
static bool split_host(const char *text, char *host, size_t size)
{
	const char *end = text[0] == '[' ? strchr(text, ']') : text + strcspn(text, ":");
	const char *port;
	size_t length;

	if (!end)
		return false;
	if (text[0] == '[')
		text++;
	length = (size_t)(end - text);
	port = *end == ']' ? end + 1 : end;
	if (length == 0 || length >= size ||
	    (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")])))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	return host[strspn(host, *end == ']' ? "0123456789abcdefABCDEF:." : name_letters)] == '\0';
}

static bool is_loopback_name(const char *host)
{
	struct in_addr four;
	struct in6_addr six;
	size_t length = strlen(host);

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcasecmp(host, "localhost") == 0 ||
	       (length > 10 && strcasecmp(host + length - 10, ".localhost") == 0);
}

/* An address by its number is no name that somebody else could point here. */
static bool is_own_address(const struct exchange *exchange, const char *host)
{
	struct sockaddr_storage own = {0};
	const struct sockaddr_in *four = (const struct sockaddr_in *)&own;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&own;
	socklen_t length = sizeof own;
	char text[INET6_ADDRSTRLEN] = "";

	if (getsockname(bufferevent_getfd(exchange->connection->buffers), (struct sockaddr *)&own,
			&length) < 0)
		return false;
	if (own.ss_family == AF_INET)
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
	else if (own.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
	return text[0] && strcasecmp(text, host) == 0;
}

static bool is_ours(const struct server *server, const struct exchange *exchange, const char *host)
{
	for (char **name = server->hosts; name && *name; name++)
		if (strcasecmp(*name, host) == 0)
			return true;
	return exchange->connection->is_local || is_loopback_name(host) ||
	       is_own_address(exchange, host);
}

static bool is_same_origin(const char *origin, const char *host)
{
	static const char *const schemes[] = {"http://", "https://"};

	/* Behind a proxy the scheme is not the one that we see. */
	for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++)
		if (strncasecmp(origin, schemes[i], strlen(schemes[i])) == 0 &&
		    strcasecmp(origin + strlen(schemes[i]), host) == 0)
			return true;
	return false;
}

unsigned server_admit_origin(struct server *server, struct exchange *exchange, const char **why)
{
	const char *origin = exchange_header(exchange, "origin");
	const char *site = exchange_header(exchange, "sec-fetch-site");
	const char *mode = exchange_header(exchange, "sec-fetch-mode");
	const char *host = exchange->request.host;
	char name[256];

	if (!split_host(host, name, sizeof name)) {
		*why = "Host names no host";
		return 400;
	}
	if (!is_ours(server, exchange, name)) {
		*why = "Host is no name of this server: `hosts` of its configuration lists them";
		return 403;
	}
	if (origin && !is_same_origin(origin, host)) {
		*why = "the request comes from another site's page";
		return 403;
	}
	/* Such a request may come without Origin. A link that is followed is none of these. */
	if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 &&
	    (!mode || strcmp(mode, "navigate") != 0 ||
	     strcmp(exchange->request.method, "GET") != 0)) {
		*why = "the request comes from another site's page";
		return 403;
	}
	return 0;
}

static const char *bearer(const struct exchange *exchange)
{
	const char *value = exchange_header(exchange, "authorization");

	if (!value || strncasecmp(value, "Bearer ", 7) != 0)
		return NULL;
	return value + 7 + strspn(value + 7, " ");
}

unsigned server_admit_tenant(struct server *server, struct exchange *exchange, bool open,
			     struct tenant **ret_tenant, const char **why)
{
	struct tenants *tenants = &server->tenants;
	const char *key = bearer(exchange);
	unsigned seconds;

	if (!tenants->has_keys) {
		*ret_tenant = &tenants->everybody;
		return 0;
	}
	*ret_tenant = key ? keys_find(tenants, key) : NULL;
	if (!*ret_tenant && open)
		return 0;
	if (!*ret_tenant) {
		exchange_field(exchange, "WWW-Authenticate", "Bearer realm=\"execpy\"%s",
			       key ? ", error=\"invalid_token\"" : "");
		*why = key ? "the key is not known here"
			   : "a key is needed: Authorization: Bearer KEY";
		return 401;
	}
	if (open || keys_take_request(*ret_tenant, &seconds))
		return 0;
	exchange_field(exchange, "Retry-After", "%u", seconds);
	*why = "more requests than the key may make a minute";
	return 429;
}
