/* SPDX-License-Identifier: Apache-2.0 */
/* session: a cell that stays, as the warden leads it.
 *
 * Theory of operation. A session's cell is made for it, by the template that its
 * modules ask for, and belongs to no pool. Its main process is the judge
 * (guest/session.c), which runs no user code; it alone talks to the warden, and all
 * it says is how a turn ended and whom to watch.
 *
 *   OPENING ── parked ──▶ STEADY
 *   STEADY ── a run's limit, kill or death, rollback, undo ──▶ CLEARING
 *   CLEARING ── nothing of the run lives ──▶ RESUMING ── a runner stands ──▶ STEADY
 *   STEADY ── checkpoint, drop ──▶ NAMING ── done ──▶ STEADY
 *   any ── the end of its cell, its time, its client's wish ──▶ ended: only why is kept
 *
 * Runs come one after another. One has the session until its client says that the
 * files are collected, so that each result tells of its own run.
 *
 * How a run ended is decided as for any other: by the warden's clocks, the
 * cgroup's counters, and the runner's wait status, which the judge got from the
 * kernel. A run that is to be ended is not the end of its cell: nobody may fork,
 * the judge kills all but the checkpoints, and a checkpoint forks a new runner.
 * Should that fail the cell is killed as any other, and the session with it. */
#include "warden/warden.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <unistd.h>

/* --- the end ----------------------------------------------------------------- */

static void session_free(struct session *session)
{
	TAILQ_REMOVE(&session->warden->sessions, session, entry);
	bytes_free(&session->lost);
	bytes_free(&session->checkpoints);
	bytes_free(&session->policy);
	bytes_free(&session->changed);
	bytes_free(&session->later);
	close_fd(&session->listing); /* of a branch that did not come to be */
	free(session);
}

/* Of those that ended only the newest are remembered. The others are freed where nobody
 * goes through the list. */
static void forget_oldest(struct warden *warden)
{
	struct session *session, *next;

	for (session = TAILQ_FIRST(&warden->sessions);
	     session && warden->ended_count > SESSION_ENDED_MAX; session = next) {
		next = TAILQ_NEXT(session, entry);
		if (session->cell)
			continue;
		warden->ended_count--;
		session_free(session);
	}
}

/* A claim that asks for the session and does not have it, or NULL. */
static struct claim *find_waiting(struct session *session)
{
	struct client *client;
	struct claim *claim;

	TAILQ_FOREACH(client, &session->warden->clients, entry)
	TAILQ_FOREACH(claim, &client->claims, entry)
	if (claim->session == session && claim != session->current)
		return claim;
	return NULL;
}

/* What is left of it is its name and why it ended. */
static void bury(struct session *session, const char *why)
{
	struct warden *warden = session->warden;
	char text[ERROR_TEXT_MAX];
	struct claim *claim;

	if (!session->cell)
		return;
	snprintf(session->why, sizeof session->why, "%s", why);
	snprintf(text, sizeof text, "session %s has ended: %.200s", session->id, session->why);
	branch_fail(session, EIDRM, text);
	/* The newest of those that are remembered, before anything that ends others. */
	session->cell->session = NULL;
	session->cell = NULL;
	warden->session_count--;
	warden->ended_count++;
	TAILQ_REMOVE(&warden->sessions, session, entry);
	TAILQ_INSERT_TAIL(&warden->sessions, session, entry);
	branch_lost(session, session->why);
	free_event(&session->timer);
	close_fd(&session->listing);
	if (session->step == SESSION_OPENING)
		session_answer_failed(session, EPROTO, session->why);
	else
		session_answer_failed(session, EIDRM, text);
	while ((claim = find_waiting(session)))
		claim_fail(claim, EIDRM, text);
	if (session->current)
		session->current->session = NULL;
	session->current = NULL;
}

void session_end(struct session *session, const char *why)
{
	struct cell *cell = session->cell;

	if (!cell)
		return;
	bury(session, why);
	snprintf(cell->why, sizeof cell->why, "its session has ended: %.200s", why);
	cell_kill(cell, ENDING_FAILED, 0);
}

void session_end_by_wish(struct session *session, const char *why)
{
	struct cell *cell = session->cell;

	bury(session, why);
	cell_kill(cell, ENDING_KILLED, KILL_CANCELLED);
}

void session_cell_lost(struct cell *cell)
{
	if (cell->session)
		bury(cell->session, cell->why[0] ? cell->why : "its cell was killed");
}

static void on_timeout(evutil_socket_t fd, short what, void *argument)
{
	struct session *session = argument;
	struct cell *cell = session->cell;

	/* Ctrl-C was not heeded. */
	if (session->step == SESSION_STEADY && cell->state == CELL_RUNNING) {
		session_survives(cell, ENDING_KILLED, cell->reason);
		return;
	}
	if (session->step != SESSION_STEADY)
		session_end(session,
			    session->step == SESSION_CLEARING || session->step == SESSION_RESUMING
				    ? "it could not return to its checkpoint in time"
				    : "its judge did not answer");
}

/* Why it is to end, or NULL. */
static const char *overdue(struct session *session, int64_t now, char why[100])
{
	uint64_t idle_ms = (uint64_t)(now - session->used_us) / 1000;

	if (!session->cell || session->step == SESSION_OPENING)
		return NULL;
	if (session->life_ms && (uint64_t)(now - session->made_us) / 1000 > session->life_ms)
		return "its time was over";
	/* A branch is there with all its siblings, and counts from then. */
	if (session->current || session->origin || session->step != SESSION_STEADY)
		return NULL;
	if (session->idle_ms && idle_ms > session->idle_ms) {
		snprintf(why, 100, "it was not used for %llu s",
			 (unsigned long long)idle_ms / 1000);
		return why;
	}
	usage_read(session->cell);
	if (session->cell->usage.cpu_us > SESSION_BUSY_CPU_MS * 1000)
		return "what a run left behind used too much of the processor between runs";
	return NULL;
}

void sessions_expire(struct warden *warden)
{
	struct session *session, *next;
	int64_t now = now_us();

	for (session = TAILQ_FIRST(&warden->sessions); session; session = next) {
		char text[100];
		const char *why = overdue(session, now, text);

		next = TAILQ_NEXT(session, entry);
		if (!why)
			continue;
		session_end_by_wish(session, why);
		next = TAILQ_FIRST(&warden->sessions); /* others may have ended with it */
	}
	forget_oldest(warden);
}

/* --- the beginning ------------------------------------------------------------ */

/* Whoever knows it may use it: it must not be guessed. */
static int make_id(char id[40])
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	uint8_t bits[26];

	if (getrandom(bits, sizeof bits, 0) != sizeof bits)
		return -EAGAIN;
	memcpy(id, "ses_", 4);
	for (size_t i = 0; i < sizeof bits; i++)
		id[4 + i] = digits[bits[i] & 31];
	id[4 + sizeof bits] = '\0';
	return 0;
}

static int read_open(struct session *session, const struct frame *frame, struct bytes *modules,
		     struct span *name, struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct field field;
	int r = 0;

	while (r >= 0 && (r = frame_next_field(&fields, &field)) == 1) {
		if (field.name == FIELD_LIMITS)
			r = limits_decode(field.value, &session->limits, err);
		else if (field.name == FIELD_NAME)
			*name = field.value;
		else if (field.name == FIELD_POLICY)
			r = bytes_append(&session->policy, field.value.data, field.value.length);
		else if (field.name == FIELD_IDLE_MS)
			r = field_number(&field, &session->idle_ms);
		else if (field.name == FIELD_LIFE_MS)
			r = field_number(&field, &session->life_ms);
		else if (field.name == FIELD_MODULE) {
			bytes_append(modules, field.value.data, field.value.length);
			bytes_append_text(modules, "\n");
		}
	}
	return r < 0 && !err->number ? fail(err, -r, "warden: OPEN_SESSION") : r;
}

struct session *session_make(struct warden *warden, struct error *err)
{
	struct session *session = calloc(1, sizeof *session);

	forget_oldest(warden);
	if (!session) {
		fail(err, ENOMEM, "warden: session");
		return NULL;
	}
	session->warden = warden;
	session->limits = limits_default();
	session->idle_ms = warden->serving.session_idle_ms;
	session->life_ms = warden->serving.session_life_ms;
	session->listing = -1;
	session->step = SESSION_OPENING;
	session->made_us = session->used_us = now_us();
	TAILQ_INIT(&session->waiting);
	TAILQ_INSERT_TAIL(&warden->sessions, session, entry);
	warden->session_count++;
	session->timer = warden_event(warden, -1, 0, PRIORITY_RUN, on_timeout, session);
	if (session->timer && make_id(session->id) == 0)
		return session;
	fail(err, EAGAIN, "warden: session");
	session_unmake(session);
	return NULL;
}

void session_unmake(struct session *session)
{
	session->warden->session_count--;
	free_event(&session->timer);
	session_free(session);
}

static int begin(struct session *session, const struct frame *frame, struct error *err)
{
	struct warden *warden = session->warden;
	struct span name = {NULL, 0};
	struct template *template;
	autobytes modules = {0};
	struct pool *pool;
	int r = read_open(session, frame, &modules, &name, err);

	if (r < 0)
		return r;
	if (warden->serving.sessions && warden->session_count > warden->serving.sessions)
		return refuse(err, EBUSY, "busy: there are %u sessions already",
			      warden->session_count - 1);
	pool = warden->daemon ? pool_choose(warden, name, &modules, err)
			      : pool_get(warden, &modules, err);
	template = pool ? pool_template(pool, err) : NULL;
	if (!template)
		return -err->number;
	snprintf(session->template, sizeof session->template, "%s", pool->name);
	session->cell = cell_make(template, &session->limits, false, session, err);
	return session->cell ? 0 : -err->number;
}

int session_open(struct client *client, const struct frame *frame, struct error *err)
{
	struct session *session = session_make(client->warden, err);

	if (!session)
		return -err->number;
	session->asker = client;
	session->asked = frame->id;
	if (begin(session, frame, err) < 0) {
		client_say_failed(client, frame->id, err->number, err->text);
		session_unmake(session);
		return err->number == EBADMSG ? -EBADMSG : 0;
	}
	return 0;
}

void session_cell_parked(struct cell *cell)
{
	struct session *session = cell->session;

	if (session->origin) {
		branch_parked(session);
		return;
	}
	session->step = SESSION_STEADY;
	session_answer(session);
}

struct session *session_find(struct warden *warden, struct span id)
{
	struct session *session;

	TAILQ_FOREACH(session, &warden->sessions, entry)
	/* A branch is nobody's before all of them stand. */
	if (span_equals(id, session->id) && !session->origin)
		break;
	return session;
}

/* --- runs ---------------------------------------------------------------------- */

/* What a run wrote that is over, or whose client is gone, is not the next one's. */
static void drain_output(const struct cell *cell)
{
	static char piece[64 * KIB];

	for (int i = 1; i < 3; i++) {
		int flags = fcntl(cell->stdio[i], F_GETFL);

		if (flags < 0 || fcntl(cell->stdio[i], F_SETFL, flags | O_NONBLOCK) < 0)
			continue;
		for (int reads = 0; reads < 64 && read(cell->stdio[i], piece, sizeof piece) > 0;)
			reads++;
	}
}

static void next_run(struct session *session)
{
	struct claim *claim = TAILQ_FIRST(&session->waiting);

	if (!claim || session->current || session->step != SESSION_STEADY || !session->cell ||
	    session->cell->state != CELL_PARKED)
		return;
	TAILQ_REMOVE(&session->waiting, claim, turn);
	session->current = claim;
	/* What was killed may have been in the middle of a write. */
	if (session->stale_output)
		drain_output(session->cell);
	session->stale_output = false;
	cell_give(session->cell, claim);
}

void session_take(struct claim *claim)
{
	struct session *session = claim->session;
	char why[ERROR_TEXT_MAX];

	if (!session->cell) {
		snprintf(why, sizeof why, "session %s has ended: %.200s", session->id,
			 session->why);
		claim->session = NULL;
		claim_fail(claim, EIDRM, why);
		return;
	}
	TAILQ_INSERT_TAIL(&session->waiting, claim, turn);
	next_run(session);
}

void session_run_begins(struct cell *cell)
{
	struct mailbox_header *header = cell->header;

	/* What the run before left there is not of this one. */
	atomic_store(&header->frames_length, 0);
	atomic_store(&header->request_length, 0);
	atomic_store(&header->response_length, 0);
	cell->session->returns = 0;
	cell->ended_us = 0;
	cell->ending = 0;
	cell->reason = 0;
	cell->has_status = false;
	cell->event[0] = cell->detail[0] = cell->why[0] = '\0';
	cell->sample_count = 0;
	bytes_clear(&cell->notes);
	usage_begin_run(cell);
}

void session_put_end(struct session *session, struct bytes *frame)
{
	frame_put_number(frame, FIELD_RUN, session->runs);
	frame_put_number(frame, FIELD_RESTORED, session->restored);
	if (session->lost.length > 0)
		bytes_append(frame, session->lost.data, session->lost.length);
	session->restored = false;
	bytes_clear(&session->lost);
}

/* It is nobody's current run any more. */
static void step_down(struct session *session, bool begun)
{
	session->current = NULL;
	session->used_us = now_us();
	if (!session->cell || session->cell->state != CELL_PARKED)
		return;
	if (begun)
		usage_end_run(session->cell);
	/* While nobody waits. What cannot be made now is asked for again. */
	cell_make_input(session->cell);
}

void session_release(struct claim *claim, int listing)
{
	struct session *session = claim->session;

	if (listing >= 0 && session->cell) {
		close_fd(&session->listing);
		session->listing = listing;
	} else {
		close_fd(&listing);
	}
	claim_end(claim);
}

void session_give_up(struct claim *claim)
{
	struct session *session = claim->session;
	struct cell *cell = session->cell;

	claim->session = NULL;
	if (session->current != claim) {
		if (!claim->ended && claim->admitted)
			TAILQ_REMOVE(&session->waiting, claim, turn);
		return;
	}
	if (cell && cell->claim == claim) {
		cell->claim = NULL;
		claim->cell = NULL;
		if (cell->state == CELL_RUNNING || cell->state == CELL_STOPPING)
			session_survives(cell, ENDING_KILLED, 0);
	}
	step_down(session, claim->begun);
	next_run(session);
}

/* --- returning to a checkpoint -------------------------------------------------- */

/* What it says may cross the end of a runner: each answer has the number of its question. */
static int tell_judge(struct session *session, enum message type)
{
	autobytes frame = {0};
	uint64_t number = ++session->warden->next_id;
	size_t at = frame_begin(&frame, (uint16_t)type, number);

	if (type == MESSAGE_CHECKPOINT)
		session->naming = number;
	else
		session->returning = number;

	if (type == MESSAGE_RESUME || type == MESSAGE_CLEAR) {
		frame_put_number(&frame, FIELD_NUMBER, session->choice);
		frame_put_number(&frame, FIELD_MORE, session->with_files);
	}
	if (session->name[0])
		frame_put_text(&frame, FIELD_NAME, session->name);
	if (type == MESSAGE_CHECKPOINT)
		frame_put_number(&frame, FIELD_MORE, session->with_files);
	frame_end(&frame, at);
	return frame_send(session->cell->control, &frame, NULL, 0);
}

/* A fork bomb is not to be faster than the judge: nobody forks until all is dead. */
static int allow_forks(struct session *session, bool allow, struct error *err)
{
	struct cell *cell = session->cell;

	return cgroup_cell_processes(&cell->warden->cgroups, &cell->cgroup,
				     allow ? session->limits.processes + SESSION_PROCESSES : 0,
				     err);
}

/* The runner has ended, and the kernel counts no more processes than there should be
 * without it: nobody is left who could do anything. */
static bool is_clear(struct session *session)
{
	const struct cell *cell = session->cell;
	uint64_t ours = session->ours;

	session->ours = 0;
	return ours > 0 && cell->warden->cgroups.has_pids && cell->processes == ours;
}

static void resume(struct session *session)
{
	if (tell_judge(session, MESSAGE_RESUME) < 0)
		session_end(session, "its judge is gone");
	else
		session->step = SESSION_RESUMING;
}

static void clear(struct session *session)
{
	struct error err = {0};

	cell_stop_clocks(session->cell);
	session->cell->state = CELL_RESTORING;
	session->runner_ended = false;
	set_timer(session->timer, SESSION_ACT_MS * 1000);
	if (is_clear(session)) {
		resume(session);
		return;
	}
	session->step = SESSION_CLEARING;
	if (allow_forks(session, false, &err) < 0 || tell_judge(session, MESSAGE_CLEAR) < 0)
		session_end(session, "its judge is gone");
}

void session_return(struct session *session, enum checkpoint_choice choice)
{
	session->choice = choice;
	session->with_files = true;
	clear(session);
}

void session_name(struct session *session, bool drop)
{
	session->with_files = drop;
	session->step = SESSION_NAMING;
	set_timer(session->timer, SESSION_ACT_MS * 1000);
	if (tell_judge(session, MESSAGE_CHECKPOINT) < 0)
		session_end(session, "its judge is gone");
}

static void on_cleared(struct session *session)
{
	struct error err = {0};

	if (allow_forks(session, true, &err) < 0)
		session_end(session, err.text);
	else
		resume(session);
}

bool session_survives(struct cell *cell, enum ending ending, uint64_t reason)
{
	struct session *session = cell->session;

	if (ending == ENDING_FAILED || session->step == SESSION_OPENING)
		return false;
	branch_fail(session, EINVAL, "its process ended meanwhile");
	if (cell->state == CELL_RESTORING)
		return true; /* it is on its way */
	/* Ctrl-C first: whoever heeds it loses nothing. */
	if (ending == ENDING_KILLED && cell->claim && cell->state == CELL_RUNNING &&
	    cell->ending != ENDING_KILLED && reason == KILL_CANCELLED) {
		cell->ending = ENDING_KILLED;
		cell->reason = reason;
		pidfd_send_signal(cell->runner_pidfd, SIGINT, NULL, 0);
		set_timer(session->timer, SESSION_INTERRUPT_MS * 1000);
		return true;
	}
	if (++session->returns > SESSION_RETURNS_MAX) {
		session_end(session, "its process ended again and again");
		return true;
	}
	cell->ending = ending;
	cell->reason = reason;
	if (!cell->ended_us)
		cell->ended_us = now_us();
	usage_read(cell);
	if (cell->usage.oom_kills > 0 && ending == ENDING_EXITED)
		cell->ending = ENDING_MEMORY;
	session->choice = CHECKPOINT_LATEST;
	session->with_files = false;
	session->name[0] = '\0';
	clear(session);
	return true;
}

/* What was asked of the judge is done, and what that took is not what a run left behind. */
static void end_asked(struct session *session)
{
	evtimer_del(session->timer);
	session->step = SESSION_STEADY;
	if (!session->cell)
		return;
	usage_read(session->cell);
	usage_end_run(session->cell);
}

static void steady(struct session *session)
{
	struct cell *cell = session->cell;
	struct claim *claim = cell->claim;

	evtimer_del(session->timer);
	session->step = SESSION_STEADY;
	cell->state = CELL_PARKED;
	/* An anomaly made it deaf. */
	if (cell->listener_event)
		event_add(cell->listener_event, NULL);
	if (claim && claim->begun) {
		cell_tell_end(cell);
	} else if (claim) {
		/* Its code was not reached; if it has come, it runs now. */
		if (claim->started)
			cell_start(cell);
	} else {
		drain_output(cell);
		end_asked(session);
		if (session->later.length > 0) {
			session_ask_again(session);
		} else if (session->asker) {
			session_answer(session);
			session->restored = false;
			bytes_clear(&session->lost);
		}
	}
	if (!session->current)
		next_run(session);
}

static void on_resumed(struct session *session, const struct frame *frame, int *fds, size_t count)
{
	struct reader fields = frame_fields(frame);
	struct cell *cell = session->cell;
	struct field field;

	if (count != 1) {
		session_end(session, "its judge said something odd");
		return;
	}
	close_fd(&cell->runner_pidfd);
	cell->runner_pidfd = take_fd(&fds[0]);
	session->restored = session->stale_output = true;
	bytes_clear(&session->lost);
	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_NOTE && field.value.length <= 200 &&
		    session->lost.length < 4 * KIB)
			frame_put(&session->lost, FIELD_LOST, field.value.data, field.value.length);
	steady(session);
}

/* A turn is over. */
static void on_turn(struct session *session, const struct frame *frame)
{
	struct cell *cell = session->cell;
	bool ended = frame_number(frame, FIELD_MORE) != 0;

	if (cell->state == CELL_RESTORING) {
		session->runner_ended = session->runner_ended || ended;
		return; /* it was ended meanwhile */
	}
	if (ended && cell->state == CELL_PARKED) {
		/* A thread or a signal ended it between two runs. */
		session_survives(cell, ENDING_EXITED, 0);
		return;
	}
	if (cell->state != CELL_RUNNING && cell->state != CELL_STOPPING)
		return;
	if (frame->id != session->runs) {
		/* It ended just before this run: that begins again behind the return. */
		if (ended && cell->state == CELL_RUNNING && cell->claim) {
			cell->claim->begun = false;
			session->runs--;
			session_survives(cell, ENDING_EXITED, 0);
		}
		return;
	}
	if (cell->ending == ENDING_ANOMALY) {
		session_survives(cell, ENDING_ANOMALY, 0);
		return;
	}
	cell->status = (int)frame_number(frame, FIELD_STATUS);
	cell->has_status = true;
	if (ended) {
		if (cell->state == CELL_RUNNING) {
			session->ours = frame_number(frame, FIELD_COUNT);
			session_survives(cell, ENDING_EXITED, 0);
		}
		return;
	}
	evtimer_del(session->timer);
	cell_stop_clocks(cell);
	cell->ended_us = now_us();
	usage_read(cell);
	if (cell->usage.oom_kills > 0) {
		/* A child was taken. */
		session_survives(cell, ENDING_MEMORY, 0);
		return;
	}
	/* A cancelled run that heeded the interrupt; one that was being stopped and
	 * came to its end just then keeps what it did. */
	if (cell->ending != ENDING_KILLED)
		cell->ending = ENDING_EXITED;
	steady(session);
}

/* What was asked for is not there: nothing was done. But there may be no runner left. */
static void not_returned(struct session *session, const char *why)
{
	end_asked(session);
	session->cell->state = CELL_PARKED;
	/* Whoever asked for it may be gone, and another have asked since. */
	if (session->later.length == 0)
		session_answer_failed(session, EINVAL, why);
	else if (!session->runner_ended)
		session_ask_again(session);
	if (session->runner_ended)
		session_survives(session->cell, ENDING_EXITED, 0);
	next_run(session);
}

static void on_failed(struct session *session, const struct frame *frame)
{
	struct cell *cell = session->cell;
	char text[ERROR_TEXT_MAX] = "", why[ERROR_TEXT_MAX];
	struct error err = {0};

	frame_text(frame, FIELD_TEXT, text, sizeof text);
	if (frame->id == 0 && session->step == SESSION_STEADY && cell->state == CELL_RUNNING) {
		cell_stop_clocks(cell);
		snprintf(cell->why, sizeof cell->why, "%s", text);
		cell->ending = ENDING_FAILED;
		steady(session);
	} else if (frame->id == session->returning && session->step == SESSION_CLEARING &&
		   session->choice != CHECKPOINT_LATEST && allow_forks(session, true, &err) == 0) {
		not_returned(session, text);
	} else if (frame->id == session->returning) {
		snprintf(why, sizeof why, "it could not return to a checkpoint: %.200s", text);
		session_end(session, why);
	}
}

void session_go_on(struct session *session)
{
	end_asked(session);
	next_run(session);
}

void session_message(struct cell *cell, const struct frame *frame, int *fds, size_t count)
{
	struct session *session = cell->session;

	if (session->origin || frame->type == MESSAGE_BRANCHED) {
		branch_message(session, frame, fds, count);
		return;
	}
	if (frame->id != 0 && frame->id == session->naming && frame->type != MESSAGE_TURN) {
		session_named(session, frame);
		return;
	}
	switch (frame->type) {
	case MESSAGE_TURN:
		on_turn(session, frame);
		break;
	case MESSAGE_CLEARED:
		if (session->step == SESSION_CLEARING && frame->id == session->returning)
			on_cleared(session);
		break;
	case MESSAGE_RESUMED:
		if (session->step == SESSION_RESUMING && frame->id == session->returning)
			on_resumed(session, frame, fds, count);
		break;
	case MESSAGE_FAILED:
		on_failed(session, frame);
		break;
	default:
		session_end(session, "its judge said something odd");
	}
}
