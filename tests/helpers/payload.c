/* SPDX-License-Identifier: Apache-2.0 */
/* payload: the one native program of the attack suite; each sub-command is one attack.
 *
 * Built static, so that it runs in any root.  A sub-command exits 0 when the
 * attack worked, 1 when it was refused (the errno is printed), 2 on wrong usage. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static int refused(const char *what)
{
	printf("%s: DENIED %s\n", what, strerrorname_np(errno));
	return 1;
}

static int worked(const char *what)
{
	printf("%s: DID\n", what);
	return 0;
}

/* try-syscall NUMBER [ARGUMENT…]: arguments are numbers, or s:TEXT for a string. */
static int try_syscall(int argc, char **argv)
{
	long argument[6] = {0};

	if (argc < 1 || argc > 7)
		return 2;
	for (int i = 1; i < argc; i++)
		argument[i - 1] = strncmp(argv[i], "s:", 2) == 0 ? (long)(argv[i] + 2)
								 : strtol(argv[i], NULL, 0);
	if (syscall(strtol(argv[0], NULL, 0), argument[0], argument[1], argument[2], argument[3],
		    argument[4], argument[5]) == -1)
		return refused("syscall");
	return worked("syscall");
}

/* int80: getpid by the 32-bit entry. */
static int int80(int argc, char **argv)
{
	(void)argc;
	(void)argv;
#ifdef __x86_64__
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "memory", "r8", "r9", "r10", "r11");
	if (result == getpid())
		return worked("int80");
	errno = (int)-result;
#else
	errno = ENOSYS;
#endif
	return refused("int80");
}

/* vfork: the child never execs and never ends; the parent waits for it in state D. */
static int hang_in_vfork(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (vfork() == 0)
		for (;;)
			pause();
	return worked("vfork");
}

/* keyring PROGRAM [ARGUMENT…]: runs the program in a new session keyring that holds a key. */
static int keyring(int argc, char **argv)
{
	const char *secret = getenv("EXECPY_TEST_SECRET");

	if (argc < 1)
		return 2;
	if (!secret)
		secret = "secret";
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) == -1)
		return refused("keyctl");
	if (syscall(SYS_add_key, "user", "execpy-test", secret, strlen(secret),
		    KEY_SPEC_SESSION_KEYRING) == -1)
		return refused("add_key");
	execvp(argv[0], argv);
	return refused("exec");
}

/* dirty SECRET-FILE PROGRAM [ARGUMENT…]: runs the program with everything inherited that a
 * careless parent can leave behind: ignored and blocked signals, umask 0, a low priority, one
 * processor, lowered limits, a high OOM score, a personality, a timer, open descriptors. */
static int dirty(int argc, char **argv)
{
	struct itimerval timer = {.it_value = {.tv_sec = 3600}};
	struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
	sigset_t mask;
	cpu_set_t processors;
	int fd;

	if (argc < 2)
		return 2;
	for (int number = 1; number < 65; number++)
		if (number != SIGCHLD)
			signal(number, SIG_IGN);
	sigfillset(&mask);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	umask(0);
	(void)!nice(5);
	sched_getaffinity(0, sizeof processors, &processors);
	for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &processors) && found++)
			CPU_CLR(i, &processors);
	sched_setaffinity(0, sizeof processors, &processors);
	setrlimit(RLIMIT_FSIZE, &limit);
	setitimer(ITIMER_REAL, &timer, NULL);
	personality(ADDR_NO_RANDOMIZE);
	fd = open("/proc/self/oom_score_adj", O_WRONLY);
	if (fd >= 0) {
		(void)!write(fd, "500", 3);
		close(fd);
	}
	fd = open(argv[0], O_RDWR);
	if (fd < 0)
		return refused("open");
	for (int i = 3; i < 40; i++)
		dup2(fd, i);
	dup2(fd, 200);
	execvp(argv[1], argv + 1);
	return refused("exec");
}

/* nofile N PROGRAM [ARGUMENT…]: with at most N descriptors. */
static int nofile(int argc, char **argv)
{
	struct rlimit limit;

	if (argc < 2)
		return 2;
	limit.rlim_cur = limit.rlim_max = strtoul(argv[0], NULL, 10);
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return refused("setrlimit");
	execvp(argv[1], argv + 1);
	return refused("exec");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*attack)(int, char **);
	} attacks[] = {
		{"try-syscall", try_syscall}, {"int80", int80}, {"vfork", hang_in_vfork},
		{"keyring", keyring},         {"dirty", dirty}, {"nofile", nofile},
	};

	for (size_t i = 0; argc > 1 && i < sizeof attacks / sizeof attacks[0]; i++)
		if (strcmp(argv[1], attacks[i].name) == 0)
			return attacks[i].attack(argc - 2, argv + 2);
	fprintf(stderr, "usage: payload try-syscall|int80|vfork|keyring|dirty|nofile …\n");
	return 2;
}
