/* SPDX-License-Identifier: Apache-2.0 */
/* test_imports: which modules a template loads for a code. The names come from
 * a stranger's text, so what they may be matters more than what is missed. */
#include "unit.h"

#include "base/cleanup.h"
#include "engine/engine.h"

struct found {
	char text[4096];
	size_t count, longest;
};

static void collect(void *user, const char *module)
{
	struct found *found = user;
	size_t used = strlen(found->text), length = strlen(module);

	found->count++;
	if (length > found->longest)
		found->longest = length;
	snprintf(found->text + used, sizeof found->text - used, "%s%s", used ? " " : "", module);
	for (const char *at = module; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.",
			    *at))
			fail_msg("odd character 0x%02x", (unsigned char)*at);
}

static void lines(void **state)
{
	static const struct {
		const char *code, *modules;
	} cases[] = {
		{"", ""},
		{"import numpy\n", "numpy"},
		{"import numpy", "numpy"},
		{"import numpy as np\n", "numpy"},
		{"  import numpy\n", "numpy"},
		{"\timport numpy\r\n", "numpy"},
		{"import os, numpy , pandas as pd\n", "numpy pandas"},
		{"import os; import numpy; x = 1\n", "numpy"},
		{"from numpy import array\n", "numpy"},
		{"from matplotlib import pyplot as plt\n", "matplotlib.pyplot"},
		{"import matplotlib.pyplot as plt\n", "matplotlib.pyplot"},
		{"from scipy import stats\n", "scipy scipy scipy.stats"},
		{"from scipy.stats import norm\n", "scipy scipy.stats scipy scipy.stats.norm"},
		{"import os\nimport sys\n", ""},
		{"importnumpy\nimport_numpy\nfromnumpy import x\n", ""},
		{"import\n", ""},
		{"import ", ""},
		{"from\n", ""},
		{"from ", ""},
		{"from . import x\nfrom .numpy import x\n", ""},
		{"# import numpy\n", ""},
		{"import numpyx\nimport xnumpy\n", ""},
		{"import numpy # , pandas\n", "numpy"},
		{"x = 'import numpy'\n", ""},
		{"from __future__ import annotations\n", ""},
		{";;;\n;import numpy\n", "numpy"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct found found = {0};

		imports_scan(text_of(cases[i].code), collect, &found);
		if (strcmp(found.text, cases[i].modules) != 0)
			fail_msg("%s -> \"%s\"", cases[i].code, found.text);
	}
}

static void long_names_are_cut(void **state)
{
	char code[3 * 4096];
	struct found found = {0};
	size_t at = (size_t)snprintf(code, sizeof code, "from scipy.");

	memset(code + at, 'a', 4096);
	at += 4096;
	at += (size_t)snprintf(code + at, sizeof code - at, " import ");
	memset(code + at, 'b', 4096);
	at += 4096;
	imports_scan(span_of(code, at), collect, &found);
	assert_true(found.count > 0);
	assert_true(found.longest < 200);
}

static void any_bytes_at_all(void **state)
{
	static const char alphabet[] = "imports from,;.#\n\t \\'\"()numpyscipy\0\xff\xc3\xa9";
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct found found = {0};
		size_t length = (size_t)(round % 97);
		char *code = malloc(length ? length : 1); /* exact, so that ASan sees one more */

		for (size_t i = 0; i < length; i++) {
			seed = seed * 1103515245 + 12345;
			code[i] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
		}
		if (length > 20 && round % 2)
			memcpy(code, round % 4 == 1 ? "import " : "from scipy import ",
			       round % 4 == 1 ? 7 : 18);
		imports_scan(span_of(code, length), collect, &found);
		free(code);
	}
}

/* `import unittest.__main__` would run a program in the template. */
static void no_module_that_is_a_program(void **state)
{
	static const char *const codes[] = {
		"import unittest.__main__\n",     "import asyncio.__main__ as m\n",
		"from flask.__main__ import x\n", "import numpy.f2py.__main__\n",
		"from scipy import __main__\n",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(codes); i++) {
		struct found found = {0};

		imports_scan(text_of(codes[i]), collect, &found);
		if (strstr(found.text, "__main__"))
			fail_msg("%s -> \"%s\"", codes[i], found.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(any_bytes_at_all),
		cmocka_unit_test(no_module_that_is_a_program),
	};

	return cmocka_run_group_tests_name("imports", tests, NULL, NULL);
}
