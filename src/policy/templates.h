/* SPDX-License-Identifier: Apache-2.0 */
/* templates: those that have a name, what they import and how they are warmed
 * up. One table for the engine, the daemon's configuration and the documents. */
#ifndef EXECPY_POLICY_TEMPLATES_H
#define EXECPY_POLICY_TEMPLATES_H

#include <stddef.h>

#define TEMPLATE_MODULES_MAX 4

struct template_info {
	const char *name;
	const char *modules[TEMPLATE_MODULES_MAX + 1]; /* in order; NULL-terminated */
	/* Python that the template runs once after its imports, so that no cell
	 * does these things for the first time. "" when there is nothing to do.
	 * Trusted: it runs outside of any cell. */
	const char *warm_up;
};

/* From the smallest to the largest: each imports what those before it do. */
#define TEMPLATE_COUNT 4
extern const struct template_info template_infos[TEMPLATE_COUNT];

/* NULL when there is none of this name. */
const struct template_info *template_find(const char *name);
/* The smallest one that imports all those of `modules` that any of them does:
 * the others' imports happen in the cell. Never NULL. */
const struct template_info *template_covering(const char *const *modules, size_t count);

#endif
