/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_host: see doctor_host.h. */
#include "engine/doctor_host.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int make_file(struct bait *bait, struct error *err)
{
	struct stat info;

	snprintf(bait->directory, sizeof bait->directory, "/tmp/execpy-doctor-XXXXXX");
	if (!mkdtemp(bait->directory)) {
		bait->directory[0] = '\0';
		return fail(err, errno, "doctor: make a directory in /tmp");
	}
	snprintf(bait->file, sizeof bait->file, "%s/canary", bait->directory);
	snprintf(bait->path_name, sizeof bait->path_name, "%s/socket", bait->directory);
	/* Modes must not be what keeps a cell out. Inheritable on purpose. */
	bait->leak = open(bait->file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (bait->leak < 0 || write(bait->leak, bait->canary, 32) != 32 ||
	    fchmod(bait->leak, 0644) < 0 || chmod(bait->directory, 0755) < 0 ||
	    stat(bait->file, &info) < 0)
		return fail(err, errno, "doctor: write %s", bait->file);
	return 0;
}

/* A bound socket of the loopback interface; 0 in *ret_port when there is none. */
static int open_loopback(int type, unsigned *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	autofd fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		return -1;
	if (type == SOCK_STREAM) {
		autofd client = socket(AF_INET, type | SOCK_CLOEXEC, 0);
		autofd accepted = -1;

		if (listen(fd, 4) < 0 || client < 0 ||
		    connect(client, (struct sockaddr *)&address, sizeof address) < 0)
			return -1;
		accepted = accept(fd, NULL, NULL);
		if (accepted < 0)
			return -1;
	} else {
		char byte = 0;

		if (sendto(fd, &byte, 1, 0, (struct sockaddr *)&address, sizeof address) != 1 ||
		    recv(fd, &byte, 1, 0) != 1)
			return -1;
	}
	*ret_port = ntohs(address.sin_port);
	return take_fd(&fd);
}

/* Listens, and is reached once to show that it can be. */
static int open_local(const char *name, bool is_abstract, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
	autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	autofd client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	autofd accepted = -1;

	memcpy(address.sun_path + is_abstract, name, strlen(name));
	if (fd < 0 || client < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 ||
	    (!is_abstract && chmod(name, 0666) < 0) || listen(fd, 4) < 0 ||
	    connect(client, (struct sockaddr *)&address, length) < 0)
		return fail(err, errno, "doctor: socket %s", name);
	accepted = accept(fd, NULL, NULL);
	if (accepted < 0)
		return fail(err, errno, "doctor: accept on %s", name);
	return take_fd(&fd);
}

int bait_lay(struct bait *bait, struct error *err)
{
	uint8_t random[16];
	int r;

	*bait = (struct bait){.leak = -1, .tcp = -1, .udp = -1, .abstract = -1, .path = -1};
	if (getrandom(random, sizeof random, 0) != sizeof random)
		return fail(err, errno, "doctor: getrandom");
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(bait->canary + 2 * i, 3, "%02x", random[i]);
	/* Not the canary: the cell is told this name. */
	snprintf(bait->abstract_name, sizeof bait->abstract_name, "execpy-doctor-%d",
		 (int)getpid());
	r = make_file(bait, err);
	if (r < 0)
		return r;
	bait->abstract = open_local(bait->abstract_name, true, err);
	if (bait->abstract < 0)
		return bait->abstract;
	bait->path = open_local(bait->path_name, false, err);
	if (bait->path < 0)
		return bait->path;
	bait->tcp = open_loopback(SOCK_STREAM, &bait->tcp_port);
	bait->udp = open_loopback(SOCK_DGRAM, &bait->udp_port);
	return setenv(CANARY_VARIABLE, bait->canary, 1) < 0 ? fail(err, errno, "doctor: setenv")
							    : 0;
}

bool bait_was_taken(const struct bait *bait)
{
	const int listening[] = {bait->tcp, bait->abstract, bait->path};
	char byte;

	for (size_t i = 0; i < ARRAY_LENGTH(listening); i++) {
		autofd caller = listening[i] < 0 ? -1 : accept(listening[i], NULL, NULL);

		if (caller >= 0)
			return true;
	}
	return bait->udp >= 0 && recv(bait->udp, &byte, 1, 0) >= 0;
}

void bait_clear(struct bait *bait)
{
	unsetenv(CANARY_VARIABLE);
	close_fd(&bait->leak);
	close_fd(&bait->tcp);
	close_fd(&bait->udp);
	close_fd(&bait->abstract);
	close_fd(&bait->path);
	if (!bait->directory[0])
		return;
	unlink(bait->file);
	unlink(bait->path_name);
	rmdir(bait->directory);
}

int host_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

/* Not by the jail's own code: the doctor is a second witness. */
static void try_to_create(const char *directory, char *ret_got, size_t size)
{
	const struct landlock_ruleset_attr rules = {.handled_access_fs =
							    LANDLOCK_ACCESS_FS_MAKE_REG};
	char path[128];
	autofd before = -1;
	autofd after = -1;
	autofd ruleset = -1;

	snprintf(path, sizeof path, "%s/before", directory);
	before = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (before < 0 || unlink(path) < 0) {
		snprintf(ret_got, size, "no file can be made");
		return;
	}
	/* No rule at all: regular files can be made nowhere. */
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
	if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) {
		snprintf(ret_got, size, "no fence: %s", errno_name(errno));
		return;
	}
	snprintf(path, sizeof path, "%s/after", directory);
	after = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	snprintf(ret_got, size, "%s", after < 0 ? errno_name(errno) : "allowed");
	if (after >= 0)
		unlink(path);
}

void host_try_landlock(const char *directory, char *ret_got, size_t size)
{
	char text[100];
	int answer[2];
	ssize_t length;
	pid_t pid;

	snprintf(ret_got, size, "not tried");
	if (pipe2(answer, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		try_to_create(directory, text, sizeof text);
		length = write(answer[1], text, strlen(text));
		_exit(length < 0);
	}
	close(answer[1]);
	length = pid < 0 ? -1 : read(answer[0], text, sizeof text - 1);
	close(answer[0]);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	if (length > 0)
		snprintf(ret_got, size, "%.*s", (int)length, text);
}

static bool setting_is(const char *path, const char *value)
{
	char text[32] = "";
	autofd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (length <= 0)
		return false;
	text[length] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, value) == 0;
}

#define MASKED_PROC_REMEDY                                                     \
	"parts of /proc are covered, as containers do: docker --security-opt " \
	"systempaths=unmasked, podman --security-opt unmask=ALL, Kubernetes procMount: Unmasked"

/* Settings that take user namespaces away; each is looked at when the start
 * failed in a way that it could explain. */
static const struct {
	const char *path, *value;
	bool only_users; /* root is not affected */
	const char *remedy;
} settings[] = {
	{"/proc/sys/user/max_user_namespaces", "0", false,
	 "user namespaces are switched off: sysctl user.max_user_namespaces=15000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", true,
	 "user namespaces are kept from users: sysctl kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", false,
	 "AppArmor restricts user namespaces: give execpy-warden a profile with `userns,`, or "
	 "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
};

/* The words of a step that failed, and what usually stands behind it. */
static const struct {
	const char *step, *errno_words, *remedy;
} known[] = {
	{"Landlock", "",
	 "Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK, and landlock in the "
	 "lsm= list of the kernel's command line"},
	{"not installed", "", "install it with `meson install`, or run it from its build tree"},
	{"no execpy-warden", "",
	 "give the directory in which execpy-warden, execpy-keeper and execpy-guest are"},
	{"clone3", "not permitted",
	 "the container's seccomp profile refuses namespaces: allow "
	 "clone3, unshare, setns and the mount calls, or docker "
	 "--security-opt seccomp=unconfined"},
	{"clone3", "not implemented",
	 "a seccomp profile hides clone3: allow it, or docker "
	 "--security-opt seccomp=unconfined"},
	{"mounts:", "not implemented",
	 "Linux 5.14 or newer, and a container profile that allows "
	 "open_tree, mount_setattr, fsopen and move_mount"},
	{"mounts:", "ermission denied",
	 "a security module or the container refuses mounts: docker "
	 "--security-opt apparmor=unconfined"},
	{"mounts:", "not permitted",
	 "a security module or the container refuses mounts: docker "
	 "--security-opt apparmor=unconfined seccomp=unconfined"},
	{"uid_map", "",
	 "the caller's id cannot be mapped: run as a plain user or as root outside "
	 "of other sandboxes"},
	{"leave all groups", "",
	 "this root has no other id to become: run as a plain user, or give the container a range "
	 "of ids (/etc/subuid)"},
	{"become", "",
	 "this root has no other id to become: run as a plain user, or give the container a range "
	 "of ids (/etc/subuid)"},
	{"engine: start", "not permitted",
	 "a seccomp profile refuses clone3: allow it, or docker --security-opt seccomp=unconfined"},
	{"seccomp", "", "a kernel with CONFIG_SECCOMP_FILTER"},
};

/* Whether something of /proc is covered: then the kernel lets nobody mount a
 * proc of his own in a user namespace. Empty directories made for a mount do
 * not count. */
static bool proc_is_masked(void)
{
	static const char *const harmless[] = {"/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"};
	autofile *mounts = fopen("/proc/self/mountinfo", "re");
	char line[4096], point[1024];

	while (mounts && fgets(line, sizeof line, mounts)) {
		bool counts = sscanf(line, "%*s %*s %*s %*s %1023s", point) == 1 &&
			      strncmp(point, "/proc/", strlen("/proc/")) == 0;

		for (size_t i = 0; i < ARRAY_LENGTH(harmless); i++)
			counts &= strcmp(point, harmless[i]) != 0;
		if (counts)
			return true;
	}
	return false;
}

/* In a user namespace that maps nobody, nobody can make another. */
static bool caller_is_unmapped(void)
{
	char byte;
	autofd fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &byte, 1) == 0;
}

void host_remedy(const char *why, char *ret_text, size_t size)
{
	bool of_namespaces = strstr(why, "clone3") || strstr(why, "credentials:") ||
			     strstr(why, "mounts:") || strstr(why, "keeper") ||
			     strstr(why, "init:");

	for (size_t i = 0; of_namespaces && i < ARRAY_LENGTH(settings); i++) {
		if (!setting_is(settings[i].path, settings[i].value) ||
		    (settings[i].only_users && geteuid() == 0))
			continue;
		snprintf(ret_text, size, "%s", settings[i].remedy);
		return;
	}
	if (of_namespaces && caller_is_unmapped()) {
		snprintf(ret_text, size,
			 "the caller's id is not mapped in its user namespace: "
			 "write /proc/PID/uid_map");
		return;
	}
	if (of_namespaces && proc_is_masked()) {
		snprintf(ret_text, size, "%s", MASKED_PROC_REMEDY);
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		if (!strstr(why, known[i].step) || !strstr(why, known[i].errno_words))
			continue;
		snprintf(ret_text, size, "%s", known[i].remedy);
		return;
	}
	snprintf(ret_text, size,
		 "the step that failed is named on the left; docs/security.md says "
		 "what each layer needs");
}
