/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: see descriptors.h. */
#include "base/descriptors.h"

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
