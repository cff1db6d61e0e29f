/* SPDX-License-Identifier: Apache-2.0 */
/* value: the arena, what expressions may be, and dotted names. */
#include "guest/verifier/walk.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES ((size_t)32 << 10)
#define ARENA_FIRST_BYTES ((size_t)4 << 10) /* enough for most code */
#define REFERENCE_SLOTS   64u               /* at first; a power of two */

struct arena_block {
	struct arena_block *next;
	_Alignas(16) uint8_t bytes[];
};

void *arena_take(struct arena *arena, size_t size)
{
	void *taken;

	size = (size + 15) & ~(size_t)15;
	if (size > arena->left) {
		size_t usual = arena->blocks ? ARENA_BLOCK_BYTES : ARENA_FIRST_BYTES;
		size_t room = size > usual ? size : usual;
		struct arena_block *block = malloc(sizeof *block + room);

		if (!block)
			longjmp(*arena->out, ENOMEM);
		block->next = arena->blocks;
		arena->blocks = block;
		arena->at = block->bytes;
		arena->left = room;
	}
	taken = arena->at;
	arena->at += size;
	arena->left -= size;
	/* Only what is taken: a page that is not needed is not to be had. */
	return memset(taken, 0, size);
}

void arena_free(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	arena->left = 0;
}

/* --- values -------------------------------------------------------------- */

struct value value_unknown = {.kind = VALUE_UNKNOWN};
struct value value_computed = {.kind = VALUE_UNKNOWN, .flags = VALUE_COMPUTED};

struct value *value_new(struct walk *walk, enum value_kind kind)
{
	struct value *value = arena_take(&walk->arena, sizeof *value);

	value->kind = kind;
	return value;
}

struct value *value_borrowed(struct walk *walk, PyObject *object, uint32_t flags)
{
	struct value *value = value_new(walk, VALUE_CONSTANT);

	value->object = object;
	value->flags = flags;
	return value;
}

struct value *value_constant(struct walk *walk, PyObject *object, uint32_t flags)
{
	int r;

	if (!object) {
		PyErr_Clear();
		return &value_computed;
	}
	r = PyList_Append(walk->keep, object);
	Py_DECREF(object);
	if (r < 0) {
		PyErr_Clear();
		longjmp(walk->out, ENOMEM);
	}
	return value_borrowed(walk, object, flags);
}

struct value *value_reference(struct walk *walk, struct reference *reference)
{
	struct value *value;

	if (!reference)
		return &value_unknown;
	value = value_new(walk, VALUE_REFERENCE);
	value->reference = reference;
	return value;
}

static bool same_value(const struct value *a, const struct value *b)
{
	int equal;

	if (a == b)
		return true;
	if (a->kind != b->kind || a->flags != b->flags)
		return false;
	switch (a->kind) {
	case VALUE_UNKNOWN:
		return true;
	case VALUE_REFERENCE:
		return a->reference == b->reference;
	case VALUE_FUNCTION:
	case VALUE_CLASS:
		return a->scope == b->scope;
	case VALUE_CONSTANT:
		if (a->object == b->object)
			return true;
		if (Py_TYPE(a->object) != Py_TYPE(b->object) ||
		    !(PyUnicode_CheckExact(a->object) || PyBytes_CheckExact(a->object)))
			return false;
		equal = PyObject_RichCompareBool(a->object, b->object, Py_EQ);
		if (equal < 0)
			PyErr_Clear();
		return equal == 1;
	default:
		return false;
	}
}

size_t value_alternatives(struct value *value, struct value *ret_values[ALTERNATIVES_MAX])
{
	if (value->kind != VALUE_UNION) {
		ret_values[0] = value;
		return 1;
	}
	memcpy(ret_values, value->items, value->count * sizeof value->items[0]);
	return value->count;
}

/* What counts most when there are too many alternatives. */
static int weight(const struct value *value)
{
	switch (value->kind) {
	case VALUE_REFERENCE:
		return value->reference->judgement == JUDGED_NOTHING ? 2 : 3;
	case VALUE_UNKNOWN:
		return 0;
	case VALUE_CONSTANT:
		return 1;
	default:
		return 2;
	}
}

struct value *value_either(struct walk *walk, struct value *left, struct value *right)
{
	struct value *all[2 * ALTERNATIVES_MAX], *more[ALTERNATIVES_MAX], *value;
	size_t count, more_count;

	if (!left || left == right)
		return right;
	if (!right)
		return left;
	if (left->kind == VALUE_UNKNOWN && right->kind == VALUE_UNKNOWN)
		return left->flags & VALUE_COMPUTED ? left : right;
	count = value_alternatives(left, all);
	more_count = value_alternatives(right, more);
	for (size_t i = 0; i < more_count; i++) {
		bool known = false;

		for (size_t k = 0; k < count && !known; k++)
			known = same_value(all[k], more[i]);
		if (known)
			continue;
		if (count == ALTERNATIVES_MAX) {
			/* Something must go: what matters least. */
			size_t least = 0;

			for (size_t k = 1; k < count; k++)
				if (weight(all[k]) < weight(all[least]))
					least = k;
			if (weight(all[least]) >= weight(more[i]))
				continue;
			all[least] = more[i];
			continue;
		}
		all[count++] = more[i];
	}
	if (count == 1)
		return all[0];
	if (left->kind == VALUE_UNION && count == left->count)
		return left;
	value = value_new(walk, VALUE_UNION);
	value->count = (uint32_t)count;
	value->items = arena_take(&walk->arena, count * sizeof value->items[0]);
	memcpy(value->items, all, count * sizeof value->items[0]);
	return value;
}

struct value *value_plain(struct value *value)
{
	if (value->kind != VALUE_UNION)
		return value;
	for (size_t i = 0; i < value->count; i++)
		if (value->items[i]->kind != VALUE_UNKNOWN)
			return value->items[i];
	return value->items[0];
}

static struct value *elements_of_one(struct walk *walk, struct value *value)
{
	struct value *all = NULL;

	switch (value->kind) {
	case VALUE_SEQUENCE:
		for (size_t i = 0; i < value->count; i++)
			all = value_either(walk, all, value->items[i]);
		return all ? all : &value_unknown;
	case VALUE_DICT:
		for (size_t i = 0; i < value->count; i += 2)
			all = value_either(walk, all,
					   value->items[i] ? value->items[i] : &value_unknown);
		return all ? all : &value_unknown;
	case VALUE_CONSTANT:
		/* A character or a byte: worth nothing by itself, but computed
		 * from a constant. */
		return &value_computed;
	case VALUE_UNKNOWN:
		return value;
	default:
		return &value_unknown;
	}
}

struct value *value_elements(struct walk *walk, struct value *value)
{
	struct value *alternatives[ALTERNATIVES_MAX], *all = NULL;
	size_t count = value_alternatives(value, alternatives);

	for (size_t i = 0; i < count; i++)
		all = value_either(walk, all, elements_of_one(walk, alternatives[i]));
	return all;
}

bool value_text(struct value *value, struct span *ret_text)
{
	Py_ssize_t length;
	const char *text;

	if (value->kind != VALUE_CONSTANT)
		return false;
	if (PyBytes_CheckExact(value->object)) {
		*ret_text = (struct span){(const uint8_t *)PyBytes_AS_STRING(value->object),
					  (size_t)PyBytes_GET_SIZE(value->object)};
		return true;
	}
	if (!PyUnicode_CheckExact(value->object))
		return false;
	text = PyUnicode_AsUTF8AndSize(value->object, &length);
	if (!text) {
		PyErr_Clear(); /* lone surrogates */
		return false;
	}
	*ret_text = (struct span){(const uint8_t *)text, (size_t)length};
	return true;
}

bool is_text(const struct value *value)
{
	return value->kind == VALUE_CONSTANT && PyUnicode_CheckExact(value->object);
}

bool is_whole_text(const struct value *value)
{
	return is_text(value) && !(value->flags & VALUE_PREFIX);
}

/* --- dotted names -------------------------------------------------------- */

/* Modules that are the same thing wherever they hang: `random._os`,
 * `numpy.lib.npyio.os`. Only names that no library gives to its own parts. */
static const char *const carried_modules[] = {
	"os",     "sys",   "subprocess", "socket",  "builtins", "importlib", "ctypes",
	"shutil", "posix", "pty",        "marshal", "runpy",    "posixpath", "ntpath",
};

static const char *carried_module(const char *name)
{
	const char *bare = name;

	while (*bare == '_')
		bare++;
	for (size_t i = 0; i < ARRAY_LENGTH(carried_modules); i++)
		if (carried_modules[i][0] == *bare && strcmp(carried_modules[i], bare) == 0)
			return carried_modules[i];
	return NULL;
}

static void judge(struct walk *walk, struct reference *reference)
{
	const struct name_info *info = reference->entry = name_find(reference->path);
	const struct reference *up;
	enum severity severity;

	for (up = reference->parent; up; up = up->parent) {
		if (up->module) {
			reference->module = up->module;
			break;
		}
	}
	if (info && (info->kind == NAME_LISTED || info->kind == NAME_HARD))
		reference->module = info;
	if (walk->policy->name_count && policy_name(walk->policy, reference->path, &severity)) {
		reference->forced = true;
		reference->severity = severity;
		reference->judgement = severity == SEVERITY_OFF ? JUDGED_FINE : JUDGED_BAD;
		reference->info = info;
		return;
	}
	if (!info && !reference->module && !reference->call && !reference->root_unknown)
		goto inherit;
	/* The nearest entry upwards. */
	for (up = reference; up; up = up->parent) {
		const struct name_info *entry = up == reference ? info : up->info;

		if (up != reference && up->judgement == JUDGED_NOTHING && !up->module)
			continue;
		if (up != reference && up->call)
			break;
		if (!entry)
			continue;
		reference->info = entry;
		switch (entry->kind) {
		case NAME_BAD:
			reference->judgement = JUDGED_BAD;
			return;
		case NAME_FINE_BELOW:
			reference->judgement = JUDGED_FINE;
			return;
		case NAME_FINE:
			if (up == reference) {
				reference->judgement = JUDGED_FINE;
				return;
			}
			continue;
		case NAME_CALL:
			if (up == reference) {
				reference->judgement = JUDGED_CALL;
				return;
			}
			continue;
		case NAME_LISTED:
		case NAME_HARD:
			/* What calls return was judged when it was called. */
			if (reference->call)
				return;
			reference->judgement = up == reference ? JUDGED_MODULE : JUDGED_REFUSED;
			/* Builtins are what every script uses; those that matter have
			 * entries of their own. */
			if (up != reference && strcmp(entry->name, "builtins") == 0)
				reference->judgement = JUDGED_FINE;
			return;
		case NAME_ALIAS:
			continue;
		}
	}
	reference->info = info;
inherit:
	/* Nobody knows the whole name: what is said of a method of that name. */
	if (reference->judgement == JUDGED_NOTHING && reference->parent && reference->name &&
	    !reference->module) {
		char path[128];
		Py_ssize_t length;
		const char *name = PyUnicode_AsUTF8AndSize(reference->name, &length);

		if (name && length < 100) {
			memcpy(path, "?.", 2);
			memcpy(path + 2, name, (size_t)length + 1);
			info = name_find(path);
			if (info) {
				reference->info = info;
				reference->judgement =
					info->kind == NAME_BAD ? JUDGED_BAD : JUDGED_CALL;
				return;
			}
		}
		PyErr_Clear();
		/* Below something bad all is bad. */
		if (reference->parent->judgement == JUDGED_BAD && !reference->call) {
			reference->judgement = JUDGED_BAD;
			reference->info = reference->parent->info;
			reference->forced = reference->parent->forced;
			reference->severity = reference->parent->severity;
		}
	}
}

/* The slot in which a reference of this hash is, or will be, a member of the list. */
static struct reference **reference_slot(const struct walk *walk, uintptr_t hash)
{
	return &walk->references[(hash >> 4 ^ hash >> 14) & (walk->reference_slots - 1)];
}

static void grow_references(struct walk *walk)
{
	struct reference **before = walk->references;
	size_t count = walk->reference_slots;

	walk->reference_slots = count ? 4 * count : REFERENCE_SLOTS;
	walk->references =
		arena_take(&walk->arena, walk->reference_slots * sizeof *walk->references);
	for (size_t i = 0; i < count; i++) {
		for (struct reference *one = before[i], *next; one; one = next) {
			struct reference **slot = reference_slot(walk, one->hash);

			next = one->next;
			one->next = *slot;
			*slot = one;
		}
	}
}

static struct reference *reference_make(struct walk *walk, struct reference *parent, PyObject *name,
					const char *text, size_t length)
{
	uintptr_t hash = (uintptr_t)parent * 31 + (uintptr_t)name;
	struct reference **slot, *reference;
	size_t before = parent ? parent->path_length : 0;
	char *path;

	for (size_t i = 0; !parent && i < length; i++)
		hash = hash * 33 + ((uintptr_t)(uint8_t)text[i] << 4);
	if (walk->reference_count == walk->reference_slots)
		grow_references(walk);
	slot = reference_slot(walk, hash);
	for (reference = *slot; reference; reference = reference->next)
		if (reference->hash == hash && reference->parent == parent &&
		    reference->name == name && (parent || strcmp(reference->path, text) == 0))
			return reference;
	reference = arena_take(&walk->arena, sizeof *reference);
	reference->parent = parent;
	reference->name = name;
	reference->hash = hash;
	reference->next = *slot;
	*slot = reference;
	walk->reference_count++;
	path = arena_take(&walk->arena, before + length + 2);
	if (parent) {
		memcpy(path, parent->path, before);
		if (text[0] != '(')
			path[before++] = '.';
		reference->depth = parent->depth + 1;
		reference->call = parent->call || text[0] == '(';
		reference->root_unknown = parent->root_unknown;
	} else {
		reference->root_unknown = text[0] == '?';
	}
	memcpy(path + before, text, length + 1);
	reference->path = path;
	reference->path_length = before + length;
	judge(walk, reference);
	return reference;
}

static PyObject *interned(struct walk *walk, const char *text, size_t length)
{
	PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");

	if (!name || PyList_Append(walk->keep, name) < 0) {
		Py_XDECREF(name);
		PyErr_Clear();
		longjmp(walk->out, ENOMEM);
	}
	PyUnicode_InternInPlace(&name);
	if (PyList_Append(walk->keep, name) < 0) {
		PyErr_Clear();
		longjmp(walk->out, ENOMEM);
	}
	Py_DECREF(name);
	return name;
}

struct reference *reference_root(struct walk *walk, const char *name)
{
	struct reference *reference = reference_make(walk, NULL, NULL, name, strlen(name));
	const struct name_info *entry = reference->entry;

	if (!reference->meant)
		reference->meant = entry && entry->kind == NAME_ALIAS
					   ? reference_path(walk, entry->text)
					   : reference;
	return reference->meant;
}

struct reference *reference_path(struct walk *walk, const char *dotted)
{
	const char *end = strchrnul(dotted, '.');
	char root[256];
	struct reference *reference;

	if ((size_t)(end - dotted) >= sizeof root)
		return NULL;
	memcpy(root, dotted, (size_t)(end - dotted));
	root[end - dotted] = '\0';
	reference = reference_root(walk, root);
	while (reference && *end) {
		const char *start = end + 1;

		end = strchrnul(start, '.');
		reference = reference_child(walk, reference,
					    interned(walk, start, (size_t)(end - start)));
	}
	return reference;
}

struct reference *reference_call(struct walk *walk, struct reference *parent)
{
	if (parent->depth >= REFERENCE_DEPTH_MAX)
		return NULL;
	return reference_make(walk, parent, NULL, "()", 2);
}

/* What a name really stands for: another name, a module that hangs below another
 * one, or itself. */
static struct reference *meaning_of(struct walk *walk, struct reference *reference,
				    const char *text)
{
	const struct reference *parent = reference->parent;
	const struct name_info *info = reference->entry;
	const char *module;

	if (info && info->kind == NAME_ALIAS)
		return reference_path(walk, info->text);
	if (info || reference->forced)
		return reference;
	/* A module reached through another one. */
	module = carried_module(text);
	if (module && !parent->call && !parent->root_unknown && !parent->module)
		return reference_root(walk, module);
	if (module && parent->module && !parent->call)
		return reference_root(walk, module);
	/* Of an unknown thing: only when what follows shows what it is. */
	if (parent->name && (parent->call || parent->root_unknown)) {
		const char *above = PyUnicode_AsUTF8(parent->name);

		module = above ? carried_module(above) : NULL;
		PyErr_Clear();
		if (module) {
			char path[256];

			snprintf(path, sizeof path, "%s.%s", module, text);
			info = name_find(path);
			if (info && (info->kind == NAME_BAD || info->kind == NAME_CALL))
				return reference_path(walk, path);
			if (strcmp(path, "sys.modules") == 0)
				return reference_path(walk, path);
		}
	}
	return reference;
}

struct reference *reference_child(struct walk *walk, struct reference *parent, PyObject *name)
{
	const char *text = PyUnicode_AsUTF8(name);
	size_t length = text ? strlen(text) : 0;
	struct reference *reference;

	if (!text || length > 200) {
		PyErr_Clear();
		return NULL;
	}
	if (parent->depth >= REFERENCE_DEPTH_MAX) {
		/* Too long to be remembered; its end may still be known. */
		parent = reference_root(walk, "?");
	}
	reference = reference_make(walk, parent, name, text, length);
	if (!reference->meant)
		reference->meant = meaning_of(walk, reference, text);
	return reference->meant;
}

struct reference *reference_unknown(struct walk *walk, PyObject *name)
{
	return reference_child(walk, reference_root(walk, "?"), name);
}
