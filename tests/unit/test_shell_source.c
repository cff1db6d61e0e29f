/* SPDX-License-Identifier: Apache-2.0 */
/* test_shell_source: when the shell takes what was typed for whole. */
#include "unit.h"

#include "cli/shell_source.h"

static const struct {
	const char *lines;
	enum source_state state;
} cases[] = {
	{"", SOURCE_EMPTY},
	{"\n", SOURCE_EMPTY},
	{"  \t\r\n", SOURCE_EMPTY},
	{"# only a comment:\n", SOURCE_EMPTY},
	{"x = 1\n", SOURCE_WHOLE},
	{"  x = 1\n", SOURCE_WHOLE},
	{"if x: pass\n", SOURCE_WHOLE},
	{"x[1:2]\n", SOURCE_WHOLE},
	{"d = {1: 2}\n", SOURCE_WHOLE},
	{"f(lambda: 0)\n", SOURCE_WHOLE},
	/* brackets */
	{"f(\n", SOURCE_OPEN},
	{"f(1,\n", SOURCE_OPEN},
	{"f(1,\n\n", SOURCE_OPEN},
	{"f(1,\n  2)\n", SOURCE_WHOLE},
	{"x = [{'a': (1, 2),\n", SOURCE_OPEN},
	{"x = [{'a': (1, 2),\n}]\n", SOURCE_WHOLE},
	{"x = {\n  1:\n", SOURCE_OPEN},
	{"x = {\n  1:\n 2}\n", SOURCE_WHOLE},
	{"f(')'\n", SOURCE_OPEN},
	{"f('(')\n", SOURCE_WHOLE},
	{"f(  # )\n", SOURCE_OPEN},
	{"x = 1  # (\n", SOURCE_WHOLE},
	/* more closed than opened, or by the wrong one: Python says so */
	{"x = )\n", SOURCE_WHOLE},
	{"))(\n", SOURCE_OPEN},
	{"(]\n", SOURCE_WHOLE},
	/* strings */
	{"'''\n", SOURCE_OPEN},
	{"'''a\n\nb\n", SOURCE_OPEN},
	{"'''a\n\nb'''\n", SOURCE_WHOLE},
	{"\"\"\"a''' \n", SOURCE_OPEN},
	{"\"\"\"a'''\"\"\"\n", SOURCE_WHOLE},
	{"'''a\\'''\n", SOURCE_OPEN},
	{"'''a\\''''\n", SOURCE_WHOLE},
	{"'''a\\'\\''''\n", SOURCE_WHOLE},
	{"rb'''x\n", SOURCE_OPEN},
	{"''\n", SOURCE_WHOLE},
	{"''''''\n", SOURCE_WHOLE},
	{"'it'\n", SOURCE_WHOLE},
	{"'no end\n", SOURCE_WHOLE},
	{"'it\\'s'\n", SOURCE_WHOLE},
	{"'on the \\\n", SOURCE_OPEN},
	{"'on the \\\nnext'\n", SOURCE_WHOLE},
	{"x = '# no comment'\n", SOURCE_WHOLE},
	{"x = '# no comment' + (\n", SOURCE_OPEN},
	/* backslashes */
	{"x = 1 + \\\n", SOURCE_OPEN},
	{"x = 1 + \\\n2\n", SOURCE_WHOLE},
	{"x = 1 + \\\n\n", SOURCE_WHOLE},
	{"x = \\ 1\n", SOURCE_WHOLE},
	{"# comment \\\n", SOURCE_EMPTY},
	/* blocks */
	{"if x:\n", SOURCE_OPEN},
	{"if x:  # why\n", SOURCE_OPEN},
	{"if x:\n    y\n", SOURCE_OPEN},
	{"if x:\n    y\n\n", SOURCE_WHOLE},
	{"if x:\n    y\n   \t\n", SOURCE_WHOLE},
	{"if x:\n    y\n    # and\n", SOURCE_OPEN},
	{"if x:\n    y\nelse:\n    z\n", SOURCE_OPEN},
	{"if x:\n    y\nelse:\n    z\n\n", SOURCE_WHOLE},
	{"def f(a,\n      b):\n", SOURCE_OPEN},
	{"def f(a,\n      b):\n    return a\n\n", SOURCE_WHOLE},
	{"def f():\n    '''a\n\n", SOURCE_OPEN},
	{"def f():\n    '''a\n\n'''\n", SOURCE_OPEN},
	{"def f():\n    '''a\n\n'''\n\n", SOURCE_WHOLE},
	{"if a and \\\n", SOURCE_OPEN},
	{"if a and \\\n   b:\n", SOURCE_OPEN},
	{"x = ':'\n", SOURCE_WHOLE},
	{"@decorated\n", SOURCE_OPEN},
	{"@decorated(1)\ndef f(): pass\n", SOURCE_OPEN},
	{"@decorated(1)\ndef f(): pass\n\n", SOURCE_WHOLE},
	{"a @ b\n", SOURCE_WHOLE},
	{"x = 1\nfor i in x:\n", SOURCE_OPEN},
	/* other bytes */
	{"x = '\xc3\xbc'\n", SOURCE_WHOLE},
	{"\xff\xfe\n", SOURCE_WHOLE},
};

static void states(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (source_state(text_of(cases[i].lines)) != cases[i].state)
			fail_msg("case %zu: %s is %d, not %d", i, cases[i].lines,
				 source_state(text_of(cases[i].lines)), cases[i].state);
}

/* No text is read beyond its end: each prefix of each case, in memory of its own. */
static void prefixes(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t length = 0; length <= strlen(cases[i].lines); length++) {
			char *copy = malloc(length + 1);

			assert_non_null(copy);
			memcpy(copy + 1, cases[i].lines, length);
			source_state(span_of(copy + 1, length));
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(states), cmocka_unit_test(prefixes)};

	return cmocka_run_group_tests_name("shell_source", tests, NULL, NULL);
}
