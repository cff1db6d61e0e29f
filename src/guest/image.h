/* SPDX-License-Identifier: Apache-2.0 */
/* image: what a process of a session is made of beside its code: mappings, pages,
 * descriptors, and how another fork of the same template becomes it. See image.c. */
#ifndef EXECPY_GUEST_IMAGE_H
#define EXECPY_GUEST_IMAGE_H

#include "guest/guest.h"

#include <limits.h>
#include <signal.h>
#include <sys/uio.h>
#include <ucontext.h>

enum image_kind {
	IMAGE_ANONYMOUS, /* private: heap, stacks, arenas */
	IMAGE_FILE,      /* private, of a file */
	IMAGE_SHARED_ANONYMOUS,
	IMAGE_SHARED_FILE,
	IMAGE_MAILBOX,
	IMAGE_KERNEL, /* vdso and the like */
};

struct image_mapping {
	uintptr_t from, to;
	uint64_t offset, device, inode;
	uint32_t path;      /* in the layout's texts; 0: none */
	int32_t descriptor; /* through which a file without a name is mapped, or -1 */
	uint8_t kind, rights;
	bool nameless, stack;
};

struct image_layout {
	size_t count, text_length;
	struct image_mapping mappings[BRANCH_MAPPINGS_MAX];
	char texts[BRANCH_TEXTS_BYTES_MAX];
};

enum image_descriptor_kind {
	DESCRIPTOR_DEAD, /* the end of a connection that is closed */
	DESCRIPTOR_NAMED,
	DESCRIPTOR_NAMELESS, /* its content follows, unless it is one that came before */
};

struct image_descriptor {
	int32_t number, kind, flags, seals;
	int32_t same_as; /* the number of another without a name, for the same file */
	bool close_on_exec, memory;
	uint32_t path_length;
	uint64_t offset, size, device, inode;
};

/* What a page of a private mapping is, for whoever becomes the other. */
enum image_state {
	PAGE_KEPT, /* as the template left it */
	PAGE_NONE, /* never written: zeros, or what the file says */
	PAGE_DATA, /* its content follows */
};

struct image_run {
	uint32_t state, pages;
};
/* They come in bunches: how many, all of them, and the content of all. */
#define IMAGE_RUNS 1024

struct image_range {
	uint64_t from, pages;
};

struct image_action {
	uint64_t words[4]; /* as the kernel has it */
};

struct image_header {
	uint64_t magic, heap_end, mailbox, mappings, text_length, descriptors;
	int32_t socket, mask;
	stack_t stack;
	struct image_action actions[_NSIG];
	char directory[PATH_MAX];
	ucontext_t context;
};
#define IMAGE_MAGIC UINT64_C(0x4d49595045435845)

/* Where both sides work while the rest of the memory is read or replaced: at the same
 * address in all forks of a template, and never carried over. */
struct image_area {
	/* No other variable shares a page with it, whatever a page is. */
	_Alignas(64 * KIB) uint8_t stack[256 * KIB];
	uint64_t entries[4096];
	struct image_layout own, other;
	struct image_header header;
	struct image_descriptor descriptors[BRANCH_DESCRIPTORS_MAX];
	struct image_range ranges[BRANCH_RANGES_MAX];
	struct image_run runs[IMAGE_RUNS];
	struct iovec pieces[IMAGE_RUNS];
	int pagemap; /* while there is more to look at; 0: not open */
	uint8_t message[FRAME_MESSAGE_MAX];
	uint64_t differs[BRANCH_ORIGIN_PAGES_MAX / 64];
	char path[PATH_MAX], text[64 * KIB];
	ucontext_t here, stub;
	volatile bool arrived;
	bool compared; /* and since then this process did nothing but wait and send */
};
extern struct image_area image_area;

/* image.c */

/* Remembers what the memory of the template holds, by a number a page; all sessions
 * that are forked later can be branched. Once. Stage: template. */
int image_remember(struct error *err);
/* The mappings of the calling process. `*ret_why` on failure. */
int image_read_layout(struct image_layout *layout, const char **ret_why);
/* A look at pages: at most ARRAY_LENGTH(entries) of them, into the area; and the end of
 * looking. */
int image_look(uintptr_t from, size_t pages);
void image_look_end(void);
/* That page is the process's own, and not its file's. */
static inline bool image_is_own(uint64_t entry)
{
	return (entry & (UINT64_C(3) << 62)) && !(entry & (UINT64_C(1) << 61));
}
size_t image_page(void);
/* Of a page in a private mapping: what the template had there, as the index of what is
 * remembered, or SIZE_MAX when that was nothing, or in another mapping. */
size_t image_origin(const struct image_mapping *mapping, uintptr_t page);
bool image_is_as_origin(size_t origin, const void *page);
/* The template had that very mapping, whatever is in it. */
bool image_inherits(const struct image_mapping *mapping);
bool image_is_remembered(void);
/* Calls for each page of which the template had something. */
void image_each_origin(void (*tell)(size_t origin, uintptr_t page, void *user), void *user);
/* What the kernel and libc write to at any time. */
bool image_is_the_threads(uintptr_t page);
bool image_in_area(uintptr_t from, uintptr_t to);

/* image_send.c: in a parked checkpoint of the session that is branched. */

/* Why this process cannot be become, or NULL. */
const char *image_obstacle(void);
/* Finds which pages differ from the template's, for all that is sent later; after the
 * look for obstacles. */
void image_compare(void);
/* A fork runs what libraries want to be run before one: what was found may be old now. */
void image_will_fork(void);
/* Writes the whole process to `out`; `wanted` are pages that the receiver has changed.
 * True in the process that became this one, which goes on here with `socket`. */
bool image_send(int out, struct span wanted, int socket);

/* image_take.c: in the process of a branch's cell that is to become the other one. */

/* Says on `link` that it is there, with the listener of its watch, and becomes what
 * comes. No user code has run in it until then. */
_Noreturn void image_await(int link, int listener);

#endif
