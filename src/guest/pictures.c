/* SPDX-License-Identifier: Apache-2.0 */
/* pictures: those that are larger than a client takes are made smaller where they are
 * made, in the cell: nobody else should have to decode what a stranger's code drew.
 *
 * Figures are drawn again with fewer dots an inch (figures.c), all else is scaled by
 * Pillow where code has it loaded. What is left as it is, is for the client to refuse. */
#include "guest/guest.h"

#include "base/picture.h"

static uint32_t most; /* of a side; 0: any */

void pictures_bound(uint32_t pixels)
{
	most = pixels;
}

uint32_t pictures_excess(PyObject *data)
{
	uint32_t width, height, longer;

	if (most == 0 || !picture_size((struct span){(const uint8_t *)PyBytes_AS_STRING(data),
						     (size_t)PyBytes_GET_SIZE(data)},
				       &width, &height))
		return 0;
	longer = width > height ? width : height;
	return longer > most ? longer : 0;
}

uint32_t pictures_most(void)
{
	return most;
}

static PyObject *new_buffer(PyObject *content)
{
	PyObject *io = PyImport_ImportModule("io");
	PyObject *buffer =
		io ? PyObject_CallMethod(io, "BytesIO", content ? "O" : NULL, content) : NULL;

	Py_XDECREF(io);
	return buffer;
}

/* thumbnail() keeps the proportions, and save() needs to be told the format. */
static PyObject *scale(PyObject *module, PyObject *data)
{
	PyObject *from = new_buffer(data), *to = new_buffer(NULL);
	PyObject *image = from ? PyObject_CallMethod(module, "open", "O", from) : NULL;
	PyObject *format = image ? PyObject_GetAttrString(image, "format") : NULL;
	PyObject *done = NULL, *saved = NULL, *scaled = NULL;

	if (format)
		done = PyObject_CallMethod(image, "thumbnail", "((II))", most, most);
	if (done && to)
		saved = PyObject_CallMethod(image, "save", "OO", to, format);
	if (saved)
		scaled = PyObject_CallMethodNoArgs(to, names.getvalue);
	PyErr_Clear();
	Py_XDECREF(from);
	Py_XDECREF(to);
	Py_XDECREF(image);
	Py_XDECREF(format);
	Py_XDECREF(done);
	Py_XDECREF(saved);
	if (scaled && !PyBytes_Check(scaled))
		Py_CLEAR(scaled);
	return scaled;
}

PyObject *pictures_fit(PyObject *data)
{
	PyObject *module, *scaled;

	if (!pictures_excess(data))
		return data;
	module = names_loaded(names.pillow);
	scaled = module ? scale(module, data) : NULL;
	if (!scaled)
		return data;
	Py_DECREF(data);
	return scaled;
}
