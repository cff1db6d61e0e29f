/* SPDX-License-Identifier: Apache-2.0 */
/* rules: see rules.h. */
#include "policy/rules.h"

#include "base/cleanup.h"

#include <pthread.h>
#include <string.h>

const struct rule_info rule_infos[RULE_COUNT] = {
#define RULE(identifier, id, kind, strict, standard, open, matches, message, hint, reason)   \
	[RULE_##identifier] = {                                                              \
		id,      kind,    {SEVERITY_##strict, SEVERITY_##standard, SEVERITY_##open}, \
		matches, message, hint,                                                      \
		reason},
#include "policy/rules.def"
#undef RULE
};

const char *const profile_names[PROFILE_COUNT] = {"strict", "standard", "open"};

static const char *const severity_names[] = {"off", "note", "warn", "block"};

const char *severity_name(enum severity severity)
{
	return severity_names[severity];
}

bool severity_parse(const char *text, enum severity *ret_severity)
{
	if (strcmp(text, "allow") == 0) {
		*ret_severity = SEVERITY_OFF;
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(severity_names); i++) {
		if (strcmp(severity_names[i], text) == 0) {
			*ret_severity = (enum severity)i;
			return true;
		}
	}
	return false;
}

enum rule rule_find(const char *id)
{
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (strcmp(rule_infos[i].id, id) == 0)
			return (enum rule)i;
	return RULE_COUNT;
}

static const struct name_info names[] = {
#define LISTED(name, rule, hint)    {name, NAME_LISTED, RULE_##rule, hint},
#define HARD(name, rule, hint)      {name, NAME_HARD, RULE_##rule, hint},
#define FINE(name)                  {name, NAME_FINE, RULE_COUNT, NULL},
#define FINE_BELOW(name)            {name, NAME_FINE_BELOW, RULE_COUNT, NULL},
#define BAD(name, rule, hint)       {name, NAME_BAD, RULE_##rule, hint},
#define CALL(name, rule, arguments) {name, NAME_CALL, RULE_##rule, arguments},
#define ALIAS(name, target)         {name, NAME_ALIAS, RULE_COUNT, target},
#include "policy/names.def"
};

static const struct {
	const char *name;
	enum rule rule;
} attributes[] = {
#define INTERNAL(name, rule) {name, RULE_##rule},
#include "policy/names.def"
};

/* Both tables are looked up by a hash made at the first use. */
#define NAME_SLOTS      4096u
#define ATTRIBUTE_SLOTS 256u
static uint16_t name_slots[NAME_SLOTS];
static uint16_t attribute_slots[ATTRIBUTE_SLOTS];
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;

_Static_assert(ARRAY_LENGTH(names) < NAME_SLOTS / 2, "the hash of names is too full");
_Static_assert(ARRAY_LENGTH(attributes) < ATTRIBUTE_SLOTS / 2,
	       "the hash of attributes is too full");

static uint32_t hash_bytes(const char *data, size_t length)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)data[i]) * 16777619u;
	return hash ^ hash >> 15;
}

static void fill_slots(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		uint32_t at = hash_bytes(names[i].name, strlen(names[i].name));

		/* The first of two entries of one name wins; a test forbids them. */
		for (; name_slots[at % NAME_SLOTS]; at++)
			if (strcmp(names[name_slots[at % NAME_SLOTS] - 1].name, names[i].name) == 0)
				break;
		if (!name_slots[at % NAME_SLOTS])
			name_slots[at % NAME_SLOTS] = (uint16_t)(i + 1);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(attributes); i++) {
		uint32_t at = hash_bytes(attributes[i].name, strlen(attributes[i].name));

		while (attribute_slots[at % ATTRIBUTE_SLOTS])
			at++;
		attribute_slots[at % ATTRIBUTE_SLOTS] = (uint16_t)(i + 1);
	}
}

const struct name_info *name_find(const char *name)
{
	uint32_t at = hash_bytes(name, strlen(name));

	pthread_once(&slots_once, fill_slots);
	for (; name_slots[at % NAME_SLOTS]; at++) {
		const struct name_info *info = &names[name_slots[at % NAME_SLOTS] - 1];

		if (strcmp(info->name, name) == 0)
			return info;
	}
	return NULL;
}

size_t name_count(void)
{
	return ARRAY_LENGTH(names);
}

const struct name_info *name_at(size_t index)
{
	return &names[index];
}

enum rule internal_attribute(struct span name)
{
	uint32_t at = hash_bytes((const char *)name.data, name.length);

	pthread_once(&slots_once, fill_slots);
	for (; attribute_slots[at % ATTRIBUTE_SLOTS]; at++) {
		size_t i = attribute_slots[at % ATTRIBUTE_SLOTS] - 1u;

		if (span_equals(name, attributes[i].name))
			return attributes[i].rule;
	}
	return RULE_COUNT;
}

static void document_names(struct bytes *out, enum name_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (names[i].kind == kind)
			bytes_append_format(out, "%s`%s`", count++ ? ", " : "", names[i].name);
	bytes_append_text(out, ".\n");
}

/* A cell of a Markdown table: `|` would end it. */
static void document_cell(struct bytes *out, const char *text)
{
	bytes_append_text(out, " ");
	for (; *text; text++) {
		if (*text == '|')
			bytes_append_text(out, "\\");
		bytes_append(out, text, 1);
	}
	bytes_append_text(out, " |");
}

void rules_document(struct bytes *out)
{
	bytes_append_text(
		out,
		"# Rules\n\n"
		"Made from `src/policy/rules.def` and `src/policy/names.def` by "
		"`verify-tool --rules-md`; a test fails when this file is stale.\n\n"
		"A finding of severity `block` refuses the code; `warn` and `note` are told and "
		"the "
		"code runs; `off` is not told. `%s` stands for the name at fault. A use of a "
		"listed "
		"module always reads `module 'NAME' is not allowed`. docs/policies.md tells how to "
		"change severities and names.\n\n"
		"The rules are a guide and a gate. The fence is the jail.\n");
	for (size_t i = 0; i < RULE_COUNT; i++) {
		const struct rule_info *rule = &rule_infos[i];

		if (i == 0 || strcmp(rule->kind, rule_infos[i - 1].kind) != 0)
			bytes_append_format(out,
					    "\n## %s\n\n"
					    "| rule | matches | strict | standard | open | message "
					    "| hint | reason |\n"
					    "|---|---|---|---|---|---|---|---|\n",
					    strcmp(rule->kind, "source") == 0   ? "Source"
					    : strcmp(rule->kind, "danger") == 0 ? "Danger"
										: "About to fail");
		bytes_append_format(out, "| `%s` |", rule->id);
		document_cell(out, rule->matches);
		for (size_t p = 0; p < PROFILE_COUNT; p++)
			document_cell(out, severity_name(rule->severity[p]));
		document_cell(out, rule->message);
		document_cell(out, rule->hint);
		document_cell(out, rule->reason);
		bytes_append_text(out, "\n");
	}
	bytes_append_text(out, "\n## Listed modules\n\nRefused unless every use is harmless: ");
	document_names(out, NAME_LISTED);
	bytes_append_text(out, "\nRefused as well when only imported: ");
	document_names(out, NAME_HARD);
	bytes_append_text(out, "\n## Harmless uses of listed modules\n\n");
	document_names(out, NAME_FINE);
	bytes_append_text(out, "\nWith everything below: ");
	document_names(out, NAME_FINE_BELOW);
	bytes_append_text(out, "\nJudged by their arguments: ");
	document_names(out, NAME_CALL);
	bytes_append_text(out, "\n## Refused wherever they are mentioned\n\n");
	document_names(out, NAME_BAD);
	bytes_append_text(out, "\n## Internal attributes\n\n");
	for (size_t i = 0; i < ARRAY_LENGTH(attributes); i++)
		bytes_append_format(out, "%s`%s` (%s)", i ? ", " : "", attributes[i].name,
				    rule_infos[attributes[i].rule].id);
	bytes_append_text(out, ".\n");
}
