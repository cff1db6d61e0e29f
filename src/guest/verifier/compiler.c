/* SPDX-License-Identifier: Apache-2.0 */
/* compiler: could the compiler refuse what the parser took?
 *
 * CPython raises some SyntaxErrors only when it makes the symbol table or the
 * byte code: `return` outside a function, a parameter that stands there twice.
 * To learn its very words the code must be compiled, which costs as much as all
 * the rest, and all of these errors need constructs that few scripts have. So
 * the tree is looked through for them; anything in doubt is compiled. Where await may
 * stand at top level fewer are refused, and none more. The fuzz target holds this
 * against the compiler itself. */
#include "guest/verifier/walk.h"

#include <string.h>

#define NESTED_BLOCKS_SURE 8   /* CPython's limit is 20, and some count twice */
#define DEPTH_SURE         150 /* far from any recursion limit */
#define NAMES_SURE         64  /* of a call or a parameter list */

struct place {
	bool function, async_function, loop, comprehension;
	unsigned blocks, depth;
};

static bool doubtful(const struct node *node, struct place place, enum node_kind parent);

static bool list_doubtful(const struct list *list, struct place place, enum node_kind parent)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == SLOT_NODE &&
		    doubtful(list->items[i].node, place, parent))
			return true;
	return false;
}

static bool children_doubtful(const struct node *node, struct place place)
{
	for (size_t i = 0; i < node->slot_count; i++) {
		if (node->slots[i].kind == SLOT_NODE &&
		    doubtful(node->slots[i].node, place, node->kind))
			return true;
		if (node->slots[i].kind == SLOT_LIST &&
		    list_doubtful(node->slots[i].list, place, node->kind))
			return true;
	}
	return false;
}

/* Adds the names of a list's nodes; true when one is there twice, or too many. */
static bool name_repeats(const struct list *list, int field, PyObject **names, size_t *count)
{
	for (size_t i = 0; i < list->count; i++) {
		PyObject *name = leaf(list->items[i].node, field);

		if (!name)
			continue;
		if (*count == NAMES_SURE)
			return true;
		for (size_t k = 0; k < *count; k++)
			if (names[k] == name)
				return true;
		names[(*count)++] = name;
	}
	return false;
}

static bool parameters_repeat(const struct node *arguments)
{
	PyObject *names[NAMES_SURE];
	size_t count = 0;
	static const int singles[] = {arguments_vararg, arguments_kwarg};

	if (!arguments)
		return false;
	if (name_repeats(children(arguments, arguments_posonlyargs), arg_arg, names, &count) ||
	    name_repeats(children(arguments, arguments_args), arg_arg, names, &count) ||
	    name_repeats(children(arguments, arguments_kwonlyargs), arg_arg, names, &count))
		return true;
	for (size_t i = 0; i < 2; i++) {
		const struct node *single = child(arguments, singles[i]);

		for (size_t k = 0; single && k < count; k++)
			if (names[k] == leaf(single, arg_arg))
				return true;
		if (single && count < NAMES_SURE)
			names[count++] = leaf(single, arg_arg);
	}
	return false;
}

static bool keywords_repeat(const struct list *keywords)
{
	PyObject *names[NAMES_SURE];
	size_t count = 0;

	return name_repeats(keywords, keyword_arg, names, &count);
}

static bool star_is_sure(enum node_kind parent)
{
	return parent == NODE_Call || parent == NODE_List || parent == NODE_Tuple ||
	       parent == NODE_Set;
}

static bool function_doubtful(const struct node *node, struct place place)
{
	struct place body = {.function = true,
			     .async_function = node->kind == NODE_AsyncFunctionDef,
			     .depth = place.depth};

	/* FunctionDef and AsyncFunctionDef have the same fields. */
	if (children(node, FunctionDef_type_params)->count ||
	    parameters_repeat(child(node, FunctionDef_args)))
		return true;
	return list_doubtful(children(node, FunctionDef_decorator_list), place, node->kind) ||
	       doubtful(child(node, FunctionDef_args), place, node->kind) ||
	       doubtful(child(node, FunctionDef_returns), place, node->kind) ||
	       list_doubtful(children(node, FunctionDef_body), body, node->kind);
}

static bool class_doubtful(const struct node *node, struct place place)
{
	struct place body = {.depth = place.depth};

	if (children(node, ClassDef_type_params)->count ||
	    keywords_repeat(children(node, ClassDef_keywords)))
		return true;
	return list_doubtful(children(node, ClassDef_decorator_list), place, node->kind) ||
	       list_doubtful(children(node, ClassDef_bases), place, NODE_Call) ||
	       list_doubtful(children(node, ClassDef_keywords), place, node->kind) ||
	       list_doubtful(children(node, ClassDef_body), body, node->kind);
}

static bool loop_doubtful(const struct node *node, struct place place)
{
	struct place body = place;
	int body_field = node->kind == NODE_While ? While_body : For_body;
	int else_field = node->kind == NODE_While ? While_orelse : For_orelse;

	body.loop = true;
	body.blocks++;
	for (int i = 0; i < body_field; i++)
		if (doubtful(child(node, i), place, node->kind))
			return true;
	return list_doubtful(children(node, body_field), body, node->kind) ||
	       list_doubtful(children(node, else_field), place, node->kind);
}

static bool try_doubtful(const struct node *node, struct place place)
{
	const struct list *handlers = children(node, Try_handlers);

	for (size_t i = 0; i + 1 < handlers->count; i++)
		if (!child(handlers->items[i].node, ExceptHandler_type))
			return true; /* a bare except must be the last */
	place.blocks += 2;
	return children_doubtful(node, place);
}

static bool doubtful(const struct node *node, struct place place, enum node_kind parent)
{
	if (!node)
		return false;
	if (++place.depth > DEPTH_SURE || place.blocks > NESTED_BLOCKS_SURE)
		return true;
	switch (node->kind) {
	case NODE_Name:
	case NODE_Constant:
		return false;
	case NODE_FunctionDef:
	case NODE_AsyncFunctionDef:
		return function_doubtful(node, place);
	case NODE_ClassDef:
		return class_doubtful(node, place);
	case NODE_Lambda: {
		struct place body = {.function = true, .depth = place.depth};

		return parameters_repeat(child(node, Lambda_args)) ||
		       doubtful(child(node, Lambda_args), place, node->kind) ||
		       doubtful(child(node, Lambda_body), body, node->kind);
	}
	case NODE_Return:
		if (!place.function || place.async_function)
			return true;
		break;
	case NODE_Yield:
	case NODE_YieldFrom:
		if (!place.function || place.async_function || place.comprehension)
			return true;
		break;
	case NODE_Await:
	case NODE_AsyncWith:
		if (!place.async_function || place.comprehension)
			return true;
		break;
	case NODE_Break:
	case NODE_Continue:
		return !place.loop;
	case NODE_For:
	case NODE_While:
		return loop_doubtful(node, place);
	case NODE_With:
		place.blocks++;
		break;
	case NODE_Try:
		return try_doubtful(node, place);
	case NODE_ListComp:
	case NODE_SetComp:
	case NODE_DictComp:
	case NODE_GeneratorExp:
		if (place.async_function)
			return true;
		place.comprehension = true;
		break;
	case NODE_NamedExpr:
		if (place.comprehension)
			return true;
		break;
	case NODE_Starred:
		if (!star_is_sure(parent) || kind_of(child(node, Starred_ctx)) != NODE_Load)
			return true;
		break;
	case NODE_Call:
		if (keywords_repeat(children(node, Call_keywords)))
			return true;
		break;
	case NODE_ImportFrom: {
		const struct list *names = children(node, ImportFrom_names);
		PyObject *module = leaf(node, ImportFrom_module);

		if (module && name_is(module, "__future__"))
			return true;
		for (size_t i = 0; i < names->count; i++)
			if (name_is(leaf(names->items[i].node, alias_name), "*"))
				return parent != NODE_Module;
		return false;
	}
	case NODE_comprehension: {
		PyObject *async = leaf(node, comprehension_is_async);

		if (!async || !PyLong_Check(async) || PyLong_AsLong(async) != 0)
			return true;
		break;
	}
	case NODE_AsyncFor:
	case NODE_Global:
	case NODE_Nonlocal:
	case NODE_Match:
	case NODE_TryStar:
	case NODE_TypeAlias:
		return true;
	default:
		break;
	}
	return children_doubtful(node, place);
}

bool compiler_may_refuse(const struct node *root, struct span source)
{
	struct place place = {0};

	if (memmem(source.data, source.length, "__debug__", 9))
		return true;
	return children_doubtful(root, place);
}
