/* SPDX-License-Identifier: Apache-2.0 */
/* verify: see verify.h. The order of the work is told in walk.h. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"
#include "policy/limits.h"
#include "policy/text.h"

#include <errno.h>
#include <string.h>

static void visit_all(struct walk *walk, struct node *root)
{
	walk->scope = walk->module;
	walk->module->branch = 0;
	walk->hard = NULL;
	walk->fold_bytes = walk->string_bytes = 0;
	walk->fold_steps = walk->parses = 0;
	walk->future_annotations = false;
	for (size_t i = 0; i < walk->module->slot_count; i++)
		walk->module->slots[i].now = NULL;
	visit_body(walk, children(root, Module_body));
	visit_functions(walk);
}

static void report_hard_imports(struct walk *walk)
{
	for (struct hard_import *hard = walk->hard; hard; hard = hard->next) {
		struct reference *reference;

		if (hard->harmless_use)
			continue;
		reference = reference_path(walk, hard->info->name);
		if (reference)
			report_reference(walk, reference, hard->node);
	}
}

/* Docstrings with examples are code when doctest is about to run them. */
static void check_doctests(struct walk *walk)
{
	for (Py_ssize_t i = 0; walk->runs_doctests && i < PyList_GET_SIZE(walk->doctests); i++) {
		struct value *text = value_borrowed(walk, PyList_GET_ITEM(walk->doctests, i), 0);

		check_code(walk, text, NULL, STRING_DOCTEST, true);
	}
}

static void take_off_fence(struct walk *walk, struct span code)
{
	const uint32_t range[4] = {1, 1, 1, 1};
	struct span inner;
	uint32_t line;

	walk->source = code;
	if (code.length >= 3 && memcmp(code.data, "\xef\xbb\xbf", 3) == 0)
		walk->source = (struct span){code.data + 3, code.length - 3};
	if (!fence_strip(code, &inner, &line))
		return;
	walk->source = inner;
	walk->line_offset = line;
	if (verdict_add(walk->verdict, RULE_FENCE, walk->policy->severity[RULE_FENCE], range,
			rule_infos[RULE_FENCE].message, rule_infos[RULE_FENCE].hint) < 0)
		longjmp(walk->out, ENOMEM);
}

static void run(struct walk *walk, struct span code)
{
	const uint32_t whole[4] = {0};
	struct node *root;
	PyObject *ast;

	take_off_fence(walk, code);
	if (walk->source.length <= CODE_BYTES_MAX)
		lines_index(walk);
	if (!source_check(walk))
		return;
	ast = source_parse(walk);
	if (!ast)
		return;
	if (PyList_Append(walk->keep, ast) < 0) {
		Py_DECREF(ast);
		PyErr_Clear();
		longjmp(walk->out, ENOMEM);
	}
	Py_DECREF(ast);
	root = tree_of(&walk->arena, ast);
	if (!root || root->kind != NODE_Module) {
		if (verdict_add(walk->verdict, RULE_TOO_DEEP, walk->policy->severity[RULE_TOO_DEEP],
				whole, "the code is nested too deeply",
				rule_infos[RULE_TOO_DEEP].hint) < 0)
			longjmp(walk->out, ENOMEM);
		return;
	}
	if (compiler_may_refuse(root, walk->source) && !source_compile(walk, ast))
		return;
	walk->module = scope_new(walk, SCOPE_MODULE, NULL, root);
	scopes_build(walk, root, walk->module);
	visit_all(walk, root);
	walk->report = true;
	visit_all(walk, root);
	report_hard_imports(walk);
	check_doctests(walk);
}

/* The compiler's warnings belong to the run, which will give them again: while
 * code is verified none is printed. */
static PyObject *name_warnings, *name_filters, *silent_filters;

static int silence_init(struct error *err)
{
	PyObject *warnings = PyImport_ImportModule("warnings");

	if (!warnings) {
		PyErr_Clear();
		return fail(err, EIO, "cannot import the module warnings");
	}
	Py_DECREF(warnings);
	if (silent_filters)
		return 0;
	name_warnings = PyUnicode_InternFromString("warnings");
	name_filters = PyUnicode_InternFromString("filters");
	silent_filters = Py_BuildValue("[(sOOOi)]", "ignore", Py_None, PyExc_Warning, Py_None, 0);
	PyErr_Clear();
	return name_warnings && name_filters && silent_filters
		       ? 0
		       : fail(err, ENOMEM, "cannot make a filter of warnings");
}

/* Puts `filters` in the place of the module's and returns what was there (new
 * reference), or NULL. */
static PyObject *swap_filters(PyObject *filters)
{
	PyObject *warnings = PyDict_GetItemWithError(PyImport_GetModuleDict(), name_warnings);
	PyObject *before = NULL;

	if (warnings && filters) {
		before = PyObject_GetAttr(warnings, name_filters);
		if (before && PyObject_SetAttr(warnings, name_filters, filters) < 0)
			Py_CLEAR(before);
	}
	PyErr_Clear();
	return before;
}

int verifier_init(struct error *err)
{
	int r = tree_init(err);

	/* Decoders (base64, urllib.parse) are imported when a call is folded: most
	 * code has none, and the workspace is not on sys.path before a run. */
	if (r == 0)
		r = modules_init(err);
	return r == 0 ? silence_init(err) : r;
}

bool verifier_has_module(const char *name)
{
	return module_exists(name);
}

int verify(struct span code, const struct policy *policy, const struct verify_context *context,
	   struct verdict *ret_verdict, struct error *err)
{
	struct verdict verdict = {0};
	const uint32_t whole[4] = {0};
	struct walk *walk = calloc(1, sizeof *walk);
	volatile int r = 0; /* it changes between setjmp and longjmp */
	int failure, collecting;
	PyObject *filters;

	if (!walk)
		return fail(err, ENOMEM, "cannot verify");
	walk->policy = policy;
	walk->context = context;
	walk->verdict = &verdict;
	walk->arena.out = &walk->out;
	walk->keep = PyList_New(0);
	walk->created = PySet_New(NULL);
	walk->mentioned = PySet_New(NULL);
	walk->undefined = PySet_New(NULL);
	walk->doctests = PyList_New(0);
	filters = swap_filters(silent_filters);
	/* An AST is many objects and no cycles. */
	collecting = PyGC_Disable();
	failure = setjmp(walk->out);
	if (failure == 0) {
		if (!walk->keep || !walk->created || !walk->mentioned || !walk->undefined ||
		    !walk->doctests)
			longjmp(walk->out, ENOMEM);
		run(walk, code);
	} else if (failure == ELOOP) {
		r = verdict_add(&verdict, RULE_TOO_DEEP, policy->severity[RULE_TOO_DEEP], whole,
				"the code is nested too deeply", rule_infos[RULE_TOO_DEEP].hint);
	} else {
		r = fail(err, failure, "cannot verify");
	}
	PyErr_Clear();
	Py_XDECREF(walk->keep);
	Py_XDECREF(walk->created);
	Py_XDECREF(walk->mentioned);
	Py_XDECREF(walk->undefined);
	Py_XDECREF(walk->doctests);
	if (collecting)
		PyGC_Enable();
	Py_XDECREF(swap_filters(filters));
	Py_XDECREF(filters);
	arena_free(&walk->arena);
	free(walk);
	if (r < 0) {
		verdict_free(&verdict);
		return r;
	}
	verdict_sort(&verdict);
	*ret_verdict = verdict;
	return 0;
}
