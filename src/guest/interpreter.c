/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter: how CPython is started and what it finds. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FONT_CACHE           "/var/cache/execpy"
#define MATPLOTLIB_DIRECTORY "/var/cache/matplotlib"

int interpreter_error(struct error *err, const char *what)
{
	PyObject *type, *value, *traceback, *text = NULL;
	const char *words = NULL;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (value)
		text = PyObject_Str(value);
	if (text)
		words = PyUnicode_AsUTF8(text);
	refuse(err, EPROTO, "%s: %s: %s", what,
	       type ? ((PyTypeObject *)type)->tp_name : "no exception", words ? words : "");
	PyErr_Clear();
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return -EPROTO;
}

/* Home and executable are explicit: CPython derives all its paths from them, and
 * nothing is searched for, so another Python on the host's PATH cannot matter. */
static PyStatus configure(PyConfig *config)
{
	const struct {
		wchar_t **field;
		const wchar_t *value;
	} strings[] = {
		{&config->home, L"" PYTHON_PREFIX},
		{&config->program_name, L"" PYTHON_EXECUTABLE},
		{&config->executable, L"" PYTHON_EXECUTABLE},
		{&config->base_executable, L"" PYTHON_EXECUTABLE},
		{&config->stdio_encoding, L"utf-8"},
		{&config->stdio_errors, L"strict"},
	};
	PyStatus status = PyStatus_Ok();

	PyConfig_InitIsolatedConfig(config);
	config->site_import = 1;
	config->user_site_directory = 0;
	config->write_bytecode = 0;
	config->buffered_stdio = 0;
	config->install_signal_handlers = 1;
	config->parse_argv = 0;
	config->use_environment = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(strings) && !PyStatus_Exception(status); i++)
		status = PyConfig_SetString(config, strings[i].field, strings[i].value);
	return status;
}

int interpreter_start(struct error *err)
{
	PyPreConfig preconfig;
	PyConfig config;
	PyStatus status;

	PyPreConfig_InitIsolatedConfig(&preconfig);
	/* The locale of the environment, C.UTF-8, as a terminal outside has it. */
	preconfig.configure_locale = 1;
	status = Py_PreInitialize(&preconfig);
	if (!PyStatus_Exception(status)) {
		status = configure(&config);
		if (!PyStatus_Exception(status))
			status = Py_InitializeFromConfig(&config);
		PyConfig_Clear(&config);
	}
	if (PyStatus_Exception(status))
		return refuse(err, EPROTO, "guest: start Python: %s: %s",
			      status.func ? status.func : "?",
			      status.err_msg ? status.err_msg : "no reason given");
	return 0;
}

int interpreter_import(const char *module, struct error *err)
{
	PyObject *imported = PyImport_ImportModule(module);
	char what[128];

	if (imported) {
		Py_DECREF(imported);
		return 0;
	}
	snprintf(what, sizeof what, "import %.100s", module);
	if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) {
		interpreter_error(err, what);
		return -ENOENT;
	}
	return interpreter_error(err, what);
}

/* matplotlib insists on a writable directory; its font list is made at build time
 * and only linked to. Without the list it makes its own. */
void interpreter_prepare_caches(void)
{
	static char lists[4][NAME_MAX + 1]; /* as the template found them */
	static size_t count;
	static bool looked;
	DIR *cache = looked ? NULL : opendir(FONT_CACHE);
	struct dirent *entry;

	while (cache && count < ARRAY_LENGTH(lists) && (entry = readdir(cache)))
		if (strncmp(entry->d_name, "fontlist", 8) == 0)
			snprintf(lists[count++], sizeof lists[0], "%s", entry->d_name);
	if (cache)
		closedir(cache);
	looked = true;
	for (size_t i = 0; i < count; i++) {
		char from[PATH_MAX], to[PATH_MAX];

		snprintf(from, sizeof from, FONT_CACHE "/%s", lists[i]);
		snprintf(to, sizeof to, MATPLOTLIB_DIRECTORY "/%s", lists[i]);
		if (symlink(from, to) < 0)
			break;
	}
}
