/* SPDX-License-Identifier: Apache-2.0 */
/* names: the Python names that a run needs, interned once.
 *
 * A C string makes a new str object each time, and CPython's cache of methods
 * finds nothing by a name that is new: every such look-up writes to another page
 * of the cache, which a cell then has to copy. */
#ifndef EXECPY_GUEST_NAMES_H
#define EXECPY_GUEST_NAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* What no honest object has: one that answers to it answers to any name. */
#define CANARY_NAME "_ipython_canary_method_should_not_exist_"

/* The identifier in C, and the text. */
#define NAME_TABLE(X)                           \
	X(animation_class, "Animation")         \
	X(animation_figure, "_fig")             \
	X(animations, "matplotlib.animation")   \
	X(body, "body")                         \
	X(canary, CANARY_NAME)                  \
	X(close, "close")                       \
	X(code, "code")                         \
	X(encoding, "encoding")                 \
	X(end, "end")                           \
	X(end_lineno, "end_lineno")             \
	X(end_offset, "end_offset")             \
	X(errno_, "errno")                      \
	X(figure, "figure")                     \
	X(figure_class, "Figure")               \
	X(figure_module, "matplotlib.figure")   \
	X(file, "file")                         \
	X(filename, "filename")                 \
	X(filters, "filters")                   \
	X(flush, "flush")                       \
	X(get_fignums, "get_fignums")           \
	X(getvalue, "getvalue")                 \
	X(init_draw, "_init_draw")              \
	X(ipython_display, "_ipython_display_") \
	X(lineno, "lineno")                     \
	X(module, "__module__")                 \
	X(node, "_node")                        \
	X(name_sequence, "_name_sequence")      \
	X(numpy_random, "numpy.random")         \
	X(offset, "offset")                     \
	X(openssl, "_ssl")                      \
	X(pillow, "PIL.Image")                  \
	X(pyplot, "matplotlib.pyplot")          \
	X(qualname, "__qualname__")             \
	X(rand_add, "RAND_add")                 \
	X(random, "random")                     \
	X(repr_html, "_repr_html_")             \
	X(repr_jpeg, "_repr_jpeg_")             \
	X(repr_json, "_repr_json_")             \
	X(repr_latex, "_repr_latex_")           \
	X(repr_markdown, "_repr_markdown_")     \
	X(repr_mimebundle, "_repr_mimebundle_") \
	X(repr_png, "_repr_png_")               \
	X(repr_svg, "_repr_svg_")               \
	X(savefig, "savefig")                   \
	X(seed, "seed")                         \
	X(sep, "sep")                           \
	X(shutdown, "_shutdown")                \
	X(tb_lineno, "tb_lineno")               \
	X(tempdir, "tempdir")                   \
	X(tempfile, "tempfile")                 \
	X(text, "text")                         \
	X(threading, "threading")               \
	X(to_json, "to_json")                   \
	X(to_plotly_json, "to_plotly_json")     \
	X(timestamp, "_last_timestamp")         \
	X(uuid, "uuid")                         \
	X(value, "value")                       \
	X(warnings, "warnings")                 \
	X(write, "write")

struct names {
#define NAME_FIELD(identifier, text) PyObject *identifier;
	NAME_TABLE(NAME_FIELD)
#undef NAME_FIELD
};

/* Filled once, before any of them is used. Stage: template. */
extern struct names names;
int names_init(void);

/* A borrowed reference to a loaded module, or NULL without an exception. */
PyObject *names_loaded(PyObject *module);
/* An attribute (new reference), or NULL: an object that fails to answer has
 * none. Leaves no exception. */
PyObject *names_attribute(PyObject *object, PyObject *name);

#endif
