/* SPDX-License-Identifier: Apache-2.0 */
/* order: what the mailbox asks of a cell. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

static PyObject *get_environment(void)
{
	PyObject *os = PyImport_ImportModule("os");
	PyObject *environment = os ? PyObject_GetAttrString(os, "environ") : NULL;

	Py_XDECREF(os);
	return environment;
}

/* What is there now, to be put back: None when there is nothing. */
static int remember(struct order *order, PyObject *environment, PyObject *name, PyObject *value)
{
	PyObject *before = PyObject_CallMethod(environment, "get", "O", name);
	PyObject *pair = before ? PyTuple_Pack(2, before, value) : NULL;
	int r = -1;

	if (!order->environment)
		order->environment = PyDict_New();
	if (pair && order->environment)
		r = PyDict_SetItem(order->environment, name, pair);
	Py_XDECREF(before);
	Py_XDECREF(pair);
	return r;
}

/* os.environ was filled when the template started; both it and the process's
 * own environment get the request's variables. */
static int set_environment(struct order *order, const char *text)
{
	PyObject *environment = get_environment();
	const char *equals = strchr(text, '=');
	PyObject *name = NULL, *value = NULL;
	int r = -1;

	if (environment && equals) {
		name = PyUnicode_DecodeFSDefaultAndSize(text, equals - text);
		value = PyUnicode_DecodeFSDefault(equals + 1);
		/* os.environ calls putenv() itself. */
		if (name && value && remember(order, environment, name, value) == 0)
			r = PyObject_SetItem(environment, name, value);
	}
	Py_XDECREF(environment);
	Py_XDECREF(name);
	Py_XDECREF(value);
	return r;
}

static int take_field(struct order *order, const struct field *field)
{
	autofree char *text = NULL;
	struct error err = {0};
	uint64_t number = 0;
	PyObject *item;
	int r;

	switch (field->name) {
	case FIELD_CODE:
		order->code = field->value;
		return 0;
	case FIELD_ARGUMENT:
		item = PyUnicode_DecodeFSDefaultAndSize((const char *)field->value.data,
							(Py_ssize_t)field->value.length);
		r = item ? PyList_Append(order->arguments, item) : -1;
		Py_XDECREF(item);
		return r;
	case FIELD_ENVIRONMENT:
		text = span_to_string(field->value);
		return text ? set_environment(order, text) : -1;
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
	case FIELD_PICTURE_PIXELS:
		r = field_number(field, &number);
		pictures_bound((uint32_t)number);
		return r;
	default:
		return 0;
	}
}

int order_read(struct span request, struct order *order)
{
	struct reader reader = reader_of(request);
	struct reader fields;
	struct frame frame;
	struct field field;
	int r;

	pictures_bound(0);
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

static void put_back(PyObject *environment, PyObject *name, PyObject *before, PyObject *set)
{
	PyObject *now = PyObject_CallMethod(environment, "get", "O", name);

	if (now && PyObject_RichCompareBool(now, set, Py_EQ) == 1) {
		if (before == Py_None)
			PyObject_DelItem(environment, name);
		else
			PyObject_SetItem(environment, name, before);
	}
	PyErr_Clear();
	Py_XDECREF(now);
}

void order_forget_environment(struct order *order)
{
	PyObject *environment = order->environment ? get_environment() : NULL;
	PyObject *name, *pair;
	Py_ssize_t at = 0;

	while (environment && PyDict_Next(order->environment, &at, &name, &pair))
		put_back(environment, name, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
	PyErr_Clear();
	Py_XDECREF(environment);
	Py_CLEAR(order->environment);
}

void order_free(struct order *order)
{
	Py_CLEAR(order->arguments);
	Py_CLEAR(order->environment);
	policy_free(&order->policy);
	for (size_t i = 0; i < order->context.file_count; i++)
		free((char *)order->files[i]);
	*order = (struct order){0};
}
