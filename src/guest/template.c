/* SPDX-License-Identifier: Apache-2.0 */
/* template: a CPython that has finished its imports and is only ever forked.
 *
 * Theory of operation. A cell must be a fork of this process (its memory is
 * the point), but must live in the cell's namespaces and cgroup. Joining them
 * would strip the template of its own, and a second fork would copy the page
 * tables twice. So a helper is made that shares the template's memory, as
 * after vfork: it enters the cgroup and the namespaces and then calls glibc's
 * fork(); that child is the cell, and the helper ends.
 *
 * The helper may enter because its user id owns the cell's user namespace, and
 * gets the capabilities of that namespace by entering; the cell drops them as
 * its first act (cell.c). The template itself has none at any time.
 *
 * Once loaded, the template stays as CPython is just before a fork: no Python runs in
 * it any more, and each fork finds it as the first one did.
 *
 * Should: have one thread, and no descriptor that is not on the list below.
 * Mustn't: run user code, or read a byte that a guest wrote. */
#include "guest/image.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* 0, 1, 2, the warden's socket. */
#define TEMPLATE_DESCRIPTORS 4

#define REHEARSALS 20

static int count_entries(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

/* /proc tells both numbers without a look into the directory; that of the
 * descriptors from Linux 6.2 on. */
static int count_threads(void)
{
	struct stat info;

	if (stat("/proc/self/task", &info) < 0)
		return -errno;
	return (int)info.st_nlink - 2;
}

static int count_descriptors(void)
{
	struct stat info;

	if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0)
		return (int)info.st_size;
	return count_entries("/proc/self/fd") - 1 /* opendir's own */;
}

/* What the highest descriptor is: of those that are too many the newest. The
 * kernel lists them in order. */
static void describe_descriptor(char text[128])
{
	DIR *directory = opendir("/proc/self/fd");
	char own[16], path[280] = "";
	struct dirent *entry;
	ssize_t length;

	snprintf(own, sizeof own, "%d", directory ? dirfd(directory) : -1);
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, own) != 0)
			snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
	if (directory)
		closedir(directory);
	length = readlink(path, text, 127);
	text[length < 0 ? 0 : length] = '\0';
}

/* Threads and descriptors do not survive a fork as they were: refuse, and name
 * what was loaded last. */
static int check_forkable(const char *blame, int passed_descriptors, struct error *err)
{
	int threads = count_threads();
	int descriptors = count_descriptors() - passed_descriptors;

	if (threads < 0 || descriptors < 0)
		return refuse(err, EPROTO, "template: cannot count threads and descriptors");
	if (threads != 1)
		return refuse(err, EPROTO, "template: %s started %d threads", blame, threads - 1);
	if (descriptors != TEMPLATE_DESCRIPTORS) {
		char text[128];

		describe_descriptor(text);
		return refuse(err, EPROTO, "template: %s left %d descriptors open (%s)", blame,
			      descriptors - TEMPLATE_DESCRIPTORS, text);
	}
	return 0;
}

/* gc.freeze(): a collection in a cell then leaves the template's objects alone,
 * and their pages shared. */
static int freeze(struct error *err)
{
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *result = gc ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;

	Py_XDECREF(gc);
	Py_XDECREF(result);
	return result ? 0 : interpreter_error(err, "template: gc.freeze");
}

/* Imports what PRELOAD names. A guess that cannot be imported is only said, in
 * the answer; a template with a name must have all its modules. */
static int import_all(const struct frame *frame, bool must, struct bytes *answer,
		      bool *ret_imported, struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct field field;
	int r;

	while ((r = frame_next_field(&fields, &field)) == 1) {
		struct error why = {0};
		autofree char *module = NULL;

		if (field.name != FIELD_MODULE)
			continue;
		module = span_to_string(field.value);
		if (!module)
			return fail(err, ENOMEM, "template: preload");
		*ret_imported = true;
		if (interpreter_import(module, &why) < 0) {
			if (must) {
				*err = why;
				return -err->number;
			}
			frame_put_text(answer, FIELD_TEXT, why.text);
		} else if (rehearsal_add_import(module, err) < 0) {
			return -err->number;
		}
		r = check_forkable(module, 0, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? fail(err, EBADMSG, "template: PRELOAD") : 0;
}

/* What a cell does between fork and its end, so often that nothing changes by it
 * any more: 3.11 specialises a function after eight calls. The handlers that
 * CPython has for a child do no harm in the one process that there is. */
static int settle(struct error *err)
{
	/* Where a traceback finds its source, as in a cell. */
	autofd main_file =
		chdir("/tmp") == 0 ? open(RUN_FILE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;

	if (main_file < 0)
		return fail(err, errno, "template: make /tmp/" RUN_FILE_NAME);
	close_fd(&main_file);
	/* Each rehearsal collects garbage: of its own objects, not of all modules'. */
	if (freeze(err) < 0)
		return -err->number;
	for (int i = 0; i < REHEARSALS && LEFT_OUT != MEASURE_TEMPLATE_REHEARSALS; i++) {
		PyOS_BeforeFork();
		PyOS_AfterFork_Child();
		if (hygiene_refresh(err) < 0 || rehearse(true, err) < 0)
			return -err->number;
	}
	PyGC_Collect();
	if (LEFT_OUT != MEASURE_TEMPLATE_REHEARSALS && rehearse(false, err) < 0)
		return -err->number;
	if (hygiene_prepare(err) < 0)
		return -err->number;
	if (unlink(RUN_FILE_NAME) < 0 || chdir("/") < 0)
		return fail(err, errno, "template: leave /tmp");
	return check_forkable("the rehearsal", 0, err);
}

static int preload(int socket, const struct frame *frame, bool *ret_settled, struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct span name = {NULL, 0}, code = {NULL, 0};
	autobytes answer = {0};
	struct timespec began, ended;
	struct field field;
	bool imported = false;
	size_t at;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_NAME)
			name = field.value;
		else if (field.name == FIELD_CODE)
			code = field.value;
	}
	at = frame_begin(&answer, MESSAGE_LOADED, frame->id);
	r = import_all(frame, name.length > 0, &answer, &imported, err);
	if (r == 0 && code.length > 0)
		r = warm_up(code, err);
	/* Imports and warm-ups leave garbage, in which there may be open files. */
	if (imported || code.length > 0)
		PyGC_Collect();
	if (r == 0 && code.length > 0)
		r = check_forkable("the warm-up", 0, err);
	*ret_settled = name.length > 0;
	if (r == 0 && *ret_settled)
		r = settle(err);
	if (r < 0 && name.length > 0)
		fail_wrap(err, "template %.*s", (int)(name.length < 40 ? name.length : 40),
			  (const char *)name.data);
	if (r == 0)
		r = freeze(err);
	if (r < 0)
		return r;
	/* Once and for all forks: what modules do before and after one in the parent would
	 * write to huge pages that cells share, and break them up for all that follow. */
	PyOS_BeforeFork();
	memory_settle(*ret_settled);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	frame_put_number(&answer, FIELD_NUMBER,
			 (uint64_t)((ended.tv_sec - began.tv_sec) * 1000 +
				    (ended.tv_nsec - began.tv_nsec) / 1000000));
	frame_end(&answer, at);
	r = frame_send(socket, &answer, NULL, 0);
	return r < 0 ? fail(err, -r, "template: answer") : 0;
}

/* What the helper has to do and, since it shares memory, where it failed. */
struct entry {
	const int *fds;
	size_t count;
	bool own_network, join_by_clone;
	size_t pids_join; /* the one that the cell enters itself, from 1; 0: none */
	const char *failed_step;
	int failed_errno;
	pid_t pid; /* of the cell, as the template sees it */
};

/* clone3 in line: the child runs on the parent's stack, so it must not return
 * from a function that the parent has yet to return from. */
static inline __attribute__((always_inline)) long clone_sharing_memory(struct clone_args *args)
{
	long result;
#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof *args;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	result = x0;
#else
#error "clone3 for this processor, please"
#endif
	return result;
}

static bool step(struct entry *entry, const char *name, long result)
{
	if (result >= 0)
		return true;
	entry->failed_step = name;
	entry->failed_errno = errno;
	return false;
}

/* In the helper: into the cgroup, into the namespaces, user namespace first.
 * Returns 0 in the cell. Async-signal-safe but for fork() itself, which runs
 * glibc's own handlers in memory that only the helper uses meanwhile. */
static __attribute__((noinline)) int enter_and_fork(struct entry *entry)
{
	const int *fds = entry->fds;
	size_t cgroup = FORK_FD_CGROUP;
	pid_t pid;

	if (entry->own_network)
		cgroup++;
	if (!entry->join_by_clone)
		for (size_t i = cgroup; i < entry->count; i++)
			if (i != cgroup + entry->pids_join - 1 &&
			    !step(entry, "enter the cgroup", write(fds[i], "0", 1)))
				return -1;
	if (!step(entry, "enter the user namespace", setns(fds[FORK_FD_USER], CLONE_NEWUSER)) ||
	    !step(entry, "enter the pid namespace", setns(fds[FORK_FD_PID], CLONE_NEWPID)) ||
	    !step(entry, "enter the ipc namespace", setns(fds[FORK_FD_IPC], CLONE_NEWIPC)) ||
	    !step(entry, "enter the uts namespace", setns(fds[FORK_FD_UTS], CLONE_NEWUTS)) ||
	    (entry->own_network && !step(entry, "enter the network namespace",
					 setns(fds[FORK_FD_CGROUP], CLONE_NEWNET))) ||
	    !step(entry, "enter the mount namespace", setns(fds[FORK_FD_MOUNT], CLONE_NEWNS)))
		return -1;
	pid = fork();
	if (pid == 0) {
		/* Nobody waits for this process: what fails here is said by the cell.
		 * "0" to a v1 `tasks` file moves the calling thread alone, which
		 * needs none of the locks that make other moves slow. */
		if (!entry->pids_join || step(entry, "enter the pids cgroup",
					      write(fds[cgroup + entry->pids_join - 1], "0", 1)))
			/* Only now: its root is where its maker stands. */
			step(entry, "make a cgroup namespace (unshare)", unshare(CLONE_NEWCGROUP));
		return 0;
	}
	entry->pid = pid;
	return step(entry, "fork", pid) ? 1 : -1;
}

/* Returns 0 in the cell, its pid in the template, negative on failure there. */
static pid_t fork_cell(const struct frame *frame, const int *fds, size_t count, struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct entry entry = {.fds = fds, .count = count};
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
	};
	struct field field;
	uint64_t cgroup_is_v2 = 0, own_network = 0, pids_join = 0;
	int status = 0;
	long helper;

	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_CGROUP)
			field_number(&field, &cgroup_is_v2);
		if (field.name == FIELD_MORE)
			field_number(&field, &own_network);
		if (field.name == FIELD_PROCESSES_PEAK)
			field_number(&field, &pids_join);
	}
	entry.own_network = own_network != 0;
	entry.pids_join = (size_t)pids_join;
	if (count < FORK_FD_CGROUP + own_network)
		return refuse(err, EBADMSG, "template: FORK_CELL with %zu descriptors", count);
	if (cgroup_is_v2 && count > FORK_FD_CGROUP + own_network) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)fds[FORK_FD_CGROUP + own_network];
		entry.join_by_clone = true;
	}

	if (check_forkable("something after the imports", (int)count, err) < 0)
		return -err->number;
	/* A session whose template could not be remembered cannot be branched, and says so. */
	if (frame_number(frame, FIELD_SESSION))
		image_remember(&(struct error){0});
	/* The helper writes to `entry` behind the compiler's back. */
	__asm__ volatile("" : : "r"(&entry) : "memory");
	helper = clone_sharing_memory(&args);
	if (helper == 0) {
		int side = enter_and_fork(&entry);

		if (side != 0)
			_exit(side < 0);
		/* The cell: a whole copy, on this same stack. */
		PyOS_AfterFork_Child();
		if (entry.failed_step)
			fail(err, entry.failed_errno, "cell: %s", entry.failed_step);
		return 0;
	}
	if (helper < 0)
		return fail(err, (int)-helper, "template: make the helper");
	while (waitpid((pid_t)helper, &status, 0) < 0 && errno == EINTR)
		;
	if (entry.failed_step)
		return fail(err, entry.failed_errno, "template: %s", entry.failed_step);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return refuse(err, EPROTO, "template: the helper ended with status %d", status);
	return entry.pid;
}

static int answer_forked(int socket, uint64_t id, pid_t pid, const struct error *failed)
{
	autobytes answer = {0};
	size_t at = frame_begin(&answer, MESSAGE_FORKED, id);

	if (failed) {
		frame_put_text(&answer, FIELD_TEXT, failed->text);
		frame_put_number(&answer, FIELD_ERRNO, (uint64_t)failed->number);
	} else {
		frame_put_number(&answer, FIELD_PID, (uint64_t)pid);
	}
	frame_end(&answer, at);
	return frame_send(socket, &answer, NULL, 0);
}

int template_serve(int socket, struct bytes *ret_request, struct error *err)
{
	static struct bytes buffer; /* cells use it on, and do not pay for freeing it */
	bool settled = false;

	for (;;) {
		int fds[FRAME_FDS_MAX];
		struct frame frame;
		size_t count = 0;
		int r = frame_receive(socket, &buffer, &frame, fds, &count);

		if (r == 0)
			_exit(0); /* the warden is gone */
		if (r < 0)
			return fail(err, -r, "template: receive");
		switch (frame.type) {
		case MESSAGE_PRELOAD:
			r = preload(socket, &frame, &settled, err);
			if (r < 0)
				return r;
			break;
		case MESSAGE_FORK_CELL: {
			struct error why = {0};

			r = fork_cell(&frame, fds, count, &why);
			if (r == 0) {
				cell_become(fds, &why, &frame, settled, &buffer, ret_request);
				return 0;
			}
			r = answer_forked(socket, frame.id, r, r < 0 ? &why : NULL);
			if (r < 0)
				return fail(err, -r, "template: answer");
			break;
		}
		default:
			return refuse(err, EBADMSG, "template: message %d is not for now",
				      frame.type);
		}
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
	}
}
