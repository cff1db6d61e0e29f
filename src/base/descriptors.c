/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: see descriptors.h. */
#include "base/descriptors.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int descriptors_left(unsigned count, struct error *err)
{
	int opened[16], r = 0;
	unsigned used = 0;

	for (; used < count && used < 16; used++) {
		opened[used] = open("/", O_PATH | O_CLOEXEC);
		if (opened[used] < 0) {
			r = fail(err, errno, "descriptors: %u more are needed", count - used);
			break;
		}
	}
	while (used > 0)
		close(opened[--used]);
	return r;
}

int descriptors_fill_standard(struct error *err)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return fail(err, errno, "descriptors: fill the standard streams");
	return 0;
}

pid_t descriptors_pid(int pidfd)
{
	char path[64], line[128];
	autofile *file = NULL;
	int pid = -1;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	return pid;
}
