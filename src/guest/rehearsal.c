/* SPDX-License-Identifier: Apache-2.0 */
/* rehearsal: what a run does is done once before there is one.
 *
 * Theory of operation. The first time that CPython goes any way it is slow:
 * functions are specialised, caches are filled, free lists too, and in a cell
 * every page that is written to for the first time, if only by a reference
 * count, is copied. So a program of our own goes the whole way of a run: its
 * request is read, it is verified, compiled and executed under the audit hook, a
 * value is shown, another program fails and its traceback is printed, objects
 * go and garbage is collected.
 *
 * A template rehearses many times before its first fork, so that what changes
 * once has changed for all cells; a cell rehearses once before it parks, so that
 * the pages that it needs are its own before anybody waits.
 *
 * Should: go the very functions that a real run goes.
 * Mustn't: write to the cell's streams, mailbox or workspace, import what is not
 * there, or leave anything changed that user code could see. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Statements of many kinds, and a value at the end: a template's, once and for all
 * its cells. Its imports come before it. */
static const char thorough_program[] =
	"import time\n"
	"class Pair:\n"
	"    def __init__(self, one, other=2):\n"
	"        self.both = [x for x in (one, other)]\n"
	"def total(count=3, *rest, **named):\n"
	"    \"\"\"Documented.\"\"\"\n"
	"    result = 0\n"
	"    for i in range(count):\n"
	"        result += i * 2\n"
	"    while result > 9 and not rest:\n"
	"        result -= 1\n"
	"    return result\n"
	"text = f'{Pair(1).both} {total():>3} {1.5:.2f}'.upper()\n"
	"try:\n"
	"    {'key': 1}['other']\n"
	"except (KeyError, ValueError) as error:\n"
	"    print(55, text, error, {'a': (1, None, True)})\n"
	"with_squares = {n: n ** 2 for n in sorted({3, 1, 2}, key=lambda n: -n)}\n"
	"with_squares[1:2] if False else with_squares\n";

/* What nearly all code does, and no more: each cell pays for it. No class: to look
 * up a new one's methods writes all over the interpreter's cache, on other pages
 * each time. */
static const char program[] = "import time\n"
			      "print(55, [n for n in (1, 2)])\n"
			      "{'a': 1.5}\n";

static const char failing[] = "def divide(number):\n"
			      "    return number / 0\n"
			      "print(divide(1))\n";

static struct bytes imports;
static int nowhere = -1;

int rehearsal_add_import(const char *module, struct error *err)
{
	int r = bytes_append_format(&imports, "import %s\n", module);

	return r < 0 ? fail(err, -r, "template: remember %s", module) : 0;
}

int rehearsal_open(struct error *err)
{
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return nowhere < 0 ? fail(err, errno, "rehearsal: open /dev/null") : 0;
}

/* stdout and stderr lead nowhere for a while; their objects do not notice. */
static int begin_silence(int kept[2])
{
	for (int i = 0; i < 2; i++) {
		kept[i] = fcntl(1 + i, F_DUPFD_CLOEXEC, 3);
		if (kept[i] < 0 || dup2(nowhere, 1 + i) < 0)
			return -1;
	}
	return 0;
}

static int end_silence(int kept[2])
{
	int r = 0;

	for (int i = 0; i < 2; i++)
		if (dup2(kept[i], 1 + i) < 0 || close(kept[i]) < 0)
			r = -1;
	close_fd(&nowhere);
	return r;
}

static int write_request(struct bytes *frame, struct span code)
{
	struct policy mild = policy_profile(PROFILE_STRICT);
	autobytes policy = {0};
	size_t at = frame_begin(frame, MESSAGE_REQUEST, 0);

	/* A template may import what strict refuses. */
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (mild.severity[i] == SEVERITY_BLOCK)
			mild.severity[i] = SEVERITY_WARN;
	policy_encode(&mild, &policy);
	frame_put(frame, FIELD_POLICY, policy.data, policy.length);
	frame_put(frame, FIELD_CODE, code.data, code.length);
	frame_put_number(frame, FIELD_STDIN, 0);
	frame_put_number(frame, FIELD_WALL_US, 5000000);
	frame_put_text(frame, FIELD_ARGUMENT, "-");
	return policy.failed ? policy.failed : frame_end(frame, at);
}

/* As judge(), whose verdict is written to where only one may be. */
static int verify_code(const struct order *order, struct error *err)
{
	autoverdict verdict = {0};
	autobytes encoded = {0};
	int r = verify(order->code, &order->policy, &order->context, &verdict, err);

	if (r == 0)
		verdict_encode(&verdict, &encoded);
	return r < 0 ? r : encoded.failed;
}

/* A copy of the dictionary of __main__, with the very keys that a run clears. */
static PyObject *make_globals(void)
{
	PyObject *module = PyImport_AddModule("__main__"); /* borrowed */

	return module ? PyDict_Copy(PyModule_GetDict(module)) : NULL;
}

/* Puts arguments into sys.argv, and clears a name of __main__, as a run does. What was
 * there is there again afterwards. */
static int rehearse_main(const struct order *order)
{
	PyObject *main = PyImport_AddModule("__main__"); /* borrowed */
	PyObject *globals = main ? PyModule_GetDict(main) : NULL;
	PyObject *name = PyUnicode_InternFromString("__doc__");
	PyObject *document = globals && name ? Py_XNewRef(PyDict_GetItem(globals, name)) : NULL;
	PyObject *arguments = Py_XNewRef(PySys_GetObject("argv"));
	int r = -1;

	if (document && arguments && PySys_SetObject("argv", order->arguments) == 0 &&
	    PySys_SetObject("argv", arguments) == 0 && PyDict_SetItem(globals, name, Py_False) == 0)
		r = PyDict_SetItem(globals, name, document);
	Py_XDECREF(name);
	Py_XDECREF(document);
	Py_XDECREF(arguments);
	return r;
}

static int leave_workspace(void)
{
	PyObject *path = PySys_GetObject("path"); /* borrowed */

	return path ? PyList_SetSlice(path, 0, 1, NULL) : -1;
}

/* The order's code, and one that fails, as run_request() would have it. */
static int go_through(const struct order *order, bool failing_too, struct error *err)
{
	static const struct span failure = {(const uint8_t *)failing, sizeof failing - 1};
	PyObject *globals = make_globals();
	PyObject *value;
	int r = 0;

	if (!globals || rehearse_main(order) < 0 || run_enter_workspace() < 0)
		return interpreter_error(err, "rehearsal");
	audit_arm(&order->policy, &order->context);
	run_set_source(order->code);
	value = run_execute(order->code, globals);
	if (value) {
		run_tell(value);
		if (failing_too) {
			run_set_source(failure);
			run_tell(run_execute(failure, globals));
		}
	} else {
		r = interpreter_error(err, "rehearsal");
	}
	figures_show(false);
	audit_disarm();
	run_let_go(globals);
	run_set_source((struct span){NULL, 0});
	Py_DECREF(globals);
	if (leave_workspace() < 0)
		return interpreter_error(err, "rehearsal");
	return r;
}

int rehearse(bool thoroughly, struct error *err)
{
	struct order *order = run_order();
	autobytes code = {0};
	autobytes request = {0};
	int kept[2] = {-1, -1}, r;

	bytes_append(&code, imports.data, imports.length);
	bytes_append_text(&code, thoroughly ? thorough_program : program);
	r = code.failed ? code.failed : write_request(&request, bytes_span(&code));
	if (r < 0)
		return fail(err, -r, "rehearsal: write the request");
	if (nowhere < 0)
		r = rehearsal_open(err);
	if (r < 0)
		return r;
	if (begin_silence(kept) < 0)
		return fail(err, errno, "rehearsal: standard streams");
	outbox_mute(true);
	if (order_read(bytes_span(&request), order) < 0)
		r = interpreter_error(err, "rehearsal: read the request");
	if (r == 0)
		r = verify_code(order, err);
	if (r == 0)
		r = go_through(order, thoroughly, err);
	order_free(order);
	display_forget();
	outbox_mute(false);
	if (end_silence(kept) < 0 && r == 0)
		return fail(err, errno, "rehearsal: standard streams");
	return r;
}
