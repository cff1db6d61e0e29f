/* SPDX-License-Identifier: Apache-2.0 */
/* display: what the user's code shows, as frames of the mailbox.
 *
 * What an object is seen as is bundle.c's matter; here it is counted, and fitted
 * into what room is left. Frames are never taken back, so what updates an earlier
 * display is one more. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static unsigned shown;
static unsigned depth; /* of displays inside of representations */

static int append(enum message type, PyObject *object, const struct bundle_choice *choice)
{
	autobytes frame = {.ceiling = RESPONSE_BYTES_MAX};
	size_t at = frame_begin(&frame, (uint16_t)type, 0);
	int r;

	bundle_put(&frame, object, choice);
	r = frame_end(&frame, at);
	return r < 0 ? r : outbox_append(&frame);
}

static void append_text(enum message type, const char *text)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, (uint16_t)type, 0);

	frame_put_text(&frame, FIELD_MIME, "text/plain");
	frame_put_text(&frame, FIELD_DATA, text);
	frame_end(&frame, at);
	outbox_append(&frame);
}

/* Is there room for one more? The last one says that there is none. */
static bool count_display(void)
{
	char text[80];

	if (++shown < DISPLAY_COUNT_MAX)
		return true;
	if (shown == DISPLAY_COUNT_MAX) {
		snprintf(text, sizeof text, "<what is displayed after %d displays is left out>",
			 DISPLAY_COUNT_MAX - 1);
		append_text(MESSAGE_DISPLAY, text);
	}
	return false;
}

static void show(enum message type, PyObject *object, const struct bundle_choice *choice)
{
	struct bundle_choice plain = {.only_plain = true};
	unsigned before = shown;
	char text[200];

	/* A representation that displays what it represents would never end. */
	if (depth >= DISPLAY_DEPTH_MAX)
		return;
	depth++;
	if (!choice->raw && bundle_shows_itself(object) && shown != before) {
		if (type == MESSAGE_VALUE)
			append(type, object, &plain);
	} else if ((type != MESSAGE_DISPLAY || count_display()) &&
		   append(type, object, choice) < 0) {
		/* Too large, or no room is left: say so instead. */
		snprintf(text, sizeof text, "<%.100s object: no room is left to show it>",
			 Py_TYPE(object)->tp_name);
		append_text(type, text);
	}
	depth--;
}

void display_object(enum message type, PyObject *object)
{
	const struct bundle_choice all = {0};

	show(type, object, &all);
}

void display_forget(void)
{
	shown = 0;
}

static PyObject *display(PyObject *self, PyObject *arguments, PyObject *options);

static PyMethodDef method = {"display", (PyCFunction)(void (*)(void))display,
			     METH_VARARGS | METH_KEYWORDS,
			     "display($module, /, *objects, **options)\n--\n\nShows "
			     "objects in the result of this run, as a notebook does."};

/* What display_id asks for: with display() and update(), which show one more. */
static PyObject *make_handle(PyObject *self, PyObject *id)
{
	PyObject *types = PyImport_ImportModule("types");
	PyObject *class = types ? PyObject_GetAttrString(types, "SimpleNamespace") : NULL;
	PyObject *function = PyCFunction_New(&method, self), *none = PyTuple_New(0);
	PyObject *parts = function ? Py_BuildValue("{sOsOsO}", "display_id", id, "display",
						   function, "update", function)
				   : NULL;
	PyObject *handle = class && none && parts ? PyObject_Call(class, none, parts) : NULL;

	Py_XDECREF(types);
	Py_XDECREF(class);
	Py_XDECREF(function);
	Py_XDECREF(none);
	Py_XDECREF(parts);
	return handle;
}

/* An option's value, borrowed; NULL without an exception. */
static PyObject *option(PyObject *options, const char *name)
{
	return options ? PyDict_GetItemString(options, name) : NULL;
}

/* display(*objects, include, exclude, raw, display_id): IPython's other options
 * are accepted and ignored. */
static PyObject *display(PyObject *self, PyObject *arguments, PyObject *options)
{
	PyObject *raw = option(options, "raw"), *id = option(options, "display_id");
	struct bundle_choice choice = {.include = option(options, "include"),
				       .exclude = option(options, "exclude"),
				       .raw = raw == Py_True};

	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); i++)
		show(MESSAGE_DISPLAY, PyTuple_GET_ITEM(arguments, i), &choice);
	if (!id || id == Py_False)
		id = Py_None;
	return id == Py_None ? Py_NewRef(Py_None) : make_handle(self, id);
}

int display_install(struct error *err)
{
	PyObject *function = PyCFunction_New(&method, NULL);

	if (!function || PyDict_SetItemString(PyEval_GetBuiltins(), "display", function) < 0)
		return interpreter_error(err, "guest: install display()");
	Py_DECREF(function);
	return 0;
}
