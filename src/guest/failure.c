/* SPDX-License-Identifier: Apache-2.0 */
/* failure: an exception that ended the code, for machines and for people.
 *
 * The text is CPython's own: PyErr_Display writes it into a StringIO, and the
 * same text then goes to sys.stderr. There are no frames of ours to hide,
 * because the code is called from C. The frames are the traceback's, with
 * columns counted in code points from 1. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

static PyObject *string_io; /* the class */

int failure_prepare(void)
{
	PyObject *io = PyImport_ImportModule("io");

	string_io = io ? PyObject_GetAttrString(io, "StringIO") : NULL;
	Py_XDECREF(io);
	return string_io ? 0 : -1;
}

/* Line `number` (from 1) of the code that was sent, without its newline. */
static struct span own_line(long number)
{
	struct span rest = run_source();

	for (long line = 1; rest.length > 0; line++) {
		const uint8_t *newline = memchr(rest.data, '\n', rest.length);
		size_t length = newline ? (size_t)(newline - rest.data) : rest.length;

		if (line == number) {
			if (length > 0 && rest.data[length - 1] == '\r')
				length--;
			return (struct span){rest.data, length};
		}
		if (!newline)
			break;
		rest.data += length + 1;
		rest.length -= length + 1;
	}
	return (struct span){NULL, 0};
}

/* A byte offset in a UTF-8 line to a column: code points, from 1. */
static uint64_t column_at(struct span line, long offset)
{
	uint64_t column = 1;

	if (!line.data)
		return (uint64_t)offset + 1;
	for (size_t i = 0; i < line.length && i < (size_t)offset; i++)
		column += (line.data[i] & 0xc0) != 0x80;
	return column;
}

static void put_text_object(struct bytes *frame, enum field_name name, PyObject *text)
{
	PyObject *bytes = text && PyUnicode_Check(text)
				  ? PyUnicode_AsEncodedString(text, "utf-8", "replace")
				  : NULL;

	if (bytes)
		frame_put(frame, (uint16_t)name, PyBytes_AS_STRING(bytes),
			  (size_t)PyBytes_GET_SIZE(bytes));
	PyErr_Clear();
	Py_XDECREF(bytes);
}

/* The source of a line that is not the code's own, by linecache. */
static PyObject *foreign_line(PyObject *file, long line)
{
	PyObject *linecache = PyImport_ImportModule("linecache");
	PyObject *text =
		linecache ? PyObject_CallMethod(linecache, "getline", "Ol", file, line) : NULL;
	PyObject *stripped = text ? PyObject_CallMethod(text, "rstrip", "s", "\r\n") : NULL;

	PyErr_Clear();
	Py_XDECREF(linecache);
	Py_XDECREF(text);
	return stripped;
}

static bool is_own(PyObject *file)
{
	const char *name = turn_name();

	return PyUnicode_Check(file) &&
	       PyUnicode_CompareWithASCIIString(file, name ? name : RUN_FILE_NAME) == 0;
}

struct position {
	int line, column, end_line, end_column; /* columns: byte offsets, -1 unknown */
};

static void put_frame(struct bytes *out, PyObject *file, PyObject *function,
		      struct position position)
{
	autobytes body = {0};
	struct span line = {NULL, 0}, end_line = {NULL, 0};
	PyObject *foreign = NULL;

	put_text_object(&body, FIELD_FILE, file);
	if (function)
		put_text_object(&body, FIELD_FUNCTION, function);
	if (is_own(file)) {
		line = own_line(position.line);
		end_line = own_line(position.end_line);
	} else {
		foreign = foreign_line(file, position.line);
		if (foreign) {
			Py_ssize_t length;
			const char *utf8 = PyUnicode_AsUTF8AndSize(foreign, &length);

			if (utf8)
				line = (struct span){(const uint8_t *)utf8, (size_t)length};
			PyErr_Clear();
		}
		if (position.end_line == position.line)
			end_line = line;
	}
	frame_put_number(&body, FIELD_LINE, (uint64_t)position.line);
	if (position.column >= 0)
		frame_put_number(&body, FIELD_COLUMN, column_at(line, position.column));
	if (position.end_line > 0)
		frame_put_number(&body, FIELD_END_LINE, (uint64_t)position.end_line);
	if (position.end_column >= 0)
		frame_put_number(&body, FIELD_END_COLUMN, column_at(end_line, position.end_column));
	if (line.length > 0)
		frame_put(&body, FIELD_SOURCE, line.data, line.length > 1000 ? 1000 : line.length);
	Py_XDECREF(foreign);
	if (!body.failed)
		frame_put(out, FIELD_FRAME, body.data, body.length);
}

static long attribute_number(PyObject *object, PyObject *name)
{
	PyObject *value = names_attribute(object, name);
	long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : -1;

	Py_XDECREF(value);
	PyErr_Clear();
	return number;
}

static void put_traceback_frame(struct bytes *out, PyObject *entry)
{
	PyTracebackObject *traceback = (PyTracebackObject *)entry;
	PyCodeObject *code = PyFrame_GetCode(traceback->tb_frame);
	struct position position = {0, -1, 0, -1};

	if (!PyCode_Addr2Location(code, traceback->tb_lasti, &position.line, &position.column,
				  &position.end_line, &position.end_column))
		position =
			(struct position){(int)attribute_number(entry, names.tb_lineno), -1, 0, -1};
	put_frame(out, code->co_filename, code->co_qualname, position);
	Py_DECREF(code);
}

/* The last TRACEBACK_FRAMES_MAX frames, outermost first, as CPython prints. */
static void put_traceback(struct bytes *out, PyObject *traceback)
{
	size_t total = 0, skip;

	for (PyObject *at = traceback; at && at != Py_None;
	     at = (PyObject *)((PyTracebackObject *)at)->tb_next)
		total++;
	skip = total > TRACEBACK_FRAMES_MAX ? total - TRACEBACK_FRAMES_MAX : 0;
	for (PyObject *at = traceback; at && at != Py_None;
	     at = (PyObject *)((PyTracebackObject *)at)->tb_next) {
		if (skip > 0)
			skip--;
		else
			put_traceback_frame(out, at);
	}
}

/* A SyntaxError says where it is in its attributes. Its offsets are columns
 * from 1 in code points already. */
static void put_syntax_frame(struct bytes *out, PyObject *value)
{
	autobytes body = {0};
	PyObject *file = names_attribute(value, names.filename);
	PyObject *text = names_attribute(value, names.text);
	static const struct {
		PyObject **name;
		enum field_name field;
	} numbers[] = {
		{&names.lineno, FIELD_LINE},
		{&names.offset, FIELD_COLUMN},
		{&names.end_lineno, FIELD_END_LINE},
		{&names.end_offset, FIELD_END_COLUMN},
	};

	put_text_object(&body, FIELD_FILE, file);
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		long number = attribute_number(value, *numbers[i].name);

		if (number > 0)
			frame_put_number(&body, (uint16_t)numbers[i].field, (uint64_t)number);
	}
	if (text && PyUnicode_Check(text)) {
		PyObject *stripped = PyObject_CallMethod(text, "rstrip", "s", "\r\n");

		put_text_object(&body, FIELD_SOURCE, stripped);
		Py_XDECREF(stripped);
	}
	PyErr_Clear();
	Py_XDECREF(file);
	Py_XDECREF(text);
	frame_put(out, FIELD_FRAME, body.data, body.length);
}

/* As CPython prints it: with its module, unless that is builtins or __main__. */
static PyObject *type_name(PyObject *type)
{
	PyObject *module = names_attribute(type, names.module);
	PyObject *name = names_attribute(type, names.qualname);

	if (!name)
		name = PyUnicode_FromString(((PyTypeObject *)type)->tp_name);
	if (module && name && PyUnicode_Check(module) &&
	    PyUnicode_CompareWithASCIIString(module, "builtins") != 0 &&
	    PyUnicode_CompareWithASCIIString(module, "__main__") != 0)
		Py_SETREF(name, PyUnicode_FromFormat("%U.%U", module, name));
	PyErr_Clear();
	Py_XDECREF(module);
	return name;
}

/* As CPython's traceback module words it, which looks for lines in linecache: those
 * of a session's runs lie nowhere else. */
static void print_by_module(PyObject *type, PyObject *value, PyObject *traceback, PyObject *to)
{
	PyObject *module = PyImport_ImportModule("traceback");
	PyObject *function = module ? PyObject_GetAttrString(module, "print_exception") : NULL;
	PyObject *arguments = Py_BuildValue("(OOO)", type, value ? value : Py_None,
					    traceback ? traceback : Py_None);
	PyObject *options = Py_BuildValue("{sO}", "file", to);
	PyObject *result = function && arguments && options
				   ? PyObject_Call(function, arguments, options)
				   : NULL;

	if (!result) {
		PyErr_Clear();
		PyErr_Display(type, value, traceback);
	}
	Py_XDECREF(module);
	Py_XDECREF(function);
	Py_XDECREF(arguments);
	Py_XDECREF(options);
	Py_XDECREF(result);
}

/* CPython's own words, as a str; NULL without an exception. */
static PyObject *display_text(PyObject *type, PyObject *value, PyObject *traceback)
{
	PyObject *buffer = PyObject_CallNoArgs(string_io);
	PyObject *before = PySys_GetObject("stderr"), *text = NULL;

	Py_XINCREF(before);
	if (buffer && PySys_SetObject("stderr", buffer) == 0) {
		if (turn_name())
			print_by_module(type, value, traceback, buffer);
		else
			PyErr_Display(type, value, traceback);
		text = PyObject_CallMethodNoArgs(buffer, names.getvalue);
		PySys_SetObject("stderr", before);
	}
	PyErr_Clear();
	Py_XDECREF(before);
	Py_XDECREF(buffer);
	return text;
}

static void print_error(PyObject *type, PyObject *value, PyObject *traceback, PyObject *text)
{
	PyObject *hook = PySys_GetObject("excepthook"),
		 *standard = PySys_GetObject("__excepthook__");
	PyObject *stream = PySys_GetObject("stderr"), *result;

	if (hook && hook != standard) {
		result = PyObject_CallFunctionObjArgs(hook, type, value,
						      traceback ? traceback : Py_None, NULL);
		if (!result)
			PyErr_WriteUnraisable(hook);
		Py_XDECREF(result);
		return;
	}
	if (text && stream && stream != Py_None &&
	    PyFile_WriteObject(text, stream, Py_PRINT_RAW) < 0)
		PyErr_Clear();
}

static int exit_status(PyObject *value)
{
	PyObject *code = value ? names_attribute(value, names.code) : NULL;
	int status = 1;

	if (!code || code == Py_None) {
		status = 0;
	} else if (PyLong_Check(code)) {
		/* CPython takes the low bits; -1 stands for what does not fit. */
		long number = PyLong_AsLong(code);

		PyErr_Clear();
		status = (int)(number & 0xff);
	} else {
		PyObject *stream = PySys_GetObject("stderr");

		if (stream && stream != Py_None &&
		    (PyFile_WriteObject(code, stream, Py_PRINT_RAW) < 0 ||
		     PyFile_WriteString("\n", stream) < 0))
			PyErr_Clear();
	}
	Py_XDECREF(code);
	return status;
}

int failure_report(PyObject *type, PyObject *value, PyObject *traceback)
{
	autobytes frame = {.ceiling = RESPONSE_BYTES_MAX};
	bool leaving = PyErr_GivenExceptionMatches(type, PyExc_SystemExit);
	PyObject *name, *message, *text = NULL;
	int status = leaving ? exit_status(value) : 1;
	size_t at;

	if (leaving && status == 0)
		return 0;
	at = frame_begin(&frame, MESSAGE_ERROR, 0);
	name = type_name(type);
	message = value ? PyObject_Str(value) : NULL;
	if (!message)
		PyErr_Clear();
	put_text_object(&frame, FIELD_TYPE, name);
	put_text_object(&frame, FIELD_TEXT, message);
	if (value && PyErr_GivenExceptionMatches(type, PyExc_OSError)) {
		long number = attribute_number(value, names.errno_);

		if (number > 0)
			frame_put_number(&frame, FIELD_ERRNO, (uint64_t)number);
	}
	if (!leaving) {
		text = display_text(type, value, traceback);
		put_text_object(&frame, FIELD_TRACEBACK, text);
	}
	put_traceback(&frame, traceback);
	if (value && PyErr_GivenExceptionMatches(type, PyExc_SyntaxError))
		put_syntax_frame(&frame, value);
	if (frame_end(&frame, at) == 0)
		outbox_append(&frame);
	if (!leaving)
		print_error(type, value, traceback, text);
	Py_XDECREF(name);
	Py_XDECREF(message);
	Py_XDECREF(text);
	return status;
}
