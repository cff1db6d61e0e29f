/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: pid 1 of a template's jail, until its root stands.
 *
 * Theory of operation. The warden clones the keeper into fresh namespaces. The
 * keeper maps the one id, builds the root, and gives up all capabilities: what
 * remains to be done (making a template, making inits) needs none, because a
 * new user namespace brings its own. Then it becomes the program of
 * keeper_main.c, which is linked statically: each init is a fork of it, and a
 * process with few mappings is forked and ended in a third of the time.
 *
 * Should: fail each step by name.
 * Mustn't: keep a capability, or read anything that a guest can write. */
#include "jail/keeper.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/mounts.h"
#include "jail/namespaces.h"
#include "jail/resources.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say_failed(int socket, const struct error *why)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

	frame_put_text(&frame, FIELD_TEXT, why->text);
	frame_put_number(&frame, FIELD_ERRNO, (uint64_t)why->number);
	frame_end(&frame, at);
	frame_send(socket, &frame, NULL, 0);
}

static int keep_descriptors(struct keeper_options *options, struct error *err)
{
	int keep[3] = {options->socket, options->program, options->font_list};
	int r = descriptors_keep(keep, options->font_list >= 0 ? 3 : 2, err);

	options->socket = keep[0];
	options->program = keep[1];
	options->font_list = keep[2];
	return r;
}

static _Noreturn void keeper_main(struct keeper_options options)
{
	static char *const arguments[] = {(char *)"execpy-keeper", NULL};
	struct error err = {0};

	/* Its parent may have died in between: then the socket says so. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) {
		fail(&err, errno, "keeper: ask to die with the warden");
		goto failed;
	}
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (keep_descriptors(&options, &err) < 0 || resources_reset(&err) < 0 ||
	    credentials_map(options.outside_uid, options.outside_gid, &err) < 0)
		goto failed;
	if (sethostname("sandbox", 7) < 0) {
		fail(&err, errno, "keeper: set the host name");
		goto failed;
	}
	if (mounts_build_root(options.font_list, options.font_list_name, &err) < 0 ||
	    credentials_drop(0, &err) < 0)
		goto failed;
	close_fd(&options.font_list);
	if (fcntl(options.socket, F_SETFD, 0) < 0) {
		fail(&err, errno, "keeper: hand its socket on");
		goto failed;
	}
	syscall(SYS_execveat, options.program, "", arguments, options.environment, AT_EMPTY_PATH);
	fail(&err, errno, "keeper: execute its own program");
failed:
	say_failed(options.socket, &err);
	_exit(1);
}

pid_t keeper_start(const struct keeper_options *options, int *ret_pidfd, struct error *err)
{
	uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP;
	pid_t pid;

#ifndef UNSAFE_WITHOUT_NETWORK
	flags |= CLONE_NEWNET;
#endif
	pid = namespaces_clone(flags, ret_pidfd, err);
	if (pid == 0)
		keeper_main(*options);
	return pid;
}
