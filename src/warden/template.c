/* SPDX-License-Identifier: Apache-2.0 */
/* template: the warden's view of a keeper and its template.
 *
 * One pair of processes, one key (the list of modules that are loaded). The
 * messages that make a template and its first cells are sent at once and wait
 * in the sockets, so that building the root, starting Python and making an
 * init overlap. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The first in-namespace pid of a cell's main process; each next cell of a
 * template gets the next number. Far above any pid of the template's own. */
#define FIRST_MAIN_PID 301
#define LAST_MAIN_PID  30000

/* What a script's environment holds before the request's own variables. */
static const char *const environment[] = {
	"HOME=/workspace",
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"TMPDIR=/tmp",
	"LANG=C.UTF-8",
	"LC_ALL=C.UTF-8",
	"USER=sandbox",
	"LOGNAME=sandbox",
	"SHELL=/bin/sh",
	"PYTHONDONTWRITEBYTECODE=1",
	"MPLBACKEND=module://_execpy_agg",
	"MPLCONFIGDIR=/var/cache/matplotlib",
	/* joblib's processes ask psutil for the boot time, which /proc/stat, not
	 * there, would tell; they would share this run's limits anyway. In one
	 * process n_jobs gives the same results. */
	"JOBLIB_MULTIPROCESSING=0",
	/* Thread pools would start threads in the template, and cells are many. */
	"OMP_NUM_THREADS=1",
	"OPENBLAS_NUM_THREADS=1",
	"MKL_NUM_THREADS=1",
	"NUMEXPR_NUM_THREADS=1",
	"NUMEXPR_MAX_THREADS=1",
	"VECLIB_MAXIMUM_THREADS=1",
};

/* Facts about the processor, not about the caller: kept when they are set. */
static const char *const passed_on[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};

static void mark_dead(struct template *template, const char *why)
{
	struct cell *cell, *next;

	if (template->dead)
		return;
	template->dead = true;
	snprintf(template->why, sizeof template->why, "%s", why);
	event_free(template->timer);
	template->timer = NULL;
	/* Its pool may start another, before claims lose their cells. */
	pool_template_died(template);
	/* Cells on their way fail; running ones have lost only their origin. */
	for (cell = TAILQ_FIRST(&template->warden->cells); cell; cell = next) {
		next = TAILQ_NEXT(cell, entry);
		if (cell->template == template && cell->state <= CELL_FORKING)
			cell_fail(cell, template->why);
	}
	template_release(template);
}

/* The last lines that the template wrote, for a person. */
static void append_log(struct template *template, char *text, size_t size)
{
	char log[160];
	off_t length = lseek(template->log, 0, SEEK_END);
	ssize_t r = pread(template->log, log, sizeof log - 1,
			  length > (off_t)sizeof log - 1 ? length - (off_t)sizeof log + 1 : 0);
	size_t used = strlen(text);

	if (r <= 0)
		return;
	log[r] = '\0';
	for (ssize_t i = 0; i < r; i++)
		if ((unsigned char)log[i] < ' ')
			log[i] = i == r - 1 ? '\0' : ' ';
	snprintf(text + used, size - used, " (%s)", log);
}

static void close_fds(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
}

/* MESSAGE_FAILED on a socket of somebody who ended, if it is there. */
static bool last_words(struct template *template, int socket, char *text, size_t size)
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;

	while (frame_receive(socket, &template->warden->buffer, &frame, fds, &count) == 1) {
		close_fds(fds, count);
		if (frame.type == MESSAGE_FAILED) {
			text[0] = '\0';
			frame_text(&frame, FIELD_TEXT, text, size);
			return true;
		}
	}
	return false;
}

static void template_died(struct template *template, const char *what, int status)
{
	char why[ERROR_TEXT_MAX];

	/* Its own last words say more than its status. A keeper that lives has other
	 * things to say on its socket, which are not to be lost: ends of cells. */
	if (last_words(template, template->socket, why, sizeof why) ||
	    (!template->keeper && last_words(template, template->keeper_socket, why, sizeof why))) {
		mark_dead(template, why);
		return;
	}
	if (WIFSIGNALED(status))
		snprintf(why, sizeof why, "%s was ended by signal %d", what, WTERMSIG(status));
	else
		snprintf(why, sizeof why, "%s ended with status %d", what, WEXITSTATUS(status));
	append_log(template, why, sizeof why);
	mark_dead(template, why);
}

static void on_keeper(evutil_socket_t socket, short what, void *argument)
{
	struct template *template = argument;
	char text[ERROR_TEXT_MAX] = "";
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(socket, &template->warden->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	close_fds(fds, count);
	if (r <= 0) {
		/* Its wait status follows by its pidfd. */
		event_del(template->keeper_event);
	} else if (frame.type == MESSAGE_FAILED) {
		frame_text(&frame, FIELD_TEXT, text, sizeof text);
		mark_dead(template, text);
	} else if (frame.type == MESSAGE_TEMPLATE_ENDED) {
		template_died(template, "the template", (int)frame_number(&frame, FIELD_STATUS));
	} else if (frame.type == MESSAGE_CHILD_ENDED) {
		pid_t pid = (pid_t)frame_number(&frame, FIELD_PID);
		struct cell *cell;

		TAILQ_FOREACH(cell, &template->warden->cells, entry)
		if (cell->template == template && cell->pid == pid)
			break;
		if (cell)
			cell_main_ended(cell, (int)frame_number(&frame, FIELD_STATUS),
					frame_number(&frame, FIELD_CPU_US));
	}
}

static void on_keeper_death(evutil_socket_t pidfd, short what, void *argument)
{
	struct template *template = argument;
	int status = 0;

	event_del(template->death_event);
	waitpid(template->keeper, &status, 0);
	template->keeper = 0;
	template_died(template, "the keeper", status);
}

static void on_loaded(struct template *template)
{
	struct cell *cell, *next;

	template->loaded = true;
	template->loaded_us = now_us();
	event_del(template->timer);
	if (template->warden->daemon)
		template->memory_bytes = usage_of_children(template->keeper);
	for (cell = TAILQ_FIRST(&template->warden->cells); cell; cell = next) {
		next = TAILQ_NEXT(cell, entry);
		if (cell->template == template)
			cell_template_loaded(cell);
	}
	pool_template_loaded(template);
}

static void on_template(evutil_socket_t socket, short what, void *argument)
{
	struct template *template = argument;
	struct cell *cell;
	char text[ERROR_TEXT_MAX] = "";
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(socket, &template->warden->buffer, &frame, fds, &count);

	if (r == -EAGAIN)
		return;
	close_fds(fds, count);
	if (r <= 0) {
		/* Its wait status follows on the keeper's socket. */
		event_del(template->event);
		return;
	}
	frame_text(&frame, FIELD_TEXT, text, sizeof text);
	switch (frame.type) {
	case MESSAGE_LOADED:
		on_loaded(template);
		return;
	case MESSAGE_FORKED:
		TAILQ_FOREACH(cell, &template->warden->cells, entry)
		if (cell->id == frame.id)
			break;
		if (cell)
			cell_forked(cell, (pid_t)frame_number(&frame, FIELD_PID),
				    text[0] ? text : NULL);
		return;
	case MESSAGE_FAILED:
	default:
		mark_dead(template, text);
	}
}

static void on_start_timeout(evutil_socket_t socket, short what, void *argument)
{
	struct template *template = argument;
	char why[ERROR_TEXT_MAX];

	snprintf(why, sizeof why, "the template did not load within %d s; modules: %.*s",
		 TEMPLATE_START_MS / 1000, (int)template->pool->modules.length,
		 (const char *)template->pool->modules.data);
	for (char *at = why; *at; at++)
		if (*at == '\n')
			*at = ' ';
	mark_dead(template, why);
}

static int send_make_template(struct template *template, int socket, struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_MAKE_TEMPLATE, 0);
	int fds[] = {template->warden->guest_program, socket, template->log};
	int r;

	frame_end(&frame, at);
	r = frame_send(template->keeper_socket, &frame, fds, ARRAY_LENGTH(fds));
	/* A keeper that ended already has said why, or its death will be seen. */
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? fail(err, -r, "warden: tell the keeper") : 0;
}

static int send_preload(struct template *template, struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_PRELOAD, 0);
	const char *from = (const char *)template->pool->modules.data;
	const char *end = from + template->pool->modules.length;
	int r;

	/* One with a name must have all of its modules, and settles: it is forked many times. */
	if (template->pool->name[0] != '\0')
		frame_put_text(&frame, FIELD_NAME, template->pool->name);
	while (from && from < end) {
		const char *newline = memchr(from, '\n', (size_t)(end - from));

		frame_put(&frame, FIELD_MODULE, from, (size_t)(newline - from));
		from = newline + 1;
	}
	if (template->pool->warm_up.length > 0)
		frame_put(&frame, FIELD_CODE, template->pool->warm_up.data,
			  template->pool->warm_up.length);
	frame_end(&frame, at);
	r = frame_send(template->socket, &frame, NULL, 0);
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? fail(err, -r, "warden: tell the template") : 0;
}

static int start_keeper(struct template *template, int socket, struct error *err)
{
	const char *variables[ARRAY_LENGTH(environment) + ARRAY_LENGTH(passed_on) + 1];
	char passed[ARRAY_LENGTH(passed_on)][128];
	struct keeper_options options = {
		.outside_uid = template->warden->uid,
		.outside_gid = template->warden->gid,
		.font_list = template->warden->font_list,
		.font_list_name = template->warden->font_list_name,
		.program = template->warden->keeper_program,
		.environment = (char *const *)variables,
		.socket = socket,
	};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(environment); i++)
		variables[count++] = environment[i];
	for (size_t i = 0; i < ARRAY_LENGTH(passed_on); i++) {
		const char *value = getenv(passed_on[i]);

		if (!value)
			continue;
		snprintf(passed[i], sizeof passed[i], "%s=%s", passed_on[i], value);
		variables[count++] = passed[i];
	}
	variables[count] = NULL;
	template->keeper = keeper_start(&options, &template->keeper_pidfd, err);
	return template->keeper < 0 ? (int)template->keeper : 0;
}

static struct event *add_event(struct template *template, int fd, event_callback_fn callback)
{
	return warden_event(template->warden, fd, EV_READ | EV_PERSIST, PRIORITY_RUN, callback,
			    template);
}

static int start(struct template *template, struct error *err)
{
	const struct timeval patience = {TEMPLATE_START_MS / 1000, 0};
	int keeper_pair[2], pair[2];
	int r;

	template->log = memfd_create("execpy-template-log", MFD_CLOEXEC);
	if (template->log < 0)
		return fail(err, errno, "warden: template's log");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper_pair) < 0)
		return fail(err, errno, "warden: socketpair");
	template->keeper_socket = keeper_pair[0];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		r = fail(err, errno, "warden: socketpair");
		close(keeper_pair[1]);
		return r;
	}
	template->socket = pair[0];
	r = start_keeper(template, keeper_pair[1], err);
	close(keeper_pair[1]);
	if (r == 0)
		r = send_make_template(template, pair[1], err);
	close(pair[1]);
	if (r == 0)
		r = send_preload(template, err);
	if (r < 0)
		return r;
	evutil_make_socket_nonblocking(template->keeper_socket);
	evutil_make_socket_nonblocking(template->socket);
	template->keeper_event = add_event(template, template->keeper_socket, on_keeper);
	template->death_event = add_event(template, template->keeper_pidfd, on_keeper_death);
	template->event = add_event(template, template->socket, on_template);
	template->timer =
		warden_event(template->warden, -1, 0, PRIORITY_RUN, on_start_timeout, template);
	if (!template->keeper_event || !template->death_event || !template->event ||
	    !template->timer)
		return refuse(err, ENOMEM, "warden: no event");
	evtimer_add(template->timer, &patience);
	return 0;
}

static void template_free(struct template *template)
{
	TAILQ_REMOVE(&template->warden->templates, template, entry);
	free_event(&template->keeper_event);
	free_event(&template->death_event);
	free_event(&template->event);
	free_event(&template->timer);
	if (template->keeper > 0) {
		pidfd_send_signal(template->keeper_pidfd, SIGKILL, NULL, 0);
		waitpid(template->keeper, NULL, 0);
	}
	close_fd(&template->keeper_pidfd);
	close_fd(&template->keeper_socket);
	close_fd(&template->socket);
	close_fd(&template->log);
	free(template);
}

static bool is_making_cells(const struct template *template)
{
	const struct cell *cell;

	TAILQ_FOREACH(cell, &template->warden->cells, entry)
	if (cell->template == template && cell->state < CELL_PARKED)
		return true;
	return false;
}

void template_dismiss(struct template *template)
{
	template->dismissed = true;
	if (template->sessions > 0 || is_making_cells(template))
		return;
	free_event(&template->event);
	close_fd(&template->socket);
}

void template_release(struct template *template)
{
	if (template->dismissed && template->sessions == 0)
		template_dismiss(template);
	if (template->dead && template->cells == 0)
		template_free(template);
}

void template_end_all(struct warden *warden)
{
	struct template *template;

	TAILQ_FOREACH(template, &warden->templates, entry)
	if (template->keeper > 0)
		pidfd_send_signal(template->keeper_pidfd, SIGKILL, NULL, 0);
	TAILQ_FOREACH(template, &warden->templates, entry)
	if (template->keeper > 0)
		waitpid(template->keeper, NULL, 0);
}

struct template *template_start(struct pool *pool, struct error *err)
{
	struct template *template = calloc(1, sizeof *template);

	if (!template) {
		fail(err, ENOMEM, "warden: template");
		return NULL;
	}
	template->warden = pool->warden;
	template->pool = pool;
	template->keeper_pidfd = template->keeper_socket = template->socket = template->log = -1;
	template->next_pid = FIRST_MAIN_PID;
	TAILQ_INSERT_TAIL(&pool->warden->templates, template, entry);
	if (start(template, err) < 0) {
		template_free(template);
		return NULL;
	}
	return template;
}

int template_make_init(struct template *template, struct cell *cell, int init_socket,
		       struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_MAKE_INIT, cell->id);
	int r;

	frame_put_number(&frame, FIELD_SIZE, cell->limits.disk_bytes);
	frame_put_number(&frame, FIELD_PID, (uint64_t) template->next_pid);
	frame_end(&frame, at);
	if (++template->next_pid > LAST_MAIN_PID)
		template->next_pid = FIRST_MAIN_PID;
	r = frame_send(template->keeper_socket, &frame, &init_socket, 1);
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? fail(err, -r, "warden: tell the keeper") : 0;
}

int template_fork(struct template *template, struct cell *cell, const int *fds, size_t count,
		  struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FORK_CELL, cell->id);
	int r;

	frame_put_number(&frame, FIELD_CGROUP, template->warden->cgroups.mode == CGROUP_V2);
	frame_put_number(&frame, FIELD_MORE, cell->own_network);
	frame_put_number(&frame, FIELD_PROCESSES_PEAK, cell->cgroup.pids_join);
	if (cell->session) {
		frame_put_number(&frame, FIELD_SESSION, 1);
		frame_put_number(&frame, FIELD_BRANCH, cell->session->origin != NULL);
		limits_encode(&cell->limits, &frame, FIELD_LIMITS);
		frame_put_number(&frame, FIELD_MEMORY_PEAK, template->warden->cgroups.has_memory);
		frame_put_number(&frame, FIELD_CPU_US, template->warden->cgroups.has_cpu);
	}
	frame_end(&frame, at);
	r = frame_send(template->socket, &frame, fds, count);
	return r < 0 ? fail(err, -r, "warden: tell the template") : 0;
}
