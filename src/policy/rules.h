/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the table of rules, their severities, and the table of names that
 * rules are about. Both are data: rules.def and names.def. */
#ifndef EXECPY_POLICY_RULES_H
#define EXECPY_POLICY_RULES_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum severity {
	SEVERITY_OFF,
	SEVERITY_NOTE,
	SEVERITY_WARN,
	SEVERITY_BLOCK,
};

enum rule {
#define RULE(identifier, ...) RULE_##identifier,
#include "policy/rules.def"
#undef RULE
	RULE_COUNT,
};

enum profile {
	PROFILE_STRICT,
	PROFILE_STANDARD,
	PROFILE_OPEN,
	PROFILE_COUNT,
};

struct rule_info {
	const char *id;   /* "write-outside" */
	const char *kind; /* "source", "danger" or "lint" */
	enum severity severity[PROFILE_COUNT];
	const char *matches, *message, *hint, *reason;
};

extern const struct rule_info rule_infos[RULE_COUNT];
extern const char *const profile_names[PROFILE_COUNT];

const char *severity_name(enum severity severity);
/* True when the text names a severity; "allow" and "off" are the same. */
bool severity_parse(const char *text, enum severity *ret_severity);
/* RULE_COUNT when there is none of this id. */
enum rule rule_find(const char *id);

/* What names.def says of a dotted name. */
enum name_kind {
	NAME_LISTED,     /* a module that is refused unless every use of it is harmless */
	NAME_HARD,       /* the same, and importing it without a harmless use is refused too */
	NAME_FINE,       /* a harmless use */
	NAME_FINE_BELOW, /* a harmless use, and everything below it */
	NAME_BAD,        /* refused wherever it is mentioned, under `rule` */
	NAME_CALL,       /* may be mentioned; a call is judged by its arguments */
	NAME_ALIAS,      /* another name of `text` */
};

struct name_info {
	const char *name; /* "os.path", "sqlite3.connect().execute", "?.to_csv" */
	enum name_kind kind;
	enum rule rule;
	/* CALL: which arguments are what, see names.def. ALIAS: the real name.
	 * Otherwise: a hint better than the rule's, or NULL. */
	const char *text;
};

/* NULL when the table has no such name. */
const struct name_info *name_find(const char *name);
/* How many names there are, and the nth: for documents and tests. */
size_t name_count(void);
const struct name_info *name_at(size_t index);

/* The attribute's rule when it is one of the interpreter's internals, else
 * RULE_COUNT. */
enum rule internal_attribute(struct span name);

/* docs/rules.md. */
void rules_document(struct bytes *out);

#endif
