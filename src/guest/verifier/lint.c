/* SPDX-License-Identifier: Apache-2.0 */
/* lint: what is about to fail at run time. No rule here that honest code which
 * works would set off. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <string.h>

/* --- endless loops -------------------------------------------------------- */

static bool is_true(const struct node *test)
{
	PyObject *value;
	int truth;

	if (kind_of(test) != NODE_Constant)
		return false;
	value = leaf(test, Constant_value);
	truth = value ? PyObject_IsTrue(value) : 0;
	if (truth < 0)
		PyErr_Clear();
	return truth == 1;
}

static bool ends_program(const struct node *call)
{
	const struct node *function = child(call, Call_func);
	PyObject *name = NULL;

	if (kind_of(function) == NODE_Name)
		name = leaf(function, Name_id);
	else if (kind_of(function) == NODE_Attribute)
		name = leaf(function, Attribute_attr);
	if (!name)
		return false;
	return name_is(name, "exit") || name_is(name, "quit") || name_is(name, "_exit") ||
	       name_is(name, "abort") ||
	       /* These raise when there is no more. */
	       name_is(name, "next") || name_is(name, "input");
}

static bool leaves(const struct node *node, bool own_loop, unsigned depth);

static bool list_leaves(const struct list *list, bool own_loop, unsigned depth)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == SLOT_NODE &&
		    leaves(list->items[i].node, own_loop, depth))
			return true;
	return false;
}

/* Can what stands here leave the loop? Functions and classes inside cannot. */
static bool leaves(const struct node *node, bool own_loop, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return true;
	switch (node->kind) {
	case NODE_Break:
		return own_loop;
	case NODE_Return:
	case NODE_Raise:
	case NODE_Yield:
	case NODE_YieldFrom:
	case NODE_Await:
	case NODE_Assert:
		return true;
	case NODE_FunctionDef:
	case NODE_AsyncFunctionDef:
	case NODE_ClassDef:
	case NODE_Lambda:
		return false;
	case NODE_Call:
		if (ends_program(node))
			return true;
		break;
	case NODE_For:
	case NODE_AsyncFor:
	case NODE_While: {
		int body = node->kind == NODE_While ? While_body : For_body;
		int orelse = node->kind == NODE_While ? While_orelse : For_orelse;

		return list_leaves(children(node, body), false, depth + 1) ||
		       list_leaves(children(node, orelse), own_loop, depth + 1);
	}
	default:
		break;
	}
	for (size_t i = 0; i < node->slot_count; i++) {
		if (node->slots[i].kind == SLOT_NODE &&
		    leaves(node->slots[i].node, own_loop, depth + 1))
			return true;
		if (node->slots[i].kind == SLOT_LIST &&
		    list_leaves(node->slots[i].list, own_loop, depth + 1))
			return true;
	}
	return false;
}

void lint_loop(struct walk *walk, struct node *node)
{
	if (!walk->report || !is_true(child(node, While_test)) ||
	    list_leaves(children(node, While_body), true, 0))
		return;
	/* Nested endless loops make this quadratic only when each is one; the
	 * outer is then told, which is enough. */
	report(walk, RULE_ENDLESS, child(node, While_test), "", NULL);
}

/* --- names --------------------------------------------------------------- */

/* Names that are there without being builtins of the module `builtins`. */
static bool is_given(const struct walk *walk, const char *name)
{
	static const char *const given[] = {
		"__name__",     "__file__",
		"__doc__",      "__package__",
		"__builtins__", "__spec__",
		"__loader__",   "__annotations__",
		"__dict__",     "__debug__",
		"__cached__",   "__path__",
		"display",      "exit",
		"quit",         "help",
		"copyright",    "credits",
		"license",      "WindowsError",
		"reveal_type",  "__conditional_annotations__",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(given); i++)
		if (strcmp(given[i], name) == 0)
			return true;
	for (size_t i = 0; i < walk->context->name_count; i++)
		if (strcmp(walk->context->names[i], name) == 0)
			return true;
	return false;
}

static bool in_class(const struct scope *scope)
{
	for (; scope; scope = scope->parent)
		if (scope->kind == SCOPE_CLASS)
			return true;
	return false;
}

/* Modules that code uses and forgets to import. */
static const char *import_line(const char *name)
{
	static const struct {
		const char *name, *line;
	} known[] = {
		{"np", "import numpy as np"},
		{"pd", "import pandas as pd"},
		{"plt", "import matplotlib.pyplot as plt"},
		{"sns", "import seaborn as sns"},
		{"datetime", "from datetime import datetime"},
		{"timedelta", "from datetime import timedelta"},
		{"Path", "from pathlib import Path"},
		{"defaultdict", "from collections import defaultdict"},
		{"Counter", "from collections import Counter"},
		{"deque", "from collections import deque"},
		{"namedtuple", "from collections import namedtuple"},
		{"OrderedDict", "from collections import OrderedDict"},
		{"dataclass", "from dataclasses import dataclass"},
		{"field", "from dataclasses import field"},
		{"lru_cache", "from functools import lru_cache"},
		{"reduce", "from functools import reduce"},
		{"partial", "from functools import partial"},
		{"wraps", "from functools import wraps"},
		{"sqrt", "from math import sqrt"},
		{"pi", "from math import pi"},
		{"List", "from typing import List"},
		{"Dict", "from typing import Dict"},
		{"Tuple", "from typing import Tuple"},
		{"Set", "from typing import Set"},
		{"Any", "from typing import Any"},
		{"Optional", "from typing import Optional"},
		{"Union", "from typing import Union"},
		{"Callable", "from typing import Callable"},
		{"Iterable", "from typing import Iterable"},
		{"Decimal", "from decimal import Decimal"},
		{"Fraction", "from fractions import Fraction"},
		{"Enum", "from enum import Enum"},
		{"ABC", "from abc import ABC"},
		{"abstractmethod", "from abc import abstractmethod"},
		{"StringIO", "from io import StringIO"},
		{"BytesIO", "from io import BytesIO"},
		{"product", "from itertools import product"},
		{"permutations", "from itertools import permutations"},
		{"combinations", "from itertools import combinations"},
		{"sleep", "from time import sleep"},
		{"randint", "from random import randint"},
		{"raw_input", "use input() (this is Python 3)"},
		{"xrange", "use range() (this is Python 3)"},
		{"unicode", "use str (this is Python 3)"},
		{"unichr", "use chr() (this is Python 3)"},
		{"basestring", "use str (this is Python 3)"},
		{"long", "use int (this is Python 3)"},
		{"reload", "from importlib import reload"},
		{"execfile", "run the file's functions by importing it (this is Python 3)"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].line;
	return NULL;
}

/* One edit apart: a letter more, less, other, or two swapped. */
static bool nearly_same(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), i = 0;

	if (la < 3 || lb < 3 || la > lb + 1 || lb > la + 1)
		return false;
	while (i < la && i < lb && a[i] == b[i])
		i++;
	if (la == lb)
		return strcmp(a + i + 1, b + i + 1) == 0 ||
		       (i + 1 < la && a[i] == b[i + 1] && a[i + 1] == b[i] &&
			strcmp(a + i + 2, b + i + 2) == 0);
	return la > lb ? strcmp(a + i + 1, b + i) == 0 : strcmp(a + i, b + i + 1) == 0;
}

static const char *near_name(const struct walk *walk, const char *name)
{
	for (const struct scope *scope = walk->scope; scope; scope = scope->parent) {
		for (size_t i = 0; i < scope->slot_count; i++) {
			const char *other = scope->slots[i].name
						    ? PyUnicode_AsUTF8(scope->slots[i].name)
						    : NULL;

			if (other && other[0] != '*' && nearly_same(name, other))
				return other;
		}
	}
	PyErr_Clear();
	return NULL;
}

void lint_undefined(struct walk *walk, PyObject *name, const struct node *node)
{
	const char *text = PyUnicode_AsUTF8(name), *line, *near;
	char hint[FINDING_TEXT_BYTES_MAX + 1];

	if (!walk->report || walk->muted || walk->no_names || walk->tries_name || walk->quoted ||
	    walk->context->fragment || !text) {
		PyErr_Clear();
		return;
	}
	if (is_given(walk, text))
		return;
	if (in_class(walk->scope) &&
	    (strcmp(text, "__class__") == 0 || strcmp(text, "__module__") == 0 ||
	     strcmp(text, "__qualname__") == 0 || strcmp(text, "__classdict__") == 0))
		return;
	if (PySet_Contains(walk->undefined, name) == 1)
		return;
	if (PySet_Add(walk->undefined, name) < 0)
		PyErr_Clear();
	line = import_line(text);
	near = line || walk->suggestions++ >= SUGGESTIONS_MAX ? NULL : near_name(walk, text);
	if (line && strncmp(line, "use ", 4) != 0 && strncmp(line, "run ", 4) != 0)
		snprintf(hint, sizeof hint, "add `%s`", line);
	else if (line)
		snprintf(hint, sizeof hint, "%s", line);
	else if (near)
		snprintf(hint, sizeof hint, "did you mean `%s`?", near);
	else if (module_exists(text))
		snprintf(hint, sizeof hint, "add `import %s`", text);
	else
		snprintf(hint, sizeof hint, "%s", rule_infos[RULE_UNDEFINED].hint);
	report(walk, RULE_UNDEFINED, node, text, hint);
}

/* --- modules ------------------------------------------------------------- */

void lint_missing_module(struct walk *walk, const char *name, const struct node *node)
{
	char buffer[FINDING_TEXT_BYTES_MAX + 1], file[128];
	const char *instead;

	if (!walk->report || walk->muted || walk->tries_import || module_exists(name))
		return;
	/* A module of the workspace, or one that the code itself writes. */
	for (size_t i = 0; i < walk->context->file_count; i++) {
		const char *entry = walk->context->files[i];
		size_t length = strlen(name);

		if (strncmp(entry, name, length) == 0 &&
		    (entry[length] == '/' || strcmp(entry + length, ".py") == 0 ||
		     strncmp(entry + length, ".cpython", 8) == 0 ||
		     strcmp(entry + length, ".so") == 0))
			return;
	}
	if (strcmp(name, "__main__") == 0 || strcmp(name, "main") == 0)
		return;
	snprintf(file, sizeof file, "%.100s.py", name);
	if (created_here(walk, (struct span){(const uint8_t *)file, strlen(file)}))
		return;
	instead = walk->suggestions++ < SUGGESTIONS_MAX ? module_instead(name, buffer) : NULL;
	report(walk, RULE_NOT_INSTALLED, node, name, instead);
}

/* --- files --------------------------------------------------------------- */

void lint_missing_file(struct walk *walk, struct value *value, const struct node *node)
{
	char path[PATH_TEXT_MAX], shown[256], hint[FINDING_TEXT_BYTES_MAX + 1];
	struct span text;
	const char *relative;
	size_t used;

	if (!walk->report || walk->muted || walk->context->any_file || walk->context->fragment ||
	    walk->quoted || walk->tries || walk->creates_unknown ||
	    value->flags & (VALUE_DEFAULT | VALUE_PREFIX) || !is_text(value) ||
	    !value_text(value, &text) || !text.length || text.data[text.length - 1] == '/' ||
	    memchr(text.data, '*', text.length) || memchr(text.data, '\n', text.length) ||
	    memchr(text.data, '<', text.length) || memchr(text.data, '{', text.length) ||
	    span_equals(text, "-") || !path_normalize(text, false, path))
		return;
	if (created_here(walk, text) || PySet_Contains(walk->mentioned, value->object) == 1)
		return;
	if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/usr/", 5) == 0 ||
	    strncmp(path, "/etc/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ||
	    strncmp(path, "/sys/", 5) == 0)
		return;
	if (strncmp(path, "/workspace/", 11) == 0) {
		relative = path + 11;
		if (strcmp(relative, "main.py") == 0)
			return;
		for (size_t i = 0; i < walk->context->file_count; i++)
			if (strcmp(walk->context->files[i], relative) == 0)
				return;
	}
	snprintf(shown, sizeof shown, "%.*s", (int)(text.length < 200 ? text.length : 200),
		 (const char *)text.data);
	used = (size_t)snprintf(hint, sizeof hint, "%s", rule_infos[RULE_NO_FILE].hint);
	for (size_t i = 0; i < walk->context->file_count && i < 8 && used < 300; i++)
		used += (size_t)snprintf(hint + used, sizeof hint - used, "%s%.40s",
					 i ? ", " : "; there are: ", walk->context->files[i]);
	report(walk, RULE_NO_FILE, node, shown, hint);
}
