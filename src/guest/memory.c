/* SPDX-License-Identifier: Apache-2.0 */
/* memory: a template's memory, laid out so that forking it is cheap and that a
 * cell writes to few of its pages.
 *
 * Theory of operation. A fork copies an entry for every small page and a record
 * for every mapping; a huge page is one entry. So CPython's arenas come from one
 * aligned region, and when the template has settled, region and heap are made of
 * huge pages where the kernel can (MADV_COLLAPSE, Linux 6.1).
 *
 * What maps a file is not copied by a fork. So the interpreter's own code, which
 * every cell runs at once, is moved into huge pages, too.
 *
 * A cell copies every page that it writes to. What it allocates would go into
 * holes that the template's life left all over its memory; so these are used up
 * before the first fork, and what a cell allocates lies side by side. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <link.h>
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

/* Private memory that begins where a huge page may, or NULL. */
static uint8_t *map_aligned(size_t length)
{
	uint8_t *whole = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *aligned;
	size_t ahead;

	if (whole == MAP_FAILED)
		return NULL;
	ahead = (HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE) % HUGE_PAGE;
	aligned = whole + ahead;
	munmap(aligned + length, HUGE_PAGE - ahead);
	if (ahead > 0)
		munmap(whole, ahead);
	return aligned;
}

void memory_prepare(void)
{
	PyObjectArenaAllocator allocator = {.alloc = arena_alloc, .free = arena_free};

	region = region_next = map_aligned(REGION_BYTES);
	if (!region)
		return;
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

struct program {
	uintptr_t from, to;
};

/* What of the library, or program, that holds the interpreter is never written to: from
 * its first byte, without a gap. */
static int find_interpreter(struct dl_phdr_info *object, size_t size, void *user)
{
	uintptr_t inside = (uintptr_t)&Py_CompileString, page = (uintptr_t)getpagesize();
	struct program found = {0}, *ret_program = user;

	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		if (part->p_flags & PF_W || (found.to && from - found.to >= page))
			break;
		if (found.to == 0)
			found.from = from;
		found.to = from + part->p_memsz;
	}
	if (inside < found.from || inside >= found.to)
		return 0;
	*ret_program = found;
	return 1;
}

/* A fork leaves out the entries of what maps a file, and a cell then takes a fault for
 * every few pages of the interpreter's code and constants. As far as these fill huge
 * pages they are moved into some of the template's own, whose entries are copied. */
static void make_interpreter_huge(void)
{
	struct program program = {0};
	uint8_t *copy;
	size_t length;

	if (dl_iterate_phdr(find_interpreter, &program) != 1)
		return;
	program.from = (program.from + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	program.to = program.to / HUGE_PAGE * HUGE_PAGE;
	if (program.to <= program.from)
		return;
	length = program.to - program.from;
	copy = map_aligned(length);
	if (!copy)
		return;
	madvise(copy, length, MADV_HUGEPAGE);
	memcpy(copy, (const void *)program.from, length);
	/* In small pages it would cost more than it gives. */
	if (madvise(copy, length, MADV_COLLAPSE) < 0 ||
	    mprotect(copy, length, PROT_READ | PROT_EXEC) < 0) {
		munmap(copy, length);
		return;
	}
	if (mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)program.from) ==
	    MAP_FAILED)
		abort(); /* what was there may be gone */
	__builtin___clear_cache((char *)program.from, (char *)program.to);
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
	if (thoroughly && LEFT_OUT != MEASURE_HUGE_INTERPRETER)
		make_interpreter_huge();
	if (thoroughly && LEFT_OUT != MEASURE_HUGE_PAGES) {
		collapse(region, region_end);
		collapse((uint8_t *)sbrk(0) - mallinfo2().arena, sbrk(0));
	}
}
