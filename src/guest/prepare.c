/* SPDX-License-Identifier: Apache-2.0 */
/* prepare: a session's code is compiled by the runner while its judge verifies it.
 *
 * Theory of operation. On two processors neither has to wait for the other. Nothing
 * of the code runs before the judge has said so: what was compiled is run then, or
 * dropped. Only code that is short is compiled ahead: what the parser and the compiler
 * might choke on is for the judge to refuse first.
 *
 * A warning of the compiler's is the run's, and must not be told of code that is
 * refused: code that gives one is compiled again, when it runs. */
#include "guest/guest.h"

#include "guest/names.h"

static struct {
	uint64_t run;
	struct compiled code;
} prepared;

static PyObject *raising_filters;

void prepare_drop(void)
{
	Py_CLEAR(prepared.code.first);
	Py_CLEAR(prepared.code.last);
}

/* Puts `filters` in the place of the module's and returns what was there (new
 * reference), or NULL. */
static PyObject *swap_filters(PyObject *filters)
{
	PyObject *warnings = names_loaded(names.warnings);
	PyObject *before = warnings ? PyObject_GetAttr(warnings, names.filters) : NULL;

	if (before && PyObject_SetAttr(warnings, names.filters, filters) < 0)
		Py_CLEAR(before);
	return before;
}

static void compile_raising(struct span code)
{
	PyObject *filters;

	if (!raising_filters)
		raising_filters =
			Py_BuildValue("[(sOOOi)]", "error", Py_None, PyExc_Warning, Py_None, 0);
	filters = raising_filters ? swap_filters(raising_filters) : NULL;
	if (filters && run_compile(code, &prepared.code) < 0)
		prepare_drop();
	PyErr_Clear();
	if (filters)
		Py_XDECREF(swap_filters(filters));
	Py_XDECREF(filters);
	PyErr_Clear();
}

void prepare_code(uint64_t run, struct span request)
{
	static uint8_t copy[PREPARED_BYTES_MAX];
	struct reader reader = reader_of(request), fields;
	struct span code = {NULL, 0};
	struct frame frame;
	struct field field;

	prepare_drop();
	prepared.run = run;
	if (frame_next(&reader, MAILBOX_REQUEST_BYTES, &frame) != 1)
		return;
	fields = frame_fields(&frame);
	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_CODE)
			code = field.value;
	if (code.length == 0 || code.length > sizeof copy)
		return;
	memcpy(copy, code.data, code.length);
	compile_raising((struct span){copy, code.length});
}

bool prepare_take(uint64_t run, struct compiled *ret_code)
{
	if (prepared.run != run || !prepared.code.first)
		return false;
	*ret_code = prepared.code;
	prepared.code = (struct compiled){NULL, NULL};
	return true;
}
