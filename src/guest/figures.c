/* SPDX-License-Identifier: Apache-2.0 */
/* figures: matplotlib's figures as PNG, without any call by the user.
 *
 * MPLBACKEND names the module below: Agg with a show() that hands the open
 * figures over instead of warning that it cannot. Figures that nobody showed
 * are handed over at the end of the run.
 *
 * With EXECPY_CHARTS in the environment what a figure shows is handed over as data,
 * too (charts.py, which is compiled when it is first needed). */
#include "guest/guest.h"

#include <stdlib.h>

extern const char charts_source[]; /* made by tools/embed.py */

/* An instance of a class of a module, which, if it is not there, has none. */
static bool is_of(PyObject *object, PyObject *module_name, PyObject *class_name)
{
	PyObject *module = names_loaded(module_name);
	PyObject *class = module ? names_attribute(module, class_name) : NULL;
	int is = class ? PyObject_IsInstance(object, class) : 0;

	PyErr_Clear();
	Py_XDECREF(class);
	return is > 0;
}

/* Saved with so many dots an inch, or 0: as the figure has it. */
static PyObject *save_with(PyObject *figure, double dpi)
{
	PyObject *io, *buffer, *save, *arguments, *options, *result = NULL, *png = NULL;

	io = PyImport_ImportModule("io");
	buffer = io ? PyObject_CallMethod(io, "BytesIO", NULL) : NULL;
	save = PyObject_GetAttr(figure, names.savefig);
	arguments = buffer ? Py_BuildValue("(O)", buffer) : NULL;
	/* Not bbox_inches="tight": it draws everything twice. */
	options = dpi > 0 ? Py_BuildValue("{sssd}", "format", "png", "dpi", dpi)
			  : Py_BuildValue("{ss}", "format", "png");
	if (save && arguments && options)
		result = PyObject_Call(save, arguments, options);
	if (result)
		png = PyObject_CallMethodNoArgs(buffer, names.getvalue);
	PyErr_Clear();
	Py_XDECREF(io);
	Py_XDECREF(buffer);
	Py_XDECREF(save);
	Py_XDECREF(arguments);
	Py_XDECREF(options);
	Py_XDECREF(result);
	return png;
}

/* The longer side, in inches; 0 when it does not say. */
static double longer_side(PyObject *figure)
{
	PyObject *size = PyObject_CallMethod(figure, "get_size_inches", NULL);
	double longer = 0;

	for (Py_ssize_t i = 0; size && i < 2; i++) {
		PyObject *item = PySequence_GetItem(size, i);
		double side = item ? PyFloat_AsDouble(item) : 0;

		if (side > longer)
			longer = side;
		Py_XDECREF(item);
	}
	PyErr_Clear();
	Py_XDECREF(size);
	return longer;
}

/* What is too large is drawn a second time: how many dots an inch there are can come
 * from the figure or from several settings, so the picture itself is asked. */
static PyObject *save_png(PyObject *figure)
{
	PyObject *png = save_with(figure, 0), *smaller;
	double side;

	if (!png || !PyBytes_Check(png) || !pictures_excess(png))
		return png;
	side = longer_side(figure);
	smaller = side > 0 ? save_with(figure, pictures_most() / side) : NULL;
	if (!smaller)
		return png;
	Py_DECREF(png);
	return smaller;
}

/* Until it is drawn for the first time an animation's figure is empty. */
static PyObject *first_frame(PyObject *animation)
{
	PyObject *drawn = PyObject_CallMethodNoArgs(animation, names.init_draw);
	PyObject *figure = names_attribute(animation, names.animation_figure);
	PyObject *png = NULL;

	PyErr_Clear();
	if (figure && is_of(figure, names.figure_module, names.figure_class))
		png = save_png(figure);
	Py_XDECREF(drawn);
	Py_XDECREF(figure);
	return png;
}

PyObject *figures_png(PyObject *object)
{
	if (is_of(object, names.figure_module, names.figure_class))
		return save_png(object);
	if (is_of(object, names.animations, names.animation_class))
		return first_frame(object);
	return NULL;
}

static PyObject *load_charts(void)
{
	static PyObject *module;
	PyObject *code, *result, *globals;

	if (module)
		return module;
	module = PyModule_New("execpy_charts");
	globals = module ? PyModule_GetDict(module) : NULL;
	code = globals ? Py_CompileString(charts_source, "<execpy charts>", Py_file_input) : NULL;
	result = code ? PyEval_EvalCode(code, globals, globals) : NULL;
	if (!result)
		Py_CLEAR(module);
	Py_XDECREF(code);
	Py_XDECREF(result);
	return module;
}

PyObject *figures_chart(PyObject *object)
{
	PyObject *charts, *chart = NULL;

	if (!getenv("EXECPY_CHARTS") || !is_of(object, names.figure_module, names.figure_class))
		return NULL;
	charts = load_charts();
	if (charts)
		chart = PyObject_CallMethod(charts, "chart", "O", object);
	PyErr_Clear();
	if (chart == Py_None)
		Py_CLEAR(chart);
	return chart;
}

/* pyplot's numbered figures, in order. Never imports pyplot: if it is not
 * there, there are none. */
void figures_show(bool close)
{
	PyObject *pyplot = names_loaded(names.pyplot);
	PyObject *numbers, *result;

	if (!pyplot)
		return;
	numbers = PyObject_CallMethodNoArgs(pyplot, names.get_fignums);
	for (Py_ssize_t i = 0; numbers && i < PyList_Size(numbers); i++) {
		PyObject *figure =
			PyObject_CallMethodOneArg(pyplot, names.figure, PyList_GetItem(numbers, i));

		if (figure)
			display_object(MESSAGE_DISPLAY, figure);
		Py_XDECREF(figure);
	}
	Py_XDECREF(numbers);
	if (close) {
		result = PyObject_CallMethod(pyplot, "close", "s", "all");
		Py_XDECREF(result);
	}
	PyErr_Clear();
}

static PyObject *show(PyObject *self, PyObject *arguments, PyObject *options)
{
	figures_show(true);
	Py_RETURN_NONE;
}

static int backend_exec(PyObject *module)
{
	PyObject *agg = PyImport_ImportModule("matplotlib.backends.backend_agg");
	static const char *const classes[] = {"FigureCanvasAgg", "FigureManagerBase"};
	static const char *const aliases[] = {"FigureCanvas", "FigureManager"};
	PyObject *bases = PyImport_ImportModule("matplotlib.backend_bases");
	int r = agg && bases ? 0 : -1;

	for (int i = 0; i < 2 && r == 0; i++) {
		PyObject *value = PyObject_GetAttrString(i == 0 ? agg : bases, classes[i]);

		r = value ? PyModule_AddObjectRef(module, aliases[i], value) : -1;
		Py_XDECREF(value);
	}
	Py_XDECREF(agg);
	Py_XDECREF(bases);
	return r;
}

PyObject *figures_backend_init(void)
{
	static PyMethodDef methods[] = {{"show", (PyCFunction)(void (*)(void))show,
					 METH_VARARGS | METH_KEYWORDS,
					 "show($module, /, *args, **kwargs)\n--\n\n"
					 "Hands the open figures over to the result of this run."},
					{NULL, NULL, 0, NULL}};
	static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)backend_exec}, {0, NULL}};
	static PyModuleDef definition = {
		PyModuleDef_HEAD_INIT,
		.m_name = FIGURES_BACKEND,
		.m_doc = "matplotlib's Agg backend, with figures shown in the result of the run.",
		.m_methods = methods,
		.m_slots = slots,
	};

	return PyModuleDef_Init(&definition);
}
