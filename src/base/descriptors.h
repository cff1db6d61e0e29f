/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: whether there are any left, and that 0, 1 and 2 are not among them. */
#ifndef EXECPY_BASE_DESCRIPTORS_H
#define EXECPY_BASE_DESCRIPTORS_H

#include "base/error.h"

#include <sys/types.h>

/* 0 when `count` more can be opened now, else -EMFILE or -ENFILE. For libraries
 * that end the process when they get none: libevent does. `count` <= 16. */
int descriptors_left(unsigned count, struct error *err);

/* Opens /dev/null for what is closed of 0, 1 and 2, which would else be handed to
 * the next file that is opened. To be called before any other is. */
int descriptors_fill_standard(struct error *err);

/* The process that a pidfd stands for, as the caller's pid namespace numbers it; 0
 * when it is not in there, -1 when it has ended or `pidfd` is none. */
pid_t descriptors_pid(int pidfd);

/* What an event base of libevent opens: epoll, a timer, a pair for signals. */
#define DESCRIPTORS_OF_EVENT_BASE 6

#endif
