/* SPDX-License-Identifier: Apache-2.0 */
/* contents: what constants hold that is not Python: SQL, pickles, markup, and
 * the names of internals. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <string.h>

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

void check_sql(struct walk *walk, struct value *value, const struct node *node)
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

void check_pickle(struct walk *walk, struct value *value, const struct node *node, const char *name)
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

/* --- markup and names ----------------------------------------------------- */

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

bool identifier_letter(uint8_t letter)
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
