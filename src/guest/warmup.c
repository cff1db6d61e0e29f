/* SPDX-License-Identifier: Apache-2.0 */
/* warmup: runs a template's warm-up, and leaves no trace of it but warmth.
 *
 * The code is ours or the operator's (policy/templates.h), so it may do what it
 * likes; but what it prints is nobody's, and a warning that it meets must still
 * be new to user code. Its names live in a dictionary of their own and go with
 * it. What a warm-up itself must see to: open files and threads are refused
 * afterwards (template.c), and state of libraries that it changes stays. */
#include "guest/guest.h"

#include "base/cleanup.h"

/* Warm-ups run with these instead of the template's log, and without warnings:
 * an ignored one is not remembered as having been shown. */
struct quiet {
	PyObject *streams[2], *before[2], *warnings;
};

static const char *const stream_names[2] = {"stdout", "stderr"};

static int begin_quiet(struct quiet *quiet)
{
	PyObject *io = PyImport_ImportModule("io");
	PyObject *module = PyImport_ImportModule("warnings");
	PyObject *result = NULL;

	for (size_t i = 0; io && i < 2; i++) {
		quiet->before[i] = Py_XNewRef(PySys_GetObject(stream_names[i]));
		quiet->streams[i] = PyObject_CallMethod(io, "StringIO", NULL);
		if (quiet->streams[i])
			PySys_SetObject(stream_names[i], quiet->streams[i]);
	}
	quiet->warnings = module ? PyObject_CallMethod(module, "catch_warnings", NULL) : NULL;
	if (quiet->warnings)
		result = PyObject_CallMethod(quiet->warnings, "__enter__", NULL);
	if (result) {
		Py_DECREF(result);
		result = PyObject_CallMethod(module, "simplefilter", "s", "ignore");
	}
	Py_XDECREF(io);
	Py_XDECREF(module);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static void end_quiet(struct quiet *quiet)
{
	PyObject *type, *value, *traceback, *result = NULL;

	PyErr_Fetch(&type, &value, &traceback);
	if (quiet->warnings)
		result = PyObject_CallMethod(quiet->warnings, "__exit__", "OOO", Py_None, Py_None,
					     Py_None);
	Py_XDECREF(result);
	Py_XDECREF(quiet->warnings);
	for (size_t i = 0; i < 2; i++) {
		if (quiet->before[i])
			PySys_SetObject(stream_names[i], quiet->before[i]);
		Py_XDECREF(quiet->before[i]);
		Py_XDECREF(quiet->streams[i]);
	}
	PyErr_Restore(type, value, traceback);
}

/* The warm-up's own line in the traceback of the exception that is set, or 0. */
static long failed_line(void)
{
	PyObject *type, *value, *traceback, *number;
	long line = 0;

	PyErr_Fetch(&type, &value, &traceback);
	number = traceback ? PyObject_GetAttrString(traceback, "tb_lineno") : NULL;
	if (number)
		line = PyLong_AsLong(number);
	Py_XDECREF(number);
	PyErr_Restore(type, value, traceback);
	return line;
}

int warm_up(struct span code, struct error *err)
{
	struct quiet quiet = {0};
	autofree char *text = span_to_string(code);
	PyObject *globals = Py_BuildValue("{ss}", "__name__", "warm_up");
	PyObject *compiled = NULL, *result = NULL;
	char what[40] = "warm-up";
	long line;

	if (!text)
		return fail(err, ENOMEM, "template: warm-up");
	if (globals && begin_quiet(&quiet) == 0 &&
	    PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0)
		compiled = Py_CompileString(text, "<warm-up>", Py_file_input);
	if (compiled)
		result = PyEval_EvalCode(compiled, globals, globals);
	line = result || !compiled ? 0 : failed_line();
	if (line)
		snprintf(what, sizeof what, "warm-up, line %ld", line);
	end_quiet(&quiet);
	display_forget();
	Py_XDECREF(compiled);
	Py_XDECREF(globals);
	if (!result)
		return interpreter_error(err, what);
	Py_DECREF(result);
	return 0;
}
