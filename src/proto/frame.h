/* SPDX-License-Identifier: Apache-2.0 */
/* frame: the one codec between our processes (docs/protocol.md).
 *
 * A frame is a 16-byte header and a body:
 *
 *     u16 magic 0x5845   u16 type   u32 body length   u64 id
 *
 * and a body is a series of fields:
 *
 *     u16 field   u32 length   bytes
 *
 * all little endian. A number is a field of exactly eight bytes. Unknown
 * fields, missing ones and odd lengths are errors of the receiver's choosing:
 * frame_next_field() only promises that no byte outside the frame is read. */
#ifndef EXECPY_PROTO_FRAME_H
#define EXECPY_PROTO_FRAME_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdint.h>

#define FRAME_MAGIC        0x5845u
#define FRAME_HEADER_BYTES 16u
#define FRAME_FIELD_BYTES  6u

struct frame {
	uint16_t type;
	uint64_t id;
	struct span body;
};

struct field {
	uint16_t name;
	struct span value;
};

/* Writing: begin, put fields, end. Returns the frame's offset in `out`, which
 * frame_end() takes to fill in the length. Failures are sticky in `out`. */
size_t frame_begin(struct bytes *out, uint16_t type, uint64_t id);
void frame_put(struct bytes *out, uint16_t field, const void *data, size_t length);
void frame_put_text(struct bytes *out, uint16_t field, const char *text);
void frame_put_number(struct bytes *out, uint16_t field, uint64_t number);
int frame_end(struct bytes *out, size_t start);

/* Reading. frame_next() takes one frame off the reader: 1 when there was one,
 * 0 at a clean end, -EBADMSG for a bad magic, a length beyond what is left or
 * beyond `body_max`. */
int frame_next(struct reader *reader, size_t body_max, struct frame *ret_frame);

struct reader frame_fields(const struct frame *frame);
/* 1 when there was a field, 0 at a clean end, -EBADMSG when it is cut short. */
int frame_next_field(struct reader *reader, struct field *ret_field);
/* 0, or -EBADMSG when the field is not eight bytes long. */
int field_number(const struct field *field, uint64_t *ret_number);

/* One field of a frame, for messages that hold little else; of several of one
 * name the last counts. frame_number() is 0 without the field. frame_text()
 * copies at most size - 1 bytes and leaves `text` as it was without the field. */
uint64_t frame_number(const struct frame *frame, uint16_t name);
void frame_text(const struct frame *frame, uint16_t name, char *text, size_t size);

/* One frame as one SEQPACKET message, with up to FRAME_FDS_MAX descriptors.
 *
 * frame_send() returns 0 or a negative errno (-EAGAIN on a full non-blocking
 * socket); SIGPIPE is never raised. frame_receive() reads one message into
 * `buffer` (which must outlive the frame), stores the received descriptors,
 * all close-on-exec, and unused entries as -1. It returns 1 for a frame, 0
 * when the peer is gone, -EAGAIN, or -EBADMSG for a message that is not one
 * whole frame or whose descriptors did not all fit; then none is left open. */
#define FRAME_FDS_MAX     16
#define FRAME_MESSAGE_MAX ((size_t)128 << 10)

int frame_send(int socket, const struct bytes *message, const int *fds, size_t fd_count);
int frame_receive(int socket, struct bytes *buffer, struct frame *ret_frame,
		  int ret_fds[FRAME_FDS_MAX], size_t *ret_fd_count);

#endif
