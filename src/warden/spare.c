/* SPDX-License-Identifier: Apache-2.0 */
/* spare: cgroups that served a cell and serve another.
 *
 * Theory of operation. To make and to remove the directories of v1's hierarchies,
 * and to have the kernel free what is behind them, is a good part of what a short
 * run costs. So a daemon keeps some whose cell is gone. That is done only where the
 * next cell can find no trace of the one before: no process is in them, nothing was
 * killed for memory, never more than one process was counted (that peak cannot be
 * reset), hardly any memory is charged, and the limits are the usual ones. CPU time
 * is told from what was read when a cell was parked. When for a moment nothing
 * runs they are removed: they are for runs that follow each other closely.
 *
 * v2 has one directory a cell, and one that was killed kills what enters it: there
 * each cell gets a fresh one. */
#include "warden/warden.h"

#include "base/cleanup.h"

#define SPARE_BYTES_MAX MIB   /* which the kernel has not given back yet: it charges in advance */
#define SPARE_US        20000 /* of rest, until they are removed */

static void on_unused(evutil_socket_t fd, short what, void *argument)
{
	struct warden *warden = argument;

	if (warden->running + warden->queued > 0) {
		set_timer(warden->spares_unused, SPARE_US);
		return;
	}
	while (warden->spare_count > 0)
		cgroup_cell_remove(&warden->cgroups, &warden->spares[--warden->spare_count]);
}

static bool has_usual_limits(const struct limits *limits)
{
	const struct limits usual = limits_default();

	return limits->memory_bytes == usual.memory_bytes && limits->processes == usual.processes;
}

bool spare_take(struct warden *warden, const struct limits *limits, struct cgroup_cell *ret_cgroup)
{
	if (warden->spare_count == 0 || !has_usual_limits(limits))
		return false;
	*ret_cgroup = warden->spares[--warden->spare_count];
	cgroup_cell_reset_peak(&warden->cgroups, ret_cgroup);
	return true;
}

bool spare_keep(struct cell *cell)
{
	struct warden *warden = cell->warden;
	struct cgroup_usage usage;
	struct error err = {0};

	if (!warden->daemon || warden->cgroups.mode != CGROUP_V1 || !warden->cgroups.has_pids ||
	    !warden->cgroups.has_memory || warden->spare_count == CGROUP_SPARES_MAX)
		return false;
	/* Parked once, it has its full weight. */
	if (!cell->parked || cell->lasting || !has_usual_limits(&cell->limits))
		return false;
	if (cgroup_cell_usage(&warden->cgroups, &cell->cgroup, &usage, &err) < 0 ||
	    usage.processes > 0 || usage.processes_peak > 1 || usage.oom_kills > 0 ||
	    usage.memory_bytes > SPARE_BYTES_MAX)
		return false;
	if (!warden->spares_unused)
		warden->spares_unused =
			warden_event(warden, -1, 0, PRIORITY_BEHIND, on_unused, warden);
	if (!warden->spares_unused)
		return false;
	set_timer(warden->spares_unused, SPARE_US);
	warden->spares[warden->spare_count++] = cell->cgroup;
	return true;
}
