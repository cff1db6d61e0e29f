/* SPDX-License-Identifier: Apache-2.0 */
/* test_collect: the collector in real hostile trees, as an ordinary user. */
#include "unit.h"

#include "collector.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#define DISK (64 * MIB)

static bool has_device;
static unsigned serial;

/* A fresh directory that is the workspace of one test. */
struct place {
	char name[32];
	int fd;
};

static struct place begin(void)
{
	struct place place;

	snprintf(place.name, sizeof place.name, PLACE "/place-%u", serial++);
	assert_int_equal(mkdir(place.name, 0700), 0);
	place.fd = open(place.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place.fd >= 0);
	assert_int_equal(fchdir(place.fd), 0);
	return place;
}

static void run(struct place *place)
{
	unsigned before = open_descriptors();

	collector_run(place->fd, DISK);
	if (collected.wrong[0])
		fail_msg("%s", collected.wrong);
	assert_int_equal(open_descriptors(), before);
	/* One a level, the file at hand, and what is always open. */
	assert_true(collected.open_most <= before + FILE_DEPTH_MAX + 4);
}

static void end(struct place *place)
{
	close(place->fd);
	assert_int_equal(chdir(PLACE), 0);
}

static void put(const char *name, const char *text)
{
	autofd fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static const struct record *find(const char *name)
{
	for (size_t i = 0; i < collected.count; i++)
		if (strcmp(collected.records[i].name, name) == 0)
			return &collected.records[i];
	return NULL;
}

static void expect(const char *name, const char *reason)
{
	const struct record *record = find(name);

	if (!record)
		fail_msg("%s is not told", name);
	if (strcmp(record->reason, reason ? reason : "") != 0)
		fail_msg("%s: \"%s\", not \"%s\"", name, record->reason, reason ? reason : "");
	assert_int_equal(record->has_fd, reason == NULL);
}

static void honest_files(void **state)
{
	struct place place = begin();

	put("a.txt", "A");
	put("empty", "");
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(mkdir("d/e", 0755), 0);
	put("d/b.txt", "B");
	put("d/e/c.txt", "CC");
	run(&place);
	assert_int_equal(collected.count, 4);
	expect("a.txt", NULL);
	expect("empty", NULL);
	expect("d/b.txt", NULL);
	expect("d/e/c.txt", NULL);
	assert_int_equal(find("d/e/c.txt")->size, 2);
	assert_int_equal(find("d/e/c.txt")->first, 'C');
	assert_int_equal(find("a.txt")->first, 'A');
	assert_string_equal(collected.cut, "");
	end(&place);
}

static void an_empty_workspace_or_none(void **state)
{
	struct place place = begin();

	run(&place);
	assert_int_equal(collected.count, 0);
	end(&place);
	collector_run(-1, DISK);
	assert_int_equal(collected.count, 0);
	assert_string_equal(collected.cut, "the workspace cannot be opened");
}

static void links_lead_nowhere(void **state)
{
	struct place place = begin();

	put("real", "R");
	assert_int_equal(mkdir("dir", 0755), 0);
	put("dir/inner", "I");
	assert_int_equal(symlink("/etc/passwd", "secret"), 0);
	assert_int_equal(symlink("/proc/self/environ", "magic"), 0);
	assert_int_equal(symlink("/proc/self/fd/0", "descriptor"), 0);
	assert_int_equal(symlink("real", "to-real"), 0);
	assert_int_equal(symlink("/etc", "etc"), 0);
	assert_int_equal(symlink("dir", "to-dir"), 0);
	assert_int_equal(symlink(".", "loop"), 0);
	assert_int_equal(symlink("..", "up"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(symlink("self", "self"), 0);
	run(&place);
	assert_int_equal(collected.with_fd, 2);
	assert_int_equal(collected.count, 12);
	expect("real", NULL);
	expect("dir/inner", NULL);
	expect("secret", "is a symbolic link");
	expect("magic", "is a symbolic link");
	expect("descriptor", "is a symbolic link");
	expect("to-real", "is a symbolic link");
	expect("etc", "is a symbolic link");
	expect("to-dir", "is a symbolic link");
	expect("loop", "is a symbolic link");
	expect("up", "is a symbolic link");
	expect("dangling", "is a symbolic link");
	expect("self", "is a symbolic link");
	end(&place);
}

static void special_files_are_named(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	struct place place = begin();
	autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkfifo("fifo", 0666), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	run(&place);
	expect("fifo", "is a FIFO");
	expect("socket", "is a socket");
	assert_int_equal(collected.with_fd, 0);
	end(&place);
}

static void make_devices(void)
{
	has_device = mkdir(PLACE "/devices", 0777) == 0 &&
		     mknod(PLACE "/devices/null", S_IFCHR | 0666, (1 << 8) | 3) == 0 &&
		     mknod(PLACE "/devices/loop", S_IFBLK | 0666, 7 << 8) == 0;
}

static void devices_are_named(void **state)
{
	struct place place = {.fd = open(PLACE "/devices", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	if (!has_device)
		skip(); /* only root can make one */
	run(&place);
	expect("null", "is a device");
	expect("loop", "is a device");
	assert_int_equal(collected.with_fd, 0);
	close(place.fd);
}

static void hard_links_are_refused(void **state)
{
	struct place place = begin();

	put("one", "1");
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(link("one", "d/two"), 0);
	put("single", "S");
	run(&place);
	expect("one", "has more than one name");
	expect("d/two", "has more than one name");
	expect("single", NULL);
	end(&place);
}

static void sparse_giants_are_refused(void **state)
{
	static const struct {
		const char *name;
		off_t size;
		bool refused;
	} cases[] = {
		{"at", DISK, false},
		{"above", DISK + 1, true},
		{"tebibyte", (off_t)1 << 40, true},
		{"largest", INT64_MAX, true},
	};
	struct place place = begin();

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		put(cases[i].name, "x");
		if (truncate(cases[i].name, cases[i].size) < 0)
			fail_msg("%s: %s", cases[i].name, strerror(errno));
	}
	run(&place);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		expect(cases[i].name,
		       cases[i].refused ? "is sparse: larger than the disk limit" : NULL);
		assert_int_equal(find(cases[i].name)->size, cases[i].size);
	}
	end(&place);
}

static void closed_modes(void **state)
{
	struct place place = begin();

	put("closed", "x");
	put("write-only", "x");
	put("set-id", "x");
	assert_int_equal(mkdir("listable", 0755), 0);
	put("listable/inner", "x");
	assert_int_equal(mkdir("shut", 0755), 0);
	put("shut/inner", "x");
	assert_int_equal(chmod("closed", 0), 0);
	assert_int_equal(chmod("write-only", 0222), 0);
	assert_int_equal(chmod("set-id", 06777), 0);
	assert_int_equal(chmod("listable", 0444), 0);
	assert_int_equal(chmod("shut", 0), 0);
	run(&place);
	expect("closed", "is not readable");
	expect("write-only", "is not readable");
	expect("set-id", NULL);
	expect("shut", "is a directory that is not readable");
	/* Its names can be read, what they stand for cannot. */
	expect("listable/inner", "cannot be looked at");
	assert_null(find("shut/inner"));
	assert_int_equal(chmod("listable", 0755), 0);
	assert_int_equal(chmod("shut", 0755), 0);
	assert_int_equal(fchmod(place.fd, 0), 0);
	run(&place);
	assert_int_equal(collected.with_fd, 0);
	assert_int_equal(collected.count, 0);
	assert_string_equal(collected.cut, "the workspace cannot be opened");
	end(&place);
}

static void odd_names_are_kept_as_they_are(void **state)
{
	char longest[256];
	const char *const names[] = {
		"new\nline",
		"\x1b[2J\x1b[31m",
		"\xff\xfe\x80",
		"\xe2\x80\xae"
		"gpj.exe",
		" ",
		"-rf",
		"--",
		"...",
		"a\\b",
		"\x01",
		"quote\"'",
		"%s%n",
		longest,
		"...d",
	};
	struct place place = begin();

	memset(longest, 'n', 255);
	longest[255] = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		put(names[i], "x");
	run(&place);
	assert_int_equal(collected.count, ARRAY_LENGTH(names));
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		expect(names[i], NULL);
	end(&place);
}

static void deep_trees_are_bounded(void **state)
{
	struct place place = begin();
	char deepest[2 * FILE_DEPTH_MAX] = "";
	int here = fcntl(place.fd, F_DUPFD_CLOEXEC, 3);

	put("top", "x");
	for (int depth = 0; depth < 10000; depth++) {
		int next;

		assert_int_equal(mkdirat(here, "d", 0755), 0);
		next = openat(here, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(here);
		here = next;
	}
	close(here);
	run(&place);
	expect("top", NULL);
	for (int depth = 0; depth < FILE_DEPTH_MAX; depth++)
		memcpy(deepest + 2 * depth - (depth > 0), depth ? "/d" : "d", depth ? 3 : 2);
	assert_int_equal(collected.count, 2);
	expect(deepest, "is a directory too deep to follow");
	end(&place);
}

/* Levels of the longest names: within the depth, but longer than a path may be. */
static void long_paths_are_told_by_their_own_name(void **state)
{
	struct place place = begin();
	char name[256];
	int here = fcntl(place.fd, F_DUPFD_CLOEXEC, 3);
	const struct record *last = NULL;

	memset(name, 'l', 250); /* a file fits where a directory does not */
	name[250] = '\0';
	for (int depth = 0; depth < 20; depth++) {
		int next;

		assert_int_equal(mkdirat(here, name, 0755), 0);
		next = openat(here, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(openat(here, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		close(here);
		here = next;
	}
	close(here);
	run(&place);
	for (size_t i = 0; i < collected.count; i++) {
		const struct record *record = &collected.records[i];

		if (record->has_fd) {
			assert_string_equal(record->name + strlen(record->name) - 4, "file");
			/* Never the name of what was passed on already. */
			for (size_t j = 0; j < collected.count; j++)
				if (j != i && strcmp(collected.records[j].name, record->name) == 0)
					fail_msg("told twice, once with \"%s\"",
						 collected.records[j].reason);
		} else {
			last = record;
		}
	}
	assert_non_null(last);
	assert_non_null(strstr(last->reason, "path that is too long"));
	end(&place);
}

static void many_entries_are_bounded(void **state)
{
	struct place place = begin();
	char name[32];

	/* Hard links to one file: a hundred thousand names, one inode. */
	assert_int_equal(mkdir("links", 0755), 0);
	put("links/0", "x");
	for (int i = 1; i < 100000; i++) {
		snprintf(name, sizeof name, "links/%d", i);
		if (link("links/0", name) < 0)
			fail_msg("%s: %s", name, strerror(errno));
	}
	run(&place);
	assert_true(collected.count <= COLLECT_FILES_MAX);
	assert_string_equal(collected.cut, "more files than are listed");
	end(&place);

	place = begin();
	for (int i = 0; i < COLLECT_FILES_MAX + 1; i++) {
		snprintf(name, sizeof name, "f%d", i);
		put(name, "");
	}
	run(&place);
	assert_int_equal(collected.count, COLLECT_FILES_MAX);
	assert_string_equal(collected.cut, "more files than are listed");
	assert_int_equal(unlink("f0"), 0);
	run(&place);
	assert_int_equal(collected.count, COLLECT_FILES_MAX);
	assert_string_equal(collected.cut, "");
	end(&place);

	place = begin();
	for (int i = 0; i < COLLECT_ENTRIES_MAX + 1; i++) {
		snprintf(name, sizeof name, "d%d", i);
		assert_int_equal(mkdir(name, 0755), 0);
	}
	run(&place);
	assert_int_equal(collected.count, 0);
	assert_string_equal(collected.cut, "more entries than are looked at");
	end(&place);
}

static void time_is_bounded(void **state)
{
	struct place place = begin();
	char name[32];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "f%d", i);
		put(name, "");
	}
	collector_delay_us = 1000;
	collector_run_for(place.fd, DISK, 50 * 1000);
	collector_delay_us = 0;
	assert_true(collected.count > 0 && collected.count < 150);
	assert_string_equal(collected.cut, "listing took too long");
	end(&place);
}

/* Nothing of a cell lives when its files are collected. If something did, it
 * would still gain nothing. */
static atomic_bool stop_flipping;

static void *flip(void *argument)
{
	const struct place *place = argument;

	while (!atomic_load(&stop_flipping)) {
		syscall(SYS_renameat2, place->fd, "file", place->fd, "link", 2 /* exchange */);
		syscall(SYS_renameat2, place->fd, "dir", place->fd, "link-to-dir", 2);
	}
	return NULL;
}

static void races_gain_nothing(void **state)
{
	struct place place = begin();
	pthread_t thread;
	int64_t until;

	put("file", "F");
	assert_int_equal(symlink("/etc/passwd", "link"), 0);
	assert_int_equal(mkdir("dir", 0755), 0);
	put("dir/passwd", "D");
	assert_int_equal(symlink("/etc", "link-to-dir"), 0);
	atomic_store(&stop_flipping, false);
	assert_int_equal(pthread_create(&thread, NULL, flip, &place), 0);
	for (until = now_us() + 1000000; now_us() < until;) {
		collector_run(place.fd, DISK);
		for (size_t i = 0; i < collected.count; i++)
			if (collected.records[i].has_fd && collected.records[i].first != 'F' &&
			    collected.records[i].first != 'D')
				snprintf(collected.wrong, sizeof collected.wrong, "read %.100s",
					 collected.records[i].name);
		if (collected.wrong[0])
			break;
	}
	atomic_store(&stop_flipping, true);
	pthread_join(thread, NULL);
	if (collected.wrong[0])
		fail_msg("%s", collected.wrong);
	end(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_files),
		cmocka_unit_test(an_empty_workspace_or_none),
		cmocka_unit_test(links_lead_nowhere),
		cmocka_unit_test(special_files_are_named),
		cmocka_unit_test(devices_are_named),
		cmocka_unit_test(hard_links_are_refused),
		cmocka_unit_test(sparse_giants_are_refused),
		cmocka_unit_test(closed_modes),
		cmocka_unit_test(odd_names_are_kept_as_they_are),
		cmocka_unit_test(deep_trees_are_bounded),
		cmocka_unit_test(long_paths_are_told_by_their_own_name),
		cmocka_unit_test(many_entries_are_bounded),
		cmocka_unit_test(time_is_bounded),
		cmocka_unit_test(races_gain_nothing),
	};

	if (collector_place("size=512m,nr_inodes=500000,mode=0755", make_devices) < 0) {
		const char *must = getenv("MUST_WORK");

		fprintf(stderr, "skipped: no namespaces to have a tmpfs of its own: %s\n",
			strerror(errno));
		return must && strcmp(must, "1") == 0 ? 1 : 77;
	}
	return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
