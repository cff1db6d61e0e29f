/* SPDX-License-Identifier: Apache-2.0 */
/* cell: a cell's life as the warden leads it.
 *
 * Theory of operation.
 *
 *   MAKING ── init made, template loaded ──▶ FORKING ── parked ──▶ PARKED
 *   PARKED ── START ──▶ RUNNING ── main ended, others left ──▶ DRAINING
 *   RUNNING ── limit ──▶ STOPPING (frames) ──▶ KILLED
 *   RUNNING ── done, hung up, alone: the end is told ──▶ KILLED
 *   any ── main ended alone, drained, kill, failure ──▶ KILLED ── init dead ──▶ ENDED
 *
 * A session's cell goes from RUNNING back to PARKED, and instead of being killed
 * for what a run did to RESTORING, and then to PARKED (session.c).
 *
 * There is one way to end: SIGKILL to init by pidfd. The kernel then kills
 * every process of the pid namespace, and init's pidfd becomes readable only
 * when they are all gone. How it ended is decided by what was seen: a limit
 * that the warden reached, an OOM kill that the cgroup counted, a wait status
 * that the keeper, which is the main process's parent, reported.
 *
 * Taking a process apart takes longer than most runs. So a run that came to
 * its end by itself is answered first: its main process wrote its exit status
 * into the mailbox, closed all that it had open (its standard error hangs up),
 * and the kernel counts no other process. All that is left of it is an exit(),
 * and it is killed before the answer is sent. What it says of itself there, it
 * could as well have said by its exit status. In every other case the ending
 * is told when all is dead. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STOP_SIGNAL 33 /* guest/stopframes.c */

/* What only the way to PARKED needs. */
static void close_entry_fds(struct cell *cell)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cell->spaces); i++)
		close_fd(&cell->spaces[i]);
}

static void cell_free(struct cell *cell)
{
	struct template *template = cell->template;
	bool lasting = cell->lasting;

	free_event(&cell->init_event);
	free_event(&cell->death_event);
	free_event(&cell->control_event);
	free_event(&cell->listener_event);
	free_event(&cell->hang_up);
	free_event(&cell->deadline);
	free_event(&cell->poll);
	free_event(&cell->retry);
	close_entry_fds(cell);
	close_fd(&cell->init_socket);
	close_fd(&cell->init_pidfd);
	close_fd(&cell->main_pidfd);
	close_fd(&cell->control);
	close_fd(&cell->workspace);
	close_fd(&cell->listener);
	close_fd(&cell->runner_pidfd);
	close_fd(&cell->input);
	bytes_free(&cell->notes);
	close_fd(&cell->mailbox);
	close_fd(&cell->verdict);
	for (size_t i = 0; i < 3; i++)
		close_fd(&cell->stdio[i]);
	if (cell->header)
		munmap(cell->header, sizeof *cell->header);
	TAILQ_REMOVE(&cell->warden->cells, cell, entry);
	free(cell);
	template->cells--;
	template->sessions -= lasting;
	template_release(template);
}

/* Its cgroups can be removed once the kernel has let go of the last task,
 * which may be a moment after the wait. */
static void on_retry(evutil_socket_t fd, short what, void *argument)
{
	struct cell *cell = argument;

	if (cell->has_cgroup && !spare_keep(cell) &&
	    cgroup_cell_remove(&cell->warden->cgroups, &cell->cgroup) == -EBUSY) {
		set_timer(cell->retry, 2000);
		return;
	}
	cell->has_cgroup = false;
	cell_free(cell);
}

void cell_tell_end(struct cell *cell)
{
	/* First: telling may give the cell to the next run, which has its own. */
	close_fd(&cell->input);
	tell_ended(cell);
}

void cell_stop_clocks(struct cell *cell)
{
	event_del(cell->deadline);
	event_del(cell->poll);
}

/* What the kernel counted, once nothing more can be added to it. */
static void read_last_usage(struct cell *cell)
{
	if (!cell->started_us)
		return;
	if (!cell->ended_us)
		cell->ended_us = now_us();
	usage_read(cell);
	if (cell->probing)
		usage_sample(cell);
	/* The counter is the evidence, also when only a child died. */
	if (cell->usage.oom_kills > 0 && cell->ending == ENDING_EXITED)
		cell->ending = ENDING_MEMORY;
}

/* It is nobody's any more. */
static void lost(struct cell *cell)
{
	if (cell->lasting)
		session_cell_lost(cell);
	else
		pool_cell_lost(cell);
}

static void on_death(evutil_socket_t pidfd, short what, void *argument)
{
	struct cell *cell = argument;

	event_del(cell->death_event);
	if (cell->poll)
		event_del(cell->poll);
	if (cell->deadline)
		event_del(cell->deadline);
	if (cell->state < CELL_KILLED) {
		cell->ending = ENDING_FAILED;
		snprintf(cell->why, sizeof cell->why, "init of the cell ended: %.280s",
			 cell->template->dead ? cell->template->why : "it was killed");
		if (!cell->started_us || cell->lasting)
			lost(cell);
	}
	if (cell->claim)
		read_last_usage(cell);
	cell->state = CELL_ENDED;
	tell_ended(cell);
	on_retry(-1, 0, cell);
}

void cell_kill(struct cell *cell, enum ending ending, uint64_t reason)
{
	if (cell->state >= CELL_KILLED)
		return;
	if (cell->session && session_survives(cell, ending, reason))
		return;
	cell->ending = ending;
	cell->reason = reason;
	if (cell->started_us && !cell->ended_us)
		cell->ended_us = now_us();
	if (!cell->started_us || cell->lasting)
		lost(cell);
	cell->state = CELL_KILLED;
	if (cell->init_pidfd >= 0) {
		pidfd_send_signal(cell->init_pidfd, SIGKILL, NULL, 0);
		return;
	}
	/* Its init was never seen; closing the socket tells it to go. */
	free_event(&cell->init_event);
	close_fd(&cell->init_socket);
	cell->state = CELL_ENDED;
	tell_ended(cell);
	if (cell->retry)
		set_timer(cell->retry, 0);
}

void cell_fail(struct cell *cell, const char *why)
{
	if (cell->state >= CELL_KILLED)
		return;
	snprintf(cell->why, sizeof cell->why, "%s", why);
	cell_kill(cell, ENDING_FAILED, 0);
}

void cell_stop(struct cell *cell, enum ending ending)
{
	cell->ending = ending;
	cell->ended_us = cell->stop_asked_us = now_us();
	cell->state = CELL_STOPPING;
	if (pidfd_send_signal(cell->session ? cell->runner_pidfd : cell->main_pidfd, STOP_SIGNAL,
			      NULL, 0) < 0) {
		cell_kill(cell, ending, 0);
		return;
	}
	set_timer(cell->poll, 500);
}

/* Its standard error was closed, by the main process and all others. */
static void on_hang_up(evutil_socket_t fd, short what, void *argument)
{
	struct cell *cell = argument;
	uint32_t done = atomic_load(&cell->header->done);

	event_del(cell->hang_up);
	if (cell->state != CELL_RUNNING || done == 0 || cell->usage.oom_kills > 0)
		return;
	/* Sampling sees nothing of who is on the way out: the keeper tells. */
	if (!cell->warden->cgroups.has_cpu || !cell->warden->cgroups.has_memory ||
	    !cell->warden->cgroups.has_pids)
		return;
	/* The main process may still be counted, or be gone already. */
	if (!usage_alone(cell, 1))
		return;
	cell->ending = ENDING_EXITED;
	cell->ended_us = now_us();
	cell->status = (int)((done - 1) & 0xff) << 8; /* as wait(2) would tell it */
	cell->has_status = true;
	if (cell->probing)
		usage_sample(cell);
	if (cell->usage.oom_kills > 0)
		cell->ending = ENDING_MEMORY;
	cell->state = CELL_KILLED;
	pidfd_send_signal(cell->main_pidfd, SIGKILL, NULL, 0);
	pidfd_send_signal(cell->init_pidfd, SIGKILL, NULL, 0);
	event_del(cell->deadline);
	event_del(cell->poll);
	tell_ended(cell);
	/* Of what dies now only the end of init is looked at. */
	event_del(cell->init_event);
	event_del(cell->listener_event);
}

/* Of the wall time; negative when it is over. */
static int64_t time_left_us(const struct cell *cell)
{
	return cell->started_us + (int64_t)cell->limits.time_ms * 1000 - now_us();
}

static void on_deadline(evutil_socket_t fd, short what, void *argument)
{
	struct cell *cell = argument;
	int64_t left = time_left_us(cell);

	tell_cell(cell);
	if (cell->state == CELL_DRAINING)
		cell_kill(cell, ENDING_EXITED, 0);
	else if (cell->state == CELL_RUNNING && left > 0)
		set_timer(cell->deadline, left); /* timers count from when the loop woke */
	else if (cell->state == CELL_RUNNING)
		cell_stop(cell, ENDING_TIME);
	else if (cell->state < CELL_PARKED)
		cell_fail(cell, "the cell was not ready in time");
}

/* How late it may be seen that a child was killed for memory: hundreds of long runs, each
 * looked at twenty times a second, would take a processor's time from the short ones. */
static uint64_t longest_wait_us(const struct cell *cell)
{
	uint64_t wait_us = (uint64_t)(now_us() - cell->started_us) / USAGE_POLL_SHARE;

	if (wait_us < USAGE_POLL_SLOW_MS * 1000)
		return USAGE_POLL_SLOW_MS * 1000;
	return wait_us < USAGE_POLL_MOST_MS * 1000 ? wait_us : USAGE_POLL_MOST_MS * 1000;
}

/* CPU time cannot run faster than the processors: look again when the rest
 * could be used up at the earliest. */
static void schedule_poll(struct cell *cell)
{
	uint64_t most_us = longest_wait_us(cell);
	static long processors;
	uint64_t limit_us = cell->limits.cpu_ms * 1000;
	uint64_t rest_us = limit_us > cell->usage.cpu_us ? limit_us - cell->usage.cpu_us : 0;
	uint64_t wait_us;

	if (!processors)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	wait_us = rest_us / (uint64_t)(processors > 0 ? processors : 1);
	if (wait_us < USAGE_POLL_MS * 1000)
		wait_us = USAGE_POLL_MS * 1000;
	if (wait_us > most_us)
		wait_us = most_us;
	if (!cell->warden->cgroups.has_memory)
		wait_us = USAGE_POLL_MS * 1000;
	/* Sampling hundreds of processes takes time: leave most of it to others. */
	if (wait_us < 4 * (uint64_t)cell->poll_cost_us)
		wait_us = 4 * (uint64_t)cell->poll_cost_us;
	if (cell->probing && wait_us > PROBE_SAMPLE_MS * 1000)
		wait_us = PROBE_SAMPLE_MS * 1000;
	set_timer(cell->poll, (int64_t)wait_us);
}

static void on_poll(evutil_socket_t fd, short what, void *argument)
{
	struct cell *cell = argument;
	int64_t began;

	if (cell->state == CELL_STOPPING) {
		if (atomic_load(&cell->header->frames_length) != 0 ||
		    now_us() - cell->stop_asked_us > FRAMES_WAIT_MS * 1000)
			cell_kill(cell, cell->ending, 0);
		else
			set_timer(cell->poll, 500);
		return;
	}
	if (cell->state != CELL_RUNNING && cell->state != CELL_DRAINING)
		return;
	began = now_us();
	usage_read(cell);
	cell->poll_cost_us = now_us() - began;
	if (cell->probing)
		usage_sample(cell);
	if (cell->usage.oom_kills > 0)
		cell_kill(cell, ENDING_MEMORY, 0);
	else if (cell->state == CELL_RUNNING && cell->usage.cpu_us >= cell->limits.cpu_ms * 1000)
		/* A look that took long, on a machine that is busy, may come behind both
		 * limits: the first was that of wall time, which had its timer. */
		cell_stop(cell, time_left_us(cell) < 0 ? ENDING_TIME : ENDING_CPU);
	else
		schedule_poll(cell);
}

/* What it said before it closed its control socket, if that was anything: why it
 * could not begin. Nobody is woken for it. */
static bool last_words(struct cell *cell, char text[ERROR_TEXT_MAX])
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;

	if (frame_receive(cell->control, &cell->warden->buffer, &frame, fds, &count) != 1)
		return false;
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	snprintf(text, ERROR_TEXT_MAX, "the cell failed");
	frame_text(&frame, FIELD_TEXT, text, ERROR_TEXT_MAX);
	return true;
}

void cell_main_ended(struct cell *cell, int status, uint64_t cpu_us)
{
	char text[ERROR_TEXT_MAX];

	cell->pid = 0; /* the number may be used again */
	if (cell->session) {
		cell_fail(cell, "the judge of the session ended");
		return;
	}
	if (cell->state == CELL_RUNNING && last_words(cell, text)) {
		cell_fail(cell, text);
		return;
	}
	/* Of it and the children that it waited for: more than a sample knows. */
	if (!cell->warden->cgroups.has_cpu && cpu_us > cell->baseline_cpu_us &&
	    cpu_us - cell->baseline_cpu_us > cell->usage.cpu_us)
		cell->usage.cpu_us = cpu_us - cell->baseline_cpu_us;
	cell->status = status;
	cell->has_status = true;
	if (cell->state < CELL_RUNNING) {
		cell_fail(cell, "the cell ended before it was used");
		return;
	}
	if (cell->state >= CELL_STOPPING)
		return;
	cell->ended_us = now_us();
	if (usage_alone(cell, 0)) {
		cell_kill(cell, ENDING_EXITED, 0);
		return;
	}
	tell_cell(cell); /* what they write must be read */
	cell->state = CELL_DRAINING;
	set_timer(cell->deadline, DRAIN_MS * 1000);
}

/* Parked once both have said so: the template, whose word brings the pid under
 * which the keeper will tell its end, and the cell itself. */
static void park_when_ready(struct cell *cell)
{
	if (cell->state != CELL_FORKING || !cell->pid || !cell->parked)
		return;
	cell->state = CELL_PARKED;
	event_del(cell->deadline);
	usage_baseline(cell);
	if (cell->behind)
		cgroup_cell_weight(&cell->warden->cgroups, &cell->cgroup, false);
	if (cell->session)
		session_cell_parked(cell);
	else
		pool_cell_parked(cell);
}

static void on_control(evutil_socket_t socket, short what, void *argument)
{
	struct cell *cell = argument;
	char text[ERROR_TEXT_MAX] = "the cell failed";
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(socket, &cell->warden->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		/* Before PARKED its death is init's to tell; after GO the cell
		 * closes it. */
		event_del(cell->control_event);
		if (cell->state == CELL_FORKING)
			cell_fail(cell, "the cell ended while it was being made");
		else if (cell->session)
			cell_fail(cell, "the judge of the session ended");
		return;
	}
	if (cell->session && cell->state >= CELL_PARKED) {
		session_message(cell, &frame, fds, count);
		for (size_t i = 0; i < count; i++)
			close_fd(&fds[i]);
		return;
	}
	if (frame.type == MESSAGE_PARKED && cell->state == CELL_FORKING &&
	    count == (cell->session ? 3 : 2)) {
		struct error err = {0};

		if (cell->session) {
			cell->runner_pidfd = take_fd(&fds[2]);
			branch_take_changed(cell->session, &frame);
		}
		cell->main_pidfd = take_fd(&fds[0]);
		if (watch_begin(cell, take_fd(&fds[1]), &err) < 0) {
			cell_fail(cell, err.text);
			return;
		}
		cell->parked = true;
		park_when_ready(cell);
		return;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	frame_text(&frame, FIELD_TEXT, text, sizeof text);
	cell_fail(cell, text);
}

/* Once init stands and the template is loaded: the fork. */
static void fork_when_ready(struct cell *cell)
{
	int fds[FRAME_FDS_MAX], pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, control[2];
	struct template *template = cell->template;
	struct error err = {0};
	size_t count = 0;

	if (cell->state != CELL_MAKING || cell->init_pidfd < 0 || !template->loaded)
		return;
	for (size_t i = 0; i < 3 && !err.number; i++)
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			fail(&err, errno, "warden: pipe");
	if (!err.number && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		fail(&err, errno, "warden: socketpair");
	if (err.number) {
		for (size_t i = 0; i < 3; i++) {
			close_fd(&pipes[i][0]);
			close_fd(&pipes[i][1]);
		}
		cell_fail(cell, err.text);
		return;
	}
	for (size_t i = 0; i < 5; i++)
		fds[count++] = cell->spaces[i];
	fds[count++] = pipes[0][0];
	fds[count++] = pipes[1][1];
	fds[count++] = pipes[2][1];
	fds[count++] = control[1];
	fds[count++] = cell->mailbox;
	fds[count++] = cell->verdict;
	if (cell->own_network)
		fds[count++] = cell->spaces[5];
	for (size_t i = 0; i < cell->cgroup.join_count; i++)
		fds[count++] = cell->cgroup.join[i];
	cell->state = CELL_FORKING;
	if (template_fork(template, cell, fds, count, &err) < 0)
		cell_fail(cell, err.text);
	cell->stdio[0] = pipes[0][1];
	cell->stdio[1] = pipes[1][0];
	cell->stdio[2] = pipes[2][0];
	cell->control = control[0];
	close(pipes[0][0]);
	close(pipes[1][1]);
	close(pipes[2][1]);
	close(control[1]);
	close_entry_fds(cell);
	if (cell->state != CELL_FORKING)
		return;
	/* An engine reads what is there. */
	evutil_make_socket_nonblocking(cell->stdio[1]);
	evutil_make_socket_nonblocking(cell->stdio[2]);
	evutil_make_socket_nonblocking(cell->control);
	cell->control_event = warden_event(cell->warden, cell->control, EV_READ | EV_PERSIST,
					   PRIORITY_RUN, on_control, cell);
	/* Nothing is ever written at this end: only the hang-up wakes. In a session the judge
	 * has it, too, and the end of a run is the judge's to tell. */
	if (!cell->lasting)
		cell->hang_up = warden_event(cell->warden, cell->stdio[2], EV_WRITE | EV_PERSIST,
					     PRIORITY_ANSWER, on_hang_up, cell);
	if (!cell->control_event || (!cell->lasting && !cell->hang_up))
		cell_fail(cell, "no event");
}

void cell_template_loaded(struct cell *cell)
{
	fork_when_ready(cell);
}

void cell_forked(struct cell *cell, pid_t pid, const char *failed)
{
	if (cell->state != CELL_FORKING)
		return;
	if (failed) {
		cell_fail(cell, failed);
		return;
	}
	cell->pid = pid;
	park_when_ready(cell);
}

static void on_init_made(struct cell *cell, int fds[FRAME_FDS_MAX], size_t count)
{
	static const int order[] = {INIT_FD_USER, INIT_FD_PID, INIT_FD_MOUNT, INIT_FD_IPC,
				    INIT_FD_UTS};

	if (cell->state != CELL_MAKING || count < INIT_FD_COUNT) {
		cell_fail(cell, "init sent too few descriptors");
		return;
	}
	cell->init_pidfd = take_fd(&fds[INIT_FD_PIDFD]);
	cell->workspace = take_fd(&fds[INIT_FD_WORKSPACE]);
	for (size_t i = 0; i < ARRAY_LENGTH(order); i++)
		cell->spaces[i] = take_fd(&fds[order[i]]);
	if (count > INIT_FD_COUNT) {
		cell->own_network = true;
		cell->spaces[5] = take_fd(&fds[INIT_FD_COUNT]);
	}
	cell->death_event = warden_event(cell->warden, cell->init_pidfd, EV_READ | EV_PERSIST,
					 PRIORITY_RUN, on_death, cell);
	if (!cell->death_event) {
		cell_fail(cell, "no event");
		return;
	}
	fork_when_ready(cell);
}

static void on_init(evutil_socket_t socket, short what, void *argument)
{
	struct cell *cell = argument;
	char text[ERROR_TEXT_MAX] = "init failed";
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(socket, &cell->warden->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		event_del(cell->init_event);
		if (cell->init_pidfd < 0)
			cell_fail(cell, "init ended before it said so");
		return;
	}
	switch (frame.type) {
	case MESSAGE_INIT_MADE:
		on_init_made(cell, fds, count);
		break;
	case MESSAGE_ORPHANS_ENDED:
		if (cell->state == CELL_DRAINING)
			cell_kill(cell, ENDING_EXITED, 0);
		break;
	case MESSAGE_INIT_FAILED:
		frame_text(&frame, FIELD_TEXT, text, sizeof text);
		cell_fail(cell, text);
		break;
	default:
		cell_fail(cell, "init said something odd");
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
}

/* The request goes into the mailbox as it came: nothing here reads it. */
static int write_request(struct cell *cell, struct claim *claim, struct error *err)
{
	autobytes whole = {0};
	int r;

	if (claim->request_fd < 0)
		return mailbox_write_request(cell->mailbox, &claim->request, err);
	r = memfile_read(claim->request_fd, "request", MAILBOX_REQUEST_BYTES, &whole, err);
	return r < 0 ? r : mailbox_write_request(cell->mailbox, &whole, err);
}

/* What the run asked for, where it differs from what the cell was made with. */
static int take_limits(struct cell *cell, const struct limits *limits, struct error *err)
{
	bool same = limits->memory_bytes == cell->limits.memory_bytes &&
		    limits->processes == cell->limits.processes;

	if (cell->session) {
		/* Memory, processes and disk are the session's. */
		cell->limits.time_ms = limits->time_ms;
		cell->limits.cpu_ms = limits->cpu_ms;
		cell->limits.output_bytes = limits->output_bytes;
		return 0;
	}
	cell->limits = *limits;
	return same ? 0
		    : cgroup_cell_limit(&cell->warden->cgroups, &cell->cgroup, limits->memory_bytes,
					limits->processes, err);
}

void cell_start(struct cell *cell)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_GO, cell->session ? ++cell->session->runs : 0);
	const struct cgroup_root *cgroups = &cell->warden->cgroups;
	struct claim *claim = cell->claim;
	struct error err = {0};
	int r;

	cell->watch_mode = claim->watch_mode;
	cell->probing = claim->probing;
	claim->begun = true;
	if (cell->session)
		session_run_begins(cell);
	if (take_limits(cell, &claim->limits, &err) < 0 || write_request(cell, claim, &err) < 0) {
		cell_fail(cell, err.text);
		return;
	}
	limits_encode(&cell->limits, &frame, FIELD_LIMITS);
	frame_put_number(&frame, FIELD_MEMORY_PEAK, cgroups->has_memory);
	frame_put_number(&frame, FIELD_CPU_US, cgroups->has_cpu);
	frame_end(&frame, at);
	cell->state = CELL_RUNNING;
	cell->started_us = now_us();
	r = frame_send(cell->control, &frame, &cell->input, cell->session ? 1 : 0);
	if (r < 0) {
		cell_fail(cell, "the cell did not take the word to go");
		return;
	}
	if (!cell->session)
		event_del(cell->control_event);
	/* At its first the client is told of the cell. */
	set_timer(cell->deadline,
		  1000 * (int64_t)(claim->offered || cell->limits.time_ms < OFFER_DELAY_MS
					   ? cell->limits.time_ms
					   : OFFER_DELAY_MS));
	schedule_poll(cell);
}

int cell_make_input(struct cell *cell)
{
	int ends[2];

	if (cell->input >= 0 && cell->stdio[0] >= 0)
		return 0; /* nobody had it */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	close_fd(&cell->input);
	close_fd(&cell->stdio[0]);
	cell->input = ends[0];
	cell->stdio[0] = ends[1];
	return 0;
}

void cell_give(struct cell *cell, struct claim *claim)
{
	cell->claim = claim;
	claim->cell = cell;
	claim->waited_us = now_us() - claim->asked_us;
	if (cell->session && cell_make_input(cell) < 0) {
		cell_fail(cell, "no descriptor is left for the run's input");
		return;
	}
	/* The code first: the client is busy for a moment with what it gets. Most runs
	 * are over before it would need any of that, and it sleeps on until then. */
	if (claim->started)
		cell_start(cell);
	if (cell->claim && (!claim->started || claim->feeds || cell->session))
		tell_cell(cell);
}

static int make_parts(struct cell *cell, struct error *err)
{
	struct warden *warden = cell->warden;
	int pair[2], r;

	if (cell->session || !spare_take(warden, &cell->limits, &cell->cgroup)) {
		r = cgroup_cell_create(&warden->cgroups, cell->id, &cell->cgroup, err);
		if (r < 0)
			return r;
		cell->has_cgroup = true;
		r = cgroup_cell_limit(
			&warden->cgroups, &cell->cgroup, cell->limits.memory_bytes,
			cell->limits.processes + (cell->session ? SESSION_PROCESSES : 0), err);
		if (r < 0)
			return r;
	}
	cell->has_cgroup = true;
	if (cell->session)
		cgroup_cell_kill_one(&warden->cgroups, &cell->cgroup);
	if (cell->behind)
		cgroup_cell_weight(&warden->cgroups, &cell->cgroup, true);
	cell->mailbox = mailbox_create(err);
	if (cell->mailbox < 0)
		return cell->mailbox;
	cell->verdict = verdict_create(err);
	if (cell->verdict < 0)
		return cell->verdict;
	cell->header = mailbox_map(cell->mailbox, sizeof *cell->header, err);
	if (!cell->header)
		return -err->number;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(err, errno, "warden: socketpair");
	cell->init_socket = pair[0];
	evutil_make_socket_nonblocking(pair[0]);
	r = template_make_init(cell->template, cell, pair[1], err);
	close(pair[1]);
	if (r < 0)
		return r;
	cell->init_event = warden_event(warden, cell->init_socket, EV_READ | EV_PERSIST,
					PRIORITY_RUN, on_init, cell);
	cell->deadline = warden_event(warden, -1, 0, PRIORITY_RUN, on_deadline, cell);
	cell->poll = warden_event(warden, -1, 0, PRIORITY_RUN, on_poll, cell);
	cell->retry = warden_event(warden, -1, 0, PRIORITY_BEHIND, on_retry, cell);
	if (!cell->init_event || !cell->deadline || !cell->poll || !cell->retry)
		return refuse(err, ENOMEM, "warden: no event");
	return 0;
}

struct cell *cell_make(struct template *template, const struct limits *limits, bool behind,
		       struct session *session, struct error *err)
{
	struct warden *warden = template->warden;
	struct cell *cell = calloc(1, sizeof *cell);

	if (!cell) {
		fail(err, ENOMEM, "warden: cell");
		return NULL;
	}
	cell->warden = warden;
	cell->template = template;
	cell->pool = template->pool;
	cell->behind = behind;
	cell->session = session;
	cell->lasting = session != NULL;
	cell->runner_pidfd = cell->input = -1;
	cell->id = ++warden->next_id;
	cell->limits = *limits;
	cell->init_socket = cell->init_pidfd = cell->main_pidfd = cell->control = -1;
	cell->workspace = cell->mailbox = cell->verdict = cell->listener = -1;
	for (size_t i = 0; i < ARRAY_LENGTH(cell->spaces); i++)
		cell->spaces[i] = -1;
	for (size_t i = 0; i < 3; i++)
		cell->stdio[i] = -1;
	template->cells++;
	template->sessions += cell->lasting;
	template->forked++;
	TAILQ_INSERT_HEAD(&warden->cells, cell, entry);
	if (make_parts(cell, err) < 0) {
		if (cell->has_cgroup)
			cgroup_cell_remove(&warden->cgroups, &cell->cgroup);
		cell_free(cell);
		return NULL;
	}
	set_timer(cell->deadline, (TEMPLATE_START_MS + CELL_START_MS) * 1000);
	return cell;
}
