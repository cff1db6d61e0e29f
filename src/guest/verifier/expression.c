/* SPDX-License-Identifier: Apache-2.0 */
/* expression: what an expression is worth, and the uses in it. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <string.h>

static void visit_list(struct walk *walk, const struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == SLOT_NODE)
			visit(walk, list->items[i].node, 0);
}

/* --- uses ---------------------------------------------------------------- */

static void mark_harmless(struct walk *walk, const struct reference *reference)
{
	for (struct hard_import *hard = walk->hard; hard; hard = hard->next)
		if (hard->info == reference->module)
			hard->harmless_use = true;
}

/* Builtins that are judged by their arguments, and so must not be handed on. */
static bool must_be_called(const struct reference *reference)
{
	static const char *const names[] = {
		"builtins.eval",        "builtins.exec",        "builtins.compile",
		"builtins.__import__",  "builtins.getattr",     "builtins.globals",
		"builtins.locals",      "builtins.vars",        "importlib.import_module",
		"importlib.__import__", "pkgutil.resolve_name",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(names[i], reference->path) == 0)
			return true;
	return false;
}

static void use_one(struct walk *walk, const struct reference *reference, const struct node *node,
		    unsigned flags)
{
	switch (reference->judgement) {
	case JUDGED_BAD:
		/* `planet.system` is a word like any other, and so is a method that
		 * the code defines itself. */
		if (reference->info && strncmp(reference->info->name, "?.", 2) == 0 &&
		    (!(flags & VISIT_CALLED) ||
		     (reference->name && attribute_defined(walk, reference->name))))
			return;
		report_reference(walk, reference, node);
		return;
	case JUDGED_REFUSED:
		if (!(flags & VISIT_BASE) || (flags & VISIT_CALLED))
			report_reference(walk, reference, node);
		return;
	case JUDGED_MODULE:
		/* Handed on: nobody knows to what use. */
		if (!(flags & VISIT_BASE))
			report_reference(walk, reference, node);
		return;
	case JUDGED_CALL:
	case JUDGED_FINE:
		if (reference->module)
			mark_harmless(walk, reference);
		break;
	case JUDGED_NOTHING:
		break;
	}
	if (!flags && must_be_called(reference)) {
		bool attribute = strcmp(reference->path, "builtins.getattr") == 0 ||
				 strcmp(reference->path, "builtins.globals") == 0 ||
				 strcmp(reference->path, "builtins.locals") == 0 ||
				 strcmp(reference->path, "builtins.vars") == 0;
		const char *dot = strrchr(reference->path, '.');

		report(walk,
		       attribute ? RULE_DYNAMIC_ATTRIBUTE
				 : (reference->info ? reference->info->rule : RULE_DYNAMIC_CODE),
		       node, dot ? dot + 1 : reference->path, "call it directly, with constants");
	}
}

void use(struct walk *walk, struct value *value, const struct node *node, unsigned flags)
{
	struct value *alternatives[ALTERNATIVES_MAX];
	size_t count = value_alternatives(value, alternatives);

	for (size_t i = 0; i < count; i++)
		if (alternatives[i]->kind == VALUE_REFERENCE)
			use_one(walk, alternatives[i]->reference, node, flags);
}

/* --- names --------------------------------------------------------------- */

static bool ascii_is(PyObject *text, const char *expected)
{
	return PyUnicode_CompareWithASCIIString(text, expected) == 0;
}

static bool any_star(const struct scope *scope)
{
	for (; scope; scope = scope->parent)
		if (scope->star)
			return true;
	return false;
}

/* The function of the module in which `scope` lies, or NULL. */
static const struct scope *outermost_function(const struct walk *walk, const struct scope *scope)
{
	for (; scope; scope = scope->parent)
		if (scope->parent == walk->module)
			return scope->kind == SCOPE_FUNCTION ? scope : NULL;
	return NULL;
}

const char *uncalled_function(const struct walk *walk)
{
	const struct scope *function = outermost_function(walk, walk->scope);
	struct binding *binding;

	if (!function || walk->reflects || walk->quoted ||
	    kind_of(function->node) != NODE_FunctionDef ||
	    children(function->node, FunctionDef_decorator_list)->count)
		return NULL;
	binding = scope_own(walk->module, leaf(function->node, FunctionDef_name));
	if (!binding || binding->loaded)
		return NULL;
	return PyUnicode_AsUTF8(binding->name);
}

struct value *lookup_name(struct walk *walk, PyObject *name, struct node *node)
{
	struct scope *scope = NULL;
	struct binding *binding = scope_lookup(walk, walk->scope, name, &scope);
	const char *text = PyUnicode_AsUTF8(name);
	char path[300];

	if (!text) {
		PyErr_Clear();
		return &value_unknown;
	}
	if (binding) {
		bool here = scope == walk->scope && !scope->branch && !walk->quoted;
		const struct scope *function = outermost_function(walk, walk->scope);
		struct value *value = here && binding->now ? binding->now : binding->all;

		if (scope == walk->module && !binding->loaded)
			binding->loaded = !function || !function->node ||
					  leaf(function->node, FunctionDef_name) != name;
		if (value)
			return value;
		/* Nothing is known of it: a loop's or a parameter's name, or a
		 * builtin's that is bound only later. */
		if (!binding->parameter && is_builtin_name(name) && scope->kind == SCOPE_MODULE)
			goto builtin;
		return &value_unknown;
	}
	if (any_star(walk->scope)) {
		/* What a listed module would bring by its star. */
		for (size_t i = 0; i < walk->module->slot_count; i++) {
			struct binding *star = &walk->module->slots[i];

			if (!star->name || !star->all || star->all->kind != VALUE_REFERENCE ||
			    PyUnicode_READ_CHAR(star->name, 0) != '*')
				continue;
			snprintf(path, sizeof path, "%s.%s", star->all->reference->path, text);
			if (name_find(path))
				return value_reference(walk, reference_path(walk, path));
		}
	}
	if (ascii_is(name, "__builtins__")) {
		report(walk, RULE_INTERNALS, node, "__builtins__", NULL);
		return value_reference(walk, reference_root(walk, "builtins"));
	}
	if (ascii_is(name, "__loader__") || ascii_is(name, "__spec__")) {
		report(walk, RULE_INTROSPECTION, node, text, NULL);
		return &value_unknown;
	}
	if (is_builtin_name(name)) {
	builtin:
		snprintf(path, sizeof path, "builtins.%s", text);
		walk->reflects |= ascii_is(name, "globals") || ascii_is(name, "locals") ||
				  ascii_is(name, "vars") || ascii_is(name, "exec");
		return value_reference(walk, reference_path(walk, path));
	}
	if (ascii_is(name, "__file__"))
		return value_constant(walk, PyUnicode_FromString("/workspace/main.py"), 0);
	/* In a session a module may have been imported before. */
	if (walk->context->name_count || walk->context->fragment) {
		const struct name_info *info = name_find(text);

		if (info && (info->kind == NAME_LISTED || info->kind == NAME_HARD ||
			     info->kind == NAME_ALIAS))
			return value_reference(walk, reference_root(walk, text));
	}
	if (!any_star(walk->scope))
		lint_undefined(walk, name, node);
	return &value_unknown;
}

/* --- attributes ---------------------------------------------------------- */

static bool inside_method(const struct walk *walk, const char *name)
{
	return walk->function_name && strcmp(walk->function_name, name) == 0;
}

void check_attribute_name(struct walk *walk, PyObject *name, const struct node *node,
			  struct value *base)
{
	Py_ssize_t length;
	const char *text = PyUnicode_AsUTF8AndSize(name, &length);
	enum rule rule;

	if (!text) {
		PyErr_Clear();
		return;
	}
	rule = internal_attribute((struct span){(const uint8_t *)text, (size_t)length});
	if (rule == RULE_COUNT)
		return;
	/* A proxy's own __getattribute__ must call the real one. */
	if (strcmp(text, "__getattribute__") == 0 &&
	    (inside_method(walk, "__getattribute__") || inside_method(walk, "__getattr__")))
		return;
	if (strcmp(text, "__reduce_ex__") == 0 && inside_method(walk, "__reduce_ex__"))
		return;
	/* builtins.__import__ is judged as the function. */
	if (strcmp(text, "__import__") == 0 && base && base->kind == VALUE_REFERENCE &&
	    strcmp(base->reference->path, "builtins") == 0)
		return;
	report(walk, rule, node, text, NULL);
}

static struct value *namespace_of(struct walk *walk, struct value *of)
{
	struct value *value = value_new(walk, VALUE_NAMESPACE);

	value->self = of;
	return value;
}

static struct value *method_of(struct walk *walk, struct value *self, PyObject *name)
{
	struct value *value = value_new(walk, VALUE_METHOD);

	value->self = self;
	value->object = name;
	return value;
}

static struct value *path_attribute(struct walk *walk, struct value *base, PyObject *name)
{
	struct span text;
	const char *slash;

	if (ascii_is(name, "parent")) {
		if (!value_text(base, &text) || (base->flags & VALUE_PREFIX))
			return &value_unknown;
		slash = memrchr(text.data, '/', text.length);
		if (!slash)
			return value_constant(walk, PyUnicode_FromString("."), VALUE_PATH);
		return value_constant(
			walk,
			PyUnicode_DecodeUTF8((const char *)text.data,
					     slash == (const char *)text.data
						     ? 1
						     : slash - (const char *)text.data,
					     "replace"),
			VALUE_PATH);
	}
	if (ascii_is(name, "name") || ascii_is(name, "stem") || ascii_is(name, "suffix") ||
	    ascii_is(name, "parts") || ascii_is(name, "parents"))
		return &value_unknown;
	return method_of(walk, base, name);
}

static struct value *attribute_of_one(struct walk *walk, struct value *base, PyObject *name,
				      struct node *node)
{
	struct value *known = NULL;

	if (ascii_is(name, "__dict__"))
		return namespace_of(walk, base);
	switch (base->kind) {
	case VALUE_REFERENCE: {
		struct reference *reference = reference_child(walk, base->reference, name);

		if (reference && strcmp(reference->path, "builtins.__dict__") == 0)
			return namespace_of(walk, base);
		if (reference && reference->root_unknown)
			known = attribute_value(walk, name);
		return known ? value_either(walk, value_reference(walk, reference), known)
			     : value_reference(walk, reference);
	}
	case VALUE_CONSTANT:
		if (base->flags & VALUE_PATH)
			return path_attribute(walk, base, name);
		return method_of(walk, base, name);
	case VALUE_SEQUENCE:
	case VALUE_DICT:
	case VALUE_NAMESPACE:
		return method_of(walk, base, name);
	case VALUE_CLASS:
	case VALUE_FUNCTION:
		known = attribute_value(walk, name);
		return known ? known : &value_unknown;
	case VALUE_METHOD:
		return &value_unknown;
	default:
		known = attribute_value(walk, name);
		return value_either(walk, value_reference(walk, reference_unknown(walk, name)),
				    known);
	}
}

struct value *attribute_of(struct walk *walk, struct value *base, PyObject *name, struct node *node,
			   unsigned flags)
{
	struct value *alternatives[ALTERNATIVES_MAX], *all = NULL;
	size_t count = value_alternatives(base, alternatives);

	check_attribute_name(walk, name, node, value_plain(base));
	for (size_t i = 0; i < count; i++)
		all = value_either(walk, all, attribute_of_one(walk, alternatives[i], name, node));
	use(walk, all, node, flags);
	return all;
}

/* `f.__code__.co_argcount` and its like only count. */
static bool harmless_code_attribute(PyObject *name)
{
	static const char *const names[] = {
		"co_argcount",        "co_varnames", "co_name",    "co_filename",
		"co_firstlineno",     "co_flags",    "co_nlocals", "co_kwonlyargcount",
		"co_posonlyargcount", "co_qualname", "co_freevars"};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (ascii_is(name, names[i]))
			return true;
	return false;
}

static struct value *visit_attribute(struct walk *walk, struct node *node, unsigned flags)
{
	struct node *below = child(node, Attribute_value);
	PyObject *name = leaf(node, Attribute_attr);
	struct value *base;

	if (kind_of(below) == NODE_Attribute && harmless_code_attribute(name) &&
	    ascii_is(leaf(below, Attribute_attr), "__code__")) {
		visit(walk, child(below, Attribute_value), VISIT_BASE);
		return &value_unknown;
	}
	base = visit(walk, below, VISIT_BASE);
	return attribute_of(walk, base, name, node, flags);
}

/* --- subscripts ---------------------------------------------------------- */

static struct value *name_in_globals(struct walk *walk, PyObject *name, struct node *node)
{
	struct value *value;
	struct scope *scope = walk->scope;
	PyObject *key = name;

	Py_INCREF(key);
	PyUnicode_InternInPlace(&key);
	if (PyList_Append(walk->keep, key) < 0)
		PyErr_Clear();
	Py_DECREF(key);
	walk->no_names++;
	walk->scope = walk->module;
	value = lookup_name(walk, key, node);
	walk->scope = scope;
	walk->no_names--;
	return value;
}

static struct value *module_of_key(struct walk *walk, struct value *key, struct node *node)
{
	const char *name;

	if (is_whole_text(key)) {
		name = PyUnicode_AsUTF8(key->object);
		if (!name) {
			PyErr_Clear();
			return &value_unknown;
		}
		if (strcmp(name, "__main__") == 0)
			return namespace_of(walk, NULL);
		return value_reference(walk, reference_path(walk, name));
	}
	report(walk, RULE_DYNAMIC_IMPORT, node, "sys.modules", NULL);
	return &value_unknown;
}

static struct value *element_of_one(struct walk *walk, struct value *base, struct value *key,
				    struct node *node)
{
	Py_ssize_t index;
	struct span text;

	switch (base->kind) {
	case VALUE_REFERENCE:
		if (strcmp(base->reference->path, "sys.modules") == 0) {
			if (key->kind == VALUE_REFERENCE &&
			    strcmp(key->reference->path, "builtins.__name__") == 0)
				return namespace_of(walk, NULL);
			return module_of_key(walk, key, node);
		}
		/* `__builtins__["eval"]`: a dict in some modules. */
		if (strcmp(base->reference->path, "builtins") == 0) {
			if (is_whole_text(key))
				return attribute_of(walk, base, key->object, node, VISIT_BASE);
			report(walk, RULE_DYNAMIC_ATTRIBUTE, node, "__builtins__", NULL);
		}
		/* x.modules["os"] of anything. */
		if (is_whole_text(key) && base->reference->name &&
		    ascii_is(base->reference->name, "modules") && value_text(key, &text)) {
			const char *name = PyUnicode_AsUTF8(key->object);
			const struct name_info *info = name ? name_find(name) : NULL;

			if (info && (info->kind == NAME_LISTED || info->kind == NAME_HARD))
				return value_reference(walk, reference_root(walk, name));
		}
		return &value_unknown;
	case VALUE_NAMESPACE:
		if (!is_whole_text(key)) {
			struct value *of = base->self ? value_plain(base->self) : NULL;
			bool matters = of && of->kind == VALUE_REFERENCE && !of->reference->call &&
				       of->reference->module;

			if (matters || (key->flags & (VALUE_COMPUTED | VALUE_PREFIX)))
				report(walk, RULE_DYNAMIC_ATTRIBUTE, node,
				       base->self ? "vars()" : "globals()", NULL);
			return &value_unknown;
		}
		if (base->self)
			return attribute_of(walk, base->self, key->object, node, VISIT_BASE);
		return name_in_globals(walk, key->object, node);
	case VALUE_SEQUENCE:
		if (key->kind == VALUE_CONSTANT && PyLong_CheckExact(key->object) &&
		    !(base->flags & VALUE_SET)) {
			index = PyLong_AsSsize_t(key->object);
			if (index == -1 && PyErr_Occurred())
				PyErr_Clear();
			if (index < 0)
				index += base->count;
			if (index >= 0 && index < (Py_ssize_t)base->count)
				return base->items[index];
		}
		return value_elements(walk, base);
	case VALUE_DICT: {
		struct value *all = NULL;

		for (size_t i = 0; i < base->count; i += 2) {
			struct value *candidate = base->items[i];

			if (candidate && candidate->kind == VALUE_CONSTANT &&
			    key->kind == VALUE_CONSTANT && !(key->flags & VALUE_PREFIX)) {
				int equal = PyObject_RichCompareBool(candidate->object, key->object,
								     Py_EQ);

				if (equal < 0)
					PyErr_Clear();
				if (equal == 0)
					continue;
			}
			all = value_either(walk, all, base->items[i + 1]);
		}
		return all ? all : &value_unknown;
	}
	case VALUE_CONSTANT:
		return fold_index(walk, base, key);
	default:
		return base->kind == VALUE_UNKNOWN ? base : &value_unknown;
	}
}

struct value *element_of(struct walk *walk, struct value *base, struct value *key,
			 struct node *node)
{
	struct value *bases[ALTERNATIVES_MAX], *keys[ALTERNATIVES_MAX], *all = NULL;
	size_t count = value_alternatives(base, bases), key_count = value_alternatives(key, keys);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < key_count; k++)
			all = value_either(walk, all,
					   element_of_one(walk, bases[i], keys[k], node));
	return all;
}

static struct value *visit_subscript(struct walk *walk, struct node *node, unsigned flags)
{
	struct node *slice = child(node, Subscript_slice);
	struct value *base = visit(walk, child(node, Subscript_value), VISIT_BASE), *value;

	if (kind_of(slice) == NODE_Slice) {
		struct value *bounds[3];

		for (int i = 0; i < 3; i++)
			bounds[i] = child(slice, i) ? visit(walk, child(slice, i), 0) : NULL;
		if (value_plain(base)->kind == VALUE_CONSTANT)
			return fold_slice(walk, value_plain(base), bounds);
		if (value_plain(base)->kind == VALUE_SEQUENCE)
			return value_plain(base);
		use(walk, base, child(node, Subscript_value), 0);
		return value_plain(base)->kind == VALUE_UNKNOWN ? base : &value_unknown;
	}
	value = element_of(walk, base, visit(walk, slice, 0), node);
	if (value_plain(base)->kind == VALUE_REFERENCE &&
	    strcmp(value_plain(base)->reference->path, "sys.modules") != 0 &&
	    strcmp(value_plain(base)->reference->path, "builtins") != 0)
		use(walk, base, child(node, Subscript_value), 0);
	use(walk, value, node, flags);
	return value;
}

/* --- containers ---------------------------------------------------------- */

static struct value *visit_sequence(struct walk *walk, const struct list *elements, uint32_t flags)
{
	size_t count = elements->count < ELEMENTS_MAX ? elements->count : ELEMENTS_MAX;
	struct value *value = value_new(walk, VALUE_SEQUENCE);
	bool starred = false;

	value->items = arena_take(&walk->arena, (count + 1) * sizeof value->items[0]);
	value->flags = flags;
	for (size_t i = 0; i < elements->count; i++) {
		struct node *node = elements->items[i].node;
		struct value *element;

		if (kind_of(node) == NODE_Starred) {
			struct value *all = visit(walk, child(node, Starred_value), 0);
			struct value *plain = value_plain(all);

			/* [*"os"]: its characters */
			element = plain->kind == VALUE_CONSTANT ? &value_computed
								: value_elements(walk, all);
			starred = true;
		} else {
			element = visit(walk, node, 0);
		}
		if (i < count)
			value->items[value->count++] = element;
	}
	if (starred)
		value->flags |= VALUE_SET; /* positions are not known */
	return value;
}

static struct value *visit_dict(struct walk *walk, struct node *node)
{
	const struct list *keys = children(node, Dict_keys), *values = children(node, Dict_values);
	struct value *value = value_new(walk, VALUE_DICT);
	size_t count = keys->count < ELEMENTS_MAX ? keys->count : ELEMENTS_MAX;

	value->items = arena_take(&walk->arena, (2 * count + 2) * sizeof value->items[0]);
	for (size_t i = 0; i < keys->count; i++) {
		struct value *key = keys->items[i].kind == SLOT_NODE
					    ? visit(walk, keys->items[i].node, 0)
					    : NULL;
		struct value *item = visit(walk, values->items[i].node, 0);

		if (!walk->quiet_text)
			check_string_argument(walk, item, values->items[i].node);
		if (i >= count)
			continue;
		if (!key) { /* **other */
			struct value *other = value_plain(item);

			item = other->kind == VALUE_DICT && other->count ? other->items[1]
									 : &value_unknown;
		}
		value->items[value->count++] = key;
		value->items[value->count++] = item;
	}
	return value;
}

/* --- comprehensions ------------------------------------------------------ */

/* What the iterable gives, one by one, when that is known. */
static bool known_elements(struct walk *walk, struct value *iterable, struct value ***ret_items,
			   size_t *ret_count)
{
	iterable = value_plain(iterable);
	if (iterable->kind == VALUE_SEQUENCE && !(iterable->flags & VALUE_SET)) {
		*ret_items = iterable->items;
		*ret_count = iterable->count;
		return true;
	}
	if (iterable->kind == VALUE_CONSTANT && !(iterable->flags & VALUE_PREFIX) &&
	    (PyUnicode_CheckExact(iterable->object) || PyBytes_CheckExact(iterable->object))) {
		Py_ssize_t length = PyObject_Length(iterable->object);

		if (length < 0 || length > 4096)
			return false;
		*ret_items = arena_take(&walk->arena, ((size_t)length + 1) * sizeof **ret_items);
		*ret_count = (size_t)length;
		for (Py_ssize_t i = 0; i < length; i++)
			(*ret_items)[i] =
				value_constant(walk, PySequence_GetItem(iterable->object, i), 0);
		return true;
	}
	return false;
}

/* One generator without conditions over known elements, giving constants: the
 * way in which names are spelled by numbers. */
static struct value *unroll(struct walk *walk, struct node *node, struct value *iterable,
			    struct value *first)
{
	struct node *generator = children(node, ListComp_generators)->items[0].node;
	struct value **items, *value;
	bool reporting = walk->report;
	size_t count;

	if (children(node, ListComp_generators)->count != 1 ||
	    children(generator, comprehension_ifs)->count ||
	    (value_plain(first)->kind == VALUE_REFERENCE) ||
	    !known_elements(walk, iterable, &items, &count) || count > 512 ||
	    walk->fold_steps + count * 8 > FOLD_STEP_BUDGET)
		return NULL;
	walk->fold_steps += (unsigned)count * 8;
	walk->muted++;
	walk->report = false;
	value = value_new(walk, VALUE_SEQUENCE);
	value->items = arena_take(&walk->arena, (count + 1) * sizeof value->items[0]);
	for (size_t i = 0; i < count; i++) {
		struct value *element;
		struct node *target = child(generator, comprehension_target);
		struct binding *binding = target->kind == NODE_Name
						  ? scope_own(walk->scope, leaf(target, Name_id))
						  : NULL;

		if (binding)
			binding->all = binding->now = items[i];
		else
			assign(walk, target, items[i]);
		element = visit(walk, child(node, ListComp_elt), 0);
		value->items[value->count++] = element;
		if (element->kind != VALUE_CONSTANT) {
			value = NULL;
			break;
		}
	}
	walk->report = reporting;
	walk->muted--;
	return value;
}

static struct value *visit_comprehension(struct walk *walk, struct node *node)
{
	int field = node->kind == NODE_DictComp ? DictComp_generators : ListComp_generators;
	const struct list *generators = children(node, field);
	struct scope *outer = walk->scope;
	struct value *value = NULL, *iterable = NULL, *first, *all;

	for (size_t i = 0; i < generators->count; i++) {
		struct node *generator = generators->items[i].node;

		walk->scope = i ? node->scope : outer;
		iterable = visit(walk, child(generator, comprehension_iter), 0);
		walk->scope = node->scope;
		assign(walk, child(generator, comprehension_target),
		       value_elements(walk, iterable));
		visit_list(walk, children(generator, comprehension_ifs));
	}
	walk->scope = node->scope;
	if (node->kind == NODE_DictComp) {
		struct value *key = visit(walk, child(node, DictComp_key), 0);

		first = visit(walk, child(node, DictComp_value), 0);
		value = value_new(walk, VALUE_DICT);
		value->count = 2;
		value->items = arena_take(&walk->arena, 2 * sizeof value->items[0]);
		value->items[0] = key->kind == VALUE_CONSTANT ? NULL : key;
		value->items[1] = first;
		walk->scope = outer;
		return value;
	}
	first = visit(walk, child(node, ListComp_elt), 0);
	if (value_plain(first)->kind != VALUE_FUNCTION)
		value = unroll(walk, node, iterable, first);
	walk->scope = outer;
	if (value)
		return value;
	all = value_new(walk, VALUE_SEQUENCE);
	all->count = 1;
	all->flags = VALUE_SET;
	all->items = arena_take(&walk->arena, sizeof all->items[0]);
	all->items[0] = first;
	return all;
}

/* --- the rest ------------------------------------------------------------ */

static struct value *visit_lambda(struct walk *walk, struct node *node)
{
	struct node *arguments = child(node, Lambda_args);
	struct value *value = value_new(walk, VALUE_FUNCTION);

	if (arguments) {
		visit_list(walk, children(arguments, arguments_defaults));
		visit_list(walk, children(arguments, arguments_kw_defaults));
	}
	value->scope = node->scope;
	queue_function(walk, node, node->scope);
	return value;
}

static struct value *visit_constant(struct walk *walk, struct node *node)
{
	PyObject *object = leaf(node, Constant_value);

	if (!object)
		return &value_unknown;
	if (PyUnicode_CheckExact(object)) {
		if (!walk->quiet_text)
			check_text(walk, object, node);
	} else if (PyBytes_CheckExact(object)) {
		check_bytes(walk, object, node);
	}
	return value_borrowed(walk, object, 0);
}

static struct value *visit_compare(struct walk *walk, struct node *node)
{
	const struct list *others = children(node, Compare_comparators);

	use(walk, visit(walk, child(node, Compare_left), VISIT_BASE), node, VISIT_BASE);
	for (size_t i = 0; i < others->count; i++)
		visit(walk, others->items[i].node, VISIT_BASE);
	return &value_unknown;
}

/* A walrus binds outside the comprehensions that it stands in. */
static struct value *visit_walrus(struct walk *walk, struct node *node, unsigned flags)
{
	struct value *value = visit(walk, child(node, NamedExpr_value), VISIT_BASE);
	struct scope *scope = walk->scope;

	while (walk->scope->kind == SCOPE_COMPREHENSION && walk->scope->parent)
		walk->scope = walk->scope->parent;
	assign(walk, child(node, NamedExpr_target), value);
	walk->scope = scope;
	use(walk, value, node, flags);
	return value;
}

static struct value *visit_one(struct walk *walk, struct node *node, unsigned flags)
{
	struct value *value, *other;

	switch (node->kind) {
	case NODE_Constant:
		return visit_constant(walk, node);
	case NODE_Name:
		value = lookup_name(walk, leaf(node, Name_id), node);
		use(walk, value, node, flags);
		return value;
	case NODE_Attribute:
		return visit_attribute(walk, node, flags);
	case NODE_Subscript:
		return visit_subscript(walk, node, flags);
	case NODE_Call:
		value = visit_call(walk, node);
		/* __import__("os") given on is the module given on. */
		use(walk, value, node, flags);
		return value;
	case NODE_BinOp:
		value = visit(walk, child(node, BinOp_left), 0);
		other = visit(walk, child(node, BinOp_right), 0);
		return fold_binary(walk, kind_of(child(node, BinOp_op)), value, other);
	case NODE_UnaryOp:
		value = visit(walk, child(node, UnaryOp_operand), VISIT_BASE);
		return fold_unary(walk, kind_of(child(node, UnaryOp_op)), value);
	case NODE_BoolOp: {
		const struct list *values = children(node, BoolOp_values);

		value = NULL;
		for (size_t i = 0; i < values->count; i++)
			value = value_either(walk, value,
					     visit(walk, values->items[i].node, flags));
		return value;
	}
	case NODE_IfExp:
		visit(walk, child(node, IfExp_test), VISIT_BASE);
		value = visit(walk, child(node, IfExp_body), flags);
		return value_either(walk, value, visit(walk, child(node, IfExp_orelse), flags));
	case NODE_NamedExpr:
		return visit_walrus(walk, node, flags);
	case NODE_Compare:
		return visit_compare(walk, node);
	case NODE_JoinedStr:
		return fold_joined(walk, node);
	case NODE_FormattedValue:
		visit(walk, child(node, FormattedValue_value), VISIT_BASE);
		return &value_unknown;
	case NODE_List:
		return visit_sequence(walk, children(node, List_elts), 0);
	case NODE_Tuple:
		return visit_sequence(walk, children(node, Tuple_elts), 0);
	case NODE_Set:
		return visit_sequence(walk, children(node, Set_elts), VALUE_SET);
	case NODE_Dict:
		return visit_dict(walk, node);
	case NODE_ListComp:
	case NODE_SetComp:
	case NODE_DictComp:
	case NODE_GeneratorExp:
		return visit_comprehension(walk, node);
	case NODE_Lambda:
		return visit_lambda(walk, node);
	case NODE_Starred:
		return value_elements(walk, visit(walk, child(node, Starred_value), 0));
	case NODE_Await:
	case NODE_YieldFrom:
	case NODE_Yield:
		if (child(node, 0))
			return visit(walk, child(node, 0), 0);
		return &value_unknown;
	case NODE_Slice:
		for (int i = 0; i < 3; i++)
			if (child(node, i))
				visit(walk, child(node, i), 0);
		return &value_unknown;
	default:
		return &value_unknown;
	}
}

struct value *visit(struct walk *walk, struct node *node, unsigned flags)
{
	struct value *value;

	if (!node)
		return &value_unknown;
	if (++walk->depth > DEPTH_MAX)
		longjmp(walk->out, ELOOP);
	value = visit_one(walk, node, flags);
	walk->depth--;
	return value;
}

/* --- targets ------------------------------------------------------------- */

static void assign_elements(struct walk *walk, const struct list *targets, struct value *value)
{
	struct value *plain = value_plain(value);
	bool known = plain->kind == VALUE_SEQUENCE && !(plain->flags & VALUE_SET) &&
		     plain->count >= targets->count;

	for (size_t i = 0; i < targets->count; i++) {
		struct node *target = targets->items[i].node;

		if (kind_of(target) == NODE_Starred)
			known = false;
		assign(walk, target, known ? plain->items[i] : value_elements(walk, value));
	}
}

void assign(struct walk *walk, struct node *target, struct value *value)
{
	struct value *base;
	struct binding *binding;
	struct scope *scope;

	switch (kind_of(target)) {
	case NODE_Name:
		scope = walk->scope;
		binding = scope_bind(walk, scope, leaf(target, Name_id));
		if (!scope_own(scope, leaf(target, Name_id)) ||
		    scope_own(scope, leaf(target, Name_id)) != binding)
			scope = walk->module;
		binding_set(walk, scope, binding, value);
		return;
	case NODE_Tuple:
	case NODE_List:
		assign_elements(walk, children(target, 0), value);
		return;
	case NODE_Starred:
		assign(walk, child(target, Starred_value), value);
		return;
	case NODE_Attribute:
		base = visit(walk, child(target, Attribute_value), VISIT_BASE);
		if (internal_attribute((struct span){
			    (const uint8_t *)PyUnicode_AsUTF8(leaf(target, Attribute_attr)),
			    strlen(PyUnicode_AsUTF8(leaf(target, Attribute_attr)))}) ==
			    RULE_INTROSPECTION &&
		    ascii_is(leaf(target, Attribute_attr), "__code__")) {
			report(walk, RULE_CODE_OBJECT, target, "setting __code__", NULL);
			return;
		}
		base = value_plain(base);
		if (base->kind == VALUE_REFERENCE &&
		    strcmp(base->reference->path, "builtins") == 0) {
			report(walk, RULE_HOOKS, target, "changing builtins", NULL);
			return;
		}
		attribute_of(walk, base, leaf(target, Attribute_attr), target, 0);
		attribute_remember(walk, leaf(target, Attribute_attr), value);
		/* Out of sight from here on. */
		use(walk, value, target, 0);
		return;
	case NODE_Subscript:
		base = visit(walk, child(target, Subscript_value), VISIT_BASE);
		visit(walk, child(target, Subscript_slice), 0);
		use(walk, value, target, 0);
		base = value_plain(base);
		if (base->kind == VALUE_REFERENCE &&
		    (strcmp(base->reference->path, "sys.modules") == 0 ||
		     strcmp(base->reference->path, "builtins") == 0)) {
			report(walk, RULE_HOOKS, target,
			       base->reference->path[0] == 's' ? "changing sys.modules"
							       : "changing builtins",
			       NULL);
		} else if (base->kind == VALUE_NAMESPACE) {
			struct value *of = base->self ? value_plain(base->self) : NULL;

			if (of && of->kind == VALUE_REFERENCE && of->reference->module)
				use(walk, of, target, 0);
		} else {
			use(walk, base, target, 0);
		}
		return;
	default:
		if (target)
			visit(walk, target, VISIT_BASE);
		return;
	}
}
