/* SPDX-License-Identifier: Apache-2.0 */
/* test_landlock: what the Landlock fence lets through and what it does not.
 *
 * Each denial is paired with its control: the same act in the same process
 * before it is confined, and the pair fails when the control does. All happens
 * in children, in a directory of its own, as nobody when the test is root.
 * What the kernel's ABI does not have is skipped by name; MUST_WORK=1 makes
 * such a skip a failure. */
#include "base/cleanup.h"
#include "jail/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534

static char root[] = "/tmp/execpy-landlock-XXXXXX"; /* holds ro/, rw/a, rw/b */
static int failures;                                /* in a child */

static void expect(const char *what, long r, int wanted, const char *when)
{
	int found = r < 0 ? errno : 0;

	if (found == wanted)
		return;
	fprintf(stderr, "%s, %s: %s, not %s\n", what, when, found ? errno_name(found) : "success",
		wanted ? errno_name(wanted) : "success");
	failures++;
}

static int open_and_close(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd;
}

/* Acts on files. Each leaves things as they were, so that it can be repeated. */

static long read_ro(void)
{
	return open_and_close("ro/file", O_RDONLY);
}

static long list_ro(void)
{
	return open_and_close("ro", O_RDONLY | O_DIRECTORY);
}

static long run_ro(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execl("ro/program", "program", NULL);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return errno ? -1 : 0;
}

static long write_ro(void)
{
	return open_and_close("ro/file", O_WRONLY);
}

static long truncate_ro(void)
{
	return truncate("ro/file", 4);
}

static long create_ro(void)
{
	long r = open_and_close("ro/new", O_WRONLY | O_CREAT | O_EXCL);

	if (r >= 0)
		unlink("ro/new");
	return r;
}

static long unnamed_ro(void)
{
	return open_and_close("ro", O_WRONLY | O_TMPFILE);
}

static long directory_ro(void)
{
	long r = mkdir("ro/new", 0700);

	return r < 0 ? r : rmdir("ro/new");
}

static long symlink_ro(void)
{
	long r = symlink("file", "ro/new");

	return r < 0 ? r : unlink("ro/new");
}

static long fifo_ro(void)
{
	long r = mkfifo("ro/new", 0600);

	return r < 0 ? r : unlink("ro/new");
}

static long rename_ro(void)
{
	long r = rename("ro/file", "ro/other");

	return r < 0 ? r : rename("ro/other", "ro/file");
}

static long move_out_of_ro(void)
{
	long r = rename("ro/file", "rw/a/stolen");

	return r < 0 ? r : rename("rw/a/stolen", "ro/file");
}

static long link_out_of_ro(void)
{
	long r = link("ro/file", "rw/a/linked");

	return r < 0 ? r : unlink("rw/a/linked");
}

static long read_unlisted(void)
{
	return open_and_close("secret", O_RDONLY);
}

static long list_unlisted(void)
{
	return open_and_close(".", O_RDONLY | O_DIRECTORY);
}

static long write_rw(void)
{
	long r = open_and_close("rw/a/new", O_RDWR | O_CREAT | O_EXCL);

	if (r >= 0 && truncate("rw/a/new", 10) < 0)
		return -1;
	return r < 0 ? r : unlink("rw/a/new");
}

static long unnamed_rw(void)
{
	return open_and_close("rw", O_RDWR | O_TMPFILE);
}

static long move_within_rw(void)
{
	long r = rename("rw/a/file", "rw/b/file");

	return r < 0 ? r : rename("rw/b/file", "rw/a/file");
}

static long link_within_rw(void)
{
	long r = link("rw/a/file", "rw/b/linked");

	return r < 0 ? r : unlink("rw/b/linked");
}

static long socket_file_rw(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "rw/a/socket"};
	autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -1;
	return unlink("rw/a/socket");
}

static long use_null(void)
{
	autofd fd = open("/dev/null", O_RDWR | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? -1 : write(fd, "x", 1) - 1;
}

static long terminal_of_null(void)
{
	autofd fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	return fd < 0 || isatty(fd) ? 0 : -1; /* ENOTTY, as everywhere */
}

static long read_zero(void)
{
	return open_and_close("/dev/zero", O_RDONLY);
}

static long bind_tcp(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	autofd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return bind(fd, (struct sockaddr *)&any, sizeof any);
}

/* To a closed port: ECONNREFUSED says that the attempt was made. */
static long connect_tcp(void)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(1)};
	autofd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&there, sizeof there) < 0 && errno != ECONNREFUSED &&
	    errno != ENETUNREACH)
		return -1;
	return 0;
}

/* The parent of the confined process, listening on an abstract name. */
static struct sockaddr_un abstract_name = {.sun_family = AF_UNIX};
static socklen_t abstract_length;

static long connect_abstract(void)
{
	autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&abstract_name, abstract_length);
}

static long signal_parent(void)
{
	return kill(getppid(), 0);
}

static long signal_child(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (kill(pid, SIGTERM) < 0)
		return -1;
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 0 : -1;
}

static long signal_self(void)
{
	return kill(getpid(), 0);
}

static const struct act {
	const char *name;
	long (*act)(void);
	int before, after; /* errno */
	int abi;           /* from which on `after` holds */
	int without;       /* the errno below that ABI */
} acts[] = {
	{"read ro/file", read_ro, 0, 0, 1, 0},
	{"list ro", list_ro, 0, 0, 1, 0},
	{"run ro/program", run_ro, 0, 0, 1, 0},
	{"write ro/file", write_ro, 0, EACCES, 1, 0},
	{"truncate ro/file", truncate_ro, 0, EACCES, 3, 0},
	{"create ro/new", create_ro, 0, EACCES, 1, 0},
	{"create an unnamed file in ro", unnamed_ro, 0, EACCES, 1, 0},
	{"mkdir ro/new", directory_ro, 0, EACCES, 1, 0},
	{"symlink ro/new", symlink_ro, 0, EACCES, 1, 0},
	{"mkfifo ro/new", fifo_ro, 0, EACCES, 1, 0},
	{"rename within ro", rename_ro, 0, EACCES, 1, 0},
	{"rename out of ro", move_out_of_ro, 0, EACCES, 2, EXDEV},
	{"link out of ro", link_out_of_ro, 0, EXDEV, 1, 0}, /* rights would grow */
	{"read an unlisted file", read_unlisted, 0, EACCES, 1, 0},
	{"list an unlisted directory", list_unlisted, 0, EACCES, 1, 0},
	{"create, truncate, unlink in rw", write_rw, 0, 0, 1, 0},
	{"create an unnamed file in rw", unnamed_rw, 0, 0, 1, 0},
	{"rename within rw", move_within_rw, 0, 0, 2, EXDEV},
	{"link within rw", link_within_rw, 0, 0, 2, EXDEV},
	{"bind a socket file in rw", socket_file_rw, 0, 0, 1, 0},
	{"use a listed device", use_null, 0, 0, 1, 0},
	{"isatty of a listed device", terminal_of_null, ENOTTY, ENOTTY, 1, 0},
	{"open an unlisted device", read_zero, 0, EACCES, 1, 0},
	{"bind a TCP port", bind_tcp, 0, EACCES, 4, 0},
	{"connect by TCP", connect_tcp, 0, EACCES, 4, 0},
	{"connect to an abstract socket outside", connect_abstract, 0, EPERM, 6, 0},
	{"signal a process outside", signal_parent, 0, EPERM, 6, 0},
	{"signal a process inside", signal_child, 0, 0, 1, 0},
	{"signal itself", signal_self, 0, 0, 1, 0},
};

static const struct landlock_path paths[] = {
	{"ro", LANDLOCK_READ, false},
	{"rw", LANDLOCK_WRITE, false},
	{"/dev/null", LANDLOCK_DEVICE, false},
	{"/usr", LANDLOCK_READ, false},
	{"/lib", LANDLOCK_READ, true},
	{"/lib64", LANDLOCK_READ, true},
	{"/etc/ld.so.cache", LANDLOCK_READ, true}, /* a file: directories' rights are left out */
	{"not/there", LANDLOCK_READ, true},
	{"secret/not/a/directory", LANDLOCK_WRITE, true},
};

static const struct landlock_plan plan = {
	.paths = paths,
	.path_count = ARRAY_LENGTH(paths),
	.deny_tcp = true,
	.deny_abstract_sockets = true,
	.deny_signals = true,
	.must_refuse = "ro",
};

/* Runs in a child, which is killed with its parent and returns its failures. */
static void in_child(void (*function)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		failures = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		function();
		_exit(failures > 100 ? 100 : failures);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void confine_or_end(const struct landlock_plan *with)
{
	struct error err = {0};

	if (landlock_confine(with, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		_exit(101);
	}
}

static void try_acts(void)
{
	int abi = landlock_abi();

	for (size_t i = 0; i < ARRAY_LENGTH(acts); i++)
		expect(acts[i].name, acts[i].act(), acts[i].before, "before");
	confine_or_end(&plan);
	for (size_t i = 0; i < ARRAY_LENGTH(acts); i++)
		expect(acts[i].name, acts[i].act(),
		       abi >= acts[i].abi ? acts[i].after : acts[i].without, "confined");
}

static void test_allowed_and_denied(void **state)
{
	size_t missing = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(acts); i++) {
		if (landlock_abi() >= acts[i].abi)
			continue;
		missing++;
		print_message("not in this kernel's Landlock: %s\n", acts[i].name);
	}
	assert_true(missing == 0 || !getenv("MUST_WORK"));
	in_child(try_acts);
}

static void try_grandchild_and_again(void)
{
	int status = -1;
	pid_t pid;

	confine_or_end(&plan);
	pid = fork();
	if (pid == 0) {
		expect("write ro/file", write_ro(), EACCES, "in a child of the confined");
		expect("write rw", write_rw(), 0, "in a child of the confined");
		_exit(failures);
	}
	waitpid(pid, &status, 0);
	failures += status != 0;
	/* A second fence only takes away. */
	confine_or_end(&(struct landlock_plan){.paths = paths, .path_count = 1});
	expect("write rw", write_rw(), EACCES, "confined twice");
	expect("read ro/file", read_ro(), 0, "confined twice");
	expect("write ro/file", write_ro(), EACCES, "confined twice");
}

static void test_inherited_and_only_narrowed(void **state)
{
	in_child(try_grandchild_and_again);
}

/* All devices beneath one directory by one rule; none can be added. */
static void try_device_directory(void)
{
	const struct landlock_path devices = {"/dev", LANDLOCK_DEVICE, false};

	confine_or_end(
		&(struct landlock_plan){.paths = &devices, .path_count = 1, .must_refuse = "rw"});
	expect("use a device", use_null(), 0, "beneath a listed directory");
	expect("open a device", read_zero(), 0, "beneath a listed directory");
	expect("isatty of a device", terminal_of_null(), ENOTTY, "beneath a listed directory");
	expect("make a file in /dev/shm", open_and_close("/dev/shm", O_WRONLY | O_TMPFILE), 0,
	       "unnamed files are opened, not made");
	expect("mkdir in /dev/shm", mkdir("/dev/shm/execpy-landlock", 0700), EACCES,
	       "beneath a directory of devices");
}

static void test_device_directory(void **state)
{
	in_child(try_device_directory);
}

/* What was not asked for stays possible. */
static void try_network_left_alone(void)
{
	confine_or_end(&(struct landlock_plan){.paths = paths, .path_count = 1});
	expect("bind a TCP port", bind_tcp(), 0, "not asked to deny");
	expect("connect to an abstract socket", connect_abstract(), 0, "not asked to deny");
	expect("signal a process outside", signal_parent(), 0, "not asked to deny");
}

static void test_network_left_alone(void **state)
{
	in_child(try_network_left_alone);
}

static void expect_refused(const struct landlock_plan *with, int wanted, const char *words)
{
	struct error err = {0};
	int r = landlock_confine(with, &err);

	if (r == -wanted && err.number == wanted && strstr(err.text, words))
		return;
	fprintf(stderr, "%d, \"%s\"; wanted %d with \"%s\"\n", r, err.text, -wanted, words);
	failures++;
}

static void try_bad_plans(void)
{
	const struct landlock_path missing = {"not/there", LANDLOCK_READ, false};
	const struct landlock_path no_device = {"secret", LANDLOCK_DEVICE, false};

	expect_refused(&(struct landlock_plan){.paths = &missing, .path_count = 1}, ENOENT,
		       "not/there");
	expect_refused(&(struct landlock_plan){.paths = &no_device, .path_count = 1}, EINVAL,
		       "secret");
	expect("write ro/file", write_ro(), 0, "after plans that failed");
	/* A plan that does not do what it promises is noticed after the fact. */
	expect_refused(
		&(struct landlock_plan){.paths = paths, .path_count = 2, .must_refuse = "rw"},
		EPROTO, "can be written after all");
}

static void test_bad_plans_fail(void **state)
{
	in_child(try_bad_plans);
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void try_descriptors(void)
{
	static const struct landlock_path second_is_missing[] = {
		{"ro", LANDLOCK_READ, false}, {"not/there", LANDLOCK_READ, false}};
	int before = open_descriptors();
	struct error err = {0};

	landlock_confine(&(struct landlock_plan){.paths = second_is_missing, .path_count = 2},
			 &err);
	failures += open_descriptors() != before;
	confine_or_end(&plan);
	failures += open_descriptors() != before;
}

static void test_no_descriptor_is_left(void **state)
{
	in_child(try_descriptors);
}

static void time_confinement(void)
{
	struct timespec start, end;
	pid_t pid;
	double best_us = 1e9;

	for (int i = 0; i < 30; i++) {
		pid = fork();
		if (pid == 0) {
			clock_gettime(CLOCK_MONOTONIC, &start);
			confine_or_end(&plan);
			clock_gettime(CLOCK_MONOTONIC, &end);
			_exit((int)((end.tv_sec - start.tv_sec) * 1000000 +
				    (end.tv_nsec - start.tv_nsec) / 1000) /
			      4);
		}
		int status = -1;

		waitpid(pid, &status, 0);
		if (WIFEXITED(status) && 4 * WEXITSTATUS(status) < best_us)
			best_us = 4 * WEXITSTATUS(status);
	}
	printf("confined in %.0f to %.0f us, %zu paths, checks included\n", best_us, best_us + 4,
	       plan.path_count);
	fflush(stdout);
}

static void test_cost(void **state)
{
	in_child(time_confinement);
}

static void write_file(const char *path, mode_t mode, const char *text)
{
	autofd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* The test itself becomes nobody: nothing in it needs more. */
static int make_tree(void **state)
{
	static int listener = -1;

	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return -1;
	/* Changing the id made it undumpable, and so its descriptors unreadable. */
	prctl(PR_SET_DUMPABLE, 1);
	if (!mkdtemp(root) || chdir(root) < 0 || mkdir("ro", 0700) < 0 || mkdir("rw", 0700) < 0 ||
	    mkdir("rw/a", 0700) < 0 || mkdir("rw/b", 0700) < 0)
		return -1;
	write_file("ro/file", 0600, "text");
	write_file("rw/a/file", 0600, "text");
	write_file("secret", 0600, "text");
	write_file("ro/program", 0700, "#!/usr/bin/true\n");
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	abstract_length =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			    (size_t)snprintf(abstract_name.sun_path + 1,
					     sizeof abstract_name.sun_path - 1, "%s", root));
	return bind(listener, (struct sockaddr *)&abstract_name, abstract_length) |
	       listen(listener, 100);
}

static int remove_tree(void **state)
{
	static const char *const files[] = {"ro/file", "ro/program", "rw/a/file", "secret"};
	static const char *const directories[] = {"rw/a", "rw/b", "rw", "ro", root};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
		r |= unlink(files[i]);
	for (size_t i = 0; i < ARRAY_LENGTH(directories); i++)
		r |= rmdir(directories[i]);
	return r;
}

/* Without Landlock there is one thing to test: that this is said. */
static void test_absence_is_said(void **state)
{
	expect_refused(&(struct landlock_plan){.path_count = 0}, ENOSYS, "landlock");
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed_and_denied),
		cmocka_unit_test(test_inherited_and_only_narrowed),
		cmocka_unit_test(test_device_directory),
		cmocka_unit_test(test_network_left_alone),
		cmocka_unit_test(test_bad_plans_fail),
		cmocka_unit_test(test_no_descriptor_is_left),
		cmocka_unit_test(test_cost),
	};
	const struct CMUnitTest without[] = {cmocka_unit_test(test_absence_is_said)};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (landlock_abi() == 0) {
		printf("this kernel has no Landlock\n");
		if (getenv("MUST_WORK"))
			return 1;
		return cmocka_run_group_tests(without, NULL, NULL);
	}
	printf("Landlock ABI %d\n", landlock_abi());
	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
