/* SPDX-License-Identifier: Apache-2.0 */
/* watch: a seccomp notification on what must never happen. */
#ifndef EXECPY_JAIL_WATCH_H
#define EXECPY_JAIL_WATCH_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Installs the watching filter on the calling process and returns the listener's
 * descriptor, which is to be handed to the warden and closed. Stage: cell,
 * before the cell's own filter, which refuses seccomp(). */
int watch_install(struct error *err);

enum watch_event {
	WATCH_BIND,
	WATCH_LISTEN,
	WATCH_CONNECT,
	WATCH_SEND, /* a datagram with an address */
	WATCH_EXEC,
	WATCH_WRITE, /* opening for writing */
};

#define WATCH_DETAIL_MAX 256

struct watch_notice {
	uint64_t id;
	pid_t thread; /* as the caller sees it */
	enum watch_event event;
	bool harmless; /* in the workspace, on a unix socket … : nothing to report */
	char detail[WATCH_DETAIL_MAX]; /* a path or an address, printable */
};

/* Whether a notice is waiting: receiving would else sleep. */
bool watch_pending(int listener);
/* True when no process is left that could send one. */
bool watch_hung_up(int listener);

/* Receives one notice, reading what it is about from the caller's memory: 1, 0
 * when there was none after all, or a negative errno. Stage: warden. */
int watch_receive(int listener, struct watch_notice *ret_notice);

/* Lets the call go on to where the other layers decide, or fail with EACCES.
 * Neither is ever what allows it: what the watch reports is impossible anyway. */
int watch_answer(int listener, const struct watch_notice *notice, bool go_on);

const char *watch_event_name(enum watch_event event);

#endif
