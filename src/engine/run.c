/* SPDX-License-Identifier: Apache-2.0 */
/* run: the life of one run, seen from the client's side.
 *
 *   LOOKING ── the warden told of the session ──▶ ACQUIRING
 *   ACQUIRING ── the warden sent a cell ──▶ RUNNING
 *   RUNNING ── the warden told the ending ──▶ DRAINING
 *   DRAINING ── both streams at their end; files collected ──▶ DONE
 *
 * Where others wait for the loop, what takes long of the last step is done beside it: ASIDE.
 *
 * Most runs begin with ACQUIRING: only the first in a session has to look. What is asked
 * for is in run_ask.c. The guest's bytes come over its own pipes. When
 * the ending is told nothing of the cell can act any more, so the pipes have an end
 * and the workspace stands still. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Of a session: the next may run. What is in the workspace goes along, for it to
 * compare with. */
static void release(struct run *run)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_RELEASE, run->id);
	struct error err = {0};
	autofd listing = -1;

	if (run->listed && !listing_is(&run->after, &run->before))
		listing = listing_write(&run->after, &err);
	frame_end(&frame, at);
	/* A warden that is gone has nothing to release. */
	engine_say(run->engine, &frame, &listing, listing >= 0 ? 1 : 0, &err);
}

/* It does not look any more. */
static void end_query(struct run *run)
{
	if (!run->query.event)
		return;
	TAILQ_REMOVE(&run->engine->queries, &run->query, entry);
	event_free(run->query.event);
	run->query.event = NULL;
	bytes_free(&run->query.answer);
}

void run_finish(struct run *run)
{
	if (run->state == RUN_DONE)
		return;
	run->state = RUN_DONE;
	end_query(run);
	run_show_end(run);
	for (size_t i = 0; i < 3; i++) {
		if (run->stream_events[i])
			event_free(run->stream_events[i]);
		run->stream_events[i] = NULL;
		close_fd(&run->streams[i]);
	}
	if (run->source_event)
		event_free(run->source_event);
	if (run->patience)
		event_free(run->patience);
	run->source_event = run->patience = NULL;
	result_finish(run);
	if (run->session)
		release(run);
	async_note_end(run);
}

void run_fail(struct run *run, const char *why)
{
	run_collect_stop(run);
	snprintf(run->result->internal, sizeof run->result->internal, "%s", why);
	run->ending = ENDING_FAILED;
	/* Its limits and policy are not known yet: no result can be made of it. */
	if (run->state == RUN_LOOKING && !run->refused) {
		run->refused = true;
		run->refused_for = run->cancelled ? ECANCELED : EPIPE;
	}
	run_finish(run);
}

static void say(struct run *run, enum message type, enum field_name name, uint64_t number)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, (uint16_t)type, run->id);
	struct error err = {0};

	if (name)
		frame_put_number(&frame, (uint16_t)name, number);
	frame_end(&frame, at);
	/* A warden that is gone is noticed by its socket. */
	engine_say(run->engine, &frame, NULL, 0, &err);
}

static void ask_kill(struct run *run, enum kill_reason reason)
{
	/* Nobody knows of it while it looks. */
	if (run->kill_sent || run->ended || run->id == 0)
		return;
	run->kill_sent = true;
	say(run, MESSAGE_KILL, FIELD_REASON, reason);
}

void run_cancel(struct run *run)
{
	run->cancelled = true;
	ask_kill(run, KILL_CANCELLED);
	if (run->state == RUN_LOOKING)
		run_fail(run, "it was cancelled");
}

static void collect_if_drained(struct run *run)
{
	if (run->state != RUN_DRAINING || run->streams[1] >= 0 || run->streams[2] >= 0)
		return;
	run_collect(run);
}

static void end_stream(struct run *run, int which)
{
	if (run->stream_events[which])
		event_free(run->stream_events[which]);
	run->stream_events[which] = NULL;
	close_fd(&run->streams[which]);
}

/* stdout or stderr: one read. False when there is nothing to read now. */
static bool read_output(struct run *run, int which)
{
	static char piece[64 * 1024];
	const struct execpy_request *request = run->request;
	uint64_t limit = run->result->limits.output_bytes;
	ssize_t r = read(run->streams[which], piece, sizeof piece);
	size_t within;

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (r <= 0) {
		end_stream(run, which);
		collect_if_drained(run);
		return true;
	}
	within = capture_add(run->result->output, which - 1, piece, (size_t)r, limit,
			     request->truncate_output);
	if (request->truncate_output)
		within = (size_t)r;
	if (within > 0 && run->callbacks.output) {
		run->callbacks.output(run->callbacks.user,
				      which == 1 ? EXECPY_STDOUT : EXECPY_STDERR, piece, within);
		run_show_now(run);
	}
	if (within < (size_t)r)
		ask_kill(run, KILL_OUTPUT);
	return true;
}

static void ignore_output(struct run *run)
{
	for (int i = 1; i < 3; i++)
		if (run->stream_events[i])
			event_del(run->stream_events[i]);
}

/* No more output for a while. */
static void rest(struct run *run, int64_t ms)
{
	const struct timeval patience = {0, ms * 1000};

	ignore_output(run);
	event_add(run->patience, &patience);
}

/* One read a turn, so that both streams and the warden get their share. Of a stream
 * of lines each would wake us, and cost the code more than to make it: those that
 * come in quick succession are read together. */
static void on_output(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;
	int which = fd == run->streams[1] ? 1 : 2;
	uint64_t before = run->result->output[which - 1].total;
	int64_t now = now_us();
	bool quick = run->state == RUN_RUNNING && now - run->output_us < 2 * OUTPUT_REST_MS * 1000;

	run->output_us = now;
	if (read_output(run, which) && quick &&
	    run->result->output[which - 1].total - before < OUTPUT_REST_BYTES)
		rest(run, OUTPUT_REST_MS);
}

static void watch_output(struct run *run)
{
	for (int i = 1; i < 3; i++)
		if (run->stream_events[i] && !run->paused)
			event_add(run->stream_events[i], NULL);
}

static void on_patience(evutil_socket_t fd, short what, void *argument)
{
	watch_output(argument);
}

static void stop_input(struct run *run)
{
	if (run->stream_events[0])
		end_stream(run, 0);
}

static void wait_for_source(struct run *run);

/* The cell reads: give it what is there, then ask the source for more. */
static void on_input_wanted(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;
	struct bytes *pending = &run->stdin_pending;
	size_t left = pending->length - run->stdin_at;
	ssize_t r;

	if (left == 0) {
		event_del(run->stream_events[0]);
		wait_for_source(run);
		return;
	}
	r = write(fd, pending->data + run->stdin_at, left);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r < 0) {
		stop_input(run); /* it does not want to read any more */
		return;
	}
	run->stdin_at += (size_t)r;
	if (run->stdin_at == pending->length) {
		bytes_clear(pending);
		run->stdin_at = 0;
		event_del(run->stream_events[0]);
		wait_for_source(run);
	}
}

static void on_source(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;
	uint8_t *room = bytes_reserve(&run->stdin_pending, 64 * 1024);
	ssize_t r = room ? read(run->request->stdin_fd, room, 64 * 1024) : -1;

	if (r < 0 && room && (errno == EAGAIN || errno == EINTR)) {
		wait_for_source(run);
		return;
	}
	if (r <= 0) {
		stop_input(run);
		return;
	}
	run->stdin_pending.length += (size_t)r;
	event_add(run->stream_events[0], NULL);
}

static void wait_for_source(struct run *run)
{
	/* Regular files cannot be polled, and need not be. */
	if (!run->source_event)
		on_source(-1, 0, run);
	else
		event_add(run->source_event, NULL);
}

static int start_input(struct run *run, struct error *err)
{
	int source = run->request->stdin_fd;
	struct stat info;

	if (source < 0) {
		close_fd(&run->streams[0]);
		return 0;
	}
	if (fstat(source, &info) < 0)
		return fail(err, errno, "stdin");
	evutil_make_socket_nonblocking(run->streams[0]);
	run->stream_events[0] = event_new(run->engine->base, run->streams[0], EV_WRITE | EV_PERSIST,
					  on_input_wanted, run);
	if (!S_ISREG(info.st_mode))
		run->source_event = event_new(run->engine->base, source, EV_READ, on_source, run);
	if (!run->stream_events[0])
		return refuse(err, ENOMEM, "stdin: no event");
	wait_for_source(run);
	return 0;
}

/* Output is read as it comes, but not at once: a run that is over by then has not
 * been interrupted at each of its lines by somebody who wants its processor. If the
 * cell was not offered at once, that time has passed. */
static int prepare_output(struct run *run, bool offered_at_once, struct error *err)
{
	const struct timeval patience = {0, offered_at_once ? OUTPUT_PATIENCE_MS * 1000 : 0};

	for (int i = 1; i < 3; i++) {
		if (run->streams[i] < 0)
			continue;
		run->stream_events[i] = event_new(run->engine->base, run->streams[i],
						  EV_READ | EV_PERSIST, on_output, run);
	}
	run->patience = event_new(run->engine->base, -1, 0, on_patience, run);
	if ((run->streams[1] >= 0 && !run->stream_events[1]) ||
	    (run->streams[2] >= 0 && !run->stream_events[2]) || !run->patience ||
	    event_add(run->patience, &patience) < 0)
		return refuse(err, ENOMEM, "output: no event");
	return 0;
}

/* Nobody writes any more: what is in the pipes, and their ends. */
static void read_rest(struct run *run)
{
	struct error err = {0};

	for (int i = 1; i < 3; i++) {
		/* What a session's run left behind may write for ever. */
		for (int reads = 0; !run->paused && run->streams[i] >= 0 && read_output(run, i) &&
				    (!run->session || reads < SESSION_READS_MAX);)
			reads++;
		/* A session's pipes have no end: what is in them now is the run's. */
		if (run->session && !run->paused && run->streams[i] >= 0)
			end_stream(run, i);
	}
	if (!run->patience && (run->streams[1] >= 0 || run->streams[2] >= 0) &&
	    prepare_output(run, false, &err) < 0)
		run_fail(run, err.text);
	watch_output(run);
}

void run_pause(struct run *run)
{
	run->paused = true;
	ignore_output(run);
}

void run_resume(struct run *run)
{
	if (!run->paused)
		return;
	run->paused = false;
	if (run->state == RUN_RUNNING)
		watch_output(run);
	if (run->state != RUN_DRAINING)
		return;
	read_rest(run);
	collect_if_drained(run);
}

/* The fields of an ending that are text: what the watch saw. */
static bool take_report(struct execpy_result *result, const struct field *field)
{
	switch (field->name) {
	case FIELD_EVENT:
		free(result->anomaly_event);
		result->anomaly_event = span_to_string(field->value);
		return true;
	case FIELD_DETAIL:
		free(result->anomaly_detail);
		result->anomaly_detail = span_to_string(field->value);
		return true;
	case FIELD_SAMPLE:
		if (field->value.length == 24)
			bytes_append(&result->samples, field->value.data, field->value.length);
		return true;
	case FIELD_LOST:
		bytes_append(&result->lost, field->value.data, field->value.length);
		bytes_append_text(&result->lost, "\n");
		return true;
	case FIELD_NOTE:
		bytes_append(&result->notes, field->value.data, field->value.length);
		bytes_append(&result->notes, "", 1);
		return true;
	default:
		return false;
	}
}

static void on_ended(struct run *run, const struct frame *frame)
{
	struct execpy_result *result = run->result;
	struct reader fields = frame_fields(frame);
	struct field field;
	uint64_t number;

	run->ended = true;
	while (frame_next_field(&fields, &field) == 1) {
		if (take_report(result, &field) || field_number(&field, &number) < 0)
			continue;
		switch (field.name) {
		case FIELD_ENDING:
			run->ending = (enum ending)number;
			break;
		case FIELD_REASON:
			run->reason = number;
			break;
		case FIELD_STATUS:
			run->status = (int)number;
			run->has_status = true;
			break;
		case FIELD_WALL_US:
			result->wall_us = number;
			break;
		case FIELD_CPU_US:
			result->cpu_us = number;
			break;
		case FIELD_MEMORY_PEAK:
			result->memory_peak_bytes = number;
			break;
		case FIELD_PROCESSES_PEAK:
			result->processes_peak = number;
			break;
		case FIELD_SAMPLED:
			run->sampled = number != 0;
			break;
		case FIELD_DISK_FULL:
			run->disk_full = number != 0;
			break;
		case FIELD_RUN:
			result->session_run = number;
			break;
		case FIELD_RESTORED:
			result->restored = number != 0;
			break;
		default:
			break;
		}
	}
	stop_input(run);
	if (run->state == RUN_ACQUIRING) {
		run_finish(run);
		return;
	}
	run->state = RUN_DRAINING;
	read_rest(run);
	collect_if_drained(run); /* they may have ended before the run did */
}

static void on_cell(struct run *run, const struct frame *frame, int *fds, size_t count)
{
	struct reader fields = frame_fields(frame);
	struct error err = {0};
	struct field field;
	uint64_t warm = 0;
	bool at_once = run->request->file_count > 0 || run->request->stdin_fd >= 0 || run->session;
	bool ended = false;

	if (run->state != RUN_ACQUIRING || count < CELL_FD_COUNT ||
	    count > CELL_FD_COUNT + (run->session != NULL)) {
		run_fail(run, "the warden sent an odd cell");
		return;
	}
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_WARM)
			field_number(&field, &warm);
		if (field.name == FIELD_WAIT_US)
			field_number(&field, &run->result->wait_us);
		ended |= field.name == FIELD_ENDING;
		if (field.name == FIELD_RUN)
			field_number(&field, &run->result->session_run);
		if (field.name == FIELD_NAME) {
			free(run->result->template);
			run->result->template = span_to_string(field.value);
		}
	}
	run->result->warm = warm != 0;
	run->mailbox = take_fd(&fds[CELL_FD_MAILBOX]);
	run->verdict = take_fd(&fds[CELL_FD_VERDICT]);
	run->workspace = take_fd(&fds[CELL_FD_WORKSPACE]);
	for (int i = 0; i < 3; i++)
		run->streams[i] = take_fd(&fds[CELL_FD_STDIN + i]);
	run->state = RUN_RUNNING;
	/* Without it everything is new: no reason not to run. */
	if (count > CELL_FD_LISTING)
		listing_read(fds[CELL_FD_LISTING], &run->before, &err);
	err = (struct error){0};
	if (run->hold) {
		run->ended = true;
		run_collect(run);
		return;
	}
	if (ended) { /* nothing has to be waited for */
		close_fd(&run->streams[0]);
		async_note_start(run);
		on_ended(run, frame);
		return;
	}
	if (prepare_output(run, at_once, &err) < 0 || start_input(run, &err) < 0 ||
	    (run->request->file_count > 0 &&
	     (inputs_put(run, &err) < 0 || run_ask_start(run, &err) < 0))) {
		ask_kill(run, KILL_CANCELLED);
		run_fail(run, err.text);
		return;
	}
	async_note_start(run);
}

static char *text_field(const struct frame *frame, enum field_name name)
{
	struct reader fields = frame_fields(frame);
	struct field field;

	while (frame_next_field(&fields, &field) == 1)
		if (field.name == (uint16_t)name)
			return span_to_string(field.value);
	return NULL;
}

void run_message(struct run *run, const struct frame *frame, int *fds, size_t count)
{
	autofree char *text = NULL;
	struct error err = {0};

	if (run->state == RUN_ASIDE)
		return; /* its ending is known; a hold has none */
	switch (frame->type) {
	case MESSAGE_CELL:
		on_cell(run, frame, fds, count);
		break;
	case MESSAGE_ENDED:
		on_ended(run, frame);
		break;
	case MESSAGE_FAILED:
		text = text_field(frame, FIELD_TEXT);
		/* A module that cannot be in a template can still be in a cell. */
		if (run->state == RUN_ACQUIRING && !run->retried && text &&
		    strncmp(text, "template: ", 10) == 0) {
			run->retried = true;
			if (run_ask(run, &err) == 0)
				break;
		}
		run->refused_for = (int)frame_number(frame, FIELD_ERRNO);
		run->refused = run->refused_for == EINVAL || run->refused_for == ENOENT ||
			       run->refused_for == EIDRM;
		run_fail(run, text ? text : "the warden failed");
		break;
	default:
		run_fail(run, "the warden sent an odd message");
	}
}

void run_engine_died(struct run *run)
{
	run_fail(run, run->engine->why);
}

/* A sortable id: 48 bits of milliseconds and 80 of randomness, in Crockford's
 * base 32, as a ULID has them. */
void run_make_id(char id[40])
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	struct timespec now;
	uint8_t bits[16];
	uint64_t ms;
	size_t at = 4;
	unsigned buffer = 0, held = 2; /* 130 bits of digits for 128: two zeros first */

	clock_gettime(CLOCK_REALTIME, &now);
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	/* An id names a run, it protects nothing: without randomness the process and
	 * the clock do. */
	if (getrandom(bits, sizeof bits, 0) != sizeof bits)
		for (size_t i = 6; i < sizeof bits; i++)
			bits[i] = (uint8_t)((uint64_t)now.tv_nsec >> 4 * (i - 6)) ^
				  (uint8_t)(getpid() >> (i & 1 ? 8 : 0));
	for (int i = 0; i < 6; i++)
		bits[i] = (uint8_t)(ms >> (8 * (5 - i)));
	memcpy(id, "run_", 4);
	for (size_t i = 0; i < sizeof bits; i++) {
		buffer = buffer << 8 | bits[i];
		held += 8;
		while (held >= 5) {
			held -= 5;
			id[at++] = digits[buffer >> held & 31];
		}
	}
	id[at] = '\0';
}

static int begin(struct run *run, struct error *err)
{
	int r = request_take(run, err);

	return r < 0 ? r : run_ask(run, err);
}

static void on_known(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;
	struct query query = run->query;
	struct error err = {0};
	int r = query_end(run->engine, &run->query, &err);

	run->query.event = NULL;
	if (r == 0) {
		run->session = session_learn(run->engine, run->result->session, &query, &err);
		r = run->session ? 0 : -err.number;
	}
	run->state = RUN_ACQUIRING;
	if (r == 0)
		r = begin(run, &err);
	event_free(query.event);
	bytes_free(&query.answer);
	if (r == 0)
		return;
	run->refused = true;
	run->refused_for = err.number;
	run->session = NULL; /* it has nothing to release there */
	run_fail(run, err.text);
}

/* Asks what runs take from the session. */
static int look(struct run *run, struct error *err)
{
	const struct session_question question = {.kind = SESSION_ASK_INFO,
						  .id = run->result->session};
	int r;

	run->state = RUN_LOOKING;
	run->query.event = event_new(run->engine->base, -1, 0, on_known, run);
	if (!run->query.event)
		return fail(err, ENOMEM, "session");
	r = session_ask(run->engine, &question, &run->query, err);
	if (r < 0) {
		event_free(run->query.event);
		run->query.event = NULL;
	}
	return r;
}

/* Runs of a session begin in the order in which they were asked for: none overtakes one
 * that still looks. */
static bool is_looked_for(const struct execpy_engine *engine, const char *id)
{
	const struct run *run;

	TAILQ_FOREACH(run, &engine->runs, entry)
	if (run->state == RUN_LOOKING && strcmp(run->result->session, id) == 0)
		return true;
	return false;
}

static int begin_in_session(struct run *run, const char *id, struct error *err)
{
	if (strlen(id) >= sizeof run->result->session)
		return refuse(err, ENOENT, "there is no session %.60s", id);
	snprintf(run->result->session, sizeof run->result->session, "%s", id);
	if (!is_looked_for(run->engine, id))
		run->session = session_find(run->engine, id);
	return run->session ? begin(run, err) : look(run, err);
}

void run_free(struct run *run)
{
	if (run->state != RUN_DONE)
		run_fail(run, "the engine was closed");
	/* What was given up still has its cell. */
	if (!run->ended)
		ask_kill(run, KILL_CANCELLED);
	TAILQ_REMOVE(&run->engine->runs, run, entry);
	close_fd(&run->mailbox);
	close_fd(&run->verdict);
	close_fd(&run->workspace);
	listing_free(&run->before);
	listing_free(&run->after);
	bytes_free(&run->stdin_pending);
	for (size_t i = 0; i < run->input_count; i++)
		free(run->inputs[i].name);
	free(run->inputs);
	policy_free(&run->policy);
	free(run);
}

struct run *run_start(struct execpy_engine *engine, const struct execpy_request *request,
		      const struct execpy_callbacks *callbacks, const struct run_purpose *purpose,
		      struct error *err)
{
	struct execpy_result *result = calloc(1, sizeof *result);
	struct run *run = calloc(1, sizeof *run);

	if (!result || !run) {
		free(result);
		free(run);
		fail(err, ENOMEM, "run");
		return NULL;
	}
	result->exit_code = -1;
	result->check_only = purpose->check_only;
	result->probe = purpose->probe;
	run->batch = purpose->batch;
	run->hold = purpose->hold;
	run->state = RUN_ACQUIRING;
	run->engine = engine;
	run->request = request;
	run->result = result;
	run->mailbox = run->verdict = run->workspace = run->streams[0] = run->streams[1] =
		run->streams[2] = -1;
	if (callbacks)
		run->callbacks = *callbacks;
	TAILQ_INSERT_TAIL(&engine->runs, run, entry);
	if (engine->dead && engine->remote)
		engine_revive(engine, &(struct error){0});
	run_make_id(result->id);
	run->began_us = now_us();
	if ((purpose->session ? begin_in_session(run, purpose->session, err) : begin(run, err)) <
	    0) {
		run->state = RUN_DONE;
		run_free(run);
		execpy_result_free(result);
		return NULL;
	}
	return run;
}

int run_wait(struct run *run, struct execpy_result **ret_result, struct error *err)
{
	struct execpy_result *result = run->result;
	int refused_for;
	bool refused;

	while (run->state != RUN_DONE)
		if (event_base_loop(run->engine->base, EVLOOP_ONCE) != 0)
			run_fail(run, "the event loop ended");
	refused = run->refused;
	refused_for = run->refused_for;
	if (refused && (refused_for == ENOENT || refused_for == EIDRM) && result->session[0])
		session_forget(run->engine, result->session);
	run_free(run);
	if (refused) {
		refuse(err, refused_for, "%s", result->internal);
		execpy_result_free(result);
		return -refused_for;
	}
	*ret_result = result;
	return 0;
}
