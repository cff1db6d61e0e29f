/* SPDX-License-Identifier: Apache-2.0 */
/* test_syscalls: each rule of the system call table, in the real kernel.
 *
 * Three views, none of which trusts the other two:
 *
 *   verdicts  A probe filter beneath ours answers every call whose sixth
 *             argument carries a mark with an errno of its own. Ours are asked
 *             first, so that errno says "our filters let it through" and any
 *             other one is their verdict; no marked call ever reaches the
 *             kernel, not even exit_group. Each rule and each edge of its
 *             arguments is asked for in this way, in one process.
 *   effects   Each rule's call is made for real, with and without the filters:
 *             what is allowed must come out the same, what is denied must give
 *             exactly the errno that the table says. Calls that the kernel
 *             would refuse in the same words anyway are counted and named.
 *   attacks   Expectations written by hand, not taken from the table.
 *
 * All children are nobody, without capabilities: a denied call that slips
 * through does no harm, also when the test runs as root. */
#include "base/cleanup.h"
#include "jail/filter_compile.h"
#include "jail/syscalls.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY       65534
#define PROBE_MARK   0x70726f62
#define PROBE_PASSED 4000 /* an errno that no kernel has */
#define RULES_MAX    1024
#define STAGES_NONE  0

/* Shared with the children. */
static struct report {
	int failures;
	unsigned char exercised[RULES_MAX]; /* the stages, of FILTER_TEMPLATE | FILTER_CELL */
	int outcome;                        /* of a call made for real */
} * report;

#define OUTCOME_NONE 1000000

static void become_nobody(void)
{
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0))
		_exit(101);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(102);
}

static void install(unsigned int stages)
{
	struct error err;

	if ((stages & FILTER_TEMPLATE && filter_install(FILTER_TEMPLATE, &err) < 0) ||
	    (stages & FILTER_CELL && filter_install(FILTER_CELL, &err) < 0)) {
		fprintf(stderr, "%s\n", err.text);
		_exit(103);
	}
}

static bool __attribute__((format(printf, 2, 3))) check(bool good, const char *format, ...)
{
	va_list args;

	if (good)
		return true;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	report->failures++;
	return false;
}

/* Runs a function in a child and returns its wait status. */
static int in_child(void (*function)(const void *), const void *argument)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		become_nobody();
		function(argument);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void child_is_content(void (*function)(const void *), const void *argument)
{
	report->failures = 0;
	assert_int_equal(in_child(function, argument), 0);
	assert_int_equal(report->failures, 0);
}

/* Arguments for which exactly this rule decides: `fill` where it may be
 * anything, else the first samples that fit. */
static bool find_arguments(const struct syscall_rule *rule, int number, enum filter_stage stage,
			   uint64_t fill, uint64_t ret_arguments[6])
{
	static uint64_t samples[3][FILTER_SAMPLES_MAX];
	size_t counts[3];

	for (unsigned int a = 0; a < 3; a++) {
		counts[a] = filter_argument_samples(syscall_rule_numbers, number, a, samples[a]);
		samples[a][0] = fill;
	}
	for (unsigned int a = 0; a < 6; a++)
		ret_arguments[a] = fill;
	for (size_t i = 0; i < counts[0]; i++) {
		for (size_t j = 0; j < counts[1]; j++) {
			for (size_t k = 0; k < counts[2]; k++) {
				ret_arguments[0] = samples[0][i];
				ret_arguments[1] = samples[1][j];
				ret_arguments[2] = samples[2][k];
				if (syscall_rule_for(syscall_rule_numbers, stage, number,
						     ret_arguments) == rule)
					return true;
			}
		}
	}
	return false;
}

/* Verdicts. */

static void install_probe(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROBE_MARK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | PROBE_PASSED),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_LENGTH(code), code};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		_exit(104);
}

/* 0 when our filters let the call through, else their errno, -1 for neither. */
static int probe(int number, const uint64_t arguments[6])
{
	long r = syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
			 arguments[4], (long)PROBE_MARK);
	int found = errno;

	/* Wipe the mark from its register, where the next call would find it. */
	syscall(SYS_getppid, 0, 0, 0, 0, 0, 0);
	if (r != -1)
		return -1;
	return found == PROBE_PASSED ? 0 : found;
}

static void probe_edges(const char *call, int number, enum filter_stage stage,
			const uint64_t arguments[6])
{
	static uint64_t samples[FILTER_SAMPLES_MAX];
	uint64_t changed[6];

	for (unsigned int a = 0; a < 3; a++) {
		size_t count = filter_argument_samples(syscall_rule_numbers, number, a, samples);

		memcpy(changed, arguments, sizeof changed);
		for (size_t i = 0; i < count; i++) {
			int wanted, found;

			changed[a] = samples[i];
			wanted = syscall_verdict(syscall_rule_numbers, stage, number, changed);
			found = probe(number, changed);
			check(found == wanted, "stage %d: %s(%#llx, %#llx, %#llx): %d, not %d\n",
			      stage, call, (unsigned long long)changed[0],
			      (unsigned long long)changed[1], (unsigned long long)changed[2], found,
			      wanted);
		}
	}
}

static void probe_rules(const void *argument)
{
	enum filter_stage stage = *(const enum filter_stage *)argument;

	install_probe();
	install(stage == FILTER_CELL ? FILTER_TEMPLATE | FILTER_CELL : FILTER_TEMPLATE);
	for (size_t i = 0; i < syscall_rule_count; i++) {
		const struct syscall_rule *rule = &syscall_rules[i];
		int number = syscall_rule_numbers[i], found;
		uint64_t arguments[6];

		if (number < 0 || !(rule->stages & stage))
			continue;
		if (!check(find_arguments(rule, number, stage, 0, arguments),
			   "%s: rule %zu is never reached\n", rule->call, i))
			continue;
		found = probe(number, arguments);
		check(found == rule->verdict, "stage %d: %s: %d, not %d\n", stage, rule->call,
		      found, rule->verdict);
		probe_edges(rule->call, number, stage, arguments);
		report->exercised[i] |= (unsigned char)stage;
	}
}

static void probe_unfiltered(const void *argument)
{
	static const uint64_t zeros[6];

	install_probe();
	for (size_t i = 0; i < syscall_rule_count; i++)
		if (syscall_rule_numbers[i] >= 0)
			check(probe(syscall_rule_numbers[i], zeros) == 0,
			      "%s is refused without our filters\n", syscall_rules[i].call);
}

static void test_each_rule_and_edge(void **state)
{
	static const enum filter_stage stages[] = {FILTER_TEMPLATE, FILTER_CELL};
	size_t exercised = 0, absent = 0;

	assert_true(syscall_rule_count <= RULES_MAX);
	memset(report, 0, sizeof *report);
	for (size_t s = 0; s < ARRAY_LENGTH(stages); s++)
		child_is_content(probe_rules, &stages[s]);
	for (size_t i = 0; i < syscall_rule_count; i++) {
		if (syscall_rule_numbers[i] < 0)
			absent++;
		else if (report->exercised[i] == syscall_rules[i].stages)
			exercised++;
		else
			fprintf(stderr, "not exercised: %s\n", syscall_rules[i].call);
	}
	print_message("%zu rules: %zu exercised in each of their stages, %zu not on this "
		      "architecture; %zu and %zu instructions\n",
		      syscall_rule_count, exercised, absent, filter_template_length,
		      filter_cell_length);
	assert_int_equal(exercised + absent, syscall_rule_count);
}

static void test_nothing_is_refused_without(void **state)
{
	child_is_content(probe_unfiltered, NULL);
}

/* Effects. */

struct real_call {
	unsigned int stages;
	int number;
	uint64_t arguments[6];
};

static void wake_up(int signal_number)
{
}

/* Arguments of minus one are no descriptor, no address, no flags and no
 * process for most calls. Some need better ones to do no harm, or to show a
 * difference. */
static void choose_arguments(struct real_call *call)
{
	switch (call->number) {
	case SYS_clone: /* as fork() does it; the rule's own flags otherwise */
		for (unsigned int a = 0; a < 6; a++)
			call->arguments[a] = a > 0 ? 0 : call->arguments[a] | SIGCHLD;
		break;
	case SYS_socket: /* a family that would be there */
		if (call->arguments[0] == UINT64_MAX)
			call->arguments[0] = AF_NETLINK;
		break;
	case SYS_futex: /* an operation that exists */
		call->arguments[1] = FUTEX_WAKE;
		break;
	case SYS_msgget: /* all flags would leave a queue behind */
		call->arguments[0] = 1;
		call->arguments[2] = call->arguments[1] = 0;
		break;
	}
}

/* A call whose way back no C function survives, or that slows the host. */
static bool is_probed_only(int number)
{
	return number == SYS_rt_sigreturn || number == SYS_sync;
}

static void make_real_call(const void *argument)
{
	const struct real_call *call = argument;
	const uint64_t *arguments = call->arguments;
	const struct itimerval soon __attribute__((unused)) = {.it_value.tv_usec = 50000};
	const struct sigaction action = {.sa_handler = wake_up}; /* no SA_RESTART */
	pid_t self = getpid();
	long r;

	install(call->stages);
	sigaction(SIGALRM, &action, NULL);
#ifdef SYS_pause
	if (call->number == SYS_pause)
		setitimer(ITIMER_REAL, &soon, NULL);
#endif
#ifdef SYS_vfork
	if (call->number == SYS_vfork) {
		/* The C library knows how to return twice on one stack. */
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		report->outcome = pid < 0 ? errno : 0;
		return;
	}
#endif
	r = syscall(call->number, arguments[0], arguments[1], arguments[2], arguments[3],
		    arguments[4], arguments[5]);
	/* The child of a fork says nothing: nobody waits for what it would say. */
	if (getpid() == self)
		report->outcome = r == -1 ? errno : 0;
	_exit(0); /* not by way of more calls: brk may have moved, limits changed */
}

/* An errno, 0 for success, or how the process ended. */
static int real_outcome(struct real_call *call, unsigned int stages)
{
	int status;

	call->stages = stages;
	report->outcome = OUTCOME_NONE;
	status = in_child(make_real_call, call);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) >= 101 && WEXITSTATUS(status) <= 104);
	return report->outcome == OUTCOME_NONE ? OUTCOME_NONE + status : report->outcome;
}

static void test_effects(void **state)
{
	size_t same = 0, denied = 0, untold = 0, left_out = 0;
	int failures = 0;

	printf("denied, but the kernel says the same by itself:");
	for (size_t i = 0; i < syscall_rule_count; i++) {
		const struct syscall_rule *rule = &syscall_rules[i];
		enum filter_stage stage =
			rule->stages & FILTER_CELL ? FILTER_CELL : FILTER_TEMPLATE;
		struct real_call call = {.number = syscall_rule_numbers[i]};
		int with, without;

		if (call.number < 0)
			continue;
		if (is_probed_only(call.number)) {
			left_out++;
			continue;
		}
		assert_true(find_arguments(rule, call.number, stage, UINT64_MAX, call.arguments));
		choose_arguments(&call);
		with = real_outcome(&call, stage == FILTER_CELL ? FILTER_TEMPLATE | FILTER_CELL
								: FILTER_TEMPLATE);
		without = real_outcome(&call, STAGES_NONE);
		if (with != (rule->verdict ? rule->verdict : without)) {
			fprintf(stderr, "%s: %d with the filters, %d without, verdict %d\n",
				rule->call, with, without, rule->verdict);
			failures++;
		}
		if (!rule->verdict) {
			same++;
		} else if (with == without) {
			printf(" %s", rule->call);
			untold++;
		} else {
			denied++;
		}
	}
	printf("\n%zu allowed as without filters, %zu denied by them, %zu cannot be told, "
	       "%zu probed only\n",
	       same, denied, untold, left_out);
	assert_int_equal(failures, 0);
	/* Most denials are seen to be ours, or the control would be worthless. */
	assert_true(denied > 2 * untold);
}

/* Attacks and needs, written by hand. */

static void expect(const char *what, long r, int wanted)
{
	int found = r == -1 ? errno : 0;

	check(found == wanted, "%s: %s, not %s\n", what, found ? errno_name(found) : "success",
	      wanted ? errno_name(wanted) : "success");
}

#define EXPECT(wanted, call) expect(#call, call, wanted)

static void try_attacks(const void *argument)
{
	static const int families[] = {AF_UNSPEC, AF_NETLINK,   AF_PACKET,    AF_ALG,
				       AF_VSOCK,  AF_KEY,       44 /* XDP */, AF_TIPC,
				       AF_RXRPC,  AF_BLUETOOTH, AF_CAN};
	static const int beyond[] = {400, 500, 999, 1023, 1024, 100000, -1, INT32_MIN};
	uint64_t clone3_arguments[11] = {[4] = SIGCHLD};
	int pair[2];

	install(FILTER_TEMPLATE | FILTER_CELL);
	for (size_t i = 0; i < ARRAY_LENGTH(families); i++) {
		EXPECT(EAFNOSUPPORT, socket(families[i], SOCK_DGRAM, 0));
		EXPECT(EAFNOSUPPORT, socket(families[i], SOCK_RAW | SOCK_CLOEXEC, 0));
	}
	EXPECT(EPERM, socket(AF_INET, SOCK_RAW, IPPROTO_TCP));
	EXPECT(EPERM, socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK, 58));
	EXPECT(EPERM, socket(AF_INET, SOCK_PACKET, 3));
	EXPECT(EPROTONOSUPPORT, socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	EXPECT(EAFNOSUPPORT, socketpair(AF_INET, SOCK_STREAM, 0, pair));
	EXPECT(EAFNOSUPPORT, syscall(SYS_socket, UINT64_C(0x100000010), SOCK_DGRAM, 0));
	for (size_t i = 0; i < ARRAY_LENGTH(beyond); i++)
		EXPECT(ENOSYS, syscall(beyond[i]));
	EXPECT(ENOSYS, syscall(SYS_clone3, clone3_arguments, 88));
	for (unsigned int bit = 17; bit < 32; bit++) {
		unsigned long flags = 1ul << bit;

		if (flags & (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
			     CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)) {
			EXPECT(EPERM, syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
			EXPECT(EPERM, unshare((int)flags));
			EXPECT(EPERM, setns(0, (int)flags));
		}
	}
	EXPECT(EPERM, ioctl(0, TIOCSTI, "x"));
	EXPECT(EPERM, syscall(SYS_ioctl, 0, UINT64_C(0xffffffff00000000) | TIOCSTI, "x"));
	EXPECT(EPERM, ioctl(0, TIOCLINUX, "x"));
	EXPECT(ENOTTY, ioctl(0, 0xff01 /* PIDFD_GET_CGROUP_NAMESPACE */, 0));
	EXPECT(EPERM, personality(READ_IMPLIES_EXEC));
	EXPECT(EPERM, personality(ADDR_NO_RANDOMIZE));
	EXPECT(EPERM, prctl(PR_SET_DUMPABLE, 1));
	EXPECT(EPERM, prctl(PR_SET_MM, PR_SET_MM_START_STACK, 0, 0, 0));
	EXPECT(EPERM, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0));
	EXPECT(EPERM, prctl(PR_SET_SECUREBITS, 0));
	EXPECT(EPERM, syscall(SYS_io_uring_setup, 8, clone3_arguments));
	EXPECT(EPERM, syscall(SYS_bpf, 0, clone3_arguments, 8));
	EXPECT(EPERM, syscall(SYS_ptrace, 0 /* PTRACE_TRACEME */, 0, 0, 0));
	EXPECT(EPERM, syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0));
	EXPECT(EPERM, syscall(SYS_userfaultfd, 1));
	EXPECT(EPERM, syscall(SYS_keyctl, 1, NULL));
	EXPECT(EPERM, syscall(SYS_open_tree, -1, "/", 1));
	EXPECT(EPERM, syscall(SYS_fsopen, "tmpfs", 0));
	EXPECT(EPERM, syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
	EXPECT(EPERM, syscall(SYS_chroot, "/tmp"));
	EXPECT(EPERM, mknod("/tmp/never", S_IFCHR | 0600, 0));
	EXPECT(EPERM, syscall(SYS_memfd_secret, 0));
	EXPECT(EPERM, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, clone3_arguments));
	EXPECT(EPERM, syscall(SYS_landlock_create_ruleset, NULL, 0, 1));
	EXPECT(EPERM, syscall(SYS_setresuid, -1, -1, -1));
}

/* Calls of which the kernel may say EPERM by itself, so that only a probe tells
 * whose word it is. */
static void probe_attacks(const void *argument)
{
	static const uint64_t zeros[6];
	static const char *const denied[] = {
		"io_uring_setup",
		"io_uring_enter",
		"io_uring_register",
		"bpf",
		"perf_event_open",
		"userfaultfd",
		"kexec_load",
		"kexec_file_load",
		"init_module",
		"finit_module",
		"delete_module",
		"add_key",
		"request_key",
		"open_by_handle_at",
		"name_to_handle_at",
		"fanotify_init",
		"quotactl",
		"quotactl_fd",
		"acct",
		"swapon",
		"swapoff",
		"reboot",
		"syslog",
		"mount",
		"umount2",
		"pivot_root",
		"chroot",
		"open_tree",
		"open_tree_attr",
		"move_mount",
		"fsopen",
		"fsconfig",
		"fsmount",
		"fspick",
		"mount_setattr",
		"modify_ldt",
		"process_vm_readv",
		"process_vm_writev",
		"process_madvise",
		"ptrace",
		"kcmp",
		"pidfd_getfd",
		"setns",
		"unshare",
		"sethostname",
		"setdomainname",
		"settimeofday",
		"clock_settime",
		"clock_adjtime",
		"adjtimex",
		"iopl",
		"ioperm",
		"capset",
		"setuid",
		"setgid",
		"setreuid",
		"setregid",
		"setresuid",
		"setresgid",
		"setgroups",
		"seccomp",
		"landlock_create_ruleset",
		"landlock_add_rule",
		"landlock_restrict_self",
		"vhangup",
		"migrate_pages",
		"move_pages",
		"memfd_secret",
		"sched_setscheduler",
		"sched_setattr",
		"keyctl",
		"vmsplice",
	};

	install_probe();
	install(FILTER_TEMPLATE | FILTER_CELL);
	for (size_t d = 0; d < ARRAY_LENGTH(denied); d++) {
		bool found = false;

		for (size_t i = 0; i < syscall_rule_count; i++) {
			if (strcmp(syscall_rules[i].call, denied[d]) != 0)
				continue;
			found = true;
			if (syscall_rule_numbers[i] >= 0)
				check(probe(syscall_rule_numbers[i], zeros) == EPERM,
				      "%s is not denied\n", denied[d]);
		}
		check(found, "%s is not in the table\n", denied[d]);
	}
}

static void test_attacks(void **state)
{
	child_is_content(try_attacks, NULL);
	child_is_content(probe_attacks, NULL);
}

static void try_template_needs(const void *argument)
{
	int number = 0;

	install(FILTER_TEMPLATE);
	EXPECT(0, unshare(0));
	EXPECT(EBADF, setns(-1, CLONE_NEWUSER));
	EXPECT(EINVAL, syscall(SYS_clone3, NULL, 0));
	EXPECT(0, prctl(PR_SET_DUMPABLE, 0));
	EXPECT(0, syscall(SYS_setresuid, -1, -1, -1));
	EXPECT(EFAULT, syscall(SYS_capset, NULL, NULL));
	EXPECT(EPERM, syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
	EXPECT(EAFNOSUPPORT, socket(AF_NETLINK, SOCK_RAW, 0));
	/* And then the cell's on top, whose denials win. */
	install(FILTER_CELL);
	EXPECT(EPERM, unshare(0));
	EXPECT(EPERM, setns(-1, CLONE_NEWUSER));
	EXPECT(ENOSYS, syscall(SYS_clone3, &number, 0));
	EXPECT(EPERM, prctl(PR_SET_DUMPABLE, 0));
	check(prctl(PR_GET_SECCOMP) == 2, "PR_GET_SECCOMP is not 2\n");
}

static void test_template_needs(void **state)
{
	child_is_content(try_template_needs, NULL);
}

static void *run_thread(void *argument)
{
	return argument;
}

static void try_program_needs(const void *argument)
{
	pthread_t thread;
	void *value = NULL;
	int pair[2], status = -1;
	pid_t pid;

	install(FILTER_TEMPLATE | FILTER_CELL);
	check(pthread_create(&thread, NULL, run_thread, report) == 0 &&
		      pthread_join(thread, &value) == 0 && value == report,
	      "threads do not work\n");
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit $(echo 7 | cat)", NULL);
		_exit(1);
	}
	check(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		      WEXITSTATUS(status) == 7,
	      "processes do not work: %#x\n", status);
	EXPECT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
	check(socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP) >= 0 ||
		      errno == EAFNOSUPPORT,
	      "UDP over IPv6\n");
	check(socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) >= 0, "TCP\n");
	check(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING) >= 0, "memfd_create\n");
	check(personality(0xffffffff) >= 0, "personality\n");
	EXPECT(0, prctl(PR_SET_NAME, "name"));
	check(!isatty(pair[0]) && errno == ENOTTY, "isatty\n");
}

static void test_program_needs(void **state)
{
	child_is_content(try_program_needs, NULL);
}

/* Other ways in. */

#ifdef __x86_64__
static void try_x32(const void *argument)
{
	install(FILTER_TEMPLATE | FILTER_CELL);
	EXPECT(ENOSYS, syscall(0x40000000 | SYS_getpid));
	EXPECT(ENOSYS, syscall(0x40000000 | SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
	EXPECT(ENOSYS, syscall(0x40000000 | 520 /* execve of x32 */, NULL, NULL, NULL));
}

static void call_int_80(const void *argument)
{
	long r = 20; /* getpid of i386 */

	install(*(const unsigned int *)argument);
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	report->outcome = r == getpid();
}

static void test_other_entries(void **state)
{
	static const unsigned int none = STAGES_NONE, template = FILTER_TEMPLATE,
				  cell = FILTER_CELL;
	int status;

	child_is_content(try_x32, NULL);
	report->outcome = 0;
	in_child(call_int_80, &none);
	print_message("control: int 0x80 %s on this host\n",
		      report->outcome == 1 ? "works without filters" : "does not work at all");
	status = in_child(call_int_80, &template);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = in_child(call_int_80, &cell);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}
#endif

/* The installation itself. */

static pthread_barrier_t barrier;

static void *try_in_thread(void *argument)
{
	EXPECT(0, unshare(0));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	EXPECT(EPERM, unshare(0));
	EXPECT(EPERM, syscall(SYS_chroot, "/tmp"));
	return NULL;
}

static void try_older_thread(const void *argument)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	check(pthread_create(&thread, NULL, try_in_thread, NULL) == 0, "no thread\n");
	pthread_barrier_wait(&barrier);
	install(FILTER_TEMPLATE | FILTER_CELL);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

static void test_older_threads_are_filtered_too(void **state)
{
	child_is_content(try_older_thread, NULL);
}

/* A kernel, or a filter of somebody else, that answers seccomp() with `answer`
 * and installs nothing. */
static void try_liar(const void *argument)
{
	static const struct {
		uint32_t answer;
		int wanted;
		const char *words;
	} cases[] = {
		{EINVAL, -EINVAL, "install"}, {ENOSYS, -ENOSYS, "install"}, {0, -EPROTO, "refuse"}};
	size_t i = *(const size_t *)argument;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | cases[i].answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_LENGTH(code), code};
	struct error err = {0};
	int r;

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		_exit(104);
	r = filter_install(FILTER_TEMPLATE, &err);
	check(r == cases[i].wanted && strstr(err.text, cases[i].words) &&
		      err.number == -cases[i].wanted,
	      "template: %d, \"%s\"\n", r, err.text);
	r = filter_install(FILTER_CELL, &err);
	check(r == cases[i].wanted, "cell: %d, \"%s\"\n", r, err.text);
}

static void test_failed_installation_is_noticed(void **state)
{
	for (size_t i = 0; i < 3; i++)
		child_is_content(try_liar, &i);
}

static int share_report(void **state)
{
	report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return report == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_rule_and_edge),
		cmocka_unit_test(test_nothing_is_refused_without),
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_attacks),
		cmocka_unit_test(test_template_needs),
		cmocka_unit_test(test_program_needs),
#ifdef __x86_64__
		cmocka_unit_test(test_other_entries),
#endif
		cmocka_unit_test(test_older_threads_are_filtered_too),
		cmocka_unit_test(test_failed_installation_is_noticed),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, share_report, NULL);
}
