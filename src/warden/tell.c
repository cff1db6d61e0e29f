/* SPDX-License-Identifier: Apache-2.0 */
/* tell: what a client is told of its cell, and when.
 *
 * A client has nothing to do with a cell that runs already until there is output to
 * read, and most runs are over before that. So when the code came with the request the
 * client is told of the cell OFFER_DELAY_MS later, or, if the run ends before, of both
 * in one message: it sleeps until then, and leaves its processor to the cell. */
#include "warden/warden.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

/* What its client is told of the cell, and the descriptors that it gets. */
static size_t put_cell(const struct cell *cell, struct bytes *frame, int fds[CELL_FD_COUNT + 1])
{
	const int given[CELL_FD_COUNT] = {cell->mailbox,  cell->verdict,  cell->stdio[0],
					  cell->stdio[1], cell->stdio[2], cell->workspace};
	size_t count = CELL_FD_COUNT;

	memcpy(fds, given, sizeof given);
	if (cell->session && cell->session->listing >= 0)
		fds[count++] = cell->session->listing;
	if (cell->session)
		frame_put_number(frame, FIELD_RUN, cell->session->runs + !cell->claim->started);
	frame_put_number(frame, FIELD_WARM, cell->warm);
	frame_put_number(frame, FIELD_WAIT_US, (uint64_t)cell->claim->waited_us);
	if (cell->pool->name[0])
		frame_put_text(frame, FIELD_NAME, cell->pool->name);
	return count;
}

void tell_cell(struct cell *cell)
{
	int fds[CELL_FD_COUNT + 1];
	autobytes frame = {0};
	size_t at, count;

	if (!cell->claim || cell->claim->offered)
		return;
	at = frame_begin(&frame, MESSAGE_CELL, cell->claim->id);
	count = put_cell(cell, &frame, fds);
	frame_end(&frame, at);
	client_say(cell->claim->client, &frame, fds, count);
	/* The end of the input is the engine's to make. */
	close_fd(&cell->stdio[0]);
	cell->claim->offered = true;
}

static void put_end(struct cell *cell, struct bytes *frame)
{
	frame_put_number(frame, FIELD_ENDING, cell->ending);
	frame_put_number(frame, FIELD_REASON, cell->reason);
	if (cell->has_status)
		frame_put_number(frame, FIELD_STATUS, (uint64_t)cell->status);
	frame_put_number(frame, FIELD_WALL_US, (uint64_t)(cell->ended_us - cell->started_us));
	frame_put_number(frame, FIELD_CPU_US, cell->usage.cpu_us);
	frame_put_number(frame, FIELD_MEMORY_PEAK, cell->usage.memory_peak_bytes);
	frame_put_number(frame, FIELD_PROCESSES_PEAK, cell->usage.processes_peak);
	frame_put_number(frame, FIELD_DISK_FULL, usage_disk_full(cell));
	frame_put_number(frame, FIELD_SAMPLED, !cell->warden->cgroups.has_memory);
	if (cell->ending == ENDING_ANOMALY) {
		frame_put_text(frame, FIELD_EVENT, cell->event);
		frame_put_text(frame, FIELD_DETAIL, cell->detail);
	}
	bytes_append(frame, cell->notes.data, cell->notes.length);
	if (cell->claim->session)
		session_put_end(cell->claim->session, frame);
}

void tell_ended(struct cell *cell)
{
	struct claim *claim = cell->claim;
	int fds[CELL_FD_COUNT + 1];
	autobytes frame = {0};
	size_t at, count = 0;

	if (!claim)
		return;
	if (cell->ending == ENDING_FAILED) {
		tell_cell(cell);
	} else {
		at = frame_begin(&frame, claim->offered ? MESSAGE_ENDED : MESSAGE_CELL, claim->id);
		if (!claim->offered)
			count = put_cell(cell, &frame, fds);
		put_end(cell, &frame);
		frame_end(&frame, at);
	}
	bytes_clear(&cell->notes);
	cell->claim = NULL;
	claim->cell = NULL;
	claim->ended = true;
	if (cell->ending == ENDING_FAILED) {
		claim_fail(claim, EPROTO, cell->why);
		return;
	}
	client_say(claim->client, &frame, fds, count);
	/* A session's is held until its files are collected. */
	if (!claim->session || !cell->session)
		claim_end(claim);
}
