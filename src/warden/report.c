/* SPDX-License-Identifier: Apache-2.0 */
/* report: how a daemon is, in numbers. */
#include "warden/warden.h"

#include "base/cleanup.h"

static void write_pool(const struct pool *pool, struct bytes *frame)
{
	autobytes body = {0};
	const struct cell *cell;
	uint64_t parked_bytes = 0, running = 0;

	TAILQ_FOREACH(cell, &pool->parked, parked_entry)
	parked_bytes += cell->baseline_bytes;
	TAILQ_FOREACH(cell, &pool->warden->cells, entry)
	running += cell->pool == pool && cell->claim != NULL;
	frame_put_text(&body, FIELD_NAME, pool->name);
	frame_put_number(&body, FIELD_POOL_MIN, pool->least);
	frame_put_number(&body, FIELD_POOL_MAX, pool->most);
	frame_put_number(&body, FIELD_POOL_TARGET, pool->target);
	frame_put_number(&body, FIELD_PARKED, pool->parked_count);
	frame_put_number(&body, FIELD_RUNS, running);
	frame_put_number(&body, FIELD_HITS, pool->hits);
	frame_put_number(&body, FIELD_MISSES, pool->misses);
	frame_put_number(&body, FIELD_SIZE, parked_bytes);
	if (pool->current && pool->current->loaded) {
		frame_put_number(&body, FIELD_MEMORY_PEAK, pool->current->memory_bytes);
		frame_put_number(&body, FIELD_COUNT, pool->current->forked);
		frame_put_number(&body, FIELD_WALL_US,
				 (uint64_t)(now_us() - pool->current->loaded_us));
	} else if (pool->why[0]) {
		frame_put_text(&body, FIELD_NOTE, pool->why);
	}
	frame_put(frame, FIELD_TEMPLATE, body.data, body.length);
}

void report_write(struct warden *warden, struct bytes *frame)
{
	const struct pool *pool;

	frame_put_text(frame, FIELD_CGROUP, cgroup_mode_name(warden->cgroups.mode));
	frame_put_number(frame, FIELD_WALL_US, (uint64_t)(now_us() - warden->started_us));
	frame_put_number(frame, FIELD_PID, (uint64_t)getpid());
	/* The owner is no client, and neither is who asks. */
	frame_put_number(frame, FIELD_CLIENTS, warden->client_count - 2);
	frame_put_number(frame, FIELD_SESSIONS, warden->session_count);
	frame_put_number(frame, FIELD_RUNS, warden->running);
	frame_put_number(frame, FIELD_QUEUE, warden->queued);
	frame_put_number(frame, FIELD_COUNT, warden->runs_total);
	frame_put_number(frame, FIELD_MISSES, warden->missed_total);
	frame_put_number(frame, FIELD_REFUSED, warden->refused_total);
	frame_put_number(frame, FIELD_MEMORY_PEAK, pool_memory_of_all(warden));
	frame_put_number(frame, FIELD_SIZE, warden->serving.memory_bytes);
	TAILQ_FOREACH(pool, &warden->pools, entry)
	if (pool->most > 0)
		write_pool(pool, frame);
}
