/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup: ownership by attribute.
 *
 * A variable marked `autofd`, `autofree` or `autoclose` is released when it
 * leaves its scope; take_fd() and take_ptr() hand the ownership on. */
#ifndef EXECPY_BASE_CLEANUP_H
#define EXECPY_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define autofd   __attribute__((cleanup(cleanup_fd))) int
#define autofree __attribute__((cleanup(cleanup_free)))
#define autofile __attribute__((cleanup(cleanup_file))) FILE

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#define take_ptr(pointer)                             \
	({                                            \
		__typeof__(pointer) taken_ = pointer; \
		pointer = NULL;                       \
		taken_;                               \
	})

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#endif
