/* SPDX-License-Identifier: Apache-2.0 */
/* replay: runs a fuzz target over files and directories, without libFuzzer. */
#include "fuzz.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_BYTES_MAX ((size_t)16 << 20)

static unsigned replayed;

static int replay(int directory, const char *name)
{
	autofd fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) < 0) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return 1;
	}
	if (S_ISDIR(info.st_mode)) {
		DIR *entries = fdopendir(dup(fd));
		struct dirent *entry;
		int failed = entries == NULL;

		while (entries && (entry = readdir(entries)))
			if (entry->d_name[0] != '.')
				failed |= replay(fd, entry->d_name);
		if (entries)
			closedir(entries);
		return failed;
	}
	{
		/* Exactly as large as the input, for the sanitizers' sake. */
		size_t size = (size_t)info.st_size < INPUT_BYTES_MAX ? (size_t)info.st_size
								     : INPUT_BYTES_MAX;
		autofree uint8_t *data = malloc(size ? size : 1);

		if (!data || read(fd, data, size) != (ssize_t)size)
			return 1;
		fprintf(stderr, "%s\n", name); /* the last one named is the one that failed */
		LLVMFuzzerTestOneInput(data, size);
		replayed++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int failed = LLVMFuzzerInitialize(&argc, &argv);

	if (failed) {
		const char *must = getenv("MUST_WORK");

		fprintf(stderr, "skipped: no namespaces to have a file system of its own\n");
		return failed == 77 && must && strcmp(must, "1") == 0 ? 1 : failed;
	}
	for (int i = 1; i < argc; i++)
		failed |= replay(AT_FDCWD, argv[i]);
	printf("%u inputs\n", replayed);
	return failed || replayed == 0;
}
