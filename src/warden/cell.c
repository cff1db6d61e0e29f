/* SPDX-License-Identifier: Apache-2.0 */
/* cell: a cell's life as the warden leads it.
 *
 * Theory of operation.
 *
 *   MAKING ── init made, template loaded ──▶ FORKING ── parked ──▶ PARKED
 *   PARKED ── START ──▶ RUNNING ── main ended, others left ──▶ DRAINING
 *   RUNNING ── limit ──▶ STOPPING (frames) ──▶ KILLED
 *   any ── main ended alone, drained, kill, failure ──▶ KILLED ── init dead ──▶ ENDED
 *
 * There is one way to end: SIGKILL to init by pidfd. The kernel then kills
 * every process of the pid namespace, and init's pidfd becomes readable only
 * when they are all gone. Only then is the ending told, so nothing of a run is
 * alive when its result is returned. How it ended is decided by what was seen:
 * a limit that the warden reached, an OOM kill that the cgroup counted, a wait
 * status that the keeper, which is the main process's parent, reported. */
#include "warden/warden.h"

#include "base/cleanup.h"

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

static void set_timer(struct event *event, int64_t us)
{
	struct timeval delay = {us / 1000000, us % 1000000};

	evtimer_add(event, &delay);
}

struct cell *cell_find_run(struct warden *warden, uint64_t run)
{
	struct cell *cell;

	TAILQ_FOREACH(cell, &warden->cells, entry)
	if (cell->has_run && cell->run == run)
		return cell;
	return NULL;
}

/* What only the way to PARKED needs. */
static void close_entry_fds(struct cell *cell)
{
	for (size_t i = 0; i < ARRAY_LENGTH(cell->spaces); i++)
		close_fd(&cell->spaces[i]);
}

static void cell_free(struct cell *cell)
{
	struct template *template = cell->template;

	free_event(&cell->init_event);
	free_event(&cell->death_event);
	free_event(&cell->control_event);
	free_event(&cell->listener_event);
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
	template_release(template);
}

/* Its cgroups can be removed once the kernel has let go of the last task,
 * which may be a moment after the wait. */
static void on_retry(evutil_socket_t fd, short what, void *argument)
{
	struct cell *cell = argument;

	if (cell->has_cgroup &&
	    cgroup_cell_remove(&cell->warden->cgroups, &cell->cgroup) == -EBUSY) {
		set_timer(cell->retry, 2000);
		return;
	}
	cell->has_cgroup = false;
	cell_free(cell);
}

void cell_release(struct cell *cell)
{
	if (cell->state < CELL_KILLED)
		cell_kill(cell, ENDING_KILLED, 0);
	cell->has_run = false;
	if (cell->state == CELL_ENDED)
		on_retry(-1, 0, cell);
}

/* Sent once everything of the cell is dead. */
static void say_ended(struct cell *cell)
{
	autobytes frame = {0};
	size_t at;

	if (cell->ending == ENDING_FAILED) {
		warden_say_failed(cell->warden, cell->run, cell->why);
		return;
	}
	at = frame_begin(&frame, MESSAGE_ENDED, cell->run);
	frame_put_number(&frame, FIELD_ENDING, cell->ending);
	frame_put_number(&frame, FIELD_REASON, cell->reason);
	if (cell->has_status)
		frame_put_number(&frame, FIELD_STATUS, (uint64_t)cell->status);
	frame_put_number(&frame, FIELD_WALL_US, (uint64_t)(cell->ended_us - cell->started_us));
	frame_put_number(&frame, FIELD_CPU_US, cell->usage.cpu_us);
	frame_put_number(&frame, FIELD_MEMORY_PEAK, cell->usage.memory_peak_bytes);
	frame_put_number(&frame, FIELD_PROCESSES_PEAK, cell->usage.processes_peak);
	frame_put_number(&frame, FIELD_DISK_FULL, usage_disk_full(cell));
	frame_put_number(&frame, FIELD_SAMPLED, !cell->warden->cgroups.has_memory);
	if (cell->ending == ENDING_ANOMALY) {
		frame_put_text(&frame, FIELD_EVENT, cell->event);
		frame_put_text(&frame, FIELD_DETAIL, cell->detail);
	}
	bytes_append(&frame, cell->notes.data, cell->notes.length);
	frame_end(&frame, at);
	warden_say(cell->warden, &frame, NULL, 0);
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
	}
	cell->state = CELL_ENDED;
	if (cell->started_us) {
		if (!cell->ended_us)
			cell->ended_us = now_us();
		usage_read(cell);
		if (cell->probing)
			usage_sample(cell);
		/* The counter is the evidence, also when only a child died. */
		if (cell->usage.oom_kills > 0 && cell->ending == ENDING_EXITED)
			cell->ending = ENDING_MEMORY;
	}
	if (cell->has_run)
		say_ended(cell);
	if (!cell->has_run)
		on_retry(-1, 0, cell);
	else if (cell->ending == ENDING_FAILED)
		cell_release(cell);
}

void cell_kill(struct cell *cell, enum ending ending, uint64_t reason)
{
	if (cell->state >= CELL_KILLED)
		return;
	cell->ending = ending;
	cell->reason = reason;
	if (cell->started_us && !cell->ended_us)
		cell->ended_us = now_us();
	cell->state = CELL_KILLED;
	if (cell->init_pidfd >= 0) {
		pidfd_send_signal(cell->init_pidfd, SIGKILL, NULL, 0);
		return;
	}
	/* Its init was never seen; closing the socket tells it to go. */
	free_event(&cell->init_event);
	close_fd(&cell->init_socket);
	cell->state = CELL_ENDED;
	if (cell->has_run)
		say_ended(cell);
	cell->has_run = false;
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
	if (cell->main_pidfd < 0 || pidfd_send_signal(cell->main_pidfd, STOP_SIGNAL, NULL, 0) < 0) {
		cell_kill(cell, ending, 0);
		return;
	}
	set_timer(cell->poll, 500);
}

static void on_deadline(evutil_socket_t fd, short what, void *argument)
{
	struct cell *cell = argument;

	if (cell->state == CELL_DRAINING)
		cell_kill(cell, ENDING_EXITED, 0);
	else if (cell->state == CELL_RUNNING)
		cell_stop(cell, ENDING_TIME);
	else if (cell->state < CELL_PARKED)
		cell_fail(cell, "the cell was not ready in time");
}

/* CPU time cannot run faster than the processors: look again when the rest
 * could be used up at the earliest. */
static void schedule_poll(struct cell *cell)
{
	static long processors;
	uint64_t limit_us = cell->limits.cpu_ms * 1000;
	uint64_t rest_us = limit_us > cell->usage.cpu_us ? limit_us - cell->usage.cpu_us : 0;
	uint64_t wait_us;

	if (!processors)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	wait_us = rest_us / (uint64_t)(processors > 0 ? processors : 1);
	if (wait_us < USAGE_POLL_MS * 1000)
		wait_us = USAGE_POLL_MS * 1000;
	if (wait_us > USAGE_POLL_SLOW_MS * 1000)
		wait_us = USAGE_POLL_SLOW_MS * 1000;
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
		cell_stop(cell, ENDING_CPU);
	else
		schedule_poll(cell);
}

void cell_main_ended(struct cell *cell, int status)
{
	cell->pid = 0; /* the number may be used again */
	cell->status = status;
	cell->has_status = true;
	if (cell->state < CELL_RUNNING) {
		cell_fail(cell, "the cell ended before it was used");
		return;
	}
	if (cell->state >= CELL_STOPPING)
		return;
	cell->ended_us = now_us();
	if (usage_alone(cell)) {
		cell_kill(cell, ENDING_EXITED, 0);
		return;
	}
	cell->state = CELL_DRAINING;
	set_timer(cell->deadline, DRAIN_MS * 1000);
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
	evutil_make_socket_nonblocking(cell->control);
	event_assign(cell->control_event, cell->warden->base, cell->control, EV_READ | EV_PERSIST,
		     event_get_callback(cell->control_event), cell);
	event_add(cell->control_event, NULL);
}

void cell_template_loaded(struct cell *cell)
{
	fork_when_ready(cell);
}

/* Parked once both have said so: the template, whose word brings the pid under
 * which the keeper will tell its end, and the cell itself. */
static void park_when_ready(struct cell *cell)
{
	if (cell->state != CELL_FORKING || !cell->pid || !cell->parked)
		return;
	cell->state = CELL_PARKED;
	if (cell->template->once)
		template_dismiss(cell->template);
	event_del(cell->deadline);
	usage_baseline(cell);
	if (cell->has_run)
		cell_offer(cell);
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
	cell->death_event = event_new(cell->warden->base, cell->init_pidfd, EV_READ | EV_PERSIST,
				      on_death, cell);
	if (!cell->death_event || event_add(cell->death_event, NULL) < 0) {
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

void cell_offer(struct cell *cell)
{
	autobytes frame = {0};
	size_t at;
	int fds[CELL_FD_COUNT] = {cell->mailbox, cell->verdict, cell->stdio[0], cell->stdio[1],
				  cell->stdio[2]};

	at = frame_begin(&frame, MESSAGE_CELL, cell->run);
	frame_put_number(&frame, FIELD_WARM, cell->warm);
	frame_put_number(&frame, FIELD_WAIT_US, (uint64_t)(now_us() - cell->asked_us));
	frame_end(&frame, at);
	warden_say(cell->warden, &frame, fds, ARRAY_LENGTH(fds));
	for (size_t i = 0; i < 3; i++)
		close_fd(&cell->stdio[i]);
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
		return;
	}
	if (frame.type == MESSAGE_PARKED && cell->state == CELL_FORKING && count == 2) {
		struct error err = {0};

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

void cell_start(struct cell *cell)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_GO, 0);
	const struct cgroup_root *cgroups = &cell->warden->cgroups;
	int r;

	limits_encode(&cell->limits, &frame, FIELD_LIMITS);
	frame_put_number(&frame, FIELD_MEMORY_PEAK, cgroups->has_memory);
	frame_put_number(&frame, FIELD_CPU_US, cgroups->has_cpu);
	frame_end(&frame, at);
	cell->state = CELL_RUNNING;
	cell->started_us = now_us();
	r = frame_send(cell->control, &frame, NULL, 0);
	if (r < 0) {
		cell_fail(cell, "the cell did not take the word to go");
		return;
	}
	set_timer(cell->deadline, (int64_t)cell->limits.time_ms * 1000);
	schedule_poll(cell);
}

static int make_parts(struct cell *cell, struct error *err)
{
	struct warden *warden = cell->warden;
	int pair[2], r;

	r = cgroup_cell_create(&warden->cgroups, cell->id, &cell->cgroup, err);
	if (r < 0)
		return r;
	cell->has_cgroup = true;
	r = cgroup_cell_limit(&warden->cgroups, &cell->cgroup, cell->limits.memory_bytes,
			      cell->limits.processes, err);
	if (r < 0)
		return r;
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
	cell->init_event =
		event_new(warden->base, cell->init_socket, EV_READ | EV_PERSIST, on_init, cell);
	cell->control_event = event_new(warden->base, -1, 0, on_control, cell);
	cell->deadline = evtimer_new(warden->base, on_deadline, cell);
	cell->poll = evtimer_new(warden->base, on_poll, cell);
	cell->retry = evtimer_new(warden->base, on_retry, cell);
	if (!cell->init_event || !cell->control_event || !cell->deadline || !cell->poll ||
	    !cell->retry || event_add(cell->init_event, NULL) < 0)
		return refuse(err, ENOMEM, "warden: no event");
	return 0;
}

struct cell *cell_make(struct template *template, const struct limits *limits, struct error *err)
{
	struct warden *warden = template->warden;
	struct cell *cell = calloc(1, sizeof *cell);

	if (!cell) {
		fail(err, ENOMEM, "warden: cell");
		return NULL;
	}
	cell->warden = warden;
	cell->template = template;
	cell->id = ++warden->next_id;
	cell->limits = *limits;
	cell->init_socket = cell->init_pidfd = cell->main_pidfd = cell->control = -1;
	cell->workspace = cell->mailbox = cell->verdict = cell->listener = -1;
	for (size_t i = 0; i < ARRAY_LENGTH(cell->spaces); i++)
		cell->spaces[i] = -1;
	for (size_t i = 0; i < 3; i++)
		cell->stdio[i] = -1;
	template->cells++;
	TAILQ_INSERT_TAIL(&warden->cells, cell, entry);
	if (make_parts(cell, err) < 0) {
		if (cell->has_cgroup)
			cgroup_cell_remove(&warden->cgroups, &cell->cgroup);
		cell_free(cell);
		return NULL;
	}
	set_timer(cell->deadline, (TEMPLATE_START_MS + CELL_START_MS) * 1000);
	return cell;
}

/* Copies a client's file into the workspace, before any user code runs. Its
 * pages are charged to the warden's cgroup, not to the run's memory. */
static int copy_into(int directory, const char *name, mode_t mode, int from, struct error *err)
{
	autofd to = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			   mode & 0111 ? 0755 : 0644);
	off_t offset = 0;
	ssize_t r;

	if (to < 0)
		return fail(err, errno, "file %s", name);
	while ((r = sendfile(to, from, &offset, 1 << 20)) > 0)
		;
	if (r < 0)
		return fail(err, errno, "file %s", name);
	return 0;
}

int cell_put(struct cell *cell, struct span name, uint64_t mode, int fd, struct error *err)
{
	char path[FILE_NAME_BYTES_MAX + 1];
	autofd directory = -1;
	char *at = path, *slash;
	unsigned depth = 0;

	if (name.length == 0 || name.length > FILE_NAME_BYTES_MAX ||
	    memchr(name.data, '\0', name.length))
		return refuse(err, EINVAL, "file: its name is empty, too long or has a NUL");
	memcpy(path, name.data, name.length);
	path[name.length] = '\0';
	directory = fcntl(cell->workspace, F_DUPFD_CLOEXEC, 3);
	if (directory < 0)
		return fail(err, errno, "file %s", path);
	while ((slash = strchr(at, '/'))) {
		int next;

		*slash = '\0';
		if (at[0] == '\0' || strcmp(at, ".") == 0 || strcmp(at, "..") == 0 ||
		    ++depth > FILE_DEPTH_MAX)
			return refuse(err, EINVAL, "file: its name must stay in the workspace");
		if (mkdirat(directory, at, 0755) < 0 && errno != EEXIST)
			return fail(err, errno, "file: directory %s", at);
		next = openat(directory, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return fail(err, errno, "file: directory %s", at);
		close(directory);
		directory = next;
		at = slash + 1;
	}
	if (at[0] == '\0' || strcmp(at, ".") == 0 || strcmp(at, "..") == 0)
		return refuse(err, EINVAL, "file: its name must stay in the workspace");
	return copy_into(directory, at, (mode_t)mode, fd, err);
}
