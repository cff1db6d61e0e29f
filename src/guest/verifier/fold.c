/* SPDX-License-Identifier: Apache-2.0 */
/* fold: puts constants together, as the code would.
 *
 * Only exact built-in types take part, so no code of anybody runs; results are
 * bounded before they are made (fold_afford() and the checks beside each
 * operation), and all results together have a budget. A string whose end is
 * not known keeps its beginning: that decides where a path lies. */
#include "guest/verifier/walk.h"

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

static bool is_bytes(const struct value *value)
{
	return value->kind == VALUE_CONSTANT && PyBytes_CheckExact(value->object);
}

static bool is_number(const struct value *value)
{
	return value->kind == VALUE_CONSTANT &&
	       (PyLong_CheckExact(value->object) || PyBool_Check(value->object));
}

static Py_ssize_t length_of(const struct value *value)
{
	if (is_text(value))
		return PyUnicode_GET_LENGTH(value->object);
	if (is_bytes(value))
		return PyBytes_GET_SIZE(value->object);
	return -1;
}

/* A number that is small enough to be computed with; false when it is not. */
static bool small_number(const struct value *value, long *ret_number)
{
	int overflow;

	if (!is_number(value))
		return false;
	*ret_number = PyLong_AsLongAndOverflow(value->object, &overflow);
	return !overflow && *ret_number > -(1L << 40) && *ret_number < 1L << 40;
}

/* What has just been put together may say more than its parts. */
static struct value *looked_at(struct walk *walk, struct value *value, struct node *node)
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

static struct value *arithmetic(struct walk *walk, enum node_kind operator, long a, long b)
{
	long other;

	switch (operator) {
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

static struct value *fold_binary_one(struct walk *walk, enum node_kind operator,
				     struct value * left, struct value *right)
{
	long a, b;

	if (operator== NODE_Div &&(left->flags &VALUE_PATH || right->flags & VALUE_PATH))
		return path_join(walk, left, right, true);
	if (is_number(left) && is_number(right)) {
		if (!small_number(left, &a) || !small_number(right, &b))
			return &value_computed;
		return arithmetic(walk, operator, a, b);
	}
	if (operator== NODE_Add)
		return add(walk, left, right);
	if (operator== NODE_Mod && is_text(left))
		return fold_format(walk, left, right);
	if (operator== NODE_Mult &&(length_of(left) >= 0 || length_of(right) >= 0))
		return multiply(walk, left, right);
	/* A number computed from what is not known is no name. */
	if (operator!= NODE_Mod && operator!= NODE_Add)
		return &value_unknown;
	return left->kind == VALUE_UNKNOWN && right->kind == VALUE_UNKNOWN &&
			       !((left->flags | right->flags) & VALUE_COMPUTED)
		       ? &value_unknown
		       : &value_computed;
}

struct value *fold_binary(struct walk *walk, enum node_kind operator, struct value * left,
			  struct value *right)
{
	struct value *lefts[ALTERNATIVES_MAX], *rights[ALTERNATIVES_MAX], *all = NULL;
	size_t left_count = value_alternatives(left, lefts);
	size_t right_count = value_alternatives(right, rights);

	for (size_t i = 0; i < left_count; i++)
		for (size_t k = 0; k < right_count && i * right_count + k < 16; k++)
			all = value_either(walk, all,
					   fold_binary_one(walk, operator, lefts[i], rights[k]));
	return all;
}

struct value *fold_unary(struct walk *walk, enum node_kind operator, struct value * operand)
{
	long number;

	operand = value_plain(operand);
	if (!small_number(operand, &number))
		return &value_unknown;
	if (operator== NODE_USub)
		return value_constant(walk, PyLong_FromLong(-number), 0);
	if (operator== NODE_Invert)
		return value_constant(walk, PyLong_FromLong(~number), 0);
	return operator== NODE_UAdd ? operand : & value_unknown;
}

/* --- strings put together from parts -------------------------------------- */

/* The text of a value as str() and format() give it; NULL when unknown. */
static PyObject *text_of(struct value *value)
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

struct builder {
	PyObject *text; /* NULL: empty */
	bool partial;   /* nothing more is added */
};

static void builder_add(struct walk *walk, struct builder *builder, PyObject *more)
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

static struct value *builder_value(struct walk *walk, struct builder *builder)
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

				if (is_whole_text(spec) &&
				    PyUnicode_CompareWithASCIIString(spec->object, "c") == 0)
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
static struct value *fold_format_method(struct walk *walk, struct value *self,
					const struct call *call)
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
static PyObject *list_of(struct walk *walk, struct value *value)
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
static struct value *sequence_of(struct walk *walk, PyObject *list)
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

static struct value *join(struct walk *walk, struct value *self, struct value *items)
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

/* --- methods of strings and bytes ----------------------------------------- */

static bool codec_is_known(struct value *name)
{
	static const char *const codecs[] = {"utf-8",
					     "utf8",
					     "ascii",
					     "latin-1",
					     "latin1",
					     "utf_8",
					     "rot13",
					     "rot_13",
					     "hex",
					     "hex_codec",
					     "base64",
					     "base64_codec",
					     "utf-16",
					     "utf-16-le",
					     "cp037",
					     "cp500",
					     "unicode_escape",
					     "raw_unicode_escape",
					     "iso-8859-1",
					     "utf-7",
					     "utf_7",
					     "punycode",
					     "idna"};
	const char *text;

	if (!name)
		return true;
	name = value_plain(name);
	if (!is_whole_text(name))
		return false;
	text = PyUnicode_AsUTF8(name->object);
	for (size_t i = 0; text && i < ARRAY_LENGTH(codecs); i++)
		if (strcasecmp(codecs[i], text) == 0)
			return true;
	PyErr_Clear();
	return false;
}

/* Methods whose result is at most as long as what they are given. */
static bool method_shrinks(const char *name)
{
	static const char *const names[] = {
		"lower",      "upper",      "strip",     "lstrip",       "rstrip",       "title",
		"capitalize", "swapcase",   "casefold",  "removeprefix", "removesuffix", "split",
		"rsplit",     "splitlines", "partition", "rpartition",   "hex",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static PyObject *constant_tuple(const struct call *call)
{
	PyObject *tuple = PyTuple_New((Py_ssize_t)call->count);

	for (size_t i = 0; tuple && i < call->count; i++) {
		struct value *value = value_plain(call->values[i]);

		if (value->kind != VALUE_CONSTANT || value->flags & VALUE_PREFIX) {
			Py_DECREF(tuple);
			return NULL;
		}
		Py_INCREF(value->object);
		PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, value->object);
	}
	return tuple;
}

static struct value *call_constant(struct walk *walk, PyObject *object, const char *name,
				   const struct call *call)
{
	PyObject *arguments = constant_tuple(call), *method, *result = NULL;

	if (!arguments) {
		PyErr_Clear();
		return &value_computed;
	}
	method = PyObject_GetAttrString(object, name);
	if (method)
		result = PyObject_Call(method, arguments, NULL);
	Py_XDECREF(method);
	Py_DECREF(arguments);
	if (result && (PyList_CheckExact(result) || PyTuple_CheckExact(result))) {
		PyObject *list = PySequence_List(result);

		Py_DECREF(result);
		return sequence_of(walk, list);
	}
	return value_constant(walk, result, 0);
}

static struct value *replace(struct walk *walk, struct value *self, const struct call *call)
{
	Py_ssize_t length = length_of(self), larger;

	if (call->count < 2 || call->count > 3 || length_of(value_plain(call->values[0])) < 0 ||
	    length_of(value_plain(call->values[1])) < 0)
		return &value_computed;
	larger = length_of(value_plain(call->values[1]));
	if (!fold_afford(walk, length + (length + 1) * larger))
		return &value_computed;
	return call_constant(walk, self->object, "replace", call);
}

/* Methods of a string that only ask, or give back what is worth nothing. */
static bool method_asks(const char *name)
{
	return strncmp(name, "is", 2) == 0 || strcmp(name, "startswith") == 0 ||
	       strcmp(name, "endswith") == 0 || strcmp(name, "find") == 0 ||
	       strcmp(name, "index") == 0 || strcmp(name, "count") == 0;
}

struct value *fold_method(struct walk *walk, struct value *self, PyObject *name,
			  const struct call *call)
{
	const char *text = PyUnicode_AsUTF8(name);
	struct value *value = &value_computed;

	if (!text) {
		PyErr_Clear();
		return &value_unknown;
	}
	if (method_asks(text))
		return &value_unknown;
	if (is_number(self) && strcmp(text, "to_bytes") == 0) {
		long size;

		if (call->count && small_number(value_plain(call->values[0]), &size) && size > 0 &&
		    size < 256 && !call->named_count)
			value = call_constant(walk, self->object, "to_bytes", call);
		return looked_at(walk, value, call->node);
	}
	if (length_of(self) < 0)
		return &value_unknown;
	if (is_text(self) && strcmp(text, "format") == 0)
		return looked_at(walk, fold_format_method(walk, self, call), call->node);
	if (strcmp(text, "join") == 0 && call->count == 1) {
		if (self->flags & VALUE_PREFIX)
			return &value_computed;
		return looked_at(walk, join(walk, self, call->values[0]), call->node);
	}
	if (self->flags & VALUE_PREFIX || call->named_count)
		return &value_computed;
	if (method_shrinks(text)) {
		if (fold_afford(walk, 2 * length_of(self)))
			value = call_constant(walk, self->object, text, call);
	} else if (strcmp(text, "replace") == 0) {
		value = replace(walk, self, call);
	} else if (strcmp(text, "translate") == 0 && call->count == 1) {
		/* The table is a dict or str.maketrans(): not followed. */
		value = &value_computed;
	} else if ((strcmp(text, "encode") == 0 || strcmp(text, "decode") == 0) &&
		   codec_is_known(call->count ? call->values[0] : NULL) && call->count <= 2) {
		if (fold_afford(walk, 4 * length_of(self)))
			value = call_constant(walk, self->object, text, call);
	}
	return looked_at(walk, value, call->node);
}

/* --- functions ----------------------------------------------------------- */

static struct value *join_paths(struct walk *walk, const struct call *call, bool path)
{
	struct value *value = NULL;

	for (size_t i = 0; i < call->count; i++)
		value = value ? path_join(walk, value, value_plain(call->values[i]), path)
			      : value_plain(call->values[i]);
	if (!value)
		return value_constant(walk, PyUnicode_FromString("."), path ? VALUE_PATH : 0);
	if (is_text(value) && path && !(value->flags & VALUE_PATH))
		return value_borrowed(walk, value->object, value->flags | VALUE_PATH);
	return value;
}

struct value *path_join(struct walk *walk, struct value *left, struct value *right, bool path)
{
	struct builder builder = {0};
	PyObject *slash;
	uint32_t flags = path ? VALUE_PATH : 0;

	left = value_plain(left);
	right = value_plain(right);
	if (is_text(right) && PyUnicode_GET_LENGTH(right->object) &&
	    PyUnicode_READ_CHAR(right->object, 0) == '/')
		return value_borrowed(walk, right->object, right->flags | flags);
	if (!is_text(left))
		return &value_unknown;
	if (left->flags & VALUE_PREFIX)
		return value_borrowed(walk, left->object, left->flags | flags);
	builder_add(walk, &builder, left->object);
	slash = PyUnicode_FromString("/");
	if (PyUnicode_GET_LENGTH(left->object))
		builder_add(walk, &builder, slash);
	Py_XDECREF(slash);
	if (is_text(right)) {
		builder_add(walk, &builder, right->object);
		builder.partial |= (right->flags & VALUE_PREFIX) != 0;
	} else {
		builder.partial = true;
	}
	left = builder_value(walk, &builder);
	left->flags |= flags;
	return left;
}

static struct value *fold_chr(struct walk *walk, struct value *value)
{
	long number;

	value = value_plain(value);
	if (!small_number(value, &number) || number < 0 || number > 0x10ffff)
		return &value_computed;
	return value_constant(walk, PyUnicode_FromOrdinal((int)number), 0);
}

static struct value *fold_ord(struct walk *walk, struct value *value)
{
	value = value_plain(value);
	if (is_text(value) && PyUnicode_GET_LENGTH(value->object) == 1)
		return value_constant(
			walk, PyLong_FromLong((long)PyUnicode_READ_CHAR(value->object, 0)), 0);
	return &value_unknown;
}

static struct value *fold_map(struct walk *walk, const struct call *call)
{
	struct value *function = value_plain(call->values[0]), *value;
	PyObject *list;
	const char *path;

	if (call->count != 2 || function->kind != VALUE_REFERENCE)
		return NULL;
	path = function->reference->path;
	if (strcmp(path, "builtins.chr") != 0 && strcmp(path, "builtins.str") != 0 &&
	    strcmp(path, "builtins.ord") != 0)
		return NULL;
	list = list_of(walk, call->values[1]);
	if (!list) {
		PyErr_Clear();
		return &value_computed;
	}
	value = sequence_of(walk, list);
	for (size_t i = 0; value->kind == VALUE_SEQUENCE && i < value->count; i++) {
		struct value *item = value->items[i];
		PyObject *text;

		if (strcmp(path, "builtins.chr") == 0) {
			value->items[i] = fold_chr(walk, item);
		} else if (strcmp(path, "builtins.ord") == 0) {
			value->items[i] = fold_ord(walk, item);
		} else {
			text = text_of(item);
			value->items[i] = text ? value_constant(walk, text, 0) : &value_computed;
		}
	}
	return value;
}

static struct value *fold_range(struct walk *walk, const struct call *call)
{
	long bounds[3] = {0, 0, 1}, count = 0;
	PyObject *list;

	if (!call->count || call->count > 3)
		return NULL;
	for (size_t i = 0; i < call->count; i++)
		if (!small_number(value_plain(call->values[i]), &bounds[i]))
			return NULL;
	if (call->count == 1) {
		bounds[1] = bounds[0];
		bounds[0] = 0;
	}
	if (!bounds[2])
		return NULL;
	list = PyList_New(0);
	for (long i = bounds[0]; list && (bounds[2] > 0 ? i < bounds[1] : i > bounds[1]);
	     i += bounds[2]) {
		PyObject *number;

		if (++count > 256) {
			Py_DECREF(list);
			return NULL;
		}
		number = PyLong_FromLong(i);
		if (!number || PyList_Append(list, number) < 0)
			PyErr_Clear();
		Py_XDECREF(number);
	}
	return sequence_of(walk, list);
}

static struct value *fold_reversed(struct walk *walk, struct value *value)
{
	PyObject *list = list_of(walk, value);

	if (!list) {
		PyErr_Clear();
		return &value_computed;
	}
	if (PyList_Reverse(list) < 0)
		PyErr_Clear();
	return sequence_of(walk, list);
}

static struct value *fold_bytes(struct walk *walk, const struct call *call)
{
	struct value *value;
	PyObject *list;

	if (!call->count)
		return value_constant(walk, PyBytes_FromString(""), 0);
	value = value_plain(call->values[0]);
	if (is_text(value) && !(value->flags & VALUE_PREFIX) &&
	    fold_afford(walk, 4 * length_of(value)))
		return value_constant(walk, PyUnicode_AsUTF8String(value->object), 0);
	if (is_number(value))
		return &value_unknown;
	list = list_of(walk, value);
	if (!list) {
		PyErr_Clear();
		return &value_computed;
	}
	value = value_constant(walk, PyBytes_FromObject(list), 0);
	Py_DECREF(list);
	return value;
}

/* Decoders of the standard library, called for what they are: C code that
 * reads bytes. */
static struct value *fold_decoder(struct walk *walk, const char *path, const struct call *call)
{
	static const struct {
		const char *path, *module, *function;
	} decoders[] = {
		{"base64.b64decode", "base64", "b64decode"},
		{"base64.standard_b64decode", "base64", "b64decode"},
		{"base64.urlsafe_b64decode", "base64", "urlsafe_b64decode"},
		{"base64.decodebytes", "base64", "decodebytes"},
		{"base64.b32decode", "base64", "b32decode"},
		{"base64.b16decode", "base64", "b16decode"},
		{"base64.b85decode", "base64", "b85decode"},
		{"base64.a85decode", "base64", "a85decode"},
		{"binascii.unhexlify", "binascii", "unhexlify"},
		{"binascii.a2b_hex", "binascii", "a2b_hex"},
		{"binascii.a2b_base64", "binascii", "a2b_base64"},
		{"codecs.decode", "codecs", "decode"},
		{"codecs.encode", "codecs", "encode"},
		{"urllib.parse.unquote", "urllib.parse", "unquote"},
		{"html.unescape", "html", "unescape"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(decoders); i++) {
		struct value *value;
		PyObject *module;

		if (strcmp(decoders[i].path, path) != 0)
			continue;
		if (!call->count || call->named_count || call->count > 2 ||
		    length_of(value_plain(call->values[0])) < 0 ||
		    !fold_afford(walk, 4 * length_of(value_plain(call->values[0]))))
			return &value_computed;
		if (strcmp(decoders[i].module, "codecs") == 0 &&
		    !codec_is_known(call->count > 1 ? call->values[1] : NULL))
			return &value_computed;
		if (strcmp(decoders[i].module, "codecs") != 0 && call->count > 1)
			return &value_computed;
		module = PyImport_ImportModule(decoders[i].module);
		if (!module) {
			PyErr_Clear();
			return &value_computed;
		}
		value = call_constant(walk, module, decoders[i].function, call);
		Py_DECREF(module);
		return looked_at(walk, value, call->node);
	}
	return NULL;
}

static struct value *fold_text(struct walk *walk, const struct call *call)
{
	PyObject *text;
	struct value *value;

	if (!call->count)
		return value_constant(walk, PyUnicode_FromString(""), 0);
	value = value_plain(call->values[0]);
	if (is_text(value)) /* of a path, too */
		return value_borrowed(walk, value->object, value->flags & ~(uint32_t)VALUE_PATH);
	if (is_bytes(value) && call->count > 1 && codec_is_known(call->values[1])) {
		struct call decode = *call;

		decode.count = 1;
		decode.values[0] = call->values[1];
		return call_constant(walk, value->object, "decode", &decode);
	}
	text = text_of(value);
	if (text)
		return value_constant(walk, text, 0);
	return value->kind == VALUE_UNKNOWN ? value : &value_computed;
}

struct value *fold_call(struct walk *walk, const char *path, const struct call *call)
{
	struct value *value = NULL;

	if (strncmp(path, "builtins.", 9) == 0) {
		const char *name = path + 9;

		if (strcmp(name, "chr") == 0 && call->count == 1)
			return fold_chr(walk, call->values[0]);
		if (strcmp(name, "ord") == 0 && call->count == 1)
			return fold_ord(walk, call->values[0]);
		if (strcmp(name, "str") == 0)
			return fold_text(walk, call);
		if (strcmp(name, "bytes") == 0 || strcmp(name, "bytearray") == 0)
			return looked_at(walk, fold_bytes(walk, call), call->node);
		if (strcmp(name, "bytes.fromhex") == 0 && call->count == 1 &&
		    is_whole_text(value_plain(call->values[0])) &&
		    fold_afford(walk, length_of(value_plain(call->values[0]))))
			return looked_at(
				walk,
				call_constant(walk, (PyObject *)&PyBytes_Type, "fromhex", call),
				call->node);
		if (strcmp(name, "map") == 0 && call->count)
			return fold_map(walk, call);
		if (strcmp(name, "range") == 0)
			return fold_range(walk, call);
		if (strcmp(name, "reversed") == 0 && call->count == 1)
			return fold_reversed(walk, call->values[0]);
		if (strcmp(name, "int") == 0 && call->count == 1 &&
		    is_number(value_plain(call->values[0])))
			return call->values[0];
		if (strcmp(name, "int") == 0 && call->count && call->count <= 2 &&
		    is_whole_text(value_plain(call->values[0])) &&
		    length_of(value_plain(call->values[0])) < 20 && !call->named_count)
			return call_constant(walk, (PyObject *)&PyLong_Type, "__call__", call);
		if ((strcmp(name, "list") == 0 || strcmp(name, "tuple") == 0 ||
		     strcmp(name, "iter") == 0) &&
		    call->count == 1) {
			value = value_plain(call->values[0]);
			return value->kind == VALUE_SEQUENCE || value->kind == VALUE_CONSTANT
				       ? call->values[0]
				       : NULL;
		}
		if (strcmp(name, "dict") == 0 && call->count == 1 &&
		    value_plain(call->values[0])->kind == VALUE_DICT)
			return call->values[0];
		if (strcmp(name, "next") == 0 && call->count)
			return value_elements(walk, call->values[0]);
		return NULL;
	}
	if (strcmp(path, "os.path.join") == 0)
		return join_paths(walk, call, false);
	if (strcmp(path, "os.path.expanduser") == 0 && call->count == 1) {
		value = value_plain(call->values[0]);
		if (is_text(value) && PyUnicode_GET_LENGTH(value->object) &&
		    PyUnicode_READ_CHAR(value->object, 0) == '~' &&
		    (PyUnicode_GET_LENGTH(value->object) == 1 ||
		     PyUnicode_READ_CHAR(value->object, 1) == '/')) {
			struct value *home =
				value_constant(walk, PyUnicode_FromString("/workspace"), 0);
			struct builder builder = {0};
			PyObject *rest = PyUnicode_Substring(value->object, 1,
							     PyUnicode_GET_LENGTH(value->object));

			builder_add(walk, &builder, home->object);
			builder_add(walk, &builder, rest);
			Py_XDECREF(rest);
			builder.partial |= (value->flags & VALUE_PREFIX) != 0;
			return builder_value(walk, &builder);
		}
		/* "~root/x": somebody else's home. */
		if (is_text(value) && PyUnicode_GET_LENGTH(value->object) &&
		    PyUnicode_READ_CHAR(value->object, 0) == '~') {
			PyObject *rest = PyUnicode_Substring(value->object, 1,
							     PyUnicode_GET_LENGTH(value->object));
			PyObject *home = rest ? PyUnicode_FromFormat("/home/%U", rest) : NULL;

			Py_XDECREF(rest);
			return value_constant(walk, home, value->flags & VALUE_PREFIX);
		}
		return value;
	}
	if ((strcmp(path, "os.path.abspath") == 0 || strcmp(path, "os.path.realpath") == 0 ||
	     strcmp(path, "os.path.normpath") == 0 || strcmp(path, "os.fspath") == 0 ||
	     strcmp(path, "os.path.expandvars") == 0) &&
	    call->count >= 1) {
		value = value_plain(call->values[0]);
		return value->kind == VALUE_CONSTANT ? value : &value_unknown;
	}
	if (strcmp(path, "os.path.exists") == 0 || strcmp(path, "os.path.isfile") == 0)
		return &value_unknown;
	if (strcmp(path, "os.getcwd") == 0 || strcmp(path, "os.path.expanduser") == 0)
		return value_constant(walk, PyUnicode_FromString("/workspace"), 0);
	if (strcmp(path, "tempfile.gettempdir") == 0)
		return value_constant(walk, PyUnicode_FromString("/tmp"), 0);
	if (strncmp(path, "pathlib.", 8) == 0) {
		const char *name = path + 8;

		if (strcmp(name, "Path") == 0 || strcmp(name, "PosixPath") == 0 ||
		    strcmp(name, "PurePath") == 0 || strcmp(name, "PurePosixPath") == 0)
			return join_paths(walk, call, true);
		if (strcmp(name, "Path.home") == 0 || strcmp(name, "Path.cwd") == 0)
			return value_constant(walk, PyUnicode_FromString("/workspace"), VALUE_PATH);
	}
	return fold_decoder(walk, path, call);
}
