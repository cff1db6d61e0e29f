/* SPDX-License-Identifier: Apache-2.0 */
/* names: see names.h. */
#include "guest/names.h"

struct names names;

int names_init(void)
{
#define NAME_INTERN(identifier, text)                                   \
	names.identifier = PyUnicode_InternFromString(text);            \
	if (!names.identifier || PyObject_Hash(names.identifier) == -1) \
		return -1;
	NAME_TABLE(NAME_INTERN)
#undef NAME_INTERN
	return 0;
}

PyObject *names_loaded(PyObject *module)
{
	PyObject *found = PyDict_GetItemWithError(PyImport_GetModuleDict(), module);

	if (!found)
		PyErr_Clear();
	return found;
}

PyObject *names_attribute(PyObject *object, PyObject *name)
{
	PyObject *value = NULL;

#if PY_VERSION_HEX >= 0x030d0000
	if (PyObject_GetOptionalAttr(object, name, &value) < 0)
		PyErr_Clear();
#else
	if (_PyObject_LookupAttr(object, name, &value) < 0)
		PyErr_Clear();
#endif
	return value;
}
