/* SPDX-License-Identifier: Apache-2.0 */
/* order: what the mailbox asks of a cell. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

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

void order_free(struct order *order)
{
	Py_CLEAR(order->arguments);
	policy_free(&order->policy);
	for (size_t i = 0; i < order->context.file_count; i++)
		free((char *)order->files[i]);
	*order = (struct order){0};
}
