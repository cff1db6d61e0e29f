/* SPDX-License-Identifier: Apache-2.0 */
/* processes: see processes.h. */
#include "guest/processes.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void process_close(struct process *process)
{
	close_fd(&process->pidfd);
	close_fd(&process->socket);
	process->pid = 0;
}

int process_send_pair(int receiver, enum message type, uint64_t more, struct process *ret_process)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, (uint16_t)type, 0);
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (more)
		frame_put_number(&frame, FIELD_MORE, more);
	frame_end(&frame, at);
	r = frame_send(receiver, &frame, &pair[1], 1);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	*ret_process = (struct process){.pid = 0, .pidfd = -1, .socket = pair[0]};
	return 0;
}

void process_protect(pid_t pid)
{
	char path[64];
	autofd fd = -1;

	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0", 1) < 0)
		errno = 0;
}

bool process_is_dead(pid_t pid)
{
	char path[64], line[256], *after = NULL;
	autofile *file = NULL;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof line, file))
		after = strrchr(line, ')');
	return !after || after[1] != ' ' || after[2] == 'Z' || after[2] == 'X';
}

unsigned long process_tables_kib(pid_t pid)
{
	char path[64], line[128];
	autofile *file = NULL;
	unsigned long kib = 0;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "VmPTE: %lu", &kib) == 1)
			break;
	return kib;
}

bool process_maps_files(pid_t pid)
{
	char path[64], line[PATH_MAX + 128];
	autofile *file = NULL;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		const char *rights = strchr(line, ' ');

		if (rights && strncmp(rights, " rw-s ", 6) == 0 && strstr(rights, " /workspace/"))
			return true;
	}
	return false;
}
