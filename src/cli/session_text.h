/* SPDX-License-Identifier: Apache-2.0 */
/* session_text: sessions and their files, for a person. */
#ifndef EXECPY_CLI_SESSION_TEXT_H
#define EXECPY_CLI_SESSION_TEXT_H

#include "base/bytes.h"
#include "engine/execpy.h"

/* One line a session; first the heads of the columns. */
void session_text_heads(struct bytes *out);
void session_text_row(const struct execpy_session_info *info, struct bytes *out);
/* All there is to say of one that lives, a line each. */
void session_text_info(const struct execpy_session_info *info, struct bytes *out);
/* Size, time of change and name. */
void session_text_file(const struct execpy_session_file *file, struct bytes *out);

#endif
