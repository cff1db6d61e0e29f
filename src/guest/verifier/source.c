/* SPDX-License-Identifier: Apache-2.0 */
/* source: what the bytes must be before they are parsed, and what the parser
 * says of them. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"
#include "policy/limits.h"
#include "policy/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COMPILE_WHOLE_BYTES_MAX ((size_t)64 << 10)
#define COMPILE_PART_STATEMENTS 500

void source_add(struct walk *walk, enum rule rule, const uint32_t range[4], const char *message,
		const char *hint)
{
	if (verdict_add(walk->verdict, rule, walk->policy->severity[rule], range, message,
			hint ? hint : rule_infos[rule].hint) < 0)
		longjmp(walk->out, ENOMEM);
}

void source_range(const struct walk *walk, size_t offset, size_t length, uint32_t ret_range[4])
{
	size_t line = 1, behind = walk->line_count + 1;
	struct span before;

	while (behind - line > 1) {
		size_t middle = line + (behind - line) / 2;

		if (walk->line_starts[middle - 1] > offset)
			behind = middle;
		else
			line = middle;
	}
	before = (struct span){walk->source.data + walk->line_starts[line - 1],
			       offset - walk->line_starts[line - 1]};
	ret_range[0] = ret_range[2] = (uint32_t)line + walk->line_offset;
	ret_range[1] = (uint32_t)utf8_count(before) + 1;
	ret_range[3] = ret_range[1] +
		       (uint32_t)utf8_count((struct span){walk->source.data + offset, length});
}

/* --- bytes --------------------------------------------------------------- */

/* A zip may have anything in front: what counts is the record at its end. */
static bool is_zip(struct span code)
{
	size_t tail = code.length < 65557 ? code.length : 65557;
	const uint8_t *at = code.data + code.length - tail;

	if (code.length >= 4 && memcmp(code.data, "PK\x03\x04", 4) == 0)
		return true;
	/* No text has the byte 5. */
	while (tail >= 22 && memchr(at, 5, tail)) {
		const uint8_t *found = memmem(at, tail, "PK\x05\x06", 4);

		if (!found)
			return false;
		tail -= (size_t)(found - at);
		/* Its comment must reach exactly to the end. */
		if (tail >= 22 && (size_t)(found[20] | found[21] << 8) + 22 == tail)
			return true;
		at = found + 4;
		tail = tail > 4 ? tail - 4 : 0;
	}
	return false;
}

static const char *foreign_format(struct span code)
{
	if (is_zip(code))
		return "this is a zip archive, not Python source";
	if (code.length >= 4 && memcmp(code.data,
				       "\x7f"
				       "ELF",
				       4) == 0)
		return "this is an ELF program, not Python source";
	if (code.length >= 16 && code.data[2] == '\r' && code.data[3] == '\n' &&
	    code.data[1] >= 0x0c && code.data[1] <= 0x0f)
		return "this is compiled Python (.pyc), not source";
	if (code.length >= 2 && code.data[0] == 0x80 && code.data[1] >= 2 && code.data[1] <= 5)
		return "this is a pickle, not Python source";
	return NULL;
}

/* PEP 263's cookie on one line, or nothing. */
static struct span cookie_of(struct span line)
{
	size_t at = 0, start;
	const uint8_t *found;

	while (at < line.length &&
	       (line.data[at] == ' ' || line.data[at] == '\t' || line.data[at] == '\f'))
		at++;
	if (at == line.length || line.data[at] != '#')
		return (struct span){0};
	while (at < line.length) {
		found = memmem(line.data + at, line.length - at, "coding", 6);
		if (!found)
			return (struct span){0};
		at = (size_t)(found - line.data) + 6;
		if (at >= line.length || (line.data[at] != ':' && line.data[at] != '='))
			continue;
		at++;
		while (at < line.length && (line.data[at] == ' ' || line.data[at] == '\t'))
			at++;
		start = at;
		while (at < line.length && (isalnum(line.data[at]) || line.data[at] == '-' ||
					    line.data[at] == '_' || line.data[at] == '.'))
			at++;
		if (at > start)
			return (struct span){line.data + start, at - start};
	}
	return (struct span){0};
}

static bool is_blank(struct span line)
{
	for (size_t i = 0; i < line.length; i++) {
		if (line.data[i] == '#')
			return true;
		if (!isspace(line.data[i]))
			return false;
	}
	return true;
}

static bool is_utf8_name(struct span name)
{
	char text[16];
	size_t length = name.length < sizeof text - 1 ? name.length : sizeof text - 1;

	for (size_t i = 0; i < length; i++)
		text[i] = name.data[i] == '_' ? '-' : (char)tolower(name.data[i]);
	text[length] = '\0';
	return strcmp(text, "utf-8") == 0 || strcmp(text, "utf8") == 0 ||
	       strncmp(text, "utf-8-", 6) == 0;
}

bool source_check_cookie(struct walk *walk)
{
	for (size_t i = 0; i < 2 && i < walk->line_count; i++) {
		size_t start = walk->line_starts[i];
		size_t end =
			i + 1 < walk->line_count ? walk->line_starts[i + 1] : walk->source.length;
		struct span line = {walk->source.data + start, end - start};
		struct span cookie = cookie_of(line);
		char message[128];
		uint32_t range[4];

		if (cookie.length && !is_utf8_name(cookie)) {
			snprintf(message, sizeof message,
				 "the encoding '%.*s' is not allowed: only UTF-8 is",
				 (int)(cookie.length < 40 ? cookie.length : 40),
				 (const char *)cookie.data);
			source_range(walk, (size_t)(cookie.data - walk->source.data), cookie.length,
				     range);
			source_add(walk, RULE_ENCODING, range, message, NULL);
			return false;
		}
		if (!is_blank(line))
			break;
	}
	return true;
}

/* Characters that turn the direction of text or cannot be seen. */
static void check_hidden(struct walk *walk)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {{0x200b, 0x200f},
		      {0x202a, 0x202e},
		      {0x2060, 0x2064},
		      {0x2066, 0x2069},
		      {0xe0000, 0xe007f}};
	const uint8_t *data = walk->source.data;

	for (size_t i = 0; i + 2 < walk->source.length; i++) {
		uint32_t point;
		char name[16];
		uint32_t range[4];
		size_t length = 3;

		if (data[i] < 0x80)
			i += ascii_length((struct span){data + i, walk->source.length - i});
		if (i + 2 >= walk->source.length)
			return;
		if (data[i] < 0xe2)
			continue;
		if (data[i] == 0xe2)
			point = 0x2000u | (data[i + 1] & 0x3fu) << 6 | (data[i + 2] & 0x3fu);
		else if (data[i] == 0xf3 && data[i + 1] == 0xa0 && i + 3 < walk->source.length)
			point = 0xe0000u | (data[i + 2] & 0x3fu) << 6 | (data[i + 3] & 0x3fu),
			length = 4;
		else
			continue;
		/* ZWJ and ZWNJ are part of how some scripts and emoji are written. */
		if (point == 0x200c || point == 0x200d)
			continue;
		for (size_t k = 0; k < ARRAY_LENGTH(hidden); k++) {
			char message[128];

			if (point < hidden[k].first || point > hidden[k].last)
				continue;
			snprintf(name, sizeof name, "U+%04X", point);
			source_range(walk, i, length, range);
			snprintf(message, sizeof message,
				 "the source has a character that hides how it reads: %s", name);
			source_add(walk, RULE_BIDI, range, message, NULL);
			return;
		}
	}
}

bool source_check(struct walk *walk)
{
	const uint32_t whole[4] = {0};
	struct span code = walk->source;
	char message[160];
	const char *foreign;
	const uint8_t *nul;
	uint32_t range[4];
	size_t bad;

	if (code.length > CODE_BYTES_MAX) {
		snprintf(message, sizeof message, "the code has %zu bytes; the limit is %llu",
			 code.length, (unsigned long long)CODE_BYTES_MAX);
		source_add(walk, RULE_TOO_LARGE, whole, message, NULL);
		return false;
	}
	if (!code.length)
		return true;
	foreign = foreign_format(code);
	if (foreign) {
		source_add(walk, RULE_NOT_SOURCE, whole, foreign, NULL);
		return false;
	}
	nul = memchr(code.data, 0, code.length);
	if (nul) {
		source_range(walk, (size_t)(nul - code.data), 1, range);
		source_add(walk, RULE_NUL, range, rule_infos[RULE_NUL].message, NULL);
		return false;
	}
	bad = utf8_error(code);
	if (bad < code.length) {
		source_range(walk, bad, 1, range);
		snprintf(message, sizeof message,
			 "the source is not UTF-8: byte 0x%02x at position %zu", code.data[bad],
			 bad);
		source_add(walk, RULE_ENCODING, range, message, NULL);
		return false;
	}
	if (!source_check_cookie(walk))
		return false;
	check_hidden(walk);
	return true;
}

/* --- syntax errors -------------------------------------------------------- */

static long number_of(PyObject *object, const char *name)
{
	PyObject *value = PyObject_GetAttrString(object, name);
	long number = value && PyLong_Check(value) ? PyLong_AsLong(value) : -1;

	Py_XDECREF(value);
	PyErr_Clear();
	return number;
}

static struct span line_text(const struct walk *walk, long line)
{
	size_t start, end;

	if (line < 1 || (size_t)line > walk->line_count)
		return (struct span){0};
	start = walk->line_starts[line - 1];
	end = (size_t)line < walk->line_count ? walk->line_starts[line] : walk->source.length;
	while (end > start &&
	       (walk->source.data[end - 1] == '\n' || walk->source.data[end - 1] == '\r'))
		end--;
	while (start < end && (walk->source.data[start] == ' ' || walk->source.data[start] == '\t'))
		start++;
	return (struct span){walk->source.data + start, end - start};
}

static bool starts_with(struct span text, const char *start)
{
	return text.length >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

/* A line that only a notebook or a shell understands, and that magics.c leaves:
 * what is behind it there is a result, not code. */
static const char *notebook_hint(struct span line)
{
	if (starts_with(line, "%"))
		return "this is plain Python, without %magic: leave the line out";
	if (starts_with(line, "!"))
		return "there is no shell here: do it in Python";
	if (starts_with(line, ">>> "))
		return "leave the >>> prompts and the printed results out";
	if (starts_with(line, "In ["))
		return "leave the In [ ]: prompts out";
	if (starts_with(line, "```") || starts_with(line, "~~~"))
		return "send the code without the ``` lines";
	if (starts_with(line, "$ "))
		return "there is no shell here: do it in Python";
	return NULL;
}

static const char *syntax_hint(const char *message)
{
	static const struct {
		const char *part, *hint;
	} hints[] = {
		{"Missing parentheses in call to",
		 "this is Python 3: print and exec are functions"},
		{"was never closed", "close this bracket"},
		{"unmatched", "remove this bracket, or open it before"},
		{"does not match opening",
		 "close the brackets in the order in which they were opened"},
		{"unterminated triple-quoted", "close the string with three quotes"},
		{"unterminated string", "close the string on its line, or use three quotes"},
		{"unterminated f-string", "close the string on its line, or use three quotes"},
		{"f-string", "inside {} write one expression; double a brace to write it"},
		{"expected ':'", "end this line with a colon"},
		{"forgot a comma", "put a comma between these two"},
		{"Maybe you meant '==' or ':=' instead of '='", "compare with =="},
		{"cannot assign to", "only names, attributes and elements can stand left of ="},
		{"invalid character", "replace this character by its ASCII one"},
		{"invalid non-printable", "remove this invisible character"},
		{"'return' outside function", "put this into a function, or leave return out"},
		{"'yield' outside function", "put this into a function"},
		{"'await' outside", "put this into an async function and call asyncio.run()"},
		{"outside async function", "put this into an async function"},
		{"'break' outside loop", "break stands only inside a loop"},
		{"not properly in loop", "continue stands only inside a loop"},
		{"leading zeros", "write octal numbers as 0o17"},
		{"invalid decimal literal", "a name cannot begin with a digit"},
		{"unexpected EOF", "the code ends too early: complete it"},
		{"positional argument follows", "put positional arguments before the named ones"},
		{"multiple exception types must be parenthesized", "write except (A, B):"},
		{"used prior to global declaration", "move the global line up"},
		{"is parameter and global", "give the parameter another name"},
		{"no binding for nonlocal",
		 "define the name in the enclosing function, or use global"},
		{"expected 'except' or 'finally'", "add an except or finally block"},
		{"expected an indented block", "write the block, indented, or pass"},
		{"unindent does not match", "indent this line as much as the block it belongs to"},
		{"unexpected indent", "remove the spaces before this line"},
		{"inconsistent use of tabs", "use four spaces and no tabs"},
		{"from __future__ imports must occur", "move this line to the top"},
		{"too many statically nested blocks", "move the inner blocks into a function"},
		{"duplicate argument", "give each parameter its own name"},
		{"import * only allowed", "move the import to the top"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(hints); i++)
		if (strstr(message, hints[i].part))
			return hints[i].hint;
	return NULL;
}

static void add_syntax_error(struct walk *walk, PyObject *error)
{
	long line = number_of(error, "lineno"), column = number_of(error, "offset");
	long end_line = number_of(error, "end_lineno"), end_column = number_of(error, "end_offset");
	enum rule rule = RULE_SYNTAX;
	PyObject *message_object = PyObject_GetAttrString(error, "msg");
	const char *message = message_object && PyUnicode_Check(message_object)
				      ? PyUnicode_AsUTF8(message_object)
				      : NULL;
	uint32_t range[4] = {0};
	const char *hint;

	PyErr_Clear();
	if (!message)
		message = "invalid syntax";
	if (PyErr_GivenExceptionMatches(error, PyExc_TabError))
		rule = RULE_TAB;
	else if (PyErr_GivenExceptionMatches(error, PyExc_IndentationError))
		rule = RULE_INDENTATION;
	if (line > 0) {
		if (column < 1)
			column = 1;
		if (end_line < line) {
			end_line = line;
			end_column = column;
		}
		if (end_column < 1 || (end_line == line && end_column < column))
			end_column = column;
		if (end_line == line && end_column == column)
			end_column = column + 1;
		range[0] = (uint32_t)line + walk->line_offset;
		range[1] = (uint32_t)column;
		range[2] = (uint32_t)end_line + walk->line_offset;
		range[3] = (uint32_t)end_column;
	}
	hint = notebook_hint(line_text(walk, line));
	if (hint)
		rule = RULE_NOTEBOOK;
	else
		hint = syntax_hint(message);
	source_add(walk, rule, range, message, hint);
	Py_XDECREF(message_object);
}

/* Turns the Python error that is set into findings; false: it was ours. */
static bool take_error(struct walk *walk)
{
	const uint32_t whole[4] = {0};
	PyObject *type, *error, *traceback;

	PyErr_Fetch(&type, &error, &traceback);
	PyErr_NormalizeException(&type, &error, &traceback);
	if (!error) {
		Py_XDECREF(type);
		Py_XDECREF(traceback);
		return false;
	}
	if (PyErr_GivenExceptionMatches(error, PyExc_SyntaxError)) {
		add_syntax_error(walk, error);
	} else if (PyErr_GivenExceptionMatches(error, PyExc_RecursionError)) {
		source_add(walk, RULE_TOO_DEEP, whole, "the code is nested too deeply", NULL);
	} else if (PyErr_GivenExceptionMatches(error, PyExc_MemoryError)) {
		source_add(walk, RULE_TOO_DEEP, whole, "the code is too complex for the parser",
			   NULL);
	} else {
		PyObject *text = PyObject_Str(error);
		const char *words = text ? PyUnicode_AsUTF8(text) : NULL;

		/* ValueError: a huge integer literal, and what versions to come add. */
		source_add(walk, RULE_SYNTAX, whole, words ? words : "the code cannot be compiled",
			   NULL);
		Py_XDECREF(text);
	}
	PyErr_Clear();
	Py_XDECREF(type);
	Py_XDECREF(error);
	Py_XDECREF(traceback);
	return true;
}

/* The compiler refuses more than the parser: return outside a function,
 * nonlocal without a binding, ... Its time grows faster than the module that it
 * compiles, so a large one is compiled in parts of some statements. */
static bool compile_whole(const char *text, PyObject *name, int flag_bits)
{
	PyCompilerFlags flags = {.cf_flags = flag_bits, .cf_feature_version = PY_MINOR_VERSION};
	PyObject *compiled = Py_CompileStringObject(text, name, Py_file_input, &flags, 0);

	Py_XDECREF(compiled);
	return compiled != NULL;
}

static bool compile_parts(PyObject *ast, PyObject *name, int flag_bits)
{
	PyObject *compile = PyDict_GetItemString(PyEval_GetBuiltins(), "compile");
	PyObject *body = PyObject_GetAttrString(ast, "body");
	bool fine = compile && body && PyList_CheckExact(body);

	for (Py_ssize_t i = 0; fine && i < PyList_GET_SIZE(body); i += COMPILE_PART_STATEMENTS) {
		PyObject *part = PyList_GetSlice(body, i, i + COMPILE_PART_STATEMENTS);
		PyObject *ignores = PyList_New(0);
		PyObject *module = part && ignores ? PyObject_CallFunction((PyObject *)Py_TYPE(ast),
									   "OO", part, ignores)
						   : NULL;
		PyObject *compiled = module ? PyObject_CallFunction(compile, "OOsiO", module, name,
								    "exec", flag_bits, Py_True)
					    : NULL;

		fine = compiled != NULL;
		Py_XDECREF(compiled);
		Py_XDECREF(module);
		Py_XDECREF(ignores);
		Py_XDECREF(part);
	}
	Py_XDECREF(body);
	return fine;
}

static int compiler_flags(const struct walk *walk)
{
	return walk->context->top_level_await ? PyCF_ALLOW_TOP_LEVEL_AWAIT : 0;
}

/* The source as the terminated text that the parser wants, and its name. */
static char *source_text(struct walk *walk, PyObject **ret_name)
{
	char *text = span_to_string(walk->source);

	*ret_name = PyUnicode_FromString("main.py");
	if (text && *ret_name)
		return text;
	free(text);
	Py_XDECREF(*ret_name);
	PyErr_Clear();
	longjmp(walk->out, ENOMEM);
}

static PyObject *parse(struct walk *walk)
{
	PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST | PyCF_SOURCE_IS_UTF8 |
					     PyCF_IGNORE_COOKIE | compiler_flags(walk),
				 .cf_feature_version = PY_MINOR_VERSION};
	PyObject *name, *ast;
	char *text = source_text(walk, &name);

	ast = Py_CompileStringObject(text, name, Py_file_input, &flags, 0);
	Py_DECREF(name);
	free(text);
	return ast;
}

/* Whether the code, which is no Python as it stands, was one with notebook forms.
 * The parser's error stays set unless they were taken out. */
static bool was_notebook(struct walk *walk)
{
	PyObject *type, *error, *traceback;

	if (walk->context->fragment || !PyErr_ExceptionMatches(PyExc_SyntaxError))
		return false;
	PyErr_Fetch(&type, &error, &traceback);
	if (!magics_take_out(walk)) {
		PyErr_Restore(type, error, traceback);
		return false;
	}
	Py_XDECREF(type);
	Py_XDECREF(error);
	Py_XDECREF(traceback);
	return true;
}

PyObject *source_parse(struct walk *walk)
{
	PyObject *ast = parse(walk);

	if (!ast && was_notebook(walk)) {
		/* What is a comment now must not tell another encoding: then the
		 * code stays what it was, and that is no Python. */
		if (!source_check_cookie(walk)) {
			bytes_clear(&walk->verdict->source);
			return NULL;
		}
		ast = parse(walk);
	}
	if (!ast)
		take_error(walk);
	return ast;
}

bool source_compile(struct walk *walk, PyObject *ast)
{
	PyObject *name;
	char *text = source_text(walk, &name);
	bool compiled;

	if (walk->source.length > COMPILE_WHOLE_BYTES_MAX)
		compiled = compile_parts(ast, name, compiler_flags(walk));
	else
		compiled = compile_whole(text, name,
					 PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE |
						 compiler_flags(walk));
	Py_DECREF(name);
	free(text);
	if (!compiled)
		take_error(walk);
	return compiled;
}
