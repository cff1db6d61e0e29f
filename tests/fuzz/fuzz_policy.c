/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_policy: any bytes as a policy file, as an encoded policy, as an encoded
 * verdict, as a path and as fenced text. None needs Python. */
#include "policy/finding.h"
#include "policy/policy.h"
#include "policy/text.h"

#include "fuzz.h"

#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void ask(const struct policy *policy, struct span text)
{
	char *name = span_to_string(text);
	enum severity severity;
	enum rule rule;

	if (!name)
		return;
	(void)policy_name(policy, name, &severity);
	(void)policy_module_severity(policy, name, false, &rule);
	(void)policy_event_severity(policy, name, false, &rule);
	(void)policy_path_severity(policy, text, false, true, &rule);
	(void)policy_path_severity(policy, text, true, false, &rule);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {data, size}, inner;
	autobytes once = {0}, twice = {0};
	autopolicy policy = {0}, copy = {0}, decoded = {0};
	autoverdict verdict = {0};
	struct error err = {0};
	uint32_t line;
	int r = policy_parse(text, "policy.yaml", &policy, &err);

	if (r < 0 && (!err.number || !err.text[0]))
		abort();
	if (r == 0) {
		policy_encode(&policy, &once);
		if (policy_decode(bytes_span(&once), &copy, &err) < 0)
			abort();
		policy_encode(&copy, &twice);
		if (once.length != twice.length || memcmp(once.data, twice.data, once.length) != 0)
			abort();
		ask(&policy, text);
	}
	if (policy_decode(text, &decoded, &err) == 0)
		ask(&decoded, text);
	(void)verdict_decode(text, &verdict, &err);
	if (fence_strip(text, &inner, &line) &&
	    (inner.data < data || inner.data + inner.length > data + size))
		abort();
	if (utf8_floor(text, size / 2) > size / 2)
		abort();
	return 0;
}
