/* SPDX-License-Identifier: Apache-2.0 */
/* turn: the process in which a session's code runs, one run after another.
 *
 * The runner has one descriptor of ours, its link to the judge, by which it is
 * told to run what is in the mailbox and says that it has. Code can close it or
 * write to it; then the judge ends this process, and the session goes on from its
 * checkpoint. Between runs the interpreter is left to the threads that code
 * started.
 *
 * Should: leave everything as the code left it, but for standard input.
 * Mustn't: be believed in anything but the values of its own variables. */
#include "guest/guest.h"

#include "base/cleanup.h"
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RUN_NAME_BYTES 32

static int link_to_judge = -1;
static uint64_t run_number;
static char run_name[RUN_NAME_BYTES];
static PyObject *linecache_cache, *outputs;

const char *turn_name(void)
{
	return run_name[0] ? run_name : NULL;
}

/* --- the event loop of top-level await ------------------------------------ */

static PyObject *event_loop;

void turn_forget_loop(void)
{
	/* Its descriptors are dead; it is not closed, since that would use them. */
	event_loop = NULL;
}

static PyObject *get_loop(void)
{
	PyObject *asyncio, *result;

	if (event_loop)
		return event_loop;
	asyncio = PyImport_ImportModule("asyncio");
	event_loop = asyncio ? PyObject_CallMethod(asyncio, "new_event_loop", NULL) : NULL;
	result =
		event_loop ? PyObject_CallMethod(asyncio, "set_event_loop", "O", event_loop) : NULL;
	Py_XDECREF(asyncio);
	Py_XDECREF(result);
	return result ? event_loop : NULL;
}

/* Leaves the frames of asyncio, through which the code was called, off. */
static void show_own_frames(void)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	for (PyObject *at = traceback; at; at = (PyObject *)((PyTracebackObject *)at)->tb_next) {
		PyCodeObject *code = PyFrame_GetCode(((PyTracebackObject *)at)->tb_frame);
		const char *file = PyUnicode_AsUTF8(code->co_filename);
		bool own = file && strncmp(file, "<run ", 5) == 0;

		PyErr_Clear();
		Py_DECREF(code);
		if (own) {
			Py_INCREF(at);
			Py_SETREF(traceback, at);
			break;
		}
	}
	PyErr_Restore(type, value, traceback);
}

PyObject *turn_await(PyObject *coroutine)
{
	PyObject *loop = get_loop();
	PyObject *result =
		loop ? PyObject_CallMethod(loop, "run_until_complete", "O", coroutine) : NULL;

	Py_DECREF(coroutine);
	if (!result)
		show_own_frames();
	return result;
}

/* --- one run --------------------------------------------------------------- */

/* So that a traceback of a later run, inspect and doctest find the lines. */
static int remember_source(struct span code)
{
	PyObject *text =
		PyUnicode_DecodeUTF8((const char *)code.data, (Py_ssize_t)code.length, "replace");
	PyObject *lines = text ? PyUnicode_Splitlines(text, 1) : NULL;
	PyObject *entry = NULL;
	char oldest[32];
	int r = -1;

	if (!linecache_cache) {
		PyObject *module = PyImport_ImportModule("linecache");

		linecache_cache = module ? PyObject_GetAttrString(module, "cache") : NULL;
		Py_XDECREF(module);
	}
	if (lines)
		entry = Py_BuildValue("nOOs", (Py_ssize_t)code.length, Py_None, lines, run_name);
	if (entry && linecache_cache)
		r = PyDict_SetItemString(linecache_cache, run_name, entry);
	if (run_number > SESSION_SOURCES_MAX && linecache_cache) {
		snprintf(oldest, sizeof oldest, "<run %llu>",
			 (unsigned long long)(run_number - SESSION_SOURCES_MAX));
		if (PyDict_DelItemString(linecache_cache, oldest) < 0)
			PyErr_Clear();
	}
	Py_XDECREF(text);
	Py_XDECREF(lines);
	Py_XDECREF(entry);
	return r;
}

/* `_` is the last value, Out[n] that of run n as long as it is one of the newest. */
static int remember_value(PyObject *globals, PyObject *value)
{
	PyObject *key = PyLong_FromUnsignedLongLong(run_number);
	int r;

	if (!outputs) {
		outputs = PyDict_New();
		if (!outputs || PyDict_SetItemString(globals, "Out", outputs) < 0)
			return -1;
	}
	r = key && PyDict_SetItemString(globals, "_", value) == 0
		    ? PyDict_SetItem(outputs, key, value)
		    : -1;
	Py_XDECREF(key);
	while (r == 0 && PyDict_GET_SIZE(outputs) > SESSION_OUTPUTS_MAX) {
		PyObject *first, *ignored;
		Py_ssize_t at = 0;

		if (!PyDict_Next(outputs, &at, &first, &ignored))
			break;
		r = PyDict_DelItem(outputs, first);
	}
	return r;
}

/* The names of the module's variables, by which the verifier tells what is
 * undefined. */
static void put_names(struct bytes *frame, PyObject *globals)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	size_t count = 0, bytes = 0;

	while (PyDict_Next(globals, &at, &key, &value) && count < SESSION_NAMES_MAX) {
		const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8(key) : NULL;

		if (!name) {
			PyErr_Clear();
			continue;
		}
		bytes += strlen(name) + FRAME_FIELD_BYTES;
		if (bytes > SESSION_NAMES_BYTES_MAX)
			break;
		count++;
		frame_put_text(frame, FIELD_NAME, name);
	}
}

static void say_done(int exit_code, PyObject *globals)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_DONE, run_number);

	frame_put_number(&frame, FIELD_EXIT_CODE, (uint64_t)exit_code);
	put_names(&frame, globals);
	frame_end(&frame, at);
	if (frame_send(link_to_judge, &frame, NULL, 0) < 0)
		_exit(125);
}

static _Noreturn void give_up(const char *what)
{
	if (PyErr_Occurred())
		PyErr_Print();
	fprintf(stderr, "execpy-guest: %s\n", what);
	_exit(125);
}

/* An interrupt that came too late for the run it was meant for. */
static void drop_interrupts(void)
{
	if (PyErr_CheckSignals() < 0)
		PyErr_Clear();
}

/* What the verifier has judged, beside what it judged before. */
static void take_imports(const struct frame *go)
{
	struct reader fields = frame_fields(go);
	struct field field;

	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_MODULE)
			audit_know_import(field.value);
}

static void make_name(uint64_t run, char name[RUN_NAME_BYTES])
{
	snprintf(name, RUN_NAME_BYTES, "<run %llu>", (unsigned long long)run);
}

/* The code that is being verified will have this name, if it runs. */
static void prepare(uint64_t run)
{
	char name[RUN_NAME_BYTES];

	make_name(run, name);
	if (run_set_name(name) == 0)
		prepare_code(run, outbox_request());
	PyErr_Clear();
}

static int take_input(int input)
{
	/* It came in its place, where code has closed what was there. */
	if (input == 0)
		return fcntl(0, F_SETFD, 0);
	return dup2(input, 0) < 0 ? -1 : close(input);
}

static void run_turn(const struct frame *go, int input, int memory)
{
	/* Threads are still judged by the order before while this one is read. */
	static struct order orders[2];
	static struct bytes requests[2], sources[2];
	static unsigned turn;
	PyObject *globals = PyModule_GetDict(PyImport_AddModule("__main__"));
	struct bytes *request = &requests[turn];
	struct bytes *plain = &sources[turn];
	struct order *order = &orders[turn];
	struct span sent = outbox_request();
	struct compiled compiled = {NULL, NULL};
	bool ahead = memory < 0 && prepare_take(go->id, &compiled);
	struct error err = {0};
	struct span code;
	PyObject *value;
	int exit_code;

	prepare_drop();
	turn = !turn;
	order_free(order);
	bytes_clear(request);
	drop_interrupts();
	take_imports(go);
	run_number = go->id;
	make_name(run_number, run_name);
	if (bytes_append(request, sent.data, sent.length) < 0 ||
	    order_read(bytes_span(request), order) < 0)
		give_up("the request cannot be read");
	order->context.any_file = order->context.top_level_await = true;
	code = order->code;
	/* Without a notebook's forms, as the judge verified it. */
	if (memory >= 0) {
		if (memfile_read(memory, "source", CODE_BYTES_MAX, plain, &err) < 0 ||
		    close(memory) < 0)
			give_up("the code cannot be read");
		code = bytes_span(plain);
	}
	if (take_input(input) < 0 || hygiene_stdin() < 0 || run_set_name(run_name) < 0 ||
	    remember_source(order->code) < 0 || PySys_SetObject("argv", order->arguments) < 0)
		give_up("the code cannot be set up");
	run_set_source(order->code);
	display_forget();
	audit_arm(&order->policy, &order->context);
	value = ahead ? run_evaluate(&compiled, globals) : run_execute(code, globals);
	if (value && value != Py_None && remember_value(globals, value) < 0)
		PyErr_Clear();
	exit_code = run_tell(value);
	figures_show(true);
	order_forget_environment(order);
	run_flush();
	drop_interrupts();
	say_done(exit_code, globals);
}

/* Behind a run: what the next one needs is made before the fork, so that a runner
 * that is resumed has it, too. */
static int be_frozen(int socket)
{
	hygiene_stdin_ahead();
	return checkpoint_make(link_to_judge, socket);
}

void turn_loop(int link)
{
	static struct bytes buffer;

	link_to_judge = link;
	for (;;) {
		int fds[FRAME_FDS_MAX], r;
		struct frame frame;
		size_t count = 0;

		Py_BEGIN_ALLOW_THREADS;
		r = frame_receive(link_to_judge, &buffer, &frame, fds, &count);
		Py_END_ALLOW_THREADS;
		if (r == 1 && frame.type == MESSAGE_PREPARE && count == 0)
			prepare(frame.id);
		else if (r == 1 && frame.type == MESSAGE_GO && (count == 1 || count == 2))
			run_turn(&frame, fds[0], count == 2 ? fds[1] : -1);
		else if (r == 1 && frame.type == MESSAGE_CHECKPOINT && count == 1)
			link_to_judge = be_frozen(fds[0]);
		else
			_exit(0); /* the judge is gone, or code played with the link */
	}
}
