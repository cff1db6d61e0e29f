/* SPDX-License-Identifier: Apache-2.0 */
/* picture: how large a PNG or JPEG is, by its header alone. */
#ifndef EXECPY_BASE_PICTURE_H
#define EXECPY_BASE_PICTURE_H

#include "base/bytes.h"

/* Its sides in pixels. False when it is neither, or does not say. Any bytes may be given;
 * nothing of the picture itself is decoded. */
bool picture_size(struct span data, uint32_t *ret_width, uint32_t *ret_height);

#endif
