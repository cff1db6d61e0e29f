/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_collect: the collector in trees that a byte string describes.
 *
 * Each step is one byte and its arguments (see step()). The tree is made in a
 * tmpfs of this process's own, collected, and removed; unit/collector.h checks
 * every descriptor that is passed on. */
#include "fuzz.h"

#include "../unit/collector.h"

#include <errno.h>

#define DIRECTORIES_MAX 100
#define ENTRIES_MAX     1500
#define DISK            MIB

static struct directory {
	int fd, parent;
	char name[256];
} directories[DIRECTORIES_MAX];

static struct entry {
	int parent;
	bool regular;
	char name[256];
} entries[ENTRIES_MAX];

static int directory_count, entry_count, here;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return collector_place("size=64m,nr_inodes=20000,mode=0755", NULL) < 0 ? 77 : 0;
}

/* A name from the input: raw bytes, but no slash and no NUL. */
static void take_name(struct reader *reader, char name[256])
{
	struct span raw = reader_take(reader, reader_u8(reader) % 80);
	size_t length = 0;

	for (size_t i = 0; i < raw.length; i++)
		if (raw.data[i] != '/' && raw.data[i] != '\0')
			name[length++] = (char)raw.data[i];
	/* Now and then as long as a name can be. */
	while (raw.length == 79 && length < 255)
		name[length++] = 'x';
	name[length] = '\0';
}

static void remember(const char *name, bool regular)
{
	entries[entry_count].parent = here;
	entries[entry_count].regular = regular;
	memcpy(entries[entry_count++].name, name, strlen(name) + 1);
}

static void enter(const char *name)
{
	int parent = directories[here].fd, fd;

	if (directory_count == DIRECTORIES_MAX || mkdirat(parent, name, 0700) < 0)
		return;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd >= 0);
	directories[directory_count].fd = fd;
	directories[directory_count].parent = here;
	memcpy(directories[directory_count].name, name, strlen(name) + 1);
	here = directory_count++;
}

static void make_file(const char *name, uint64_t size)
{
	int fd = openat(directories[here].fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (size > 0)
		MUST(ftruncate(fd, (off_t)size) == 0 && pwrite(fd, "W", 1, 0) == 1);
	close(fd);
	remember(name, true);
}

static void step(struct reader *reader)
{
	static const char *const targets[] = {
		"/etc/passwd",           "/", ".", "..", "/proc/self/fd/0", "/proc/self/exe", "a",
		"../../../../etc/passwd"};
	uint8_t what = reader_u8(reader);
	char name[256], other[300];

	if (entry_count == ENTRIES_MAX)
		return;
	take_name(reader, name);
	switch (what % 11) {
	case 0:
		enter(name);
		break;
	case 1:
		if (here > 0)
			here = directories[here].parent;
		break;
	case 2:
		make_file(name, reader_u8(reader));
		break;
	case 3:
		if (symlinkat(targets[reader_u8(reader) % 8], directories[here].fd, name) == 0)
			remember(name, false);
		break;
	case 4:
		if (mkfifoat(directories[here].fd, name, 0600) == 0)
			remember(name, false);
		break;
	case 5: /* a hard link to something earlier, wherever that is */
		if (entry_count > 0) {
			const struct entry *from = &entries[reader_u16(reader) % entry_count];

			if (linkat(directories[from->parent].fd, from->name, directories[here].fd,
				   name, 0) == 0)
				remember(name, false);
		}
		break;
	case 6:
		make_file(name, UINT64_C(1) << reader_u8(reader) % 63);
		break;
	case 7:
		if (entry_count > 0) {
			const struct entry *last = &entries[entry_count - 1];

			if (last->regular)
				MUST(fchmodat(directories[last->parent].fd, last->name,
					      reader_u16(reader) & 07777, 0) == 0 ||
				     errno == EACCES);
		}
		break;
	case 8:
		fchmod(directories[here].fd, reader_u16(reader) & 07777);
		break;
	case 9: /* many */
		for (unsigned i = reader_u8(reader) * 5u; i-- > 0 && entry_count < ENTRIES_MAX;) {
			snprintf(other, sizeof other, "%u%.200s", i, name);
			make_file(other, 0);
		}
		break;
	case 10: /* deep */
		for (unsigned i = reader_u8(reader) % 64; i-- > 0;)
			enter(name);
		break;
	}
}

static void remove_all(void)
{
	for (int i = 0; i < directory_count; i++)
		fchmod(directories[i].fd, 0700);
	for (int i = 0; i < entry_count; i++)
		MUST(unlinkat(directories[entries[i].parent].fd, entries[i].name, 0) == 0);
	for (int i = directory_count; i-- > 0;) {
		close(directories[i].fd);
		if (i > 0)
			MUST(unlinkat(directories[directories[i].parent].fd, directories[i].name,
				      AT_REMOVEDIR) == 0);
	}
	MUST(rmdir(PLACE "/tree") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader reader = reader_of((struct span){data, size});
	unsigned before;
	size_t steps = 0;

	directory_count = entry_count = here = 0;
	MUST(mkdir(PLACE "/tree", 0700) == 0);
	directories[0].fd = open(PLACE "/tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(directories[0].fd >= 0);
	directory_count = 1;
	while (reader.left > 0 && steps++ < 400)
		step(&reader);
	before = fuzz_open_descriptors();
	collector_run(directories[0].fd, DISK);
	if (collected.wrong[0]) {
		fprintf(stderr, "%s\n", collected.wrong);
		abort();
	}
	MUST(fuzz_open_descriptors() == before);
	MUST(collected.count <= COLLECT_FILES_MAX + 1);
	MUST(collected.open_most <= before + FILE_DEPTH_MAX + 4);
	for (size_t i = 0; i < collected.count; i++) {
		const struct record *record = &collected.records[i];

		if (record->has_fd)
			MUST(record->size == 0 ? record->first == 0 : record->first == 'W');
	}
	remove_all();
	return 0;
}
