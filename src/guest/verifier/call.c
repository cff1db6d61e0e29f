/* SPDX-License-Identifier: Apache-2.0 */
/* call: what is called, with what, and what comes back. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <string.h>

struct value *call_argument(const struct call *call, size_t position, const char *name,
			    struct node **ret_node)
{
	if (name) {
		for (size_t i = 0; i < call->named_count; i++) {
			if (name_is(call->names[i], name)) {
				if (ret_node)
					*ret_node = call->named_nodes[i];
				return call->named[i];
			}
		}
	}
	if (position < call->count) {
		if (ret_node)
			*ret_node = call->nodes[position];
		return call->values[position];
	}
	return NULL;
}

static bool is_one_of(const char *path, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (names[i][0] == path[0] && strcmp(names[i], path) == 0)
			return true;
	return false;
}

/* Calls whose arguments are for people, or only looked at. */
static bool for_people(const char *path)
{
	static const char *const names[] = {
		"builtins.print",   "warnings.warn",     "logging.info",
		"logging.debug",    "logging.warning",   "logging.error",
		"logging.critical", "logging.exception", "sys.stdout.write",
		"sys.stderr.write", "sys.exit",          "builtins.input",
		"pprint.pprint",    "builtins.len",      "argparse.ArgumentParser",
		"builtins.hasattr",
	};
	static const char *const prefixes[] = {
		"re.",      "argparse.",      "textwrap.",
		"difflib.", "unittest.mock.", "logging.getLogger()."};

	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
		if (strncmp(prefixes[i], path, strlen(prefixes[i])) == 0)
			return true;
	return is_one_of(path, names, ARRAY_LENGTH(names));
}

/* Calls that may be given a module, since they only ask. */
static bool only_asks(const char *path)
{
	static const char *const names[] = {
		"builtins.print",      "builtins.str",           "builtins.repr",
		"builtins.type",       "builtins.dir",           "builtins.isinstance",
		"builtins.hasattr",    "builtins.getattr",       "builtins.id",
		"builtins.callable",   "builtins.vars",          "builtins.setattr",
		"builtins.delattr",    "builtins.bool",          "importlib.reload",
		"inspect.getsource",   "inspect.getdoc",         "inspect.signature",
		"inspect.isfunction",  "inspect.isbuiltin",      "inspect.ismodule",
		"inspect.getfile",     "inspect.getattr_static", "inspect.getmembers",
		"builtins.issubclass",
	};

	return is_one_of(path, names, ARRAY_LENGTH(names));
}

/* What is known of the calls of a name; looked up once. */
static enum manner manner_of(struct reference *reference)
{
	const char *path = reference->path;
	unsigned manner = reference->manner;

	if (manner)
		return manner;
	manner = MANNER_KNOWN;
	if (for_people(path))
		manner |= MANNER_PEOPLE;
	if (only_asks(path))
		manner |= MANNER_ASKS;
	if (reference->judgement == JUDGED_CALL && reference->info &&
	    reference->info->text[0] == 'f')
		manner |= MANNER_CALLS;
	if (strncmp(path, "pickle.dump", 11) == 0)
		manner |= MANNER_DUMPS;
	if (strncmp(path, "doctest.", 8) == 0)
		manner |= MANNER_TESTS;
	if (strncmp(path, "?.format", 8) == 0 || strstr(path, "extract"))
		manner |= MANNER_CREATES;
	if (!reference->root_unknown)
		reference->folder = folder_find(path);
	return reference->manner = manner;
}

static void gather(struct walk *walk, struct call *call, unsigned flags)
{
	const struct list *arguments = children(call->node, Call_args);
	const struct list *keywords = children(call->node, Call_keywords);

	for (size_t i = 0; i < arguments->count; i++) {
		struct node *node = arguments->items[i].node;

		if (kind_of(node) == NODE_Starred) {
			struct value *all = visit(walk, child(node, Starred_value), 0);
			struct value *plain = value_plain(all);

			call->open_ended = true;
			if (plain->kind == VALUE_SEQUENCE && !(plain->flags & VALUE_SET)) {
				for (size_t k = 0; k < plain->count; k++) {
					if (call->count >= CALL_ARGUMENTS_MAX)
						break;
					call->nodes[call->count] = node;
					call->values[call->count++] = plain->items[k];
				}
			} else if (call->count < CALL_ARGUMENTS_MAX) {
				call->nodes[call->count] = node;
				call->values[call->count++] = plain->kind == VALUE_CONSTANT
								      ? &value_computed
								      : value_elements(walk, all);
			}
			continue;
		}
		if (call->count < CALL_ARGUMENTS_MAX) {
			call->nodes[call->count] = node;
			call->values[call->count] = visit(walk, node, flags);
			call->count++;
		} else {
			visit(walk, node, flags);
		}
	}
	for (size_t i = 0; i < keywords->count; i++) {
		struct node *keyword = keywords->items[i].node;
		PyObject *name = leaf(keyword, keyword_arg);
		struct node *node = child(keyword, keyword_value);
		struct value *value = visit(walk, node, flags), *plain;

		if (name) {
			if (call->named_count < CALL_ARGUMENTS_MAX) {
				call->names[call->named_count] = name;
				call->named_nodes[call->named_count] = node;
				call->named[call->named_count++] = value;
			}
			continue;
		}
		call->open_ended = true;
		plain = value_plain(value);
		if (plain->kind != VALUE_DICT)
			continue;
		for (size_t k = 0; k < plain->count && call->named_count < CALL_ARGUMENTS_MAX;
		     k += 2) {
			if (!plain->items[k] || !is_text(plain->items[k]))
				continue;
			call->names[call->named_count] = plain->items[k]->object;
			call->named_nodes[call->named_count] = node;
			call->named[call->named_count++] = plain->items[k + 1];
		}
	}
}

/* --- builtins that reach things ------------------------------------------- */

static bool name_is_risky(const struct value *base, const struct value *name)
{
	bool module = base->kind == VALUE_REFERENCE && !base->reference->call &&
		      !base->reference->root_unknown && base->reference->module;

	if (module)
		return true;
	if (name->flags & VALUE_PREFIX) {
		/* f"visit_{kind}" and f"_{kind}" are honest; what begins with "__", or
		 * with nothing known, may be anything. */
		struct span text;

		if (!value_text((struct value *)name, &text) || !text.length)
			return true;
		if (text.data[0] == '_')
			return name->flags & VALUE_COMPUTED ||
			       (text.length > 1 && text.data[1] == '_');
		return false;
	}
	return name->flags & VALUE_COMPUTED;
}

static struct value *call_getattr(struct walk *walk, const struct call *call, bool store)
{
	struct value *base, *names[ALTERNATIVES_MAX], *all = NULL;
	size_t count;

	if (call->count < 2)
		return &value_unknown;
	base = call->values[0];
	count = value_alternatives(call->values[1], names);
	for (size_t i = 0; i < count; i++) {
		if (is_whole_text(names[i])) {
			PyObject *key = names[i]->object;

			Py_INCREF(key);
			PyUnicode_InternInPlace(&key);
			if (PyList_Append(walk->keep, key) < 0)
				PyErr_Clear();
			Py_DECREF(key);
			all = value_either(walk, all,
					   attribute_of(walk, base, key, call->node,
							store ? 0 : VISIT_BASE | VISIT_CALLED));
			continue;
		}
		if (name_is_risky(value_plain(base), names[i]))
			report(walk, RULE_DYNAMIC_ATTRIBUTE, call->node,
			       store ? "setattr()" : "getattr()", NULL);
	}
	if (store) {
		struct value *plain = value_plain(base);

		if (plain->kind == VALUE_REFERENCE &&
		    strcmp(plain->reference->path, "builtins") == 0)
			report(walk, RULE_HOOKS, call->node, "changing builtins", NULL);
		if (call->count > 2 && is_whole_text(call->values[1]))
			attribute_remember(walk, call->values[1]->object, call->values[2]);
		return &value_unknown;
	}
	/* A default is what comes back when there is no such attribute. */
	if (call->count > 2)
		all = value_either(walk, all, call->values[2]);
	return all ? all : &value_unknown;
}

static struct value *namespace(struct walk *walk, struct value *of)
{
	struct value *value = value_new(walk, VALUE_NAMESPACE);

	value->self = of;
	return value;
}

/* The function whose code is made by type(f)(code, globals). */
static struct value *call_type(struct walk *walk, const struct call *call)
{
	struct value *value;

	if (call->count != 1)
		return &value_unknown;
	value = value_plain(call->values[0]);
	if (value->kind == VALUE_FUNCTION)
		return value_reference(walk, reference_path(walk, "types.FunctionType"));
	if (value->kind == VALUE_REFERENCE && strcmp(value->reference->path, "sys") == 0)
		return value_reference(walk, reference_path(walk, "types.ModuleType"));
	return &value_unknown;
}

static struct value *call_builtin(struct walk *walk, const char *name, struct call *call)
{
	if (strcmp(name, "getattr") == 0)
		return call_getattr(walk, call, false);
	if (strcmp(name, "hasattr") == 0)
		return &value_unknown;
	if (strcmp(name, "setattr") == 0 || strcmp(name, "delattr") == 0)
		return call_getattr(walk, call, true);
	if (strcmp(name, "globals") == 0 || strcmp(name, "locals") == 0)
		return namespace(walk, NULL);
	if (strcmp(name, "vars") == 0)
		return namespace(walk, call->count ? call->values[0] : NULL);
	if (strcmp(name, "type") == 0)
		return call_type(walk, call);
	if (strcmp(name, "super") == 0 || strcmp(name, "iter") == 0)
		return &value_unknown;
	return NULL;
}

/* --- methods of what is known --------------------------------------------- */

static struct value *call_container_method(struct walk *walk, struct value *self, PyObject *name,
					   struct call *call)
{
	const char *text = PyUnicode_AsUTF8(name);

	if (!text) {
		PyErr_Clear();
		return &value_unknown;
	}
	if (self->kind == VALUE_NAMESPACE) {
		bool reads = strcmp(text, "get") == 0 || strcmp(text, "pop") == 0 ||
			     strcmp(text, "__getitem__") == 0 || strcmp(text, "setdefault") == 0;

		if (reads && call->count)
			return element_of(walk, self, call->values[0], call->node);
		if ((strcmp(text, "values") == 0 || strcmp(text, "items") == 0) && self->self)
			use(walk, self->self, call->node, 0);
		if (strcmp(text, "update") == 0 && self->self)
			use(walk, self->self, call->node, 0);
		return &value_unknown;
	}
	if ((strcmp(text, "get") == 0 || strcmp(text, "pop") == 0 ||
	     strcmp(text, "__getitem__") == 0 || strcmp(text, "setdefault") == 0) &&
	    call->count) {
		struct value *value = element_of(walk, self, call->values[0], call->node);

		return call->count > 1 ? value_either(walk, value, call->values[1]) : value;
	}
	if (strcmp(text, "pop") == 0)
		return value_elements(walk, self);
	if (strcmp(text, "values") == 0 && self->kind == VALUE_DICT) {
		struct value *all = value_new(walk, VALUE_SEQUENCE);

		all->items = arena_take(&walk->arena, (self->count / 2 + 1) * sizeof all->items[0]);
		for (size_t i = 1; i < self->count; i += 2)
			all->items[all->count++] = self->items[i];
		return all;
	}
	if (strcmp(text, "items") == 0 && self->kind == VALUE_DICT) {
		struct value *all = value_new(walk, VALUE_SEQUENCE);

		all->items = arena_take(&walk->arena, (self->count / 2 + 1) * sizeof all->items[0]);
		for (size_t i = 0; i < self->count; i += 2) {
			struct value *pair = value_new(walk, VALUE_SEQUENCE);

			pair->items = arena_take(&walk->arena, 2 * sizeof pair->items[0]);
			pair->items[0] = self->items[i] ? self->items[i] : &value_unknown;
			pair->items[1] = self->items[i + 1];
			pair->count = 2;
			all->items[all->count++] = pair;
		}
		return all;
	}
	if (strcmp(text, "copy") == 0)
		return self;
	return &value_unknown;
}

static struct value *call_path_method(struct walk *walk, struct value *self, PyObject *name,
				      struct call *call)
{
	char path[128];
	const char *text = PyUnicode_AsUTF8(name);
	const struct name_info *info;
	struct value *value = &value_unknown;

	if (!text || strlen(text) > 60) {
		PyErr_Clear();
		return &value_unknown;
	}
	if (strcmp(text, "joinpath") == 0) {
		for (size_t i = 0; i < call->count; i++)
			self = path_join(walk, self, value_plain(call->values[i]), true);
		return self;
	}
	if (strcmp(text, "resolve") == 0 || strcmp(text, "absolute") == 0 ||
	    strcmp(text, "expanduser") == 0)
		return self;
	snprintf(path, sizeof path, "pathlib.Path().%s", text);
	info = name_find(path);
	if (info)
		check_call(walk, NULL, info, self, call, &value);
	else if (strcmp(text, "exists") == 0 || strcmp(text, "is_file") == 0)
		if (PySet_Add(walk->mentioned, self->object) < 0)
			PyErr_Clear();
	return value;
}

/* pathlib.Path.read_text(p): the method of a class, given the object. */
static struct value *call_unbound_path(struct walk *walk, const struct reference *reference,
				       const struct call *call)
{
	struct value *self = call->count ? value_plain(call->values[0]) : NULL;
	struct call rest;

	if (!self || !is_text(self) || !reference->name || !reference->parent ||
	    (strcmp(reference->parent->path, "pathlib.Path") != 0 &&
	     strcmp(reference->parent->path, "pathlib.PosixPath") != 0))
		return NULL;
	rest = *call;
	rest.count--;
	memmove(rest.values, rest.values + 1, rest.count * sizeof rest.values[0]);
	memmove(rest.nodes, rest.nodes + 1, rest.count * sizeof rest.nodes[0]);
	return call_path_method(walk, self, reference->name, &rest);
}

static struct value *call_method(struct walk *walk, struct value *method, struct call *call)
{
	struct value *self = method->self;

	if (self->kind == VALUE_CONSTANT) {
		if (self->flags & VALUE_PATH)
			return call_path_method(walk, self, method->object, call);
		return fold_method(walk, self, method->object, call);
	}
	return call_container_method(walk, self, method->object, call);
}

/* --- calls --------------------------------------------------------------- */

static struct value *call_reference(struct walk *walk, struct value *callee, struct call *call)
{
	struct reference *reference = callee->reference, *result;
	struct value *value = NULL;

	if (strncmp(reference->path, "builtins.", 9) == 0 && !strchr(reference->path + 9, '.'))
		value = call_builtin(walk, reference->path + 9, call);
	if (!value && !reference->root_unknown)
		value = call_unbound_path(walk, reference, call);
	manner_of(reference);
	if (!value && reference->folder)
		value = reference->folder->fold(walk, call, reference->folder);
	if (reference->judgement == JUDGED_CALL && reference->info)
		check_call(walk, reference, reference->info, NULL, call, &value);
	/* A method of an unknown thing is judged when it is called. */
	if (reference->judgement == JUDGED_BAD && reference->info &&
	    strncmp(reference->info->name, "?.", 2) == 0)
		use(walk, callee, call->node, VISIT_CALLED);
	if (strcmp(reference->path, "types.FunctionType") == 0 ||
	    strcmp(reference->path, "types.CodeType") == 0)
		report_reference(walk, reference, call->node);
	if (strcmp(reference->path, "builtins.object.__getattribute__") == 0 ||
	    strcmp(reference->path, "builtins.type.__getattribute__") == 0)
		value = call_getattr(walk, call, false);
	if (value)
		return value;
	result = reference_call(walk, reference);
	return value_reference(walk, result);
}

struct value *call_value(struct walk *walk, struct value *callee, struct call *call)
{
	struct value *alternatives[ALTERNATIVES_MAX], *all = NULL;
	size_t count = value_alternatives(callee, alternatives);

	for (size_t i = 0; i < count; i++) {
		struct value *one = alternatives[i], *value = &value_unknown;
		struct binding *method;

		switch (one->kind) {
		case VALUE_REFERENCE:
			value = call_reference(walk, one, call);
			break;
		case VALUE_METHOD:
			value = call_method(walk, one, call);
			break;
		case VALUE_FUNCTION:
			bind_arguments(walk, one->scope, call->values, call->count, call->names,
				       call->named, call->named_count);
			value = &value_computed;
			break;
		case VALUE_CLASS: {
			PyObject *name = PyUnicode_InternFromString("__init__");

			method = name ? scope_own(one->scope, name) : NULL;
			Py_XDECREF(name);
			if (method && method->all && method->all->kind == VALUE_FUNCTION)
				bind_arguments(walk, method->all->scope, call->values, call->count,
					       call->names, call->named, call->named_count);
			break;
		}
		default:
			break;
		}
		all = value_either(walk, all, value);
	}
	return all;
}

/* A system path given to a library's function that has no entry of its own; a
 * path outside given to one that is named after saving. */
static void look_at_path(struct walk *walk, const struct reference *callee, struct value *value,
			 const struct node *node)
{
	static const char *const savers[] = {"save", "export", "write_", "dump"};
	enum rule rule = RULE_COUNT;
	struct span text;
	bool write = false;
	char shown[200];
	const char *last;

	if (callee->root_unknown || callee->judgement != JUDGED_NOTHING ||
	    strncmp(callee->path, "builtins.", 9) == 0 ||
	    strncmp(callee->path, "pathlib.", 8) == 0 || !value_text(value, &text) ||
	    text.length < 5 || text.data[0] != '/' || memchr(text.data, '\n', text.length) ||
	    value->flags & VALUE_DEFAULT)
		return;
	last = strrchr(callee->path, '.');
	for (size_t i = 0; last && i < ARRAY_LENGTH(savers); i++)
		write |= strncmp(last + 1, savers[i], strlen(savers[i])) == 0;
	if (policy_path_severity(walk->policy, text, value->flags & VALUE_PREFIX, write, &rule) ==
	    SEVERITY_OFF)
		return;
	snprintf(shown, sizeof shown, "'%.*s'", (int)(text.length < 150 ? text.length : 150),
		 (const char *)text.data);
	report(walk, rule, node, shown, NULL);
}

/* Strings given to a call may be code to it, unless it is known what it does. */
static void look_at_strings(struct walk *walk, const struct reference *callee, struct call *call)
{
	/* Making a path of a name says nothing of a file of that name. */
	bool is_path = callee && (strncmp(callee->path, "pathlib.", 8) == 0 ||
				  strcmp(callee->path, "os.path.join") == 0 ||
				  strcmp(callee->path, "os.path.abspath") == 0);

	for (size_t i = 0; i < call->count; i++) {
		struct value *value = value_plain(call->values[i]);

		if (callee)
			look_at_path(walk, callee, value, call->nodes[i]);
		check_string_argument(walk, value, call->nodes[i]);
		if (is_whole_text(value) && !is_path &&
		    PySet_Add(walk->mentioned, value->object) < 0)
			PyErr_Clear();
		for (size_t k = 0; value->kind == VALUE_SEQUENCE && k < value->count && k < 32;
		     k++) {
			check_string_argument(walk, value_plain(value->items[k]), call->nodes[i]);
			if (callee)
				look_at_path(walk, callee, value_plain(value->items[k]),
					     call->nodes[i]);
		}
	}
	for (size_t i = 0; i < call->named_count; i++) {
		struct value *value = value_plain(call->named[i]);

		if (callee)
			look_at_path(walk, callee, value, call->named_nodes[i]);
		check_string_argument(walk, value, call->named_nodes[i]);
		if (is_whole_text(value) && PySet_Add(walk->mentioned, value->object) < 0)
			PyErr_Clear();
	}
}

struct value *visit_call(struct walk *walk, struct node *node)
{
	struct value *callee = visit(walk, child(node, Call_func), VISIT_CALLED);
	struct value *plain = value_plain(callee), *value;
	struct reference *reference = plain->kind == VALUE_REFERENCE ? plain->reference : NULL;
	enum manner manner = reference ? manner_of(reference) : MANNER_KNOWN;
	bool judged = reference && reference->judgement == JUDGED_CALL;
	bool people = manner & MANNER_PEOPLE;
	struct call call;

	call.node = node; /* the arrays are large, and mostly not used */
	call.count = call.named_count = 0;
	call.open_ended = false;
	walk->quiet_text += people;
	gather(walk, &call, manner & (MANNER_ASKS | MANNER_CALLS) ? VISIT_BASE : 0);
	walk->quiet_text -= people;
	walk->dumps_pickles |= (manner & MANNER_DUMPS) != 0;
	walk->runs_doctests |= (manner & MANNER_TESTS) != 0;
	value = call_value(walk, callee, &call);
	if (!people && !judged && plain->kind != VALUE_FUNCTION &&
	    !(plain->kind == VALUE_METHOD && plain->self->kind == VALUE_CONSTANT))
		look_at_strings(walk, reference, &call);
	walk->creates_unknown |= (manner & MANNER_CREATES) != 0;
	return value;
}
