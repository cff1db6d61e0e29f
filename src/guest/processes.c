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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

/* Those that are being killed, each counted once. */
static struct {
	pid_t pids[4096];
	size_t count;
	unsigned killed;
} victims;

static bool is_victim(pid_t pid)
{
	for (size_t i = 0; i < victims.count; i++)
		if (victims.pids[i] == pid)
			return true;
	return false;
}

static void add_victim(pid_t pid, bool alive)
{
	victims.killed += alive;
	if (victims.count < ARRAY_LENGTH(victims.pids))
		victims.pids[victims.count++] = pid;
}

/* All that /proc shows; false when there was nothing new. */
static bool kill_shown(bool (*is_kept)(pid_t pid, pid_t parent))
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (directory && (entry = readdir(directory))) {
		pid_t pid = text_number(entry->d_name), parent;
		bool alive;

		if (pid <= 1)
			continue;
		alive = is_alive(pid, &parent);
		if (is_kept(pid, parent) || is_victim(pid))
			continue;
		if (alive) {
			found = true;
			kill(pid, SIGKILL);
		}
		add_victim(pid, alive);
	}
	if (directory)
		closedir(directory);
	return found;
}

static size_t list_children(pid_t parent, pid_t *children, size_t most)
{
	char path[64];
	autofile *file = NULL;
	size_t count = 0;
	int pid;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
	file = fopen(path, "re");
	while (file && count < most && fscanf(file, "%d", &pid) == 1)
		children[count++] = pid;
	return count;
}

/* It has no child, and no other thread that could leave it one. Of what /proc does not show
 * that is not known. */
static bool is_alone(pid_t pid)
{
	char path[64];
	struct stat info;
	pid_t child;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	return stat(path, &info) == 0 && info.st_nlink == 2 + 1 &&
	       list_children(pid, &child, 1) == 0;
}

/* What is left of a child of the judge's is its status. Whose is known is asked for that by
 * others. */
static bool is_dead(pid_t pid, bool known)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | __WALL | (known ? WNOWAIT : 0)) <
		       0 ||
	       info.si_pid == pid;
}

/* A process that may not be looked into, since its program may not be read, is not in /proc
 * for the judge; but its parent's list of children has it, and when the parent is dead the
 * judge's own. False while more may come: from one that dies and is not alone, or that has
 * handed its children over just before it was looked at. */
static bool kill_children(bool (*is_kept)(pid_t pid, pid_t parent))
{
	static pid_t before[4096], after[4096];
	pid_t self = getpid();
	size_t count = list_children(self, before, ARRAY_LENGTH(before));
	bool done = count < ARRAY_LENGTH(before);

	for (size_t i = 0; i < count; i++) {
		bool known = process_is_dying(before[i]);

		if ((is_kept(before[i], self) && !known) || is_dead(before[i], known))
			continue;
		kill(before[i], SIGKILL);
		if (!known && !is_victim(before[i]))
			add_victim(before[i], true);
		done = done && is_alone(before[i]);
	}
	return done && list_children(self, after, ARRAY_LENGTH(after)) == count &&
	       memcmp(before, after, count * sizeof before[0]) == 0;
}

unsigned processes_kill_others(bool (*is_kept)(pid_t pid, pid_t parent))
{
	const struct timespec moment = {0, 200000};

	victims.count = victims.killed = 0;
	while (kill_shown(is_kept))
		;
	/* The warden's patience ends first. */
	while (!kill_children(is_kept))
		nanosleep(&moment, NULL);
	return victims.killed;
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
