/* SPDX-License-Identifier: Apache-2.0 */
/* policies: see policies.h. */
#include "policy/policies.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static struct policies known;

int policies_add(struct policies *policies, struct span text, const char *origin, struct error *err)
{
	struct policy policy, built_in, *grown;
	int r = policy_parse(text, origin, &policy, err);

	if (r < 0)
		return r;
	if (policy_find_profile(policy.name, &built_in) == 0)
		r = refuse(err, EEXIST, "%.80s: the name %s is that of a built-in policy", origin,
			   policy.name);
	for (size_t i = 0; r == 0 && i < policies->count; i++)
		if (strcmp(policies->list[i].name, policy.name) == 0)
			r = refuse(err, EEXIST, "%.80s: another policy has the name %s", origin,
				   policy.name);
	grown = r == 0 ? realloc(policies->list, (policies->count + 1) * sizeof *grown) : NULL;
	if (r == 0 && !grown)
		r = fail(err, ENOMEM, "policies");
	if (r < 0) {
		policy_free(&policy);
		return r;
	}
	policies->list = grown;
	grown[policies->count++] = policy;
	return 0;
}

void policies_free(struct policies *policies)
{
	for (size_t i = 0; i < policies->count; i++)
		policy_free(&policies->list[i]);
	free(policies->list);
	*policies = (struct policies){0};
}

void policies_know(struct policies *policies)
{
	policies_free(&known);
	known = *policies;
	*policies = (struct policies){0};
}

int policies_find(const char *name, struct policy *ret_policy)
{
	for (size_t i = 0; i < known.count; i++) {
		autobytes encoded = {0};

		if (strcmp(known.list[i].name, name) != 0)
			continue;
		policy_encode(&known.list[i], &encoded);
		return encoded.failed ? encoded.failed
				      : policy_decode(bytes_span(&encoded), ret_policy, NULL);
	}
	return -ENOENT;
}
