/* SPDX-License-Identifier: Apache-2.0 */
/* collector: the warden's collector with a witness in the engine's place, for
 * its unit test and its fuzz target. Include it once: it defines what
 * warden/collect.c calls.
 *
 * Every descriptor that the collector passes on is checked here: a regular file
 * of the workspace's own file system, with one name, open for reading only, no
 * larger than the limit. */
#ifndef EXECPY_TESTS_COLLECTOR_H
#define EXECPY_TESTS_COLLECTOR_H

#include "warden/warden.h"

#include <fcntl.h>
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
	bool ended;
	char cut[80];
	char wrong[200]; /* what must never happen */
} collected;

static struct cell collector_cell;
static dev_t collector_device;
static int64_t collector_clock_step_us; /* each look at the clock takes so long */

int64_t now_us(void)
{
	static int64_t skipped;
	struct timespec now;

	skipped += collector_clock_step_us;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + skipped;
}

static void collector_copy(char *to, size_t size, struct span from)
{
	size_t length = from.length < size - 1 ? from.length : size - 1;

	memcpy(to, from.data, length);
	to[length] = '\0';
}

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
	else if (record->size > collector_cell.limits.disk_bytes)
		wrong = "what was passed on is larger than the limit";
	if (wrong)
		snprintf(collected.wrong, sizeof collected.wrong, "%s: %.100s", wrong,
			 record->name);
}

void warden_say(struct warden *warden, const struct bytes *message, const int *fds, size_t count)
{
	struct reader reader = reader_of(bytes_span(message)), fields;
	struct record *record;
	struct frame frame;
	struct field field;
	int probe = dup(0);

	/* The lowest free number tells how many are open: none has a gap here. */
	if (probe >= 0) {
		if ((size_t)probe > collected.open_most)
			collected.open_most = (size_t)probe;
		close(probe);
	}
	if (message->failed || frame_next(&reader, SIZE_MAX, &frame) != 1 || reader.left != 0) {
		snprintf(collected.wrong, sizeof collected.wrong, "a message that is not a frame");
		return;
	}
	if (message->length > FRAME_MESSAGE_MAX)
		snprintf(collected.wrong, sizeof collected.wrong,
			 "a message that is too long to send");
	fields = frame_fields(&frame);
	if (frame.type == MESSAGE_COLLECTED) {
		collected.ended = true;
		while (frame_next_field(&fields, &field) == 1)
			if (field.name == FIELD_TRUNCATED)
				collector_copy(collected.cut, sizeof collected.cut, field.value);
		return;
	}
	if (frame.type != MESSAGE_FILE || collected.ended || count > 1)
		snprintf(collected.wrong, sizeof collected.wrong, "message %u out of order",
			 frame.type);
	if (collected.count == RECORDS_MAX) {
		snprintf(collected.wrong, sizeof collected.wrong,
			 "more files than any bound allows");
		return;
	}
	record = &collected.records[collected.count++];
	memset(record, 0, sizeof *record);
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_NAME)
			collector_copy(record->name, sizeof record->name, field.value);
		else if (field.name == FIELD_SIZE)
			field_number(&field, &record->size);
		else if (field.name == FIELD_REASON)
			collector_copy(record->reason, sizeof record->reason, field.value);
	}
	if (count == 1) {
		record->has_fd = true;
		collected.with_fd++;
		collector_check(record, fds[0]);
		if (pread(fds[0], &record->first, 1, 0) < 0)
			snprintf(collected.wrong, sizeof collected.wrong, "cannot be read: %.100s",
				 record->name);
	}
	if (record->has_fd == (record->reason[0] != '\0'))
		snprintf(collected.wrong, sizeof collected.wrong, "neither file nor reason: %.100s",
			 record->name);
}

/* Collects `directory`, with this disk limit. */
static void collector_run(int directory, uint64_t disk_bytes)
{
	struct record *records = collected.records;
	struct stat info;

	if (!records)
		records = calloc(RECORDS_MAX, sizeof *records);
	if (!records || fstat(directory, &info) < 0)
		abort();
	collected = (struct collected){.records = records};
	collector_device = info.st_dev;
	collector_cell = (struct cell){.run = 1, .workspace = directory};
	collector_cell.limits.disk_bytes = disk_bytes;
	collect_workspace(&collector_cell);
	if (!collected.ended)
		snprintf(collected.wrong, sizeof collected.wrong, "no end was told");
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
