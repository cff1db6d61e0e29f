/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_host: the doctor's work outside of cells. */
#ifndef EXECPY_ENGINE_DOCTOR_HOST_H
#define EXECPY_ENGINE_DOCTOR_HOST_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define CANARY_VARIABLE "EXECPY_DOCTOR_CANARY"

/* What a cell shall try to reach. All of it is in plain sight of every other
 * process of the host, and was reached by the doctor itself when it was made. */
struct bait {
	char canary[33]; /* 128 random bits in hexadecimal; also the variable's value */
	char directory[64], file[80], path_name[80], abstract_name[48];
	int leak; /* the file, open and inheritable */
	int tcp, udp, abstract, path;
	unsigned tcp_port, udp_port; /* 0: this host has no loopback */
};

int bait_lay(struct bait *bait, struct error *err);
/* Whether anybody came: a connection or a datagram. */
bool bait_was_taken(const struct bait *bait);
void bait_clear(struct bait *bait);

/* The ABI of the running kernel; 0: no Landlock. */
int host_landlock_abi(void);
/* Landlock as the running kernel does it: a child confines itself and tries to
 * create a file in `directory`. Returns what it got: "EACCES", "allowed", or
 * what failed. */
void host_try_landlock(const char *directory, char *ret_got, size_t size);

/* One line on what to do about a start that failed with these words. */
void host_remedy(const char *why, char *ret_text, size_t size);

#endif
