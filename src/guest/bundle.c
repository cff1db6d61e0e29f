/* SPDX-License-Identifier: Apache-2.0 */
/* bundle: what an object offers to be seen as, as a notebook asks for it.
 *
 * _repr_mimebundle_ comes first, the single-format methods fill in what it leaves
 * out, then come the kinds of objects that are known by themselves (figures,
 * animations, plotly's). text/plain is always there and stands first. Whatever
 * goes wrong in user code here is the object's own problem: that format is left
 * out, and no exception leaves this file. What is too large is left out, too, and
 * a line of text/plain says so. Scripts are for a page that nobody has here. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <string.h>

struct bundle {
	const struct bundle_choice *choice;
	PyObject *plain;    /* a str, or NULL */
	struct bytes data;  /* fields, as they go into the frame */
	struct bytes notes; /* lines about what was left out */
	unsigned types;
};

enum content { CONTENT_TEXT, CONTENT_JSON, CONTENT_BINARY };

/* The methods of IPython's protocol. Of a picture one format is enough. */
static const struct {
	PyObject **method;
	const char *mime, *not_beside;
} formats[] = {
	{&names.repr_html, "text/html", NULL},
	{&names.repr_markdown, "text/markdown", NULL},
	{&names.repr_svg, "image/svg+xml", NULL},
	{&names.repr_png, "image/png", NULL},
	{&names.repr_jpeg, "image/jpeg", "image/png"},
	{&names.repr_latex, "text/latex", NULL},
	{&names.repr_json, "application/json", NULL},
};

static enum content content_of(const char *mime)
{
	if (strstr(mime, "json"))
		return CONTENT_JSON;
	if (strncmp(mime, "text/", 5) == 0 || strcmp(mime, "image/svg+xml") == 0)
		return CONTENT_TEXT;
	return CONTENT_BINARY;
}

static bool has(const struct bundle *bundle, const char *mime)
{
	struct reader reader = reader_of(bytes_span(&bundle->data));
	struct field field;

	while (frame_next_field(&reader, &field) == 1)
		if (field.name == FIELD_MIME && span_equals(field.value, mime))
			return true;
	return false;
}

/* Is `mime` in a list that display() was given? No list names all. */
static bool listed(PyObject *list, const char *mime, bool without)
{
	PyObject *name;
	int found;

	if (!list || list == Py_None)
		return without;
	name = PyUnicode_FromString(mime);
	found = name ? PySequence_Contains(list, name) : -1;
	PyErr_Clear();
	Py_XDECREF(name);
	return found < 0 ? without : found > 0;
}

static bool wanted(const struct bundle *bundle, const char *mime)
{
	return bundle->types < BUNDLE_TYPES_MAX && !strstr(mime, "javascript") &&
	       listed(bundle->choice->include, mime, true) &&
	       !listed(bundle->choice->exclude, mime, false) && !has(bundle, mime);
}

static PyObject *call_module(const char *module, const char *function, PyObject *argument)
{
	PyObject *object = PyImport_ImportModule(module);
	PyObject *result = object ? PyObject_CallMethod(object, function, "O", argument) : NULL;

	Py_XDECREF(object);
	return result;
}

/* The bytes of one datum (new reference), or NULL when it is of no use. Pictures
 * come as bytes or, in bundles, as base64. */
static PyObject *bytes_of(enum content content, PyObject *data)
{
	PyObject *text, *bytes;

	if (content != CONTENT_JSON && PyObject_CheckBuffer(data))
		return PyBytes_FromObject(data);
	if (content == CONTENT_BINARY)
		return PyUnicode_Check(data) ? call_module("binascii", "a2b_base64", data) : NULL;
	if (PyUnicode_Check(data))
		return PyUnicode_AsEncodedString(data, "utf-8", "replace");
	if (content == CONTENT_TEXT)
		return NULL;
	text = call_module("json", "dumps", data);
	bytes = text && PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "replace")
					      : NULL;
	Py_XDECREF(text);
	return bytes;
}

/* One datum under its name; leaves no exception. */
static void put(struct bundle *bundle, const char *mime, PyObject *data)
{
	enum content content = content_of(mime);
	size_t most = content == CONTENT_BINARY ? DATUM_BINARY_BYTES_MAX : DATUM_TEXT_BYTES_MAX;
	PyObject *bytes;
	size_t length;

	if (strcmp(mime, "text/plain") == 0) {
		if (!bundle->plain && PyUnicode_Check(data))
			bundle->plain = Py_NewRef(data);
		return;
	}
	if (!wanted(bundle, mime))
		return;
	bytes = bytes_of(content, data);
	PyErr_Clear();
	if (!bytes)
		return;
	bytes = pictures_fit(bytes);
	length = (size_t)PyBytes_GET_SIZE(bytes);
	if (length > most) {
		bytes_append_format(&bundle->notes,
				    "\n[%.100s is left out: %zu bytes; at most %zu are shown]",
				    mime, length, most);
	} else {
		frame_put_text(&bundle->data, FIELD_MIME, mime);
		frame_put(&bundle->data, FIELD_DATA, PyBytes_AS_STRING(bytes), length);
	}
	bundle->types++;
	Py_DECREF(bytes);
}

/* What an object that answers to any name would do with a format's is not known:
 * it offers none. Nor does a class, whose instances' methods are functions. */
static bool offers_formats(PyObject *object)
{
	PyObject *any;

	if (PyType_Check(object))
		return false;
	any = names_attribute(object, names.canary);
	Py_XDECREF(any);
	return any == NULL;
}

/* object.method(**options), or NULL without an exception. */
static PyObject *call(PyObject *object, PyObject *method, PyObject *options)
{
	PyObject *function = names_attribute(object, method), *result = NULL, *none;

	if (function && PyCallable_Check(function)) {
		none = PyTuple_New(0);
		result = none ? PyObject_Call(function, none, options) : NULL;
		/* One that was written without them. */
		if (!result && options && PyErr_ExceptionMatches(PyExc_TypeError)) {
			PyErr_Clear();
			result = PyObject_CallNoArgs(function);
		}
		Py_XDECREF(none);
	}
	Py_XDECREF(function);
	PyErr_Clear();
	if (result == Py_None)
		Py_CLEAR(result);
	return result;
}

/* {mime: data} or ({mime: data}, metadata). */
static void put_dictionary(struct bundle *bundle, PyObject *given)
{
	PyObject *data = PyTuple_Check(given) && PyTuple_GET_SIZE(given) > 0
				 ? PyTuple_GET_ITEM(given, 0)
				 : given;
	/* Dumping an element may run code that changes the dictionary. */
	PyObject *items = PyDict_Check(data) ? PyDict_Items(data) : NULL;

	for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
		PyObject *key = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
		PyObject *value = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1);
		const char *mime = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;

		PyErr_Clear();
		if (mime && value != Py_None)
			put(bundle, mime, value);
	}
	PyErr_Clear();
	Py_XDECREF(items);
}

static void put_formats(struct bundle *bundle, PyObject *object)
{
	PyObject *options = Py_BuildValue("{sOsO}", "include", Py_None, "exclude", Py_None);
	PyObject *given = call(object, names.repr_mimebundle, options);

	PyErr_Clear();
	Py_XDECREF(options);
	if (given)
		put_dictionary(bundle, given);
	Py_XDECREF(given);
	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
		if (!wanted(bundle, formats[i].mime) ||
		    (formats[i].not_beside && has(bundle, formats[i].not_beside)))
			continue;
		given = call(object, *formats[i].method, NULL);
		/* (data, metadata) */
		if (given)
			put(bundle, formats[i].mime,
			    PyTuple_Check(given) && PyTuple_GET_SIZE(given) > 0
				    ? PyTuple_GET_ITEM(given, 0)
				    : given);
		Py_XDECREF(given);
	}
}

#define PLOTLY_MIME "application/vnd.plotly.v1+json"

/* Objects known by what they are. plotly's own methods ask a renderer, which
 * outside of a notebook is a browser. */
static void put_known(struct bundle *bundle, PyObject *object)
{
	PyObject *data;

	if (wanted(bundle, "image/png")) {
		data = figures_png(object);
		if (data)
			put(bundle, "image/png", data);
		Py_XDECREF(data);
	}
	if (wanted(bundle, CHART_MIME)) {
		data = figures_chart(object);
		if (data)
			put(bundle, CHART_MIME, data);
		Py_XDECREF(data);
	}
	if (bundle_is_plotly(object) && wanted(bundle, PLOTLY_MIME)) {
		data = call(object, names.to_json, NULL);
		if (data && PyUnicode_Check(data))
			put(bundle, PLOTLY_MIME, data);
		Py_XDECREF(data);
	}
}

bool bundle_is_plotly(PyObject *object)
{
	PyObject *method =
		offers_formats(object) ? names_attribute(object, names.to_plotly_json) : NULL;
	bool is = method && PyCallable_Check(method);

	Py_XDECREF(method);
	return is;
}

static int append_part(struct bytes *out, PyObject *text, Py_ssize_t from, Py_ssize_t to)
{
	PyObject *part = PyUnicode_Substring(text, from, to);
	PyObject *bytes = part ? PyUnicode_AsEncodedString(part, "utf-8", "replace") : NULL;
	int r = bytes ? bytes_append(out, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes))
		      : -1;

	PyErr_Clear();
	Py_XDECREF(bytes);
	Py_XDECREF(part);
	return r;
}

/* Shortened in the middle when it is very long. */
static int append_text(struct bytes *out, PyObject *text)
{
	Py_ssize_t length = PyUnicode_GET_LENGTH(text), half = (Py_ssize_t)REPR_CHARACTERS_MAX / 2;
	int r;

	if (length <= (Py_ssize_t)REPR_CHARACTERS_MAX)
		return append_part(out, text, 0, length);
	r = append_part(out, text, 0, half);
	if (r == 0)
		r = bytes_append_format(out, "\n… %zd of %zd characters left out …\n",
					length - 2 * half, length);
	return r == 0 ? append_part(out, text, length - half, length) : r;
}

/* What stands for a repr() that ended in the exception that is set. */
static PyObject *failed_repr(PyObject *object)
{
	PyObject *type, *error, *traceback, *message, *text;

	PyErr_Fetch(&type, &error, &traceback);
	message = error ? PyObject_Str(error) : NULL;
	if (message && PyUnicode_GET_LENGTH(message) > 200)
		Py_SETREF(message, PyUnicode_Substring(message, 0, 200));
	PyErr_Clear();
	text = PyUnicode_FromFormat(
		"<%.100s object; its repr() failed: %.100s%s%V>", Py_TYPE(object)->tp_name,
		type ? ((PyTypeObject *)type)->tp_name : "no text",
		message && PyUnicode_GET_LENGTH(message) > 0 ? ": " : "", message, "");
	Py_XDECREF(message);
	Py_XDECREF(type);
	Py_XDECREF(error);
	Py_XDECREF(traceback);
	return text;
}

static void put_plain(struct bundle *bundle, PyObject *object, struct bytes *frame)
{
	PyObject *text = bundle->plain ? Py_NewRef(bundle->plain) : PyObject_Repr(object);
	autobytes plain = {0};

	if (!text)
		text = failed_repr(object);
	PyErr_Clear();
	if (!text || append_text(&plain, text) < 0) {
		bytes_clear(&plain);
		bytes_append_format(&plain, "<%.100s object>", Py_TYPE(object)->tp_name);
	}
	bytes_append(&plain, bundle->notes.data, bundle->notes.length);
	frame_put_text(frame, FIELD_MIME, "text/plain");
	frame_put(frame, FIELD_DATA, plain.data, plain.length);
	Py_XDECREF(text);
}

void bundle_put(struct bytes *frame, PyObject *object, const struct bundle_choice *choice)
{
	struct bundle bundle = {.choice = choice, .data = {.ceiling = RESPONSE_BYTES_MAX}};

	if (choice->raw) {
		put_dictionary(&bundle, object);
	} else if (!choice->only_plain) {
		if (offers_formats(object))
			put_formats(&bundle, object);
		put_known(&bundle, object);
	}
	put_plain(&bundle, object, frame);
	if (!bundle.data.failed)
		bytes_append(frame, bundle.data.data, bundle.data.length);
	Py_XDECREF(bundle.plain);
	bytes_free(&bundle.data);
	bytes_free(&bundle.notes);
}

bool bundle_shows_itself(PyObject *object)
{
	PyObject *method, *result = NULL;

	if (!offers_formats(object) || bundle_is_plotly(object))
		return false;
	method = names_attribute(object, names.ipython_display);
	if (method && PyCallable_Check(method))
		result = PyObject_CallNoArgs(method);
	PyErr_Clear();
	Py_XDECREF(method);
	Py_XDECREF(result);
	return result != NULL;
}
