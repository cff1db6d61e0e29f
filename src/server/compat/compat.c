/* SPDX-License-Identifier: Apache-2.0 */
/* compat: see compat.h. */
#include "server/compat/compat.h"

#include "base/cleanup.h"

#include <string.h>

void compat_drop_nulls(json_t *object)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value)
	{
		if (json_is_null(value))
			json_object_del(object, key);
	}
}

struct ask_rules compat_rules(const struct rest_call *call)
{
	const struct http_numbers *numbers = &call->rest->server->numbers;
	struct ask_rules rules = rest_rules(call->tenant);

	rules.initial = limits_default();
	rules.initial.time_ms = rules.initial.cpu_ms = numbers->compat_time_ms;
	rules.initial.memory_bytes = numbers->compat_memory_bytes;
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t *limit = limit_at(&rules.initial, &limit_infos[i]);

		*limit = compat_within(*limit, limit_infos[i].least,
				       limit_get(&rules.ceilings, &limit_infos[i]));
	}
	return rules;
}

const char *compat_policy(const struct rest_call *call)
{
	char **configured = call->rest->server->compat_policy;
	const char *wanted = configured ? configured[0] : "standard";
	char **policies = call->tenant->policies;

	for (char **policy = policies; policy && *policy; policy++)
		if (strcmp(*policy, wanted) == 0)
			return wanted;
	return policies && policies[0] ? policies[0] : wanted;
}

uint64_t compat_within(uint64_t asked, uint64_t least, uint64_t most)
{
	return asked > most ? most : asked < least ? least : asked;
}

bool compat_is_python(const char *language)
{
	static const char *const names[] = {"python", "python3", "py", "py3"};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(names[i], language) == 0)
			return true;
	return false;
}

void compat_stderr(struct execpy_result *result, struct bytes *out)
{
	const char *explanation = execpy_result_explanation(result);

	capture_text(&result->output[1], out);
	out->ceiling = SIZE_MAX / 4;
	if (!explanation)
		return;
	if (out->length > 0 && out->data[out->length - 1] != '\n')
		bytes_append_text(out, "\n");
	bytes_append_text(out, explanation);
}

void compat_send(struct rest_call *call)
{
	rest_send(call, 200, "application/json");
}
