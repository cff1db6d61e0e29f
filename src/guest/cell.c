/* SPDX-License-Identifier: Apache-2.0 */
/* cell: from fork to the first line of user code.
 *
 * Theory of operation. A cell is born as a fork of the template with all
 * capabilities of its own user namespace, which it needs for nothing: every
 * step below takes something away, each is checked after it is done, and the
 * first that fails is said to the warden by name and ends the process. Then it
 * parks in recv() until the warden says go. The control socket is closed
 * before user code runs; from then on the mailbox is the only way out.
 *
 * Order: descriptors first, so that nothing else can be touched by mistake;
 * /proc is used while the process is still dumpable; Landlock and seccomp
 * after everything that they forbid. */
#include "guest/guest.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/landlock.h"
#include "jail/namespaces.h"
#include "jail/resources.h"
#include "jail/syscalls.h"
#include "jail/watch.h"
#include "policy/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTROL 3 /* where descriptors_keep() puts it */

static void say(enum message type, const struct error *why, const int *fds, size_t count)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, (uint16_t)type, 0);

	if (why)
		frame_put_text(&frame, FIELD_TEXT, why->text);
	frame_end(&frame, at);
	frame_send(CONTROL, &frame, fds, count);
}

static int take_descriptors(const int *fds, struct error *err)
{
	int keep[3] = {fds[FORK_FD_CONTROL], fds[FORK_FD_MAILBOX], fds[FORK_FD_VERDICT]};

	for (int i = 0; i < 3; i++)
		if (dup2(fds[FORK_FD_STDIN + i], i) < 0)
			return fail(err, errno, "cell: standard stream %d", i);
	if (descriptors_keep(keep, 3, err) < 0)
		return -err->number;
	if (outbox_open(keep[1], err) < 0)
		return -err->number;
	close(keep[1]);
	outbox_take_verdict(keep[2]);
	return 0;
}

static int confine(int *ret_listener, struct error *err)
{
#ifndef UNSAFE_WITHOUT_LANDLOCK
	static const struct landlock_path paths[] = {
		{"/", LANDLOCK_READ, false},
		{"/workspace", LANDLOCK_WRITE, false},
		{"/tmp", LANDLOCK_WRITE, false},
		{"/dev/shm", LANDLOCK_WRITE, false},
		{"/var/cache/matplotlib", LANDLOCK_WRITE, false},
		/* Its nodes; the directory itself is on a read-only mount. */
		{"/dev", LANDLOCK_DEVICE, false},
	};
	static const struct landlock_plan plan = {
		.paths = paths,
		.path_count = ARRAY_LENGTH(paths),
		.deny_tcp = true,
		.deny_abstract_sockets = true,
		.deny_signals = true,
	};
#endif
	int r;

	if (setsid() < 0)
		return fail(err, errno, "cell: setsid");
	umask(022);
	/* Dumpable towards its own kind: /proc/self must work for libraries.
	 * Nobody without the same namespace and its capabilities can look. */
	r = credentials_drop(1, err);
	if (r < 0)
		return r;
	r = resources_oom_score(1000, err);
	if (r == 0)
		r = resources_limit_always(err);
	if (r < 0)
		return r;
#ifndef UNSAFE_WITHOUT_LANDLOCK
	r = landlock_confine(&plan, err);
	if (r < 0)
		return r;
#endif
	*ret_listener = watch_install(err);
	if (*ret_listener < 0)
		return *ret_listener;
	return filter_install(FILTER_CELL, err);
}

/* The limits of the run that is about to start, from MESSAGE_GO: what the
 * warden's cgroups hold is left to them, and doubled by nothing here. */
static int apply_limits(const struct frame *go, struct error *err)
{
	struct reader fields = frame_fields(go);
	struct resources resources = {0};
	uint64_t memory_in_cgroup = 0, cpu_in_cgroup = 0;
	struct limits limits = {0};
	struct field field;
	int r = 0;

	while (r == 0 && frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_LIMITS)
			r = limits_decode(field.value, &limits, err);
		else if (field.name == FIELD_MEMORY_PEAK)
			r = field_number(&field, &memory_in_cgroup);
		else if (field.name == FIELD_CPU_US)
			r = field_number(&field, &cpu_in_cgroup);
	}
	if (r < 0 || limits.processes == 0)
		return refuse(err, EBADMSG, "cell: GO without limits");
	/* The user namespace is the cell's own, and init counts in it. */
	resources.processes = limits.processes + 1;
	resources.file_bytes = limits.disk_bytes;
	if (!cpu_in_cgroup)
		resources.cpu_seconds = limits.cpu_ms / 1000 + 2;
	/* Without a cpu cgroup hundreds of busy processes would keep the warden
	 * from looking. */
	if (!cpu_in_cgroup && setpriority(PRIO_PROCESS, 0, CELL_NICE) < 0)
		return fail(err, errno, "cell: setpriority");
	if (!memory_in_cgroup) {
		/* The warden samples and ends the run at its limit; this stops
		 * what grows faster than it looks. What the template brought is
		 * free. */
		autofile *status = fopen("/proc/self/statm", "re");
		unsigned long data = 0;

		if (!status || fscanf(status, "%*u %*u %*u %*u %*u %lu", &data) != 1)
			return refuse(err, EPROTO, "cell: read /proc/self/statm");
		resources.data_bytes =
			2 * limits.memory_bytes + (uint64_t)data * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	return resources_limit(&resources, err);
}

/* Waits for the word to go. EOF means that nobody needs this cell any more. */
static void park(struct bytes *buffer, struct error *err)
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(CONTROL, buffer, &frame, fds, &count);

	if (r == 0)
		_exit(0);
	if (r < 0 || frame.type != MESSAGE_GO || count != 0) {
		fail(err, r < 0 ? -r : EBADMSG, "cell: wait for the word to go");
		return;
	}
	apply_limits(&frame, err);
}

void cell_become(const int *fds, const struct error *failed, bool settled, struct bytes *buffer,
		 struct bytes *ret_request)
{
	struct error err = *failed;
	struct span request;
	enum { SELF, LISTENER };
	int said[2] = {-1, -1};

	if (err.number || take_descriptors(fds, &err) < 0) {
		/* The control socket may still be where it came in. */
		autobytes frame = {0};
		size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

		frame_put_text(&frame, FIELD_TEXT, err.text);
		frame_end(&frame, at);
		frame_send(fds[FORK_FD_CONTROL], &frame, NULL, 0);
		_exit(1);
	}
	/* By which the warden asks where the code stands. */
	said[SELF] = pidfd_open(getpid(), 0);
	if (said[SELF] < 0) {
		fail(&err, errno, "cell: pidfd_open");
		goto failed;
	}
	if (chdir("/workspace") < 0) {
		fail(&err, errno, "cell: chdir /workspace");
		goto failed;
	}
	/* While opening for writing costs no notice yet. */
	if (run_open_main(&err) < 0 || (settled && rehearsal_open(&err) < 0) ||
	    confine(&said[LISTENER], &err) < 0)
		goto failed;
	interpreter_prepare_caches();
	if (hygiene_refresh(&err) < 0 || hygiene_streams(&err) < 0 || stopframes_install(&err) < 0)
		goto failed;
	/* One that was made for a run that waits already has no time for it. */
	if (settled && rehearse(false, &err) < 0)
		goto failed;
	if (settled)
		outbox_touch();
	say(MESSAGE_PARKED, NULL, said, 2);
	close(said[SELF]);
	close(said[LISTENER]);
	park(buffer, &err);
	if (err.number)
		goto failed;
	request = outbox_request();
	if (request.length == 0 || bytes_append(ret_request, request.data, request.length) < 0) {
		refuse(&err, EBADMSG, "cell: no request in the mailbox");
		goto failed;
	}
	close(CONTROL);
	return;
failed:
	say(MESSAGE_FAILED, &err, NULL, 0);
	_exit(1);
}
