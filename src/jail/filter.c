/* SPDX-License-Identifier: Apache-2.0 */
/* filter: installs the seccomp programs that filter_build made. */
#include "jail/syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What an init does for the rest of its life: it waits, reaps and tells. Written
 * out, since the table is about what others' code may do, and short, since each
 * cell pays for it. */
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif
#define LOAD(member)    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(verdict) BPF_STMT(BPF_RET | BPF_K, verdict)
#define ALLOW(call)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)

static const struct sock_filter filter_init[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	ALLOW(rt_sigtimedwait),
	ALLOW(wait4),
	ALLOW(sendmsg),
	ALLOW(close),
	ALLOW(exit_group),
	ALLOW(brk), /* of the message that it sends */
	ALLOW(mmap),
	ALLOW(munmap),
	ALLOW(prctl), /* whether this filter is there */
	RETURN(SECCOMP_RET_ERRNO | EPERM),
};

/* Calls that the filter answers with EPERM and that do nothing where it does
 * not: the kernel knows no process 0 to trace (ESRCH), and unshares nothing. */
static long call_refused(enum filter_stage stage)
{
	return stage == FILTER_TEMPLATE ? syscall(SYS_ptrace, -1, 0, 0, 0)
					: syscall(SYS_unshare, 0);
}

int filter_install(enum filter_stage stage, struct error *err)
{
	const char *name = stage == FILTER_TEMPLATE ? "template"
			   : stage == FILTER_CELL   ? "cell"
						    : "init";
	struct sock_fprog program;
	long r;

#ifdef UNSAFE_WITHOUT_SECCOMP
	return 0;
#endif
	if (stage == FILTER_TEMPLATE) {
		program.len = (unsigned short)filter_template_length;
		program.filter = (struct sock_filter *)filter_template;
	} else if (stage == FILTER_CELL) {
		program.len = (unsigned short)filter_cell_length;
		program.filter = (struct sock_filter *)filter_cell;
	} else {
		program.len = sizeof filter_init / sizeof filter_init[0];
		program.filter = (struct sock_filter *)filter_init;
	}
	/* 1. The kernel takes no filter from a process that could still gain rights. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(err, errno, "set no_new_privs");
	/* 2. All threads or none: one that is missed would be unfiltered. */
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	if (r < 0)
		return fail(err, errno, "install the %s's seccomp filter", name);
	if (r > 0)
		return refuse(err, EBUSY,
			      "install the %s's seccomp filter: thread %ld has another one", name,
			      r);
	/* 3. Believe it when it has been seen. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return refuse(err, EPROTO,
			      "the %s's seccomp filter is not there after it was installed", name);
	if (call_refused(stage) != -1 || errno != EPERM)
		return refuse(err, EPROTO, "the %s's seccomp filter does not refuse what it must",
			      name);
	return 0;
}
