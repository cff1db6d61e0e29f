/* SPDX-License-Identifier: Apache-2.0 */
/* fold_calls: methods and functions that put constants together; see fold.c. */
#include "guest/verifier/fold.h"

#include "base/cleanup.h"

#include <string.h>

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
		return looked_at(walk, fold_join(walk, self, call->values[0]), call->node);
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
	/* They give back what they are given. */
	if ((strcmp(path, "importlib.reload") == 0 || strcmp(path, "copy.copy") == 0 ||
	     strcmp(path, "copy.deepcopy") == 0) &&
	    call->count == 1)
		return call->values[0];
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
