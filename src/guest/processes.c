/* SPDX-License-Identifier: Apache-2.0 */
/* processes: see processes.h. */
#include "guest/processes.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

void process_close(struct process *process)
{
	close_fd(&process->pidfd);
	close_fd(&process->socket);
	process->pid = 0;
}

/* Of ours, killed and not yet reaped. */
static pid_t dying[4 * SESSION_CHECKPOINTS_MAX];

void process_kill(struct process *process)
{
	if (process->pidfd >= 0)
		pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
	for (size_t i = 0; process->pid && i < ARRAY_LENGTH(dying); i++)
		if (!dying[i]) {
			dying[i] = process->pid;
			break;
		}
	process_close(process);
}

void process_reaped(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_LENGTH(dying); i++)
		if (dying[i] == pid)
			dying[i] = 0;
}

bool process_is_dying(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_LENGTH(dying); i++)
		if (dying[i] == pid)
			return true;
	return false;
}

bool processes_are_dying(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(dying); i++)
		if (dying[i])
			return true;
	return false;
}

/* False when nothing of it is left but its status, for which somebody is to ask. */
static bool is_alive(pid_t pid, pid_t *ret_parent)
{
	char path[64], line[256], *after = NULL, state = 'X';
	autofile *file = NULL;

	*ret_parent = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	/* The name may hold anything, so from its last parenthesis on. */
	if (file && fgets(line, sizeof line, file))
		after = strrchr(line, ')');
	if (after)
		sscanf(after + 1, " %c %d", &state, ret_parent);
	return state != 'Z' && state != 'X';
}

unsigned processes_kill_others(bool (*is_kept)(pid_t pid, pid_t parent))
{
	static pid_t gone[4096];
	size_t count = 0;
	unsigned killed = 0;
	bool found = true;

	while (found) {
		DIR *directory = opendir("/proc");
		struct dirent *entry;

		found = false;
		while (directory && (entry = readdir(directory))) {
			pid_t pid = text_number(entry->d_name), parent;
			bool known = pid <= 1, alive = !known && is_alive(pid, &parent);

			known = known || is_kept(pid, parent);
			for (size_t i = 0; i < count && !known; i++)
				known = gone[i] == pid;
			if (known)
				continue;
			if (alive) {
				found = true;
				killed++;
				kill(pid, SIGKILL);
			}
			if (count < ARRAY_LENGTH(gone))
				gone[count++] = pid;
		}
		if (directory)
			closedir(directory);
	}
	return killed;
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

static void set_oom_score(pid_t pid, const char *text)
{
	char path[64];
	autofd fd = -1;

	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		errno = 0;
}

void process_protect(pid_t pid)
{
	set_oom_score(pid, "0");
}

void process_expose(pid_t pid)
{
	set_oom_score(pid, "1000");
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
