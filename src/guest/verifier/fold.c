/* SPDX-License-Identifier: Apache-2.0 */
/* fold: puts constants together, as the code would.
 *
 * Only exact built-in types take part, so no code of anybody runs; results are
 * bounded before they are made (fold_afford() and the checks beside each
 * operation), and all results together have a budget. A string whose end is
 * not known keeps its beginning: that decides where a path lies. */
#include "guest/verifier/fold.h"

#include "base/cleanup.h"

#include <string.h>

bool fold_afford(struct walk *walk, Py_ssize_t length)
{
	if (length < 0 || length > CONSTANT_BYTES_MAX ||
	    walk->fold_bytes + (size_t)length + 64 > FOLD_BYTES_BUDGET)
		return false;
	walk->fold_bytes += (size_t)length + 64;
	return true;
}

bool is_bytes(const struct value *value)
{
	return value->kind == VALUE_CONSTANT && PyBytes_CheckExact(value->object);
}

bool is_number(const struct value *value)
{
	return value->kind == VALUE_CONSTANT &&
	       (PyLong_CheckExact(value->object) || PyBool_Check(value->object));
}

Py_ssize_t length_of(const struct value *value)
{
	if (is_text(value))
		return PyUnicode_GET_LENGTH(value->object);
	if (is_bytes(value))
		return PyBytes_GET_SIZE(value->object);
	return -1;
}

/* A number that is small enough to be computed with; false when it is not. */
bool small_number(const struct value *value, long *ret_number)
{
	int overflow;

	if (!is_number(value))
		return false;
	*ret_number = PyLong_AsLongAndOverflow(value->object, &overflow);
	return !overflow && *ret_number > -(1L << 40) && *ret_number < 1L << 40;
}

/* What has just been put together may say more than its parts. */
struct value *looked_at(struct walk *walk, struct value *value, struct node *node)
{
	if (is_text(value) && node && !walk->quiet_text)
		check_text(walk, value->object, node);
	else if (is_bytes(value) && node)
		check_bytes(walk, value->object, node);
	return value;
}

/* --- operators ----------------------------------------------------------- */

static struct value *fold_format(struct walk *walk, struct value *left, struct value *right);

/* The names that are refused as attributes end in "_", or in these words. */
static bool ends_plainly(PyObject *text)
{
	static const char *const ends[] = {"globals",  "locals", "builtins", "frame", "code",
					   "contents", "system", "popen",    "back",  "consts"};
	Py_ssize_t length;
	const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);

	if (!bytes) {
		PyErr_Clear();
		return false;
	}
	if (length < 2 || bytes[length - 1] == '_')
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
		size_t size = strlen(ends[i]);

		if ((size_t)length <= size ? strcmp(ends[i] + size - length, bytes) == 0
					   : strcmp(bytes + length - size, ends[i]) == 0)
			return false;
	}
	return true;
}

static struct value *add(struct walk *walk, struct value *left, struct value *right)
{
	uint32_t flags;

	if (left->kind == VALUE_SEQUENCE && right->kind == VALUE_SEQUENCE) {
		size_t count = (size_t)left->count + right->count;
		struct value *value;

		if (count > ELEMENTS_MAX || !fold_afford(walk, (Py_ssize_t)(count * 8)))
			return left;
		value = value_new(walk, VALUE_SEQUENCE);
		value->flags = left->flags | right->flags;
		value->items = arena_take(&walk->arena, (count + 1) * sizeof value->items[0]);
		if (left->count)
			memcpy(value->items, left->items, left->count * sizeof value->items[0]);
		if (right->count)
			memcpy(value->items + left->count, right->items,
			       right->count * sizeof value->items[0]);
		value->count = (uint32_t)count;
		return value;
	}
	if (is_text(left) && left->flags & VALUE_PREFIX)
		return left;
	if (is_text(left) && right->kind != VALUE_CONSTANT) {
		return value_borrowed(walk, left->object,
				      left->flags | VALUE_PREFIX | (right->flags & VALUE_COMPUTED));
	}
	/* `kind + "_handler"` is no name of an internal, whatever kind is. */
	if (left->kind == VALUE_UNKNOWN && !(left->flags & VALUE_COMPUTED) && is_text(right) &&
	    ends_plainly(right->object))
		return &value_unknown;
	if (length_of(left) < 0 || length_of(right) < 0 ||
	    Py_TYPE(left->object) != Py_TYPE(right->object))
		return &value_computed;
	if (!fold_afford(walk, length_of(left) + length_of(right)))
		return &value_computed;
	flags = right->flags & VALUE_PREFIX;
	return value_constant(walk, PySequence_Concat(left->object, right->object), flags);
}

static struct value *multiply(struct walk *walk, struct value *left, struct value *right)
{
	long times;

	if (length_of(left) < 0) {
		struct value *swap = left;

		left = right;
		right = swap;
	}
	if (length_of(left) < 0 || !small_number(right, &times) || left->flags & VALUE_PREFIX)
		return &value_computed;
	if (times < 0)
		times = 0;
	if (times > CONSTANT_BYTES_MAX || !fold_afford(walk, length_of(left) * (Py_ssize_t)times))
		return &value_computed;
	return value_constant(walk, PySequence_Repeat(left->object, (Py_ssize_t)times), 0);
}

static struct value *arithmetic(struct walk *walk, enum node_kind operation, long a, long b)
{
	long other;

	switch (operation) {
	case NODE_Add:
		return value_constant(walk, PyLong_FromLong(a + b), 0);
	case NODE_Sub:
		return value_constant(walk, PyLong_FromLong(a - b), 0);
	case NODE_Mult:
		if (a > 1L << 20 || a < -(1L << 20) || b > 1L << 20 || b < -(1L << 20))
			return &value_computed;
		return value_constant(walk, PyLong_FromLong(a * b), 0);
	case NODE_BitXor:
		return value_constant(walk, PyLong_FromLong(a ^ b), 0);
	case NODE_BitAnd:
		return value_constant(walk, PyLong_FromLong(a & b), 0);
	case NODE_BitOr:
		return value_constant(walk, PyLong_FromLong(a | b), 0);
	case NODE_LShift:
		if (a < 0 || a > 1L << 20 || b < 0 || b > 20)
			return &value_computed;
		return value_constant(walk, PyLong_FromLong(a << b), 0);
	case NODE_RShift:
		if (b < 0 || b > 40)
			return &value_computed;
		return value_constant(walk, PyLong_FromLong(a >> b), 0);
	case NODE_FloorDiv:
		if (a < 0 || b <= 0)
			return &value_computed;
		return value_constant(walk, PyLong_FromLong(a / b), 0);
	case NODE_Pow:
		if (a < 0 || b < 0 || b > 40)
			return &value_computed;
		for (other = 1; b > 0; b--) {
			if (a && other > (1L << 40) / a)
				return &value_computed;
			other *= a;
		}
		return value_constant(walk, PyLong_FromLong(other), 0);
	case NODE_Mod:
		if (b <= 0)
			return &value_computed;
		return value_constant(walk, PyLong_FromLong((a % b + b) % b), 0);
	default:
		return &value_computed;
	}
}

static struct value *fold_binary_one(struct walk *walk, enum node_kind operation,
				     struct value *left, struct value *right)
{
	long a, b;

	if (operation == NODE_Div && (left->flags & VALUE_PATH || right->flags & VALUE_PATH))
		return path_join(walk, left, right, true);
	if (is_number(left) && is_number(right)) {
		if (!small_number(left, &a) || !small_number(right, &b))
			return &value_computed;
		return arithmetic(walk, operation, a, b);
	}
	if (operation == NODE_Add)
		return add(walk, left, right);
	if (operation == NODE_Mod && is_text(left))
		return fold_format(walk, left, right);
	if (operation == NODE_Mult && (length_of(left) >= 0 || length_of(right) >= 0))
		return multiply(walk, left, right);
	/* A number computed from what is not known is no name. */
	if (operation != NODE_Mod && operation != NODE_Add)
		return &value_unknown;
	return left->kind == VALUE_UNKNOWN && right->kind == VALUE_UNKNOWN &&
			       !((left->flags | right->flags) & VALUE_COMPUTED)
		       ? &value_unknown
		       : &value_computed;
}

struct value *fold_binary(struct walk *walk, enum node_kind operation, struct value *left,
			  struct value *right)
{
	struct value *lefts[ALTERNATIVES_MAX], *rights[ALTERNATIVES_MAX], *all = NULL;
	size_t left_count = value_alternatives(left, lefts);
	size_t right_count = value_alternatives(right, rights);

	for (size_t i = 0; i < left_count; i++)
		for (size_t k = 0; k < right_count && i * right_count + k < 16; k++)
			all = value_either(walk, all,
					   fold_binary_one(walk, operation, lefts[i], rights[k]));
	return all;
}

struct value *fold_unary(struct walk *walk, enum node_kind operation, struct value *operand)
{
	long number;

	operand = value_plain(operand);
	if (!small_number(operand, &number))
		return &value_unknown;
	if (operation == NODE_USub)
		return value_constant(walk, PyLong_FromLong(-number), 0);
	if (operation == NODE_Invert)
		return value_constant(walk, PyLong_FromLong(~number), 0);
	return operation == NODE_UAdd ? operand : &value_unknown;
}

/* --- strings put together from parts -------------------------------------- */

/* The text of a value as str() and format() give it; NULL when unknown. */
PyObject *text_of(struct value *value)
{
	value = value_plain(value);
	if (value->kind != VALUE_CONSTANT || value->flags & VALUE_PREFIX)
		return NULL;
	if (PyUnicode_CheckExact(value->object)) {
		Py_INCREF(value->object);
		return value->object;
	}
	if (is_number(value)) {
		long number;

		return small_number(value, &number) ? PyObject_Str(value->object) : NULL;
	}
	return NULL;
}

void builder_add(struct walk *walk, struct builder *builder, PyObject *more)
{
	if (builder->partial)
		return;
	if (!more) {
		PyErr_Clear();
		builder->partial = true;
		return;
	}
	if (!builder->text) {
		Py_INCREF(more);
		builder->text = more;
		return;
	}
	if (!fold_afford(walk, PyUnicode_GET_LENGTH(builder->text) + PyUnicode_GET_LENGTH(more))) {
		builder->partial = true;
		return;
	}
	PyUnicode_Append(&builder->text, more);
	if (!builder->text) {
		PyErr_Clear();
		builder->partial = true;
	}
}

struct value *builder_value(struct walk *walk, struct builder *builder)
{
	if (!builder->text) {
		if (builder->partial)
			return value_constant(walk, PyUnicode_FromString(""), VALUE_PREFIX);
		return value_constant(walk, PyUnicode_FromString(""), 0);
	}
	return value_constant(walk, builder->text, builder->partial ? VALUE_PREFIX : 0);
}

struct value *fold_joined(struct walk *walk, struct node *node)
{
	const struct list *parts = children(node, JoinedStr_values);
	struct builder builder = {0};
	PyObject *last = NULL;
	struct value *joined;
	bool computed = false;

	for (size_t i = 0; i < parts->count; i++) {
		struct node *part = parts->items[i].node;
		struct value *value;
		PyObject *text;

		last = NULL;

		if (kind_of(part) == NODE_Constant) {
			text = leaf(part, Constant_value);
			builder_add(walk, &builder, PyUnicode_CheckExact(text) ? text : NULL);
			last = PyUnicode_CheckExact(text) ? text : NULL;
			continue;
		}
		value = visit(walk, child(part, FormattedValue_value), VISIT_BASE);
		computed |= (value->flags & VALUE_COMPUTED) != 0;
		if (child(part, FormattedValue_format_spec)) {
			visit(walk, child(part, FormattedValue_format_spec), 0);
			text = NULL;
			/* {x:c} of a number, {x:} of a string */
			if (is_number(value_plain(value))) {
				struct value *spec =
					fold_joined(walk, child(part, FormattedValue_format_spec));

				if (is_whole_text(spec) && name_is(spec->object, "c"))
					text = PyObject_Format(value_plain(value)->object,
							       spec->object);
			}
		} else {
			PyObject *conversion = leaf(part, FormattedValue_conversion);
			long how = conversion ? PyLong_AsLong(conversion) : -1;

			text = how == 'r' || how == 'a' ? NULL : text_of(value);
			/* A known beginning is worth keeping. */
			if (!text && value_plain(value)->flags & VALUE_PREFIX &&
			    is_text(value_plain(value))) {
				builder_add(walk, &builder, value_plain(value)->object);
				builder.partial = true;
			}
		}
		builder_add(walk, &builder, text);
		Py_XDECREF(text);
	}
	if (builder.partial && !builder.text && !computed && last && ends_plainly(last))
		return &value_unknown;
	joined = builder_value(walk, &builder);
	if (computed && builder.partial)
		joined->flags |= VALUE_COMPUTED;
	return looked_at(walk, joined, node);
}

/* "%s/%s" % (a, b): only %s, %d, %c and %%, the others end what is known. */
static struct value *fold_format(struct walk *walk, struct value *left, struct value *right)
{
	struct builder builder = {0};
	struct value **arguments = &right;
	size_t count = 1, next = 0;
	Py_ssize_t length, start = 0;

	if (right->kind == VALUE_SEQUENCE) {
		arguments = right->items;
		count = right->count;
	}
	length = PyUnicode_GET_LENGTH(left->object);
	for (Py_ssize_t i = 0; i < length && !builder.partial; i++) {
		Py_UCS4 letter;
		PyObject *text;
		long number;

		if (PyUnicode_READ_CHAR(left->object, i) != '%')
			continue;
		text = PyUnicode_Substring(left->object, start, i);
		builder_add(walk, &builder, text);
		Py_XDECREF(text);
		letter = i + 1 < length ? PyUnicode_READ_CHAR(left->object, i + 1) : 0;
		start = ++i + 1;
		if (letter == '%') {
			text = PyUnicode_FromString("%");
		} else if (next >= count) {
			text = NULL;
		} else if (letter == 's' || letter == 'd') {
			text = text_of(arguments[next++]);
		} else if (letter == 'c') {
			struct value *value = value_plain(arguments[next++]);

			if (small_number(value, &number) && number >= 0 && number < 0x110000)
				text = PyUnicode_FromOrdinal((int)number);
			else
				text = text_of(value);
		} else {
			text = NULL;
		}
		builder_add(walk, &builder, text);
		Py_XDECREF(text);
	}
	if (!builder.partial) {
		PyObject *text = PyUnicode_Substring(left->object, start, length);

		builder_add(walk, &builder, text);
		Py_XDECREF(text);
		builder.partial = left->flags & VALUE_PREFIX;
	}
	return builder_value(walk, &builder);
}

/* str.format with {}, {0}, {name}; anything else ends what is known. */
struct value *fold_format_method(struct walk *walk, struct value *self, const struct call *call)
{
	struct builder builder = {0};
	Py_ssize_t length = PyUnicode_GET_LENGTH(self->object), start = 0;
	size_t next = 0;

	for (Py_ssize_t i = 0; i < length && !builder.partial; i++) {
		Py_UCS4 letter = PyUnicode_READ_CHAR(self->object, i);
		struct value *value = NULL;
		PyObject *text;
		Py_ssize_t end;

		if (letter != '{' && letter != '}')
			continue;
		text = PyUnicode_Substring(self->object, start, i);
		builder_add(walk, &builder, text);
		Py_XDECREF(text);
		if (i + 1 < length && PyUnicode_READ_CHAR(self->object, i + 1) == letter) {
			text = PyUnicode_FromOrdinal((int)letter);
			builder_add(walk, &builder, text);
			Py_XDECREF(text);
			start = ++i + 1;
			continue;
		}
		end = PyUnicode_FindChar(self->object, '}', i, length, 1);
		if (letter == '}' || end < 0 || end - i > 40) {
			builder.partial = true;
			break;
		}
		text = PyUnicode_Substring(self->object, i + 1, end);
		if (text) {
			const char *name = PyUnicode_AsUTF8(text);

			if (name && !*name)
				value = call_argument(call, next++, NULL, NULL);
			else if (name && *name >= '0' && *name <= '9' && !name[1])
				value = call_argument(call, (size_t)(*name - '0'), NULL, NULL);
			else if (name)
				value = call_argument(call, CALL_ARGUMENTS_MAX, name, NULL);
			Py_DECREF(text);
		}
		PyErr_Clear();
		text = value ? text_of(value) : NULL;
		builder_add(walk, &builder, text);
		Py_XDECREF(text);
		start = end + 1;
		i = end;
	}
	if (!builder.partial) {
		PyObject *text = PyUnicode_Substring(self->object, start, length);

		builder_add(walk, &builder, text);
		Py_XDECREF(text);
	}
	return builder_value(walk, &builder);
}

/* --- sequences of constants ----------------------------------------------- */

/* The items of a known sequence as a new Python list, or NULL. */
PyObject *list_of(struct walk *walk, struct value *value)
{
	PyObject *list;

	value = value_plain(value);
	if (value->kind == VALUE_CONSTANT && !(value->flags & VALUE_PREFIX) &&
	    length_of(value) >= 0 && length_of(value) <= CONSTANT_BYTES_MAX)
		return PySequence_List(value->object);
	if (value->kind != VALUE_SEQUENCE || value->flags & VALUE_SET)
		return NULL;
	list = PyList_New((Py_ssize_t)value->count);
	if (!list)
		return NULL;
	for (size_t i = 0; i < value->count; i++) {
		struct value *item = value_plain(value->items[i]);

		if (item->kind != VALUE_CONSTANT || item->flags & VALUE_PREFIX) {
			Py_DECREF(list);
			return NULL;
		}
		Py_INCREF(item->object);
		PyList_SET_ITEM(list, (Py_ssize_t)i, item->object);
	}
	return list;
}

/* Takes the list. */
struct value *sequence_of(struct walk *walk, PyObject *list)
{
	struct value *value;
	Py_ssize_t count;

	if (!list || !PyList_CheckExact(list)) {
		Py_XDECREF(list);
		PyErr_Clear();
		return &value_computed;
	}
	count = PyList_GET_SIZE(list);
	if (count > ELEMENTS_MAX || !fold_afford(walk, count * 16)) {
		Py_DECREF(list);
		return &value_computed;
	}
	value = value_new(walk, VALUE_SEQUENCE);
	value->items = arena_take(&walk->arena, ((size_t)count + 1) * sizeof value->items[0]);
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *item = PyList_GET_ITEM(list, i);

		Py_INCREF(item);
		value->items[value->count++] = value_constant(walk, item, 0);
	}
	Py_DECREF(list);
	return value;
}

struct value *fold_index(struct walk *walk, struct value *base, struct value *key)
{
	long number;

	if (length_of(base) < 0)
		return &value_unknown;
	if (base->flags & VALUE_PREFIX || !small_number(value_plain(key), &number))
		return &value_computed;
	if (number < 0)
		number += length_of(base);
	return value_constant(walk, PySequence_GetItem(base->object, number), 0);
}

/* A bound that is not there is NULL. */
struct value *fold_slice(struct walk *walk, struct value *base, struct value *const bounds[3])
{
	PyObject *parts[3] = {NULL, NULL, NULL}, *slice, *result;

	if (length_of(base) < 0 || base->flags & VALUE_PREFIX)
		return base->kind == VALUE_CONSTANT ? &value_computed : &value_unknown;
	for (int i = 0; i < 3; i++) {
		if (!bounds[i])
			continue;
		if (!is_number(value_plain(bounds[i])))
			return &value_computed;
		parts[i] = value_plain(bounds[i])->object;
	}
	if (!fold_afford(walk, length_of(base)))
		return &value_computed;
	slice = PySlice_New(parts[0], parts[1], parts[2]);
	if (!slice)
		return value_constant(walk, NULL, 0);
	result = PyObject_GetItem(base->object, slice);
	Py_DECREF(slice);
	return value_constant(walk, result, 0);
}

struct value *fold_join(struct walk *walk, struct value *self, struct value *items)
{
	PyObject *list = list_of(walk, items);
	Py_ssize_t total = 0, gap = length_of(self);
	PyObject *result;

	if (!list) {
		PyErr_Clear();
		return &value_computed;
	}
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
		PyObject *item = PyList_GET_ITEM(list, i);

		if (Py_TYPE(item) != Py_TYPE(self->object)) {
			Py_DECREF(list);
			return &value_computed;
		}
		total += gap + PyObject_Length(item);
	}
	if (!fold_afford(walk, total)) {
		Py_DECREF(list);
		return &value_computed;
	}
	result = PyUnicode_CheckExact(self->object)
			 ? PyUnicode_Join(self->object, list)
			 : PyObject_CallMethod(self->object, "join", "O", list);
	Py_DECREF(list);
	return value_constant(walk, result, 0);
}
