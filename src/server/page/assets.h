/* SPDX-License-Identifier: Apache-2.0 */
/* assets: the page's files, as tools/embed_page.py put them into the program. */
#ifndef EXECPY_SERVER_PAGE_ASSETS_H
#define EXECPY_SERVER_PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
	const char *name; /* "index.html" */
	const char *media_type;
	const char *tag; /* for ETag: quoted, made of the content */
	const char *data;
	size_t length;
};

extern const struct page_asset page_assets[]; /* the last has no name */

#endif
