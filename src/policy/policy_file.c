/* SPDX-License-Identifier: Apache-2.0 */
/* policy_file: reads policy files (docs/policies.md). */
#include "policy/document.h"
#include "policy/policy.h"
#include "policy/text.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct parse {
	struct document file;
	struct policy policy;
	bool seen_name, seen_profile, seen_rules, seen_modules, seen_calls, seen_paths;
};

static int severity(struct parse *parse, enum severity *ret_severity)
{
	struct document *file = &parse->file;
	char text[32];
	int r = document_scalar(file, "a severity", text, sizeof text);

	if (r < 0)
		return r;
	if (!severity_parse(text, ret_severity))
		return document_wrong_here(
			file, "'%s' is no severity: use block, warn, note, off or allow", text);
	return 0;
}

static int add_name(struct parse *parse, const char *name, bool module, yaml_mark_t mark,
		    enum severity severity_of_name)
{
	struct document *file = &parse->file;
	struct policy *policy = &parse->policy;
	struct policy_name *grown;

	if (!name_is_dotted(name))
		return document_wrong(file, mark, "'%s' is no dotted name", name);
	for (size_t i = 0; i < policy->name_count; i++)
		if (strcmp(policy->names[i].name, name) == 0)
			return document_wrong(file, mark, "'%s' stands here twice", name);
	if (policy->name_count >= POLICY_ENTRIES_MAX)
		return document_wrong(file, mark, "more than %d names", POLICY_ENTRIES_MAX);
	grown = realloc(policy->names, (policy->name_count + 1) * sizeof *grown);
	if (!grown)
		return document_out_of_memory(file);
	policy->names = grown;
	grown[policy->name_count] = (struct policy_name){strdup(name), module, severity_of_name};
	if (!grown[policy->name_count].name)
		return document_out_of_memory(file);
	policy->name_count++;
	return 0;
}

/* modules: or calls: a mapping of names to severities. */
static int parse_names(struct parse *parse, bool module)
{
	struct document *file = &parse->file;
	int r = document_enter(file, YAML_MAPPING_START_EVENT,
			       module ? "modules must be a mapping of names"
				      : "calls must be a mapping of names");

	if (r < 0)
		return r;
	while ((r = document_next(file)) == 0 && !document_is(file, YAML_MAPPING_END_EVENT)) {
		char name[POLICY_ENTRY_BYTES_MAX + 1];
		yaml_mark_t mark = document_mark(file);
		enum severity level;

		if ((r = document_scalar(file, "a name", name, sizeof name)) < 0 ||
		    (r = document_next(file)) < 0 || (r = severity(parse, &level)) < 0 ||
		    (r = add_name(parse, name, module, mark, level)) < 0)
			return r;
	}
	return r;
}

static int parse_rules(struct parse *parse)
{
	struct document *file = &parse->file;
	bool seen[RULE_COUNT] = {false};
	int r = document_enter(file, YAML_MAPPING_START_EVENT, "rules must be a mapping of rules");

	if (r < 0)
		return r;
	while ((r = document_next(file)) == 0 && !document_is(file, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		char id[64];
		enum rule rule;
		enum severity level;

		if ((r = document_scalar(file, "a rule", id, sizeof id)) < 0)
			return r;
		rule = rule_find(id);
		if (rule == RULE_COUNT)
			return document_wrong(file, mark, "there is no rule '%s'", id);
		if (seen[rule])
			return document_wrong(file, mark, "the rule '%s' stands here twice", id);
		seen[rule] = true;
		if ((r = document_next(file)) < 0 || (r = severity(parse, &level)) < 0)
			return r;
		/* What cannot be read cannot be judged: no policy lets it run. */
		if (level != SEVERITY_BLOCK &&
		    (rule == RULE_ENCODING || rule == RULE_NUL || rule == RULE_NOT_SOURCE ||
		     rule == RULE_TOO_LARGE || rule == RULE_CRASH))
			return document_wrong_here(file, "the rule '%s' always blocks", id);
		parse->policy.severity[rule] = level;
	}
	return r;
}

static int add_path(struct parse *parse, bool write)
{
	struct document *file = &parse->file;
	struct policy *policy = &parse->policy;
	yaml_mark_t mark = document_mark(file);
	char path[POLICY_ENTRY_BYTES_MAX + 1], normal[PATH_TEXT_MAX];
	struct policy_path *grown;
	int r = document_scalar(file, "a path", path, sizeof path);

	if (r < 0)
		return r;
	if (path[0] != '/')
		return document_wrong(file, mark, "the path '%.100s' must begin with /", path);
	if (!path_normalize((struct span){(const uint8_t *)path, strlen(path)}, false, normal) ||
	    strlen(normal) > POLICY_ENTRY_BYTES_MAX)
		return document_wrong(file, mark, "the path '%.100s' is too long", path);
	if (policy->path_count >= POLICY_ENTRIES_MAX)
		return document_wrong(file, mark, "more than %d paths", POLICY_ENTRIES_MAX);
	grown = realloc(policy->paths, (policy->path_count + 1) * sizeof *grown);
	if (!grown)
		return document_out_of_memory(file);
	policy->paths = grown;
	/* "/" itself would match only with its slash taken off. */
	if (strcmp(normal, "/") == 0)
		normal[0] = '\0';
	if (!normal[0])
		return document_wrong(file, mark, "the path / would allow everything");
	grown[policy->path_count] = (struct policy_path){strdup(normal), write};
	if (!grown[policy->path_count].path)
		return document_out_of_memory(file);
	policy->path_count++;
	return 0;
}

static int parse_paths(struct parse *parse)
{
	struct document *file = &parse->file;
	int r = document_enter(file, YAML_MAPPING_START_EVENT,
			       "paths must be a mapping of read and write");

	if (r < 0)
		return r;
	while ((r = document_next(file)) == 0 && !document_is(file, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		char key[64];
		bool write;

		if ((r = document_scalar(file, "a key", key, sizeof key)) < 0)
			return r;
		write = strcmp(key, "write") == 0;
		if (!write && strcmp(key, "read") != 0)
			return document_wrong(
				file, mark, "there is no key '%s' in paths: use read, write", key);
		r = document_enter(file, YAML_SEQUENCE_START_EVENT,
				   write ? "write must be a list of paths"
					 : "read must be a list of paths");
		if (r < 0)
			return r;
		while ((r = document_next(file)) == 0 &&
		       !document_is(file, YAML_SEQUENCE_END_EVENT))
			if ((r = add_path(parse, write)) < 0)
				return r;
		if (r < 0)
			return r;
	}
	return r;
}

static int parse_key(struct parse *parse)
{
	struct document *file = &parse->file;
	yaml_mark_t mark = document_mark(file);
	char key[64], text[POLICY_NAME_BYTES_MAX + 1];
	struct policy base = {0};
	int r = document_scalar(file, "a key", key, sizeof key);

	if (r < 0)
		return r;
	if (strcmp(key, "name") == 0) {
		if ((r = document_once(file, &parse->seen_name, key, mark)) < 0 ||
		    (r = document_next(file)) < 0 ||
		    (r = document_scalar(file, "the name", text, sizeof text)) < 0)
			return r;
		memcpy(parse->policy.name, text, sizeof text);
		return 0;
	}
	if (strcmp(key, "profile") == 0) {
		if ((r = document_once(file, &parse->seen_profile, key, mark)) < 0)
			return r;
		if (parse->seen_rules || parse->seen_modules || parse->seen_calls ||
		    parse->seen_paths)
			return document_wrong(file, mark,
					      "profile must stand before what changes it");
		if ((r = document_next(file)) < 0 ||
		    (r = document_scalar(file, "the profile", text, sizeof text)) < 0)
			return r;
		if (policy_find_profile(text, &base) < 0)
			return document_wrong_here(
				file, "there is no profile '%s': use strict, standard or open",
				text);
		memcpy(parse->policy.severity, base.severity, sizeof base.severity);
		parse->policy.profile = base.profile;
		return 0;
	}
	if (strcmp(key, "rules") == 0)
		return (r = document_once(file, &parse->seen_rules, key, mark)) < 0
			       ? r
			       : parse_rules(parse);
	if (strcmp(key, "modules") == 0)
		return (r = document_once(file, &parse->seen_modules, key, mark)) < 0
			       ? r
			       : parse_names(parse, true);
	if (strcmp(key, "calls") == 0)
		return (r = document_once(file, &parse->seen_calls, key, mark)) < 0
			       ? r
			       : parse_names(parse, false);
	if (strcmp(key, "paths") == 0)
		return (r = document_once(file, &parse->seen_paths, key, mark)) < 0
			       ? r
			       : parse_paths(parse);
	return document_wrong(
		file, mark, "there is no key '%s': use name, profile, rules, modules, calls, paths",
		key);
}

static int parse_document(struct parse *parse, struct span text, const char *origin,
			  struct error *err)
{
	struct document *file = &parse->file;
	int r = document_open(file, text, origin, "policy file", err);

	if (r < 0)
		return r;
	while ((r = document_next(file)) == 0 && !document_is(file, YAML_MAPPING_END_EVENT))
		if ((r = parse_key(parse)) < 0)
			return r;
	if (r < 0 || (r = document_end(file)) < 0)
		return r;
	if (!parse->seen_profile)
		return refuse(err, EINVAL,
			      "%.80s:1:1: the key 'profile' is missing: strict, standard or open",
			      origin);
	return 0;
}

int policy_parse(struct span text, const char *origin, struct policy *ret_policy, struct error *err)
{
	struct parse parse = {.policy = policy_profile(PROFILE_STRICT)};
	const char *base = strrchr(origin, '/');
	int r;

	if (text.length > POLICY_FILE_BYTES_MAX)
		return refuse(err, EINVAL, "%.80s: larger than %zu bytes", origin,
			      POLICY_FILE_BYTES_MAX);
	snprintf(parse.policy.name, sizeof parse.policy.name, "%s", base ? base + 1 : origin);
	r = parse_document(&parse, text, origin, err);
	document_close(&parse.file);
	if (r < 0) {
		policy_free(&parse.policy);
		return r;
	}
	*ret_policy = parse.policy;
	return 0;
}

int policy_load(const char *name_or_path, struct policy *ret_policy, struct error *err)
{
	autobytes text = {.ceiling = 2 * POLICY_FILE_BYTES_MAX};
	int r;

	if (policy_find(name_or_path, ret_policy) == 0)
		return 0;
	if (access(name_or_path, F_OK) < 0)
		return fail(err, errno,
			    "policy '%.100s' is neither strict, standard, open nor a file",
			    name_or_path);
	r = document_read(name_or_path, "policy file", POLICY_FILE_BYTES_MAX, &text, err);
	return r < 0 ? r : policy_parse(bytes_span(&text), name_or_path, ret_policy, err);
}
