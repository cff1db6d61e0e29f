/* SPDX-License-Identifier: Apache-2.0 */
/* policies: policies that have a name in this process, beside the built-in ones.
 *
 * For a process that names policies for its clients and may not open files: what it was
 * given at its start, and again later, is found by its name. */
#ifndef EXECPY_POLICY_POLICIES_H
#define EXECPY_POLICY_POLICIES_H

#include "policy/policy.h"

struct policies {
	struct policy *list;
	size_t count;
};

/* Parses one more, which must have a name of its own. */
int policies_add(struct policies *policies, struct span text, const char *origin,
		 struct error *err);
void policies_free(struct policies *policies); /* may be zero */

/* From now on policy_find() finds these, which it takes over, instead of those before. */
void policies_know(struct policies *policies);
/* A copy of the one of that name, or -ENOENT. For policy_find(). */
int policies_find(const char *name, struct policy *ret_policy);

#endif
