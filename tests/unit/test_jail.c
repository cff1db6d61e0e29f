/* SPDX-License-Identifier: Apache-2.0 */
/* test_jail: what a process of ours gives up, each in a child of its own, with
 * the state before as the control. */
#include "unit.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/namespaces.h"
#include "jail/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define NOBODY 65534

/* In a child: says where it went wrong, and which number that is. */
#define CHECK(condition)                                                            \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
				strerror(errno));                                   \
			return 1;                                                   \
		}                                                                   \
	} while (0)

static void ignore(int number)
{
}

static int reset_body(void *argument)
{
	struct itimerval timer = {.it_value = {100, 0}};
	struct error err = {0};
	struct sigaction action;
	cpu_set_t one, now;
	sigset_t all;

	for (int number = 1; number < NSIG; number++)
		signal(number, number % 2 ? SIG_IGN : ignore);
	sigfillset(&all);
	CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
	CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
	umask(0777);
	CHECK(personality(ADDR_NO_RANDOMIZE) >= 0);
	CPU_ZERO(&one);
	CHECK(sched_getaffinity(0, sizeof now, &now) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &now))
			CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
	CHECK(resources_reset(&err) == 0);
	for (int number = 1; number < NSIG; number++)
		if (number != SIGKILL && number != SIGSTOP && sigaction(number, NULL, &action) == 0)
			CHECK(action.sa_handler == SIG_DFL);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &all) == 0 && sigisemptyset(&all));
	CHECK(getitimer(ITIMER_REAL, &timer) == 0 && timer.it_value.tv_sec == 0);
	CHECK(getitimer(ITIMER_PROF, &timer) == 0 && timer.it_value.tv_sec == 0);
	CHECK(umask(0) == 022);
	CHECK(personality(0xffffffff) == PER_LINUX);
	CHECK(sched_getaffinity(0, sizeof one, &one) == 0);
	CHECK(CPU_COUNT(&one) >= CPU_COUNT(&now));
	return 0;
}

static void what_is_inherited_is_reset(void **state)
{
	assert_int_equal(in_child(reset_body, NULL), 0);
}

static int limits_body(void *argument)
{
	const struct resources resources = {
		.processes = 10,
		.file_bytes = 4096,
		.data_bytes = UINT64_C(1) << 30,
		.cpu_seconds = 1000,
	};
	static const struct {
		__rlimit_resource_t resource;
		rlim_t value;
	} wanted[] = {
		{RLIMIT_CORE, 0},           {RLIMIT_NPROC, 10}, {RLIMIT_FSIZE, 4096},
		{RLIMIT_DATA, 1 << 30},     {RLIMIT_CPU, 1000}, {RLIMIT_MSGQUEUE, 0},
		{RLIMIT_MEMLOCK, 64 << 10}, {RLIMIT_RTPRIO, 0}, {RLIMIT_NICE, 0},
	};
	struct error err = {0};
	struct rlimit found, higher;

	if (geteuid() == 0)
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	CHECK(resources_limit_always(&err) == 0);
	CHECK(resources_limit(&resources, &err) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
		CHECK(getrlimit(wanted[i].resource, &found) == 0);
		CHECK(found.rlim_cur == found.rlim_max);
		CHECK(found.rlim_max <= wanted[i].value);
		higher = (struct rlimit){found.rlim_max + 1, found.rlim_max + 1};
		CHECK(setrlimit(wanted[i].resource, &higher) < 0 && errno == EPERM);
	}
	CHECK(getrlimit(RLIMIT_NOFILE, &found) == 0 && found.rlim_max <= 1024);
	return 0;
}

static void limits_are_hard(void **state)
{
	assert_int_equal(in_child(limits_body, NULL), 0);
}

static int lower_limits_body(void *argument)
{
	const struct resources resources = {.processes = 100000, .file_bytes = UINT64_C(1) << 40};
	struct rlimit low = {500, 1000}, files = {50, 60}, found;
	struct error err = {0};

	if (geteuid() == 0)
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(resources_limit_always(&err) == 0);
	CHECK(resources_limit(&resources, &err) == 0);
	CHECK(getrlimit(RLIMIT_FSIZE, &found) == 0 && found.rlim_max == 1000);
	CHECK(getrlimit(RLIMIT_NOFILE, &found) == 0 && found.rlim_max == 60);
	/* 0 means: not set here. */
	CHECK(getrlimit(RLIMIT_CPU, &found) == 0 && found.rlim_max == RLIM_INFINITY);
	return 0;
}

static void a_callers_lower_limit_stands(void **state)
{
	assert_int_equal(in_child(lower_limits_body, NULL), 0);
}

static int file_size_body(void *argument)
{
	const struct resources resources = {.processes = 100, .file_bytes = 4096};
	char page[8192] = {0};
	struct error err = {0};
	FILE *file = tmpfile();

	CHECK(file);
	signal(SIGXFSZ, SIG_IGN);
	CHECK(resources_limit(&resources, &err) == 0);
	CHECK(write(fileno(file), page, sizeof page) == 4096);
	CHECK(write(fileno(file), page, 1) < 0 && errno == EFBIG);
	return 0;
}

static void file_size_is_enforced(void **state)
{
	assert_int_equal(in_child(file_size_body, NULL), 0);
}

static int oom_body(void *argument)
{
	struct error err = {0};
	char text[16] = "";
	int fd;

	CHECK(resources_oom_score(1000, &err) == 0);
	fd = open("/proc/self/oom_score_adj", O_RDONLY);
	CHECK(read(fd, text, sizeof text - 1) > 0);
	CHECK(strcmp(text, "1000\n") == 0);
	CHECK(resources_oom_score(2000, &err) < 0 && err.number == EINVAL);
	return 0;
}

static void oom_score_is_set(void **state)
{
	assert_int_equal(in_child(oom_body, NULL), 0);
}

static int sets_are_empty(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct now[2];

	CHECK(syscall(SYS_capget, &header, now) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(!now[i].effective && !now[i].permitted && !now[i].inheritable);
	for (int cap = 0; cap < 64; cap++) {
		int in_set = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (in_set < 0)
			break;
		CHECK(in_set == 0);
		CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 0);
	}
	CHECK(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) < 0);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	return 0;
}

/* In a user namespace of its own, where all capabilities are there at first:
 * the same for root and for anybody. */
static int drop_body(void *argument)
{
	const int dumpable = *(const int *)argument;
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct now[2];
	struct error err = {0};
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	CHECK(credentials_map(uid, gid, &err) == 0);
	CHECK(getuid() == SANDBOX_ID && geteuid() == SANDBOX_ID && getgid() == SANDBOX_ID);
	CHECK(setgroups(0, NULL) < 0 && errno == EPERM);
	CHECK(setresuid(0, 0, 0) < 0 && errno == EINVAL);
	CHECK(syscall(SYS_capget, &header, now) == 0 && now[0].effective != 0); /* the control */
	CHECK(sethostname("x", 1) < 0);             /* that needs a uts namespace of this one */
	CHECK(credentials_map(uid, gid, &err) < 0); /* once only */
	CHECK(credentials_drop(dumpable, &err) == 0);
	CHECK(sets_are_empty() == 0);
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == dumpable);
	CHECK(access("/proc/self/environ", R_OK) == 0 || !dumpable);
	/* Again, as a cell does after its template: nothing is left to drop. */
	CHECK(credentials_drop(dumpable, &err) == 0);
	CHECK(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
	return 0;
}

static void no_capability_is_left(void **state)
{
	for (int dumpable = 0; dumpable < 2; dumpable++) {
		int status = in_child(drop_body, &dumpable);

		if (status == 77) {
			const char *must = getenv("MUST_WORK");

			if (must && strcmp(must, "1") == 0)
				fail_msg("no user namespaces here");
			fprintf(stderr, "skipped: no user namespaces here\n");
			skip();
		}
		assert_int_equal(status, 0);
	}
}

static int become_body(void *argument)
{
	const gid_t groups[] = {10, 20};
	struct error err = {0};
	gid_t found[8];

	CHECK(setgroups(2, groups) == 0);
	CHECK(credentials_become(54321, 54322, &err) == 0);
	CHECK(getuid() == 54321 && geteuid() == 54321 && getgid() == 54322 && getegid() == 54322);
	CHECK(getgroups(8, found) == 0);
	CHECK(setuid(0) < 0 && setgid(0) < 0 && setgroups(0, NULL) < 0);
	CHECK(open("/etc/shadow", O_RDONLY) < 0);
	return 0;
}

static void root_goes_away_for_good(void **state)
{
	if (geteuid() != 0)
		skip(); /* only root can become another */
	assert_int_equal(in_child(become_body, NULL), 0);
}

static int refused_become_body(void *argument)
{
	struct error err = {0};

	if (geteuid() == 0)
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	CHECK(credentials_become(54321, 54321, &err) < 0);
	CHECK(err.number == EPERM && err.text[0]);
	return 0;
}

static void others_cannot_become_anybody(void **state)
{
	assert_int_equal(in_child(refused_become_body, NULL), 0);
}

static int keep_body(void *argument)
{
	int first = open("/dev/null", O_RDONLY), second, keep[2];
	struct error err = {0};
	struct stat pipes, found;
	int ends[2];

	CHECK(first >= 0 && pipe(ends) == 0 && fstat(ends[0], &pipes) == 0);
	for (int i = 0; i < 50; i++)
		CHECK(dup(first) >= 0);
	CHECK(dup2(first, 900) == 900);
	second = dup2(ends[0], 700);
	/* Each where the other is to go. */
	CHECK(dup2(ends[0], 4) == 4 && dup2(first, 3) == 3);
	keep[0] = 4, keep[1] = 3;
	CHECK(descriptors_keep(keep, 2, &err) == 0);
	CHECK(keep[0] == 3 && keep[1] == 4);
	CHECK(fstat(3, &found) == 0 && found.st_ino == pipes.st_ino && S_ISFIFO(found.st_mode));
	CHECK(fstat(4, &found) == 0 && S_ISCHR(found.st_mode));
	CHECK(fcntl(3, F_GETFD) & FD_CLOEXEC && fcntl(4, F_GETFD) & FD_CLOEXEC);
	for (int fd = 5; fd < 1000; fd++)
		CHECK(fcntl(fd, F_GETFD) < 0);
	for (int fd = 0; fd < 3; fd++)
		CHECK(fcntl(fd, F_GETFD) >= 0);
	(void)second;
	keep[0] = 999;
	CHECK(descriptors_keep(keep, 1, &err) < 0 && err.number == EBADF);
	return 0;
}

static void only_the_agreed_descriptors_are_kept(void **state)
{
	assert_int_equal(in_child(keep_body, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_inherited_is_reset),
		cmocka_unit_test(limits_are_hard),
		cmocka_unit_test(a_callers_lower_limit_stands),
		cmocka_unit_test(file_size_is_enforced),
		cmocka_unit_test(oom_score_is_set),
		cmocka_unit_test(no_capability_is_left),
		cmocka_unit_test(root_goes_away_for_good),
		cmocka_unit_test(others_cannot_become_anybody),
		cmocka_unit_test(only_the_agreed_descriptors_are_kept),
	};

	return cmocka_run_group_tests_name("jail", tests, NULL, NULL);
}
