/* SPDX-License-Identifier: Apache-2.0 */
/* image_take: a fresh process of a branch's cell becomes another one. See image.c.
 *
 * It is a fork of its judge, confined as a runner is, in which neither user code nor
 * Python has run. All of it happens on a stack in the area, since the other one is
 * replaced; nothing outside of the area is written to between the look for changed
 * pages and the end, but where the kernel and libc keep what is the thread's own.
 *
 * Should: end at the first thing that is not as it should be, and say which.
 * Mustn't: keep the pipe open beyond the last byte. */
#include "guest/image.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From here on large pages are worth while. */
#define HUGE_BYTES (4 * MIB)

/* The judge, and what comes. On the stack of the area. */
struct take {
	int link, listener, stream;
};

static _Noreturn void give_up(const struct take *take, const char *what)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);
	char text[160];

	snprintf(text, sizeof text, "the branch cannot take over: %s", what);
	frame_put_text(&frame, FIELD_TEXT, text);
	frame_end(&frame, at);
	frame_send(take->link, &frame, NULL, 0);
	_exit(1);
}

static void take_bytes(const struct take *take, void *to, size_t length)
{
	uint8_t *at = to;

	while (length > 0) {
		ssize_t r = read(take->stream, at, length);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			give_up(take, r < 0 ? strerrordesc_np(errno) : "the end came too early");
		at += r;
		length -= (size_t)r;
	}
}

/* --- what of the template is not here any more -------------------------------------- */

struct changed {
	size_t count, at;
	bool too_many;
};

static void note_changed(size_t origin, uintptr_t page, void *user)
{
	const struct image_layout *layout = &image_area.own;
	struct changed *changed = user;
	struct image_range *last =
		changed->count > 0 ? &image_area.ranges[changed->count - 1] : NULL;

	while (changed->at < layout->count && layout->mappings[changed->at].to <= page)
		changed->at++;
	if (changed->at < layout->count && layout->mappings[changed->at].from <= page &&
	    layout->mappings[changed->at].rights & PROT_READ &&
	    image_origin(&layout->mappings[changed->at], page) == origin &&
	    !image_is_the_threads(page) && image_is_as_origin(origin, (const void *)page))
		return;
	if (last && last->from + last->pages * image_page() == page) {
		last->pages++;
	} else if (changed->count == BRANCH_RANGES_MAX) {
		changed->too_many = true;
	} else {
		image_area.ranges[changed->count++] = (struct image_range){page, 1};
	}
}

/* The message is made in the area: to allocate would be to change. */
static void say_here(const struct take *take)
{
	struct bytes frame = {
		.data = image_area.message,
		.capacity = sizeof image_area.message,
		.ceiling = sizeof image_area.message,
	};
	struct changed changed = {0};
	const char *why;
	size_t at;

	if (image_read_layout(&image_area.own, &why) < 0)
		give_up(take, why);
	image_each_origin(note_changed, &changed);
	if (changed.too_many)
		give_up(take, "too much of its template was changed");
	at = frame_begin(&frame, MESSAGE_PARKED, 0);
	frame_put(&frame, FIELD_DATA, image_area.ranges,
		  changed.count * sizeof image_area.ranges[0]);
	if (frame_end(&frame, at) < 0 || frame_send(take->link, &frame, &take->listener, 1) < 0)
		_exit(1);
	close(take->listener);
}

static void wait_for_stream(struct take *take)
{
	struct bytes buffer = {
		.data = image_area.message,
		.capacity = sizeof image_area.message,
		.ceiling = sizeof image_area.message,
	};
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;

	if (frame_receive(take->link, &buffer, &frame, fds, &count) != 1 ||
	    frame.type != MESSAGE_BRANCH || count != 1)
		_exit(0); /* nobody needs it */
	take->stream = fds[0];
}

/* --- descriptors ---------------------------------------------------------------------- */

static bool is_meant(const struct image_header *header, int fd)
{
	if (fd == header->socket)
		return true;
	for (size_t i = 0; i < header->descriptors; i++)
		if (image_area.descriptors[i].number == fd)
			return true;
	return false;
}

/* To a number that nothing which comes will need. */
static void move_away(const struct take *take, const struct image_header *header, int *fd)
{
	for (int to = BRANCH_DESCRIPTORS_MAX - 1; to > 2; to--) {
		if (is_meant(header, to) || fcntl(to, F_GETFD) >= 0)
			continue;
		if (dup3(*fd, to, O_CLOEXEC) < 0)
			continue; /* beyond the limit */
		close(*fd);
		*fd = to;
		return;
	}
	give_up(take, "no descriptor is left");
}

static int make_dead(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	close(pair[1]);
	return pair[0];
}

/* A file that has no name: another one, with the same content. */
static int make_nameless(const struct take *take, const struct image_descriptor *told)
{
	static const char prefix[] = "/memfd:";
	char *name = image_area.path + strlen(prefix), *end = strstr(name, " (deleted)");
	int fd;

	if (end)
		*end = '\0';
	fd = told->memory ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)
			  : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)told->size) < 0)
		give_up(take, "a file without a name cannot be made");
	for (uint64_t at = 0; at < told->size;) {
		uint64_t left = told->size - at;
		size_t piece =
			left < sizeof image_area.text ? (size_t)left : sizeof image_area.text;

		take_bytes(take, image_area.text, piece);
		if (pwrite(fd, image_area.text, piece, (off_t)at) != (ssize_t)piece)
			give_up(take, "no room is left for a file without a name");
		at += piece;
	}
	if (told->memory && told->seals > 0)
		fcntl(fd, F_ADD_SEALS, told->seals);
	return fd;
}

static int open_again(const char *path, int flags)
{
	return open(path,
		    (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_PATH)) | O_CLOEXEC | O_NOCTTY);
}

static int make_descriptor(const struct take *take, const struct image_descriptor *told)
{
	char link[64];
	int fd, again;

	if (told->kind == DESCRIPTOR_NAMED)
		return open_again(image_area.path, told->flags);
	if (told->kind != DESCRIPTOR_NAMELESS)
		return -1;
	fd = told->same_as < 0 ? make_nameless(take, told) : told->same_as;
	/* With the rights that it had. */
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	again = open_again(link, told->flags);
	if (told->same_as < 0)
		close(fd);
	return again;
}

static void take_descriptor(struct take *take, struct image_header *header, size_t index)
{
	struct image_descriptor *told = &image_area.descriptors[index];
	int flags = told->close_on_exec ? O_CLOEXEC : 0, fd;

	take_bytes(take, told, sizeof *told);
	if (told->path_length >= sizeof image_area.path || told->number < 0 ||
	    told->number >= BRANCH_DESCRIPTORS_MAX)
		give_up(take, "a descriptor is not as it should be");
	take_bytes(take, image_area.path, told->path_length);
	image_area.path[told->path_length] = '\0';
	header->descriptors = index + 1;
	if (take->stream == told->number)
		move_away(take, header, &take->stream);
	if (take->link == told->number)
		move_away(take, header, &take->link);
	fd = make_descriptor(take, told);
	/* What is not there any more is as good as closed. */
	if (fd < 0)
		fd = make_dead();
	if (fd < 0)
		give_up(take, "no descriptor is left");
	if (told->offset > 0)
		lseek(fd, (off_t)told->offset, SEEK_SET);
	if (fd == told->number) {
		fcntl(fd, F_SETFD, flags ? FD_CLOEXEC : 0);
		return;
	}
	if (dup3(fd, told->number, flags) < 0)
		give_up(take, "a descriptor cannot be put into its place");
	close(fd);
}

static void take_descriptors(struct take *take, struct image_header *header)
{
	uint64_t count = header->descriptors;

	if (count > BRANCH_DESCRIPTORS_MAX || header->socket < 3 ||
	    header->socket >= BRANCH_DESCRIPTORS_MAX)
		give_up(take, "there are too many descriptors");
	header->descriptors = 0;
	move_away(take, header, &take->stream);
	move_away(take, header, &take->link);
	for (size_t i = 0; i < count; i++)
		take_descriptor(take, header, i);
}

/* --- mappings ---------------------------------------------------------------------------- */

static void take_layout(const struct take *take, const struct image_header *header)
{
	struct image_layout *layout = &image_area.other;
	uintptr_t before = 0;

	if (header->mappings > BRANCH_MAPPINGS_MAX || header->text_length > sizeof layout->texts ||
	    header->text_length == 0)
		give_up(take, "there are too many mappings");
	layout->count = header->mappings;
	layout->text_length = header->text_length;
	take_bytes(take, layout->mappings, layout->count * sizeof layout->mappings[0]);
	take_bytes(take, layout->texts, layout->text_length);
	layout->texts[layout->text_length - 1] = '\0';
	for (size_t i = 0; i < layout->count; i++) {
		const struct image_mapping *mapping = &layout->mappings[i];

		if (mapping->from < before || mapping->to <= mapping->from ||
		    mapping->from % image_page() || mapping->to % image_page() ||
		    mapping->path >= layout->text_length)
			give_up(take, "a mapping is not as it should be");
		before = mapping->to;
	}
}

static void look_again(const struct take *take)
{
	const char *why;

	if (image_read_layout(&image_area.own, &why) < 0)
		give_up(take, why);
}

/* The mailbox is the cell's own; code knows it where the other had it. */
static void move_mailbox(const struct take *take, const struct image_header *header)
{
	size_t size;
	void *place = outbox_place(&size), *wanted = (void *)header->mailbox;

	if (place != wanted &&
	    mremap(place, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) != wanted)
		give_up(take, "the mailbox cannot be moved");
	outbox_moved(wanted);
}

/* Everything of one's own that the other does not have. */
static void unmap_rest(const struct take *take)
{
	const struct image_layout *own = &image_area.own, *other = &image_area.other;
	size_t next = 0;

	for (size_t i = 0; i < own->count; i++) {
		const struct image_mapping *mapping = &own->mappings[i];
		uintptr_t at = mapping->from;

		while (next < other->count && other->mappings[next].to <= at)
			next++;
		for (size_t j = next; at < mapping->to && mapping->kind != IMAGE_KERNEL; j++) {
			uintptr_t from = j < other->count && other->mappings[j].from < mapping->to
						 ? other->mappings[j].from
						 : mapping->to;

			if (from > at && munmap((void *)at, from - at) < 0)
				give_up(take, "memory cannot be given back");
			if (from == mapping->to)
				break;
			at = other->mappings[j].to;
		}
	}
}

static bool is_same(const struct image_mapping *meant, const struct image_mapping *own)
{
	if (meant->kind != own->kind || meant->kind == IMAGE_SHARED_ANONYMOUS)
		return false;
	if (meant->kind != IMAGE_FILE && meant->kind != IMAGE_SHARED_FILE)
		return true;
	return meant->device == own->device && meant->inode == own->inode &&
	       meant->offset - meant->from == own->offset - own->from;
}

static void map_file(const struct take *take, const struct image_mapping *meant, uintptr_t from,
		     size_t length)
{
	bool shared = meant->kind == IMAGE_SHARED_FILE;
	int flags = shared && meant->rights & PROT_WRITE ? O_RDWR : O_RDONLY;
	const char *path = image_area.other.texts + meant->path;
	char link[64];
	autofd fd = -1;

	if (meant->nameless) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", (int)meant->descriptor);
		path = link;
	}
	fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || mmap((void *)from, length, meant->rights,
			   (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED, fd,
			   (off_t)(meant->offset + (from - meant->from))) == MAP_FAILED) {
		snprintf(image_area.text, 100, "%.80s cannot be mapped", path);
		give_up(take, image_area.text);
	}
}

static void map(const struct take *take, const struct image_mapping *meant, uintptr_t from,
		uintptr_t to)
{
	int flags = MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE |
		    (meant->kind == IMAGE_ANONYMOUS ? MAP_PRIVATE : MAP_SHARED);

	if (image_in_area(from, to))
		give_up(take, "a mapping is not as it should be");
	if (meant->kind == IMAGE_FILE || meant->kind == IMAGE_SHARED_FILE) {
		map_file(take, meant, from, to - from);
		return;
	}
	if (meant->kind > IMAGE_SHARED_ANONYMOUS)
		give_up(take, "what the kernel maps lies elsewhere");
	/* The kernel makes the stack longer itself. */
	if (meant->stack && from == meant->from) {
		*(volatile char *)from = 0;
		return;
	}
	if (mmap((void *)from, to - from, meant->rights, flags, -1, 0) == MAP_FAILED)
		give_up(take, "its memory cannot be mapped");
	/* As the allocators and arrays that ask for so much do. */
	if (to - from >= HUGE_BYTES)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

/* Where the other has a mapping there is now the same one: one's own, or a new one. */
static void map_meant(const struct take *take, const struct image_mapping *meant, size_t *next)
{
	const struct image_layout *own = &image_area.own;
	uintptr_t at = meant->from;

	while (*next < own->count && own->mappings[*next].to <= at)
		++*next;
	for (size_t i = *next; at < meant->to; i++) {
		const struct image_mapping *piece = i < own->count ? &own->mappings[i] : NULL;
		uintptr_t from = piece && piece->from < meant->to ? piece->from : meant->to;
		uintptr_t to;

		if (from > at) {
			map(take, meant, at, from);
			at = from;
		}
		if (at == meant->to)
			break;
		to = piece->to < meant->to ? piece->to : meant->to;
		if (!is_same(meant, piece))
			map(take, meant, at, to);
		else if (piece->rights != meant->rights && piece->kind != IMAGE_KERNEL &&
			 mprotect((void *)at, to - at, meant->rights) < 0)
			give_up(take, "the rights of memory cannot be set");
		at = to;
	}
}

static void take_mappings(const struct take *take, const struct image_header *header)
{
	size_t next = 0;

	take_layout(take, header);
	move_mailbox(take, header);
	if ((uint64_t)syscall(SYS_brk, header->heap_end) != header->heap_end)
		give_up(take, "the heap cannot have its size");
	look_again(take);
	unmap_rest(take);
	for (size_t i = 0; i < image_area.other.count; i++)
		map_meant(take, &image_area.other.mappings[i], &next);
}

/* --- pages ------------------------------------------------------------------------------- */

/* The part of one's own pages that was looked at last. */
struct look {
	uintptr_t from, to;
};

static bool is_own(const struct take *take, struct look *look, const struct image_mapping *mapping,
		   uintptr_t at)
{
	size_t page = image_page(), most = ARRAY_LENGTH(image_area.entries);

	if (at < look->from || at >= look->to) {
		size_t pages = (mapping->to - at) / page;

		if (pages > most)
			pages = most;
		if (image_look(at, pages) < 0)
			give_up(take, "its pages cannot be looked at");
		look->from = at;
		look->to = at + pages * page;
	}
	return image_is_own(image_area.entries[(at - look->from) / page]);
}

/* Back to zeros, or to what the file says, wherever one's own pages are. */
static void clear_pages(const struct take *take, struct look *look,
			const struct image_mapping *mapping, uintptr_t from, uintptr_t to)
{
	uintptr_t began = from;

	for (uintptr_t at = from; at <= to; at += image_page()) {
		if (at < to && is_own(take, look, mapping, at))
			continue;
		if (at > began && madvise((void *)began, at - began, MADV_DONTNEED) < 0)
			give_up(take, "pages cannot be given back");
		began = at + image_page();
	}
}

static void take_data(const struct take *take, size_t pieces)
{
	struct iovec *at = image_area.pieces;

	while (pieces > 0) {
		ssize_t r = readv(take->stream, at, (int)pieces);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			give_up(take, r < 0 ? strerrordesc_np(errno) : "the end came too early");
		for (; pieces > 0 && r >= (ssize_t)at->iov_len; at++, pieces--)
			r -= (ssize_t)at->iov_len;
		if (r > 0) {
			at->iov_base = (uint8_t *)at->iov_base + r;
			at->iov_len -= (size_t)r;
		}
	}
}

/* One bunch of runs, from `at` on; returns where the next begins. */
static uintptr_t take_bunch(const struct take *take, struct look *look,
			    const struct image_mapping *mapping, uintptr_t at)
{
	size_t page = image_page(), pieces = 0;
	uint32_t count;

	take_bytes(take, &count, sizeof count);
	if (count == 0 || count > IMAGE_RUNS)
		give_up(take, "its pages are not as they should be");
	take_bytes(take, image_area.runs, count * sizeof image_area.runs[0]);
	for (size_t i = 0; i < count; i++) {
		const struct image_run *run = &image_area.runs[i];
		uintptr_t to = at + run->pages * page;

		if (run->pages == 0 || to > mapping->to ||
		    (run->state != PAGE_KEPT && image_in_area(at, to)))
			give_up(take, "its pages are not as they should be");
		if (run->state == PAGE_DATA)
			image_area.pieces[pieces++] = (struct iovec){(void *)at, to - at};
		else if (run->state == PAGE_NONE && mapping->kind != IMAGE_SHARED_ANONYMOUS)
			clear_pages(take, look, mapping, at, to);
		at = to;
	}
	if (pieces > 0 && !(mapping->rights & PROT_WRITE) &&
	    mprotect((void *)mapping->from, mapping->to - mapping->from, PROT_READ | PROT_WRITE) <
		    0)
		give_up(take, "the rights of memory cannot be set");
	take_data(take, pieces);
	if (pieces > 0 && !(mapping->rights & PROT_WRITE) &&
	    mprotect((void *)mapping->from, mapping->to - mapping->from, mapping->rights) < 0)
		give_up(take, "the rights of memory cannot be set");
	return at;
}

static void take_pages(const struct take *take, const struct image_mapping *mapping)
{
	struct look look = {0, 0};
	uintptr_t at = mapping->from;

	while (at < mapping->to)
		at = take_bunch(take, &look, mapping, at);
}

/* --- the whole ------------------------------------------------------------------------------ */

static void take_signals(const struct image_header *header)
{
	for (int number = 1; number < _NSIG; number++)
		syscall(SYS_rt_sigaction, number, &header->actions[number], NULL, sizeof(uint64_t));
	if (!(header->stack.ss_flags & SS_DISABLE))
		sigaltstack(&header->stack, NULL);
}

static void become(void)
{
	struct image_header *header = &image_area.header;
	struct take take = {.link = image_area.descriptors[0].number,
			    .listener = image_area.descriptors[1].number,
			    .stream = -1};

	say_here(&take);
	wait_for_stream(&take);
	take_bytes(&take, header, sizeof *header);
	if (header->magic != IMAGE_MAGIC)
		give_up(&take, "what came is no image");
	take_descriptors(&take, header);
	take_mappings(&take, header);
	for (size_t i = 0; i < image_area.other.count; i++)
		if (image_area.other.mappings[i].kind <= IMAGE_SHARED_ANONYMOUS)
			take_pages(&take, &image_area.other.mappings[i]);
	image_look_end();
	/* From here on nothing connects the two. */
	close(take.stream);
	take_signals(header);
	header->directory[sizeof header->directory - 1] = '\0';
	if (chdir(header->directory) < 0 && chdir("/workspace") < 0)
		give_up(&take, "its directory is not there");
	umask((mode_t)header->mask & 0777);
	if (dup3(take.link, header->socket, O_CLOEXEC) < 0)
		give_up(&take, "its socket cannot be put into its place");
	close(take.link);
	image_area.arrived = true;
	setcontext(&header->context);
	_exit(1);
}

void image_await(int link, int listener)
{
	uint64_t all = ~UINT64_C(0);

	/* No handler of the template's may run in memory that is half replaced. */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all);
	image_area.descriptors[0].number = link;
	image_area.descriptors[1].number = listener;
	getcontext(&image_area.stub);
	image_area.stub.uc_stack.ss_sp = image_area.stack;
	image_area.stub.uc_stack.ss_size = sizeof image_area.stack;
	image_area.stub.uc_link = NULL;
	makecontext(&image_area.stub, become, 0);
	swapcontext(&image_area.here, &image_area.stub);
	_exit(1);
}
