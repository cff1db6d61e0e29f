/* SPDX-License-Identifier: Apache-2.0 */
/* memfile: bytes in memory with a descriptor, to hand to another process what does
 * not fit into a message. */
#ifndef EXECPY_BASE_MEMFILE_H
#define EXECPY_BASE_MEMFILE_H

#include "base/bytes.h"
#include "base/error.h"

/* A memfd that holds the content, its offset at the start; the caller's. `what` names
 * it in errors. */
int memfile_write(const char *what, struct span content, struct error *err);
/* Copies out what a descriptor holds, in place of what `content` held: 0; -EBADMSG when
 * that is more than `length_max`, or no file; -ENOMEM; or what reading failed with.
 * Its offset may be anywhere before and after. */
int memfile_read(int fd, const char *what, size_t length_max, struct bytes *content,
		 struct error *err);

#endif
