/* SPDX-License-Identifier: Apache-2.0 */
/* listen: see listen.h. */
#include "server/listen.h"

#include "base/bytes.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_loopback(const struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->at;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->at;

	if (address->at.any.sa_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static int parse_local(const char *path, struct address *address, struct error *err)
{
	struct sockaddr_un *local = &address->at.local;

	if (!path[0] || strlen(path) >= sizeof local->sun_path)
		return refuse(err, EINVAL, "unix:%.60s: 1 to %zu bytes are possible", path,
			      sizeof local->sun_path - 1);
	local->sun_family = AF_UNIX;
	snprintf(local->sun_path, sizeof local->sun_path, "%s", path);
	address->length = sizeof *local;
	address->only_here = true;
	return 0;
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
	int number = text_number(text);

	if (number < 0 || number > UINT16_MAX)
		return false;
	*ret_port = htons((uint16_t)number);
	return true;
}

int address_parse(const char *text, struct address *ret_address, struct error *err)
{
	struct address address = {0};
	struct sockaddr_in *four = (struct sockaddr_in *)&address.at;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address.at;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2] = "";
	size_t length = colon ? (size_t)(colon - text) : 0;
	uint16_t port;

	if (strncmp(text, "unix:", 5) == 0) {
		int r = parse_local(text + 5, &address, err);

		if (r == 0)
			*ret_address = address;
		return r;
	}
	if (!colon || length >= sizeof host || !parse_port(colon + 1, &port))
		return refuse(err, EINVAL,
			      "\"%.60s\" is no address to listen on: write it like 127.0.0.1:8765, "
			      "[::1]:8765 or unix:PATH",
			      text);
	memcpy(host, text, length);
	if (strcmp(host, "localhost") == 0)
		snprintf(host, sizeof host, "127.0.0.1");
	if (host[0] == '[' && length > 2 && host[length - 1] == ']') {
		host[length - 1] = '\0';
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		address.length = sizeof *six;
		if (inet_pton(AF_INET6, host + 1, &six->sin6_addr) != 1)
			address.length = 0;
	} else {
		four->sin_family = AF_INET;
		four->sin_port = port;
		address.length = sizeof *four;
		if (inet_pton(AF_INET, host, &four->sin_addr) != 1)
			address.length = 0;
	}
	if (address.length == 0)
		return refuse(err, EINVAL, "\"%.60s\": the host must be an IP address or localhost",
			      text);
	address.only_here = is_loopback(&address);
	*ret_address = address;
	return 0;
}

int address_listen(const struct address *address, const char *text, struct error *err)
{
	const int one = 1;
	autofd fd =
		socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return fail(err, errno, "listen on %s", text);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (address->at.any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (bind(fd, &address->at.any, address->length) < 0 || listen(fd, SOMAXCONN) < 0) {
		if (errno == EADDRINUSE)
			return refuse(err, EADDRINUSE,
				      "listen on %s: somebody listens there already; "
				      "--listen takes another address",
				      text);
		return fail(err, errno, "listen on %s", text);
	}
	return take_fd(&fd);
}

int address_of_listener(int fd, struct address *ret_address, struct error *err)
{
	struct address address = {.length = sizeof address.at};
	int type = 0, listening = 0;
	socklen_t length = sizeof type;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) < 0 ||
	    getsockname(fd, &address.at.any, &address.length) < 0)
		return fail(err, errno, "descriptor %d of the service manager", fd);
	if (type != SOCK_STREAM || !listening)
		return refuse(err, EINVAL,
			      "descriptor %d of the service manager is no stream socket that "
			      "listens",
			      fd);
	address.only_here = address.at.any.sa_family == AF_UNIX || is_loopback(&address);
	*ret_address = address;
	return 0;
}

unsigned listen_activated(void)
{
	const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int found = process && count && text_number(process) == getpid() ? text_number(count) : 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	for (int i = 0; i < found; i++)
		if (fcntl(LISTEN_FIRST_FD + i, F_SETFD, FD_CLOEXEC) < 0 ||
		    fcntl(LISTEN_FIRST_FD + i, F_SETFL, O_NONBLOCK) < 0)
			return (unsigned)i;
	return found > 0 ? (unsigned)found : 0;
}

void address_describe(int listener, bool tls, char *text, size_t size)
{
	struct address address = {.length = sizeof address.at};
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address.at;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address.at;
	char host[INET6_ADDRSTRLEN] = "";

	snprintf(text, size, "?");
	if (getsockname(listener, &address.at.any, &address.length) < 0)
		return;
	if (address.at.any.sa_family == AF_UNIX)
		snprintf(text, size, "unix:%s", address.at.local.sun_path);
	else if (address.at.any.sa_family == AF_INET)
		snprintf(text, size, "http%s://%s:%u", tls ? "s" : "",
			 inet_ntop(AF_INET, &four->sin_addr, host, sizeof host),
			 ntohs(four->sin_port));
	else
		snprintf(text, size, "http%s://[%s]:%u", tls ? "s" : "",
			 inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host),
			 ntohs(six->sin6_port));
}
