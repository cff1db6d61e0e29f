/* SPDX-License-Identifier: Apache-2.0 */
/* http_config: see http_config.h. */
#include "policy/http_config.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct http_number_info http_number_infos[] = {
#define HTTP_NUMBER_INFO(name, key, unit, initial, least, most, sentence) \
	{key, sentence, unit, initial, least, most, offsetof(struct http_numbers, name)},
	HTTP_NUMBER_TABLE(HTTP_NUMBER_INFO)
#undef HTTP_NUMBER_INFO
};

const size_t http_number_count = ARRAY_LENGTH(http_number_infos);

static const struct {
	const char *key;
	size_t offset;
} lists[] =
	{
		{"listen", offsetof(struct http_config, listen)},
		{"hosts", offsetof(struct http_config, hosts)},
		{"policies", offsetof(struct http_config, policies)},
		{"compat", offsetof(struct http_config, compat)},
},
  paths[] =
	  {
		  {"compat_policy", offsetof(struct http_config, compat_policy)},
		  {"keys", offsetof(struct http_config, keys)},
		  {"log", offsetof(struct http_config, log)},
		  {"audit", offsetof(struct http_config, audit)},
},
  tls_paths[] = {
	  {"certificate", offsetof(struct http_config, certificate)},
	  {"key", offsetof(struct http_config, private_key)},
};

/* --- lists of texts ------------------------------------------------------------ */

size_t text_list_length(char *const *list)
{
	size_t length = 0;

	while (list && list[length])
		length++;
	return length;
}

int text_list_add(char ***list, const char *text, struct error *err)
{
	size_t length = text_list_length(*list);
	char **grown = realloc(*list, (length + 2) * sizeof *grown);

	if (!grown)
		return fail(err, ENOMEM, "configuration");
	*list = grown;
	grown[length] = strdup(text);
	grown[length + 1] = NULL;
	return grown[length] ? 0 : fail(err, ENOMEM, "configuration");
}

void text_list_free(char ***list)
{
	for (char **text = *list; text && *text; text++)
		free(*text);
	free(*list);
	*list = NULL;
}

/* --- reading ------------------------------------------------------------------- */

int config_check_number(const char *key, enum limit_unit unit, uint64_t number, uint64_t least,
			uint64_t most, struct error *err)
{
	char given[32], lowest[32], highest[32];

	if (number >= least && number <= most)
		return 0;
	unit_describe(unit, number, given, sizeof given);
	unit_describe(unit, least, lowest, sizeof lowest);
	unit_describe(unit, most, highest, sizeof highest);
	return refuse(err, ERANGE, "%s: %s is out of range (%s to %s)", key, given, lowest,
		      highest);
}

int config_number(struct document *file, const char *key, enum limit_unit unit,
		  uint64_t *ret_number)
{
	char text[64];
	int r = document_next(file);

	if (r < 0 || (r = document_scalar(file, key, text, sizeof text)) < 0)
		return r;
	r = unit_parse(unit, text, ret_number);
	if (r == -ERANGE)
		return document_wrong_here(file, "%s: \"%.40s\" is too large", key, text);
	if (r < 0)
		return document_wrong_here(file, "%s: cannot read \"%.40s\"; write it like %s", key,
					   text, unit_examples(unit));
	return 0;
}

static int read_list(struct document *file, const char *key, char ***list)
{
	char message[80];
	int r;

	snprintf(message, sizeof message, "%s must be a list", key);
	r = document_enter(file, YAML_SEQUENCE_START_EVENT, message);
	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_SEQUENCE_END_EVENT)) {
		char text[SETTING_BYTES_MAX];

		if (text_list_length(*list) == SETTING_LIST_MAX)
			return document_wrong_here(file, "%s: more than %d", key, SETTING_LIST_MAX);
		r = document_scalar(file, key, text, sizeof text);
		if (r == 0)
			r = text_list_add(list, text, file->err);
	}
	return r;
}

static int read_path(struct document *file, const char *key, char **path)
{
	int r = document_next(file);

	return r < 0 ? r : document_text(file, key, SETTING_BYTES_MAX, path);
}

/* What is named here must be there when the server begins. */
static int check_compat(struct document *file, const char *key, const struct http_config *config)
{
	static const char *const known[] = {"e2b", "piston", "fusion"};
	struct policy builtin;

	if (strcmp(key, "compat_policy") == 0) {
		if (policy_find(config->compat_policy, &builtin) < 0)
			return document_wrong_here(file,
						   "compat_policy: there is no policy '%.40s'",
						   config->compat_policy);
		policy_free(&builtin);
	}
	for (char **name = config->compat; strcmp(key, "compat") == 0 && name && *name; name++) {
		size_t at = 0;

		while (at < ARRAY_LENGTH(known) && strcmp(known[at], *name) != 0)
			at++;
		if (at == ARRAY_LENGTH(known))
			return document_wrong_here(
				file, "compat: there is no '%.40s': use e2b, piston, fusion",
				*name);
	}
	return 0;
}

static int read_tls(struct document *file, struct http_config *config)
{
	bool seen[ARRAY_LENGTH(tls_paths)] = {false};
	int r = document_enter(file, YAML_MAPPING_START_EVENT,
			       "tls must be a mapping of certificate and key");

	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		char key[64];
		size_t at = 0;

		if ((r = document_scalar(file, "a key", key, sizeof key)) < 0)
			return r;
		while (at < ARRAY_LENGTH(tls_paths) && strcmp(tls_paths[at].key, key) != 0)
			at++;
		if (at == ARRAY_LENGTH(tls_paths))
			return document_wrong(file, mark,
					      "there is no key '%s' in tls: use certificate, key",
					      key);
		r = document_once(file, &seen[at], key, mark);
		if (r == 0)
			r = read_path(file, key, (char **)((char *)config + tls_paths[at].offset));
	}
	if (r == 0 && (!config->certificate || !config->private_key))
		return document_wrong_here(file, "tls needs both certificate and key");
	return r;
}

static int read_number(struct document *file, const struct http_number_info *info,
		       struct http_config *config)
{
	struct error why = {0};
	uint64_t number;
	int r = config_number(file, info->key, info->unit, &number);

	if (r < 0)
		return r;
	if (config_check_number(info->key, info->unit, number, info->least, info->most, &why) < 0)
		return document_wrong_here(file, "%s", why.text);
	*(uint64_t *)((char *)&config->numbers + info->offset) = number;
	return 0;
}

_Static_assert(ARRAY_LENGTH(http_number_infos) + ARRAY_LENGTH(lists) + ARRAY_LENGTH(paths) + 1 <=
		       HTTP_KEYS_MAX,
	       "one flag a key");

int http_config_key(struct document *file, const char *key, bool seen[HTTP_KEYS_MAX],
		    struct http_config *config)
{
	yaml_mark_t mark = document_mark(file);
	bool *flag = seen;
	int r = 0;

	for (size_t i = 0; i < http_number_count; i++, flag++)
		if (strcmp(http_number_infos[i].key, key) == 0) {
			if ((r = document_once(file, flag, key, mark)) == 0)
				r = read_number(file, &http_number_infos[i], config);
			return r < 0 ? r : 1;
		}
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++, flag++)
		if (strcmp(lists[i].key, key) == 0) {
			if ((r = document_once(file, flag, key, mark)) == 0)
				r = read_list(file, key,
					      (char ***)((char *)config + lists[i].offset));
			if (r == 0)
				r = check_compat(file, key, config);
			return r < 0 ? r : 1;
		}
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++, flag++)
		if (strcmp(paths[i].key, key) == 0) {
			if ((r = document_once(file, flag, key, mark)) == 0)
				r = read_path(file, key,
					      (char **)((char *)config + paths[i].offset));
			if (r == 0)
				r = check_compat(file, key, config);
			return r < 0 ? r : 1;
		}
	if (strcmp(key, "tls") != 0)
		return 0;
	if ((r = document_once(file, flag, key, mark)) == 0)
		r = read_tls(file, config);
	return r < 0 ? r : 1;
}

/* --- a whole one ---------------------------------------------------------------- */

void http_config_default(struct http_config *ret_config)
{
	*ret_config = (struct http_config){0};
	for (size_t i = 0; i < http_number_count; i++)
		*(uint64_t *)((char *)&ret_config->numbers + http_number_infos[i].offset) =
			http_number_infos[i].initial;
}

void http_config_free(struct http_config *config)
{
	text_list_free(&config->listen);
	text_list_free(&config->hosts);
	text_list_free(&config->policies);
	text_list_free(&config->compat);
	free(config->compat_policy);
	free(config->keys);
	free(config->certificate);
	free(config->private_key);
	free(config->log);
	free(config->audit);
	*config = (struct http_config){0};
}
