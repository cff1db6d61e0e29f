/* SPDX-License-Identifier: Apache-2.0 */
/* run_collect: what a run left in its workspace, and what a hold does there.
 *
 * Theory of operation. Both read and write whole files, as many and as large as limits
 * allow. Whoever waits for one run (run_wait) has nothing else to do meanwhile. A loop that
 * serves many (async.h) has: there a few milliseconds are tried, and what takes longer is
 * begun anew by a thread, while the run is ASIDE. A run that is ASIDE is the thread's alone,
 * but for its deadline, which ends the work at the next piece of a file; all that would
 * touch the run does that first, and waits. */
#include "engine/engine.h"

#include "base/cleanup.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct aside {
	struct run *run;
	pthread_t thread;
	struct event *event;
	int done;    /* an eventfd */
	bool is_use; /* what the hold is for is yet to be done */
};

static void add_file(void *user, const char *path, uint64_t size, int fd, const char *reason)
{
	files_add(user, path, size, fd, reason);
}

static void collect(struct run *run, int64_t ms)
{
	const struct collector collector = {
		.workspace = run->workspace,
		.disk_bytes = run->result->limits.disk_bytes,
		.deadline = &run->deadline,
		.add = add_file,
		.user = run,
	};
	const char *cut;

	deadline_set(&run->deadline, ms);
	cut = collect_workspace(&collector);
	if (cut)
		run->result->files_cut = strdup(cut);
	else if (run->session)
		files_add_deleted(run);
	run->listed = run->session && !cut;
	files_sort(run->result);
}

/* The workspace is somebody's for a moment. */
static void use(struct run *run)
{
	struct workspace_identity own = workspace_enter(run->workspace);
	struct hold *hold = run->hold;

	deadline_set(&run->deadline, HOLD_TIME_MS);
	if (hold->use(hold->user, run->workspace, &run->deadline, &hold->failed) == 0)
		hold->failed.number = 0;
	workspace_leave(&own);
}

/* What a hold did is not the next run's doing. */
static bool is_collected(const struct run *run)
{
	return !run->hold || run->hold->changes;
}

static void *work(void *argument)
{
	struct aside *aside = argument;
	struct run *run = aside->run;
	const uint64_t one = 1;

	if (aside->is_use)
		use(run);
	if (is_collected(run))
		collect(run, COLLECT_TIME_MS);
	(void)!write(aside->done, &one, sizeof one);
	return NULL;
}

static void aside_free(struct aside *aside)
{
	if (aside->event)
		event_free(aside->event);
	close_fd(&aside->done);
	free(aside);
}

void run_collect_stop(struct run *run)
{
	struct aside *aside = run->aside;

	if (!aside)
		return;
	deadline_stop(&run->deadline);
	pthread_join(aside->thread, NULL);
	run->aside = NULL;
	run->engine->asides--;
	aside_free(aside);
}

static void on_done(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;

	run_collect_stop(run);
	run_finish(run);
}

/* A thread takes over. False when there is none to be had. */
static bool begin_aside(struct run *run, bool is_use)
{
	struct aside *aside =
		run->engine->asides < ASIDE_THREADS_MAX ? calloc(1, sizeof *aside) : NULL;
	sigset_t all, before;
	int r;

	if (!aside)
		return false;
	aside->run = run;
	aside->is_use = is_use;
	aside->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (aside->done >= 0)
		aside->event = event_new(run->engine->base, aside->done, EV_READ, on_done, run);
	if (!aside->event || event_add(aside->event, NULL) < 0) {
		aside_free(aside);
		return false;
	}
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&aside->thread, NULL, work, aside);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		aside_free(aside);
		return false;
	}
	run->aside = aside;
	run->state = RUN_ASIDE;
	run->engine->asides++;
	return true;
}

/* As far as a few milliseconds go. False when they did not: then nothing was done. */
static bool collect_here(struct run *run)
{
	collect(run, COLLECT_HERE_MS);
	if (!deadline_is_over(&run->deadline))
		return true;
	free(run->result->files_cut);
	run->result->files_cut = NULL;
	files_forget(run);
	return false;
}

void run_collect(struct run *run)
{
	const bool many = run->watch != NULL;

	if (run->hold && run->hold->apart && many && begin_aside(run, true))
		return;
	if (run->hold)
		use(run);
	if (is_collected(run) && (!many || !collect_here(run))) {
		if (many && begin_aside(run, false))
			return;
		collect(run, COLLECT_TIME_MS);
	}
	run_finish(run);
}
