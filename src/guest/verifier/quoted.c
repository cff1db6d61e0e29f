/* SPDX-License-Identifier: Apache-2.0 */
/* quoted: code in strings. What eval, timeit, doctest or pandas would run is
 * parsed and visited as the code around it, in its scope; what is only given to
 * something that may run it, in a scope of its own. Told once, for the string. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <string.h>

static bool mentions_something(struct span text)
{
	static const char *const words[] = {"import",  "eval",  "exec",    "open",
					    "system",  "popen", "compile", "getattr",
					    "globals", "os.",   "sys."};

	if (!memchr(text.data, '(', text.length) && !memmem(text.data, text.length, "import ", 7))
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (memmem(text.data, text.length, words[i], strlen(words[i])))
			return true;
	return false;
}

/* The source of a doctest's examples. */
static PyObject *examples_of(struct span text)
{
	autobytes out = {0};
	size_t at = 0;

	while (at < text.length) {
		const uint8_t *line = text.data + at;
		const uint8_t *end = memchr(line, '\n', text.length - at);
		size_t length = end ? (size_t)(end - line) : text.length - at;

		at += length + 1;
		while (length && (*line == ' ' || *line == '\t'))
			line++, length--;
		if (length >= 4 && (memcmp(line, ">>> ", 4) == 0 || memcmp(line, "... ", 4) == 0)) {
			bytes_append(&out, line + 4, length - 4);
			bytes_append(&out, "\n", 1);
		}
	}
	if (out.failed || !out.length)
		return NULL;
	return PyUnicode_DecodeUTF8((const char *)out.data, (Py_ssize_t)out.length, "replace");
}

/* pandas' own marks, taken out so that Python can parse it. */
static PyObject *pandas_expression(struct span text)
{
	autobytes out = {0};
	bool quoted = false;

	for (size_t i = 0; i < text.length; i++) {
		char letter = (char)text.data[i];

		if (letter == '`') {
			quoted = !quoted;
			continue;
		}
		if (letter == '@')
			continue;
		if (quoted && !identifier_letter((uint8_t)letter))
			letter = '_';
		/* Each line is a statement; its indentation means nothing. */
		if (letter == ' ' && (!out.length || out.data[out.length - 1] == '\n'))
			continue;
		bytes_append(&out, &letter, 1);
	}
	if (out.failed)
		return NULL;
	return PyUnicode_DecodeUTF8((const char *)out.data, (Py_ssize_t)out.length, "replace");
}

static PyObject *parse_string(PyObject *text, enum string_code kind)
{
	PyCompilerFlags flags = {.cf_flags =
					 PyCF_ONLY_AST | PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE,
				 .cf_feature_version = PY_MINOR_VERSION};
	const char *source = PyUnicode_AsUTF8(text);
	PyObject *name, *ast;

	if (!source || strlen(source) != (size_t)PyUnicode_GET_LENGTH(text))
		if (!source || memchr(source, '\0', strlen(source)))
			return NULL;
	while (kind != STRING_STATEMENTS && kind != STRING_DOCTEST &&
	       (*source == ' ' || *source == '\t'))
		source++;
	name = PyUnicode_FromString("<string>");
	if (!name)
		return NULL;
	ast = Py_CompileStringObject(
		source, name, kind == STRING_EXPRESSION ? Py_eval_input : Py_file_input, &flags, 0);
	Py_DECREF(name);
	return ast;
}

static void visit_quoted(struct walk *walk, struct node *root, bool in_scope)
{
	struct scope *scope = walk->scope, *module = walk->module;
	unsigned branch = scope->branch;

	if (!in_scope) {
		walk->scope = walk->module = scope_new(walk, SCOPE_MODULE, NULL, root);
	}
	scopes_build(walk, root, walk->scope);
	walk->no_names++;
	if (root->kind == NODE_Expression)
		visit(walk, child(root, Expression_body), 0);
	else
		visit_body(walk, children(root, Module_body));
	walk->no_names--;
	if (!in_scope) {
		visit_functions(walk);
		walk->scope = scope;
		walk->module = module;
	}
	scope->branch = branch;
}

bool check_code(struct walk *walk, struct value *value, const struct node *node,
		enum string_code kind, bool in_scope)
{
	PyObject *text = value->object, *ast = NULL, *owned = NULL;
	const struct node *outer_at = walk->quoted_at;
	bool outer_refused = walk->quoted_refused;
	const char *outer_name = walk->quoted_name;
	struct hard_import *hard = walk->hard;
	struct node **queue = walk->queue;
	size_t queue_length = walk->queue_length, queue_capacity = walk->queue_capacity;
	struct node *root = NULL;
	struct span bytes;
	char message[200];

	if (walk->quoted >= STRING_CODE_DEPTH || !value_text(value, &bytes) ||
	    walk->parses >= STRING_PARSES_MAX ||
	    walk->string_bytes + bytes.length > STRING_CODE_BUDGET)
		return true; /* beyond the budget: callers that must know ask first */
	walk->parses++;
	walk->string_bytes += bytes.length;
	if (kind == STRING_DOCTEST)
		owned = examples_of(bytes);
	else if (kind == STRING_PANDAS)
		owned = pandas_expression(bytes);
	else if (PyBytes_CheckExact(text))
		owned = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), NULL);
	else
		owned = Py_NewRef(text);
	if (owned)
		ast = parse_string(owned, kind);
	Py_XDECREF(owned);
	if (ast && PyList_Append(walk->keep, ast) == 0)
		root = tree_of(&walk->arena, ast);
	Py_XDECREF(ast);
	PyErr_Clear();
	if (!root)
		return ast != NULL;
	walk->quoted++;
	if (walk->quoted == 1) {
		walk->quoted_at = node;
		walk->quoted_refused = false;
		walk->quoted_name = NULL;
	}
	if (!in_scope) {
		walk->queue = NULL;
		walk->queue_length = walk->queue_capacity = 0;
	}
	visit_quoted(walk, root, in_scope);
	if (!in_scope) {
		walk->queue = queue;
		walk->queue_length = queue_length;
		walk->queue_capacity = queue_capacity;
	}
	/* An import that only stands there is a use as well. */
	for (struct hard_import *one = walk->hard; one != hard; one = one->next)
		if (!one->harmless_use)
			report(walk, one->info->rule, node, one->info->name, NULL);
	walk->hard = hard;
	walk->quoted--;
	if (walk->quoted == 0) {
		bool refused = walk->quoted_refused;
		const char *name = walk->quoted_name;

		walk->quoted_at = outer_at;
		walk->quoted_refused = outer_refused;
		walk->quoted_name = outer_name;
		if (refused) {
			snprintf(message, sizeof message, "%s", name ? name : "it");
			report(walk, RULE_CODE_STRING, node, message, NULL);
		}
	}
	return true;
}

void check_string_argument(struct walk *walk, struct value *value, const struct node *node)
{
	struct span text;
	const char *name;
	const struct name_info *info;

	value = value_plain(value);
	if (!is_whole_text(value) || walk->quiet_text || walk->quoted ||
	    !value_text(value, &text) || text.length < 6)
		return;
	/* "os.system", as logging.config or pydoc take it. */
	if (text.length < 60 && memchr(text.data, '.', text.length)) {
		name = (const char *)text.data;
		info = name_find(name);
		if (info && info->kind == NAME_BAD && strncmp(name, "?.", 2) != 0 &&
		    strcmp(rule_infos[info->rule].kind, "danger") == 0) {
			report(walk, RULE_CODE_STRING, node, name, NULL);
			return;
		}
	}
	if (mentions_something(text))
		check_code(walk, value, node, STRING_STATEMENTS, false);
}

/* eval() of what a function's caller gives, when nothing here calls it: whoever
 * does so later is judged then, by the audit hook. */
static void report_dynamic_code(struct walk *walk, const struct node *node, const char *name)
{
	const char *function = strcmp(name, "eval()") == 0 ? uncalled_function(walk) : NULL;
	enum severity severity = walk->policy->severity[RULE_DYNAMIC_CODE];
	char message[160];

	if (!function || severity != SEVERITY_BLOCK) {
		report(walk, RULE_DYNAMIC_CODE, node, name, NULL);
		return;
	}
	snprintf(message, sizeof message, "eval() will be refused when %.60s() is given code",
		 function);
	report_with(walk, RULE_DYNAMIC_CODE, SEVERITY_WARN, node, message, NULL);
}

/* The code argument of eval and its kin. */
void check_code_argument(struct walk *walk, struct value *value, const struct node *node, char how,
			 const char *name, bool must_be_known)
{
	static const enum string_code kinds[] = {
		['c'] = STRING_STATEMENTS,
		['x'] = STRING_DOCTEST,
		['p'] = STRING_PANDAS,
		['n'] = STRING_EXPRESSION,
	};
	struct value *alternatives[ALTERNATIVES_MAX];
	size_t count = value_alternatives(value, alternatives);
	struct span text;

	for (size_t i = 0; i < count; i++) {
		struct value *one = alternatives[i];

		if (one->kind == VALUE_FUNCTION) {
			bind_arguments(walk, one->scope, NULL, 0, NULL, NULL, 0);
			continue;
		}
		if (one->kind == VALUE_SEQUENCE) {
			for (size_t k = 0; k < one->count && k < 16; k++)
				if (value_plain(one->items[k])->kind == VALUE_CONSTANT)
					check_code_argument(walk, value_plain(one->items[k]), node,
							    how, name, must_be_known);
			continue;
		}
		if (one->kind == VALUE_CONSTANT && !(one->flags & VALUE_PREFIX) &&
		    value_text(one, &text)) {
			bool budget = walk->parses < STRING_PARSES_MAX &&
				      walk->string_bytes + text.length <= STRING_CODE_BUDGET &&
				      walk->quoted < STRING_CODE_DEPTH;

			/* Bytes may carry a cookie that says what they mean. */
			if (PyBytes_CheckExact(one->object) &&
			    memmem(text.data, text.length, "coding", 6))
				budget = false;
			if (budget && check_code(walk, one, node, kinds[(int)how], true))
				continue;
			if (budget && !must_be_known)
				continue;
			if (budget) /* it does not parse: it raises, and runs nothing */
				continue;
		}
		/* compile() of a constant was judged where it stands. */
		if (one->kind == VALUE_REFERENCE &&
		    strcmp(one->reference->path, "builtins.compile()") == 0)
			continue;
		if (must_be_known)
			report_dynamic_code(walk, node, name);
		else if (one->flags & VALUE_COMPUTED && how == 'c')
			report(walk, RULE_DYNAMIC_CODE, node, name, NULL);
	}
}
