/* SPDX-License-Identifier: Apache-2.0 */
/* ipython: `from IPython.display import display, HTML, …`, which is how models write it,
 * also where IPython is not installed.
 *
 * A finder at the end of sys.meta_path, behind all others: an IPython that is
 * installed comes first. Only the module whose functions show something is ours there, too,
 * by a finder before all others: IPython's own would print. The modules' source is part of
 * this program (ipython_….py) and is compiled only when it is imported. There is no shell
 * behind it: get_ipython() gives None, as IPython's own does outside of one. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <string.h>

extern const char ipython_display[], ipython_functions[]; /* made by tools/embed.py */

static const struct {
	const char *name, *source;
	bool package;
	bool first; /* before one that is installed */
} modules[] = {
	{"IPython.core.display_functions", ipython_functions, false, true},
	{"IPython", "import IPython.display\n\n\ndef get_ipython():\n    return None\n", true,
	 false},
	{"IPython.core", "", true, false},
	{"IPython.core.display", "from IPython.display import *\n", false, false},
	{"IPython.display", ipython_display, false, false},
};

static const char *source_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(modules); i++)
		if (strcmp(modules[i].name, name) == 0)
			return modules[i].source;
	return NULL;
}

static PyObject *create_module(PyObject *self, PyObject *spec)
{
	return Py_NewRef(Py_None);
}

static PyObject *exec_module(PyObject *self, PyObject *module)
{
	const char *name = PyModule_GetName(module), *source = name ? source_of(name) : NULL;
	PyObject *globals = PyModule_GetDict(module), *code, *result;

	if (!source || !globals)
		return PyErr_Format(PyExc_ImportError, "no module of IPython");
	code = Py_CompileString(source, "<IPython>", Py_file_input);
	result = code ? PyEval_EvalCode(code, globals, globals) : NULL;
	Py_XDECREF(code);
	return result;
}

/* An object with functions of ours as its attributes. */
static PyObject *object_with(PyMethodDef *methods)
{
	PyObject *types = PyImport_ImportModule("types");
	PyObject *object = types ? PyObject_CallMethod(types, "SimpleNamespace", NULL) : NULL;

	for (; object && methods->ml_name; methods++) {
		PyObject *function = PyCFunction_New(methods, NULL);

		if (!function || PyObject_SetAttrString(object, methods->ml_name, function) < 0)
			Py_CLEAR(object);
		Py_XDECREF(function);
	}
	Py_XDECREF(types);
	return object;
}

static PyObject *make_spec(const char *name, bool package)
{
	static PyMethodDef methods[] = {{"create_module", create_module, METH_O, NULL},
					{"exec_module", exec_module, METH_O, NULL},
					{NULL, NULL, 0, NULL}};
	PyObject *machinery = PyImport_ImportModule("importlib.machinery");
	PyObject *class = machinery ? PyObject_GetAttrString(machinery, "ModuleSpec") : NULL;
	PyObject *loader = class ? object_with(methods) : NULL;
	PyObject *arguments = loader ? Py_BuildValue("(sO)", name, loader) : NULL;
	PyObject *options = Py_BuildValue("{sssO}", "origin", "execpy", "is_package",
					  package ? Py_True : Py_False);
	PyObject *spec = arguments && options ? PyObject_Call(class, arguments, options) : NULL;

	Py_XDECREF(machinery);
	Py_XDECREF(class);
	Py_XDECREF(loader);
	Py_XDECREF(arguments);
	Py_XDECREF(options);
	return spec;
}

/* The spec of a module of ours, or None. */
static PyObject *find(PyObject *arguments, bool first)
{
	PyObject *object = PyTuple_GET_SIZE(arguments) > 0 ? PyTuple_GET_ITEM(arguments, 0) : NULL;
	const char *name = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;

	PyErr_Clear();
	for (size_t i = 0; name && i < ARRAY_LENGTH(modules); i++)
		if ((modules[i].first || !first) && strcmp(modules[i].name, name) == 0)
			return make_spec(name, modules[i].package);
	return Py_NewRef(Py_None);
}

/* find_spec(name, path, target): asked for every module that is not there yet. */
static PyObject *find_first(PyObject *self, PyObject *arguments, PyObject *options)
{
	return find(arguments, true);
}

/* The same, for every module that nobody else has. */
static PyObject *find_last(PyObject *self, PyObject *arguments, PyObject *options)
{
	return find(arguments, false);
}

int ipython_install(struct error *err)
{
	static PyMethodDef first[] = {{"find_spec", (PyCFunction)(void (*)(void))find_first,
				       METH_VARARGS | METH_KEYWORDS, NULL},
				      {NULL, NULL, 0, NULL}};
	static PyMethodDef last[] = {{"find_spec", (PyCFunction)(void (*)(void))find_last,
				      METH_VARARGS | METH_KEYWORDS, NULL},
				     {NULL, NULL, 0, NULL}};
	PyObject *before = object_with(first), *behind = object_with(last);
	PyObject *path = PySys_GetObject("meta_path"); /* borrowed */
	int r = before && behind && path ? PyList_Insert(path, 0, before) : -1;

	if (r == 0)
		r = PyList_Append(path, behind);
	Py_XDECREF(before);
	Py_XDECREF(behind);
	return r < 0 ? interpreter_error(err, "guest: install IPython.display") : 0;
}
