/* SPDX-License-Identifier: Apache-2.0 */
/* policy_file: reads policy files (docs/policies.md).
 *
 * The format is a small part of YAML, parsed by libyaml: it is what PyYAML,
 * Kubernetes' Go port and Ruby have parsed with since 2006, has no
 * dependencies, an ABI that has not changed since, a maintained package in
 * every distribution, and gives line and column of each token, which the
 * alternatives in Debian (libconfig: no columns; inih: flat; libconfuse: lines
 * only; no TOML library for C) do not. Only its event parser is used: every
 * scalar is text here, so none of YAML's guessing ("no", "1e3") happens.
 * Anchors, aliases, tags and a second document are errors. */
#include "policy/policy.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

struct parse {
	yaml_parser_t parser;
	yaml_event_t event;
	bool held; /* `event` must be freed */
	const char *origin;
	struct policy policy;
	bool seen_name, seen_profile, seen_rules, seen_modules, seen_calls, seen_paths;
	struct error *err;
};

static int wrong(struct parse *parse, yaml_mark_t mark, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int wrong(struct parse *parse, yaml_mark_t mark, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return refuse(parse->err, EINVAL, "%.80s:%zu:%zu: %s", parse->origin, mark.line + 1,
		      mark.column + 1, text);
}

static int next(struct parse *parse)
{
	if (parse->held)
		yaml_event_delete(&parse->event);
	parse->held = false;
	if (!yaml_parser_parse(&parse->parser, &parse->event)) {
		yaml_mark_t mark = parse->parser.problem_mark;

		if (parse->parser.error == YAML_MEMORY_ERROR)
			return fail(parse->err, ENOMEM, "%.80s", parse->origin);
		if (parse->parser.error == YAML_READER_ERROR)
			return refuse(parse->err, EINVAL, "%.80s: %s at byte %zu", parse->origin,
				      parse->parser.problem, parse->parser.problem_offset);
		return wrong(parse, mark, "%s",
			     parse->parser.problem ? parse->parser.problem : "not a policy file");
	}
	parse->held = true;
	if (parse->event.type == YAML_ALIAS_EVENT)
		return wrong(parse, parse->event.start_mark, "aliases are not allowed");
	if ((parse->event.type == YAML_SCALAR_EVENT &&
	     (parse->event.data.scalar.anchor || parse->event.data.scalar.tag)) ||
	    (parse->event.type == YAML_MAPPING_START_EVENT &&
	     (parse->event.data.mapping_start.anchor || parse->event.data.mapping_start.tag)) ||
	    (parse->event.type == YAML_SEQUENCE_START_EVENT &&
	     (parse->event.data.sequence_start.anchor || parse->event.data.sequence_start.tag)))
		return wrong(parse, parse->event.start_mark, "anchors and tags are not allowed");
	return 0;
}

static bool is(const struct parse *parse, yaml_event_type_t type)
{
	return parse->event.type == type;
}

/* The scalar that is the current event, as text without NUL. */
static int scalar(struct parse *parse, const char *what, char *ret_text, size_t size)
{
	const yaml_event_t *event = &parse->event;
	size_t length;

	if (event->type != YAML_SCALAR_EVENT)
		return wrong(parse, event->start_mark, "%s must be one word", what);
	length = event->data.scalar.length;
	if (!length || length >= size || memchr(event->data.scalar.value, '\0', length))
		return wrong(parse, event->start_mark, "%s must have 1 to %zu bytes", what,
			     size - 1);
	memcpy(ret_text, event->data.scalar.value, length);
	ret_text[length] = '\0';
	return 0;
}

static int severity(struct parse *parse, enum severity *ret_severity)
{
	char text[32];
	int r = scalar(parse, "a severity", text, sizeof text);

	if (r < 0)
		return r;
	if (!severity_parse(text, ret_severity))
		return wrong(parse, parse->event.start_mark,
			     "'%s' is no severity: use block, warn, note, off or allow", text);
	return 0;
}

/* A dotted name of identifiers. */
static bool is_dotted(const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (isdigit((unsigned char)*text) || *text == '.'))
			return false;
		if (!isalnum((unsigned char)*text) && *text != '_' && *text != '.')
			return false;
		start = *text == '.';
	}
	return !start;
}

static int add_name(struct parse *parse, const char *name, bool module, yaml_mark_t mark,
		    enum severity severity_of_name)
{
	struct policy *policy = &parse->policy;
	struct policy_name *grown;

	if (!is_dotted(name))
		return wrong(parse, mark, "'%s' is no dotted name", name);
	for (size_t i = 0; i < policy->name_count; i++)
		if (strcmp(policy->names[i].name, name) == 0)
			return wrong(parse, mark, "'%s' stands here twice", name);
	if (policy->name_count >= POLICY_ENTRIES_MAX)
		return wrong(parse, mark, "more than %d names", POLICY_ENTRIES_MAX);
	grown = realloc(policy->names, (policy->name_count + 1) * sizeof *grown);
	if (!grown)
		return fail(parse->err, ENOMEM, "%.80s", parse->origin);
	policy->names = grown;
	grown[policy->name_count] = (struct policy_name){strdup(name), module, severity_of_name};
	if (!grown[policy->name_count].name)
		return fail(parse->err, ENOMEM, "%.80s", parse->origin);
	policy->name_count++;
	return 0;
}

/* modules: or calls: a mapping of names to severities. */
static int parse_names(struct parse *parse, bool module)
{
	int r = next(parse);

	if (r < 0)
		return r;
	if (!is(parse, YAML_MAPPING_START_EVENT))
		return wrong(parse, parse->event.start_mark, "%s must be a mapping of names",
			     module ? "modules" : "calls");
	while ((r = next(parse)) == 0 && !is(parse, YAML_MAPPING_END_EVENT)) {
		char name[POLICY_ENTRY_BYTES_MAX + 1];
		yaml_mark_t mark = parse->event.start_mark;
		enum severity level;

		if ((r = scalar(parse, "a name", name, sizeof name)) < 0 || (r = next(parse)) < 0 ||
		    (r = severity(parse, &level)) < 0 ||
		    (r = add_name(parse, name, module, mark, level)) < 0)
			return r;
	}
	return r;
}

static int parse_rules(struct parse *parse)
{
	bool seen[RULE_COUNT] = {false};
	int r = next(parse);

	if (r < 0)
		return r;
	if (!is(parse, YAML_MAPPING_START_EVENT))
		return wrong(parse, parse->event.start_mark, "rules must be a mapping of rules");
	while ((r = next(parse)) == 0 && !is(parse, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = parse->event.start_mark;
		char id[64];
		enum rule rule;
		enum severity level;

		if ((r = scalar(parse, "a rule", id, sizeof id)) < 0)
			return r;
		rule = rule_find(id);
		if (rule == RULE_COUNT)
			return wrong(parse, mark, "there is no rule '%s'", id);
		if (seen[rule])
			return wrong(parse, mark, "the rule '%s' stands here twice", id);
		seen[rule] = true;
		if ((r = next(parse)) < 0 || (r = severity(parse, &level)) < 0)
			return r;
		/* What cannot be read cannot be judged: no policy lets it run. */
		if (level != SEVERITY_BLOCK &&
		    (rule == RULE_ENCODING || rule == RULE_NUL || rule == RULE_NOT_SOURCE ||
		     rule == RULE_TOO_LARGE || rule == RULE_CRASH))
			return wrong(parse, parse->event.start_mark, "the rule '%s' always blocks",
				     id);
		parse->policy.severity[rule] = level;
	}
	return r;
}

static int add_path(struct parse *parse, bool write)
{
	struct policy *policy = &parse->policy;
	yaml_mark_t mark = parse->event.start_mark;
	char path[POLICY_ENTRY_BYTES_MAX + 1], normal[PATH_TEXT_MAX];
	struct policy_path *grown;
	int r = scalar(parse, "a path", path, sizeof path);

	if (r < 0)
		return r;
	if (path[0] != '/')
		return wrong(parse, mark, "the path '%.100s' must begin with /", path);
	if (!path_normalize((struct span){(const uint8_t *)path, strlen(path)}, false, normal) ||
	    strlen(normal) > POLICY_ENTRY_BYTES_MAX)
		return wrong(parse, mark, "the path '%.100s' is too long", path);
	if (policy->path_count >= POLICY_ENTRIES_MAX)
		return wrong(parse, mark, "more than %d paths", POLICY_ENTRIES_MAX);
	grown = realloc(policy->paths, (policy->path_count + 1) * sizeof *grown);
	if (!grown)
		return fail(parse->err, ENOMEM, "%.80s", parse->origin);
	policy->paths = grown;
	/* "/" itself would match only with its slash taken off. */
	if (strcmp(normal, "/") == 0)
		normal[0] = '\0';
	if (!normal[0])
		return wrong(parse, mark, "the path / would allow everything");
	grown[policy->path_count] = (struct policy_path){strdup(normal), write};
	if (!grown[policy->path_count].path)
		return fail(parse->err, ENOMEM, "%.80s", parse->origin);
	policy->path_count++;
	return 0;
}

static int parse_paths(struct parse *parse)
{
	int r = next(parse);

	if (r < 0)
		return r;
	if (!is(parse, YAML_MAPPING_START_EVENT))
		return wrong(parse, parse->event.start_mark,
			     "paths must be a mapping of read and write");
	while ((r = next(parse)) == 0 && !is(parse, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = parse->event.start_mark;
		char key[64];
		bool write;

		if ((r = scalar(parse, "a key", key, sizeof key)) < 0)
			return r;
		write = strcmp(key, "write") == 0;
		if (!write && strcmp(key, "read") != 0)
			return wrong(parse, mark, "there is no key '%s' in paths: use read, write",
				     key);
		if ((r = next(parse)) < 0)
			return r;
		if (!is(parse, YAML_SEQUENCE_START_EVENT))
			return wrong(parse, parse->event.start_mark, "%s must be a list of paths",
				     key);
		while ((r = next(parse)) == 0 && !is(parse, YAML_SEQUENCE_END_EVENT))
			if ((r = add_path(parse, write)) < 0)
				return r;
		if (r < 0)
			return r;
	}
	return r;
}

static int once(struct parse *parse, bool *seen, const char *key, yaml_mark_t mark)
{
	if (*seen)
		return wrong(parse, mark, "the key '%s' stands here twice", key);
	*seen = true;
	return 0;
}

static int parse_key(struct parse *parse)
{
	yaml_mark_t mark = parse->event.start_mark;
	char key[64], text[POLICY_NAME_BYTES_MAX + 1];
	struct policy base = {0};
	int r = scalar(parse, "a key", key, sizeof key);

	if (r < 0)
		return r;
	if (strcmp(key, "name") == 0) {
		if ((r = once(parse, &parse->seen_name, key, mark)) < 0 || (r = next(parse)) < 0 ||
		    (r = scalar(parse, "the name", text, sizeof text)) < 0)
			return r;
		memcpy(parse->policy.name, text, sizeof text);
		return 0;
	}
	if (strcmp(key, "profile") == 0) {
		if ((r = once(parse, &parse->seen_profile, key, mark)) < 0)
			return r;
		if (parse->seen_rules || parse->seen_modules || parse->seen_calls ||
		    parse->seen_paths)
			return wrong(parse, mark, "profile must stand before what changes it");
		if ((r = next(parse)) < 0 ||
		    (r = scalar(parse, "the profile", text, sizeof text)) < 0)
			return r;
		if (policy_find(text, &base) < 0)
			return wrong(parse, parse->event.start_mark,
				     "there is no profile '%s': use strict, standard or open",
				     text);
		memcpy(parse->policy.severity, base.severity, sizeof base.severity);
		parse->policy.profile = base.profile;
		return 0;
	}
	if (strcmp(key, "rules") == 0)
		return (r = once(parse, &parse->seen_rules, key, mark)) < 0 ? r
									    : parse_rules(parse);
	if (strcmp(key, "modules") == 0)
		return (r = once(parse, &parse->seen_modules, key, mark)) < 0
			       ? r
			       : parse_names(parse, true);
	if (strcmp(key, "calls") == 0)
		return (r = once(parse, &parse->seen_calls, key, mark)) < 0
			       ? r
			       : parse_names(parse, false);
	if (strcmp(key, "paths") == 0)
		return (r = once(parse, &parse->seen_paths, key, mark)) < 0 ? r
									    : parse_paths(parse);
	return wrong(parse, mark,
		     "there is no key '%s': use name, profile, rules, modules, calls, paths", key);
}

static int parse_document(struct parse *parse)
{
	int r;

	if ((r = next(parse)) < 0 || (r = next(parse)) < 0) /* stream, document */
		return r;
	if (!is(parse, YAML_DOCUMENT_START_EVENT))
		return wrong(parse, parse->event.start_mark, "the policy file is empty");
	if ((r = next(parse)) < 0)
		return r;
	if (!is(parse, YAML_MAPPING_START_EVENT))
		return wrong(parse, parse->event.start_mark, "a policy file is a mapping of keys");
	while ((r = next(parse)) == 0 && !is(parse, YAML_MAPPING_END_EVENT))
		if ((r = parse_key(parse)) < 0)
			return r;
	if (r < 0 || (r = next(parse)) < 0 || (r = next(parse)) < 0)
		return r;
	if (!is(parse, YAML_STREAM_END_EVENT))
		return wrong(parse, parse->event.start_mark, "there is a second document");
	if (!parse->seen_profile)
		return refuse(parse->err, EINVAL,
			      "%.80s:1:1: the key 'profile' is missing: strict, standard or open",
			      parse->origin);
	return 0;
}

int policy_parse(struct span text, const char *origin, struct policy *ret_policy, struct error *err)
{
	struct parse parse = {
		.origin = origin, .policy = policy_profile(PROFILE_STRICT), .err = err};
	const char *base;
	int r;

	if (text.length > POLICY_FILE_BYTES_MAX)
		return refuse(err, EINVAL, "%.80s: larger than %zu bytes", origin,
			      POLICY_FILE_BYTES_MAX);
	if (!yaml_parser_initialize(&parse.parser))
		return fail(err, ENOMEM, "%.80s", origin);
	base = strrchr(origin, '/');
	snprintf(parse.policy.name, sizeof parse.policy.name, "%s", base ? base + 1 : origin);
	yaml_parser_set_encoding(&parse.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parse.parser, text.data, text.length);
	r = parse_document(&parse);
	if (parse.held)
		yaml_event_delete(&parse.event);
	yaml_parser_delete(&parse.parser);
	if (r < 0) {
		policy_free(&parse.policy);
		return r;
	}
	*ret_policy = parse.policy;
	return 0;
}

int policy_load(const char *name_or_path, struct policy *ret_policy, struct error *err)
{
	autobytes text = {.ceiling = POLICY_FILE_BYTES_MAX + 1};
	autofd fd = -1;
	struct stat status;

	if (policy_find(name_or_path, ret_policy) == 0)
		return 0;
	fd = open(name_or_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail(err, errno,
			    "policy '%.100s' is neither strict, standard, open nor a file",
			    name_or_path);
	if (fstat(fd, &status) < 0)
		return fail(err, errno, "policy file %.100s", name_or_path);
	if (!S_ISREG(status.st_mode))
		return fail(err, EINVAL, "policy file %.100s is no regular file", name_or_path);
	for (;;) {
		uint8_t *room = bytes_reserve(&text, 4096);
		ssize_t got;

		if (!room)
			return fail(err, E2BIG, "policy file %.100s", name_or_path);
		got = read(fd, room, 4096);
		if (got < 0)
			return fail(err, errno, "policy file %.100s", name_or_path);
		if (got == 0)
			break;
		text.length += (size_t)got;
	}
	return policy_parse(bytes_span(&text), name_or_path, ret_policy, err);
}
