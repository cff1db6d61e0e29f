/* SPDX-License-Identifier: Apache-2.0 */
/* print: print() that writes a line at once.
 *
 * Theory of operation. A cell's streams hold nothing back, so that what was printed
 * before a crash or a kill has left the process. CPython's print() writes each
 * argument, each space and the newline for itself: with such streams each of these
 * is a system call, and wakes whoever reads. This one joins the pieces and
 * writes the whole.
 *
 * In every other respect it does what CPython's own does. That one is called for
 * whatever is not a plain text stream, and for arguments that it would refuse. What
 * is joined is written before code of the user's can run (a __str__ that prints, or
 * raises), and piece by piece when the whole could not be encoded. */
#include "guest/guest.h"

#define PIECES 16 /* of more, each so many are written at once */

static PyObject *original, *text_class, *space, *newline;

/* What is to be written, in pieces; new references. */
struct line {
	PyObject *file;
	PyObject *pieces[PIECES];
	int count;
};

/* The pieces as one text, or NULL without an exception when they have to be written
 * one by one. ASCII can be written to every text stream; of anything else it must be
 * known that nothing in it fails. */
static PyObject *join(const struct line *line)
{
	PyObject *whole = Py_NewRef(line->pieces[0]), *encoding = NULL;
	Py_ssize_t length;
	bool sure = true;

	for (int i = 1; whole && i < line->count; i++)
		PyUnicode_Append(&whole, line->pieces[i]);
	if (whole && !PyUnicode_IS_ASCII(whole)) {
		encoding = names_attribute(line->file, names.encoding);
		sure = encoding && PyUnicode_Check(encoding) &&
		       PyUnicode_CompareWithASCIIString(encoding, "utf-8") == 0 &&
		       PyUnicode_AsUTF8AndSize(whole, &length);
	}
	Py_XDECREF(encoding);
	if (!sure)
		Py_CLEAR(whole);
	PyErr_Clear();
	return whole;
}

static int write_piece(const struct line *line, PyObject *piece)
{
	PyObject *result = PyObject_CallMethodOneArg(line->file, names.write, piece);

	Py_XDECREF(result);
	return result ? 0 : -1;
}

static int write_line(struct line *line)
{
	PyObject *whole = line->count > 1 ? join(line) : NULL;
	int r = 0;

	if (whole)
		r = write_piece(line, whole);
	Py_XDECREF(whole);
	for (int i = 0; i < line->count; i++) {
		if (!whole && r == 0)
			r = write_piece(line, line->pieces[i]);
		Py_DECREF(line->pieces[i]);
	}
	line->count = 0;
	return r;
}

static int add(struct line *line, PyObject *text)
{
	if (line->count == PIECES && write_line(line) < 0)
		return -1;
	line->pieces[line->count++] = Py_NewRef(text);
	return 0;
}

/* str() of these is CPython's own code. */
static bool is_plain(PyObject *object)
{
	return PyUnicode_CheckExact(object) || PyLong_CheckExact(object) ||
	       PyFloat_CheckExact(object) || PyBool_Check(object) || object == Py_None;
}

static int add_object(struct line *line, PyObject *object)
{
	PyObject *text;
	int r;

	if (!is_plain(object) && write_line(line) < 0)
		return -1;
	text = PyObject_Str(object);
	r = text ? add(line, text) : -1;
	Py_XDECREF(text);
	return r;
}

struct options {
	PyObject *sep, *end, *file, *flush;
};

/* False when it is for the original to say what is wrong, or to do. */
static bool read_options(PyObject *const *values, PyObject *keywords, struct options *options)
{
	Py_ssize_t count = keywords ? PyTuple_GET_SIZE(keywords) : 0;

	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *name = PyTuple_GET_ITEM(keywords, i), *value = values[i];

		if (name == names.end)
			options->end = value;
		else if (name == names.sep)
			options->sep = value;
		else if (name == names.file)
			options->file = value;
		else if (name == names.flush)
			options->flush = value;
		else
			return false;
	}
	if (!options->sep || options->sep == Py_None)
		options->sep = space;
	if (!options->end || options->end == Py_None)
		options->end = newline;
	if (!options->file || options->file == Py_None)
		options->file = PySys_GetObject("stdout");
	return PyUnicode_CheckExact(options->sep) && PyUnicode_CheckExact(options->end) &&
	       (!options->flush || PyBool_Check(options->flush)) && options->file &&
	       (PyObject *)Py_TYPE(options->file) == text_class;
}

static PyObject *print(PyObject *module, PyObject *const *arguments, Py_ssize_t count,
		       PyObject *keywords)
{
	struct options options = {0};
	struct line line = {0};
	int r = 0;

	if (!read_options(arguments + count, keywords, &options))
		return PyObject_Vectorcall(original, arguments, (size_t)count, keywords);
	/* Code that runs meanwhile may set another. */
	line.file = Py_NewRef(options.file);
	for (Py_ssize_t i = 0; i < count && r == 0; i++) {
		if (i > 0)
			r = add(&line, options.sep);
		if (r == 0)
			r = add_object(&line, arguments[i]);
	}
	if (r == 0)
		r = add(&line, options.end);
	if (r == 0) {
		r = write_line(&line);
	} else {
		/* What came before has been printed. */
		PyObject *type, *value, *traceback;

		PyErr_Fetch(&type, &value, &traceback);
		write_line(&line);
		PyErr_Clear();
		PyErr_Restore(type, value, traceback);
	}
	if (r == 0 && options.flush == Py_True) {
		PyObject *result = PyObject_CallMethodNoArgs(line.file, names.flush);

		Py_XDECREF(result);
		r = result ? 0 : -1;
	}
	Py_DECREF(line.file);
	return r == 0 ? Py_NewRef(Py_None) : NULL;
}

int print_install(struct error *err)
{
	static PyMethodDef definition;
	PyObject *builtins = PyImport_AddModule("builtins"); /* borrowed */
	PyObject *name = PyUnicode_FromString("builtins"), *io = PyImport_ImportModule("_io");
	PyObject *function = NULL;
	int r = -1;

	original = builtins ? PyObject_GetAttrString(builtins, "print") : NULL;
	text_class = io ? PyObject_GetAttrString(io, "TextIOWrapper") : NULL;
	space = PyUnicode_InternFromString(" ");
	newline = PyUnicode_InternFromString("\n");
	if (original && PyCFunction_CheckExact(original) && text_class && space && newline &&
	    name) {
		/* Its name and its words. */
		definition = *((PyCFunctionObject *)original)->m_ml;
		definition.ml_meth = (PyCFunction)(void (*)(void))print;
		definition.ml_flags = METH_FASTCALL | METH_KEYWORDS;
		function = PyCFunction_NewEx(&definition, builtins, name);
	}
	if (function)
		r = PyObject_SetAttrString(builtins, "print", function);
	Py_XDECREF(function);
	Py_XDECREF(name);
	Py_XDECREF(io);
	return r < 0 ? interpreter_error(err, "guest: print") : 0;
}
