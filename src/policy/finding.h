/* SPDX-License-Identifier: Apache-2.0 */
/* finding: what the verifier found, and its codec. Needs no Python. */
#ifndef EXECPY_POLICY_FINDING_H
#define EXECPY_POLICY_FINDING_H

#include "base/bytes.h"
#include "base/error.h"
#include "policy/rules.h"

#define FINDINGS_MAX             200
#define FINDING_TEXT_BYTES_MAX   400 /* a message, a hint */
#define VERDICT_IMPORTS_MAX      200
#define VERDICT_IMPORT_BYTES_MAX 100

struct finding {
	enum rule rule;
	enum severity severity;
	/* From 1; columns count code points; the end is behind the last. All
	 * four are 0 when the finding is about the source as a whole. */
	uint32_t line, column, end_line, end_column;
	char message[FINDING_TEXT_BYTES_MAX + 1];
	char hint[FINDING_TEXT_BYTES_MAX + 1];
};

struct verdict {
	bool blocked;
	bool truncated;           /* there were more findings than FINDINGS_MAX */
	struct finding *findings; /* by line, column */
	size_t finding_count;
	char **imports; /* top-level modules that the code imports, each once */
	size_t import_count;
	/* What was judged in the code's place, and must be what runs: the code
	 * without a notebook's forms. Empty: the code itself. Stays in its process. */
	struct bytes source;
};

void verdict_free(struct verdict *verdict);
#define autoverdict __attribute__((cleanup(verdict_free))) struct verdict

/* Adds a finding and settles `blocked`. Texts that are too long are cut at a
 * character. Beyond FINDINGS_MAX a block takes the place of the last finding
 * that is none. 0 or -ENOMEM. */
int verdict_add(struct verdict *verdict, enum rule rule, enum severity severity,
		const uint32_t range[4], const char *message, const char *hint);
int verdict_add_import(struct verdict *verdict, const char *module);
void verdict_sort(struct verdict *verdict);

/* The verdict when the process that verified died or ran out of its limits;
 * `how` completes "the code could not be verified: ". */
int verdict_of_crash(enum severity severity, const char *how, struct verdict *ret_verdict);

/* The finding that stands for the refusal: the first that blocks, or NULL. */
const struct finding *verdict_cause(const struct verdict *verdict);
/* "SyntaxError" (and its kin) or "SecurityError": the error type of a refusal. */
const char *finding_error_type(const struct finding *finding);

/* Fields of src/proto/frame.h, to be put into a frame's body. */
void verdict_encode(const struct verdict *verdict, struct bytes *out);
/* -EBADMSG when the bytes are not what verdict_encode() writes: lengths,
 * counts, rule ids, severities and UTF-8 are checked. */
int verdict_decode(struct span encoded, struct verdict *ret_verdict, struct error *err);

#endif
