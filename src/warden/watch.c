/* SPDX-License-Identifier: Apache-2.0 */
/* watch: what is done about what the watch of a cell reports.
 *
 * A notice keeps its caller asleep until it is answered. In `strict` and
 * `standard` the first that matters ends the run; the caller is never answered,
 * it dies where it stands. In `open` it is noted and the call fails. */
#include "warden/warden.h"

#include "base/cleanup.h"
#include "jail/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bounds the memory that a flood of notices can take. */
#define NOTES_MAX      16
#define NOTICES_A_TURN 64

/* What libraries start for themselves: platform.processor(), matplotlib,
 * ctypes.util. They find nothing that the code could not read anyway. */
static bool is_everyday_program(const char *path)
{
	static const char *const programs[] = {"uname", "fc-list", "ldconfig", "ldconfig.real",
					       "lscpu", "nproc",   "file"};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++)
		if (strcmp(name, programs[i]) == 0)
			return strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/bin/", 5) == 0 ||
			       strncmp(path, "/sbin/", 6) == 0;
	return false;
}

static bool is_anomaly(const struct cell *cell, const struct watch_notice *notice)
{
	/* What a session's run left behind is watched between runs, too. */
	bool left = cell->session && cell->state == CELL_PARKED && cell->session->runs > 0;

	if (notice->harmless || (cell->state < CELL_RUNNING && !left))
		return false;
	if (notice->event == WATCH_EXEC)
		return cell->watch_mode == WATCH_STRICT && !is_everyday_program(notice->detail);
	return true;
}

static void note(struct cell *cell, const struct watch_notice *notice)
{
	char text[WATCH_DETAIL_MAX + 64];
	struct reader fields = reader_of(bytes_span(&cell->notes));
	struct field field;
	size_t count = 0;

	snprintf(text, sizeof text, "%s: %s", watch_event_name(notice->event), notice->detail);
	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_NOTE &&
		    (++count == NOTES_MAX || span_equals(field.value, text)))
			return;
	frame_put_text(&cell->notes, FIELD_NOTE, text);
}

static void on_notice(evutil_socket_t listener, short what, void *argument)
{
	struct cell *cell = argument;

	for (int i = 0; i < NOTICES_A_TURN; i++) {
		struct watch_notice notice;
		bool anomaly;

		/* Before Linux 6.11 receiving waits forever when nobody has the filter
		 * any more, so it is asked for only what is there. */
		if (!watch_pending(listener)) {
			if (watch_hung_up(listener))
				event_del(cell->listener_event);
			return;
		}
		/* The caller was killed meanwhile, and others go on. */
		if (watch_receive(listener, &notice) != 1)
			continue;
		anomaly = is_anomaly(cell, &notice);
		if (anomaly && cell->watch_mode != WATCH_REPORT) {
			if (cell->state != CELL_RUNNING && cell->state != CELL_DRAINING &&
			    cell->state != CELL_PARKED)
				return; /* it is being ended already */
			snprintf(cell->event, sizeof cell->event, "%s",
				 watch_event_name(notice.event));
			snprintf(cell->detail, sizeof cell->detail, "%s", notice.detail);
			event_del(cell->listener_event);
			if (cell->state == CELL_PARKED)
				session_survives(cell, ENDING_ANOMALY, 0);
			else
				cell_stop(cell, ENDING_ANOMALY);
			return;
		}
		if (anomaly ||
		    (cell->probing && cell->state >= CELL_RUNNING && notice.event == WATCH_EXEC))
			note(cell, &notice);
		/* A port would open in a network without interfaces: not even that. */
		watch_answer(listener, &notice,
			     !anomaly || notice.event == WATCH_WRITE || notice.event == WATCH_EXEC);
	}
}

int watch_begin(struct cell *cell, int listener, struct error *err)
{
	cell->listener = listener;
	cell->listener_event = warden_event(cell->warden, listener, EV_READ | EV_PERSIST,
					    PRIORITY_RUN, on_notice, cell);
	if (!cell->listener_event)
		return refuse(err, ENOMEM, "warden: no event");
	return 0;
}
