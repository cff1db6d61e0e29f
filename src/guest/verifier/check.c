/* SPDX-License-Identifier: Apache-2.0 */
/* check: judges calls by their arguments, after the third column of names.def,
 * and strings by the code that they hold. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"
#include "policy/text.h"

#include <ctype.h>
#include <string.h>

/* --- paths --------------------------------------------------------------- */

static void remember(PyObject *set, PyObject *name)
{
	if (PySet_Add(set, name) < 0)
		PyErr_Clear();
}

/* Paths are kept in their normal form, with the directories above them. */
static void remember_created(struct walk *walk, struct span path)
{
	char text[PATH_TEXT_MAX], *slash;

	if (!path_normalize(path, false, text))
		return;
	for (;;) {
		PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

		if (name)
			remember(walk->created, name);
		Py_XDECREF(name);
		PyErr_Clear();
		slash = strrchr(text, '/');
		if (!slash || slash == text || strcmp(text, "/workspace") == 0)
			return;
		*slash = '\0';
		if (strcmp(text, "/workspace") == 0)
			return;
	}
}

bool created_here(struct walk *walk, struct span path)
{
	char text[PATH_TEXT_MAX];
	PyObject *name;
	int r;

	if (!path_normalize(path, false, text))
		return false;
	name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	r = name ? PySet_Contains(walk->created, name) : 0;
	Py_XDECREF(name);
	PyErr_Clear();
	return r == 1;
}

static bool is_url(struct span text)
{
	static const char *const schemes[] = {"http://", "https://", "ftp://",
					      "s3://",   "gs://",    "sftp://"};

	for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++)
		if (text.length >= strlen(schemes[i]) &&
		    strncasecmp((const char *)text.data, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return false;
}

static struct span path_of(struct value *value)
{
	struct span text = {0};

	if (!value_text(value, &text))
		return (struct span){0};
	return text;
}

static void check_path_one(struct walk *walk, struct value *value, const struct node *node,
			   char how)
{
	struct span path = path_of(value);
	bool prefix = value->flags & VALUE_PREFIX;
	bool write = how == 'w' || how == 'd';
	enum rule rule = RULE_COUNT;
	char shown[256];

	if ((how == 'u' || how == 'v') && is_url(path)) {
		snprintf(shown, sizeof shown, "%.*s", (int)(path.length < 120 ? path.length : 120),
			 (const char *)path.data);
		report_argument(walk, RULE_NETWORK, node, shown);
		return;
	}
	/* SQLAlchemy's and SQLite's ways to name a file. */
	if (path.length > 10 && memcmp(path.data, "sqlite:///", 10) == 0)
		path = (struct span){path.data + 10, path.length - 10};
	if (path.length >= 5 && memcmp(path.data, "file:", 5) == 0) {
		const uint8_t *query = memchr(path.data, '?', path.length);

		if (query)
			path.length = (size_t)(query - path.data);
	}
	if (!path.length || (path.length == 8 && memcmp(path.data, ":memory:", 8) == 0))
		return;
	snprintf(shown, sizeof shown, "'%.*s%s'", (int)(path.length < 200 ? path.length : 200),
		 (const char *)path.data, prefix ? "…" : "");
	if (!(value->flags & VALUE_DEFAULT) &&
	    policy_path_severity(walk->policy, path, prefix, write, &rule) != SEVERITY_OFF)
		report_argument(walk, rule, node, shown);
	if (prefix) {
		walk->creates_unknown |= write;
		return;
	}
	if (how == 'w')
		remember_created(walk, path);
	if (how == 'd' && rule == RULE_COUNT && !created_here(walk, path) &&
	    !(value->flags & VALUE_DEFAULT) &&
	    !(path.length > 5 && memcmp(path.data, "/tmp/", 5) == 0))
		report_argument(walk, RULE_DELETE, node, shown);
	if (how == 'r' || how == 'u')
		lint_missing_file(walk, value, node);
}

static void check_path(struct walk *walk, struct value *value, const struct node *node, char how)
{
	struct value *alternatives[ALTERNATIVES_MAX];
	size_t count = value_alternatives(value, alternatives);

	for (size_t i = 0; i < count; i++) {
		struct value *one = alternatives[i];

		if (one->kind == VALUE_CONSTANT &&
		    (PyUnicode_CheckExact(one->object) || PyBytes_CheckExact(one->object)))
			check_path_one(walk, one, node, how);
		else if (one->kind == VALUE_SEQUENCE)
			for (size_t k = 0; k < one->count && k < 16; k++)
				check_path(walk, one->items[k], node, how);
		else if (how == 'w')
			walk->creates_unknown = true;
	}
}

/* A file opened with a mode: 'r', or 'w' when the mode can change it. */
static char how_of_mode(struct value *mode)
{
	struct span text;

	if (!mode)
		return 'r';
	mode = value_plain(mode);
	if (!value_text(mode, &text) || mode->flags & VALUE_PREFIX)
		return 'r'; /* not known: what is read is judged at least */
	for (size_t i = 0; i < text.length; i++)
		if (strchr("wax+", text.data[i]))
			return 'w';
	return 'r';
}

/* --- SQL ----------------------------------------------------------------- */

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && isspace((unsigned char)*at))
		at++;
	return at;
}

static bool word_at(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	return (size_t)(end - at) >= length && strncasecmp(at, word, length) == 0 &&
	       ((size_t)(end - at) == length || !isalnum((unsigned char)at[length]));
}

/* The quoted file name behind ATTACH or INTO; false when it is none. */
static bool sql_file_name(const char *at, const char *end, struct span *ret_name)
{
	const char *close;

	at = skip_space(at, end);
	if (word_at(at, end, "database"))
		at = skip_space(at + 8, end);
	if (at >= end || (*at != '\'' && *at != '"'))
		return false;
	close = memchr(at + 1, *at, (size_t)(end - at - 1));
	if (!close)
		return false; /* the rest of the name is not known */
	*ret_name = (struct span){(const uint8_t *)at + 1, (size_t)(close - at - 1)};
	return true;
}

/* Behind white space and comments. */
static const char *skip_blank(const char *at, const char *end)
{
	for (;;) {
		const char *close;

		at = skip_space(at, end);
		if (end - at >= 2 && at[0] == '-' && at[1] == '-') {
			close = memchr(at, '\n', (size_t)(end - at));
			at = close ? close : end;
		} else if (end - at >= 2 && at[0] == '/' && at[1] == '*') {
			close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
			at = close ? close + 2 : end;
		} else {
			return at;
		}
	}
}

/* Behind the semicolon that ends the statement. */
static const char *skip_statement(const char *at, const char *end)
{
	for (char quote = 0; at < end; at++) {
		if (quote) {
			if (*at == quote)
				quote = 0;
		} else if (*at == '\'' || *at == '"') {
			quote = *at;
		} else if (*at == ';') {
			return at + 1;
		}
	}
	return end;
}

static void check_sql(struct walk *walk, struct value *value, const struct node *node)
{
	static const char *const functions[] = {"load_extension", "writefile", "readfile",
						"fts3_tokenizer"};
	struct span text, name;
	const char *at, *end;

	value = value_plain(value);
	if (!value_text(value, &text))
		return;
	end = (const char *)text.data + text.length;
	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++) {
		const char *found = strcasestr((const char *)text.data, functions[i]);

		if (!found)
			continue;
		found = skip_space(found + strlen(functions[i]), end);
		if (found < end && *found == '(') {
			report(walk, RULE_SQL_FILE, node, functions[i], NULL);
			return;
		}
	}
	for (at = skip_blank((const char *)text.data, end); at < end;
	     at = skip_blank(skip_statement(at, end), end)) {
		const char *found = NULL, *file = NULL;

		if (word_at(at, end, "attach")) {
			found = "ATTACH";
			file = at + 6;
		} else if (word_at(at, end, "vacuum")) {
			const char *into = skip_space(at + 6, end);

			/* A schema's name may stand between. */
			while (into < end && (isalnum((unsigned char)*into) || *into == '_') &&
			       !word_at(into, end, "into"))
				into++;
			into = skip_space(into, end);
			if (word_at(into, end, "into")) {
				found = "VACUUM INTO";
				file = into + 4;
			}
		}
		if (!found)
			continue;
		if (sql_file_name(file, end, &name) &&
		    (span_equals(name, ":memory:") || path_place(name, false) == PATH_INSIDE))
			continue;
		/* A name that is not written here can be any. */
		report(walk, RULE_SQL_FILE, node, found, NULL);
		return;
	}
}

/* --- pickles ------------------------------------------------------------- */

static bool is_module_of_rules(struct span name)
{
	char text[64];
	const struct name_info *info;

	if (!name.length || name.length >= sizeof text)
		return false;
	memcpy(text, name.data, name.length);
	text[name.length] = '\0';
	info = name_find(text);
	return (info && (info->kind == NAME_LISTED || info->kind == NAME_HARD ||
			 (info->kind == NAME_ALIAS && strcmp(info->text, "pickle") != 0))) ||
	       strcmp(text, "operator") == 0 || strcmp(text, "functools") == 0 ||
	       strcmp(text, "types") == 0;
}

/* Does the pickle name something of a listed module? GLOBAL and INST write
 * "c" or "i", module, newline, name; STACK_GLOBAL takes two short strings. */
static bool pickle_reaches(struct span bytes)
{
	bool stack_global = memchr(bytes.data, 0x93, bytes.length) != NULL;

	for (size_t i = 0; i + 2 < bytes.length; i++) {
		const uint8_t *at = bytes.data + i, *end;
		size_t left = bytes.length - i - 1, length;

		if (*at == 'c' || *at == 'i') {
			end = memchr(at + 1, '\n', left < 64 ? left : 64);
			if (end &&
			    is_module_of_rules((struct span){at + 1, (size_t)(end - at - 1)}))
				return true;
		}
		if (!stack_global)
			continue;
		if (*at == 0x8c && left > at[1]) { /* SHORT_BINUNICODE */
			length = at[1];
			if (length + 1 <= left && is_module_of_rules((struct span){at + 2, length}))
				return true;
		}
		if ((*at == 'X' || *at == 0x8d) && left > 4) { /* BINUNICODE */
			length = at[1];
			if (at[2] == 0 && at[3] == 0 && length + 4 <= left &&
			    is_module_of_rules((struct span){at + 5, length}))
				return true;
		}
		if (*at == 'V') { /* UNICODE */
			end = memchr(at + 1, '\n', left < 64 ? left : 64);
			if (end &&
			    is_module_of_rules((struct span){at + 1, (size_t)(end - at - 1)}))
				return true;
		}
	}
	return false;
}

void check_bytes(struct walk *walk, PyObject *bytes, const struct node *node)
{
	struct span text = {(const uint8_t *)PyBytes_AS_STRING(bytes),
			    (size_t)PyBytes_GET_SIZE(bytes)};

	if (text.length < 8)
		return;
	if (memchr(text.data, '.', text.length) && pickle_reaches(text) &&
	    (memchr(text.data, '\n', text.length) || text.data[0] == 0x80))
		report(walk, RULE_CODE_STRING, node, "a pickle that calls a listed module", NULL);
	if (text.length > 4 && memcmp(text.data,
				      "\x7f"
				      "ELF",
				      4) == 0)
		report(walk, RULE_NATIVE, node, "an ELF program", NULL);
	if (!walk->quiet_text && memmem(text.data, text.length, "__", 2)) {
		PyObject *decoded = PyUnicode_DecodeLatin1((const char *)text.data,
							   (Py_ssize_t)text.length, NULL);

		if (decoded)
			check_text(walk, decoded, node);
		Py_XDECREF(decoded);
		PyErr_Clear();
	}
}

static void check_pickle(struct walk *walk, struct value *value, const struct node *node,
			 const char *name)
{
	struct span text;

	value = value_plain(value);
	if (value->kind == VALUE_CONSTANT && PyBytes_CheckExact(value->object)) {
		if (value_text(value, &text) && pickle_reaches(text))
			report(walk, RULE_DESERIALIZE, node, name, NULL);
		return;
	}
	if (walk->dumps_pickles)
		return;
	/* Decoded, fetched or put together: nobody has seen these bytes. */
	if (value->flags & VALUE_COMPUTED ||
	    (value->kind == VALUE_REFERENCE &&
	     (strncmp(value->reference->path, "base64.", 7) == 0 ||
	      strncmp(value->reference->path, "zlib.", 5) == 0 ||
	      strncmp(value->reference->path, "codecs.", 7) == 0 ||
	      strncmp(value->reference->path, "io.BytesIO", 10) == 0 ||
	      strncmp(value->reference->path, "requests.", 9) == 0)))
		report(walk, RULE_DESERIALIZE, node, name, NULL);
}

/* --- code in strings ------------------------------------------------------ */

/* XML that reads a file (an external entity) or writes one (an XSLT extension). */
static void check_markup(struct walk *walk, struct span text, const struct node *node)
{
	static const char *const marks[] = {"SYSTEM ", "href=", "file=", "select="};
	bool writes = memmem(text.data, text.length, "extension-element-prefixes", 26) != NULL;
	const uint8_t *end = text.data + text.length;

	if (!writes && !memmem(text.data, text.length, "<!ENTITY", 8))
		return;
	for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
		size_t length = strlen(marks[i]);
		const uint8_t *at = text.data;

		while ((at = memmem(at, (size_t)(end - at), marks[i], length)) != NULL) {
			const uint8_t *close;
			enum rule rule = RULE_COUNT;
			char shown[120];
			struct span path;

			at += length;
			if (at >= end || (*at != '"' && *at != '\''))
				continue;
			close = memchr(at + 1, *at, (size_t)(end - at - 1));
			if (!close)
				return;
			path = (struct span){at + 1, (size_t)(close - at - 1)};
			snprintf(shown, sizeof shown, "'%.*s'",
				 (int)(path.length < 100 ? path.length : 100),
				 (const char *)path.data);
			if (path.length && (path.data[0] == '/' || path.data[0] == 'f') &&
			    policy_path_severity(walk->policy, path, false, writes, &rule) !=
				    SEVERITY_OFF)
				report(walk, rule, node, shown, NULL);
		}
	}
}

static bool identifier_letter(uint8_t letter)
{
	return isalnum(letter) || letter == '_' || letter >= 0x80;
}

void check_text(struct walk *walk, PyObject *text, const struct node *node)
{
	struct value value = {.kind = VALUE_CONSTANT, .object = text};
	struct span bytes;
	const uint8_t *end;

	/* Cheap refusals first: every string comes here. */
	if (PyUnicode_GET_LENGTH(text) < 5 || !value_text(&value, &bytes))
		return;
	end = bytes.data + bytes.length;
	if (bytes.length > 30 && memchr(bytes.data, '<', bytes.length))
		check_markup(walk, bytes, node);
	for (const uint8_t *at = bytes.data; at < end;) {
		const uint8_t *start = memchr(at, '_', (size_t)(end - at));
		enum rule rule;
		bool whole;

		if (!start)
			return;
		while (start > at && identifier_letter(start[-1]))
			start--;
		at = start;
		while (at < end && identifier_letter(*at))
			at++;
		rule = internal_attribute((struct span){start, (size_t)(at - start)});
		if (rule == RULE_COUNT)
			continue;
		whole = start == bytes.data && at == end;
		/* In prose or a path such a word means nothing; as an attribute, a
		 * name by itself, or the name of a dunder it does. */
		if (rule == RULE_INTERNALS || rule == RULE_CODE_OBJECT || whole ||
		    (start > bytes.data && start[-1] == '.')) {
			char name[64];

			snprintf(name, sizeof name, "%.*s", (int)(at - start), (const char *)start);
			report(walk, RULE_CODE_STRING, node, name, NULL);
			return;
		}
	}
}

static bool mentions_something(struct span text)
{
	static const char *const words[] = {"import",  "eval",  "exec",    "open",
					    "system",  "popen", "compile", "getattr",
					    "globals", "os.",   "sys."};

	if (!memchr(text.data, '(', text.length) && !memmem(text.data, text.length, "import ", 7))
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (memmem(text.data, text.length, words[i], strlen(words[i])))
			return true;
	return false;
}

/* The source of a doctest's examples. */
static PyObject *examples_of(struct span text)
{
	autobytes out = {0};
	size_t at = 0;

	while (at < text.length) {
		const uint8_t *line = text.data + at;
		const uint8_t *end = memchr(line, '\n', text.length - at);
		size_t length = end ? (size_t)(end - line) : text.length - at;

		at += length + 1;
		while (length && (*line == ' ' || *line == '\t'))
			line++, length--;
		if (length >= 4 && (memcmp(line, ">>> ", 4) == 0 || memcmp(line, "... ", 4) == 0)) {
			bytes_append(&out, line + 4, length - 4);
			bytes_append(&out, "\n", 1);
		}
	}
	if (out.failed || !out.length)
		return NULL;
	return PyUnicode_DecodeUTF8((const char *)out.data, (Py_ssize_t)out.length, "replace");
}

/* pandas' own marks, taken out so that Python can parse it. */
static PyObject *pandas_expression(struct span text)
{
	autobytes out = {0};
	bool quoted = false;

	for (size_t i = 0; i < text.length; i++) {
		char letter = (char)text.data[i];

		if (letter == '`') {
			quoted = !quoted;
			continue;
		}
		if (letter == '@')
			continue;
		if (quoted && !identifier_letter((uint8_t)letter))
			letter = '_';
		/* Each line is a statement; its indentation means nothing. */
		if (letter == ' ' && (!out.length || out.data[out.length - 1] == '\n'))
			continue;
		bytes_append(&out, &letter, 1);
	}
	if (out.failed)
		return NULL;
	return PyUnicode_DecodeUTF8((const char *)out.data, (Py_ssize_t)out.length, "replace");
}

static PyObject *parse_string(PyObject *text, enum string_code kind)
{
	PyCompilerFlags flags = {.cf_flags =
					 PyCF_ONLY_AST | PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE,
				 .cf_feature_version = PY_MINOR_VERSION};
	const char *source = PyUnicode_AsUTF8(text);
	PyObject *name, *ast;

	if (!source || strlen(source) != (size_t)PyUnicode_GET_LENGTH(text))
		if (!source || memchr(source, '\0', strlen(source)))
			return NULL;
	while (kind != STRING_STATEMENTS && kind != STRING_DOCTEST &&
	       (*source == ' ' || *source == '\t'))
		source++;
	name = PyUnicode_FromString("<string>");
	if (!name)
		return NULL;
	ast = Py_CompileStringObject(
		source, name, kind == STRING_EXPRESSION ? Py_eval_input : Py_file_input, &flags, 0);
	Py_DECREF(name);
	return ast;
}

static void visit_quoted(struct walk *walk, struct node *root, bool in_scope)
{
	struct scope *scope = walk->scope, *module = walk->module;
	unsigned branch = scope->branch;

	if (!in_scope) {
		walk->scope = walk->module = scope_new(walk, SCOPE_MODULE, NULL, root);
	}
	scopes_build(walk, root, walk->scope);
	walk->no_names++;
	if (root->kind == NODE_Expression)
		visit(walk, child(root, Expression_body), 0);
	else
		visit_body(walk, children(root, Module_body));
	walk->no_names--;
	if (!in_scope) {
		visit_functions(walk);
		walk->scope = scope;
		walk->module = module;
	}
	scope->branch = branch;
}

bool check_code(struct walk *walk, struct value *value, const struct node *node,
		enum string_code kind, bool in_scope)
{
	PyObject *text = value->object, *ast = NULL, *owned = NULL;
	const struct node *outer_at = walk->quoted_at;
	bool outer_refused = walk->quoted_refused;
	const char *outer_name = walk->quoted_name;
	struct hard_import *hard = walk->hard;
	struct node **queue = walk->queue;
	size_t queue_length = walk->queue_length, queue_capacity = walk->queue_capacity;
	struct node *root = NULL;
	struct span bytes;
	char message[200];

	if (walk->quoted >= STRING_CODE_DEPTH || !value_text(value, &bytes) ||
	    walk->parses >= STRING_PARSES_MAX ||
	    walk->string_bytes + bytes.length > STRING_CODE_BUDGET)
		return true; /* beyond the budget: callers that must know ask first */
	walk->parses++;
	walk->string_bytes += bytes.length;
	if (kind == STRING_DOCTEST)
		owned = examples_of(bytes);
	else if (kind == STRING_PANDAS)
		owned = pandas_expression(bytes);
	else if (PyBytes_CheckExact(text))
		owned = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), NULL);
	else
		owned = Py_NewRef(text);
	if (owned)
		ast = parse_string(owned, kind);
	Py_XDECREF(owned);
	if (ast && PyList_Append(walk->keep, ast) == 0)
		root = tree_of(&walk->arena, ast);
	Py_XDECREF(ast);
	PyErr_Clear();
	if (!root)
		return ast != NULL;
	walk->quoted++;
	if (walk->quoted == 1) {
		walk->quoted_at = node;
		walk->quoted_refused = false;
		walk->quoted_name = NULL;
	}
	if (!in_scope) {
		walk->queue = NULL;
		walk->queue_length = walk->queue_capacity = 0;
	}
	visit_quoted(walk, root, in_scope);
	if (!in_scope) {
		walk->queue = queue;
		walk->queue_length = queue_length;
		walk->queue_capacity = queue_capacity;
	}
	/* An import that only stands there is a use as well. */
	for (struct hard_import *one = walk->hard; one != hard; one = one->next)
		if (!one->harmless_use)
			report(walk, one->info->rule, node, one->info->name, NULL);
	walk->hard = hard;
	walk->quoted--;
	if (walk->quoted == 0) {
		bool refused = walk->quoted_refused;
		const char *name = walk->quoted_name;

		walk->quoted_at = outer_at;
		walk->quoted_refused = outer_refused;
		walk->quoted_name = outer_name;
		if (refused) {
			snprintf(message, sizeof message, "%s", name ? name : "it");
			report(walk, RULE_CODE_STRING, node, message, NULL);
		}
	}
	return true;
}

void check_string_argument(struct walk *walk, struct value *value, const struct node *node)
{
	struct span text;
	const char *name;
	const struct name_info *info;

	value = value_plain(value);
	if (!is_whole_text(value) || walk->quiet_text || walk->quoted ||
	    !value_text(value, &text) || text.length < 6)
		return;
	/* "os.system", as logging.config or pydoc take it. */
	if (text.length < 60 && memchr(text.data, '.', text.length)) {
		name = (const char *)text.data;
		info = name_find(name);
		if (info && info->kind == NAME_BAD && strncmp(name, "?.", 2) != 0 &&
		    strcmp(rule_infos[info->rule].kind, "danger") == 0) {
			report(walk, RULE_CODE_STRING, node, name, NULL);
			return;
		}
	}
	if (mentions_something(text))
		check_code(walk, value, node, STRING_STATEMENTS, false);
}

/* eval() of what a function's caller gives, when nothing here calls it: whoever
 * does so later is judged then, by the audit hook. */
static void report_dynamic_code(struct walk *walk, const struct node *node, const char *name)
{
	const char *function = strcmp(name, "eval()") == 0 ? uncalled_function(walk) : NULL;
	enum severity severity = walk->policy->severity[RULE_DYNAMIC_CODE];
	char message[160];

	if (!function || severity != SEVERITY_BLOCK) {
		report(walk, RULE_DYNAMIC_CODE, node, name, NULL);
		return;
	}
	snprintf(message, sizeof message, "eval() will be refused when %.60s() is given code",
		 function);
	report_with(walk, RULE_DYNAMIC_CODE, SEVERITY_WARN, node, message, NULL);
}

/* The code argument of eval and its kin. */
static void check_code_argument(struct walk *walk, struct value *value, const struct node *node,
				char how, const char *name, bool must_be_known)
{
	static const enum string_code kinds[] = {
		['c'] = STRING_STATEMENTS,
		['x'] = STRING_DOCTEST,
		['p'] = STRING_PANDAS,
		['n'] = STRING_EXPRESSION,
	};
	struct value *alternatives[ALTERNATIVES_MAX];
	size_t count = value_alternatives(value, alternatives);
	struct span text;

	for (size_t i = 0; i < count; i++) {
		struct value *one = alternatives[i];

		if (one->kind == VALUE_FUNCTION) {
			bind_arguments(walk, one->scope, NULL, 0, NULL, NULL, 0);
			continue;
		}
		if (one->kind == VALUE_SEQUENCE) {
			for (size_t k = 0; k < one->count && k < 16; k++)
				if (value_plain(one->items[k])->kind == VALUE_CONSTANT)
					check_code_argument(walk, value_plain(one->items[k]), node,
							    how, name, must_be_known);
			continue;
		}
		if (one->kind == VALUE_CONSTANT && !(one->flags & VALUE_PREFIX) &&
		    value_text(one, &text)) {
			bool budget = walk->parses < STRING_PARSES_MAX &&
				      walk->string_bytes + text.length <= STRING_CODE_BUDGET &&
				      walk->quoted < STRING_CODE_DEPTH;

			/* Bytes may carry a cookie that says what they mean. */
			if (PyBytes_CheckExact(one->object) &&
			    memmem(text.data, text.length, "coding", 6))
				budget = false;
			if (budget && check_code(walk, one, node, kinds[(int)how], true))
				continue;
			if (budget && !must_be_known)
				continue;
			if (budget) /* it does not parse: it raises, and runs nothing */
				continue;
		}
		/* compile() of a constant was judged where it stands. */
		if (one->kind == VALUE_REFERENCE &&
		    strcmp(one->reference->path, "builtins.compile()") == 0)
			continue;
		if (must_be_known)
			report_dynamic_code(walk, node, name);
		else if (one->flags & VALUE_COMPUTED && how == 'c')
			report(walk, RULE_DYNAMIC_CODE, node, name, NULL);
	}
}

/* --- imports ------------------------------------------------------------- */

void import_module(struct walk *walk, const char *name, const struct node *node, bool dynamic)
{
	char top[VERDICT_IMPORT_BYTES_MAX + 1];
	size_t length = strcspn(name, ".");

	if (!length || length >= sizeof top)
		return;
	memcpy(top, name, length);
	top[length] = '\0';
	if (walk->report && !walk->muted && !walk->quoted &&
	    verdict_add_import(walk->verdict, top) < 0)
		longjmp(walk->out, ENOMEM);
	if (!walk->quoted)
		lint_missing_module(walk, top, node);
}

void report_import(struct walk *walk, struct reference *reference, const struct node *node)
{
	struct hard_import *hard;

	if (!reference)
		return;
	/* Known and refused by name, whatever is done with it. */
	if (reference->judgement == JUDGED_BAD || reference->judgement == JUDGED_REFUSED) {
		report_reference(walk, reference, node);
		return;
	}
	if (reference->judgement != JUDGED_MODULE || !reference->info ||
	    reference->info->kind != NAME_HARD)
		return;
	hard = arena_take(&walk->arena, sizeof *hard);
	hard->info = reference->info;
	hard->node = node;
	hard->next = walk->hard;
	walk->hard = hard;
}

/* importlib.import_module, __import__, pydoc.locate: what the name brings. */
static struct value *dynamic_import(struct walk *walk, struct value *value, const struct call *call,
				    const struct node *node, char how, const char *function)
{
	struct value *names[ALTERNATIVES_MAX], *all = NULL;
	size_t count = value_alternatives(value, names);
	bool top = strstr(function, "__import__") && call->count < 4 &&
		   !call_argument(call, CALL_ARGUMENTS_MAX, "fromlist", NULL);

	for (size_t i = 0; i < count; i++) {
		struct reference *reference;
		char name[256];
		struct span text;

		if (!is_whole_text(names[i]) || !value_text(names[i], &text) ||
		    text.length >= sizeof name) {
			/* pydoc.render_doc(thing) takes objects, too. */
			if (how == 'i' || names[i]->kind == VALUE_CONSTANT ||
			    names[i]->flags & VALUE_COMPUTED)
				report(walk, RULE_DYNAMIC_IMPORT, node, function, NULL);
			continue;
		}
		memcpy(name, text.data, text.length);
		name[text.length] = '\0';
		for (char *at = name; *at; at++)
			if (*at == ':')
				*at = '.';
		import_module(walk, name, node, true);
		if (top)
			name[strcspn(name, ".")] = '\0';
		reference = reference_path(walk, name);
		if (reference && how == 'g')
			use(walk, value_reference(walk, reference), node, 0);
		report_import(walk, reference, node);
		all = value_either(walk, all, value_reference(walk, reference));
	}
	return all ? all : &value_unknown;
}

/* --- calls --------------------------------------------------------------- */

/* map(f, xs), partial(f, x), Thread(target=f, args=(x,)): as if f were called. */
static void call_through(struct walk *walk, struct value *function, const struct call *call,
			 size_t position, const char *name)
{
	struct call through = {.node = call->node};
	bool elements = strcmp(name, "builtins.map") == 0 || strcmp(name, "builtins.filter") == 0 ||
			strcmp(name, "functools.reduce") == 0 ||
			strcmp(name, "itertools.starmap") == 0;
	struct value *arguments, *alternatives[ALTERNATIVES_MAX];
	struct node *node = NULL;
	size_t count = value_alternatives(function, alternatives);
	bool sensitive = false;

	for (size_t i = 0; i < count; i++) {
		struct value *one = alternatives[i];

		sensitive |= one->kind == VALUE_FUNCTION || one->kind == VALUE_METHOD ||
			     (one->kind == VALUE_REFERENCE &&
			      one->reference->judgement != JUDGED_NOTHING) ||
			     (one->kind == VALUE_REFERENCE &&
			      strncmp(one->reference->path, "builtins.", 9) == 0);
	}
	if (!sensitive) {
		use(walk, function, call->node, 0);
		return;
	}
	for (size_t i = position + 1; i < call->count && !strstr(name, "threading."); i++) {
		through.nodes[through.count] = call->nodes[i];
		through.values[through.count++] =
			elements ? value_elements(walk, call->values[i]) : call->values[i];
	}
	if (strstr(name, "itertools.starmap") && through.count &&
	    value_plain(through.values[0])->kind == VALUE_SEQUENCE) {
		struct value *row = value_plain(through.values[0]);

		through.count = 0;
		for (size_t i = 0; i < row->count && i < CALL_ARGUMENTS_MAX; i++) {
			through.nodes[through.count] = call->node;
			through.values[through.count++] = row->items[i];
		}
	}
	arguments = call_argument(call, CALL_ARGUMENTS_MAX, "args", &node);
	if (arguments && value_plain(arguments)->kind == VALUE_SEQUENCE) {
		struct value *sequence = value_plain(arguments);

		for (size_t i = 0; i < sequence->count && through.count < CALL_ARGUMENTS_MAX; i++) {
			through.nodes[through.count] = node;
			through.values[through.count++] = sequence->items[i];
		}
	}
	for (size_t i = 0; i < call->named_count; i++) {
		through.names[i] = call->names[i];
		through.named[i] = call->named[i];
		through.named_nodes[i] = call->named_nodes[i];
	}
	through.named_count = call->named_count;
	use(walk, function, call->node, VISIT_CALLED);
	call_value(walk, function, &through);
}

static void check_attribute_path(struct walk *walk, struct value *value, const struct node *node,
				 const char *name)
{
	struct reference *reference = reference_root(walk, "?");
	struct span text;
	size_t at = 0;

	value = value_plain(value);
	if (!is_whole_text(value)) {
		if (value->flags & VALUE_COMPUTED)
			report(walk, RULE_DYNAMIC_ATTRIBUTE, node, name, NULL);
		return;
	}
	if (!value_text(value, &text))
		return;
	while (at < text.length) {
		const uint8_t *start = text.data + at;
		const uint8_t *end = memchr(start, '.', text.length - at);
		size_t length = end ? (size_t)(end - start) : text.length - at;
		PyObject *part =
			PyUnicode_DecodeUTF8((const char *)start, (Py_ssize_t)length, "replace");

		if (!part) {
			PyErr_Clear();
			return;
		}
		check_attribute_name(walk, part, node, NULL);
		PyUnicode_InternInPlace(&part);
		if (PyList_Append(walk->keep, part) < 0)
			PyErr_Clear();
		Py_DECREF(part);
		if (reference)
			reference = reference_child(walk, reference, part);
		at += length + 1;
	}
	if (reference)
		use(walk, value_reference(walk, reference), node, VISIT_CALLED);
}

/* A configuration in dicts, as logging.config takes it: file names in it, and
 * dotted names of what it calls. */
static void check_config(struct walk *walk, struct value *value, const struct node *node,
			 unsigned depth)
{
	value = value_plain(value);
	if (depth > 6)
		return;
	if (value->kind == VALUE_SEQUENCE)
		for (size_t i = 0; i < value->count; i++)
			check_config(walk, value->items[i], node, depth + 1);
	if (value->kind != VALUE_DICT)
		return;
	for (size_t i = 0; i < value->count; i += 2) {
		struct value *key = value->items[i];

		if (key && is_text(key) &&
		    PyUnicode_CompareWithASCIIString(key->object, "filename") == 0)
			check_path(walk, value->items[i + 1], node, 'w');
		else
			check_config(walk, value->items[i + 1], node, depth + 1);
	}
}

struct check {
	struct walk *walk;
	const char *name; /* for people */
	const char *path;
	enum rule rule;
	struct call *call;
	struct value *self, **ret_value;
};

static void check_argument(const struct check *check, char how, struct value *value,
			   const struct node *node, size_t position)
{
	struct walk *walk = check->walk;
	bool must_be_known =
		check->rule == RULE_DYNAMIC_CODE && strncmp(check->path, "builtins.", 9) == 0;
	double seconds;
	char message[128];
	long number;

	switch (how) {
	case 'r':
	case 'w':
	case 'd':
	case 'u':
	case 'v':
	case 'l':
		check_path(walk, value, node, how);
		return;
	case 'c':
	case 'x':
	case 'p':
	case 'n':
		check_code_argument(walk, value, node, how, check->name, must_be_known);
		return;
	case 'i':
	case 'g':
		*check->ret_value =
			dynamic_import(walk, value, check->call, node, how, check->name);
		return;
	case 'a':
		check_attribute_path(walk, value, node, check->name);
		return;
	case 'f':
		call_through(walk, value, check->call, position, check->path);
		return;
	case 'q':
		check_sql(walk, value, node);
		return;
	case 'k':
		check_pickle(walk, value, node, check->name);
		return;
	case 'h':
		value = value_plain(value);
		if (value->kind == VALUE_REFERENCE && value->reference->module &&
		    !value->reference->call)
			report(walk, check->rule, node, check->name, NULL);
		return;
	case 'y':
		value = value_plain(value);
		if (value->kind == VALUE_CONSTANT &&
		    (value->object == Py_True ||
		     (is_whole_text(value) &&
		      PyUnicode_CompareWithASCIIString(value->object, "fully_trusted") == 0)))
			report(walk, check->rule, node, check->name, NULL);
		return;
	case 'X':
		value = value_plain(value);
		number = 4;
		if (value->kind == VALUE_CONSTANT && PyLong_CheckExact(value->object))
			number = PyLong_AsLong(value->object);
		PyErr_Clear();
		/* PROT_EXEC; a constant of the module has its own entry. */
		if (number & 4 && value->kind != VALUE_REFERENCE)
			report(walk, check->rule, node, check->name, NULL);
		return;
	case 'j':
		check_config(walk, value, node, 0);
		return;
	case 't':
		value = value_plain(value);
		if (value->kind != VALUE_CONSTANT || !walk->context->time_ms ||
		    !(PyLong_CheckExact(value->object) || PyFloat_CheckExact(value->object)))
			return;
		seconds = PyFloat_AsDouble(value->object);
		PyErr_Clear();
		if (seconds * 1000 >= (double)walk->context->time_ms) {
			snprintf(message, sizeof message,
				 "sleeping %g s is longer than the time limit of %g s", seconds,
				 (double)walk->context->time_ms / 1000);
			report(walk, RULE_SLEEP, node, message, NULL);
		}
		return;
	case 'z':
		value = value_plain(value);
		if (value->kind != VALUE_CONSTANT || !PyLong_CheckExact(value->object))
			return;
		number = PyLong_AsLong(value->object);
		PyErr_Clear();
		if (number < 0 || number > 1000000)
			report(walk, check->rule, node, check->name,
			       "deep recursion crashes the interpreter: use a loop");
		return;
	default:
		return;
	}
}

/* One item of the third column: a letter, a position, perhaps a keyword. */
static const char *check_item(const struct check *check, const char *item)
{
	char how = *item++, keyword[40] = "";
	size_t position = CALL_ARGUMENTS_MAX, length;
	struct node *node = check->call->node;
	struct value *value = NULL;
	bool self = *item == 's', all = *item == '*';

	if (isdigit((unsigned char)*item) && *item != '9')
		position = (size_t)(*item - '0');
	if (*item && *item != ',')
		item++;
	if (*item == ':') {
		length = strcspn(item + 1, ",");
		snprintf(keyword, sizeof keyword, "%.*s", (int)length, item + 1);
		item += 1 + length;
	}
	if (how == 'o') {
		/* The next item is the mode. */
		struct value *mode;
		size_t mode_position = 1;
		char mode_keyword[40] = "mode";

		if (*item == ',' && item[1] == 'm') {
			mode_position = (size_t)(item[2] - '0');
			item += 3;
			if (*item == ':') {
				length = strcspn(item + 1, ",");
				snprintf(mode_keyword, sizeof mode_keyword, "%.*s", (int)length,
					 item + 1);
				item += 1 + length;
			}
		}
		mode = call_argument(check->call, mode_position, mode_keyword, NULL);
		how = how_of_mode(mode);
		/* A mode that is not known may write. */
		if (mode && value_plain(mode)->kind != VALUE_CONSTANT)
			check->walk->creates_unknown = true;
	}
	if (how == 'I') {
		if (!check->walk->context->has_stdin && !check->walk->tries)
			report(check->walk, RULE_NO_STDIN, node, check->name, NULL);
		return item;
	}
	if (all) {
		for (size_t i = 0; i < check->call->count; i++)
			check_argument(check, how, check->call->values[i], check->call->nodes[i],
				       i);
		return item;
	}
	if (self) {
		value = check->self;
		if (!value)
			return item;
	} else {
		struct node *argument = NULL;

		value = call_argument(check->call, position, *keyword ? keyword : NULL, &argument);
		if (argument)
			node = argument;
	}
	if (value)
		check_argument(check, how, value, node, position);
	return item;
}

void check_call(struct walk *walk, const struct reference *reference, const struct name_info *info,
		struct value *self, struct call *call, struct value **ret_value)
{
	const char *name = info->name;
	struct check check = {walk, name, name, info->rule, call, self, ret_value};
	const struct reference *outer = walk->checked;
	const struct node *outer_at = walk->checked_at;
	char shown[80];

	if (info->kind != NAME_CALL)
		return;
	walk->checked = reference;
	walk->checked_at = call->node;
	if (strncmp(name, "builtins.", 9) == 0)
		name += 9;
	if (strncmp(name, "?.", 2) == 0)
		name += 2;
	snprintf(shown, sizeof shown, "%s()", name);
	check.name = shown;
	for (const char *item = info->text; *item;) {
		item = check_item(&check, item);
		if (*item == ',')
			item++;
		else if (*item)
			break;
	}
	walk->checked = outer;
	walk->checked_at = outer_at;
}
