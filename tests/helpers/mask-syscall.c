/* SPDX-License-Identifier: Apache-2.0 */
/* mask-syscall: runs a program in which one system call fails with a chosen errno.
 *
 *   mask-syscall NUMBER ERRNO PROGRAM [ARGUMENT…]
 *   mask-syscall NUMBER:ARGUMENT:VALUE ERRNO PROGRAM …    only when that argument has that value
 *   mask-syscall NUMBER:ARGUMENT:&VALUE ERRNO PROGRAM …   only when it has one of these bits
 *
 * Stands for a kernel without the call, or for a step of the set-up that fails.
 * As root it needs no no_new_privs, so that everything else is as it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "an architecture that execpy does not know"
#endif

int main(int argc, char **argv)
{
	unsigned int number, error, argument = 0, value = 0;
	int test = 0, bits = 0;
	char *rest;

	if (argc < 4) {
		fprintf(stderr, "usage: mask-syscall NUMBER[:ARGUMENT:[&]VALUE] ERRNO PROGRAM …\n");
		return 2;
	}
	number = (unsigned int)strtoul(argv[1], &rest, 10);
	if (*rest == ':') {
		argument = (unsigned int)strtoul(rest + 1, &rest, 10);
		bits = *rest == ':' && rest[1] == '&';
		value = (unsigned int)strtoul(rest + 1 + bits, NULL, 0);
		test = 1;
	}
	error = (unsigned int)strtoul(argv[2], NULL, 10);

	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (unsigned int)offsetof(struct seccomp_data, args) + 8 * argument),
		/* Without a test both ways lead to the failure. */
		bits ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value, 0, 1)
		     : (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0,
						    test ? 1 : 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 &&
	    (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	     syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)) {
		perror("mask-syscall: seccomp");
		return 2;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "mask-syscall: exec %s: %s\n", argv[3], strerror(errno));
	return 2;
}
