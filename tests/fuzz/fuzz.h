/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what the fuzz targets share. A target is one file with
 * LLVMFuzzerTestOneInput(); libFuzzer drives it, or replay.c over a corpus. */
#ifndef EXECPY_TESTS_FUZZ_H
#define EXECPY_TESTS_FUZZ_H

#include "base/bytes.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Once, before the first input. 77: this host cannot run the target. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static inline unsigned fuzz_open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	MUST(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

#endif
