/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: see cgroup.h.
 *
 * Theory of operation. A warden makes one directory of its own in each
 * hierarchy, beside or beneath the cgroup that it was started in, and holds a
 * flock on it for as long as it lives; a directory with our prefix whose lock
 * is free belongs to a dead warden and is swept. Cells are directories
 * beneath it. All access is by directory descriptors, opened once, as root
 * where the caller is root: the files are handed to the unprivileged id, so
 * that everything after set-up runs without privilege.
 *
 * Under v2 a cgroup that has controllers enabled for its children may hold no
 * processes itself, so candidates are tried from our own cgroup upwards. */
#include "jail/cgroup.h"

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CGROUP_PREFIX     "execpy."
#define CGROUP_SUPERVISOR "supervisor"
#define CGROUP_FILE_MAX   4096
#define CGROUP_LOCK_TRIES 100 /* a millisecond each */

static const char *const controller_names[CGROUP_CONTROLLERS] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_PIDS] = "pids",
	[CGROUP_CPUACCT] = "cpuacct",
	[CGROUP_CPU] = "cpu",
};

const char *cgroup_mode_name(enum cgroup_mode mode)
{
	return mode == CGROUP_V2 ? "v2" : mode == CGROUP_V1 ? "v1" : "none";
}

static int read_from(int fd, char text[CGROUP_FILE_MAX])
{
	ssize_t length = pread(fd, text, CGROUP_FILE_MAX - 1, 0);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	return 0;
}

static int read_at(int directory, const char *name, char text[CGROUP_FILE_MAX])
{
	autofd fd = openat(directory, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_from(fd, text);
}

static int write_at(int directory, const char *name, const char *text)
{
	autofd fd = openat(directory, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_number_at(int directory, const char *name, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRIu64, number);
	return write_at(directory, name, text);
}

/* The number itself, or, of a file of keys, the one behind `key`. */
static int find_number(const char *text, const char *key, uint64_t *ret_number)
{
	size_t length = key ? strlen(key) : 0;

	if (!key)
		return sscanf(text, "%" SCNu64, ret_number) == 1 ? 0 : -EINVAL;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return sscanf(line + length, "%" SCNu64, ret_number) == 1 ? 0 : -EINVAL;
	}
	return -ENOENT;
}

static int read_number_at(int directory, const char *name, uint64_t *ret_number)
{
	char text[CGROUP_FILE_MAX];
	int r = read_at(directory, name, text);

	return r < 0 ? r : find_number(text, NULL, ret_number);
}

static int read_key_at(int directory, const char *name, const char *key, uint64_t *ret_number)
{
	char text[CGROUP_FILE_MAX];
	int r = read_at(directory, name, text);

	return r < 0 ? r : find_number(text, key, ret_number);
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length)
		if ((at == text || strchr(" ,\n", at[-1])) &&
		    (at[length] == '\0' || strchr(" ,\n", at[length])))
			return true;
	return false;
}

/* Where a hierarchy is mounted, and this process's path in it. `controller`
 * NULL means v2. */
static int find_hierarchy(const char *controller, char mount_point[PATH_MAX], char path[PATH_MAX])
{
	autofile *mounts = fopen("/proc/self/mountinfo", "re");
	autofile *groups = fopen("/proc/self/cgroup", "re");
	autofree char *line = NULL;
	char root[PATH_MAX] = "";
	size_t room = 0;
	bool found = false;

	if (!mounts || !groups)
		return -errno;
	while (!found && getline(&line, &room, mounts) > 0) {
		char *tail = strstr(line, " - ");
		char type[32], options[1024] = "";

		if (!tail || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount_point) != 2 ||
		    sscanf(tail, " - %31s %*s %1023s", type, options) < 1)
			continue;
		found = controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
				   : strcmp(type, "cgroup2") == 0;
	}
	if (!found)
		return -ENOENT;
	while (getline(&line, &room, groups) > 0) {
		char *names = strchr(line, ':');
		char *own = names ? strchr(names + 1, ':') : NULL;
		size_t prefix = strlen(root);

		if (!own)
			continue;
		*names++ = *own++ = '\0';
		own[strcspn(own, "\n")] = '\0';
		if (controller ? !has_word(names, controller) : names[0] != '\0')
			continue;
		/* In a container the mount may show a part of the tree only. */
		if (prefix > 1 && strncmp(own, root, prefix) == 0)
			own += prefix;
		snprintf(path, PATH_MAX, "%s", own[0] ? own : "/");
		return 0;
	}
	return -ENOENT;
}

/* Kills what is in a directory. v1 has no cgroup.kill: its cells died with
 * their keeper, so this finds stragglers, as many as one reading shows. */
static void kill_all_in(int directory)
{
	char text[CGROUP_FILE_MAX];
	int pid;

	if (write_at(directory, "cgroup.kill", "1") == 0 ||
	    read_at(directory, "cgroup.procs", text) < 0)
		return;
	for (char *at = text; *at; at += strcspn(at, "\n") + (strchr(at, '\n') != NULL))
		if (sscanf(at, "%d", &pid) == 1 && pid > 1)
			kill(pid, SIGKILL);
}

/* One try to end and remove what is in a directory, and the directory: false
 * while something in it is still dying. */
static bool try_to_sweep(int parent, const char *name, int depth)
{
	autofd directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct dirent *entry;
	DIR *entries;
	int copy;

	if (directory < 0 || depth > 4)
		return true; /* gone, or nothing that can be helped */
	kill_all_in(directory);
	copy = dup(directory);
	entries = copy < 0 ? NULL : fdopendir(copy);
	if (entries) {
		while ((entry = readdir(entries)))
			if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
				try_to_sweep(directory, entry->d_name, depth + 1);
		closedir(entries);
	}
	return unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

/* What was killed leaves its cgroup only when it gets a processor to die on:
 * tried again until the deadline, but once at least. */
static void sweep_directory(int parent, const char *name, int64_t deadline_us)
{
	while (!try_to_sweep(parent, name, 0) && now_us() < deadline_us)
		usleep(2000);
}

/* Removes the directories of dead wardens. */
static void sweep_siblings(int parent)
{
	int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	int64_t deadline_us = now_us() + SWEEP_OTHERS_MS * 1000;
	struct dirent *entry;

	if (!entries)
		return;
	while ((entry = readdir(entries))) {
		autofd directory = -1;
		int pid;

		if (sscanf(entry->d_name, CGROUP_PREFIX "%d.", &pid) != 1)
			continue;
		directory = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* The lock says whether its warden lives. A directory is made
		 * before it is locked, so a living pid is left alone as well. */
		if (directory < 0 || flock(directory, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (kill(pid, 0) < 0 && errno == ESRCH)
			sweep_directory(parent, entry->d_name, deadline_us);
	}
	closedir(entries);
}

/* Makes a directory and locks it; returns it. A warden that sweeps takes the
 * lock for a moment to see whether ours lives, and where it cannot see our pid,
 * because it is in another pid namespace, it may have swept it before that. */
static int make_locked(int parent, const char *name)
{
	for (int tries = 0; tries < CGROUP_LOCK_TRIES; tries++) {
		autofd ours = -1;

		if (mkdirat(parent, name, 0755) < 0 && (errno != EEXIST || tries == 0))
			return -errno;
		ours = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (ours >= 0 && flock(ours, LOCK_EX | LOCK_NB) == 0) {
			if (faccessat(ours, "cgroup.procs", F_OK, 0) == 0)
				return take_fd(&ours);
		} else if (errno != ENOENT && errno != EWOULDBLOCK) {
			int r = -errno;

			unlinkat(parent, name, AT_REMOVEDIR);
			return r;
		}
		usleep(1000);
	}
	unlinkat(parent, name, AT_REMOVEDIR);
	return -EWOULDBLOCK;
}

static int give_to(int directory, uid_t owner, gid_t group)
{
	static const char *const files[] = {"cgroup.procs", "tasks", "cgroup.threads",
					    "cgroup.subtree_control"};

	if (owner == (uid_t)-1)
		return 0;
	if (fchown(directory, owner, group) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
		if (fchownat(directory, files[i], owner, group, 0) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

/* Makes our directory beneath `path` and locks it. */
static int make_ours(struct cgroup_root *root, enum cgroup_controller which, const char *path,
		     uid_t owner, gid_t group)
{
	autofd parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autofd ours = -1;
	int r;

	if (parent < 0)
		return -errno;
	sweep_siblings(parent);
	ours = make_locked(parent, root->name);
	if (ours < 0)
		return ours;
	r = give_to(ours, owner, group);
	if (r < 0) {
		unlinkat(parent, root->name, AT_REMOVEDIR);
		return r;
	}
	root->directory[which] = take_fd(&ours);
	root->parent[which] = take_fd(&parent);
	return 0;
}

static void setup_v1(struct cgroup_root *root, uid_t owner, gid_t group)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		char mount_point[PATH_MAX], own[PATH_MAX], path[2 * PATH_MAX];
		int r = find_hierarchy(controller_names[i], mount_point, own);

		if (r == 0) {
			snprintf(path, sizeof path, "%s%s", mount_point, own);
			r = make_ours(root, i, path, owner, group);
		}
		/* Not mounted is no reason of v1's: v2 has a better one then. */
		if (r < 0 && r != -ENOENT && !root->why[0] && i != CGROUP_CPU)
			snprintf(root->why, sizeof root->why, "cgroup v1 controller %s: %s",
				 controller_names[i], strerror(-r));
	}
	root->has_memory = root->directory[CGROUP_MEMORY] >= 0;
	root->has_pids = root->directory[CGROUP_PIDS] >= 0;
	root->has_cpu = root->directory[CGROUP_CPUACCT] >= 0;
	if (root->has_memory || root->has_pids || root->has_cpu)
		root->mode = CGROUP_V1;
}

static int enable_controllers(int directory)
{
	char text[CGROUP_FILE_MAX];
	int r = read_at(directory, "cgroup.subtree_control", text);

	if (r < 0)
		return r;
	if (has_word(text, "memory") && has_word(text, "pids"))
		return 0;
	return write_at(directory, "cgroup.subtree_control", "+memory +pids");
}

/* The leaf for the warden, beside the cells. */
static int make_supervisor(struct cgroup_root *root, uid_t owner, gid_t group)
{
	autofd leaf = -1;
	int r;

	if (mkdirat(root->directory[0], CGROUP_SUPERVISOR, 0755) < 0)
		return -errno;
	leaf = openat(root->directory[0], CGROUP_SUPERVISOR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf < 0)
		return -errno;
	r = give_to(leaf, owner, group);
	if (r == 0)
		root->supervisor = take_fd(&leaf);
	return r;
}

/* Undoes what `moved` stands for. A cgroup whose children have controllers
 * takes no process back, so those go first. */
static int move_back(struct cgroup_root *root, pid_t parent)
{
	int r;

	write_at(root->directory[0], "cgroup.subtree_control", "-memory -pids");
	write_at(root->parent[0], "cgroup.subtree_control", "-memory -pids");
	r = write_at(root->parent[0], "cgroup.procs", "0");
	if (r == 0 && getppid() == parent)
		r = write_number_at(root->parent[0], "cgroup.procs", (uint64_t)parent);
	return r;
}

/* With `empty_it` the candidate is our own cgroup, and we and our parent are
 * moved out of the way: it may be that nobody else is in there. */
static int try_v2(struct cgroup_root *root, const char *path, uid_t owner, gid_t group,
		  bool empty_it)
{
	autofd candidate = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char controllers[CGROUP_FILE_MAX];
	pid_t parent = getppid();
	int r;

	if (candidate < 0)
		return -errno;
	r = read_at(candidate, "cgroup.controllers", controllers);
	if (r < 0)
		return r;
	if (!has_word(controllers, "memory") || !has_word(controllers, "pids"))
		return -ENOTSUP;
	r = make_ours(root, 0, path, owner, group);
	if (r < 0)
		return r;
	if (empty_it || owner != (uid_t)-1)
		r = make_supervisor(root, owner, group);
	if (r == 0 && empty_it) {
		root->moved = true;
		r = write_at(root->supervisor, "cgroup.procs", "0");
		if (r == 0)
			r = write_number_at(root->supervisor, "cgroup.procs", (uint64_t)parent);
	}
	if (r == 0)
		r = enable_controllers(candidate);
	if (r == 0)
		r = enable_controllers(root->directory[0]);
	if (r < 0) {
		if (root->moved)
			move_back(root, parent);
		root->moved = false;
		cgroup_teardown(root);
	}
	return r;
}

static void setup_v2(struct cgroup_root *root, uid_t owner, gid_t group)
{
	char mount_point[PATH_MAX], own[PATH_MAX], path[2 * PATH_MAX], own_path[2 * PATH_MAX];
	bool first = true, own_is_busy = false;

	if (find_hierarchy(NULL, mount_point, own) < 0)
		return;
	snprintf(own_path, sizeof own_path, "%s%s", mount_point, own);
	for (;;) {
		char *slash = strrchr(own, '/');
		int r;

		snprintf(path, sizeof path, "%s%s", mount_point, own);
		r = try_v2(root, path, owner, group, false);
		if (r == 0)
			break;
		if (first)
			own_is_busy = r == -EBUSY;
		first = false;
		if (!root->why[0])
			snprintf(root->why, sizeof root->why, "cgroup v2 at %.80s: %s", own,
				 r == -ENOTSUP ? "memory and pids are not delegated"
					       : strerror(-r));
		if (slash && strcmp(own, "/") != 0) {
			slash[slash == own ? 1 : 0] = '\0';
			continue;
		}
		/* Nothing above is ours: a service with a delegated cgroup, say. */
		if (!own_is_busy || try_v2(root, own_path, owner, group, true) < 0)
			return;
		break;
	}
	root->mode = CGROUP_V2;
	root->has_memory = root->has_pids = root->has_cpu = true;
}

int cgroup_setup(struct cgroup_root *root, uid_t owner, gid_t owner_group, struct error *err)
{
	uint32_t random = 0;

	*root = (struct cgroup_root){.mode = CGROUP_NONE, .supervisor = -1};
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		root->directory[i] = root->parent[i] = -1;
#ifdef UNSAFE_WITHOUT_CGROUPS
	return 0;
#endif
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return fail(err, errno, "cgroup: getrandom");
	snprintf(root->name, sizeof root->name, CGROUP_PREFIX "%d.%08x", (int)getpid(), random);
	setup_v2(root, owner, owner_group);
	if (root->mode == CGROUP_NONE) {
		char why[sizeof root->why];

		memcpy(why, root->why, sizeof why);
		root->why[0] = '\0';
		setup_v1(root, owner, owner_group);
		if (root->mode == CGROUP_NONE && why[0] && !root->why[0])
			memcpy(root->why, why, sizeof why);
	}
	if (!root->why[0] && !(root->has_memory && root->has_pids && root->has_cpu))
		snprintf(root->why, sizeof root->why, "no cgroup counts %s",
			 !root->has_memory ? "memory"
			 : !root->has_pids ? "processes"
					   : "CPU");
	return 0;
}

void cgroup_teardown(struct cgroup_root *root)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (root->directory[i] >= 0) {
			unlinkat(root->directory[i], CGROUP_SUPERVISOR, AT_REMOVEDIR);
			unlinkat(root->parent[i], root->name, AT_REMOVEDIR);
		}
		close_fd(&root->directory[i]);
		close_fd(&root->parent[i]);
	}
	close_fd(&root->supervisor);
}

int cgroup_fork_janitor(struct cgroup_root *root, struct error *err)
{
	pid_t parent = getppid(), self = getpid(), child = fork();
	int64_t deadline_us;
	int status = 0;

	if (child < 0)
		return fail(err, errno, "cgroup: fork the janitor");
	if (child == 0) {
		root->janitor = self;
		/* v2 lets a process into a cell only if the writer may write to the
		 * common ancestor of the old and the new place: a warden that is about
		 * to become somebody else lives beside its cells. The janitor does
		 * not: it kills and removes all that is there. */
		if (root->supervisor >= 0 && !root->moved) {
			int r = write_at(root->supervisor, "cgroup.procs", "0");

			if (r < 0)
				return fail(err, -r, "cgroup: enter the supervisor's");
		}
		close_fd(&root->supervisor);
		return 0;
	}
	for (int number = 1; number < 32; number++)
		if (number != SIGCHLD)
			signal(number, SIG_IGN);
	close_range(0, ~0U, CLOSE_RANGE_CLOEXEC);
	close_range(0, 3, 0); /* the caller's streams and the engine's socket */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	deadline_us = now_us() + SWEEP_OWN_MS * 1000;
	/* What cannot be moved back must not be killed with the rest. */
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (root->directory[i] >= 0 && (!root->moved || move_back(root, parent) == 0))
			sweep_directory(root->parent[i], root->name, deadline_us);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int cgroup_follow_janitor(const struct cgroup_root *root, struct error *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return fail(err, errno, "cgroup: ask to die with the janitor");
	/* It may have died before that. */
	if (getppid() != root->janitor)
		return refuse(err, ESRCH, "cgroup: the janitor ended");
	return 0;
}

int cgroup_cell_create(const struct cgroup_root *root, uint64_t id, struct cgroup_cell *ret_cell,
		       struct error *err)
{
	struct cgroup_cell cell = {.join_count = 0};
	int r = 0;

	snprintf(cell.name, sizeof cell.name, "cell-%" PRIu64, id);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		cell.directory[i] = cell.join[i] = -1;
	for (int i = 0; i < CGROUP_COUNTERS; i++)
		cell.counter[i] = -1;
	for (int i = 0; i < CGROUP_CONTROLLERS && r == 0; i++) {
		int join;

		if (root->directory[i] < 0)
			continue;
		if (mkdirat(root->directory[i], cell.name, 0755) < 0) {
			r = fail(err, errno, "cgroup: make %s", cell.name);
			break;
		}
		cell.directory[i] =
			openat(root->directory[i], cell.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		join = cell.directory[i] < 0 ? -1
		       : root->mode == CGROUP_V2
			       ? dup(cell.directory[i])
			       : openat(cell.directory[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (join < 0)
			r = fail(err, errno, "cgroup: open %s", cell.name);
		else
			cell.join[cell.join_count++] = join;
		if (root->mode == CGROUP_V1 && i == CGROUP_PIDS)
			cell.pids_join = cell.join_count;
	}
	if (r < 0) {
		cgroup_cell_remove(root, &cell);
		return r;
	}
	*ret_cell = cell;
	return 0;
}

/* Writes a number and reads it back: the kernel rounds to pages, never up. */
static int set_verified(int directory, const char *name, uint64_t number, struct error *err)
{
	uint64_t now = 0;
	int r = write_number_at(directory, name, number);

	if (r == 0)
		r = read_number_at(directory, name, &now);
	if (r < 0)
		return fail(err, -r, "cgroup: set %s", name);
	if (now > number)
		return refuse(err, EPROTO, "cgroup: %s did not take", name);
	return 0;
}

int cgroup_cell_limit(const struct cgroup_root *root, const struct cgroup_cell *cell,
		      uint64_t memory_bytes, uint64_t processes, struct error *err)
{
	int memory = cell->directory[CGROUP_MEMORY];
	int pids = root->mode == CGROUP_V2 ? memory : cell->directory[CGROUP_PIDS];
	int r = 0;

	if (pids >= 0)
		r = set_verified(pids, "pids.max", processes, err);
	if (r < 0 || memory < 0)
		return r;
	if (root->mode == CGROUP_V2) {
		/* The OOM killer takes one process, or all: a half-dead run is
		 * of no use. No swap where the host accounts it. */
		write_at(memory, "memory.oom.group", "1");
		r = write_at(memory, "memory.swap.max", "0");
		if (r < 0 && r != -ENOENT)
			return fail(err, -r, "cgroup: set memory.swap.max");
		return set_verified(memory, "memory.max", memory_bytes, err);
	}
	/* limit <= memsw must hold at each moment, in whichever direction the
	 * limits move. memsw counts memory and swap together: equal to the
	 * limit it means no swap. */
	write_at(memory, "memory.swappiness", "0");
	r = write_number_at(memory, "memory.limit_in_bytes", memory_bytes);
	if (r < 0) {
		r = write_number_at(memory, "memory.memsw.limit_in_bytes", memory_bytes);
		if (r < 0 && r != -ENOENT)
			return fail(err, -r, "cgroup: set memory.memsw.limit_in_bytes");
	}
	r = set_verified(memory, "memory.limit_in_bytes", memory_bytes, err);
	if (r < 0)
		return r;
	r = write_number_at(memory, "memory.memsw.limit_in_bytes", memory_bytes);
	if (r < 0 && r != -ENOENT)
		return fail(err, -r, "cgroup: set memory.memsw.limit_in_bytes");
	return 0;
}

int cgroup_cell_processes(const struct cgroup_root *root, const struct cgroup_cell *cell,
			  uint64_t processes, struct error *err)
{
	int pids = cell->directory[root->mode == CGROUP_V2 ? CGROUP_MEMORY : CGROUP_PIDS];

	return pids < 0 ? 0 : set_verified(pids, "pids.max", processes, err);
}

void cgroup_cell_kill_one(const struct cgroup_root *root, const struct cgroup_cell *cell)
{
	if (root->mode == CGROUP_V2)
		write_at(cell->directory[CGROUP_MEMORY], "memory.oom.group", "0");
}

void cgroup_cell_weight(const struct cgroup_root *root, const struct cgroup_cell *cell, bool behind)
{
	if (root->mode == CGROUP_V2)
		write_at(cell->directory[CGROUP_MEMORY], "cpu.weight", behind ? "12" : "100");
	else if (root->mode == CGROUP_V1 && cell->directory[CGROUP_CPU] >= 0)
		write_at(cell->directory[CGROUP_CPU], "cpu.shares", behind ? "128" : "1024");
}

/* pids.peak is of Linux 6.9. Before it, where the limit was hit it was the peak,
 * and else the caller knows no more than what it saw. */
static uint64_t processes_peak_of(int directory, uint64_t now)
{
	uint64_t peak = now, refusals = 0;

	if (read_key_at(directory, "pids.events", "max", &refusals) == 0 && refusals > 0 &&
	    read_number_at(directory, "pids.max", &peak) == 0)
		return peak;
	return now;
}

/* Where a counter is: [0] v1, [1] v2, which keeps all at index 0. */
static const struct counter_place {
	enum cgroup_controller controller;
	const char *name, *key;
} counter_places[CGROUP_COUNTERS][2] = {
	[CGROUP_COUNTS_CPU] = {{CGROUP_CPUACCT, "cpuacct.usage", NULL},
			       {CGROUP_MEMORY, "cpu.stat", "usage_usec"}},
	[CGROUP_COUNTS_OOM_KILLS] = {{CGROUP_MEMORY, "memory.oom_control", "oom_kill"},
				     {CGROUP_MEMORY, "memory.events", "oom_kill"}},
	[CGROUP_COUNTS_MEMORY] = {{CGROUP_MEMORY, "memory.usage_in_bytes", NULL},
				  {CGROUP_MEMORY, "memory.current", NULL}},
	/* v2's is of Linux 5.19 */
	[CGROUP_COUNTS_MEMORY_PEAK] = {{CGROUP_MEMORY, "memory.max_usage_in_bytes", NULL},
				       {CGROUP_MEMORY, "memory.peak", NULL}},
	[CGROUP_COUNTS_PROCESSES] = {{CGROUP_PIDS, "pids.current", NULL},
				     {CGROUP_MEMORY, "pids.current", NULL}},
	[CGROUP_COUNTS_PROCESSES_PEAK] = {{CGROUP_PIDS, "pids.peak", NULL},
					  {CGROUP_MEMORY, "pids.peak", NULL}},
};

/* The descriptor, which stays the cell's. */
static int open_counter(const struct cgroup_root *root, struct cgroup_cell *cell,
			enum cgroup_counter counter)
{
	const struct counter_place *place = &counter_places[counter][root->mode == CGROUP_V2];
	int directory = cell->directory[place->controller], *fd = &cell->counter[counter];
	/* A cell that is used again and again has its peak reset by the same way. */
	bool written = counter == CGROUP_COUNTS_MEMORY_PEAK && root->mode == CGROUP_V1;

	if (directory < 0 || *fd == -2)
		return -ENOENT;
	if (*fd < 0)
		*fd = openat(directory, place->name, (written ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (*fd < 0) {
		int r = -errno;

		*fd = r == -ENOENT ? -2 : -1;
		return r;
	}
	return *fd;
}

static int read_counter(const struct cgroup_root *root, struct cgroup_cell *cell,
			enum cgroup_counter counter, uint64_t *ret_number)
{
	const struct counter_place *place = &counter_places[counter][root->mode == CGROUP_V2];
	char text[CGROUP_FILE_MAX];
	int r = open_counter(root, cell, counter);

	if (r >= 0)
		r = read_from(r, text);
	return r < 0 ? r : find_number(text, place->key, ret_number);
}

void cgroup_cell_reset_peak(const struct cgroup_root *root, struct cgroup_cell *cell)
{
	int fd = root->mode == CGROUP_V1 ? open_counter(root, cell, CGROUP_COUNTS_MEMORY_PEAK) : -1;

	/* Where it cannot be done the peak is that of all runs. */
	if (fd >= 0 && pwrite(fd, "0", 1, 0) < 0)
		errno = 0;
}

int cgroup_cell_so_far(const struct cgroup_root *root, struct cgroup_cell *cell,
		       struct cgroup_usage *ret_usage, struct error *err)
{
	struct cgroup_usage usage = {0};
	int r;

	r = read_counter(root, cell, CGROUP_COUNTS_CPU, &usage.cpu_us);
	if (r < 0 && root->has_cpu)
		return fail(err, -r, "cgroup: read the CPU time");
	if (root->mode == CGROUP_V1)
		usage.cpu_us /= 1000; /* of nanoseconds */
	r = read_counter(root, cell, CGROUP_COUNTS_OOM_KILLS, &usage.oom_kills);
	if (r < 0 && root->has_memory)
		return fail(err, -r, "cgroup: read the count of OOM kills");
	read_counter(root, cell, CGROUP_COUNTS_PROCESSES, &usage.processes);
	*ret_usage = usage;
	return 0;
}

int cgroup_cell_usage(const struct cgroup_root *root, struct cgroup_cell *cell,
		      struct cgroup_usage *ret_usage, struct error *err)
{
	int pids = cell->directory[root->mode == CGROUP_V2 ? CGROUP_MEMORY : CGROUP_PIDS];
	struct cgroup_usage usage;
	int r = cgroup_cell_so_far(root, cell, &usage, err);

	if (r < 0)
		return r;
	read_counter(root, cell, CGROUP_COUNTS_MEMORY, &usage.memory_bytes);
	if (read_counter(root, cell, CGROUP_COUNTS_MEMORY_PEAK, &usage.memory_peak_bytes) < 0)
		usage.memory_peak_bytes = usage.memory_bytes;
	if (read_counter(root, cell, CGROUP_COUNTS_PROCESSES_PEAK, &usage.processes_peak) < 0)
		usage.processes_peak =
			pids >= 0 ? processes_peak_of(pids, usage.processes) : usage.processes;
	*ret_usage = usage;
	return 0;
}

int cgroup_cell_remove(const struct cgroup_root *root, struct cgroup_cell *cell)
{
	int result = 0;

	for (int i = 0; i < CGROUP_COUNTERS; i++)
		close_fd(&cell->counter[i]);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		close_fd(&cell->join[i]);
		if (root->directory[i] < 0 || cell->directory[i] < 0)
			continue;
		if (unlinkat(root->directory[i], cell->name, AT_REMOVEDIR) < 0 && errno == EBUSY)
			result = -EBUSY;
		else
			close_fd(&cell->directory[i]);
	}
	return result;
}
