/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: memory, processes and CPU of a cell, limited and accounted.
 *
 * Three hosts are known: v2 with delegated controllers, v1 hierarchies, and
 * neither. Where a controller is missing the caller is told, resource by
 * resource, and enforces it otherwise (RLIMIT_NPROC, sampling) or refuses:
 * nothing is ever silently unlimited. */
#ifndef EXECPY_JAIL_CGROUP_H
#define EXECPY_JAIL_CGROUP_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_mode { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* v1 has a hierarchy for each; v2 one for all, kept at index 0. `cpu` is there
 * for its scheduling share alone: a cell of 64 busy threads weighs as one. */
enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CPUACCT,
	CGROUP_CPU,
	CGROUP_CONTROLLERS,
};

struct cgroup_root {
	enum cgroup_mode mode;
	int directory[CGROUP_CONTROLLERS]; /* ours, holding cells; -1: none */
	int parent[CGROUP_CONTROLLERS];    /* where ours is, to remove it */
	char name[64];                     /* of ours: execpy.<pid>.<random> */
	int supervisor;                    /* v2: the leaf that the warden lives in; -1: none */
	bool moved; /* v2: caller and its parent were moved there, to be moved back */
	bool has_memory, has_pids, has_cpu;
	pid_t janitor; /* in the warden: who removes all this after its end */
	char why[200]; /* one line: why something is missing */
};

/* What the kernel counts of a cell. */
enum cgroup_counter {
	CGROUP_COUNTS_CPU,
	CGROUP_COUNTS_OOM_KILLS,
	CGROUP_COUNTS_MEMORY,
	CGROUP_COUNTS_MEMORY_PEAK,
	CGROUP_COUNTS_PROCESSES,
	CGROUP_COUNTS_PROCESSES_PEAK,
	CGROUP_COUNTERS,
};

struct cgroup_cell {
	char name[32];
	int directory[CGROUP_CONTROLLERS];
	/* What a process that joins needs: v1 the `tasks` files, v2 the directory. */
	int join[CGROUP_CONTROLLERS];
	size_t join_count;
	/* v1: the one of `join` that counts processes, from 1; 0: none. The cell
	 * enters it itself, so that its helper is not counted. */
	size_t pids_join;
	/* Files that are read often, open from the first time on; -1: not yet,
	 * -2: this kernel does not have it. */
	int counter[CGROUP_COUNTERS];
};

struct cgroup_usage {
	uint64_t cpu_us;
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t processes_peak;
	uint64_t processes; /* now */
	uint64_t oom_kills;
};

/* Finds and makes this warden's directories, sweeping those of dead wardens
 * (held by flock; only our own prefix). With owner not -1 (the caller is root)
 * they are given to that id, and under v2 the caller moves into a leaf of
 * them. Fails only on surprises; a host without usable cgroups is mode NONE. */
int cgroup_setup(struct cgroup_root *root, uid_t owner, gid_t owner_group, struct error *err);
void cgroup_teardown(struct cgroup_root *root);
/* Forks. The child goes on as the warden; the caller becomes its janitor: it
 * waits for the child's end, however that comes, removes the directories, which
 * an unprivileged process could not, and exits as the child did. So whoever
 * waits for the caller knows that all is clean. */
int cgroup_fork_janitor(struct cgroup_root *root, struct error *err);
/* In the child, once it is who it stays: it dies with the janitor from now on.
 * A change of ids would make the kernel forget that. */
int cgroup_follow_janitor(const struct cgroup_root *root, struct error *err);
const char *cgroup_mode_name(enum cgroup_mode mode); /* "v1", "v2", "none" */

/* A fresh cgroup for one cell: one that was killed once kills what enters it. */
int cgroup_cell_create(const struct cgroup_root *root, uint64_t id, struct cgroup_cell *ret_cell,
		       struct error *err);
/* Memory (and no swap), processes; may be called again while the cell runs. */
int cgroup_cell_limit(const struct cgroup_root *root, const struct cgroup_cell *cell,
		      uint64_t memory_bytes, uint64_t processes, struct error *err);
/* Its share of the processors while others want them: an eighth of the usual one,
 * so that whoever waits for the template's next fork does not wait forever, or all of it. Where
 * nothing can be set nothing is: it is a courtesy. */
void cgroup_cell_weight(const struct cgroup_root *root, const struct cgroup_cell *cell,
			bool behind);
/* How many processes may be there; 0: nobody forks any more. */
int cgroup_cell_processes(const struct cgroup_root *root, const struct cgroup_cell *cell,
			  uint64_t processes, struct error *err);
/* The kernel takes one process when memory is out, not all: the others go on. */
void cgroup_cell_kill_one(const struct cgroup_root *root, const struct cgroup_cell *cell);
/* The peak of memory counts from now on, where the kernel can do that. */
void cgroup_cell_reset_peak(const struct cgroup_root *root, struct cgroup_cell *cell);
/* The CPU time, OOM kills and processes only: what a run of many begins with. */
int cgroup_cell_so_far(const struct cgroup_root *root, struct cgroup_cell *cell,
		       struct cgroup_usage *ret_usage, struct error *err);
int cgroup_cell_usage(const struct cgroup_root *root, struct cgroup_cell *cell,
		      struct cgroup_usage *ret_usage, struct error *err);
/* 0 when it is gone; -EBUSY while something in it is still dying. */
int cgroup_cell_remove(const struct cgroup_root *root, struct cgroup_cell *cell);

#endif
