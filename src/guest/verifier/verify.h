/* SPDX-License-Identifier: Apache-2.0 */
/* verify: judges Python source without running any of it.
 *
 * verifier_init() runs once in a process in which no user code has run or will
 * run before verify() does (the template), after Py_Initialize(). verify() runs
 * in a confined fork of it, which has its own limits on time and memory: a
 * death of that fork is what verdict_of_crash() (policy/finding.h) makes a verdict of. */
#ifndef EXECPY_GUEST_VERIFIER_VERIFY_H
#define EXECPY_GUEST_VERIFIER_VERIFY_H

#include "base/bytes.h"
#include "base/error.h"
#include "policy/finding.h"
#include "policy/policy.h"

/* What is known of the run that the code is meant for. */
struct verify_context {
	const char *const *files; /* names in the workspace, relative to it */
	size_t file_count;
	const char *const *names; /* defined before: a session's variables */
	size_t name_count;
	bool has_stdin;
	bool network_allowed;
	bool any_file;        /* `files` is not known: no finding about missing files */
	bool fragment;        /* a string of exec or eval: no lint, names may be unknown */
	bool top_level_await; /* the code will be compiled with that flag */
	uint64_t time_ms;     /* the wall limit; 0: unknown */
};

/* Interns names, and lists which modules can be imported, from sys.path as it
 * is now. -EIO and the Python error's text. */
int verifier_init(struct error *err);

/* 0 and *ret_verdict (to be freed by the caller), or a negative errno when the
 * verifier itself failed: that code must not be run. The GIL is held. No Python
 * exception is left set. */
int verify(struct span code, const struct policy *policy, const struct verify_context *context,
	   struct verdict *ret_verdict, struct error *err);

/* Can this top-level module be imported? Answers for the process's sys.path. */
bool verifier_has_module(const char *name);

#endif
