/* SPDX-License-Identifier: Apache-2.0 */
/* imports: which heavy modules a template should have loaded for a code.
 *
 * Lines that begin with `import` or `from` are read as text; no Python is
 * needed for a guess. Only modules of the table are ever loaded ahead, from
 * the system's own directories, never from the workspace. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "policy/templates.h"

#include <ctype.h>
#include <string.h>

/* What takes long or much memory to import. Submodules come along: `from
 * scipy import stats` loads scipy.stats. */
static const struct {
	const char *module, *loads;
} heavy[] = {
	{"numpy", "numpy"},
	{"pandas", "pandas"},
	{"matplotlib", "matplotlib.pyplot"},
	{"scipy", "scipy"},
	{"sklearn", "sklearn"},
	{"seaborn", "seaborn"},
	{"statsmodels", "statsmodels"},
	{"sympy", "sympy"},
	{"networkx", "networkx"},
	{"PIL", "PIL.Image"},
	{"cv2", "cv2"},
	{"skimage", "skimage"},
	{"nltk", "nltk"},
	{"bs4", "bs4"},
	{"lxml", "lxml.etree"},
	{"requests", "requests"},
	{"openpyxl", "openpyxl"},
	{"xlrd", "xlrd"},
	{"docx", "docx"},
	{"geopandas", "geopandas"},
	{"shapely", "shapely"},
	{"folium", "folium"},
	{"wordcloud", "wordcloud"},
	{"textblob", "textblob"},
	{"gensim", "gensim"},
	{"django", "django"},
	{"flask", "flask"},
	{"cryptography", "cryptography"},
	{"sqlalchemy", "sqlalchemy"},
	{"yaml", "yaml"},
	{"pytz", "pytz"},
	{"dateutil", "dateutil.parser"},
	{"psutil", "psutil"},
	{"unittest", "unittest"},
	{"asyncio", "asyncio"},
	{"multiprocessing", "multiprocessing"},
	{"sqlite3", "sqlite3"},
	{"ssl", "ssl"},
	{"urllib", "urllib.request"},
	{"xml", "xml.etree.ElementTree"},
	{"decimal", "decimal"},
	{"logging", "logging"},
};

bool imports_template(const char *name, void (*add)(void *user, const char *module), void *user)
{
	const struct template_info *template = template_find(name);

	for (size_t i = 0; template && template->modules[i]; i++)
		add(user, template->modules[i]);
	return template != NULL;
}

#define MODULE_NAME_MAX 100

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static const char *read_name(const char *at, const char *end, char name[MODULE_NAME_MAX])
{
	size_t length = 0;

	while (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == '.')) {
		if (length < MODULE_NAME_MAX - 1)
			name[length++] = *at;
		at++;
	}
	name[length] = '\0';
	return at;
}

static bool word(const char **at, const char *end, const char *text)
{
	size_t length = strlen(text);

	if ((size_t)(end - *at) <= length || strncmp(*at, text, length) != 0 ||
	    (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_'))
		return false;
	*at = skip_blanks(*at + length, end);
	return true;
}

/* `name` may be dotted: its first part decides, all of it is loaded. */
static void add_heavy(const char *name, void (*add)(void *, const char *), void *user)
{
	size_t first = strcspn(name, ".");
	/* unittest.__main__ is a program: it would run in the template. */
	bool whole = name[first] == '.' && !strstr(name, "__");

	for (size_t i = 0; i < ARRAY_LENGTH(heavy); i++) {
		if (strlen(heavy[i].module) != first || strncmp(heavy[i].module, name, first) != 0)
			continue;
		add(user, heavy[i].loads);
		if (whole && strcmp(name, heavy[i].loads) != 0)
			add(user, name);
	}
}

static void scan_line(const char *at, const char *end, void (*add)(void *, const char *),
		      void *user)
{
	char name[MODULE_NAME_MAX], whole[2 * MODULE_NAME_MAX];

	at = skip_blanks(at, end);
	if (word(&at, end, "import")) {
		do {
			at = read_name(skip_blanks(at, end), end, name);
			add_heavy(name, add, user);
			while (at < end && *at != ',' && *at != ';' && *at != '#')
				at++;
		} while (at < end && *at++ == ',');
	} else if (word(&at, end, "from")) {
		at = skip_blanks(read_name(at, end, name), end);
		add_heavy(name, add, user);
		if (!word(&at, end, "import"))
			return;
		/* A submodule or a function: loading tells, and failing is fine. */
		read_name(at, end, whole + snprintf(whole, MODULE_NAME_MAX, "%s.", name));
		if (strncmp(name, "scipy", 5) == 0 || strncmp(name, "sklearn", 7) == 0)
			add_heavy(whole, add, user);
	}
}

void imports_scan(struct span code, void (*add)(void *user, const char *module), void *user)
{
	const char *at = (const char *)code.data, *end = at + code.length;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = newline ? newline : end;

		/* import a; import b */
		for (const char *part = at; part < line_end;) {
			const char *semicolon = memchr(part, ';', (size_t)(line_end - part));
			const char *part_end = semicolon ? semicolon : line_end;

			scan_line(part, part_end, add, user);
			part = part_end + 1;
		}
		at = line_end + 1;
	}
}
