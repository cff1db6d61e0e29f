/* SPDX-License-Identifier: Apache-2.0 */
/* image_send: a parked checkpoint writes down what it is. See image.c.
 *
 * In this order, all as structures of image.h: the header; each descriptor, with its
 * path, or its content when it has no name; all mappings, and the names of their
 * files; of each private mapping, and of shared memory without a file, its runs of
 * pages with what is in them.
 *
 * Between the comparison with the template and the end nothing may change the process.
 * A fork of it might, by what libraries have run before one, and may come in between:
 * behind it the comparison is made again.
 *
 * Should: leave the process as it is: it is asked again for the next branch.
 * Mustn't: allocate, or map: that would change what is being told. */
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
#include <sys/sysmacros.h>
#include <unistd.h>

/* Where it is told to, what of it failed. */
struct out {
	int fd;
	bool failed;
};

static void put(struct out *out, const void *data, size_t length)
{
	const uint8_t *at = data;

	while (length > 0 && !out->failed) {
		ssize_t r = write(out->fd, at, length);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			out->failed = true;
			return;
		}
		at += r;
		length -= (size_t)r;
	}
}

/* --- pages ------------------------------------------------------------------- */

static bool is_zero(const void *page)
{
	const uint64_t *words = page;

	for (size_t i = 0; i < image_page() / sizeof *words; i++)
		if (words[i])
			return false;
	return true;
}

static void set_differs(size_t origin, bool differs)
{
	uint64_t bit = UINT64_C(1) << origin % 64;

	if (differs)
		image_area.differs[origin / 64] |= bit;
	else
		image_area.differs[origin / 64] &= ~bit;
}

static bool differs(size_t origin)
{
	return image_area.differs[origin / 64] >> origin % 64 & 1;
}

/* The pages that the receiver asked for, from the one at hand on. */
struct wanted {
	struct span left;
	struct image_range range;
};

static bool is_wanted(struct wanted *wanted, uintptr_t page)
{
	while (page >= wanted->range.from + wanted->range.pages * image_page()) {
		if (wanted->left.length < sizeof wanted->range)
			return false;
		memcpy(&wanted->range, wanted->left.data, sizeof wanted->range);
		wanted->left.data += sizeof wanted->range;
		wanted->left.length -= sizeof wanted->range;
	}
	return page >= wanted->range.from;
}

static enum image_state state_of(const struct image_mapping *mapping, uintptr_t page,
				 uint64_t entry, struct wanted *wanted)
{
	size_t origin;

	if (image_in_area(page, page + image_page()))
		return PAGE_KEPT;
	if (mapping->kind == IMAGE_SHARED_ANONYMOUS)
		return is_zero((const void *)page) ? PAGE_NONE : PAGE_DATA;
	if (!image_is_own(entry))
		return PAGE_NONE;
	origin = image_origin(mapping, page);
	if (origin != SIZE_MAX && !differs(origin) && !is_wanted(wanted, page))
		return PAGE_KEPT;
	/* Zeros that were only read, or that the receiver has as well. */
	return mapping->kind == IMAGE_ANONYMOUS && is_zero((const void *)page) ? PAGE_NONE
									       : PAGE_DATA;
}

/* What is still to be written, until there is enough. */
struct bunch {
	struct out *out;
	uint32_t count, pieces;
};

static void flush(struct bunch *bunch)
{
	struct iovec *at = image_area.pieces;

	put(bunch->out, &bunch->count, sizeof bunch->count);
	put(bunch->out, image_area.runs, bunch->count * sizeof image_area.runs[0]);
	while (bunch->pieces > 0 && !bunch->out->failed) {
		ssize_t r = writev(bunch->out->fd, at, (int)bunch->pieces);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			bunch->out->failed = true;
		for (; bunch->pieces > 0 && r >= (ssize_t)at->iov_len; at++, bunch->pieces--)
			r -= (ssize_t)at->iov_len;
		if (r > 0) {
			at->iov_base = (uint8_t *)at->iov_base + r;
			at->iov_len -= (size_t)r;
		}
	}
	bunch->count = 0;
}

static void add_run(struct bunch *bunch, enum image_state state, uintptr_t from, uintptr_t to)
{
	if (from == to)
		return;
	if (bunch->count == IMAGE_RUNS)
		flush(bunch);
	image_area.runs[bunch->count++] =
		(struct image_run){state, (uint32_t)((to - from) / image_page())};
	if (state == PAGE_DATA)
		image_area.pieces[bunch->pieces++] = (struct iovec){(void *)from, to - from};
}

static void put_pages(struct out *out, const struct image_mapping *mapping, struct wanted *wanted)
{
	size_t page = image_page(), most = ARRAY_LENGTH(image_area.entries);
	enum image_state state = PAGE_NONE;
	struct bunch bunch = {.out = out};
	uintptr_t began = mapping->from;

	for (uintptr_t chunk = mapping->from; chunk < mapping->to; chunk += most * page) {
		size_t pages = (mapping->to - chunk) / page;

		if (pages > most)
			pages = most;
		if (image_look(chunk, pages) < 0)
			out->failed = true;
		for (size_t i = 0; i < pages && !out->failed; i++) {
			uintptr_t at = chunk + i * page;
			enum image_state here =
				state_of(mapping, at, image_area.entries[i], wanted);

			if (here != state) {
				add_run(&bunch, state, began, at);
				began = at;
				state = here;
			}
		}
	}
	add_run(&bunch, state, began, mapping->to);
	flush(&bunch);
}

/* Memory that may not even be read is opened while it is told. */
static void put_content(struct out *out, const struct image_mapping *mapping, struct wanted *wanted)
{
	void *from = (void *)mapping->from;
	size_t length = mapping->to - mapping->from;
	bool open = mapping->rights & PROT_READ;

	if (!open && mprotect(from, length, mapping->rights | PROT_READ) < 0)
		out->failed = true;
	put_pages(out, mapping, wanted);
	if (!open && mprotect(from, length, mapping->rights) < 0)
		out->failed = true;
}

/* --- descriptors --------------------------------------------------------------- */

static bool path_of(int fd)
{
	char link[64];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, image_area.path, sizeof image_area.path - 1);
	image_area.path[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* Of those that came before, the one for the same file without a name, or -1. */
static int32_t find_nameless(const struct image_header *header, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < header->descriptors; i++) {
		const struct image_descriptor *known = &image_area.descriptors[i];

		if (known->kind == DESCRIPTOR_NAMELESS && known->inode == inode &&
		    known->device == device)
			return known->number;
	}
	return -1;
}

static void describe(struct image_header *header, int fd)
{
	struct image_descriptor *told = &image_area.descriptors[header->descriptors];
	struct stat info;
	off_t offset;

	if (fstat(fd, &info) < 0)
		return;
	/* The standard streams are the cell's own, unless code put a file there. */
	if (fd <= 2 && !S_ISREG(info.st_mode))
		return;
	*told = (struct image_descriptor){
		.number = fd,
		.flags = fcntl(fd, F_GETFL),
		.close_on_exec = fcntl(fd, F_GETFD) & FD_CLOEXEC,
		.device = info.st_dev,
		.inode = info.st_ino,
		.same_as = -1,
	};
	offset = lseek(fd, 0, SEEK_CUR);
	told->offset = offset > 0 ? (uint64_t)offset : 0;
	if ((S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISCHR(info.st_mode)) &&
	    path_of(fd)) {
		told->path_length = (uint32_t)strlen(image_area.path);
		told->kind = DESCRIPTOR_NAMED;
	}
	if (S_ISREG(info.st_mode) && info.st_nlink == 0) {
		told->kind = DESCRIPTOR_NAMELESS;
		told->memory = strncmp(image_area.path, "/memfd:", 7) == 0;
		told->same_as = find_nameless(header, info.st_dev, info.st_ino);
		told->size = told->same_as < 0 ? (uint64_t)info.st_size : 0;
		told->seals = told->memory ? fcntl(fd, F_GET_SEALS) : -1;
	}
	header->descriptors++;
}

static void describe_all(struct image_header *header, int out)
{
	for (int fd = 0; fd < BRANCH_DESCRIPTORS_MAX; fd++)
		if (fd != out && fd != header->socket)
			describe(header, fd);
}

/* A descriptor that was opened for writing alone is opened once more. */
static void put_file(struct out *out, const struct image_descriptor *told)
{
	autofd again = -1;
	int fd = told->number;

	if ((told->flags & O_ACCMODE) == O_WRONLY) {
		snprintf(image_area.path, sizeof image_area.path, "/proc/self/fd/%d", fd);
		fd = again = open(image_area.path, O_RDONLY | O_CLOEXEC);
	}
	for (uint64_t at = 0; at < told->size && !out->failed;) {
		uint64_t left = told->size - at;
		size_t wanted =
			left < sizeof image_area.text ? (size_t)left : sizeof image_area.text;
		ssize_t r = pread(fd, image_area.text, wanted, (off_t)at);

		if (r <= 0) {
			/* It was cut meanwhile, by a child that a run left. */
			memset(image_area.text, 0, wanted);
			r = (ssize_t)wanted;
		}
		put(out, image_area.text, (size_t)r);
		at += (uint64_t)r;
	}
}

static void put_descriptors(struct out *out, const struct image_header *header)
{
	for (size_t i = 0; i < header->descriptors; i++) {
		struct image_descriptor *told = &image_area.descriptors[i];

		if (told->path_length > 0) {
			if (!path_of(told->number))
				out->failed = true;
			told->path_length = (uint32_t)strlen(image_area.path);
		}
		put(out, told, sizeof *told);
		put(out, image_area.path, told->path_length);
		put_file(out, told);
	}
}

/* --- what else there is ---------------------------------------------------------- */

static void describe_signals(struct image_header *header)
{
	for (int number = 1; number < _NSIG; number++)
		syscall(SYS_rt_sigaction, number, NULL, &header->actions[number], sizeof(uint64_t));
	sigaltstack(NULL, &header->stack);
}

static void describe_process(struct image_header *header, int socket)
{
	size_t size;

	header->magic = IMAGE_MAGIC;
	header->heap_end = (uint64_t)syscall(SYS_brk, 0);
	header->mailbox = (uintptr_t)outbox_place(&size);
	header->socket = socket;
	header->mask = (int32_t)umask(0);
	umask((mode_t)header->mask);
	if (!getcwd(header->directory, sizeof header->directory) || header->directory[0] != '/')
		snprintf(header->directory, sizeof header->directory, "/workspace");
	header->descriptors = 0;
	describe_signals(header);
}

/* What cannot be had again is the reason to refuse. */
static const char *find_obstacle(void)
{
	const struct image_layout *layout = &image_area.own;
	uint64_t pages = 0;

	for (size_t i = 0; i < layout->count; i++) {
		const struct image_mapping *mapping = &layout->mappings[i];

		pages += (mapping->to - mapping->from) / image_page();
		if (mapping->kind == IMAGE_FILE && mapping->nameless && !image_inherits(mapping))
			return "it has mapped a file that is deleted";
		if (mapping->kind == IMAGE_SHARED_FILE && mapping->nameless &&
		    mapping->descriptor < 0)
			return "it has mapped shared memory that has neither name nor descriptor";
	}
	return pages > BRANCH_PAGES_MAX ? "it has reserved too much memory" : NULL;
}

static void link_nameless(const struct image_header *header)
{
	struct image_layout *layout = &image_area.own;

	for (size_t i = 0; i < layout->count; i++) {
		struct image_mapping *mapping = &layout->mappings[i];
		uint64_t major = mapping->device >> 32, minor = mapping->device & 0xffffffff;

		if (mapping->kind == IMAGE_SHARED_FILE && mapping->nameless)
			mapping->descriptor = find_nameless(
				header, makedev((unsigned)major, (unsigned)minor), mapping->inode);
	}
}

static const char *describe_memory(const struct image_header *header)
{
	const char *why;

	if (image_read_layout(&image_area.own, &why) < 0)
		return why;
	link_nameless(header);
	return find_obstacle();
}

/* --- the calls ------------------------------------------------------------------- */

static void compare(size_t origin, uintptr_t page, void *user)
{
	const struct image_layout *layout = &image_area.own;
	const struct image_mapping *mapping;
	size_t *at = user;
	bool same;

	while (*at < layout->count && layout->mappings[*at].to <= page)
		++*at;
	/* What is mapped there now may be something else, or closed; and some pages change
	 * until they are sent. */
	mapping = *at < layout->count ? &layout->mappings[*at] : NULL;
	same = mapping && mapping->from <= page && mapping->rights & PROT_READ && !mapping->stack &&
	       image_origin(mapping, page) == origin && !image_is_the_threads(page) &&
	       !image_in_area(page, page + image_page()) &&
	       image_is_as_origin(origin, (const void *)page);
	set_differs(origin, !same);
}

const char *image_obstacle(void)
{
	if (!image_is_remembered())
		return "its template cannot be branched";
	describe_process(&image_area.header, -1);
	describe_all(&image_area.header, -1);
	return describe_memory(&image_area.header);
}

void image_compare(void)
{
	size_t at = 0;

	image_each_origin(compare, &at);
	image_area.compared = true;
}

void image_will_fork(void)
{
	image_area.compared = false;
}

static void send_all(int fd, struct span wanted_pages, int socket)
{
	struct image_header *header = &image_area.header;
	struct image_layout *layout = &image_area.own;
	struct wanted wanted = {.left = wanted_pages};
	struct out out = {.fd = fd};

	describe_process(header, socket);
	describe_all(header, fd);
	if (describe_memory(header))
		return;
	header->mappings = layout->count;
	header->text_length = layout->text_length;
	put(&out, header, sizeof *header);
	put_descriptors(&out, header);
	put(&out, layout->mappings, layout->count * sizeof layout->mappings[0]);
	put(&out, layout->texts, layout->text_length);
	for (size_t i = 0; i < layout->count && !out.failed; i++) {
		const struct image_mapping *mapping = &layout->mappings[i];

		if (mapping->kind <= IMAGE_SHARED_ANONYMOUS)
			put_content(&out, mapping, &wanted);
	}
	image_look_end();
}

bool image_send(int out, struct span wanted, int socket)
{
	if (!image_area.compared && !image_obstacle())
		image_compare();
	image_area.arrived = false;
	getcontext(&image_area.header.context);
	/* Twice here: at once, and in the process that became this one. */
	if (image_area.arrived) {
		madvise(&image_area, sizeof image_area, MADV_DONTNEED);
		return true;
	}
	send_all(out, wanted, socket);
	return false;
}
