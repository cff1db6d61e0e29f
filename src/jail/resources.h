/* SPDX-License-Identifier: Apache-2.0 */
/* resources: rlimits and everything else that a process inherits by accident. */
#ifndef EXECPY_JAIL_RESOURCES_H
#define EXECPY_JAIL_RESOURCES_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Signals to their defaults and unblocked, umask 022, nice 0, all processors,
 * no timers, personality 0, a session keyring of its own, oom_score_adj as
 * given. Stage: the first thing after clone in every process of ours that will
 * host a guest. Async-signal-safe. */
int resources_reset(struct error *err);

struct resources {
	uint64_t processes;   /* RLIMIT_NPROC */
	uint64_t file_bytes;  /* RLIMIT_FSIZE */
	uint64_t data_bytes;  /* RLIMIT_DATA; 0: not set, the cgroup counts */
	uint64_t cpu_seconds; /* RLIMIT_CPU; 0: not set, the cgroup counts */
};

/* Sets what is the same for every run, hard and soft: no core dumps, 1024
 * descriptors, no message queues, 64 KiB of locked memory, no real-time. Verified. */
int resources_limit_always(struct error *err);
/* Sets a run's own limits, hard and soft. Verified. */
int resources_limit(const struct resources *resources, struct error *err);

/* 0 … 1000 of /proc/self/oom_score_adj: the kernel takes cells first. */
int resources_oom_score(int score, struct error *err);

#endif
