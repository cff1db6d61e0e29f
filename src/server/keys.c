/* SPDX-License-Identifier: Apache-2.0 */
/* keys: see keys.h.
 *
 * A key is 256 random bits and a prefix by which scanners for leaked secrets know it. The
 * file holds its SHA-256. A slow hash, as for passwords, would add nothing: it makes
 * guessing dear, and nobody guesses 256 bits; but it would let anybody who sends wrong keys
 * keep the server busy. Hashes are compared in constant time, and with all of them, so how
 * long an answer takes says nothing of which key was nearly right. */
#include "server/keys.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memfile.h"
#include "engine/engine.h"
#include "policy/config.h"
#include "policy/document.h"
#include "policy/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define HASH_TEXT_MAX 65

struct keyed {
	struct tenant tenant; /* first: a tenant's address is this one's */
	struct keyed *next;
	char hash[HASH_TEXT_MAX];
	bool live; /* its key is in the file */
	double tokens;
	int64_t refilled_us;
};

/* A list that a later reading has replaced. */
struct retired {
	struct retired *next;
	char **list;
};

/* --- the file ------------------------------------------------------------------- */

/* One entry, while it is read. */
struct entry {
	struct keyed keyed;
	bool seen_limits, seen_policies;
};

struct number_key {
	const char *key;
	size_t offset;
	uint64_t most;
};

static const struct number_key number_keys[] = {
	{"runs", offsetof(struct tenant, runs_max), 4096},
	{"sessions", offsetof(struct tenant, sessions_max), 4096},
	{"rate", offsetof(struct tenant, rate), 1000000},
};

static bool name_is_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_.@-");

	return length > 0 && !name[length] && length < sizeof((struct tenant *)0)->name;
}

static int read_limits(struct document *file, struct execpy_limits *ceilings)
{
	int r = document_enter(file, YAML_MAPPING_START_EVENT,
			       "limits must be a mapping such as {time: 30s, memory: 1G}");
	bool seen[32] = {false};

	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		const struct limit_info *info;
		struct error why = {0};
		char key[64], option[66];
		uint64_t number;

		if ((r = document_scalar(file, "a limit", key, sizeof key)) < 0)
			return r;
		snprintf(option, sizeof option, "--%s", key);
		info = limit_find_option(option);
		if (!info)
			return document_wrong(file, mark,
					      "there is no limit '%s': use time, cpu, memory, "
					      "processes, output, disk",
					      key);
		if ((r = document_once(file, &seen[info - limit_infos], key, mark)) < 0 ||
		    (r = config_number(file, key, info->unit, &number)) < 0)
			return r;
		if (config_check_number(key, info->unit, number, info->least ? info->least : 1,
					info->most, &why) < 0)
			return document_wrong_here(file, "%s", why.text);
		/* The two structures have the same fields in the same order. */
		*(uint64_t *)((char *)ceilings + info->offset) = number;
	}
	return r;
}

_Static_assert(sizeof(struct limits) == sizeof(struct execpy_limits), "fields as in the table");

static int read_policies(struct document *file, char ***policies)
{
	int r = document_enter(file, YAML_SEQUENCE_START_EVENT, "policies must be a list of names");

	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_SEQUENCE_END_EVENT)) {
		char name[POLICY_NAME_BYTES_MAX + 1];

		if (text_list_length(*policies) == SETTING_LIST_MAX)
			return document_wrong_here(file, "more than %d policies", SETTING_LIST_MAX);
		r = document_scalar(file, "a policy", name, sizeof name);
		if (r == 0)
			r = text_list_add(policies, name, file->err);
	}
	/* None would be no restriction. */
	if (r == 0 && text_list_length(*policies) == 0)
		return document_wrong_here(file, "policies must name one at least");
	return r;
}

static int read_hash(struct document *file, char hash[HASH_TEXT_MAX])
{
	int r = document_next(file);

	if (r < 0 || (r = document_scalar(file, "sha256", hash, HASH_TEXT_MAX)) < 0)
		return r;
	if (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64)
		return document_wrong_here(file, "sha256 must be 64 digits of 0-9 and a-f");
	return 0;
}

static int read_name(struct document *file, char *name, size_t size)
{
	int r = document_next(file);

	if (r < 0 || (r = document_scalar(file, "the name", name, size)) < 0)
		return r;
	return name_is_valid(name)
		       ? 0
		       : document_wrong_here(file,
					     "'%s' cannot be a name: letters, digits and "
					     "_ . @ -",
					     name);
}

static int read_key(struct document *file, struct entry *entry, bool seen[8])
{
	yaml_mark_t mark = document_mark(file);
	struct tenant *tenant = &entry->keyed.tenant;
	struct error why = {0};
	char key[64];
	uint64_t number;
	int r = document_scalar(file, "a key", key, sizeof key);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LENGTH(number_keys); i++) {
		if (strcmp(number_keys[i].key, key) != 0)
			continue;
		if ((r = document_once(file, &seen[i], key, mark)) < 0 ||
		    (r = config_number(file, key, LIMIT_UNIT_COUNT, &number)) < 0)
			return r;
		if (config_check_number(key, LIMIT_UNIT_COUNT, number, 1, number_keys[i].most,
					&why) < 0)
			return document_wrong_here(file, "%s", why.text);
		*(unsigned *)((char *)tenant + number_keys[i].offset) = (unsigned)number;
		return 0;
	}
	if (strcmp(key, "name") == 0)
		return (r = document_once(file, &seen[3], key, mark)) < 0
			       ? r
			       : read_name(file, tenant->name, sizeof tenant->name);
	if (strcmp(key, "sha256") == 0)
		return (r = document_once(file, &seen[4], key, mark)) < 0
			       ? r
			       : read_hash(file, entry->keyed.hash);
	if (strcmp(key, "limits") == 0)
		return (r = document_once(file, &seen[5], key, mark)) < 0
			       ? r
			       : read_limits(file, &tenant->ceilings);
	if (strcmp(key, "policies") == 0)
		return (r = document_once(file, &seen[6], key, mark)) < 0
			       ? r
			       : read_policies(file, &tenant->policies);
	return document_wrong(file, mark,
			      "there is no key '%s': use name, sha256, limits, policies, runs, "
			      "sessions, rate",
			      key);
}

static int read_entry(struct document *file, struct entry *entry)
{
	yaml_mark_t mark = document_mark(file);
	bool seen[8] = {false};
	int r = 0;

	if (!document_is(file, YAML_MAPPING_START_EVENT))
		return document_wrong(file, mark, "a key must be a mapping of name, sha256 …");
	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_MAPPING_END_EVENT))
		r = read_key(file, entry, seen);
	if (r == 0 && (!entry->keyed.tenant.name[0] || !entry->keyed.hash[0]))
		return document_wrong(file, mark, "a key needs both name and sha256");
	return r;
}

static void entry_clear(struct entry *entry)
{
	text_list_free(&entry->keyed.tenant.policies);
}

static int read_entries(struct document *file, struct entry *entries, size_t *count)
{
	int r = document_enter(file, YAML_SEQUENCE_START_EVENT, "keys must be a list");

	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_SEQUENCE_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		struct entry *entry = &entries[*count];

		if (*count == TENANTS_MAX)
			return document_wrong(file, mark, "more than %d keys", TENANTS_MAX);
		(*count)++; /* it is freed with the others, also half made */
		r = read_entry(file, entry);
		for (size_t i = 0; r == 0 && i + 1 < *count; i++)
			if (strcmp(entries[i].keyed.tenant.name, entry->keyed.tenant.name) == 0 ||
			    strcmp(entries[i].keyed.hash, entry->keyed.hash) == 0)
				r = document_wrong(file, mark,
						   "the name or the key of '%s' stands here twice",
						   entry->keyed.tenant.name);
	}
	return r;
}

static int read_file(struct span text, const char *origin, struct entry *entries, size_t *count,
		     struct error *err)
{
	struct document file = {0};
	bool seen = false;
	int r = document_open(&file, text, origin, "file of keys", err);

	while (r == 0 && (r = document_next(&file)) == 0 &&
	       !document_is(&file, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = document_mark(&file);
		char key[64];

		if ((r = document_scalar(&file, "a key", key, sizeof key)) < 0)
			break;
		if (strcmp(key, "keys") != 0)
			r = document_wrong(&file, mark, "there is no key '%s': use keys", key);
		else if ((r = document_once(&file, &seen, key, mark)) == 0)
			r = read_entries(&file, entries, count);
	}
	if (r == 0)
		r = document_end(&file);
	document_close(&file);
	return r;
}

/* --- who there is ---------------------------------------------------------------- */

static struct keyed *find_name(struct tenants *tenants, const char *name)
{
	struct keyed *keyed = tenants->first;

	while (keyed && strcmp(keyed->tenant.name, name) != 0)
		keyed = keyed->next;
	return keyed;
}

void keys_retire(struct tenants *tenants, char ***list)
{
	struct retired *retired = *list ? calloc(1, sizeof *retired) : NULL;

	/* Without memory for it nobody frees it: better than too early. */
	if (retired) {
		retired->list = *list;
		retired->next = tenants->retired;
		tenants->retired = retired;
	}
	*list = NULL;
}

static bool lists_are_equal(char **left, char **right)
{
	if (!left || !right)
		return left == right;
	for (; *left && *right; left++, right++)
		if (strcmp(*left, *right) != 0)
			return false;
	return *left == *right;
}

/* One that says the same stays, so that what is retired grows by what changes only. */
static void take_policies(struct tenants *tenants, char ***policies, char ***from)
{
	if (lists_are_equal(*policies, *from))
		return;
	keys_retire(tenants, policies);
	*policies = take_ptr(*from);
}

/* What an entry says, to a tenant that keeps what it has under way. */
static void take_entry(struct tenants *tenants, struct keyed *keyed, struct entry *entry)
{
	struct keyed *from = &entry->keyed;

	take_policies(tenants, &keyed->tenant.policies, &from->tenant.policies);
	keyed->tenant.ceilings = from->tenant.ceilings;
	keyed->tenant.runs_max = from->tenant.runs_max;
	keyed->tenant.sessions_max = from->tenant.sessions_max;
	if (keyed->tenant.rate != from->tenant.rate)
		keyed->tokens = from->tenant.rate;
	keyed->tenant.rate = from->tenant.rate;
	memcpy(keyed->hash, from->hash, sizeof keyed->hash);
	keyed->live = true;
}

static int take_entries(struct tenants *tenants, struct entry *entries, size_t count,
			struct error *err)
{
	/* All that may fail comes first. */
	for (size_t i = 0; i < count; i++) {
		struct keyed *keyed;

		if (find_name(tenants, entries[i].keyed.tenant.name))
			continue;
		keyed = calloc(1, sizeof *keyed);
		if (!keyed)
			return fail(err, ENOMEM, "keys");
		memcpy(keyed->tenant.name, entries[i].keyed.tenant.name, sizeof keyed->tenant.name);
		keyed->next = tenants->first;
		tenants->first = keyed;
	}
	for (struct keyed *keyed = tenants->first; keyed; keyed = keyed->next)
		keyed->live = false;
	for (size_t i = 0; i < count; i++)
		take_entry(tenants, find_name(tenants, entries[i].keyed.tenant.name), &entries[i]);
	tenants->count = count;
	tenants->has_keys = true;
	return 0;
}

int keys_parse(struct tenants *tenants, struct span text, const char *origin, struct error *err)
{
	struct entry *entries = calloc(TENANTS_MAX, sizeof *entries);
	size_t count = 0;
	int r;

	if (!entries)
		return fail(err, ENOMEM, "keys");
	r = read_file(text, origin, entries, &count, err);
	if (r == 0)
		r = take_entries(tenants, entries, count, err);
	for (size_t i = 0; i < count; i++)
		entry_clear(&entries[i]);
	free(entries);
	return r;
}

void keys_none(struct tenants *tenants)
{
	snprintf(tenants->everybody.name, sizeof tenants->everybody.name, "everybody");
	for (struct keyed *keyed = tenants->first; keyed; keyed = keyed->next)
		keyed->live = false;
	tenants->has_keys = false;
	tenants->count = 0;
}

void keys_free(struct tenants *tenants)
{
	struct retired *retired;
	struct keyed *keyed;

	while ((keyed = tenants->first)) {
		tenants->first = keyed->next;
		text_list_free(&keyed->tenant.policies);
		free(keyed);
	}
	while ((retired = tenants->retired)) {
		tenants->retired = retired->next;
		text_list_free(&retired->list);
		free(retired);
	}
}

static bool equal_in_constant_time(const char *left, const char *right, size_t length)
{
	volatile unsigned char difference = 0;

	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)left[i] ^ (unsigned char)right[i];
	return difference == 0;
}

struct tenant *keys_find(struct tenants *tenants, const char *key)
{
	char hash[HASH_TEXT_MAX];
	struct tenant *found = NULL;

	files_hash_bytes((struct span){(const uint8_t *)key, strlen(key)}, hash);
	for (struct keyed *keyed = tenants->first; keyed; keyed = keyed->next)
		if (equal_in_constant_time(keyed->hash, hash, sizeof hash - 1) && keyed->live)
			found = &keyed->tenant;
	return found;
}

/* A bucket that holds a minute's requests, and fills evenly. */
bool keys_take_request(struct tenant *tenant, unsigned *ret_seconds)
{
	struct keyed *keyed = (struct keyed *)tenant;
	double rate = tenant->rate;
	int64_t now = now_us();

	*ret_seconds = 0;
	if (tenant->rate == 0)
		return true;
	keyed->tokens += (double)(now - keyed->refilled_us) * rate / 60e6;
	keyed->refilled_us = now;
	if (keyed->tokens > rate)
		keyed->tokens = rate;
	if (keyed->tokens < 1) {
		*ret_seconds = 1 + (unsigned)((1 - keyed->tokens) * 60 / rate);
		return false;
	}
	keyed->tokens -= 1;
	return true;
}

/* --- a new one ------------------------------------------------------------------- */

static int make_key(char key[KEY_TEXT_MAX], struct error *err)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint8_t raw[KEY_RAW_BYTES + 1] = {0};
	char *out = key + snprintf(key, KEY_TEXT_MAX, "%s", KEY_PREFIX);

	if (getrandom(raw, KEY_RAW_BYTES, 0) != KEY_RAW_BYTES)
		return fail(err, errno, "keys: getrandom");
	/* Base64 of 33 bytes, of which the last is zero: 44 letters, 43 of them random. */
	for (size_t i = 0; i < sizeof raw; i += 3) {
		uint32_t bits = (uint32_t)raw[i] << 16 | (uint32_t)raw[i + 1] << 8 | raw[i + 2];

		for (int shift = 18; shift >= 0; shift -= 6)
			*out++ = letters[bits >> shift & 63];
	}
	out[-1] = '\0';
	return 0;
}

static int read_present(int fd, const char *path, struct bytes *text, struct error *err)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return refuse(err, EINVAL, "%s: is no regular file", path);
	if (status.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(err, EPERM, "%s: others may write it", path);
	return memfile_read(fd, path, KEYS_FILE_BYTES_MAX, text, err);
}

int keys_add(const char *path, const char *name, char ret_key[KEY_TEXT_MAX], struct error *err)
{
	autofd fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	struct tenants tenants = {0};
	autobytes text = {0};
	char hash[HASH_TEXT_MAX];
	size_t before;
	int r;

	if (!name_is_valid(name))
		return refuse(err, EINVAL, "'%.60s' cannot be a name: letters, digits and _ . @ -",
			      name);
	if (fd < 0)
		return fail(err, errno, "%s", path);
	if ((r = read_present(fd, path, &text, err)) < 0 || (r = make_key(ret_key, err)) < 0)
		return r;
	before = text.length;
	files_hash_bytes((struct span){(const uint8_t *)ret_key, strlen(ret_key)}, hash);
	if (before == 0)
		bytes_append_text(&text, "# Keys of execpy's HTTP server: docs/http.md\nkeys:\n");
	else if (text.data[before - 1] != '\n')
		bytes_append_text(&text, "\n");
	bytes_append_format(&text, "  - name: %s\n    sha256: %s\n", name, hash);
	if (text.failed)
		return fail(err, ENOMEM, "keys");
	/* What the file is then must still be one. */
	r = keys_parse(&tenants, bytes_span(&text), path, err);
	keys_free(&tenants);
	if (r < 0)
		return r;
	if (write(fd, text.data + before, text.length - before) !=
		    (ssize_t)(text.length - before) ||
	    fsync(fd) < 0)
		return fail(err, errno ? errno : EIO, "%s: write", path);
	return 0;
}
