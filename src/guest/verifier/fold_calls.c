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

static struct value *character_of(struct walk *walk, struct value *value)
{
	long number;

	value = value_plain(value);
	if (!small_number(value, &number) || number < 0 || number > 0x10ffff)
		return &value_computed;
	return value_constant(walk, PyUnicode_FromOrdinal((int)number), 0);
}

static struct value *ordinal_of(struct walk *walk, struct value *value)
{
	value = value_plain(value);
	if (is_text(value) && PyUnicode_GET_LENGTH(value->object) == 1)
		return value_constant(
			walk, PyLong_FromLong((long)PyUnicode_READ_CHAR(value->object, 0)), 0);
	return &value_unknown;
}

static struct value *fold_chr(struct walk *walk, const struct call *call,
			      const struct folder *folder)
{
	return call->count == 1 ? character_of(walk, call->values[0]) : NULL;
}

static struct value *fold_ord(struct walk *walk, const struct call *call,
			      const struct folder *folder)
{
	return call->count == 1 ? ordinal_of(walk, call->values[0]) : NULL;
}

static struct value *fold_map(struct walk *walk, const struct call *call,
			      const struct folder *folder)
{
	struct value *function, *value;
	PyObject *list;
	const char *path;

	if (call->count != 2)
		return NULL;
	function = value_plain(call->values[0]);
	if (function->kind != VALUE_REFERENCE)
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
			value->items[i] = character_of(walk, item);
		} else if (strcmp(path, "builtins.ord") == 0) {
			value->items[i] = ordinal_of(walk, item);
		} else {
			text = text_of(item);
			value->items[i] = text ? value_constant(walk, text, 0) : &value_computed;
		}
	}
	return value;
}

static struct value *fold_range(struct walk *walk, const struct call *call,
				const struct folder *folder)
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

static struct value *fold_reversed(struct walk *walk, const struct call *call,
				   const struct folder *folder)
{
	PyObject *list;

	if (call->count != 1)
		return NULL;
	list = list_of(walk, call->values[0]);
	if (!list) {
		PyErr_Clear();
		return &value_computed;
	}
	if (PyList_Reverse(list) < 0)
		PyErr_Clear();
	return sequence_of(walk, list);
}

static struct value *fold_bytes(struct walk *walk, const struct call *call,
				const struct folder *folder)
{
	struct value *value;
	PyObject *list;

	if (!call->count)
		return value_constant(walk, PyBytes_FromString(""), 0);
	value = value_plain(call->values[0]);
	if (is_text(value) && !(value->flags & VALUE_PREFIX) &&
	    fold_afford(walk, 4 * length_of(value)))
		return looked_at(walk,
				 value_constant(walk, PyUnicode_AsUTF8String(value->object), 0),
				 call->node);
	if (is_number(value))
		return &value_unknown;
	list = list_of(walk, value);
	if (!list) {
		PyErr_Clear();
		return &value_computed;
	}
	value = value_constant(walk, PyBytes_FromObject(list), 0);
	Py_DECREF(list);
	return looked_at(walk, value, call->node);
}

static struct value *fold_fromhex(struct walk *walk, const struct call *call,
				  const struct folder *folder)
{
	if (call->count != 1 || !is_whole_text(value_plain(call->values[0])) ||
	    !fold_afford(walk, length_of(value_plain(call->values[0]))))
		return NULL;
	return looked_at(walk, call_constant(walk, (PyObject *)&PyBytes_Type, "fromhex", call),
			 call->node);
}

/* Decoders of the standard library, called for what they are: C code that
 * reads bytes. */
static struct value *fold_decoder(struct walk *walk, const struct call *call,
				  const struct folder *folder)
{
	struct value *value;
	PyObject *module;

	if (!call->count || call->named_count || call->count > 2 ||
	    length_of(value_plain(call->values[0])) < 0 ||
	    !fold_afford(walk, 4 * length_of(value_plain(call->values[0]))))
		return &value_computed;
	if (strcmp(folder->module, "codecs") == 0 &&
	    !codec_is_known(call->count > 1 ? call->values[1] : NULL))
		return &value_computed;
	if (strcmp(folder->module, "codecs") != 0 && call->count > 1)
		return &value_computed;
	module = PyImport_ImportModule(folder->module);
	if (!module) {
		PyErr_Clear();
		return &value_computed;
	}
	value = call_constant(walk, module, folder->function, call);
	Py_DECREF(module);
	return looked_at(walk, value, call->node);
}

static struct value *fold_text(struct walk *walk, const struct call *call,
			       const struct folder *folder)
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

static struct value *fold_int(struct walk *walk, const struct call *call,
			      const struct folder *folder)
{
	struct value *first = call->count ? value_plain(call->values[0]) : NULL;

	if (!first || call->count > 2)
		return NULL;
	if (call->count == 1 && is_number(first))
		return call->values[0];
	if (!is_whole_text(first) || length_of(first) >= 20 || call->named_count)
		return NULL;
	return call_constant(walk, (PyObject *)&PyLong_Type, "__call__", call);
}

/* list, tuple, iter: the same elements in another coat. */
static struct value *fold_elements(struct walk *walk, const struct call *call,
				   const struct folder *folder)
{
	struct value *value = call->count == 1 ? value_plain(call->values[0]) : NULL;

	return value && (value->kind == VALUE_SEQUENCE || value->kind == VALUE_CONSTANT)
		       ? call->values[0]
		       : NULL;
}

static struct value *fold_dict(struct walk *walk, const struct call *call,
			       const struct folder *folder)
{
	return call->count == 1 && value_plain(call->values[0])->kind == VALUE_DICT
		       ? call->values[0]
		       : NULL;
}

static struct value *fold_next(struct walk *walk, const struct call *call,
			       const struct folder *folder)
{
	return call->count ? value_elements(walk, call->values[0]) : NULL;
}

/* Functions that give back what they are given. */
static struct value *fold_same(struct walk *walk, const struct call *call,
			       const struct folder *folder)
{
	return call->count == 1 ? call->values[0] : NULL;
}

/* --- paths --------------------------------------------------------------- */

static struct value *fold_join_paths(struct walk *walk, const struct call *call,
				     const struct folder *folder)
{
	return join_paths(walk, call, false);
}

static struct value *fold_pathlib(struct walk *walk, const struct call *call,
				  const struct folder *folder)
{
	return join_paths(walk, call, true);
}

static struct value *fold_home(struct walk *walk, const struct call *call,
			       const struct folder *folder)
{
	return value_constant(walk, PyUnicode_FromString("/workspace"), 0);
}

static struct value *fold_home_path(struct walk *walk, const struct call *call,
				    const struct folder *folder)
{
	return value_constant(walk, PyUnicode_FromString("/workspace"), VALUE_PATH);
}

static struct value *fold_temporary(struct walk *walk, const struct call *call,
				    const struct folder *folder)
{
	return value_constant(walk, PyUnicode_FromString("/tmp"), 0);
}

static struct value *fold_expanduser(struct walk *walk, const struct call *call,
				     const struct folder *folder)
{
	struct builder builder = {0};
	struct value *value, *home;
	Py_ssize_t length;
	PyObject *rest, *text;

	if (call->count != 1)
		return fold_home(walk, call, folder);
	value = value_plain(call->values[0]);
	length = is_text(value) ? PyUnicode_GET_LENGTH(value->object) : 0;
	if (length == 0 || PyUnicode_READ_CHAR(value->object, 0) != '~')
		return value;
	rest = PyUnicode_Substring(value->object, 1, length);
	if (length > 1 && PyUnicode_READ_CHAR(value->object, 1) != '/') {
		/* "~root/x": somebody else's home. */
		text = rest ? PyUnicode_FromFormat("/home/%U", rest) : NULL;
		Py_XDECREF(rest);
		return value_constant(walk, text, value->flags & VALUE_PREFIX);
	}
	home = fold_home(walk, call, folder);
	builder_add(walk, &builder, home->object);
	builder_add(walk, &builder, rest);
	Py_XDECREF(rest);
	builder.partial |= (value->flags & VALUE_PREFIX) != 0;
	return builder_value(walk, &builder);
}

static struct value *fold_normal_path(struct walk *walk, const struct call *call,
				      const struct folder *folder)
{
	struct value *value = call->count ? value_plain(call->values[0]) : NULL;

	if (!value)
		return NULL;
	return value->kind == VALUE_CONSTANT ? value : &value_unknown;
}

/* Functions that only ask. */
static struct value *fold_question(struct walk *walk, const struct call *call,
				   const struct folder *folder)
{
	return &value_unknown;
}

/* --- the table ----------------------------------------------------------- */

static const struct folder folders[] = {
	{"builtins.chr", fold_chr, NULL, NULL},
	{"builtins.ord", fold_ord, NULL, NULL},
	{"builtins.str", fold_text, NULL, NULL},
	{"builtins.bytes", fold_bytes, NULL, NULL},
	{"builtins.bytearray", fold_bytes, NULL, NULL},
	{"builtins.bytes.fromhex", fold_fromhex, NULL, NULL},
	{"builtins.map", fold_map, NULL, NULL},
	{"builtins.range", fold_range, NULL, NULL},
	{"builtins.reversed", fold_reversed, NULL, NULL},
	{"builtins.int", fold_int, NULL, NULL},
	{"builtins.list", fold_elements, NULL, NULL},
	{"builtins.tuple", fold_elements, NULL, NULL},
	{"builtins.iter", fold_elements, NULL, NULL},
	{"builtins.dict", fold_dict, NULL, NULL},
	{"builtins.next", fold_next, NULL, NULL},
	{"copy.copy", fold_same, NULL, NULL},
	{"copy.deepcopy", fold_same, NULL, NULL},
	{"importlib.reload", fold_same, NULL, NULL},
	{"os.path.join", fold_join_paths, NULL, NULL},
	{"os.path.expanduser", fold_expanduser, NULL, NULL},
	{"os.path.abspath", fold_normal_path, NULL, NULL},
	{"os.path.realpath", fold_normal_path, NULL, NULL},
	{"os.path.normpath", fold_normal_path, NULL, NULL},
	{"os.path.expandvars", fold_normal_path, NULL, NULL},
	{"os.fspath", fold_normal_path, NULL, NULL},
	{"os.path.exists", fold_question, NULL, NULL},
	{"os.path.isfile", fold_question, NULL, NULL},
	{"os.getcwd", fold_home, NULL, NULL},
	{"tempfile.gettempdir", fold_temporary, NULL, NULL},
	{"pathlib.Path", fold_pathlib, NULL, NULL},
	{"pathlib.PosixPath", fold_pathlib, NULL, NULL},
	{"pathlib.PurePath", fold_pathlib, NULL, NULL},
	{"pathlib.PurePosixPath", fold_pathlib, NULL, NULL},
	{"pathlib.Path.home", fold_home_path, NULL, NULL},
	{"pathlib.Path.cwd", fold_home_path, NULL, NULL},
	{"base64.b64decode", fold_decoder, "base64", "b64decode"},
	{"base64.standard_b64decode", fold_decoder, "base64", "b64decode"},
	{"base64.urlsafe_b64decode", fold_decoder, "base64", "urlsafe_b64decode"},
	{"base64.decodebytes", fold_decoder, "base64", "decodebytes"},
	{"base64.b32decode", fold_decoder, "base64", "b32decode"},
	{"base64.b16decode", fold_decoder, "base64", "b16decode"},
	{"base64.b85decode", fold_decoder, "base64", "b85decode"},
	{"base64.a85decode", fold_decoder, "base64", "a85decode"},
	{"binascii.unhexlify", fold_decoder, "binascii", "unhexlify"},
	{"binascii.a2b_hex", fold_decoder, "binascii", "a2b_hex"},
	{"binascii.a2b_base64", fold_decoder, "binascii", "a2b_base64"},
	{"codecs.decode", fold_decoder, "codecs", "decode"},
	{"codecs.encode", fold_decoder, "codecs", "encode"},
	{"urllib.parse.unquote", fold_decoder, "urllib.parse", "unquote"},
	{"html.unescape", fold_decoder, "html", "unescape"},
};

const struct folder *folder_find(const char *path)
{
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++)
		if (folders[i].path[0] == path[0] && strcmp(folders[i].path, path) == 0)
			return &folders[i];
	return NULL;
}
