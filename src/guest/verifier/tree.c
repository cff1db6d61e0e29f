/* SPDX-License-Identifier: Apache-2.0 */
/* tree: copies CPython's AST objects into plain nodes, so that the walk pays
 * neither for attribute lookups nor for reference counts. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <string.h>

#define FIELDS_MAX 8

static struct {
	const char *name;
	size_t field_count;
	const char *fields[FIELDS_MAX];
	PyTypeObject *type;
	PyObject *field_names[FIELDS_MAX];
} shapes[NODE_KIND_COUNT] = {
	{.name = NULL},
#define NODE(node) \
	{          \
		.name = #node, .field_count = node##_FIELDS, .fields = {
#define FIELD(node, field) #field,
#define END(node) \
	}         \
	}         \
	,
#include "guest/verifier/ast.def"
};

/* From a type to its kind. */
#define TYPE_SLOTS 512u
static struct {
	PyTypeObject *type;
	enum node_kind kind;
} types[TYPE_SLOTS];

/* Operators and contexts carry nothing: one node serves for all. */
static struct node leaves[NODE_KIND_COUNT];
static PyObject *name_lineno, *name_col_offset, *name_end_lineno, *name_end_col_offset;

static size_t type_slot(const PyTypeObject *type)
{
	uintptr_t bits = (uintptr_t)type;

	return (size_t)((bits >> 4 ^ bits >> 13) % TYPE_SLOTS);
}

static int intern_shape(PyObject *module, size_t kind)
{
	PyObject *type = PyObject_GetAttrString(module, shapes[kind].name);
	size_t at;

	leaves[kind].kind = (enum node_kind)kind;
	if (!type) {
		PyErr_Clear(); /* this version has no such node */
		return 0;
	}
	shapes[kind].type = (PyTypeObject *)type;
	for (at = type_slot(shapes[kind].type); types[at % TYPE_SLOTS].type; at++)
		;
	types[at % TYPE_SLOTS].type = shapes[kind].type;
	types[at % TYPE_SLOTS].kind = (enum node_kind)kind;
	for (size_t i = 0; i < shapes[kind].field_count; i++) {
		shapes[kind].field_names[i] = PyUnicode_InternFromString(shapes[kind].fields[i]);
		if (!shapes[kind].field_names[i])
			return -ENOMEM;
	}
	return 0;
}

int tree_init(struct error *err)
{
	PyObject *module;

	if (name_lineno)
		return 0;
	module = PyImport_ImportModule("_ast");
	if (!module) {
		PyErr_Clear();
		return fail(err, EIO, "cannot import the module _ast");
	}
	for (size_t kind = 1; kind < NODE_KIND_COUNT; kind++) {
		if (intern_shape(module, kind) < 0) {
			Py_DECREF(module);
			return fail(err, ENOMEM, "cannot intern the names of the AST");
		}
	}
	Py_DECREF(module);
	name_col_offset = PyUnicode_InternFromString("col_offset");
	name_end_lineno = PyUnicode_InternFromString("end_lineno");
	name_end_col_offset = PyUnicode_InternFromString("end_col_offset");
	name_lineno = PyUnicode_InternFromString("lineno");
	return name_lineno ? 0 : fail(err, ENOMEM, "cannot intern the names of the AST");
}

static enum node_kind kind_of_object(PyObject *object)
{
	size_t at = type_slot(Py_TYPE(object));

	for (; types[at % TYPE_SLOTS].type; at++)
		if (types[at % TYPE_SLOTS].type == Py_TYPE(object))
			return types[at % TYPE_SLOTS].kind;
	return NODE_NONE;
}

static bool fill_slot(struct arena *arena, struct slot *slot, PyObject *object, unsigned depth);

/* The next field of a node. CPython sets the fields in their order, so that they
 * come from the dict one after another; what does not is looked up. */
static PyObject *next_field(PyObject *fields, Py_ssize_t *at, PyObject *name)
{
	PyObject *key, *value;

	if (PyDict_Next(fields, at, &key, &value) && key == name)
		return value;
	return PyDict_GetItemWithError(fields, name);
}

static struct node *node_of(struct arena *arena, PyObject *object, enum node_kind kind,
			    unsigned depth)
{
	size_t count = shapes[kind].field_count;
	Py_ssize_t at = 0;
	struct node *node;
	PyObject *fields;

	if (!count && kind >= NODE_Load)
		return &leaves[kind];
	if (depth > DEPTH_MAX)
		return NULL;
	node = arena_take(arena, sizeof *node + count * sizeof node->slots[0]);
	node->kind = kind;
	node->slot_count = (uint32_t)count;
	node->origin = object;
	fields = PyObject_GenericGetDict(object, NULL);
	if (!fields) {
		PyErr_Clear();
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		PyObject *field = next_field(fields, &at, shapes[kind].field_names[i]);

		if (field && !fill_slot(arena, &node->slots[i], field, depth + 1)) {
			Py_DECREF(fields);
			return NULL;
		}
	}
	Py_DECREF(fields);
	return node;
}

static bool fill_slot(struct arena *arena, struct slot *slot, PyObject *object, unsigned depth)
{
	enum node_kind kind;

	if (object == Py_None)
		return true;
	if (PyList_CheckExact(object)) {
		size_t count = (size_t)PyList_GET_SIZE(object);
		struct list *list = arena_take(arena, sizeof *list + count * sizeof list->items[0]);

		list->count = count;
		slot->kind = SLOT_LIST;
		slot->list = list;
		for (size_t i = 0; i < count; i++)
			if (!fill_slot(arena, &list->items[i],
				       PyList_GET_ITEM(object, (Py_ssize_t)i), depth))
				return false;
		return true;
	}
	kind = kind_of_object(object);
	if (kind == NODE_NONE) {
		slot->kind = SLOT_OBJECT;
		slot->object = object;
		return true;
	}
	slot->kind = SLOT_NODE;
	slot->node = node_of(arena, object, kind, depth);
	if (kind == NODE_Constant && slot->node && slot->node->slots[0].kind == SLOT_EMPTY) {
		slot->node->slots[0].kind = SLOT_OBJECT; /* the constant None */
		slot->node->slots[0].object = Py_None;
	}
	return slot->node != NULL;
}

struct node *tree_of(struct arena *arena, PyObject *ast)
{
	enum node_kind kind = kind_of_object(ast);

	return kind == NODE_NONE ? NULL : node_of(arena, ast, kind, 0);
}

static bool position_part(PyObject *object, PyObject *name, long *ret_number)
{
	PyObject *value = PyObject_GetAttr(object, name);

	*ret_number = value && PyLong_Check(value) ? PyLong_AsLong(value) : -1;
	Py_XDECREF(value);
	PyErr_Clear();
	return *ret_number >= 0;
}

bool node_position(const struct node *node, long ret_position[4])
{
	return node->origin && position_part(node->origin, name_lineno, &ret_position[0]) &&
	       position_part(node->origin, name_col_offset, &ret_position[1]) &&
	       position_part(node->origin, name_end_lineno, &ret_position[2]) &&
	       position_part(node->origin, name_end_col_offset, &ret_position[3]);
}
