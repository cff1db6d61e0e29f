/* SPDX-License-Identifier: Apache-2.0 */
/* remote: finds the daemon that this user may use.
 *
 * A daemon is a warden that others share: once connected, nothing differs from
 * a warden of one's own. Whose it is, the kernel says: only the same user's, or
 * root's, is trusted with code, files and output. */
#include "engine/engine.h"

#include "base/cleanup.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t length = sizeof peer;
	autofd fd = -1;

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(err, errno, "socket");
	/* Its backlog is full for as long as its warden starts again. */
	while (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		if (errno != EINTR)
			return fail(err, errno, "no daemon at %.200s", path);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return fail(err, errno, "socket %.200s", path);
	if (peer.uid != 0 && peer.uid != geteuid())
		return refuse(err, EPERM, "socket %.200s: belongs to user %u", path,
			      (unsigned)peer.uid);
	return take_fd(&fd);
}

int remote_dial(const char *named, char ret_path[REMOTE_PATH_MAX], struct error *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int fd = -1;

	if (named) {
		if (snprintf(ret_path, REMOTE_PATH_MAX, "%s", named) >= REMOTE_PATH_MAX)
			return refuse(err, ENAMETOOLONG, "socket %.200s: its path is too long",
				      named);
		return connect_to(ret_path, err);
	}
	if (runtime && runtime[0] == '/' &&
	    snprintf(ret_path, REMOTE_PATH_MAX, "%s/execpy.sock", runtime) < REMOTE_PATH_MAX)
		fd = connect_to(ret_path, err);
	if (fd < 0) {
		snprintf(ret_path, REMOTE_PATH_MAX, "/run/execpy.sock");
		fd = connect_to(ret_path, err);
	}
	return fd;
}

const char *remote_named(const char *given)
{
	const char *variable = getenv("EXECPY_SOCKET");

	return given ? given : variable && variable[0] ? variable : NULL;
}

int remote_connect(struct execpy_engine *engine, const struct execpy_options *options,
		   struct error *err)
{
	const char *named = remote_named(options ? options->socket : NULL);
	struct error ignored = {0};
	char path[REMOTE_PATH_MAX], *copy;
	int fd;

	if (options && options->no_daemon)
		return 0;
	if (options && options->dial) {
		fd = options->dial(options->dial_user);
		if (fd < 0)
			return refuse(err, -fd, "the daemon takes no connection");
		engine->dial = options->dial;
		engine->dial_user = options->dial_user;
		engine->socket = fd;
		engine->remote = true;
		return 1;
	}
	/* One that was named must be there; one that may be there need not. */
	fd = remote_dial(named, path, named ? err : &ignored);
	if (fd < 0 && !named && options && options->daemon_only)
		return refuse(err, ENOENT, "no daemon is running");
	if (fd < 0)
		return named ? fd : 0;
	copy = strdup(path);
	if (!copy) {
		close(fd);
		return fail(err, ENOMEM, "socket");
	}
	free(engine->socket_path); /* `named`, when it connects anew */
	engine->socket_path = copy;
	engine->socket = fd;
	engine->remote = true;
	return 1;
}
