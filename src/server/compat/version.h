/* SPDX-License-Identifier: Apache-2.0 */
/* version: which versions a selector of semantic versions means. */
#ifndef EXECPY_SERVER_COMPAT_VERSION_H
#define EXECPY_SERVER_COMPAT_VERSION_H

#include <stdbool.h>

/* "3.11.2" matches "*", "3", "3.11.x", "=3.11.2", "^3.10", "~3.11", ">=3.8", and several of
 * them, with spaces between, when all do. What cannot be read matches nothing. */
bool version_matches(const char *selector, const char *version);

#endif
