/* SPDX-License-Identifier: Apache-2.0 */
/* notify: see notify.h. */
#include "server/notify.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

void notify(const char *words)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	autofd fd = -1;

	if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@') /* an abstract name begins with NUL */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, words, strlen(words), MSG_NOSIGNAL | MSG_DONTWAIT,
			     (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

void notify_reloading(void)
{
	struct timespec now;
	char words[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(words, sizeof words, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	notify(words);
}
