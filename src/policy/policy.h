/* SPDX-License-Identifier: Apache-2.0 */
/* policy: which rules refuse, warn or are silent, for one run.
 *
 * A policy is a built-in profile (strict, standard, open) and what a policy
 * file changes of it (docs/policies.md). It is plain data: it may be copied to
 * another process with policy_encode() and policy_decode(), and it is asked by
 * the verifier before a run and by the audit hook during one. */
#ifndef EXECPY_POLICY_POLICY_H
#define EXECPY_POLICY_POLICY_H

#include "base/bytes.h"
#include "base/error.h"
#include "policy/paths.h"
#include "policy/rules.h"

#define POLICY_NAME_BYTES_MAX  63
#define POLICY_FILE_BYTES_MAX  ((size_t)256 << 10)
#define POLICY_ENTRIES_MAX     1000 /* names and paths of one file, each */
#define POLICY_ENTRY_BYTES_MAX 255

/* A name that the policy file sets: a module with everything below it, or one
 * dotted name. */
struct policy_name {
	char *name;
	bool module;
	enum severity severity;
};

struct policy_path {
	char *path; /* absolute, normal, no slash at the end */
	bool write;
};

struct policy {
	char name[POLICY_NAME_BYTES_MAX + 1];
	enum profile profile;
	enum severity severity[RULE_COUNT];
	struct policy_name *names;
	size_t name_count;
	struct policy_path *paths;
	size_t path_count;
};

/* A built-in profile. The result owns nothing until a file adds to it, but
 * policy_free() may always be called. */
struct policy policy_profile(enum profile profile);

/* "strict", "standard", "open"; -ENOENT for another name, without a message. */
int policy_find_profile(const char *name, struct policy *ret_policy);
/* That, or one that has a name in this process (policies.h), to be freed; -ENOENT
 * likewise: the caller then tries a file. */
int policy_find(const char *name, struct policy *ret_policy);

/* Parses a policy file's text. `origin` names it in messages, which read
 * "ORIGIN:LINE:COLUMN: what is wrong". -EINVAL; *ret_policy is then unchanged. */
int policy_parse(struct span text, const char *origin, struct policy *ret_policy,
		 struct error *err);

/* A profile's name or a path of a policy file. */
int policy_load(const char *name_or_path, struct policy *ret_policy, struct error *err);

void policy_free(struct policy *policy);
#define autopolicy __attribute__((cleanup(policy_free))) struct policy

/* Fields of src/proto/frame.h, to be put into a frame's body. */
void policy_encode(const struct policy *policy, struct bytes *out);
/* -EBADMSG when the bytes are not what policy_encode() writes. */
int policy_decode(struct span encoded, struct policy *ret_policy, struct error *err);

/* What the policy file itself says of a dotted name: true and the severity
 * when the name, or a module above it, is listed there. */
bool policy_name(const struct policy *policy, const char *name, enum severity *ret_severity);

/* For the audit hook: may user code import this module while it runs?
 * SEVERITY_OFF for modules that nothing is said about, and for those that are
 * judged by use, such as os. ret_rule may be NULL. */
enum severity policy_module_severity(const struct policy *policy, const char *module,
				     bool network_allowed, enum rule *ret_rule);

/* For the audit hook: what an event of PEP 578 means when user code causes it;
 * SEVERITY_OFF for events that mean nothing. "open" and "import" are judged by
 * policy_path_severity() and policy_module_severity() instead. */
enum severity policy_event_severity(const struct policy *policy, const char *event,
				    bool network_allowed, enum rule *ret_rule);

/* May the code read or write this path? Relative paths stand in /workspace.
 * With `prefix` only the beginning of the path is known. */
enum severity policy_path_severity(const struct policy *policy, struct span path, bool prefix,
				   bool write, enum rule *ret_rule);

#endif
