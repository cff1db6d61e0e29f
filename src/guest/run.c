/* SPDX-License-Identifier: Apache-2.0 */
/* run: from a request to the end of the process.
 *
 * Theory of operation. The bytes that were sent are what is parsed; they also
 * lie in the workspace as main.py, so that tracebacks, inspect and
 * multiprocessing find their source as they would outside. (Of a notebook's code
 * what runs is what the verifier made of it, and frames show what was sent: the
 * lines are the same, and so are the columns of what runs.) The syntax tree's
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

/* What a run uses of Python's own, taken before user code can replace it. */
static PyObject *compile, *expression_class, *expression_statement;
static PyObject *file_name, *mode_exec, *mode_eval;
static PyObject *run_exit_functions, *collect;
static int session_flags; /* of a session's runs, for the compiler */

struct span run_source(void)
{
	return source;
}

void run_set_source(struct span code)
{
	source = code;
}

int run_set_name(const char *name)
{
	PyObject *text = PyUnicode_FromString(name);

	if (!text)
		return -1;
	Py_SETREF(file_name, text);
	session_flags = PyCF_ALLOW_TOP_LEVEL_AWAIT;
	return 0;
}

/* PyCF_ONLY_AST through the builtin, so that the bytes' own encoding cookie is
 * honoured as in a file. */
static PyObject *call_compile(PyObject *what, PyObject *mode, int flags)
{
	PyObject *number = PyLong_FromLong(flags | session_flags), *result = NULL;

	if (number)
		result = PyObject_CallFunctionObjArgs(compile, what, file_name, mode, number,
						      Py_True, NULL);
	Py_XDECREF(number);
	return result;
}

/* Takes the last statement off the tree when it is an expression: returns a
 * new ast.Expression, or Py_None, or NULL with an exception. */
static PyObject *split_last(PyObject *tree)
{
	PyObject *body = PyObject_GetAttr(tree, names.body);
	PyObject *value = NULL, *result = NULL;
	Py_ssize_t count;

	if (!body)
		goto done;
	count = PyList_Size(body);
	if (count < 0)
		goto done;
	if (count == 0 ||
	    Py_TYPE(PyList_GET_ITEM(body, count - 1)) != (PyTypeObject *)expression_statement) {
		result = Py_NewRef(Py_None);
		goto done;
	}
	value = PyObject_GetAttr(PyList_GET_ITEM(body, count - 1), names.value);
	if (!value || PyList_SetSlice(body, count - 1, count, NULL) < 0)
		goto done;
	result = PyObject_CallOneArg(expression_class, value);
done:
	Py_XDECREF(body);
	Py_XDECREF(value);
	return result;
}

static PyObject *evaluate(PyObject *code, PyObject *globals)
{
	PyObject *result = PyEval_EvalCode(code, globals, globals);

	if (result && session_flags && ((PyCodeObject *)code)->co_flags & CO_COROUTINE)
		result = turn_await(result);
	return result;
}

int run_compile(struct span code, struct compiled *ret_code)
{
	/* CO_FUTURE_…: what `from __future__` asked for holds for the last line. */
	const int future_mask = PyCF_MASK;
	PyObject *bytes =
		PyBytes_FromStringAndSize((const char *)code.data, (Py_ssize_t)code.length);
	PyObject *tree = bytes ? call_compile(bytes, mode_exec, PyCF_ONLY_AST) : NULL;
	PyObject *last = tree ? split_last(tree) : NULL;
	struct compiled compiled = {.first = last ? call_compile(tree, mode_exec, 0) : NULL};
	int r;

	if (compiled.first && last != Py_None) {
		int flags = ((PyCodeObject *)compiled.first)->co_flags & future_mask;

		compiled.last = call_compile(last, mode_eval, flags);
	}
	r = compiled.first && (last == Py_None || compiled.last) ? 0 : -1;
	Py_XDECREF(bytes);
	Py_XDECREF(tree);
	Py_XDECREF(last);
	if (r < 0)
		Py_XDECREF(compiled.first);
	else
		*ret_code = compiled;
	return r;
}

PyObject *run_evaluate(struct compiled *code, PyObject *globals)
{
	PyObject *result = evaluate(code->first, globals);

	if (result && code->last) {
		Py_DECREF(result);
		result = evaluate(code->last, globals);
	}
	Py_CLEAR(code->first);
	Py_CLEAR(code->last);
	return result;
}

PyObject *run_execute(struct span code, PyObject *globals)
{
	struct compiled compiled = {NULL, NULL};

	return run_compile(code, &compiled) < 0 ? NULL : run_evaluate(&compiled, globals);
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

static int set_text(PyObject *dictionary, const char *key, const char *text)
{
	PyObject *value = PyUnicode_FromString(text);
	int r = value ? PyDict_SetItemString(dictionary, key, value) : -1;

	Py_XDECREF(value);
	return r;
}

static PyObject *take(const char *module, const char *name)
{
	PyObject *object = PyImport_ImportModule(module);
	PyObject *function = object ? PyObject_GetAttrString(object, name) : NULL;

	Py_XDECREF(object);
	return function;
}

int run_prepare(struct error *err)
{
	PyObject *module = PyImport_AddModule("__main__"); /* borrowed */
	PyObject *globals = module ? PyModule_GetDict(module) : NULL;

	compile = take("builtins", "compile");
	expression_class = take("_ast", "Expression");
	expression_statement = take("_ast", "Expr");
	run_exit_functions = take("atexit", "_run_exitfuncs");
	collect = take("gc", "collect");
	/* Never freed: a cell would write to where it lies. */
	Py_XINCREF(PySys_GetObject("argv"));
	file_name = PyUnicode_InternFromString(RUN_FILE_NAME);
	mode_exec = PyUnicode_InternFromString("exec");
	mode_eval = PyUnicode_InternFromString("eval");
	if (!globals || !compile || !expression_class || !expression_statement ||
	    !run_exit_functions || !collect || !file_name || !mode_exec || !mode_eval ||
	    names_init() < 0 || failure_prepare() < 0 ||
	    set_text(globals, "__file__", "/workspace/" RUN_FILE_NAME) < 0 ||
	    PyDict_SetItemString(globals, "__cached__", Py_None) < 0)
		return interpreter_error(err, "guest: prepare __main__");
	return 0;
}

int run_enter_workspace(void)
{
	PyObject *directory = PyUnicode_FromString("/workspace");
	PyObject *path = PySys_GetObject("path"); /* borrowed */
	int r = directory && path ? PyList_Insert(path, 0, directory) : -1;

	Py_XDECREF(directory);
	return r;
}

/* The audit hook reads it until the end. */
static struct order order;

struct order *run_order(void)
{
	return &order;
}

/* main.py, argv, path and the module that the code will be. */
static PyObject *set_up(void)
{
	PyObject *module = PyImport_AddModule("__main__"); /* borrowed */

	if (!module || write_main(source) < 0 || PySys_SetObject("argv", order.arguments) < 0 ||
	    run_enter_workspace() < 0)
		return NULL;
	return PyModule_GetDict(module);
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

static void flush(const char *name)
{
	PyObject *stream = PySys_GetObject(name), *result;

	if (!stream || stream == Py_None)
		return;
	result = PyObject_CallMethodNoArgs(stream, names.flush);
	if (!result)
		PyErr_Clear();
	Py_XDECREF(result);
}

void run_flush(void)
{
	flush("stdout");
	flush("stderr");
}

void run_let_go(PyObject *globals)
{
	PyObject *result;

	run_flush();
	/* Objects go, and with them files that nobody closed. */
	clear_module(globals);
	result = PyObject_CallNoArgs(collect);
	if (!result)
		PyErr_Clear();
	Py_XDECREF(result);
	run_flush();
}

/* What Py_Finalize does for the user, without what it does for CPython. */
static void wind_down(PyObject *globals)
{
	PyObject *threading = names_loaded(names.threading);
	PyObject *result = threading ? PyObject_CallMethodNoArgs(threading, names.shutdown)
				     : Py_NewRef(Py_None);

	if (!result)
		PyErr_WriteUnraisable(NULL);
	Py_XDECREF(result);
	/* Exceptions in handlers are printed by atexit itself. */
	result = PyObject_CallNoArgs(run_exit_functions);
	if (!result)
		PyErr_WriteUnraisable(NULL);
	Py_XDECREF(result);
	run_let_go(globals);
}

int run_tell(PyObject *value)
{
	PyObject *type, *exception, *traceback;
	int exit_code;

	if (value) {
		if (value != Py_None)
			display_object(MESSAGE_VALUE, value);
		Py_DECREF(value);
		return 0;
	}
	PyErr_Fetch(&type, &exception, &traceback);
	PyErr_NormalizeException(&type, &exception, &traceback);
	if (traceback)
		PyException_SetTraceback(exception, traceback);
	exit_code = failure_report(type, exception, traceback);
	Py_XDECREF(type);
	Py_XDECREF(exception);
	Py_XDECREF(traceback);
	return exit_code;
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
	struct error err = {0};
	struct span judged;
	PyObject *globals;
	int exit_code, verdict;

	if (order_read(request, &order) < 0)
		give_up("the request cannot be read");
	source = judged = order.code;
	if (order.check_only)
		verdict = judge_each(request, &order.policy, &order.context, &err);
	else
		verdict = judge(&judged, &order.policy, &order.context, &err);
	if (verdict < 0)
		give_up(err.text);
	if (verdict == 0) {
		/* What does not run is no file of the workspace, either. */
		unlink(RUN_FILE_NAME);
		outbox_finish(0);
	}
	globals = set_up();
	if (!globals)
		give_up("the code cannot be set up");
	audit_arm(&order.policy, &order.context);
	if (order.probe)
		audit_record();
	exit_code = run_tell(run_execute(judged, globals));
	figures_show(false);
	wind_down(globals);
	say_done(exit_code);
	outbox_finish(exit_code);
}
