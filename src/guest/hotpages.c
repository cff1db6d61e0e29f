/* SPDX-License-Identifier: Apache-2.0 */
/* hotpages: the pages that every run of a session writes to, copied before it.
 *
 * Theory of operation. Behind each run the runner forks a checkpoint, and from then
 * on shares every page with it: the next run would stop at each page that it writes
 * to for the first time, some 160 times for `x += 1`, to have it copied. Most of them
 * are the interpreter's own and the same from run to run. So they are copied in one
 * go, behind the fork, when nobody waits.
 *
 * Which they are is learnt from what belongs to the runner alone when the next
 * checkpoint is to be made: it was written to since the last, or, before the first
 * one, since the runner was made and rehearsed. When a run stops at many pages in spite
 * of the help, the one behind it gets none, and shows what is needed now; less and less
 * often, where each run writes somewhere else. One that wrote to a lot shows nothing.
 *
 * All of this lies in memory that user code may have written to. It names addresses
 * of its own process to madvise(), which fails where nothing can be written: nothing
 * but speed depends on it. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* What the kernel says of a page (Documentation/admin-guide/mm/pagemap.rst). */
#define PAGE_PRESENT   (UINT64_C(1) << 63)
#define PAGE_OF_A_FILE (UINT64_C(1) << 61)
#define PAGE_EXCLUSIVE (UINT64_C(1) << 56)

struct pages {
	struct range {
		uintptr_t from, to;
	} ranges[HOT_RANGES_MAX];
	size_t count, total;
};

static struct {
	struct pages pages;
	bool learning;             /* what was written to now is what is needed */
	unsigned missed, patience; /* runs that stopped often; before it is learnt anew */
	long faults;               /* until the run began */
} hot = {.learning = true, .patience = 1};

static long count_faults(void)
{
	struct rusage used = {0};

	getrusage(RUSAGE_SELF, &used);
	return used.ru_minflt;
}

/* False when there are too many of them. */
static bool add_page(struct pages *pages, uintptr_t at, uintptr_t page_bytes)
{
	struct range *last = pages->count > 0 ? &pages->ranges[pages->count - 1] : NULL;

	if (++pages->total > HOT_PAGES_MAX)
		return false;
	if (last && last->to == at) {
		last->to += page_bytes;
		return true;
	}
	if (pages->count == HOT_RANGES_MAX)
		return false;
	pages->ranges[pages->count++] = (struct range){at, at + page_bytes};
	return true;
}

static bool look_at(int pagemap, uintptr_t from, uintptr_t to, struct pages *pages)
{
	static uint64_t entries[4096];
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	while (from < to) {
		size_t wanted = (to - from) / page_bytes;
		ssize_t r;

		if (wanted > ARRAY_LENGTH(entries))
			wanted = ARRAY_LENGTH(entries);
		r = pread(pagemap, entries, wanted * sizeof *entries,
			  (off_t)(from / page_bytes * sizeof *entries));
		if (r != (ssize_t)(wanted * sizeof *entries))
			return false;
		for (size_t i = 0; i < wanted; i++, from += page_bytes)
			if ((entries[i] & PAGE_PRESENT) && (entries[i] & PAGE_EXCLUSIVE) &&
			    !(entries[i] & PAGE_OF_A_FILE) && !add_page(pages, from, page_bytes))
				return false;
	}
	return true;
}

/* Mappings that are very large hold data of the user's. */
static void learn(void)
{
	static struct pages found;
	autofile *maps = fopen("/proc/self/maps", "re");
	autofd pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool within = maps && pagemap >= 0;
	uintptr_t looked_at = 0;
	char line[512];

	found.count = found.total = 0;
	while (within && fgets(line, sizeof line, maps)) {
		uintptr_t from, to;
		char rights[5];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) != 3 ||
		    rights[1] != 'w' || rights[3] != 'p' || to - from > HOT_MAPPING_BYTES_MAX)
			continue;
		looked_at += to - from;
		within = looked_at <= HOT_LOOK_BYTES_MAX && look_at(pagemap, from, to, &found);
	}
	if (within)
		hot.pages = found;
}

void hotpages_before_fork(void)
{
	if (hot.learning) {
		learn();
		hot.learning = false;
		return;
	}
	if (count_faults() - hot.faults <= HOT_FAULTS) {
		hot.missed = 0;
		hot.patience = 1;
		return;
	}
	if (++hot.missed < hot.patience)
		return;
	hot.missed = 0;
	hot.learning = true;
	if (hot.patience < HOT_PATIENCE_MAX)
		hot.patience *= 2;
}

void hotpages_after_fork(void)
{
	for (size_t i = 0; i < hot.pages.count && !hot.learning; i++) {
		const struct range *range = &hot.pages.ranges[i];

		madvise((void *)range->from, range->to - range->from, MADV_POPULATE_WRITE);
	}
	hot.faults = count_faults();
}
