/* SPDX-License-Identifier: Apache-2.0 */
/* main: how a warden starts.
 *
 *   execpy-warden --guest PROGRAM --keeper PROGRAM [--fonts FILE] [--identity NUMBER]
 *
 * with the engine's socket as descriptor 3. Stages:
 *
 *   1. As whoever the caller is, possibly root. Should: close what was
 *      inherited, open what the caller may read, make cgroups. Mustn't: start
 *      anything, talk to anybody.
 *   2. If root: become an unprivileged id that no account has, for good.
 *   3. Serve the engine until it is gone. Everything from here on works
 *      without privilege. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "jail/credentials.h"
#include "jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENGINE_SOCKET 3

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* What runs inside runs from a sealed copy in memory: the file on disk may belong
 * to the id that a rootless guest has outside, and /proc/self/exe would lead to
 * it (CVE-2019-5736). */
static int seal_program(const char *path, const char *name, struct error *err)
{
	autofd from = open(path, O_RDONLY | O_CLOEXEC);
	autofd copy = -1;
	off_t offset = 0;
	ssize_t r;

	if (from < 0)
		return fail(err, errno, "warden: open %s", path);
	copy = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (copy < 0 && errno == EINVAL) /* before Linux 6.3 all are executable */
		copy = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return fail(err, errno, "warden: memfd_create");
	while ((r = sendfile(copy, from, &offset, 1 << 20)) > 0)
		;
	if (r < 0 || fchmod(copy, 0555) < 0)
		return fail(err, errno, "warden: copy %s", path);
	if (fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return fail(err, errno, "warden: seal %s", path);
	return take_fd(&copy);
}

struct arguments {
	const char *guest, *keeper, *fonts, *identity;
};

static int parse(int argc, char **argv, struct arguments *arguments, struct error *err)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--guest") == 0)
			arguments->guest = argv[i + 1];
		else if (strcmp(argv[i], "--keeper") == 0)
			arguments->keeper = argv[i + 1];
		else if (strcmp(argv[i], "--fonts") == 0)
			arguments->fonts = argv[i + 1];
		else if (strcmp(argv[i], "--identity") == 0)
			arguments->identity = argv[i + 1];
		else
			return refuse(err, EINVAL, "warden: unknown option %s", argv[i]);
	}
	if (!arguments->guest || !arguments->keeper)
		return refuse(err, EINVAL, "warden: is started by execpy, not by hand");
	return 0;
}

/* Different for each warden, or each daemon: its HTTP server has the same one, and so
 * may read what its cells wrote. */
static uid_t identity_of(const struct arguments *arguments)
{
	unsigned long given = arguments->identity ? strtoul(arguments->identity, NULL, 10) : 0;

	return given >= IDENTITY_BASE && given < UINT32_MAX ? (uid_t)given
							    : IDENTITY_BASE + (uid_t)getpid();
}

/* What is needed later, when a failure would be worse: the one way to kill, and
 * files large enough for a mailbox. */
static int check_host(struct error *err)
{
	struct rlimit size;
	autofd self = pidfd_open(getpid(), 0);

	if (self < 0 || pidfd_send_signal(self, 0, NULL, 0) < 0)
		return fail(err, errno, "warden: pidfd_send_signal");
	if (getrlimit(RLIMIT_FSIZE, &size) < 0)
		return fail(err, errno, "warden: read the file size limit");
	if (size.rlim_max < MAILBOX_BYTES)
		return refuse(err, EFBIG,
			      "warden: the limit on file sizes (ulimit -H -f) is below %llu bytes",
			      (unsigned long long)MAILBOX_BYTES);
	size.rlim_cur = size.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &size) < 0)
		return fail(err, errno, "warden: raise the file size limit");
	return 0;
}

static int prepare(struct warden *warden, int argc, char **argv, struct error *err)
{
	struct arguments arguments = {0};
	const char *fonts, *slash;
	bool root = credentials_is_root();
	int r = parse(argc, argv, &arguments, err);

	if (r < 0)
		return r;
	if (fcntl(ENGINE_SOCKET, F_GETFD) < 0)
		return refuse(err, EBADF, "warden: is started by execpy, not by hand");
	/* A caller of the library need not have them. */
	r = descriptors_fill_standard(err);
	if (r < 0)
		return r;
	if (close_range(ENGINE_SOCKET + 1, ~0U, 0) < 0)
		return fail(err, errno, "warden: close inherited descriptors");
	fcntl(ENGINE_SOCKET, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	/* Only root may take a caller's niceness back. */
	(void)setpriority(PRIO_PROCESS, 0, 0);
	warden->font_list = -1;
	r = check_host(err);
	if (r < 0)
		return r;
	warden->guest_program = seal_program(arguments.guest, "execpy-guest", err);
	if (warden->guest_program < 0)
		return warden->guest_program;
	warden->keeper_program = seal_program(arguments.keeper, "execpy-keeper", err);
	if (warden->keeper_program < 0)
		return warden->keeper_program;
	fonts = arguments.fonts;
	if (fonts) {
		slash = strrchr(fonts, '/');
		snprintf(warden->font_list_name, sizeof warden->font_list_name, "%s",
			 slash ? slash + 1 : fonts);
		warden->font_list = open(fonts, O_RDONLY | O_CLOEXEC);
	}
#ifndef UNSAFE_WITHOUT_LANDLOCK
	if (landlock_abi() == 0)
		return refuse(err, ENOSYS,
			      "warden: this kernel has no Landlock (Linux 5.13 and a "
			      "landlock entry in the lsm= list are needed)");
#endif
	warden->owner_uid = geteuid();
	warden->uid = root ? identity_of(&arguments) : geteuid();
	warden->gid = root ? (gid_t)warden->uid : getegid();
	r = cgroup_setup(&warden->cgroups, root ? warden->uid : (uid_t)-1, warden->gid, err);
	if (r < 0)
		return r;
	r = cgroup_fork_janitor(&warden->cgroups, err);
	if (r < 0)
		return r;
	if (root) {
		r = credentials_become(warden->uid, warden->gid, err);
		if (r < 0)
			return r;
	}
	r = cgroup_follow_janitor(&warden->cgroups, err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(err, errno, "warden: no_new_privs");
	return 0;
}

static void say_failed(const char *why)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

	frame_put_text(&frame, FIELD_TEXT, why);
	frame_end(&frame, at);
	frame_send(ENGINE_SOCKET, &frame, NULL, 0);
}

int main(int argc, char **argv)
{
	struct warden warden = {.listener = -1};
	struct error err = {0};

	if (prepare(&warden, argc, argv, &err) < 0 ||
	    warden_run(&warden, ENGINE_SOCKET, &err) < 0) {
		if (fcntl(ENGINE_SOCKET, F_GETFD) >= 0)
			say_failed(err.text);
		else
			fprintf(stderr, "execpy-warden: %s\n", err.text);
		return 1;
	}
	warden_shut_down(&warden);
	/* What is left is memory, and the process ends. */
	_exit(warden.exit_status);
}
