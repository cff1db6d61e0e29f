/* SPDX-License-Identifier: Apache-2.0 */
/* display: values as MIME bundles, as a notebook shows them.
 *
 * text/plain is always there. The rest comes from what the object itself
 * offers: _repr_mimebundle_ first, then the single-format methods, then
 * matplotlib figures. Whatever goes wrong in user code here is the value's own
 * problem: that format is left out. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <string.h>

static unsigned shown;

/* The formats that IPython's protocol names. */
static const struct {
	PyObject **method;
	const char *mime;
} formats[] = {
	{&names.repr_html, "text/html"},        {&names.repr_markdown, "text/markdown"},
	{&names.repr_svg, "image/svg+xml"},     {&names.repr_png, "image/png"},
	{&names.repr_jpeg, "image/jpeg"},       {&names.repr_latex, "text/latex"},
	{&names.repr_json, "application/json"},
};

static void put(struct bytes *frame, const char *mime, const void *data, size_t length)
{
	frame_put_text(frame, FIELD_MIME, mime);
	frame_put(frame, FIELD_DATA, data, length);
}

/* Text or bytes as they are, anything else as JSON text. */
static bool put_object(struct bytes *frame, const char *mime, PyObject *data)
{
	PyObject *json, *text;
	Py_ssize_t length;
	const char *utf8;

	if (PyBytes_Check(data)) {
		put(frame, mime, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data));
		return true;
	}
	if (PyUnicode_Check(data)) {
		PyObject *bytes = PyUnicode_AsEncodedString(data, "utf-8", "replace");

		if (bytes)
			put(frame, mime, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
		Py_XDECREF(bytes);
		return bytes != NULL;
	}
	json = PyImport_ImportModule("json");
	text = json ? PyObject_CallMethod(json, "dumps", "O", data) : NULL;
	utf8 = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
	if (utf8)
		put(frame, mime, utf8, (size_t)length);
	Py_XDECREF(json);
	Py_XDECREF(text);
	return utf8 != NULL;
}

/* repr(), shortened in the middle when it is very long. */
static void put_plain(struct bytes *frame, PyObject *object)
{
	PyObject *text = PyObject_Repr(object);
	Py_ssize_t length = text ? PyUnicode_GET_LENGTH(text) : 0;

	if (text && length > (Py_ssize_t)REPR_CHARACTERS_MAX) {
		Py_ssize_t half = (Py_ssize_t)REPR_CHARACTERS_MAX / 2;
		PyObject *head = PyUnicode_Substring(text, 0, half);
		PyObject *tail = PyUnicode_Substring(text, length - half, length);
		PyObject *whole =
			head && tail
				? PyUnicode_FromFormat("%U\n… %zd of %zd characters left out …\n%U",
						       head, length - 2 * half, length, tail)
				: NULL;

		Py_XDECREF(head);
		Py_XDECREF(tail);
		Py_SETREF(text, whole);
	}
	if (!text || !put_object(frame, "text/plain", text)) {
		char fallback[160];
		int used = snprintf(fallback, sizeof fallback, "<%.100s object; its repr() failed>",
				    Py_TYPE(object)->tp_name);

		PyErr_Clear();
		put(frame, "text/plain", fallback, (size_t)used);
	}
	Py_XDECREF(text);
}

/* Calls object.method() if the class has it; NULL without an exception when
 * there is nothing to show. A class object has its instances' methods as plain
 * functions: those are not meant. */
static PyObject *call_format(PyObject *object, PyObject *method)
{
	PyObject *function, *result = NULL;

	if (PyType_Check(object))
		return NULL;
	function = names_attribute(object, method);
	if (function && PyCallable_Check(function))
		result = PyObject_CallNoArgs(function);
	Py_XDECREF(function);
	if (!result)
		PyErr_Clear();
	if (result == Py_None)
		Py_CLEAR(result);
	return result;
}

/* {mime: data} or ({mime: data}, metadata); true when text/plain was in it. */
static bool put_bundle(struct bytes *frame, PyObject *bundle, bool *ret_any)
{
	PyObject *data = PyTuple_Check(bundle) && PyTuple_GET_SIZE(bundle) > 0
				 ? PyTuple_GET_ITEM(bundle, 0)
				 : bundle;
	PyObject *key, *value;
	Py_ssize_t at = 0;
	bool plain = false;

	if (!PyDict_Check(data))
		return false;
	while (PyDict_Next(data, &at, &key, &value)) {
		const char *mime = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;

		if (!mime || value == Py_None || !put_object(frame, mime, value)) {
			PyErr_Clear();
			continue;
		}
		*ret_any = true;
		plain |= strcmp(mime, "text/plain") == 0;
	}
	return plain;
}

static void put_formats(struct bytes *frame, PyObject *object)
{
	PyObject *png;

	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
		PyObject *data = call_format(object, *formats[i].method);

		if (!data)
			continue;
		if (PyTuple_Check(data) && PyTuple_GET_SIZE(data) > 0)
			put_object(frame, formats[i].mime, PyTuple_GET_ITEM(data, 0));
		else
			put_object(frame, formats[i].mime, data);
		PyErr_Clear();
		Py_DECREF(data);
	}
	png = figures_png(object);
	if (png)
		put_object(frame, "image/png", png);
	PyErr_Clear();
	Py_XDECREF(png);
}

void display_object(enum message type, PyObject *object)
{
	autobytes frame = {.ceiling = RESPONSE_BYTES_MAX};
	size_t at = frame_begin(&frame, (uint16_t)type, 0);
	PyObject *bundle;
	bool plain = false, any = false;

	if (type == MESSAGE_DISPLAY && shown++ >= DISPLAY_COUNT_MAX)
		return;
	bundle = call_format(object, names.repr_mimebundle);
	if (bundle) {
		plain = put_bundle(&frame, bundle, &any);
		Py_DECREF(bundle);
	}
	if (!plain)
		put_plain(&frame, object);
	if (!any)
		put_formats(&frame, object);
	if (frame_end(&frame, at) == 0 && outbox_append(&frame) == 0)
		return;
	/* Too large, or no room is left: say so instead. */
	bytes_clear(&frame);
	at = frame_begin(&frame, (uint16_t)type, 0);
	put(&frame, "text/plain", "<too large to show>", 19);
	frame_end(&frame, at);
	outbox_append(&frame);
}

void display_forget(void)
{
	shown = 0;
}

/* display(*objects): keyword arguments of IPython's are accepted and ignored. */
static PyObject *display(PyObject *self, PyObject *arguments, PyObject *options)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); i++)
		display_object(MESSAGE_DISPLAY, PyTuple_GET_ITEM(arguments, i));
	Py_RETURN_NONE;
}

int display_install(struct error *err)
{
	static PyMethodDef method = {"display", (PyCFunction)(void (*)(void))display,
				     METH_VARARGS | METH_KEYWORDS,
				     "display($module, /, *objects, **options)\n--\n\nShows "
				     "objects in the result of this run, as a notebook does."};
	PyObject *function = PyCFunction_New(&method, NULL);

	if (!function || PyDict_SetItemString(PyEval_GetBuiltins(), "display", function) < 0)
		return interpreter_error(err, "guest: install display()");
	Py_DECREF(function);
	return 0;
}
