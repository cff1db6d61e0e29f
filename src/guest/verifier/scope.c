/* SPDX-License-Identifier: Apache-2.0 */
/* scope: the symbol table, as the language reference has it.
 *
 * Names are interned by the parser (after NFKC), so they are compared by
 * address. Class scopes are seen only from their own statements; a
 * comprehension has a scope of its own, but for its first iterable; a walrus
 * binds outside the comprehension. */
#include "guest/verifier/walk.h"

#include <string.h>

struct scope *scope_new(struct walk *walk, enum scope_kind kind, struct scope *parent,
			struct node *node)
{
	struct scope *scope = arena_take(&walk->arena, sizeof *scope);

	scope->kind = kind;
	scope->parent = parent;
	scope->node = node;
	return scope;
}

static size_t slot_of(const struct binding *slots, size_t count, PyObject *name)
{
	uintptr_t bits = (uintptr_t)name;
	size_t at = (bits >> 4 ^ bits >> 11) & (count - 1);

	while (slots[at].name && slots[at].name != name)
		at = (at + 1) & (count - 1);
	return at;
}

static struct binding *insert(struct walk *walk, struct binding **slots, size_t *count,
			      size_t *used, PyObject *name)
{
	size_t at;

	if (*used * 2 >= *count) {
		size_t larger = *count ? *count * 2 : 8;
		struct binding *grown = arena_take(&walk->arena, larger * sizeof *grown);

		for (size_t i = 0; i < *count; i++)
			if ((*slots)[i].name)
				grown[slot_of(grown, larger, (*slots)[i].name)] = (*slots)[i];
		*slots = grown;
		*count = larger;
	}
	at = slot_of(*slots, *count, name);
	if (!(*slots)[at].name) {
		(*slots)[at].name = name;
		(*used)++;
	}
	return &(*slots)[at];
}

struct binding *scope_own(const struct scope *scope, PyObject *name)
{
	size_t at;

	if (!scope->slot_count)
		return NULL;
	at = slot_of(scope->slots, scope->slot_count, name);
	return scope->slots[at].name ? &scope->slots[at] : NULL;
}

struct binding *scope_bind(struct walk *walk, struct scope *scope, PyObject *name)
{
	struct binding *own = scope_own(scope, name);

	if (own && own->global && scope != walk->module)
		return scope_bind(walk, walk->module, name);
	if (own && own->nonlocal) {
		for (struct scope *up = scope->parent; up; up = up->parent) {
			struct binding *outer =
				up->kind == SCOPE_FUNCTION ? scope_own(up, name) : NULL;

			if (outer && !outer->nonlocal && !outer->global)
				return outer;
		}
	}
	if (own)
		return own;
	return insert(walk, &scope->slots, &scope->slot_count, &scope->used, name);
}

struct binding *scope_lookup(const struct walk *walk, const struct scope *scope, PyObject *name,
			     struct scope **ret_scope)
{
	bool first = true;

	for (const struct scope *up = scope; up; up = up->parent) {
		struct binding *own;

		if (up->kind == SCOPE_CLASS && !first)
			continue;
		own = scope_own(up, name);
		if (up->kind != SCOPE_COMPREHENSION || up == scope)
			first = false;
		if (!own || own->nonlocal)
			continue;
		if (own->global && up != walk->module) {
			*ret_scope = walk->module;
			return scope_own(walk->module, name);
		}
		*ret_scope = (struct scope *)up;
		return own;
	}
	return NULL;
}

struct value *attribute_value(struct walk *walk, PyObject *name)
{
	size_t at;

	if (!walk->attribute_slot_count)
		return NULL;
	at = slot_of(walk->attribute_slots, walk->attribute_slot_count, name);
	return walk->attribute_slots[at].all;
}

void attribute_remember(struct walk *walk, PyObject *name, struct value *value)
{
	struct binding *binding;

	binding = insert(walk, &walk->attribute_slots, &walk->attribute_slot_count,
			 &walk->attribute_used, name);
	if (value->kind != VALUE_UNKNOWN)
		binding->all = value_either(walk, binding->all, value);
}

bool attribute_defined(const struct walk *walk, PyObject *name)
{
	return walk->attribute_slot_count &&
	       walk->attribute_slots[slot_of(walk->attribute_slots, walk->attribute_slot_count,
					     name)]
		       .name;
}

void binding_set(struct walk *walk, struct scope *scope, struct binding *binding,
		 struct value *value)
{
	bool straight = scope == walk->scope && !scope->branch && !walk->quoted;

	binding->all = value_either(walk, binding->all, value);
	binding->now = straight || !binding->now ? value : value_either(walk, binding->now, value);
	if (scope->kind == SCOPE_CLASS)
		attribute_remember(walk, binding->name, value);
}

/* --- building ------------------------------------------------------------ */

static void build(struct walk *walk, struct node *node, struct scope *scope);

static void build_list(struct walk *walk, const struct list *list, struct scope *scope)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == SLOT_NODE)
			build(walk, list->items[i].node, scope);
}

static void build_children(struct walk *walk, struct node *node, struct scope *scope)
{
	for (size_t i = 0; i < node->slot_count; i++) {
		if (node->slots[i].kind == SLOT_NODE)
			build(walk, node->slots[i].node, scope);
		else if (node->slots[i].kind == SLOT_LIST)
			build_list(walk, node->slots[i].list, scope);
	}
}

static void build_parameters(struct walk *walk, const struct list *list, struct scope *function,
			     struct scope *outer)
{
	for (size_t i = 0; i < list->count; i++) {
		struct node *node = list->items[i].node;

		scope_bind(walk, function, leaf(node, arg_arg))->parameter = true;
		if (child(node, arg_annotation))
			build(walk, child(node, arg_annotation), outer);
	}
}

static void build_arguments(struct walk *walk, struct node *node, struct scope *function,
			    struct scope *outer)
{
	if (!node)
		return;
	build_parameters(walk, children(node, arguments_posonlyargs), function, outer);
	build_parameters(walk, children(node, arguments_args), function, outer);
	build_parameters(walk, children(node, arguments_kwonlyargs), function, outer);
	if (child(node, arguments_vararg))
		scope_bind(walk, function, leaf(child(node, arguments_vararg), arg_arg))
			->parameter = true;
	if (child(node, arguments_kwarg))
		scope_bind(walk, function, leaf(child(node, arguments_kwarg), arg_arg))->parameter =
			true;
	build_list(walk, children(node, arguments_defaults), outer);
	build_list(walk, children(node, arguments_kw_defaults), outer);
}

/* Type parameters (3.12) live in a scope around the function or class. */
static struct scope *build_type_parameters(struct walk *walk, const struct list *list,
					   struct scope *scope)
{
	struct scope *around;

	if (!list->count)
		return scope;
	around = scope_new(walk, SCOPE_FUNCTION, scope, NULL);
	for (size_t i = 0; i < list->count; i++) {
		struct node *parameter = list->items[i].node;

		if (parameter && leaf(parameter, 0))
			scope_bind(walk, around, leaf(parameter, 0));
		if (parameter)
			build_children(walk, parameter, around);
	}
	return around;
}

static void build_function(struct walk *walk, struct node *node, struct scope *scope)
{
	struct scope *around, *function;

	/* FunctionDef and AsyncFunctionDef have the same fields. */
	scope_bind(walk, scope, leaf(node, FunctionDef_name));
	build_list(walk, children(node, FunctionDef_decorator_list), scope);
	around = build_type_parameters(walk, children(node, FunctionDef_type_params), scope);
	function = scope_new(walk, SCOPE_FUNCTION, around, node);
	node->scope = function;
	build_arguments(walk, child(node, FunctionDef_args), function, around);
	if (child(node, FunctionDef_returns))
		build(walk, child(node, FunctionDef_returns), around);
	build_list(walk, children(node, FunctionDef_body), function);
}

static void build_class(struct walk *walk, struct node *node, struct scope *scope)
{
	struct scope *around, *class;

	scope_bind(walk, scope, leaf(node, ClassDef_name));
	build_list(walk, children(node, ClassDef_decorator_list), scope);
	around = build_type_parameters(walk, children(node, ClassDef_type_params), scope);
	build_list(walk, children(node, ClassDef_bases), around);
	build_list(walk, children(node, ClassDef_keywords), around);
	class = scope_new(walk, SCOPE_CLASS, around, node);
	node->scope = class;
	build_list(walk, children(node, ClassDef_body), class);
}

static void build_comprehension(struct walk *walk, struct node *node, struct scope *scope)
{
	int field = node->kind == NODE_DictComp ? DictComp_generators : ListComp_generators;
	const struct list *generators = children(node, field);
	struct scope *inner = scope_new(walk, SCOPE_COMPREHENSION, scope, node);

	node->scope = inner;
	for (size_t i = 0; i < generators->count; i++) {
		struct node *generator = generators->items[i].node;

		build(walk, child(generator, comprehension_iter), i ? inner : scope);
		build(walk, child(generator, comprehension_target), inner);
		build_list(walk, children(generator, comprehension_ifs), inner);
	}
	for (int i = 0; i < field; i++)
		build(walk, child(node, i), inner);
}

static void build_import(struct walk *walk, struct node *node, struct scope *scope)
{
	const struct list *names =
		children(node, node->kind == NODE_Import ? Import_names : ImportFrom_names);

	for (size_t i = 0; i < names->count; i++) {
		struct node *alias = names->items[i].node;
		PyObject *name = leaf(alias, alias_asname);
		Py_ssize_t dot;

		if (name) {
			scope_bind(walk, scope, name);
			continue;
		}
		name = leaf(alias, alias_name);
		if (name_is(name, "*")) {
			scope->star = true;
			continue;
		}
		dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
		if (dot > 0) {
			name = PyUnicode_Substring(name, 0, dot);
			if (!name || PyList_Append(walk->keep, name) < 0) {
				PyErr_Clear();
				longjmp(walk->out, ENOMEM);
			}
			PyUnicode_InternInPlace(&name);
			if (PyList_Append(walk->keep, name) < 0)
				PyErr_Clear();
			Py_DECREF(name);
		}
		scope_bind(walk, scope, name);
	}
}

static void build_declaration(struct walk *walk, struct node *node, struct scope *scope)
{
	const struct list *names = children(node, 0);

	for (size_t i = 0; i < names->count; i++) {
		PyObject *name = names->items[i].object;
		struct binding *binding;

		if (scope == walk->module)
			continue;
		binding = scope_own(scope, name);
		if (!binding)
			binding =
				insert(walk, &scope->slots, &scope->slot_count, &scope->used, name);
		if (node->kind == NODE_Global) {
			binding->global = true;
			scope_bind(walk, walk->module, name);
		} else {
			binding->nonlocal = true;
		}
	}
}

static struct scope *outside_comprehensions(struct scope *scope)
{
	while (scope->kind == SCOPE_COMPREHENSION && scope->parent)
		scope = scope->parent;
	return scope;
}

static void build(struct walk *walk, struct node *node, struct scope *scope)
{
	if (!node)
		return;
	switch (node->kind) {
	case NODE_Constant:
		return;
	case NODE_FunctionDef:
	case NODE_AsyncFunctionDef:
		build_function(walk, node, scope);
		return;
	case NODE_Lambda: {
		struct scope *function = scope_new(walk, SCOPE_FUNCTION, scope, node);

		node->scope = function;
		build_arguments(walk, child(node, Lambda_args), function, scope);
		build(walk, child(node, Lambda_body), function);
		return;
	}
	case NODE_ClassDef:
		build_class(walk, node, scope);
		return;
	case NODE_ListComp:
	case NODE_SetComp:
	case NODE_DictComp:
	case NODE_GeneratorExp:
		build_comprehension(walk, node, scope);
		return;
	case NODE_NamedExpr:
		build(walk, child(node, NamedExpr_value), scope);
		scope_bind(walk, outside_comprehensions(scope),
			   leaf(child(node, NamedExpr_target), Name_id));
		return;
	case NODE_Name:
		if (kind_of(child(node, Name_ctx)) != NODE_Load)
			scope_bind(walk, scope, leaf(node, Name_id));
		return;
	case NODE_Import:
	case NODE_ImportFrom:
		build_import(walk, node, scope);
		return;
	case NODE_Global:
	case NODE_Nonlocal:
		build_declaration(walk, node, scope);
		return;
	case NODE_ExceptHandler:
		if (leaf(node, ExceptHandler_name))
			scope_bind(walk, scope, leaf(node, ExceptHandler_name));
		break;
	case NODE_MatchAs:
		if (leaf(node, MatchAs_name))
			scope_bind(walk, scope, leaf(node, MatchAs_name));
		break;
	case NODE_MatchStar:
		if (leaf(node, MatchStar_name))
			scope_bind(walk, scope, leaf(node, MatchStar_name));
		break;
	case NODE_MatchMapping:
		if (leaf(node, MatchMapping_rest))
			scope_bind(walk, scope, leaf(node, MatchMapping_rest));
		break;
	case NODE_TypeAlias: {
		struct scope *around =
			build_type_parameters(walk, children(node, TypeAlias_type_params), scope);

		node->scope = around;
		build(walk, child(node, TypeAlias_name), scope);
		build(walk, child(node, TypeAlias_value), around);
		return;
	}
	default:
		break;
	}
	build_children(walk, node, scope);
}

/* `global` may stand behind uses in other functions, never behind a binding in
 * its own, so one pass in order is enough. */
void scopes_build(struct walk *walk, struct node *root, struct scope *scope)
{
	build_children(walk, root, scope);
}
