/* SPDX-License-Identifier: Apache-2.0 */
/* pool: cells of one kind, and the claims that wait for them.
 *
 * Theory of operation. A claim takes a parked cell if there is one with the
 * disk that it asks for (a tmpfs keeps the size that it was made with; all
 * other limits are set when the run starts). If not, a cell is made at once,
 * and the first that parks goes to the claim that waited longest.
 *
 * A daemon's pools are filled again behind: one cell at a time, with little
 * weight until it is parked, and only when no claim waits. How many are parked
 * is the pool's target; it grows by half, once a second at most, when a claim
 * found none, and shrinks by one when for a while half were never needed. A template is
 * replaced by a new one that is loaded first; its parked cells go one by one as
 * cells of the new one take their places. The pools of a cold engine keep
 * nothing: their target is zero. */
#include "warden/warden.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFILL_DELAY_US 2000 /* a run that just began goes first */
#define RETRY_US        50000
#define RETRY_MAX_US    5000000
#define GROW_AFTER_US   1000000
#define SHRINK_AFTER_US 30000000

static bool is_default_disk(const struct cell *cell)
{
	return cell->limits.disk_bytes == limits_default().disk_bytes;
}

static bool keeps_cells(const struct pool *pool)
{
	return pool->most > 0;
}

uint64_t pool_memory_of_all(const struct warden *warden)
{
	const struct template *template;
	const struct cell *cell;
	const struct pool *pool;
	uint64_t total = 0;

	TAILQ_FOREACH(template, &warden->templates, entry)
	total += template->memory_bytes;
	TAILQ_FOREACH(pool, &warden->pools, entry)
	TAILQ_FOREACH(cell, &pool->parked, parked_entry)
	total += cell->baseline_bytes;
	return total;
}

static void unpool(struct cell *cell)
{
	struct pool *pool = cell->pool;

	if (!cell->pooled)
		return;
	cell->pooled = false;
	TAILQ_REMOVE(&pool->parked, cell, parked_entry);
	if (--pool->parked_count < pool->parked_least)
		pool->parked_least = pool->parked_count;
}

static void put_away(struct cell *cell)
{
	unpool(cell);
	cell_kill(cell, ENDING_KILLED, 0);
}

/* Cells of templates that were replaced are parked behind the current ones. */
static unsigned parked_of_current(const struct pool *pool)
{
	const struct cell *cell;
	unsigned count = 0;

	TAILQ_FOREACH(cell, &pool->parked, parked_entry)
	{
		if (cell->template != pool->current)
			break;
		count++;
	}
	return count;
}

static int need_template(struct pool *pool, struct error *err)
{
	if (pool->current)
		return 0;
	pool->current = template_start(pool, err);
	return pool->current ? 0 : -err->number;
}

struct template *pool_template(struct pool *pool, struct error *err)
{
	pool->used_us = now_us();
	return need_template(pool, err) == 0 ? pool->current : NULL;
}

static void refill_soon(struct pool *pool, int64_t us)
{
	if (keeps_cells(pool) && !evtimer_pending(pool->refill, NULL))
		set_timer(pool->refill, us);
}

static void make_cell(struct pool *pool, const struct limits *limits, bool behind,
		      struct error *err)
{
	if (need_template(pool, err) == 0 && cell_make(pool->current, limits, behind, NULL, err))
		pool->making++;
}

static void on_refill(evutil_socket_t fd, short what, void *argument)
{
	const struct limits limits = limits_default();
	struct pool *pool = argument;
	struct warden *warden = pool->warden;
	struct error err = {0};

	if (warden->draining || pool->making > 0 || parked_of_current(pool) >= pool->target ||
	    now_us() < pool->retry_us || !TAILQ_EMPTY(&pool->waiting))
		return;
	if (warden->serving.memory_bytes && pool->parked_count >= pool->least &&
	    pool_memory_of_all(warden) >= warden->serving.memory_bytes)
		return;
	make_cell(pool, &limits, true, &err);
	if (err.number)
		pool->retry_us = now_us() + RETRY_US;
}

struct pool *pool_make(struct warden *warden, const char *name, const struct bytes *modules,
		       struct error *err)
{
	struct pool *pool = calloc(1, sizeof *pool);

	if (!pool) {
		fail(err, ENOMEM, "warden: pool");
		return NULL;
	}
	pool->warden = warden;
	snprintf(pool->name, sizeof pool->name, "%s", name);
	TAILQ_INIT(&pool->parked);
	TAILQ_INIT(&pool->waiting);
	pool->refill = warden_event(warden, -1, 0, PRIORITY_BEHIND, on_refill, pool);
	if (!pool->refill || bytes_append(&pool->modules, modules->data, modules->length) < 0) {
		fail(err, ENOMEM, "warden: pool");
		free_event(&pool->refill);
		free(pool);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&warden->pools, pool, entry);
	return pool;
}

struct pool *pool_get(struct warden *warden, const struct bytes *modules, struct error *err)
{
	struct pool *pool;

	TAILQ_FOREACH(pool, &warden->pools, entry)
	if (pool->modules.length == modules->length &&
	    (modules->length == 0 ||
	     memcmp(pool->modules.data, modules->data, modules->length) == 0))
		return pool;
	return pool_make(warden, "", modules, err);
}

/* The next line of a list of modules, from *at on. */
static bool next_module(const struct bytes *modules, size_t *at, struct span *ret_module)
{
	const uint8_t *from = modules->data + *at, *end;

	if (*at >= modules->length)
		return false;
	end = memchr(from, '\n', modules->length - *at);
	*ret_module = (struct span){from, (size_t)(end - from)};
	*at += ret_module->length + 1;
	return true;
}

static bool has_module(const struct bytes *modules, struct span wanted)
{
	struct span module;
	size_t at = 0;

	while (next_module(modules, &at, &module))
		if (module.length == wanted.length &&
		    memcmp(module.data, wanted.data, wanted.length) == 0)
			return true;
	return false;
}

static unsigned covered(const struct pool *pool, const struct bytes *wanted, unsigned *ret_size)
{
	struct span module;
	unsigned count = 0;
	size_t at = 0;

	while (next_module(wanted, &at, &module))
		count += has_module(&pool->modules, module);
	*ret_size = 0;
	for (at = 0; next_module(&pool->modules, &at, &module);)
		++*ret_size;
	return count;
}

struct pool *pool_choose(struct warden *warden, struct span name, const struct bytes *modules,
			 struct error *err)
{
	struct pool *pool, *best = NULL;
	unsigned best_count = 0, best_size = 0;
	char names[200] = "";

	TAILQ_FOREACH(pool, &warden->pools, entry)
	{
		unsigned size, count = covered(pool, modules, &size);
		size_t used = strlen(names);

		snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", pool->name);
		if (name.length > 0) {
			if (span_equals(name, pool->name))
				return pool;
		} else if (!best || count > best_count ||
			   (count == best_count && size < best_size)) {
			best = pool;
			best_count = count;
			best_size = size;
		}
	}
	if (!best)
		refuse(err, EINVAL, "template \"%.*s\": there is auto, %s",
		       (int)(name.length < 40 ? name.length : 40), (const char *)name.data, names);
	return best;
}

/* Those that wait get their cells in their order, and a burst of them a few at a time:
 * what is asked of the template and the keeper must fit into their sockets. */
static void make_for_waiting(struct pool *pool)
{
	struct claim *claim = TAILQ_FIRST(&pool->waiting);

	while (claim && pool->making < POOL_MAKING_MAX) {
		struct error err = {0};

		if (claim->asked) {
			claim = TAILQ_NEXT(claim, turn);
			continue;
		}
		claim->asked = true;
		make_cell(pool, &claim->limits, false, &err);
		if (err.number) {
			TAILQ_REMOVE(&pool->waiting, claim, turn);
			claim_fail(claim, EPROTO, err.text);
			claim = NULL; /* which may have changed the list */
		}
		claim = claim ? TAILQ_NEXT(claim, turn) : TAILQ_FIRST(&pool->waiting);
	}
}

/* Gives a parked cell to a claim that was waiting. */
static void give(struct pool *pool, struct cell *cell, struct claim *claim)
{
	pool->used_us = now_us();
	/* A cold engine's only run: its template's memory is free for it. */
	if (claim->single && !keeps_cells(pool) && cell->template == pool->current)
		template_dismiss(cell->template);
	cell_give(cell, claim);
}

/* A claim found none. */
static void grow(struct pool *pool)
{
	unsigned target = pool->target * 3 / 2 + 1;
	int64_t now = now_us();

	pool->missed = true;
	if (pool->target >= pool->least && now - pool->grown_us < GROW_AFTER_US)
		return;
	pool->grown_us = now;
	if (target < pool->least)
		target = pool->least;
	pool->target = target < pool->most ? target : pool->most;
}

void pool_take(struct pool *pool, struct claim *claim)
{
	struct cell *cell;

	pool->used_us = now_us();
	TAILQ_FOREACH(cell, &pool->parked, parked_entry)
	if (cell->limits.disk_bytes == claim->limits.disk_bytes)
		break;
	if (cell) {
		pool->hits++;
		unpool(cell);
		cell->warm = true;
		give(pool, cell, claim);
		refill_soon(pool, pool->parked_count > 0 ? REFILL_DELAY_US : 0);
		return;
	}
	pool->misses++;
	pool->warden->missed_total++;
	if (!pool->current && pool->failures > 0 && now_us() < pool->retry_us) {
		claim_fail(claim, EPROTO, pool->why);
		return;
	}
	grow(pool);
	TAILQ_INSERT_TAIL(&pool->waiting, claim, turn);
	make_for_waiting(pool);
}

static struct claim *first_waiting(struct pool *pool, uint64_t disk_bytes)
{
	struct claim *claim;

	TAILQ_FOREACH(claim, &pool->waiting, turn)
	if (claim->limits.disk_bytes == disk_bytes)
		break;
	return claim;
}

void pool_cell_parked(struct cell *cell)
{
	struct pool *pool = cell->pool;
	struct claim *claim = first_waiting(pool, cell->limits.disk_bytes);
	struct cell *oldest = TAILQ_LAST(&pool->parked, pooled_cells);

	pool->making--;
	template_release(cell->template); /* it may have waited for this one */
	if (claim) {
		TAILQ_REMOVE(&pool->waiting, claim, turn);
		give(pool, cell, claim);
	} else if (!keeps_cells(pool) || !is_default_disk(cell) || cell->template->dead) {
		cell_kill(cell, ENDING_KILLED, 0);
	} else {
		cell->pooled = true;
		if (cell->template == pool->current)
			TAILQ_INSERT_HEAD(&pool->parked, cell, parked_entry);
		else
			TAILQ_INSERT_TAIL(&pool->parked, cell, parked_entry);
		pool->parked_count++;
		if (pool->parked_count > pool->target && oldest)
			put_away(oldest);
		warden_pool_ready(pool->warden);
	}
	make_for_waiting(pool);
	refill_soon(pool, 0);
}

/* Whose cell this was: of those that wait the first that was not helped yet, so that of many
 * cells that are lost together each costs another its one retry. */
static struct claim *waits_in_vain(struct pool *pool, uint64_t disk_bytes)
{
	struct claim *claim;

	TAILQ_FOREACH(claim, &pool->waiting, turn)
	if (claim->limits.disk_bytes == disk_bytes && !claim->retried)
		return claim;
	return first_waiting(pool, disk_bytes);
}

void pool_cell_lost(struct cell *cell)
{
	struct pool *pool = cell->pool;
	struct claim *claim;
	struct error err = {0};

	if (cell->state >= CELL_PARKED) {
		unpool(cell);
		refill_soon(pool, 0);
		return;
	}
	pool->making--;
	claim = waits_in_vain(pool, cell->limits.disk_bytes);
	if (!claim) {
		snprintf(pool->why, sizeof pool->why, "%s", cell->why);
		if (!pool->current || !pool->current->dead)
			warden_pool_failed(pool->warden, pool->why);
		pool->retry_us = now_us() + RETRY_US;
		refill_soon(pool, RETRY_US);
		return;
	}
	/* A daemon's template may have been killed: the claim waits for another. */
	if (keeps_cells(pool) && !claim->retried && pool->failures == 0) {
		claim->retried = true;
		make_cell(pool, &claim->limits, false, &err);
		if (!err.number)
			return;
	}
	TAILQ_REMOVE(&pool->waiting, claim, turn);
	claim_fail(claim, EPROTO, cell->why[0] ? cell->why : "the cell could not be made");
	make_for_waiting(pool);
}

void pool_template_loaded(struct template *template)
{
	struct pool *pool = template->pool;

	pool->failures = 0;
	pool->retry_us = 0;
	if (template == pool->next) {
		pool->next = NULL;
		if (pool->current)
			template_dismiss(pool->current);
		pool->current = template;
	}
	refill_soon(pool, 0);
	warden_pool_ready(pool->warden);
}

void pool_template_died(struct template *template)
{
	struct pool *pool = template->pool;
	int64_t delay = RETRY_US << (pool->failures < 7 ? pool->failures : 7);

	if (template != pool->current && template != pool->next)
		return; /* it was dismissed */
	if (template == pool->next)
		pool->next = NULL;
	else
		pool->current = NULL;
	if (!keeps_cells(pool))
		return;
	/* What it says itself begins with its name. */
	if (strncmp(template->why, "template ", strlen("template ")) == 0)
		snprintf(pool->why, sizeof pool->why, "%s", template->why);
	else
		snprintf(pool->why, sizeof pool->why, "template %s: %.200s", pool->name,
			 template->why);
	if (!template->loaded) {
		pool->failures++;
		warden_pool_failed(pool->warden, pool->why);
	}
	if (delay > RETRY_MAX_US)
		delay = RETRY_MAX_US;
	pool->retry_us = pool->failures > 0 ? now_us() + delay : 0;
	refill_soon(pool, pool->failures > 0 ? delay : 0);
}

static void drop(struct pool *pool)
{
	while (!TAILQ_EMPTY(&pool->parked))
		put_away(TAILQ_FIRST(&pool->parked));
	if (pool->next)
		template_dismiss(pool->next);
	if (pool->current)
		template_dismiss(pool->current);
	pool->current = pool->next = NULL;
}

static void adapt(struct pool *pool, int64_t now)
{
	if (!pool->missed && pool->parked_least > pool->target / 2 && pool->target > pool->least)
		pool->target--;
	pool->missed = false;
	pool->parked_least = pool->parked_count;
	pool->adapted_us = now;
	while (pool->parked_count > pool->target)
		put_away(TAILQ_LAST(&pool->parked, pooled_cells));
}

void pool_tick(struct pool *pool)
{
	const struct daemon_numbers *serving = &pool->warden->serving;
	struct template *current = pool->current;
	struct error err = {0};
	int64_t now = now_us();

	if (!keeps_cells(pool) || pool->warden->draining)
		return;
	if (now - pool->adapted_us >= SHRINK_AFTER_US)
		adapt(pool, now);
	if (!current || !current->loaded)
		;
	else if (serving->idle_ms && pool->warden->open && pool->making == 0 &&
		 TAILQ_EMPTY(&pool->waiting) &&
		 now - pool->used_us > (int64_t)serving->idle_ms * 1000) {
		pool->target = 0;
		drop(pool);
		return;
	} else if (!pool->next && now >= pool->retry_us &&
		   ((serving->rotate_cells && current->forked >= serving->rotate_cells) ||
		    (serving->rotate_ms &&
		     now - current->loaded_us > (int64_t)serving->rotate_ms * 1000)))
		pool->next = template_start(pool, &err);
	refill_soon(pool, 0);
}
