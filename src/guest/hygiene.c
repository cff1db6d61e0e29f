/* SPDX-License-Identifier: Apache-2.0 */
/* hygiene: a cell must not look like its siblings.
 *
 * CPython's own after-fork handlers have run (they reseed `random` and renew
 * locks). What they do not know is here: numpy's legacy generator, OpenSSL's
 * pool, temporary names, uuid's node. Modules that the template did not load
 * need nothing; they are found in sys.modules, never imported. The hash seed
 * and the address layout are shared by all cells of a template: that is why
 * templates are replaced. */
#include "guest/guest.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

/* A borrowed reference to a loaded module, or NULL without an error. */
static PyObject *loaded(const char *name)
{
	return PyDict_GetItemString(PyImport_GetModuleDict(), name);
}

static int set_none(const char *module, const char *attribute)
{
	PyObject *object = loaded(module);

	if (!object || !PyObject_HasAttrString(object, attribute))
		return 0;
	return PyObject_SetAttrString(object, attribute, Py_None);
}

static int call_seed(const char *module)
{
	PyObject *object = loaded(module), *result;

	if (!object)
		return 0;
	result = PyObject_CallMethod(object, "seed", NULL);
	if (!result)
		return -1;
	Py_DECREF(result);
	return 0;
}

static int stir_openssl(void)
{
	PyObject *object = loaded("_ssl"), *result;
	char entropy[32];

	if (!object)
		return 0;
	if (getrandom(entropy, sizeof entropy, 0) != sizeof entropy) {
		PyErr_SetFromErrno(PyExc_OSError);
		return -1;
	}
	result = PyObject_CallMethod(object, "RAND_add", "y#d", entropy, (Py_ssize_t)sizeof entropy,
				     (double)sizeof entropy);
	if (!result)
		return -1;
	Py_DECREF(result);
	return 0;
}

int hygiene_refresh(struct error *err)
{
	if (call_seed("random") < 0 || call_seed("numpy.random") < 0 || stir_openssl() < 0 ||
	    set_none("tempfile", "_name_sequence") < 0 || set_none("tempfile", "tempdir") < 0 ||
	    set_none("uuid", "_node") < 0 || set_none("uuid", "_last_timestamp") < 0)
		return interpreter_error(err, "cell: hygiene");
	tzset();
	return 0;
}

/* A text stream on descriptor `fd` as `python -u` makes it: what was printed
 * before a crash or a kill has left the process. */
static PyObject *open_stream(PyObject *io, int fd, const char *name, const char *errors)
{
	PyObject *raw, *text = NULL, *label;
	int reading = fd == 0;

	raw = PyObject_CallMethod(io, "open", "isisssO", fd, reading ? "rb" : "wb",
				  reading ? -1 : 0, NULL, NULL, NULL, Py_False);
	if (!raw)
		return NULL;
	if (reading) {
		text = PyObject_CallMethod(io, "TextIOWrapper", "Osss", raw, "utf-8", errors, NULL);
	} else {
		PyObject *class = PyObject_GetAttrString(io, "TextIOWrapper");
		PyObject *arguments = Py_BuildValue("(O)", raw);
		PyObject *options =
			Py_BuildValue("{ss,ss,ss,sO}", "encoding", "utf-8", "errors", errors,
				      "newline", "\n", "write_through", Py_True);

		if (class && arguments && options)
			text = PyObject_Call(class, arguments, options);
		Py_XDECREF(class);
		Py_XDECREF(arguments);
		Py_XDECREF(options);
	}
	Py_DECREF(raw);
	label = PyUnicode_FromString(name);
	if (text && label) {
		PyObject *mode = PyUnicode_FromString(reading ? "r" : "w");

		PyObject_SetAttrString(raw, "name", label);
		PyErr_Clear();
		if (mode)
			PyObject_SetAttrString(text, "mode", mode);
		Py_XDECREF(mode);
	}
	Py_XDECREF(label);
	return text;
}

int hygiene_streams(struct error *err)
{
	static const struct {
		int fd;
		const char *name, *original, *label, *errors;
	} streams[] = {
		{0, "stdin", "__stdin__", "<stdin>", "strict"},
		{1, "stdout", "__stdout__", "<stdout>", "strict"},
		{2, "stderr", "__stderr__", "<stderr>", "backslashreplace"},
	};
	PyObject *io = PyImport_ImportModule("io");
	int r = 0;

	if (!io)
		return interpreter_error(err, "cell: import io");
	for (size_t i = 0; i < sizeof streams / sizeof streams[0] && r == 0; i++) {
		PyObject *stream =
			open_stream(io, streams[i].fd, streams[i].label, streams[i].errors);

		if (!stream || PySys_SetObject(streams[i].name, stream) < 0 ||
		    PySys_SetObject(streams[i].original, stream) < 0)
			r = interpreter_error(err, "cell: standard streams");
		Py_XDECREF(stream);
	}
	Py_DECREF(io);
	return r;
}
