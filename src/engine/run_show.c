/* SPDX-License-Identifier: Apache-2.0 */
/* run_show: what a run shows while it goes on, for those who want to see it at once.
 *
 * Displays lie in the mailbox as soon as they are made, and the verdict before anything
 * runs; nothing says that they are there, so one looks. It is the cell's own word, which
 * it may change until it is over: the result says what counts. In a session the memory
 * is the same for every run. It is emptied before the next begins, but with files that is
 * only once they are there, and the verdict is the last run's until it is judged: what
 * cannot be told apart is left for the end. */
#include "engine/engine.h"

#include "base/cleanup.h"

#include <stdlib.h>

struct run_shown {
	const struct run_showing *showing;
	void *user;
	struct event *event;
	size_t read; /* of the response */
	size_t displays;
	bool judged;   /* its findings were told */
	bool finished; /* nothing can be read of it any more */
};

static void show_findings(struct run *run, struct run_shown *shown)
{
	struct verdict verdict = {0};
	autobytes bytes = {0};
	struct error err = {0};
	struct reader frames;
	struct frame frame;
	struct field field;

	if (verdict_read(run->verdict, &bytes, &err) < 0)
		return;
	frames = reader_of(bytes_span(&bytes));
	if (frame_next(&frames, VERDICT_BYTES_MAX, &frame) != 1 || frame.type != MESSAGE_VERDICT ||
	    !result_find_field(frame.body, FIELD_FINDINGS, &field))
		return; /* not yet */
	shown->judged = true;
	if (verdict_decode(field.value, &verdict, &err) == 0)
		for (size_t i = 0; i < verdict.finding_count; i++)
			shown->showing->finding(shown->user, &verdict.findings[i]);
	verdict_free(&verdict);
}

static void show_displays(struct run *run, struct run_shown *shown)
{
	autobytes bytes = {0};
	struct error err = {0};
	struct reader frames;
	struct frame frame;
	int r;

	if (mailbox_read_more(run->mailbox, shown->read, &bytes, &err) < 0) {
		shown->finished = true;
		return;
	}
	shown->read += bytes.length;
	frames = reader_of(bytes_span(&bytes));
	while ((r = frame_next(&frames, RESPONSE_BYTES_MAX, &frame)) == 1) {
		if (frame.type != MESSAGE_DISPLAY || shown->displays == DISPLAY_COUNT_MAX)
			continue;
		shown->displays++;
		shown->showing->display(shown->user, frame.body);
	}
	/* Frames come whole; another is none of ours. */
	shown->finished = r < 0 || frames.left > 0;
}

void run_show_now(struct run *run)
{
	struct run_shown *shown = run->shown;

	if (!shown || run->state < RUN_RUNNING || run->mailbox < 0)
		return;
	if (!shown->judged)
		show_findings(run, shown);
	if (!shown->finished)
		show_displays(run, shown);
}

static void on_look(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;

	if (!run->paused)
		run_show_now(run);
}

void run_show(struct run *run, const struct run_showing *showing, void *user)
{
	const struct timeval pace = {0, SHOW_MS * 1000};

	run->shown = calloc(1, sizeof *run->shown);
	if (!run->shown)
		return;
	run->shown->showing = showing;
	run->shown->user = user;
	run->shown->judged = run->session != NULL;
	run->shown->finished = run->session && run->request->file_count > 0;
	run->shown->event = event_new(run->engine->base, -1, EV_PERSIST, on_look, run);
	if (run->shown->event)
		event_add(run->shown->event, &pace);
}

void run_show_end(struct run *run)
{
	if (!run->shown)
		return;
	if (run->shown->event)
		event_free(run->shown->event);
	free(run->shown);
	run->shown = NULL;
}
