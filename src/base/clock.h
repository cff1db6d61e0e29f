/* SPDX-License-Identifier: Apache-2.0 */
/* clock: microseconds that only ever go forward. */
#ifndef EXECPY_BASE_CLOCK_H
#define EXECPY_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC, in microseconds: for durations and deadlines. */
static inline int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
