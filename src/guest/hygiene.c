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
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int set_none(PyObject *module, PyObject *attribute)
{
	PyObject *object = names_loaded(module);

	if (!object || !PyObject_HasAttr(object, attribute))
		return 0;
	return PyObject_SetAttr(object, attribute, Py_None);
}

static int call_seed(PyObject *module)
{
	PyObject *object = names_loaded(module), *result;

	if (!object)
		return 0;
	result = PyObject_CallMethodNoArgs(object, names.seed);
	if (!result)
		return -1;
	Py_DECREF(result);
	return 0;
}

/* numpy's legacy generator, which is one for the whole process: where its state
 * lies. numpy.random.seed() goes a long way through Python; in a template it is
 * called once, and a cell writes fresh numbers over the state. The layout is that
 * of numpy's own C interface (numpy/random/src/mt19937/mt19937.h). What randn() drew
 * in a pair and has left over is in the object around it, and is sought there. */
static struct {
	uint32_t *key;
	int *position;
	struct left_over *left;
} legacy;
#define LEGACY_WORDS 624

/* As struct aug_bitgen in numpy/random/src/legacy/legacy-distributions.h. */
struct left_over {
	void *generator;
	int is_there;
	double number;
};

/* The generator's capsule, as numpy/random/bitgen.h declares what is in it. */
struct bit_generator {
	void *state;
	uint64_t (*next_uint64)(void *);
	uint32_t (*next_uint32)(void *);
	double (*next_double)(void *);
	uint64_t (*next_raw)(void *);
};

/* The only place in the object that holds these, or NULL. */
static struct left_over *find_left_over(PyObject *owner)
{
	const struct left_over sought = {.is_there = 1, .number = 0.1234567890123};
	struct left_over *found = NULL;
	Py_ssize_t size = Py_TYPE(owner)->tp_basicsize;

	for (Py_ssize_t at = 0; at + (Py_ssize_t)sizeof sought <= size;
	     at += (Py_ssize_t)sizeof(void *)) {
		struct left_over *here = (struct left_over *)((char *)owner + at);

		if (here->is_there != sought.is_there ||
		    memcmp(&here->number, &sought.number, sizeof sought.number) != 0)
			continue;
		if (found)
			return NULL;
		found = here;
	}
	return found;
}

static void forget_left_over(struct left_over *left)
{
	left->is_there = 0;
	left->number = 0;
}

static bool forgets(PyObject *owner, struct left_over *left)
{
	PyObject *state;
	bool result;

	forget_left_over(left);
	state = PyObject_CallMethod(owner, "get_state", "O", Py_False);
	result = state && PyObject_IsTrue(PyDict_GetItemString(state, "has_gauss")) == 0;
	Py_XDECREF(state);
	PyErr_Clear();
	return result;
}

/* Finds it, and proves it: what numpy says of its state must be what is there. */
static void find_legacy(void)
{
	static const char text[] =
		"import numpy.random.mtrand as m, numpy\n"
		"generator = m._rand._bit_generator\n"
		"state = generator.state\n"
		"right = type(generator) is numpy.random.MT19937 and len(state['state']['key']) == "
		"624\n"
		"capsule = generator.capsule\n"
		"key = numpy.asarray(state['state']['key'], dtype='<u4').tobytes()\n"
		"position = int(state['state']['pos'])\n"
		"owner = m._rand\n"
		"whole = owner.get_state(legacy=False)\n"
		"whole['has_gauss'], whole['gauss'] = 1, 0.1234567890123\n"
		"owner.set_state(whole)\n";
	PyObject *globals = Py_BuildValue("{ss}", "__name__", "hygiene"), *result = NULL;
	PyObject *owner = NULL, *capsule, *key, *position;
	struct bit_generator *generator = NULL;
	struct left_over *left = NULL;
	uint32_t *state = NULL;
	bool found = false;

	if (globals && PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0)
		result = PyRun_String(text, Py_file_input, globals, globals);
	if (result && PyDict_GetItemString(globals, "right") == Py_True) {
		owner = PyDict_GetItemString(globals, "owner");
		capsule = PyDict_GetItemString(globals, "capsule");
		key = PyDict_GetItemString(globals, "key");
		position = PyDict_GetItemString(globals, "position");
		generator = PyCapsule_GetPointer(capsule, "BitGenerator");
		state = generator ? generator->state : NULL;
		left = find_left_over(owner);
		found = left && state && PyBytes_Size(key) == LEGACY_WORDS * 4 &&
			memcmp(state, PyBytes_AsString(key), LEGACY_WORDS * 4) == 0 &&
			((int *)state)[LEGACY_WORDS] == PyLong_AsLong(position);
	}
	PyErr_Clear();
	if (found && forgets(owner, left)) {
		legacy.key = state;
		legacy.position = (int *)state + LEGACY_WORDS;
		legacy.left = left;
		/* They stay where they are, also when code puts others in their place. */
		Py_INCREF(owner);
		Py_INCREF(PyDict_GetItemString(globals, "generator"));
	}
	Py_XDECREF(result);
	Py_XDECREF(globals);
}

/* As seed() without an argument: all words anew, and to be mixed before the next
 * number is drawn. */
static int seed_legacy(void)
{
	size_t done = 0;

	while (done < LEGACY_WORDS * 4) {
		ssize_t r = getrandom((char *)legacy.key + done, LEGACY_WORDS * 4 - done, 0);

		if (r < 0 && errno != EINTR) {
			PyErr_SetFromErrno(PyExc_OSError);
			return -1;
		}
		if (r > 0)
			done += (size_t)r;
	}
	legacy.key[0] |= 0x80000000; /* not all zero, whatever came */
	*legacy.position = LEGACY_WORDS;
	forget_left_over(legacy.left);
	return 0;
}

static int stir_openssl(void)
{
	PyObject *object = names_loaded(names.openssl), *function, *result;
	char entropy[32];

	if (!object)
		return 0;
	if (getrandom(entropy, sizeof entropy, 0) != sizeof entropy) {
		PyErr_SetFromErrno(PyExc_OSError);
		return -1;
	}
	function = PyObject_GetAttr(object, names.rand_add);
	result = function
			 ? PyObject_CallFunction(function, "y#d", entropy,
						 (Py_ssize_t)sizeof entropy, (double)sizeof entropy)
			 : NULL;
	Py_XDECREF(function);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static int refresh_others(struct error *err)
{
	if (stir_openssl() < 0 || set_none(names.tempfile, names.name_sequence) < 0 ||
	    set_none(names.tempfile, names.tempdir) < 0 || set_none(names.uuid, names.node) < 0 ||
	    set_none(names.uuid, names.timestamp) < 0)
		return interpreter_error(err, "cell: hygiene");
	tzset();
	return 0;
}

int hygiene_refresh(struct error *err)
{
	int r = legacy.key ? seed_legacy() : call_seed(names.numpy_random);

	if (r < 0 || call_seed(names.random) < 0)
		return interpreter_error(err, "cell: hygiene");
	return refresh_others(err);
}

PyObject *hygiene_keep_random(void)
{
	PyObject *random = names_loaded(names.random);
	PyObject *state = random ? PyObject_CallMethod(random, "getstate", NULL) : NULL;

	PyErr_Clear();
	return state;
}

int hygiene_refresh_but_random(PyObject *state, struct error *err)
{
	PyObject *random = names_loaded(names.random), *result = Py_None;

	if (random && state)
		result = PyObject_CallMethod(random, "setstate", "(O)", state);
	Py_XDECREF(state);
	if (!result)
		return interpreter_error(err, "cell: keep the random state");
	return refresh_others(err);
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

static const struct {
	const char *name, *original, *label, *errors;
} streams[3] = {
	{"stdin", "__stdin__", "<stdin>", "strict"},
	{"stdout", "__stdout__", "<stdout>", "strict"},
	{"stderr", "__stderr__", "<stderr>", "backslashreplace"},
};

/* Made in the template for its cells, or NULL. */
static PyObject *prepared[3];

static int make_streams(PyObject *made[3], struct error *err)
{
	PyObject *io = PyImport_ImportModule("io");
	int r = 0;

	if (!io)
		return interpreter_error(err, "standard streams: import io");
	for (int i = 0; i < 3 && r == 0; i++) {
		made[i] = open_stream(io, i, streams[i].label, streams[i].errors);
		if (!made[i] || PySys_SetObject(streams[i].name, made[i]) < 0 ||
		    PySys_SetObject(streams[i].original, made[i]) < 0)
			r = interpreter_error(err, "standard streams");
	}
	Py_DECREF(io);
	return r;
}

int hygiene_prepare(struct error *err)
{
	int kept[3] = {-1, -1, -1}, r = 0;

	if (names_loaded(names.numpy_random)) {
		if (LEFT_OUT != MEASURE_NUMPY_IN_PLACE)
			find_legacy();
		/* Last, since it was looked for with a number left over. */
		if (call_seed(names.numpy_random) < 0)
			return interpreter_error(err, "template: seed numpy");
	}
	if (LEFT_OUT == MEASURE_PREPARED_STREAMS)
		return 0;
	/* What a stream asks its descriptor when it is made has the same answer from
	 * every pipe. */
	for (int i = 0; i < 3 && r == 0; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return fail(err, errno, "standard streams: pipe");
		kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		if (kept[i] < 0 || dup2(ends[i == 0 ? 0 : 1], i) < 0)
			r = fail(err, errno, "standard streams: descriptor %d", i);
		close(ends[0]);
		close(ends[1]);
	}
	if (r == 0)
		r = make_streams(prepared, err);
	for (int i = 0; i < 3; i++)
		if (kept[i] >= 0 && (dup2(kept[i], i) < 0 || close(kept[i]) < 0))
			r = fail(err, errno, "standard streams: descriptor %d", i);
	return r;
}

int hygiene_streams(struct error *err)
{
	PyObject *made[3] = {NULL, NULL, NULL};
	int r;

	if (!prepared[0]) {
		r = make_streams(made, err);
		for (int i = 0; i < 3; i++)
			Py_XDECREF(made[i]);
		return r;
	}
	for (int i = 0; i < 3; i++)
		if (PySys_GetObject(streams[i].name) != prepared[i] ||
		    PySys_GetObject(streams[i].original) != prepared[i])
			return refuse(err, EPROTO, "cell: sys.%s is not the cell's own",
				      streams[i].name);
	return 0;
}

/* Of a session's next run, or NULL. */
static PyObject *next_input;

static PyObject *make_input(void)
{
	PyObject *io = PyImport_ImportModule("io");
	PyObject *made = io ? open_stream(io, 0, streams[0].label, streams[0].errors) : NULL;

	Py_XDECREF(io);
	return made;
}

void hygiene_stdin_ahead(void)
{
	struct stat info;

	/* Whatever comes next is not to be opened as descriptor 0. */
	if (fcntl(0, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != 0)
		return;
	/* One pipe is as another, to the stream; code may have put something else there. */
	if (next_input || fstat(0, &info) < 0 || !S_ISFIFO(info.st_mode))
		return;
	next_input = make_input();
	PyErr_Clear();
}

int hygiene_stdin(void)
{
	PyObject *made = next_input ? next_input : make_input();
	int r = made && PySys_SetObject(streams[0].name, made) == 0 &&
				PySys_SetObject(streams[0].original, made) == 0
			? 0
			: -1;

	next_input = NULL;
	Py_XDECREF(made);
	return r;
}
