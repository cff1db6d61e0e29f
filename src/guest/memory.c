/* SPDX-License-Identifier: Apache-2.0 */
/* memory: a template's memory, laid out so that forking it is cheap and that a
 * cell writes to few of its pages.
 *
 * Theory of operation. A fork copies an entry for every small page and a record
 * for every mapping; a huge page is one entry. So CPython's arenas come from one
 * aligned region, and when the template has settled, region and heap are made of
 * huge pages where the kernel can (MADV_COLLAPSE, Linux 6.1).
 *
 * A cell copies every page that it writes to. What it allocates would go into
 * holes that the template's life left all over its memory; so these are used up
 * before the first fork, and what a cell allocates lies side by side. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* CPython's own numbers (Objects/obmalloc.c); were they others, less would be won. */
#define ARENA_BYTES  ((size_t)1 << 20)
#define POOL_BYTES   ((size_t)16 << 10)
#define POOL_HEADER  48
#define HUGE_PAGE    ((size_t)2 << 20)
/* For the arenas of a template; what is more comes from anywhere. */
#define REGION_BYTES ((size_t)256 << 20)

static uint8_t *region, *region_next, *region_end;
static void *returned[64]; /* arenas of the region that are free again */
static size_t returned_count;
static bool settled;
static unsigned arenas; /* ever given out */

static void *arena_alloc(void *context, size_t size)
{
	void *arena;

	/* Frames' stacks come from here, too, in smaller pieces. */
	if (size == ARENA_BYTES) {
		arenas++;
		if (returned_count > 0)
			return returned[--returned_count];
		if (!settled && region_next < region_end) {
			arena = region_next;
			region_next += size;
			return arena;
		}
	}
	arena = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arena == MAP_FAILED ? NULL : arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
	bool within = (uint8_t *)arena >= region && (uint8_t *)arena < region_end;

	if (within && returned_count < ARRAY_LENGTH(returned) &&
	    madvise(arena, size, MADV_DONTNEED) == 0)
		returned[returned_count++] = arena;
	else
		munmap(arena, size);
}

void memory_prepare(void)
{
	PyObjectArenaAllocator allocator = {.alloc = arena_alloc, .free = arena_free};
	uint8_t *whole = mmap(NULL, REGION_BYTES + HUGE_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t ahead;

	if (whole == MAP_FAILED)
		return;
	ahead = (HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE) % HUGE_PAGE;
	if (ahead > 0)
		munmap(whole, ahead);
	if (ahead < HUGE_PAGE)
		munmap(whole + ahead + REGION_BYTES, HUGE_PAGE - ahead);
	region = region_next = whole + ahead;
	region_end = region + REGION_BYTES;
	PyObject_SetArenaAllocator(&allocator);
}

/* Takes free blocks of CPython's until one comes out of an arena that is new, and
 * of each size class until the next one begins a page of its own. They are never
 * given back. */
static void use_up_pools(void)
{
	unsigned before = arenas;

	for (size_t taken = 0; arenas == before && taken < REGION_BYTES; taken += 512)
		if (!PyObject_Malloc(512))
			return;
	for (size_t size = 16; size < 512; size += 16)
		for (size_t taken = 0, in_row = 0;
		     taken < REGION_BYTES && in_row + size <= POOL_BYTES - POOL_HEADER;
		     taken += size) {
			static uint8_t *last;
			uint8_t *block = PyObject_Malloc(size);

			if (!block)
				return;
			in_row = block == last + size ? in_row + size : size;
			last = block;
		}
}

/* The same of malloc(): every chunk below the top of the heap. */
static void use_up_heap(void)
{
	struct mallinfo2 info = mallinfo2();
	uint8_t *top = (uint8_t *)sbrk(0) - info.keepcost;

	for (size_t size = 64 * 1024; size >= 24; size -= size > 1032 ? size / 2 : 16)
		for (size_t taken = 0; taken < REGION_BYTES; taken += size) {
			uint8_t *chunk = malloc(size);

			if (!chunk || chunk >= top)
				break;
		}
	/* Room for what a cell wants first. */
	free(malloc(100 * 1024));
}

/* Private memory without a file, as whole huge pages. */
static void collapse(uint8_t *from, const uint8_t *to)
{
	from += (HUGE_PAGE - (uintptr_t)from % HUGE_PAGE) % HUGE_PAGE;
	for (; from + HUGE_PAGE <= to; from += HUGE_PAGE)
		if (madvise(from, HUGE_PAGE, MADV_COLLAPSE) < 0 && errno == EINVAL)
			return;
}

void memory_settle(bool thoroughly)
{
	uint8_t *end;

	if (thoroughly && LEFT_OUT != MEASURE_FILLED_HOLES) {
		use_up_pools();
		use_up_heap();
	}
	settled = true;
	if (region) {
		/* Else a cell could have it all although nothing more was granted. */
		end = region_next + (HUGE_PAGE - (uintptr_t)region_next % HUGE_PAGE) % HUGE_PAGE;
		if (end < region_end)
			munmap(end, (size_t)(region_end - end));
		region_end = end;
	}
	if (thoroughly && LEFT_OUT != MEASURE_HUGE_PAGES) {
		collapse(region, region_end);
		collapse((uint8_t *)sbrk(0) - mallinfo2().arena, sbrk(0));
	}
}
