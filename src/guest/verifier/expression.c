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
		    name_is(leaf(target, Attribute_attr), "__code__")) {
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
