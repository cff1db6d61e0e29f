/* SPDX-License-Identifier: Apache-2.0 */
/* run: from a request to the end of the process.
 *
 * Theory of operation. The bytes that were sent are what is parsed; they also
 * lie in the workspace as main.py, so that tracebacks, inspect and
 * multiprocessing find their source as they would outside. The syntax tree's
 * last statement, if it is an expression, is compiled apart, so that its value
 * can be shown. The end is CPython's own order without its finalisation
 * (which takes longer than most runs): threads are waited for, atexit
 * handlers run, __main__ is cleared so that open files are written, streams
 * are flushed. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct span source;

struct span run_source(void)
{
	return source;
}

/* PyCF_ONLY_AST through the builtin, so that the bytes' own encoding cookie is
 * honoured as in a file. */
static PyObject *call_compile(PyObject *what, const char *mode, int flags)
{
	PyObject *builtins = PyEval_GetBuiltins(); /* borrowed */
	PyObject *compile = PyDict_GetItemString(builtins, "compile");

	if (!compile) {
		PyErr_SetString(PyExc_RuntimeError, "compile is gone");
		return NULL;
	}
	return PyObject_CallFunction(compile, "OssiO", what, RUN_FILE_NAME, mode, flags, Py_True);
}

/* Takes the last statement off the tree when it is an expression: returns a
 * new ast.Expression, or Py_None, or NULL with an exception. */
static PyObject *split_last(PyObject *tree)
{
	PyObject *ast = PyImport_ImportModule("_ast");
	PyObject *body = PyObject_GetAttrString(tree, "body");
	PyObject *kind = NULL, *value = NULL, *result = NULL;
	Py_ssize_t count;

	if (!ast || !body)
		goto done;
	count = PyList_Size(body);
	kind = PyObject_GetAttrString(ast, "Expr");
	if (!kind || count < 0)
		goto done;
	if (count == 0 || Py_TYPE(PyList_GET_ITEM(body, count - 1)) != (PyTypeObject *)kind) {
		result = Py_NewRef(Py_None);
		goto done;
	}
	value = PyObject_GetAttrString(PyList_GET_ITEM(body, count - 1), "value");
	if (!value || PyList_SetSlice(body, count - 1, count, NULL) < 0)
		goto done;
	result = PyObject_CallMethod(ast, "Expression", "O", value);
done:
	Py_XDECREF(ast);
	Py_XDECREF(body);
	Py_XDECREF(kind);
	Py_XDECREF(value);
	return result;
}

/* Runs the code in the dictionary of __main__. Returns the value of a last
 * expression (or None), or NULL with the exception that ended it. */
static PyObject *execute(struct span code, PyObject *globals)
{
	/* CO_FUTURE_…: what `from __future__` asked for holds for the last line. */
	const int future_mask = PyCF_MASK;
	PyObject *bytes =
		PyBytes_FromStringAndSize((const char *)code.data, (Py_ssize_t)code.length);
	PyObject *tree = bytes ? call_compile(bytes, "exec", PyCF_ONLY_AST) : NULL;
	PyObject *last = tree ? split_last(tree) : NULL;
	PyObject *first_code = last ? call_compile(tree, "exec", 0) : NULL;
	PyObject *last_code = NULL, *result = NULL;

	if (first_code && last != Py_None) {
		int flags = ((PyCodeObject *)first_code)->co_flags & future_mask;

		last_code = call_compile(last, "eval", flags);
	}
	if (!first_code || (last != Py_None && !last_code))
		goto done;
	result = PyEval_EvalCode(first_code, globals, globals);
	if (result && last_code) {
		Py_DECREF(result);
		result = PyEval_EvalCode(last_code, globals, globals);
	}
done:
	Py_XDECREF(bytes);
	Py_XDECREF(tree);
	Py_XDECREF(last);
	Py_XDECREF(first_code);
	Py_XDECREF(last_code);
	return result;
}

int run_rehearsal(struct error *err)
{
	static const char text[] = "class _C:\n\tdef f(self, x):\n\t\treturn [x for x in (x, 1)]\n"
				   "_C().f(0)\n";
	PyObject *globals = PyDict_New(), *result = NULL;

	if (globals && PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0)
		result = execute((struct span){(const uint8_t *)text, sizeof text - 1}, globals);
	if (!result) {
		Py_XDECREF(globals);
		return interpreter_error(err, "cell: rehearsal");
	}
	Py_DECREF(result);
	Py_DECREF(globals);
	return 0;
}

static int main_file = -1;

int run_open_main(struct error *err)
{
	main_file = open(RUN_FILE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return main_file < 0 ? fail(err, errno, "cell: create " RUN_FILE_NAME) : 0;
}

static int write_main(struct span code)
{
	size_t done = 0;

	while (done < code.length) {
		ssize_t r = write(main_file, code.data + done, code.length - done);

		if (r <= 0)
			return -1;
		done += (size_t)r;
	}
	return close(main_file);
}

/* os.environ was filled when the template started; both it and the process's
 * own environment get the request's variables. */
static int set_environment(const char *text)
{
	PyObject *os = PyImport_ImportModule("os");
	PyObject *environment = os ? PyObject_GetAttrString(os, "environ") : NULL;
	const char *equals = strchr(text, '=');
	PyObject *name = NULL, *value = NULL;
	int r = -1;

	if (environment && equals) {
		name = PyUnicode_DecodeFSDefaultAndSize(text, equals - text);
		value = PyUnicode_DecodeFSDefault(equals + 1);
		/* os.environ calls putenv() itself. */
		if (name && value)
			r = PyObject_SetItem(environment, name, value);
	}
	Py_XDECREF(os);
	Py_XDECREF(environment);
	Py_XDECREF(name);
	Py_XDECREF(value);
	return r;
}

static int set_text(PyObject *dictionary, const char *key, const char *text)
{
	PyObject *value = PyUnicode_FromString(text);
	int r = value ? PyDict_SetItemString(dictionary, key, value) : -1;

	Py_XDECREF(value);
	return r;
}

/* What the mailbox asked for. */
struct order {
	PyObject *arguments; /* sys.argv */
	struct policy policy;
	struct verify_context context;
	const char *files[INPUT_FILES_MAX + 1];
	bool check_only, probe;
};

static int take_field(struct order *order, const struct field *field)
{
	autofree char *text = NULL;
	struct error err = {0};
	uint64_t number = 0;
	PyObject *item;
	int r;

	switch (field->name) {
	case FIELD_CODE:
		source = field->value;
		return 0;
	case FIELD_ARGUMENT:
		item = PyUnicode_DecodeFSDefaultAndSize((const char *)field->value.data,
							(Py_ssize_t)field->value.length);
		r = item ? PyList_Append(order->arguments, item) : -1;
		Py_XDECREF(item);
		return r;
	case FIELD_ENVIRONMENT:
		text = span_to_string(field->value);
		return text ? set_environment(text) : -1;
	case FIELD_POLICY:
		return policy_decode(field->value, &order->policy, &err);
	case FIELD_NAME:
		if (order->context.file_count == INPUT_FILES_MAX)
			return -1;
		order->files[order->context.file_count] = span_to_string(field->value);
		return order->files[order->context.file_count++] ? 0 : -1;
	case FIELD_STDIN:
		r = field_number(field, &number);
		order->context.has_stdin = number != 0;
		return r;
	case FIELD_WALL_US:
		r = field_number(field, &number);
		order->context.time_ms = number / 1000;
		return r;
	case FIELD_CHECK:
		r = field_number(field, &number);
		order->check_only = number != 0;
		return r;
	case FIELD_PROBE:
		r = field_number(field, &number);
		order->probe = number != 0;
		return r;
	default:
		return 0;
	}
}

static int read_order(struct span request, struct order *order)
{
	struct reader reader = reader_of(request);
	struct reader fields;
	struct frame frame;
	struct field field;
	int r;

	order->policy = policy_profile(PROFILE_STRICT);
	order->context.files = order->files;
	order->arguments = Py_BuildValue("[s]", RUN_FILE_NAME);
	if (!order->arguments || frame_next(&reader, MAILBOX_REQUEST_BYTES, &frame) != 1 ||
	    frame.type != MESSAGE_REQUEST)
		return -1;
	fields = frame_fields(&frame);
	while ((r = frame_next_field(&fields, &field)) == 1)
		if (take_field(order, &field) < 0)
			return -1;
	return r;
}

/* argv, path and the module that the code will be. */
static PyObject *prepare(const struct order *order)
{
	PyObject *directory = PyUnicode_FromString("/workspace");
	PyObject *path = PySys_GetObject("path");          /* borrowed */
	PyObject *module = PyImport_AddModule("__main__"); /* borrowed */
	PyObject *globals;

	if (!directory || !path || !module || write_main(source) < 0 ||
	    PySys_SetObject("argv", order->arguments) < 0 || PyList_Insert(path, 0, directory) < 0)
		return NULL;
	Py_DECREF(directory);
	globals = PyModule_GetDict(module);
	if (set_text(globals, "__file__", "/workspace/" RUN_FILE_NAME) < 0 ||
	    PyDict_SetItemString(globals, "__cached__", Py_None) < 0)
		return NULL;
	return globals;
}

/* As CPython's own module clearing: names with one leading underscore first,
 * then all but __builtins__, each replaced by None. */
static void clear_module(PyObject *globals)
{
	for (int pass = 0; pass < 2; pass++) {
		PyObject *keys = PyDict_Keys(globals);
		Py_ssize_t count = keys ? PyList_GET_SIZE(keys) : 0;

		for (Py_ssize_t i = 0; i < count; i++) {
			PyObject *key = PyList_GET_ITEM(keys, i);
			const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;

			if (!name || strcmp(name, "__builtins__") == 0)
				continue;
			if (pass == 0 && (name[0] != '_' || name[1] == '_'))
				continue;
			if (PyDict_SetItem(globals, key, Py_None) < 0)
				PyErr_Clear();
		}
		PyErr_Clear();
		Py_XDECREF(keys);
	}
}

static PyObject *call_module(const char *module, const char *function)
{
	PyObject *object = PyDict_GetItemString(PyImport_GetModuleDict(), module);

	if (!object)
		return Py_NewRef(Py_None);
	return PyObject_CallMethod(object, function, NULL);
}

static void flush(const char *name)
{
	PyObject *stream = PySys_GetObject(name), *result;

	if (!stream || stream == Py_None)
		return;
	result = PyObject_CallMethod(stream, "flush", NULL);
	if (!result)
		PyErr_Clear();
	Py_XDECREF(result);
}

/* What Py_Finalize does for the user, without what it does for CPython. */
static void wind_down(PyObject *globals)
{
	PyObject *result, *gc;

	result = call_module("threading", "_shutdown");
	if (!result)
		PyErr_WriteUnraisable(NULL);
	Py_XDECREF(result);
	/* Exceptions in handlers are printed by atexit itself. */
	result = PyImport_ImportModule("atexit");
	if (result) {
		PyObject *called = PyObject_CallMethod(result, "_run_exitfuncs", NULL);

		if (!called)
			PyErr_WriteUnraisable(NULL);
		Py_XDECREF(called);
		Py_DECREF(result);
	}
	flush("stdout");
	flush("stderr");
	/* Objects go, and with them files that nobody closed. */
	clear_module(globals);
	gc = PyImport_ImportModule("gc");
	if (gc) {
		result = PyObject_CallMethod(gc, "collect", NULL);
		if (!result)
			PyErr_Clear();
		Py_XDECREF(result);
		Py_DECREF(gc);
	}
	flush("stdout");
	flush("stderr");
}

static void say_done(int exit_code)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_DONE, 0);

	frame_put_number(&frame, FIELD_EXIT_CODE, (uint64_t)exit_code);
	frame_end(&frame, at);
	outbox_append(&frame);
}

static _Noreturn void give_up(const char *what)
{
	if (PyErr_Occurred())
		PyErr_Print();
	fprintf(stderr, "execpy-guest: %s\n", what);
	_exit(125);
}

void run_request(struct span request)
{
	static struct order order; /* the audit hook reads it until the end */
	struct error err = {0};
	PyObject *globals, *value;
	int exit_code = 0, verdict;

	if (read_order(request, &order) < 0)
		give_up("the request cannot be read");
	if (order.check_only)
		verdict = judge_each(request, &order.policy, &order.context, &err);
	else
		verdict = judge(source, &order.policy, &order.context, &err);
	if (verdict < 0)
		give_up(err.text);
	if (verdict == 0)
		outbox_finish(0);
	globals = prepare(&order);
	if (!globals)
		give_up("the code cannot be set up");
	audit_arm(&order.policy, &order.context);
	if (order.probe)
		audit_record();
	value = execute(source, globals);
	if (value) {
		if (value != Py_None)
			display_object(MESSAGE_VALUE, value);
		Py_DECREF(value);
	} else {
		PyObject *type, *exception, *traceback;

		PyErr_Fetch(&type, &exception, &traceback);
		PyErr_NormalizeException(&type, &exception, &traceback);
		if (traceback)
			PyException_SetTraceback(exception, traceback);
		exit_code = failure_report(type, exception, traceback);
		Py_XDECREF(type);
		Py_XDECREF(exception);
		Py_XDECREF(traceback);
	}
	figures_show(false);
	wind_down(globals);
	say_done(exit_code);
	outbox_finish(exit_code);
}
