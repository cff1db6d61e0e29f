/* SPDX-License-Identifier: Apache-2.0 */
/* branch: several sessions of one, as the warden leads it.
 *
 * Theory of operation. A branch is a cell like any session's, with a cgroup, an init,
 * namespaces and a judge of its own, forked from the same template process; only its
 * runner is not made ready, but waits to take over (guest/image.c).
 *
 *   session   STEADY ── fork ──▶ BRANCHING ── all stand, or one failed ──▶ STEADY
 *   branch    OPENING ── parked; its turn ──▶ OPENING ── it took over ──▶ STEADY
 *
 * First the session's judge is asked whether there can be a branch at all. Then cells
 * are made, a few at one moment, and one after another is given its end of two pipes
 * whose other ends the session's judge gets. What goes through them the warden does not
 * see. All of them come to be or none: what was made ends when one fails. The session
 * itself does nothing meanwhile; runs wait, and it loses nothing by a failure.
 *
 * The template must be the very process that the session was forked from: it is kept
 * while there are sessions of it, also when it was replaced. */
#include "warden/warden.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct branching {
	unsigned wanted, making, done; /* making: their cells are not parked yet */
	size_t count;                  /* that there are */
	struct session *giving;        /* which one takes over just now */
	bool same_random, given;       /* given: the session's judge has done its part */
	uint64_t asked;                /* what it was asked last */
	char why[ERROR_TEXT_MAX];      /* it did not take over; the other side may know more */
	struct session *branches[BRANCHES_MAX];
};

/* --- the end of it ---------------------------------------------------------------- */

static void forget(struct session *session)
{
	struct branching *branching = session->branching;

	session->branching = NULL;
	for (size_t i = 0; i < branching->count; i++)
		branching->branches[i]->origin = NULL;
	free(branching);
}

void branch_fail(struct session *session, int number, const char *why)
{
	struct branching *branching = session->branching;
	struct session *made[BRANCHES_MAX];
	size_t count;

	if (!branching)
		return;
	count = branching->count;
	memcpy(made, branching->branches, count * sizeof made[0]);
	forget(session);
	for (size_t i = 0; i < count; i++)
		session_end_by_wish(made[i], why);
	session_answer_failed(session, number, why);
	evtimer_del(session->timer);
	session->step = SESSION_STEADY;
}

static void refuse_branches(struct session *session, const char *why)
{
	branch_fail(session, EINVAL, why);
	session_go_on(session);
}

void branch_lost(struct session *session, const char *why)
{
	struct session *origin = session->origin;
	struct branching *branching = origin ? origin->branching : NULL;
	char text[ERROR_TEXT_MAX];

	session->origin = NULL;
	if (!branching)
		return;
	for (size_t i = 0; i < branching->count; i++)
		if (branching->branches[i] == session)
			branching->branches[i] = branching->branches[--branching->count];
	snprintf(text, sizeof text, "a branch could not be made: %.280s", why);
	refuse_branches(origin, text);
}

static void succeed(struct session *session)
{
	struct branching *branching = session->branching;
	struct client *client = session->asker;
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_SESSION, session->asked);

	for (size_t i = 0; i < branching->count; i++) {
		branching->branches[i]->used_us = now_us();
		session_put(branching->branches[i], false, &frame);
	}
	frame_end(&frame, at);
	forget(session);
	session->asker = NULL;
	session->used_us = now_us();
	if (client)
		client_say(client, &frame, NULL, 0);
	session_go_on(session);
}

/* --- one after another -------------------------------------------------------------- */

static int make_one(struct session *session, struct error *err)
{
	struct branching *branching = session->branching;
	struct warden *warden = session->warden;
	struct session *branch;

	/* Others may have come to be since it was asked for. */
	if (warden->serving.sessions && warden->session_count >= warden->serving.sessions)
		return refuse(err, EBUSY, "busy: there are %u sessions already, of at most %llu",
			      warden->session_count, (unsigned long long)warden->serving.sessions);
	branch = session_make(warden, err);
	if (!branch)
		return -err->number;
	snprintf(branch->template, sizeof branch->template, "%s", session->template);
	branch->limits = session->limits;
	branch->idle_ms = session->idle_ms;
	branch->life_ms = session->life_ms;
	branch->runs = session->runs;
	branch->origin = session;
	/* What its first run changes is told by comparison with this. */
	branch->listing = session->listing < 0 ? -1 : fcntl(session->listing, F_DUPFD_CLOEXEC, 3);
	bytes_append(&branch->policy, session->policy.data, session->policy.length);
	if (!branch->policy.failed)
		branch->cell =
			cell_make(session->cell->template, &branch->limits, false, branch, err);
	if (!branch->cell) {
		session_unmake(branch);
		return err->number ? -err->number : fail(err, ENOMEM, "warden: session");
	}
	branching->branches[branching->count++] = branch;
	branching->making++;
	return 0;
}

/* The session's judge gets an id with each question, which comes back. */
static int ask_giver(struct session *session, const struct bytes *changed, const int *fds,
		     size_t count)
{
	autobytes frame = {0};
	uint64_t id = session->branching->asked = ++session->warden->next_id;
	size_t at = frame_begin(&frame, MESSAGE_BRANCH, id);

	if (changed)
		frame_put(&frame, FIELD_DATA, changed->data, changed->length);
	frame_end(&frame, at);
	set_timer(session->timer, BRANCH_GIVE_MS * 1000);
	return frame_send(session->cell->control, &frame, fds, count);
}

static int tell_taker(struct session *branch, bool same_random, const int *fds)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_BRANCH, 0);

	frame_put_number(&frame, FIELD_MORE, same_random);
	frame_end(&frame, at);
	set_timer(branch->timer, BRANCH_TAKE_MS * 1000);
	return frame_send(branch->cell->control, &frame, fds, BRANCH_FD_COUNT);
}

/* Each judge gets its ends of the pipes, and the warden keeps none. */
static int give(struct session *session, struct session *branch)
{
	int files[2], memory[2], r;

	if (pipe2(files, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(memory, O_CLOEXEC) < 0) {
		r = -errno;
		close(files[0]);
		close(files[1]);
		return r;
	}
	r = tell_taker(branch, session->branching->same_random, (int[]){files[0], memory[0]});
	if (r == 0)
		r = ask_giver(session, &branch->changed, (int[]){files[1], memory[1]},
			      BRANCH_FD_COUNT);
	for (size_t i = 0; i < 2; i++) {
		close(files[i]);
		close(memory[i]);
	}
	return r;
}

static struct session *find_parked(const struct branching *branching)
{
	for (size_t i = 0; i < branching->count; i++) {
		struct session *branch = branching->branches[i];

		if (branch->cell->state == CELL_PARKED && branch->step == SESSION_OPENING &&
		    branch->changed.length > 0)
			return branch;
	}
	return NULL;
}

/* Whatever can be done now. */
static void advance(struct session *session)
{
	struct branching *branching = session->branching;
	struct error err = {0};

	if (branching->done == branching->wanted) {
		succeed(session);
		return;
	}
	if (!branching->giving) {
		branching->giving = find_parked(branching);
		branching->given = false;
		if (branching->giving && give(session, branching->giving) < 0) {
			refuse_branches(session, "its judge is gone");
			return;
		}
	}
	while (branching->making < BRANCHES_AT_ONCE && branching->count < branching->wanted)
		if (make_one(session, &err) < 0) {
			refuse_branches(session, err.text);
			return;
		}
}

void branch_take_changed(struct session *session, const struct frame *frame)
{
	struct reader fields = frame_fields(frame);
	struct field field;

	while (session->origin && frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_DATA)
			bytes_append(&session->changed, field.value.data, field.value.length);
}

void branch_parked(struct session *session)
{
	session->origin->branching->making--;
	advance(session->origin);
}

/* --- what judges say ------------------------------------------------------------------ */

/* Both sides have done with it. */
static void next(struct session *session)
{
	struct branching *branching = session->branching;

	if (!branching->given || branching->giving->step != SESSION_STEADY)
		return;
	branching->giving = NULL;
	branching->done++;
	evtimer_del(session->timer);
	advance(session);
}

static void on_session(struct session *session, const struct frame *frame)
{
	struct branching *branching = session->branching;
	char why[ERROR_TEXT_MAX] = "";

	/* The answer to what was given up meanwhile. */
	if (!branching || frame->id != branching->asked)
		return;
	frame_text(frame, FIELD_TEXT, why, sizeof why);
	if (why[0]) {
		refuse_branches(session, why);
	} else if (branching->why[0]) {
		snprintf(why, sizeof why, "%s", branching->why);
		session_end(branching->giving, why);
	} else if (!branching->giving) {
		evtimer_del(session->timer);
		advance(session);
	} else {
		branching->given = true;
		next(session);
	}
}

static void on_branch(struct session *branch, const struct frame *frame, int *fds, size_t count)
{
	struct session *session = branch->origin;
	char why[ERROR_TEXT_MAX] = "its process ended";

	if (frame->type != MESSAGE_RESUMED || count != 1 || branch != session->branching->giving) {
		frame_text(frame, FIELD_TEXT, why, sizeof why);
		/* What came too early to its end did so for a reason that the giver knows. */
		if (branch == session->branching->giving && !session->branching->given)
			snprintf(session->branching->why, sizeof session->branching->why, "%s",
				 why);
		else
			session_end(branch, why);
		return;
	}
	close_fd(&branch->cell->runner_pidfd);
	branch->cell->runner_pidfd = take_fd(&fds[0]);
	evtimer_del(branch->timer);
	bytes_free(&branch->changed);
	branch->step = SESSION_STEADY;
	branch->used_us = now_us();
	usage_end_run(branch->cell);
	next(session);
}

void branch_message(struct session *session, const struct frame *frame, int *fds, size_t count)
{
	if (session->origin)
		on_branch(session, frame, fds, count);
	else
		on_session(session, frame);
}

int branch_begin(struct session *session, uint64_t count, bool same_random, struct error *err)
{
	const struct template *template = session->cell->template;
	struct warden *warden = session->warden;
	struct branching *branching;

	if (count < 1 || count > BRANCHES_MAX)
		return refuse(err, EINVAL, "a session is forked into 1 to %d", BRANCHES_MAX);
	if (warden->serving.sessions && warden->session_count + count > warden->serving.sessions)
		return refuse(err, EBUSY, "busy: there are %u sessions already, of at most %llu",
			      warden->session_count, (unsigned long long)warden->serving.sessions);
	if (template->dead || template->socket < 0)
		return refuse(err, EINVAL, "session %s: its template is gone", session->id);
	branching = calloc(1, sizeof *branching);
	if (!branching)
		return fail(err, ENOMEM, "warden: branches");
	branching->wanted = (unsigned)count;
	branching->same_random = same_random;
	session->branching = branching;
	session->step = SESSION_BRANCHING;
	if (ask_giver(session, NULL, NULL, 0) < 0)
		session_end(session, "its judge is gone");
	return 0;
}
