/* SPDX-License-Identifier: Apache-2.0 */
/* image: how a session is branched: a process that becomes another one.
 *
 * Theory of operation. A process that ran user code can neither enter other
 * namespaces nor fork into them: that needs a capability, which memory that a
 * stranger wrote must never hold. So nothing of the session enters the branch but
 * bytes. A branch is a fresh cell, forked from the very same template, and confined
 * before a byte comes in; one process of it then takes over the memory of the
 * session's checkpoint.
 *
 * Both descend from one template by fork alone: their code lies at the same
 * addresses, and most of their pages are still the template's. What the template
 * held is remembered by a 64-bit number a page, taken before the first session was
 * forked. The receiver tells which of its own pages are not like that any more; the
 * sender sends these, and those that it has changed itself; all others are equal on
 * both sides, and stay shared with the template. What else a process is (mappings,
 * descriptors, what signals do) is told as a list and made anew.
 *
 * The sender is parked in a function of ours (checkpoint.c), with one thread. Where
 * it stands is a ucontext_t in the message; the receiver ends by going there.
 *
 *   checkpoint ─ pipe ─▶ judge ─ pipe ─▶ a fresh process of the branch's cell
 *    image_send.c         branch.c        image_take.c
 *
 * The sender's memory may hold anything: what it sends decides what is in the
 * receiver's memory, and nothing else. The receiver reads it as strangers' bytes, and
 * a receiver that was overcome by them has no more than user code has in any cell.
 *
 * Both sides work in an area of their own that is not part of what is carried over,
 * and call nothing there that could change other memory. */
#include "guest/image.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct image_area image_area;

/* A private mapping that the template had. */
struct origin {
	uintptr_t from, to;
	uint64_t offset, device, inode;
	size_t first; /* its first page's number */
};

static struct {
	struct origin *origins;
	uint64_t *numbers; /* of pages; 0: nothing was there */
	size_t count;
} remembered;

size_t image_page(void)
{
	return (size_t)getpagesize();
}

bool image_in_area(uintptr_t from, uintptr_t to)
{
	uintptr_t begin = (uintptr_t)&image_area;

	return from < begin + sizeof image_area && to > begin;
}

static bool is_near(uintptr_t page, uintptr_t place)
{
	size_t size = image_page();

	return page + 2 * size > place && page < place + 2 * size;
}

bool image_is_the_threads(uintptr_t page)
{
	return is_near(page, (uintptr_t)pthread_self()) || is_near(page, (uintptr_t)&errno);
}

/* With the shift no bit only ever moves up, so that equal changes in two places, such as
 * of signs, do not cancel. */
static inline uint64_t mix(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return lane ^ lane >> 32;
}

/* Not 0. In four lanes, since a multiplication waits for the one before. The page behind
 * is fetched meanwhile: the processor does not look beyond a page by itself. */
static uint64_t number_of(const void *page)
{
	const uint64_t *words = page, *end = words + image_page() / sizeof *words;
	uint64_t a = 1, b = 2, c = 3, d = 4, sum;

	for (; words < end; words += 8) {
		__builtin_prefetch(words + (end - (const uint64_t *)page));
		a = mix(a, words[0]);
		b = mix(b, words[1]);
		c = mix(c, words[2]);
		d = mix(d, words[3]);
		a = mix(a, words[4]);
		b = mix(b, words[5]);
		c = mix(c, words[6]);
		d = mix(d, words[7]);
	}
	sum = mix(mix(mix(a, b), c), d);
	return sum ? sum : 1;
}

int image_look(uintptr_t from, size_t pages)
{
	size_t wanted = pages * sizeof image_area.entries[0];

	if (image_area.pagemap <= 0)
		image_area.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (image_area.pagemap < 0)
		return -errno;
	return pread(image_area.pagemap, image_area.entries, wanted,
		     (off_t)(from / image_page() * sizeof image_area.entries[0])) == (ssize_t)wanted
		       ? 0
		       : -EIO;
}

void image_look_end(void)
{
	if (image_area.pagemap > 0)
		close(image_area.pagemap);
	image_area.pagemap = 0;
}

/* --- the mappings of a process ------------------------------------------------ */

static uint64_t take_number(char **at, int base)
{
	uint64_t number = strtoull(*at, at, base);

	if (**at)
		++*at; /* what stands behind it */
	return number;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static void tell_kind(struct image_mapping *mapping, const char *path, bool shared)
{
	size_t size;

	mapping->descriptor = -1;
	mapping->stack = strcmp(path, "[stack]") == 0;
	mapping->nameless = ends_with(path, " (deleted)");
	if (mapping->from == (uintptr_t)outbox_place(&size) && shared)
		mapping->kind = IMAGE_MAILBOX;
	else if (strncmp(path, "[v", 2) == 0)
		mapping->kind = IMAGE_KERNEL;
	else if (path[0] == '[' || !path[0])
		mapping->kind = IMAGE_ANONYMOUS;
	else if (!shared)
		mapping->kind = IMAGE_FILE;
	else if (strcmp(path, "/dev/zero (deleted)") == 0)
		mapping->kind = IMAGE_SHARED_ANONYMOUS;
	else
		mapping->kind = IMAGE_SHARED_FILE;
}

/* A line of /proc/self/maps: from-to rwxp offset major:minor inode path */
static int take_line(struct image_layout *layout, char *line, const char **ret_why)
{
	struct image_mapping *mapping = &layout->mappings[layout->count];
	uint64_t major;
	char *at = line;
	size_t length;
	bool shared;

	if (layout->count == BRANCH_MAPPINGS_MAX) {
		*ret_why = "its memory is in too many pieces";
		return -E2BIG;
	}
	*mapping = (struct image_mapping){0};
	mapping->from = take_number(&at, 16);
	mapping->to = take_number(&at, 16);
	if (strlen(at) < 5) {
		*ret_why = "what is mapped cannot be read";
		return -EBADMSG;
	}
	mapping->rights =
		(uint8_t)((at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) |
			  (at[2] == 'x' ? PROT_EXEC : 0));
	shared = at[3] == 's';
	at += 5;
	mapping->offset = take_number(&at, 16);
	major = take_number(&at, 16);
	mapping->device = major << 32 | take_number(&at, 16);
	mapping->inode = take_number(&at, 10);
	at += strspn(at, " ");
	tell_kind(mapping, at, shared);
	layout->count++;
	if (mapping->kind != IMAGE_FILE && mapping->kind != IMAGE_SHARED_FILE)
		return 0;
	/* Pieces of one file stand together. */
	length = strlen(at) + 1;
	if (layout->count > 1 && mapping[-1].path &&
	    strcmp(layout->texts + mapping[-1].path, at) == 0) {
		mapping->path = mapping[-1].path;
		return 0;
	}
	if (length > sizeof layout->texts - layout->text_length) {
		*ret_why = "it has mapped too many files";
		return -E2BIG;
	}
	mapping->path = (uint32_t)layout->text_length;
	memcpy(layout->texts + layout->text_length, at, length);
	layout->text_length += length;
	return 0;
}

int image_read_layout(struct image_layout *layout, const char **ret_why)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), r = 0;
	size_t used = 0;
	ssize_t got;

	layout->count = 0;
	layout->text_length = 1;
	*ret_why = "what is mapped cannot be read";
	if (fd < 0)
		return -errno;
	while (r == 0 &&
	       (got = read(fd, image_area.text + used, sizeof image_area.text - 1 - used)) > 0) {
		char *line = image_area.text, *end;

		used += (size_t)got;
		image_area.text[used] = '\0';
		while (r == 0 && (end = strchr(line, '\n'))) {
			*end = '\0';
			r = take_line(layout, line, ret_why);
			line = end + 1;
		}
		used -= (size_t)(line - image_area.text);
		memmove(image_area.text, line, used);
	}
	close(fd);
	return r;
}

/* --- what the template held ------------------------------------------------------ */

static bool is_private(const struct image_mapping *mapping)
{
	return mapping->kind == IMAGE_ANONYMOUS || mapping->kind == IMAGE_FILE;
}

static void remember_pages(const struct image_mapping *mapping, uint64_t *numbers)
{
	size_t page = image_page(), most = ARRAY_LENGTH(image_area.entries);

	for (uintptr_t at = mapping->from; at < mapping->to; at += most * page) {
		size_t pages = (mapping->to - at) / page;

		if (pages > most)
			pages = most;
		if (image_look(at, pages) < 0)
			return; /* not known: sent whole */
		for (size_t i = 0; i < pages; i++)
			if (image_is_own(image_area.entries[i]))
				numbers[(at - mapping->from) / page + i] =
					number_of((const void *)(at + i * page));
	}
}

/* Each private mapping, with room for a number a page. Pages of it that nobody writes to
 * are not there. */
static struct origin *list_origins(const struct image_layout *layout, size_t *ret_count,
				   struct error *err)
{
	size_t count = 0, pages = 0;
	struct origin *origins;

	for (size_t i = 0; i < layout->count; i++)
		if (is_private(&layout->mappings[i])) {
			count++;
			pages += (layout->mappings[i].to - layout->mappings[i].from) / image_page();
		}
	if (pages > BRANCH_ORIGIN_PAGES_MAX) {
		refuse(err, E2BIG, "template: it is too large to be remembered");
		return NULL;
	}
	origins = mmap(NULL, count * sizeof *origins + pages * sizeof *remembered.numbers,
		       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (origins == MAP_FAILED) {
		fail(err, errno, "template: remember its memory");
		return NULL;
	}
	*ret_count = count;
	return origins;
}

int image_remember(struct error *err)
{
	struct image_layout *layout = &image_area.own;
	size_t count = 0, pages = 0;
	struct origin *origins, *next;
	const char *why;

	if (remembered.origins)
		return 0;
	if (image_read_layout(layout, &why) < 0)
		return refuse(err, EPROTO, "template: %s", why);
	origins = next = list_origins(layout, &count, err);
	if (!origins)
		return -err->number;
	remembered.numbers = (uint64_t *)(origins + count);
	/* To see its own pages. No cell sees this process. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return fail(err, errno, "template: dumpable");
	for (size_t i = 0; i < layout->count; i++) {
		const struct image_mapping *mapping = &layout->mappings[i];

		if (!is_private(mapping))
			continue;
		*next++ = (struct origin){
			.from = mapping->from,
			.to = mapping->to,
			.offset = mapping->offset,
			.device = mapping->device,
			.inode = mapping->inode,
			.first = pages,
		};
		if (mapping->rights & PROT_READ)
			remember_pages(mapping, remembered.numbers + pages);
		pages += (mapping->to - mapping->from) / image_page();
	}
	image_look_end();
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(err, errno, "template: dumpable");
	madvise(&image_area, sizeof image_area, MADV_DONTNEED);
	remembered.count = count;
	remembered.origins = origins;
	return 0;
}

static const struct origin *find_origin(uintptr_t at)
{
	size_t low = 0, high = remembered.origins ? remembered.count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (remembered.origins[middle].to <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return remembered.origins && low < remembered.count && remembered.origins[low].from <= at
		       ? &remembered.origins[low]
		       : NULL;
}

static bool is_of(const struct image_mapping *mapping, const struct origin *origin)
{
	return origin && origin->device == mapping->device && origin->inode == mapping->inode &&
	       (!origin->inode || origin->offset - origin->from == mapping->offset - mapping->from);
}

bool image_inherits(const struct image_mapping *mapping)
{
	const struct origin *origin = find_origin(mapping->from);

	return is_of(mapping, origin) && mapping->to <= origin->to;
}

bool image_is_remembered(void)
{
	return remembered.origins != NULL;
}

size_t image_origin(const struct image_mapping *mapping, uintptr_t at)
{
	const struct origin *origin = find_origin(at);
	size_t index;

	if (!is_of(mapping, origin))
		return SIZE_MAX;
	index = origin->first + (at - origin->from) / image_page();
	return index < BRANCH_ORIGIN_PAGES_MAX && remembered.numbers[index] ? index : SIZE_MAX;
}

bool image_is_as_origin(size_t origin, const void *page)
{
	return remembered.numbers[origin] == number_of(page);
}

void image_each_origin(void (*tell)(size_t origin, uintptr_t page, void *user), void *user)
{
	size_t page = image_page();

	for (size_t i = 0; remembered.origins && i < remembered.count; i++) {
		const struct origin *origin = &remembered.origins[i];

		for (uintptr_t at = origin->from; at < origin->to; at += page) {
			size_t index = origin->first + (at - origin->from) / page;

			if (remembered.numbers[index])
				tell(index, at, user);
		}
	}
}
