/* SPDX-License-Identifier: Apache-2.0 */
/* check: judges calls by their arguments, after the third column of names.def. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

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

		if (key && is_text(key) && name_is(key->object, "filename"))
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
		     (is_whole_text(value) && name_is(value->object, "fully_trusted"))))
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
