/* SPDX-License-Identifier: Apache-2.0 */
/* transfer: the files of one cell to another, from judge to judge. */
#ifndef EXECPY_GUEST_TRANSFER_H
#define EXECPY_GUEST_TRANSFER_H

#include "base/error.h"

#include <stddef.h>

/* Writes all that is in a directory to a pipe: regular files, directories, links and
 * FIFOs. Fails for what cannot be read, or is nested too deep. Stage: judge. */
int transfer_send(const char *directory, int out, struct error *err);
/* Makes in a directory of one's own what comes. Nothing else may change it meanwhile. */
int transfer_receive(const char *directory, int in, struct error *err);
/* Exactly so many bytes. */
int transfer_put(int out, const void *data, size_t length, struct error *err);
int transfer_get(int in, void *data, size_t length, struct error *err);

#endif
