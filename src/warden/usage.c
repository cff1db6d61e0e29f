/* SPDX-License-Identifier: Apache-2.0 */
/* usage: what the kernel says of a cell.
 *
 * With cgroups, their counters. Without, the cell's processes are found from
 * init downwards and their proportional set sizes and CPU times are added up:
 * good enough to end a run at its limit within some milliseconds; the hard
 * backstops are RLIMIT_DATA and RLIMIT_CPU, set in the cell. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SAMPLED_PROCESSES_MAX 4096
#define SAMPLED_DEPTH_MAX     64

struct sample {
	uint64_t memory_bytes, cpu_us, processes;
	int64_t until_us; /* no process is looked at later; 0: without end */
};

static uint64_t proportional_bytes(pid_t pid)
{
	char path[64], line[256];
	uint64_t total = 0, kib;
	autofile *file = NULL;

	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "Pss_Anon: %" SCNu64, &kib) == 1 ||
		    sscanf(line, "Pss_Shmem: %" SCNu64, &kib) == 1)
			total += kib * KIB;
	return total;
}

static uint64_t cpu_us_of(pid_t pid)
{
	char path[64], text[1024];
	unsigned long user, system, children_user, children_system;
	autofd fd = -1;
	const char *after;
	ssize_t length;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	/* The name may hold anything, so count from its last parenthesis. */
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &user,
		   &system, &children_user, &children_system) != 4)
		return 0;
	return (uint64_t)(user + system + children_user + children_system) * 1000000 /
	       (uint64_t)sysconf(_SC_CLK_TCK);
}

static void sample_tree(pid_t pid, unsigned depth, bool is_init, struct sample *sample)
{
	char path[64];
	autofile *children = NULL;
	int child;

	if (depth > SAMPLED_DEPTH_MAX || sample->processes > SAMPLED_PROCESSES_MAX ||
	    (sample->until_us && now_us() > sample->until_us))
		return;
	sample->cpu_us += cpu_us_of(pid);
	if (!is_init) {
		sample->memory_bytes += proportional_bytes(pid);
		sample->processes++;
	}
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &child) == 1)
		sample_tree(child, depth + 1, false, sample);
}

static uint64_t disk_bytes(const struct cell *cell)
{
	struct statvfs info;

	if (cell->workspace < 0 || fstatvfs(cell->workspace, &info) < 0)
		return 0;
	return (uint64_t)(info.f_blocks - info.f_bfree) * info.f_frsize;
}

static struct sample take_sample(const struct cell *cell)
{
	struct sample sample = {0};
	pid_t init = descriptors_pid(cell->init_pidfd);
	pid_t main_process = descriptors_pid(cell->main_pidfd);

	/* Hundreds of processes take seconds where they leave us little of the processors:
	 * the run's time limit does not wait for that. */
	if (cell->state == CELL_RUNNING)
		sample.until_us = cell->started_us + (int64_t)cell->limits.time_ms * 1000;
	/* Two trees: the main process is the keeper's child, orphans are init's. */
	if (init > 0)
		sample_tree(init, 0, true, &sample);
	if (main_process > 0)
		sample_tree(main_process, 0, false, &sample);
	sample.memory_bytes += disk_bytes(cell);
	return sample;
}

void usage_baseline(struct cell *cell)
{
	if (!cell->warden->cgroups.has_memory)
		cell->baseline_bytes = take_sample(cell).memory_bytes;
	usage_read(cell);
	if (cell->warden->cgroups.has_memory)
		cell->baseline_bytes = cell->usage.memory_bytes;
	cell->baseline_cpu_us = cell->usage.cpu_us;
	cell->usage = (struct cgroup_usage){0};
}

static bool counts_all(const struct cgroup_root *cgroups)
{
	return cgroups->has_memory && cgroups->has_pids && cgroups->has_cpu;
}

void usage_begin_run(struct cell *cell)
{
	struct error err = {0};

	if (cell->warden->cgroups.has_memory)
		cgroup_cell_reset_peak(&cell->warden->cgroups, &cell->cgroup);
	cell->baseline_oom_kills = cell->baseline_processes = cell->baseline_cpu_us = 0;
	cell->usage = (struct cgroup_usage){0};
	if (!counts_all(&cell->warden->cgroups) ||
	    cgroup_cell_so_far(&cell->warden->cgroups, &cell->cgroup, &cell->usage, &err) < 0)
		usage_read(cell);
	cell->baseline_cpu_us = cell->usage.cpu_us;
	cell->baseline_oom_kills = cell->usage.oom_kills;
	cell->baseline_processes = cell->usage.processes > 0 ? cell->usage.processes - 1 : 0;
	cell->usage = (struct cgroup_usage){0};
}

void usage_end_run(struct cell *cell)
{
	cell->baseline_cpu_us += cell->usage.cpu_us;
	cell->usage.cpu_us = 0;
}

void usage_read(struct cell *cell)
{
	const struct cgroup_root *cgroups = &cell->warden->cgroups;
	struct cgroup_usage usage = {0};
	struct error err = {0};

	if (cgroups->mode != CGROUP_NONE && cell->has_cgroup &&
	    cgroup_cell_usage(cgroups, &cell->cgroup, &usage, &err) < 0)
		usage = cell->usage; /* the last that was read */
	if (!counts_all(cgroups)) {
		struct sample sample = take_sample(cell);
		uint64_t own = sample.memory_bytes > cell->baseline_bytes
				       ? sample.memory_bytes - cell->baseline_bytes
				       : 0;

		if (!cgroups->has_memory) {
			usage.memory_bytes = own;
			usage.memory_peak_bytes = own > cell->usage.memory_peak_bytes
							  ? own
							  : cell->usage.memory_peak_bytes;
			usage.oom_kills = own > cell->limits.memory_bytes || cell->usage.oom_kills;
		}
		if (!cgroups->has_pids) {
			usage.processes = sample.processes;
			/* The main process was there, if it is gone now. */
			usage.processes_peak = sample.processes > 1 ? sample.processes : 1;
		}
		if (!cgroups->has_cpu)
			usage.cpu_us = sample.cpu_us;
	}
	cell->processes = usage.processes;
	/* A session's own processes, and what earlier runs left. */
	usage.processes -= usage.processes < cell->baseline_processes ? usage.processes
								      : cell->baseline_processes;
	usage.processes_peak -= usage.processes_peak < cell->baseline_processes
					? usage.processes_peak
					: cell->baseline_processes;
	usage.oom_kills -= usage.oom_kills < cell->baseline_oom_kills ? usage.oom_kills
								      : cell->baseline_oom_kills;
	usage.cpu_us -= usage.cpu_us < cell->baseline_cpu_us ? usage.cpu_us : cell->baseline_cpu_us;
	/* A process that was sampled and is gone still counts. */
	if (usage.cpu_us < cell->usage.cpu_us)
		usage.cpu_us = cell->usage.cpu_us;
	/* Not every kernel keeps the peak. */
	if (usage.processes_peak < cell->usage.processes_peak)
		usage.processes_peak = cell->usage.processes_peak;
	cell->usage = usage;
}

void usage_sample(struct cell *cell)
{
	const uint64_t numbers[3] = {(uint64_t)(now_us() - cell->started_us), cell->usage.cpu_us,
				     cell->usage.memory_bytes};
	uint8_t sample[24], *at = sample;

	if (cell->sample_count == PROBE_SAMPLES_MAX)
		return;
	cell->sample_count++;
	for (size_t i = 0; i < 3; i++)
		for (size_t shift = 0; shift < 64; shift += 8)
			*at++ = (uint8_t)(numbers[i] >> shift);
	frame_put(&cell->notes, FIELD_SAMPLE, sample, sizeof sample);
}

bool usage_alone(struct cell *cell, unsigned others)
{
	usage_read(cell);
	return cell->usage.processes <= others;
}

uint64_t usage_of_children(pid_t pid)
{
	struct sample sample = {0};

	sample_tree(pid, 0, true, &sample);
	return sample.memory_bytes;
}

/* No block or no inode is left on the cell's tmpfs. */
bool usage_disk_full(const struct cell *cell)
{
	struct statvfs info;

	return cell->workspace >= 0 && fstatvfs(cell->workspace, &info) == 0 &&
	       (info.f_bfree == 0 || info.f_ffree == 0);
}
