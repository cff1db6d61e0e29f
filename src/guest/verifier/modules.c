/* SPDX-License-Identifier: Apache-2.0 */
/* modules: which modules can be imported, and what to use instead of those
 * that cannot. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define MODULES_MAX      20000 /* entries of all directories of sys.path */
#define PACKAGE_NAME_MAX 100

static PyObject *installed;     /* set of top-level names */
static PyObject *packages;      /* dict: packages' names, in small letters with -, to versions */
static PyObject *builtin_names; /* the dict of the module builtins */

static bool is_identifier(const char *name, size_t length)
{
	if (!length || isdigit((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' &&
		    (unsigned char)name[i] < 0x80)
			return false;
	return true;
}

static int add_name(const char *name, size_t length)
{
	PyObject *text;
	int r;

	if (!is_identifier(name, length) || PySet_GET_SIZE(installed) > MODULES_MAX)
		return 0;
	text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)length, "replace");
	if (!text)
		return -1;
	r = PySet_Add(installed, text);
	Py_DECREF(text);
	return r;
}

/* Packages are known by one spelling: small letters, and - for each run of -_. */
static void spell_package(const char *name, size_t length, char spelled[PACKAGE_NAME_MAX])
{
	size_t used = 0;

	for (size_t i = 0; i < length && used < PACKAGE_NAME_MAX - 1; i++) {
		if (!strchr("-_.", name[i]))
			spelled[used++] = (char)tolower((unsigned char)name[i]);
		else if (used == 0 || spelled[used - 1] != '-')
			spelled[used++] = '-';
	}
	spelled[used] = '\0';
}

/* NAME-VERSION.dist-info, or with egg-info, is what installing a package leaves. */
static int add_package(const char *entry, size_t length)
{
	char spelled[PACKAGE_NAME_MAX];
	const char *dash = memchr(entry, '-', length);
	size_t name = dash ? (size_t)(dash - entry) : length;
	PyObject *version;
	int r;

	spell_package(entry, name, spelled);
	version = dash ? PyUnicode_DecodeUTF8(dash + 1, (Py_ssize_t)(length - name - 1), "replace")
		       : PyUnicode_FromString("");
	r = version ? PyDict_SetItemString(packages, spelled, version) : -1;
	Py_XDECREF(version);
	return r;
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length > end_length && strcmp(name + length - end_length, end) == 0;
}

static bool is_package(int directory, const char *name)
{
	char path[300];

	/* A namespace package has no __init__.py; a directory of data has no
	 * place on sys.path. */
	snprintf(path, sizeof path, "%.250s/", name);
	return faccessat(directory, path, X_OK, 0) == 0;
}

static int list_directory(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!directory)
		return 0; /* a zip, or not there */
	while (r == 0 && (entry = readdir(directory)) != NULL) {
		const char *name = entry->d_name, *dot = strchr(name, '.');

		if (name[0] == '.' || strcmp(name, "__pycache__") == 0)
			continue;
		if (ends_with(name, ".dist-info") || ends_with(name, ".egg-info"))
			r = add_package(name, (size_t)(strrchr(name, '.') - name));
		else if (dot && (strcmp(dot, ".py") == 0 ||
				 (strlen(dot) > 3 && strcmp(dot + strlen(dot) - 3, ".so") == 0)))
			r = add_name(name, (size_t)(dot - name));
		else if (!dot && is_package(dirfd(directory), name))
			r = add_name(name, strlen(name));
	}
	closedir(directory);
	return r;
}

static int add_sequence(const char *name)
{
	PyObject *sequence = PySys_GetObject(name); /* borrowed */
	PyObject *items = sequence ? PySequence_List(sequence) : NULL;
	int r = items ? 0 : -1;

	for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items) && r == 0; i++) {
		PyObject *item = PyList_GET_ITEM(items, i);
		const char *text = PyUnicode_Check(item) ? PyUnicode_AsUTF8(item) : NULL;

		if (!text)
			continue;
		r = strcmp(name, "path") == 0 ? list_directory(text) : add_name(text, strlen(text));
	}
	Py_XDECREF(items);
	return r;
}

int modules_init(struct error *err)
{
	PyObject *builtins = PyImport_ImportModule("builtins");

	if (!builtins) {
		PyErr_Clear();
		return fail(err, EIO, "cannot find the module builtins");
	}
	builtin_names = PyModule_GetDict(builtins); /* lives as long as the module */
	return 0;
}

/* Listing takes milliseconds, and much code imports nothing that is not loaded
 * already. False when the list could not be made: then nothing is said to be
 * missing. */
static bool list_installed(void)
{
	if (!installed) {
		installed = PySet_New(NULL);
		packages = PyDict_New();
		if (!installed || !packages || add_sequence("builtin_module_names") < 0 ||
		    add_sequence("path") < 0 || add_name("__future__", 10) < 0 ||
		    add_name("IPython", 7) < 0) /* guest/ipython.c */
			Py_CLEAR(installed);
		PyErr_Clear();
	}
	return installed != NULL;
}

bool is_builtin_name(PyObject *name)
{
	return PyDict_Contains(builtin_names, name) == 1;
}

bool module_exists(const char *name)
{
	PyObject *text = PyUnicode_FromString(name);
	bool exists = text && (PyDict_Contains(PyImport_GetModuleDict(), text) == 1 ||
			       !list_installed() || PySet_Contains(installed, text) == 1);

	Py_XDECREF(text);
	PyErr_Clear();
	return exists;
}

bool package_exists(const char *name, char ret_version[PACKAGE_VERSION_MAX])
{
	/* Packages that leave no such directory where a distribution builds them. */
	static const struct {
		const char *package, *module;
	} known[] = {
		{"ipython", "IPython"},
		{"opencv-python", "cv2"},
		{"opencv-python-headless", "cv2"},
		{"opencv-contrib-python", "cv2"},
	};
	char spelled[PACKAGE_NAME_MAX];
	const char *text;
	PyObject *version;

	ret_version[0] = '\0';
	spell_package(name, strlen(name), spelled);
	version = list_installed() ? PyDict_GetItemString(packages, spelled) : NULL; /* borrowed */
	text = version ? PyUnicode_AsUTF8(version) : NULL;
	PyErr_Clear();
	if (version) {
		snprintf(ret_version, PACKAGE_VERSION_MAX, "%s", text ? text : "");
		return true;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
		if (strcmp(known[i].package, spelled) == 0 && module_exists(known[i].module))
			return true;
	for (char *at = spelled; *at; at++)
		if (*at == '-')
			*at = '_';
	return module_exists(spelled);
}

/* Names by which packages are known, not imported; names of Python 2; and
 * packages with something in their place. */
static const struct {
	const char *name, *instead, *advice;
} replacements[] = {
	{"opencv", "cv2", NULL},
	{"opencv_python", "cv2", NULL},
	{"opencv-python", "cv2", NULL},
	{"pillow", "PIL", NULL},
	{"Pillow", "PIL", NULL},
	{"Image", "PIL", "from PIL import Image"},
	{"scikit_learn", "sklearn", NULL},
	{"scikit-learn", "sklearn", NULL},
	{"scikit_image", "skimage", NULL},
	{"scikit-image", "skimage", NULL},
	{"beautifulsoup4", "bs4", NULL},
	{"BeautifulSoup", "bs4", NULL},
	{"beautifulsoup", "bs4", NULL},
	{"pyyaml", "yaml", NULL},
	{"PyYAML", "yaml", NULL},
	{"python_dateutil", "dateutil", NULL},
	{"python-dateutil", "dateutil", NULL},
	{"python_docx", "docx", NULL},
	{"python-docx", "docx", NULL},
	{"pycrypto", "cryptography", NULL},
	{"Crypto", "cryptography", NULL},
	{"attrs", "attr", NULL},
	{"msgpack_python", "msgpack", NULL},
	{"python_Levenshtein", "Levenshtein", NULL},
	{"urllib2", NULL, "this is Python 3: use urllib.request"},
	{"urlparse", NULL, "this is Python 3: use urllib.parse"},
	{"StringIO", "io", "from io import StringIO"},
	{"cStringIO", "io", "from io import StringIO"},
	{"cPickle", "pickle", NULL},
	{"ConfigParser", "configparser", NULL},
	{"Queue", "queue", NULL},
	{"Tkinter", "tkinter", NULL},
	{"HTMLParser", NULL, "use html.parser"},
	{"httplib", NULL, "use http.client"},
	{"__builtin__", "builtins", NULL},
	{"commands", NULL, "there are no programs to run here"},
	{"sets", NULL, "set is built in"},
	{"itertools_more", "more_itertools", NULL},
	{"imp", "importlib", NULL},
	{"asyncore", "asyncio", NULL},
	{"distutils", NULL, "use shutil, or packaging.version"},
	{"pkg_resources", NULL, "use importlib.metadata or importlib.resources"},
	{"six", NULL, "this is Python 3: use its own names"},
	{"simplejson", "json", NULL},
	{"ujson", "json", NULL},
	{"orjson", "json", NULL},
	{"polars", "pandas", NULL},
	{"dask", "pandas", NULL},
	{"modin", "pandas", NULL},
	{"cudf", "pandas", NULL},
	{"plotly", "matplotlib", NULL},
	{"bokeh", "matplotlib", NULL},
	{"altair", "matplotlib", NULL},
	{"pylab", "matplotlib", "import matplotlib.pyplot as plt"},
	{"torch", "numpy", NULL},
	{"tensorflow", "sklearn", NULL},
	{"keras", "sklearn", NULL},
	{"jax", "numpy", NULL},
	{"cupy", "numpy", NULL},
	{"xgboost", "sklearn", "use sklearn.ensemble.GradientBoostingClassifier"},
	{"lightgbm", "sklearn", "use sklearn.ensemble.HistGradientBoostingClassifier"},
	{"catboost", "sklearn", "use sklearn.ensemble.HistGradientBoostingClassifier"},
	{"statsmodels", "scipy", "use scipy.stats"},
	{"regex", "re", NULL},
	{"pendulum", "datetime", NULL},
	{"arrow", "datetime", NULL},
	{"pytz", "zoneinfo", NULL},
	{"tqdm", NULL, "iterate without a progress bar"},
	{"termcolor", NULL, "print without colours"},
	{"colorama", NULL, "print without colours"},
	{"tabulate", "pandas", "print(df.to_string())"},
	{"rich", NULL, "use print"},
	{"loguru", "logging", NULL},
	{"pytest", "unittest", NULL},
	{"google", NULL, "there is no Colab here: read files of the workspace by name"},
	{"requests", NULL, "there is no network"},
	{"openpyxl", "pandas", "use CSV files"},
	{"dotenv", "os", "use os.environ.get"},
	{"typing_extensions", "typing", NULL},
	{"dataclasses_json", "dataclasses", NULL},
	{"pydantic", "dataclasses", NULL},
	{"msvcrt", NULL, "this is Linux, not Windows"},
	{"winreg", NULL, "this is Linux, not Windows"},
	{"winsound", NULL, "this is Linux, not Windows"},
	{"win32com", NULL, "this is Linux, not Windows"},
	{"win32api", NULL, "this is Linux, not Windows"},
	{"tkinter", NULL, "there is no screen: print, or draw with matplotlib"},
	{"turtle", NULL, "there is no screen: draw with matplotlib"},
	{"pygame", NULL, "there is no screen: draw with matplotlib"},
};

/* Damerau and Levenshtein's distance (adjacent swaps), given up above `most`. */
static int distance(const char *a, const char *b, int most)
{
	enum { LETTERS_MAX = 40 };
	int rows[3][LETTERS_MAX + 1];
	int la = (int)strlen(a), lb = (int)strlen(b);
	int *two = rows[0], *one = rows[1], *now = rows[2];

	if (la > LETTERS_MAX || lb > LETTERS_MAX || abs(la - lb) > most)
		return most + 1;
	for (int k = 0; k <= lb; k++) {
		one[k] = k;
		two[k] = k;
	}
	for (int i = 1; i <= la; i++) {
		int least, *spare;

		now[0] = least = i;
		for (int k = 1; k <= lb; k++) {
			int same = tolower((unsigned char)a[i - 1]) ==
				   tolower((unsigned char)b[k - 1]);
			int best = one[k - 1] + !same;

			if (one[k] + 1 < best)
				best = one[k] + 1;
			if (now[k - 1] + 1 < best)
				best = now[k - 1] + 1;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
			    two[k - 2] + 1 < best)
				best = two[k - 2] + 1;
			now[k] = best;
			if (best < least)
				least = best;
		}
		if (least > most)
			return most + 1;
		spare = two;
		two = one;
		one = now;
		now = spare;
	}
	return one[lb];
}

static const char *nearest(const char *name)
{
	PyObject *items = list_installed() ? PySequence_List(installed) : PyList_New(0);
	int most = strlen(name) <= 4 ? 1 : 2, best = most + 1;
	static char found[64];

	found[0] = '\0';
	for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
		const char *other = PyUnicode_AsUTF8(PyList_GET_ITEM(items, i));
		int edits;

		if (!other || other[0] == '_')
			continue;
		edits = distance(name, other, most);
		/* The set's order changes from run to run: the alphabet decides. */
		if (edits > most || edits > best || (edits == best && strcmp(other, found) > 0))
			continue;
		best = edits;
		snprintf(found, sizeof found, "%s", other);
	}
	Py_XDECREF(items);
	PyErr_Clear();
	return found[0] ? found : NULL;
}

const char *module_instead(const char *name, char buffer[FINDING_TEXT_BYTES_MAX + 1])
{
	const char *near;

	for (size_t i = 0; i < ARRAY_LENGTH(replacements); i++) {
		if (strcmp(replacements[i].name, name) != 0)
			continue;
		if (replacements[i].instead && !module_exists(replacements[i].instead))
			continue;
		if (replacements[i].advice && replacements[i].instead)
			snprintf(buffer, FINDING_TEXT_BYTES_MAX + 1, "use %s: `%s`",
				 replacements[i].instead, replacements[i].advice);
		else if (replacements[i].advice)
			return replacements[i].advice;
		else
			snprintf(buffer, FINDING_TEXT_BYTES_MAX + 1,
				 "use `import %s`, which is installed", replacements[i].instead);
		return buffer;
	}
	near = nearest(name);
	if (!near)
		return NULL;
	snprintf(buffer, FINDING_TEXT_BYTES_MAX + 1,
		 "did you mean `%s`? It is installed; packages cannot be added", near);
	return buffer;
}
