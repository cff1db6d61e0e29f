/* SPDX-License-Identifier: Apache-2.0 */
/* confine: see confine.h.
 *
 * Theory of operation. The server works in the workspaces of cells, which are file systems
 * in mount namespaces that are not its own and reach it as descriptors. No Landlock rule
 * can allow these, so files by their names are taken away otherwise: by a root directory
 * that is empty and stays so, the directory of a process that has ended (/proc/PID/fdinfo;
 * Chromium's sandbox does it this way). Landlock then takes what is left of the network,
 * signals and odd files, and the system call filter the rest. */
#include "jail/confine.h"
#include "jail/credentials.h"
#include "jail/landlock.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* --- the filter ----------------------------------------------------------------- */

/* Calls that are always allowed, each once. */
static const int allowed[] = {
	/* bytes in and out of what is open */
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_pread64,
	SYS_pwrite64,
	SYS_lseek,
	SYS_sendfile,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_recvfrom,
	SYS_sendto,
	SYS_close,
	SYS_close_range,
	SYS_fcntl,
	SYS_dup,
	SYS_fstat,
	SYS_statx,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_fsync,
	SYS_fadvise64,
	SYS_copy_file_range,
	/* clients, of which each comes from a socket that was bound before */
	SYS_accept4,
	SYS_shutdown,
	SYS_getsockname,
	SYS_getpeername,
	SYS_getsockopt,
	SYS_setsockopt,
	/* beneath a workspace's descriptor; by name there is nothing */
	SYS_openat,
	SYS_openat2,
	SYS_newfstatat,
	SYS_getdents64,
	SYS_mkdirat,
	SYS_unlinkat,
	SYS_renameat2,
	SYS_linkat,
	SYS_readlinkat,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_fchdir,
	SYS_utimensat,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_umask,
	/* the loop */
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_epoll_pwait2,
	SYS_ppoll,
	SYS_timerfd_settime,
	SYS_timerfd_create,
	SYS_eventfd2,
	SYS_epoll_create1,
	SYS_pipe2,
	SYS_memfd_create,
	/* memory; never executable, see below */
	SYS_munmap,
	SYS_mremap,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_membarrier,
	/* the process itself */
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_setfsuid,
	SYS_setfsgid,
	SYS_getrandom,
	SYS_clock_gettime,
	SYS_clock_getres,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_getrusage,
	SYS_sysinfo,
	SYS_uname,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_getcpu,
	SYS_restart_syscall,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_exit,
	SYS_exit_group,
#ifdef SYS_open
	SYS_stat,
	SYS_lstat,
	SYS_poll,
	SYS_epoll_wait,
	SYS_time,
	SYS_access,
	SYS_open,
	SYS_readlink,
#endif
};

#define LOAD(offset)    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define ARGUMENT(index) (offsetof(struct seccomp_data, args) + 8 * (index))
#define RETURN(verdict) BPF_STMT(BPF_RET | BPF_K, verdict)
#define REFUSED         (SECCOMP_RET_ERRNO | EPERM)

/* Memory that is or becomes executable; limits that are set; requests of ioctl and prctl
 * other than a few; processes. Each begins with the call's number loaded, and ends. */
static const struct sock_filter on_mmap[] = {
	LOAD(ARGUMENT(2)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	RETURN(REFUSED),
	RETURN(SECCOMP_RET_ALLOW),
};

static const struct sock_filter on_prlimit[] = {
	LOAD(ARGUMENT(2)), /* a new limit, of which a pointer's low half tells enough */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	RETURN(REFUSED),
	LOAD(ARGUMENT(2) + 4),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	RETURN(REFUSED),
	RETURN(SECCOMP_RET_ALLOW),
};

static const struct sock_filter on_ioctl[] = {
	LOAD(ARGUMENT(1)),         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONREAD, 0, 1),
	RETURN(SECCOMP_RET_ALLOW), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONBIO, 0, 1),
	RETURN(SECCOMP_RET_ALLOW), RETURN(REFUSED),
};

static const struct sock_filter on_prctl[] = {
	LOAD(ARGUMENT(0)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_GET_SECCOMP, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_VMA, 0, 1), /* names of malloc's areas */
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(REFUSED),
};

/* A thread, as glibc makes it, and nothing else that clone() can make. */
#define THREAD_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static const struct sock_filter on_clone[] = {
	LOAD(ARGUMENT(0)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THREAD_FLAGS, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(REFUSED),
};

/* Its flags are in memory, out of a filter's sight: glibc falls back to clone(). */
static const struct sock_filter on_clone3[] = {
	RETURN(SECCOMP_RET_ERRNO | ENOSYS),
};

static const struct {
	int call;
	const struct sock_filter *code;
	size_t length;
} judged[] = {
	{SYS_mmap, on_mmap, ARRAY_LENGTH(on_mmap)},
	{SYS_mprotect, on_mmap, ARRAY_LENGTH(on_mmap)},
	{SYS_prlimit64, on_prlimit, ARRAY_LENGTH(on_prlimit)},
	{SYS_ioctl, on_ioctl, ARRAY_LENGTH(on_ioctl)},
	{SYS_prctl, on_prctl, ARRAY_LENGTH(on_prctl)},
	{SYS_clone, on_clone, ARRAY_LENGTH(on_clone)},
	{SYS_clone3, on_clone3, ARRAY_LENGTH(on_clone3)},
};

#define FILTER_LENGTH_MAX 400

static size_t add(struct sock_filter *filter, size_t at, struct sock_filter instruction)
{
	if (at < FILTER_LENGTH_MAX)
		filter[at] = instruction;
	return at + 1;
}

/* The kernel keeps a bitmap of numbers that are always allowed, so a long list of
 * comparisons is gone through for the others only. */
static size_t compile(struct sock_filter filter[FILTER_LENGTH_MAX])
{
	size_t at = 0;

	at = add(filter, at, (struct sock_filter)LOAD(offsetof(struct seccomp_data, arch)));
	at = add(filter, at,
		 (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
	at = add(filter, at, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
	at = add(filter, at, (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
	for (size_t i = 0; i < ARRAY_LENGTH(allowed); i++) {
		at = add(filter, at,
			 (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)allowed[i], 0, 1));
		at = add(filter, at, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(judged); i++) {
		at = add(filter, at,
			 (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)judged[i].call, 0,
						      (uint8_t)judged[i].length));
		for (size_t j = 0; j < judged[i].length; j++)
			at = add(filter, at, judged[i].code[j]);
	}
	return add(filter, at, (struct sock_filter)RETURN(REFUSED));
}

static int install_filter(struct error *err)
{
	struct sock_filter filter[FILTER_LENGTH_MAX];
	struct sock_fprog program = {.filter = filter};
	size_t length = compile(filter);

	if (length > FILTER_LENGTH_MAX)
		return refuse(err, E2BIG, "confine: the filter is too long");
	program.len = (unsigned short)length;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		return fail(err, errno, "confine: install the seccomp filter");
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return refuse(err, EPROTO, "confine: the seccomp filter is not there");
	if (syscall(SYS_socket, 0, 0, 0) != -1 || errno != EPERM ||
	    syscall(SYS_ptrace, -1, 0, 0, 0) != -1 || errno != EPERM ||
	    syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0) != -1 || errno != EPERM)
		return refuse(err, EPROTO, "confine: the seccomp filter does not refuse");
	return 0;
}

/* --- the root -------------------------------------------------------------------- */

/* In a child that shares what the parent's root directory is, and ends. */
static int leave_files(struct error *err)
{
	int status = -1;
	autofd fd = -1;
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_FS | SIGCHLD, NULL, NULL, NULL, NULL);

	if (child < 0)
		return fail(err, errno, "confine: clone");
	if (child == 0)
		_exit(chroot("/proc/self/fdinfo/") < 0 || chdir("/") < 0 ? errno : 0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail(err, WIFEXITED(status) ? WEXITSTATUS(status) : EIO,
			    "confine: enter an empty root directory");
	if (access("/proc", F_OK) == 0 || access("/etc", F_OK) == 0 || access("../etc", F_OK) == 0)
		return refuse(err, EPROTO, "confine: there are files in the root directory");
	fd = open("/made", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		return refuse(err, EPROTO, "confine: the root directory can be written");
	return 0;
}

/* --- who it is -------------------------------------------------------------------- */

/* Root gives up its id, and keeps for a moment what it needs to empty the bounding set. */
static int become(uid_t identity, struct error *err)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct sets[2] = {
		{.permitted = 1u << CAP_SETPCAP, .effective = 1u << CAP_SETPCAP}};
	int r;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return fail(err, errno, "confine: keep capabilities");
	r = credentials_become(identity, (gid_t)identity, err);
	if (r < 0)
		return r;
	if (syscall(SYS_capset, &header, sets) < 0)
		return fail(err, errno, "confine: capset");
	return 0;
}

static int leave_user(struct error *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER) < 0)
		return fail(err, errno, "confine: a user namespace");
	return credentials_map(uid, gid, err);
}

int confine_server(uid_t identity, struct error *err)
{
	const struct landlock_plan plan = {.any_file = true,
					   .deny_tcp = true,
					   .deny_abstract_sockets = true,
					   .deny_signals = true};
	const struct rlimit none = {0, 0};
	bool root = credentials_is_root();
	int r = 0;

	/* 1. The right to change the root directory: root has it, others get it. */
	if (!root)
		r = leave_user(err);
	/* 2. No file has a name any more. */
	if (r < 0 || (r = leave_files(err)) < 0)
		return r;
	/* 3. No capability, nobody else, no dump. */
	if (root && (r = become(identity, err)) < 0)
		return r;
	if ((r = credentials_drop(0, err)) < 0)
		return r;
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return fail(err, errno, "confine: no core dumps");
	/* 4. No network but what is open, no signals, nothing executed. */
	if ((r = landlock_confine(&plan, err)) < 0)
		return r;
	/* 5. Few system calls. */
	return install_filter(err);
}
