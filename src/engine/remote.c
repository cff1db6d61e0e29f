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

	if (snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >=
	    (int)sizeof address.sun_path)
		return refuse(err, ENAMETOOLONG, "socket %.200s: its path is too long", path);
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

static int try_path(struct execpy_engine *engine, const char *path, struct error *err)
{
	char *copy = strdup(path);
	int fd = copy ? connect_to(path, err) : fail(err, ENOMEM, "socket");

	if (fd < 0) {
		free(copy);
		return fd;
	}
	free(engine->socket_path);
	engine->socket_path = copy;
	engine->socket = fd;
	engine->remote = true;
	return 1;
}

int remote_connect(struct execpy_engine *engine, const struct execpy_options *options,
		   struct error *err)
{
	const char *named = options && options->socket ? options->socket : getenv("EXECPY_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct error ignored = {0};
	char path[108];

	if (options && options->no_daemon)
		return 0;
	/* One that was named must be there; one that may be there need not. */
	if (named && named[0])
		return try_path(engine, named, err);
	if (runtime && runtime[0] == '/' &&
	    snprintf(path, sizeof path, "%s/execpy.sock", runtime) < (int)sizeof path &&
	    try_path(engine, path, &ignored) == 1)
		return 1;
	return try_path(engine, "/run/execpy.sock", &ignored) == 1;
}
