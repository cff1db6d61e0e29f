/* SPDX-License-Identifier: Apache-2.0 */
/* statement: visits statements in order; functions after what surrounds them. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

static void visit_statement(struct walk *walk, struct node *node);

static void visit_docstring(struct walk *walk, PyObject *text)
{
	if (PyUnicode_CheckExact(text) && !walk->report &&
	    PyUnicode_FindChar(text, '>', 0, PyUnicode_GET_LENGTH(text), 1) >= 0 &&
	    PyList_Append(walk->doctests, text) < 0)
		PyErr_Clear();
}

void visit_body(struct walk *walk, const struct list *body)
{
	for (size_t i = 0; i < body->count; i++)
		visit_statement(walk, body->items[i].node);
}

static void visit_expressions(struct walk *walk, const struct list *list, unsigned flags)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == SLOT_NODE)
			visit(walk, list->items[i].node, flags);
}

/* A block that may run not at all, or more than once. */
static void visit_branch(struct walk *walk, const struct list *body)
{
	walk->scope->branch++;
	visit_body(walk, body);
	walk->scope->branch--;
}

/* --- functions and classes ----------------------------------------------- */

/* An annotation may be code in a string, which get_type_hints() would run. */
static void visit_annotation(struct walk *walk, struct node *node)
{
	PyObject *text;

	if (!node)
		return;
	text = node->kind == NODE_Constant ? leaf(node, Constant_value) : NULL;
	if (text && PyUnicode_CheckExact(text)) {
		if (PyUnicode_FindChar(text, '(', 0, PyUnicode_GET_LENGTH(text), 1) >= 0)
			check_code(walk, value_borrowed(walk, text, 0), node, STRING_EXPRESSION,
				   true);
		return;
	}
	if (walk->future_annotations)
		walk->no_names++;
	visit(walk, node, VISIT_BASE);
	if (walk->future_annotations)
		walk->no_names--;
}

static struct value *with_flag(struct walk *walk, struct value *value, uint32_t flag)
{
	struct value *copy;

	value = value_plain(value);
	if (value->kind != VALUE_CONSTANT)
		return value;
	copy = value_new(walk, VALUE_CONSTANT);
	*copy = *value;
	copy->flags |= flag;
	return copy;
}

static void bind_parameter(struct walk *walk, struct scope *function, PyObject *name,
			   struct value *value)
{
	struct binding *binding = name ? scope_own(function, name) : NULL;

	if (!binding)
		return;
	binding->all = value_either(walk, binding->all, value);
	binding->now = NULL;
}

static size_t parameter_count(const struct node *arguments)
{
	return children(arguments, arguments_posonlyargs)->count +
	       children(arguments, arguments_args)->count;
}

static PyObject *parameter_name(const struct node *arguments, size_t index)
{
	const struct list *first = children(arguments, arguments_posonlyargs);

	if (index < first->count)
		return leaf(first->items[index].node, arg_arg);
	index -= first->count;
	if (index < children(arguments, arguments_args)->count)
		return leaf(children(arguments, arguments_args)->items[index].node, arg_arg);
	return NULL;
}

static void visit_arguments(struct walk *walk, struct node *arguments, struct scope *function)
{
	const struct list *defaults, *keyword_defaults, *keywords;
	size_t count, start;

	if (!arguments)
		return;
	defaults = children(arguments, arguments_defaults);
	keyword_defaults = children(arguments, arguments_kw_defaults);
	keywords = children(arguments, arguments_kwonlyargs);
	count = parameter_count(arguments);
	start = count - defaults->count;
	for (size_t i = 0; i < defaults->count; i++) {
		struct value *value = visit(walk, defaults->items[i].node, VISIT_BASE);

		bind_parameter(walk, function, parameter_name(arguments, start + i),
			       with_flag(walk, value, VALUE_DEFAULT));
	}
	for (size_t i = 0; i < keyword_defaults->count; i++) {
		struct value *value;

		if (keyword_defaults->items[i].kind != SLOT_NODE)
			continue;
		value = visit(walk, keyword_defaults->items[i].node, VISIT_BASE);
		bind_parameter(walk, function, leaf(keywords->items[i].node, arg_arg),
			       with_flag(walk, value, VALUE_DEFAULT));
	}
	for (size_t i = 0; i < count; i++) {
		const struct list *first = children(arguments, arguments_posonlyargs);
		struct node *parameter =
			i < first->count
				? first->items[i].node
				: children(arguments, arguments_args)->items[i - first->count].node;

		visit_annotation(walk, child(parameter, arg_annotation));
	}
	for (size_t i = 0; i < keywords->count; i++)
		visit_annotation(walk, child(keywords->items[i].node, arg_annotation));
}

void bind_arguments(struct walk *walk, struct scope *function, struct value **positional,
		    size_t count, PyObject **names, struct value **named, size_t named_count)
{
	struct node *arguments = function->node
					 ? child(function->node, function->node->kind == NODE_Lambda
									 ? Lambda_args
									 : FunctionDef_args)
					 : NULL;
	const struct list *defaults;
	size_t total, skip = 0, first_default;

	function->called = true;
	if (!arguments)
		return;
	total = parameter_count(arguments);
	defaults = children(arguments, arguments_defaults);
	/* A method's self is not among the arguments. */
	if (function->parent && function->parent->kind == SCOPE_CLASS && total)
		skip = 1;
	for (size_t i = 0; i < count; i++)
		bind_parameter(walk, function, parameter_name(arguments, i + skip), positional[i]);
	for (size_t i = 0; i < named_count; i++)
		bind_parameter(walk, function, names[i], named[i]);
	/* Defaults that this call leaves in force are real values. */
	first_default = total - defaults->count;
	for (size_t i = first_default; i < total; i++) {
		PyObject *name = parameter_name(arguments, i);
		struct binding *binding = name ? scope_own(function, name) : NULL;
		struct value *alternatives[ALTERNATIVES_MAX];
		bool given = i < count + skip;
		size_t alternative_count;

		for (size_t k = 0; k < named_count; k++)
			given |= names[k] == name;
		if (given || !binding || !binding->all)
			continue;
		alternative_count = value_alternatives(binding->all, alternatives);
		for (size_t k = 0; k < alternative_count; k++)
			if (alternatives[k]->flags & VALUE_DEFAULT)
				alternatives[k]->flags &= ~(uint32_t)VALUE_DEFAULT;
	}
}

void queue_function(struct walk *walk, struct node *node, struct scope *scope)
{
	if (scope->queued)
		return;
	scope->queued = true;
	if (walk->queue_length == walk->queue_capacity) {
		size_t capacity = walk->queue_capacity ? 2 * walk->queue_capacity : 64;
		struct node **grown = arena_take(&walk->arena, capacity * sizeof *grown);

		if (walk->queue_length)
			memcpy(grown, walk->queue, walk->queue_length * sizeof *grown);
		walk->queue = grown;
		walk->queue_capacity = capacity;
	}
	walk->queue[walk->queue_length++] = node;
}

static void reset_scope(struct scope *scope)
{
	for (size_t i = 0; i < scope->slot_count; i++)
		scope->slots[i].now = NULL;
	scope->branch = 0;
}

void visit_functions(struct walk *walk)
{
	for (size_t i = 0; i < walk->queue_length; i++) {
		struct node *node = walk->queue[i];
		const char *name = walk->function_name;
		struct scope *scope = walk->scope;

		walk->scope = node->scope;
		node->scope->queued = false;
		reset_scope(node->scope);
		if (node->kind == NODE_Lambda) {
			visit(walk, child(node, Lambda_body), 0);
		} else {
			walk->function_name = PyUnicode_AsUTF8(leaf(node, FunctionDef_name));
			visit_body(walk, children(node, FunctionDef_body));
		}
		walk->function_name = name;
		walk->scope = scope;
	}
	walk->queue_length = 0;
}

static void visit_decorators(struct walk *walk, const struct list *decorators,
			     struct value *decorated)
{
	for (size_t i = 0; i < decorators->count; i++) {
		struct value *value = visit(walk, decorators->items[i].node, 0);
		struct call call = {.node = decorators->items[i].node};

		call.count = 1;
		call.values[0] = decorated;
		if (value_plain(value)->kind == VALUE_REFERENCE ||
		    value_plain(value)->kind == VALUE_METHOD)
			call_value(walk, value, &call);
	}
}

static void visit_function(struct walk *walk, struct node *node)
{
	struct value *value = value_new(walk, VALUE_FUNCTION);
	const struct list *decorators = children(node, FunctionDef_decorator_list);
	struct scope *scope = walk->scope;

	value->scope = node->scope;
	visit_decorators(walk, decorators, value);
	/* Type parameters stand in a scope around the function. */
	walk->scope = node->scope->parent;
	visit_arguments(walk, child(node, FunctionDef_args), node->scope);
	visit_annotation(walk, child(node, FunctionDef_returns));
	walk->scope = scope;
	/* Somebody else may call what is decorated or is a method. */
	if (decorators->count)
		value = &value_unknown;
	binding_set(walk, walk->scope, scope_bind(walk, walk->scope, leaf(node, FunctionDef_name)),
		    value);
	queue_function(walk, node, node->scope);
}

static void visit_class(struct walk *walk, struct node *node)
{
	struct value *value = value_new(walk, VALUE_CLASS);
	const struct list *keywords = children(node, ClassDef_keywords);
	struct scope *scope = walk->scope;

	value->scope = node->scope;
	visit_decorators(walk, children(node, ClassDef_decorator_list), value);
	walk->scope = node->scope->parent;
	visit_expressions(walk, children(node, ClassDef_bases), 0);
	for (size_t i = 0; i < keywords->count; i++)
		visit(walk, child(keywords->items[i].node, keyword_value), 0);
	walk->scope = node->scope;
	reset_scope(node->scope);
	visit_body(walk, children(node, ClassDef_body));
	walk->scope = scope;
	binding_set(walk, scope, scope_bind(walk, scope, leaf(node, ClassDef_name)), value);
}

/* --- imports ------------------------------------------------------------- */

static void bind_import(struct walk *walk, PyObject *name, struct value *value)
{
	binding_set(walk, walk->scope, scope_bind(walk, walk->scope, name), value);
}

static PyObject *first_part(struct walk *walk, PyObject *dotted)
{
	const char *text = PyUnicode_AsUTF8(dotted);
	const char *dot = text ? strchr(text, '.') : NULL;
	PyObject *name;

	if (!dot)
		return dotted;
	name = PyUnicode_FromStringAndSize(text, dot - text);
	if (!name)
		return dotted;
	PyUnicode_InternInPlace(&name);
	if (PyList_Append(walk->keep, name) < 0)
		PyErr_Clear();
	Py_DECREF(name);
	return name;
}

static void visit_import(struct walk *walk, struct node *node)
{
	const struct list *names = children(node, Import_names);

	for (size_t i = 0; i < names->count; i++) {
		struct node *alias = names->items[i].node;
		PyObject *name = leaf(alias, alias_name), *as = leaf(alias, alias_asname);
		const char *text = PyUnicode_AsUTF8(name);
		PyObject *first;

		if (!text) {
			PyErr_Clear();
			continue;
		}
		import_module(walk, text, alias, false);
		report_import(walk, reference_path(walk, text), alias);
		if (as) {
			bind_import(walk, as, value_reference(walk, reference_path(walk, text)));
			continue;
		}
		first = first_part(walk, name);
		bind_import(walk, first,
			    value_reference(walk, reference_root(walk, PyUnicode_AsUTF8(first))));
	}
}

static void star_import(struct walk *walk, struct reference *module, struct node *node)
{
	PyObject *name;

	walk->scope->star = true;
	if (!module)
		return;
	if (module->judgement == JUDGED_MODULE)
		report_reference(walk, module, node);
	/* Remembered under a name that no code can write. */
	name = PyUnicode_FromFormat("*%s", module->path);
	if (!name || PyList_Append(walk->keep, name) < 0) {
		Py_XDECREF(name);
		PyErr_Clear();
		longjmp(walk->out, ENOMEM);
	}
	PyUnicode_InternInPlace(&name);
	if (PyList_Append(walk->keep, name) < 0)
		PyErr_Clear();
	Py_DECREF(name);
	scope_bind(walk, walk->module, name)->all = value_reference(walk, module);
}

static void visit_import_from(struct walk *walk, struct node *node)
{
	const struct list *names = children(node, ImportFrom_names);
	PyObject *module_name = leaf(node, ImportFrom_module),
		 *level = leaf(node, ImportFrom_level);
	const char *text = module_name ? PyUnicode_AsUTF8(module_name) : NULL;
	bool relative = level && PyLong_Check(level) && PyLong_AsLong(level) > 0;
	struct reference *module = NULL;

	if (!text)
		PyErr_Clear();
	if (text && !relative) {
		if (strcmp(text, "__future__") == 0)
			walk->future_annotations = true;
		import_module(walk, text, node, false);
		module = reference_path(walk, text);
		/* The parts decide, unless the module is not to be touched. */
		if (names->count && module && module->judgement == JUDGED_BAD)
			report_import(walk, module, node);
	}
	for (size_t i = 0; i < names->count; i++) {
		struct node *alias = names->items[i].node;
		PyObject *name = leaf(alias, alias_name), *as = leaf(alias, alias_asname);
		struct reference *reference = NULL;
		struct value *value = &value_unknown;

		if (name_is(name, "*")) {
			star_import(walk, module, alias);
			continue;
		}
		if (module) {
			check_attribute_name(walk, name, alias, value_reference(walk, module));
			reference = reference_child(walk, module, name);
			value = value_reference(walk, reference);
			if (reference && reference->judgement == JUDGED_MODULE)
				report_import(walk, reference, alias);
			else
				use(walk, value, alias, VISIT_BASE | VISIT_CALLED);
		}
		bind_import(walk, as ? as : name, value);
	}
}

/* --- try ----------------------------------------------------------------- */

enum catches { CATCHES_OS = 1, CATCHES_NAME = 2, CATCHES_IMPORT = 4, CATCHES_ALL = 7 };

static unsigned catches_of_name(const char *name)
{
	static const struct {
		const char *name;
		unsigned catches;
	} exceptions[] = {
		{"Exception", CATCHES_ALL},       {"BaseException", CATCHES_ALL},
		{"OSError", CATCHES_OS},          {"IOError", CATCHES_OS},
		{"EnvironmentError", CATCHES_OS}, {"FileNotFoundError", CATCHES_OS},
		{"EOFError", CATCHES_OS},         {"NameError", CATCHES_NAME},
		{"ImportError", CATCHES_IMPORT},  {"ModuleNotFoundError", CATCHES_IMPORT},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(exceptions); i++)
		if (strcmp(exceptions[i].name, name) == 0)
			return exceptions[i].catches;
	return 0;
}

static unsigned catches_of_type(const struct node *type)
{
	unsigned catches = 0;
	const char *name;

	if (!type)
		return CATCHES_ALL;
	if (type->kind == NODE_Tuple) {
		const struct list *types = children(type, Tuple_elts);

		for (size_t i = 0; i < types->count; i++)
			catches |= catches_of_type(types->items[i].node);
		return catches;
	}
	if (type->kind != NODE_Name)
		return 0;
	name = PyUnicode_AsUTF8(leaf(type, Name_id));
	return name ? catches_of_name(name) : 0;
}

static void visit_try(struct walk *walk, struct node *node)
{
	/* Try and TryStar have the same fields. */
	const struct list *handlers = children(node, Try_handlers);
	unsigned catches = 0;

	for (size_t i = 0; i < handlers->count; i++)
		catches |= catches_of_type(child(handlers->items[i].node, ExceptHandler_type));
	walk->tries += (catches & CATCHES_OS) != 0;
	walk->tries_name += (catches & CATCHES_NAME) != 0;
	walk->tries_import += (catches & CATCHES_IMPORT) != 0;
	visit_branch(walk, children(node, Try_body));
	walk->tries -= (catches & CATCHES_OS) != 0;
	walk->tries_name -= (catches & CATCHES_NAME) != 0;
	walk->tries_import -= (catches & CATCHES_IMPORT) != 0;
	for (size_t i = 0; i < handlers->count; i++) {
		struct node *handler = handlers->items[i].node;
		PyObject *name = leaf(handler, ExceptHandler_name);

		if (child(handler, ExceptHandler_type))
			visit(walk, child(handler, ExceptHandler_type), VISIT_BASE | VISIT_CALLED);
		if (name)
			binding_set(walk, walk->scope, scope_bind(walk, walk->scope, name),
				    &value_unknown);
		/* What stands instead of an import that failed is a second choice. */
		walk->tries_import += (catches & CATCHES_IMPORT) != 0;
		visit_branch(walk, children(handler, ExceptHandler_body));
		walk->tries_import -= (catches & CATCHES_IMPORT) != 0;
	}
	visit_branch(walk, children(node, Try_orelse));
	visit_branch(walk, children(node, Try_finalbody));
}

/* --- match --------------------------------------------------------------- */

static void visit_pattern(struct walk *walk, struct node *node, struct value *subject)
{
	PyObject *name = NULL;

	switch (kind_of(node)) {
	case NODE_MatchValue:
		visit(walk, child(node, MatchValue_value), VISIT_BASE);
		return;
	case NODE_MatchClass: {
		const struct list *attributes = children(node, MatchClass_kwd_attrs);
		const struct list *patterns = children(node, MatchClass_kwd_patterns);

		visit(walk, child(node, MatchClass_cls), VISIT_BASE);
		for (size_t i = 0; i < children(node, MatchClass_patterns)->count; i++)
			visit_pattern(walk, children(node, MatchClass_patterns)->items[i].node,
				      &value_unknown);
		for (size_t i = 0; i < attributes->count; i++) {
			struct value *value =
				attribute_of(walk, subject, attributes->items[i].object,
					     patterns->items[i].node, VISIT_BASE);

			visit_pattern(walk, patterns->items[i].node, value);
		}
		return;
	}
	case NODE_MatchAs:
		name = leaf(node, MatchAs_name);
		if (child(node, MatchAs_pattern))
			visit_pattern(walk, child(node, MatchAs_pattern), subject);
		break;
	case NODE_MatchStar:
		name = leaf(node, MatchStar_name);
		subject = &value_unknown;
		break;
	case NODE_MatchMapping: {
		const struct list *patterns = children(node, MatchMapping_patterns);

		visit_expressions(walk, children(node, MatchMapping_keys), VISIT_BASE);
		for (size_t i = 0; i < patterns->count; i++)
			visit_pattern(walk, patterns->items[i].node, value_elements(walk, subject));
		name = leaf(node, MatchMapping_rest);
		subject = &value_unknown;
		break;
	}
	case NODE_MatchSequence:
	case NODE_MatchOr: {
		const struct list *patterns = children(node, 0);

		for (size_t i = 0; i < patterns->count; i++)
			visit_pattern(walk, patterns->items[i].node,
				      node->kind == NODE_MatchOr ? subject
								 : value_elements(walk, subject));
		return;
	}
	default:
		return;
	}
	if (name)
		binding_set(walk, walk->scope, scope_bind(walk, walk->scope, name), subject);
}

static void visit_match(struct walk *walk, struct node *node)
{
	const struct list *cases = children(node, Match_cases);
	struct value *subject = visit(walk, child(node, Match_subject), VISIT_BASE);

	for (size_t i = 0; i < cases->count; i++) {
		struct node *one = cases->items[i].node;

		walk->scope->branch++;
		visit_pattern(walk, child(one, match_case_pattern), subject);
		if (child(one, match_case_guard))
			visit(walk, child(one, match_case_guard), VISIT_BASE);
		visit_body(walk, children(one, match_case_body));
		walk->scope->branch--;
	}
}

/* --- the rest ------------------------------------------------------------ */

static void visit_assign(struct walk *walk, struct node *node)
{
	const struct list *targets = children(node, Assign_targets);
	struct value *value;
	bool names = true;

	for (size_t i = 0; i < targets->count; i++)
		names &= kind_of(targets->items[i].node) == NODE_Name;
	/* `x = os` is followed; what goes into anything else is out of sight. */
	value = visit(walk, child(node, Assign_value), names ? VISIT_BASE : 0);
	for (size_t i = 0; i < targets->count; i++)
		assign(walk, targets->items[i].node, value);
}

static void visit_aug_assign(struct walk *walk, struct node *node)
{
	struct node *target = child(node, AugAssign_target);
	struct value *value, *before = &value_unknown, *after;

	value = visit(walk, child(node, AugAssign_value), 0);
	if (kind_of(target) == NODE_Name)
		before = lookup_name(walk, leaf(target, Name_id), target);
	after = fold_binary(walk, kind_of(child(node, AugAssign_op)), before, value);
	/* In a loop the end is not known. */
	if (walk->scope->branch && after->kind == VALUE_CONSTANT)
		after = value_either(walk, after, &value_computed);
	assign(walk, target, after);
}

static void visit_for(struct walk *walk, struct node *node)
{
	struct value *iterable = visit(walk, child(node, For_iter), VISIT_BASE), *plain;

	use(walk, iterable, child(node, For_iter), 0);
	plain = value_plain(iterable);
	if (plain->kind == VALUE_REFERENCE && strcmp(plain->reference->path, "sys.stdin") == 0 &&
	    !walk->context->has_stdin && !walk->tries)
		report(walk, RULE_NO_STDIN, child(node, For_iter), "sys.stdin", NULL);
	walk->scope->branch++;
	assign(walk, child(node, For_target), value_elements(walk, iterable));
	walk->scope->branch--;
	visit_branch(walk, children(node, For_body));
	visit_branch(walk, children(node, For_orelse));
}

static void visit_with(struct walk *walk, struct node *node)
{
	const struct list *items = children(node, With_items);

	for (size_t i = 0; i < items->count; i++) {
		struct node *item = items->items[i].node;
		struct value *value = visit(walk, child(item, withitem_context_expr), 0);

		if (child(item, withitem_optional_vars))
			assign(walk, child(item, withitem_optional_vars), value);
	}
	visit_body(walk, children(node, With_body));
}

static void visit_delete(struct walk *walk, struct node *node)
{
	const struct list *targets = children(node, Delete_targets);

	for (size_t i = 0; i < targets->count; i++)
		if (kind_of(targets->items[i].node) != NODE_Name)
			visit(walk, targets->items[i].node, 0);
}

static void visit_statement(struct walk *walk, struct node *node)
{
	struct node *value;

	if (!node)
		return;
	if (++walk->depth > DEPTH_MAX)
		longjmp(walk->out, ELOOP);
	switch (node->kind) {
	case NODE_FunctionDef:
	case NODE_AsyncFunctionDef:
		visit_function(walk, node);
		break;
	case NODE_ClassDef:
		visit_class(walk, node);
		break;
	case NODE_Return:
		if (child(node, Return_value))
			visit(walk, child(node, Return_value), 0);
		break;
	case NODE_Delete:
		visit_delete(walk, node);
		break;
	case NODE_Assign:
		visit_assign(walk, node);
		break;
	case NODE_AugAssign:
		visit_aug_assign(walk, node);
		break;
	case NODE_AnnAssign:
		/* A local variable's annotation is never evaluated. */
		if (walk->scope->kind == SCOPE_FUNCTION)
			walk->no_names++;
		visit_annotation(walk, child(node, AnnAssign_annotation));
		if (walk->scope->kind == SCOPE_FUNCTION)
			walk->no_names--;
		if (child(node, AnnAssign_value))
			assign(walk, child(node, AnnAssign_target),
			       visit(walk, child(node, AnnAssign_value), VISIT_BASE));
		break;
	case NODE_For:
	case NODE_AsyncFor:
		visit_for(walk, node);
		break;
	case NODE_While:
		lint_loop(walk, node);
		visit(walk, child(node, While_test), VISIT_BASE);
		visit_branch(walk, children(node, While_body));
		visit_branch(walk, children(node, While_orelse));
		break;
	case NODE_If:
		visit(walk, child(node, If_test), VISIT_BASE);
		visit_branch(walk, children(node, If_body));
		visit_branch(walk, children(node, If_orelse));
		break;
	case NODE_With:
	case NODE_AsyncWith:
		visit_with(walk, node);
		break;
	case NODE_Match:
		visit_match(walk, node);
		break;
	case NODE_Raise:
		walk->quiet_text++;
		visit(walk, child(node, Raise_exc), 0);
		visit(walk, child(node, Raise_cause), 0);
		walk->quiet_text--;
		break;
	case NODE_Try:
	case NODE_TryStar:
		visit_try(walk, node);
		break;
	case NODE_Assert:
		visit(walk, child(node, Assert_test), VISIT_BASE);
		walk->quiet_text++;
		visit(walk, child(node, Assert_msg), 0);
		walk->quiet_text--;
		break;
	case NODE_Import:
		visit_import(walk, node);
		break;
	case NODE_ImportFrom:
		visit_import_from(walk, node);
		break;
	case NODE_TypeAlias: {
		struct scope *scope = walk->scope;

		walk->scope = node->scope;
		visit_annotation(walk, child(node, TypeAlias_value));
		walk->scope = scope;
		break;
	}
	case NODE_Expr:
		value = child(node, Expr_value);
		if (kind_of(value) == NODE_Constant)
			visit_docstring(walk, leaf(value, Constant_value));
		else
			visit(walk, value, VISIT_BASE);
		break;
	default:
		break;
	}
	walk->depth--;
}
