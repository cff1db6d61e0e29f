/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox: the memory through which code goes into a cell and results come out.
 *
 * Theory of operation. User code must not have a descriptor of ours, and must
 * not be able to end our protocol by closing one. So a cell has no channel at
 * all: a sealed memfd of fixed size is mapped into it before user code runs,
 * and its descriptor is closed. The engine holds the descriptor and uses
 * pread and pwrite only: it copies first and parses the copy, so nothing that
 * the cell changes later matters, and the seals keep a shrunk file from
 * raising SIGBUS.
 *
 *     0        struct mailbox_header
 *     16 KiB   frames at a limit (one MESSAGE_FRAMES), written by a signal handler
 *     256 KiB  the request (one MESSAGE_REQUEST), written by the engine
 *     4 MiB    the response: frames, appended
 *
 * The verdict does not go this way: user code could rewrite it. It has a memfd
 * of its own, which the cell writes with write() and closes before user code
 * runs; what is in it afterwards nobody inside can reach. When code is only
 * checked, one cell may judge several, one frame each.
 *
 * Everything in the mailbox is the cell's own word and counts for nothing but its
 * value, displays and error. Pages cost memory only when they are touched;
 * those that the cell touches are charged to it. */
#ifndef EXECPY_PROTO_MAILBOX_H
#define EXECPY_PROTO_MAILBOX_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/bounds.h"

#include <stdatomic.h>

#define MAILBOX_MAGIC         0x4d584550u
#define MAILBOX_FRAMES_AT     (16 * KIB)
#define MAILBOX_FRAMES_BYTES  (128 * KIB)
#define MAILBOX_REQUEST_AT    (256 * KIB)
#define MAILBOX_REQUEST_BYTES (4 * MIB - 256 * KIB)
#define MAILBOX_RESPONSE_AT   (4 * MIB)
#define MAILBOX_BYTES         (MAILBOX_RESPONSE_AT + RESPONSE_BYTES_MAX)

struct mailbox_header {
	uint32_t magic;
	_Atomic uint32_t frames_length;   /* 0 until the frames are complete */
	_Atomic uint32_t request_length;  /* 0 until the request is complete */
	_Atomic uint32_t response_length; /* grows frame by frame */
	_Atomic uint32_t done;            /* 1 + exit status: all that comes is an exit */
};

/* Makes one: a sealed memfd, or a negative errno. */
int mailbox_create(struct error *err);
/* Maps the whole of it (the cell) or only the header (the warden). NULL and err. */
void *mailbox_map(int fd, size_t length, struct error *err);

/* Where verdicts go: an empty memfd. And what was written there: at most
 * VERDICTS_BYTES_MAX. */
int verdict_create(struct error *err);
int verdict_read(int fd, struct bytes *ret_frames, struct error *err);

/* The engine's side. Writes one whole request frame. */
int mailbox_write_request(int fd, const struct bytes *frame, struct error *err);
/* Copies out what the cell published; an empty area is no error. Lengths that
 * the cell claims are cut to the area's size. */
int mailbox_read_response(int fd, struct bytes *ret_frames, struct error *err);
/* Appends what came behind the first `from` bytes; -ENODATA when there is less. */
int mailbox_read_more(int fd, size_t from, struct bytes *frames, struct error *err);
int mailbox_read_frames(int fd, struct bytes *ret_frames, struct error *err);

#endif
