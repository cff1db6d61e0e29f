/* SPDX-License-Identifier: Apache-2.0 */
/* collector: the engine's collector with a witness as its user, for its unit test
 * and its fuzz target.
 *
 * Every descriptor that the collector hands on is checked here: a regular file
 * of the workspace's own file system, with one name, open for reading only, no
 * larger than the limit. */
#ifndef EXECPY_TESTS_COLLECTOR_H
#define EXECPY_TESTS_COLLECTOR_H

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "engine/collect.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>

#define RECORDS_MAX 4096

struct record {
	char name[FILE_NAME_BYTES_MAX + 1];
	uint64_t size;
	char reason[80]; /* "": a descriptor came along */
	bool has_fd;
	uint8_t first; /* byte of the content */
};

static struct collected {
	struct record *records;
	size_t count, with_fd, open_most;
	char cut[80];
	char wrong[200]; /* what must never happen */
} collected;

static uint64_t collector_disk_bytes;
static dev_t collector_device;
static useconds_t collector_delay_us; /* the user takes so long for each file */

static void collector_check(const struct record *record, int fd)
{
	struct stat info;
	const char *wrong = NULL;

	if (fstat(fd, &info) < 0)
		wrong = "a closed descriptor was passed on";
	else if (!S_ISREG(info.st_mode))
		wrong = "what was passed on is no regular file";
	else if (info.st_dev != collector_device)
		wrong = "what was passed on is of another file system";
	else if (info.st_nlink != 1)
		wrong = "what was passed on has another name";
	else if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		wrong = "what was passed on can be written";
	else if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		wrong = "what was passed on survives exec";
	else if (record->size > collector_disk_bytes)
		wrong = "what was passed on is larger than the limit";
	if (wrong)
		snprintf(collected.wrong, sizeof collected.wrong, "%s: %.100s", wrong,
			 record->name);
}

static void collector_add(void *user, const char *path, uint64_t size, int fd, const char *reason)
{
	struct record *record;
	int probe = dup(0);

	/* The lowest free number tells how many are open: none has a gap here. */
	if (probe >= 0) {
		if ((size_t)probe > collected.open_most)
			collected.open_most = (size_t)probe;
		close(probe);
	}
	if (collector_delay_us)
		usleep(collector_delay_us);
	if (collected.count == RECORDS_MAX) {
		snprintf(collected.wrong, sizeof collected.wrong,
			 "more files than any bound allows");
		return;
	}
	record = &collected.records[collected.count++];
	memset(record, 0, sizeof *record);
	snprintf(record->name, sizeof record->name, "%s", path);
	record->size = size;
	snprintf(record->reason, sizeof record->reason, "%s", reason ? reason : "");
	if (fd >= 0) {
		record->has_fd = true;
		collected.with_fd++;
		collector_check(record, fd);
		if (pread(fd, &record->first, 1, 0) < 0)
			snprintf(collected.wrong, sizeof collected.wrong, "cannot be read: %.100s",
				 record->name);
	}
	if (record->has_fd == (record->reason[0] != '\0'))
		snprintf(collected.wrong, sizeof collected.wrong, "neither file nor reason: %.100s",
			 record->name);
}

/* Collects `directory`, -1 for none, with these bounds. */
static void collector_run_for(int directory, uint64_t disk_bytes, int64_t time_us)
{
	const struct deadline deadline = {now_us() + time_us};
	const struct collector collector = {
		.workspace = directory,
		.disk_bytes = disk_bytes,
		.deadline = &deadline,
		.add = collector_add,
	};
	struct record *records = collected.records;
	struct stat info = {0};
	const char *cut;

	if (!records)
		records = calloc(RECORDS_MAX, sizeof *records);
	if (!records || (directory >= 0 && fstat(directory, &info) < 0))
		abort();
	collected = (struct collected){.records = records};
	collector_device = info.st_dev;
	collector_disk_bytes = disk_bytes;
	cut = collect_workspace(&collector);
	snprintf(collected.cut, sizeof collected.cut, "%s", cut ? cut : "");
}

static void collector_run(int directory, uint64_t disk_bytes)
{
	collector_run_for(directory, disk_bytes, COLLECT_TIME_MS * 1000);
}

static int collector_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return r;
}

/* A tmpfs that only this process sees, and no capability left: the place goes
 * away with the process, whatever is in it. `prepare` runs before that. */
#define PLACE "/mnt"

static int collector_place(const char *options, void (*prepare)(void))
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2];
	unsigned uid = geteuid(), gid = getegid();
	char uid_map[40], gid_map[40];

	memset(none, 0, sizeof none);
	snprintf(uid_map, sizeof uid_map, "%u %u 1", uid, uid);
	snprintf(gid_map, sizeof gid_map, "%u %u 1", gid, gid);
	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
		return -1;
	if (uid != 0 && (collector_write("/proc/self/setgroups", "deny") < 0 ||
			 collector_write("/proc/self/uid_map", uid_map) < 0 ||
			 collector_write("/proc/self/gid_map", gid_map) < 0))
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", PLACE, "tmpfs", MS_NOSUID, options) < 0 || chdir(PLACE) < 0)
		return -1;
	if (prepare)
		prepare();
	return (int)syscall(SYS_capset, &header, none);
}

#endif
