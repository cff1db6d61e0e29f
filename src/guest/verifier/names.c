/* SPDX-License-Identifier: Apache-2.0 */
/* names: what names, attributes and subscripts stand for, and their uses. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <string.h>

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

	if (reference->depth != 1) /* most names, and none of these */
		return false;
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
	if (value->kind == VALUE_UNION)
		for (size_t i = 0; i < value->count; i++)
			use(walk, value->items[i], node, flags);
	else if (value->kind == VALUE_REFERENCE)
		use_one(walk, value->reference, node, flags);
	/* vars(os) given on is os given on. */
	else if (value->kind == VALUE_NAMESPACE && value->self && !flags &&
		 value->self->kind == VALUE_REFERENCE)
		use_one(walk, value->self->reference, node, 0);
}

/* --- names --------------------------------------------------------------- */

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
	const char *text;

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
	text = PyUnicode_AsUTF8(name);
	if (!text) {
		PyErr_Clear();
		return &value_unknown;
	}
	if (any_star(walk->scope)) {
		char path[300];

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
	if (name_is(name, "__builtins__")) {
		report(walk, RULE_INTERNALS, node, "__builtins__", NULL);
		return value_reference(walk, reference_root(walk, "builtins"));
	}
	if (name_is(name, "__loader__") || name_is(name, "__spec__")) {
		report(walk, RULE_INTROSPECTION, node, text, NULL);
		return &value_unknown;
	}
	if (is_builtin_name(name)) {
	builtin:
		walk->reflects |= name_is(name, "globals") || name_is(name, "locals") ||
				  name_is(name, "vars") || name_is(name, "exec");
		return value_reference(
			walk, reference_child(walk, reference_root(walk, "builtins"), name));
	}
	if (name_is(name, "__file__"))
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

	if (name_is(name, "parent")) {
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
	if (name_is(name, "name") || name_is(name, "stem") || name_is(name, "suffix") ||
	    name_is(name, "parts") || name_is(name, "parents"))
		return &value_unknown;
	return method_of(walk, base, name);
}

/* Attributes that are constants, and with which names and paths are built. */
static struct value *constant_attribute(struct walk *walk, const struct reference *reference)
{
	static const struct {
		const char *path, *text;
	} constants[] = {
		{"os.sep", "/"},
		{"os.path.sep", "/"},
		{"os.curdir", "."},
		{"os.path.curdir", "."},
		{"os.pardir", ".."},
		{"os.path.pardir", ".."},
		{"os.devnull", "/dev/null"},
		{"os.path.devnull", "/dev/null"},
		{"string.ascii_lowercase", "abcdefghijklmnopqrstuvwxyz"},
		{"string.ascii_uppercase", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
		{"string.ascii_letters", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"},
		{"string.digits", "0123456789"},
		{"string.punctuation", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"},
	};

	if (strncmp(reference->path, "os.", 3) != 0 && strncmp(reference->path, "string.", 7) != 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(constants); i++)
		if (strcmp(constants[i].path, reference->path) == 0)
			return value_constant(walk, PyUnicode_FromString(constants[i].text), 0);
	return NULL;
}

static struct value *attribute_of_one(struct walk *walk, struct value *base, PyObject *name,
				      struct node *node)
{
	struct value *known = NULL;

	if (name_is(name, "__dict__"))
		return namespace_of(walk, base);
	switch (base->kind) {
	case VALUE_REFERENCE: {
		struct reference *reference = reference_child(walk, base->reference, name);

		if (reference && strcmp(reference->path, "builtins.__dict__") == 0)
			return namespace_of(walk, base);
		if (reference && !reference->call && !reference->root_unknown) {
			known = constant_attribute(walk, reference);
			if (known) /* the use of the module is harmless, and counted */
				use_one(walk, reference, node, VISIT_BASE);
			if (known)
				return known;
		}
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
	struct value *alternatives[ALTERNATIVES_MAX], *all;
	size_t count = value_alternatives(base, alternatives);

	check_attribute_name(walk, name, node, value_plain(base));
	all = attribute_of_one(walk, alternatives[0], name, node);
	for (size_t i = 1; i < count; i++)
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
		if (name_is(name, names[i]))
			return true;
	return false;
}

struct value *visit_attribute(struct walk *walk, struct node *node, unsigned flags)
{
	struct node *below = child(node, Attribute_value);
	PyObject *name = leaf(node, Attribute_attr);
	struct value *base;

	if (kind_of(below) == NODE_Attribute && harmless_code_attribute(name) &&
	    name_is(leaf(below, Attribute_attr), "__code__")) {
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
		    name_is(base->reference->name, "modules") && value_text(key, &text)) {
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

struct value *visit_subscript(struct walk *walk, struct node *node, unsigned flags)
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
