/* SPDX-License-Identifier: Apache-2.0 */
/* config_file: reads a daemon's configuration (docs/serve.md). */
#include "policy/config.h"
#include "policy/document.h"
#include "policy/templates.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KIND "configuration"

struct parse {
	struct document file;
	struct daemon_config config;
	bool seen_templates, seen[sizeof(struct daemon_numbers) / sizeof(uint64_t)];
	bool seen_http[HTTP_KEYS_MAX];
};

/* What stands in one entry of `templates`, in any order. */
struct entry {
	struct template_config template; /* its modules and warm-up, when given */
	bool seen_name, seen_modules, seen_warm_up, seen_pool, seen_min, seen_max;
	yaml_mark_t pool_mark;
};

static int parse_modules(struct document *file, struct template_config *template)
{
	int r = document_enter(file, YAML_SEQUENCE_START_EVENT, "modules must be a list of names");

	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_SEQUENCE_END_EVENT)) {
		char module[MODULE_NAME_BYTES_MAX + 1];
		struct error why = {0};

		r = document_scalar(file, "a module", module, sizeof module);
		if (r == 0 && template_config_add_module(template, module, &why) < 0)
			r = document_wrong_here(file, "%s", why.text);
	}
	return r;
}

static int parse_pool(struct document *file, struct entry *entry)
{
	int r = document_enter(file, YAML_MAPPING_START_EVENT,
			       "pool must be a mapping of min and max");

	entry->pool_mark = document_mark(file);
	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_MAPPING_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		char key[64];
		uint64_t number;
		bool most;

		if ((r = document_scalar(file, "a key", key, sizeof key)) < 0)
			return r;
		most = strcmp(key, "max") == 0;
		if (!most && strcmp(key, "min") != 0)
			return document_wrong(file, mark,
					      "there is no key '%s' in pool: use min, max", key);
		if ((r = document_once(file, most ? &entry->seen_max : &entry->seen_min, key,
				       mark)) < 0 ||
		    (r = config_number(file, key, LIMIT_UNIT_COUNT, &number)) < 0)
			return r;
		if (number < (uint64_t)most || number > POOL_CELLS_MAX)
			return document_wrong_here(file,
						   "%s: %" PRIu64 " is out of range (%d to %d)",
						   key, number, most, POOL_CELLS_MAX);
		*(most ? &entry->template.pool_max : &entry->template.pool_min) = number;
	}
	return r;
}

static int parse_entry_key(struct document *file, struct entry *entry)
{
	yaml_mark_t mark = document_mark(file);
	struct template_config *template = &entry->template;
	char key[64];
	int r = document_scalar(file, "a key", key, sizeof key);

	if (r < 0)
		return r;
	if (strcmp(key, "name") == 0) {
		if ((r = document_once(file, &entry->seen_name, key, mark)) < 0 ||
		    (r = document_next(file)) < 0 ||
		    (r = document_scalar(file, "the name", template->name, sizeof template->name)) <
			    0)
			return r;
		if (!template_name_is_valid(template->name))
			return document_wrong_here(
				file,
				"'%s' cannot be a template's name: a-z, 0-9, _ and -, and not auto",
				template->name);
		return 0;
	}
	if (strcmp(key, "modules") == 0)
		return (r = document_once(file, &entry->seen_modules, key, mark)) < 0
			       ? r
			       : parse_modules(file, template);
	if (strcmp(key, "warm_up") == 0)
		return (r = document_once(file, &entry->seen_warm_up, key, mark)) < 0 ||
				       (r = document_next(file)) < 0
			       ? r
			       : document_text(file, "warm_up", WARM_UP_BYTES_MAX,
					       &template->warm_up);
	if (strcmp(key, "pool") == 0)
		return (r = document_once(file, &entry->seen_pool, key, mark)) < 0
			       ? r
			       : parse_pool(file, entry);
	return document_wrong(file, mark,
			      "there is no key '%s' in templates: use name, modules, warm_up, pool",
			      key);
}

/* What the entry does not say is the built-in template's of that name, if there
 * is one; a template with other modules is not warmed up by its code. */
static int finish_entry(struct document *file, struct entry *entry, yaml_mark_t mark,
			struct template_config *template)
{
	struct template_config *given = &entry->template;
	int r;

	if (!entry->seen_name)
		return document_wrong(file, mark, "the key 'name' is missing");
	if (!template_find(given->name) && !entry->seen_modules && !entry->seen_warm_up)
		return document_wrong(file, mark,
				      "the template '%s' is not built in: give it modules or "
				      "warm_up",
				      given->name);
	r = template_config_init(template, given->name, file->err);
	if (r < 0)
		return r;
	if (entry->seen_modules) {
		for (size_t i = 0; i < template->module_count; i++)
			free(template->modules[i]);
		free(template->modules);
		template->modules = take_ptr(given->modules);
		template->module_count = given->module_count;
		given->module_count = 0;
	}
	if (entry->seen_warm_up || entry->seen_modules) {
		free(template->warm_up);
		template->warm_up = entry->seen_warm_up ? take_ptr(given->warm_up) : strdup("");
		if (!template->warm_up)
			return document_out_of_memory(file);
	}
	/* One of the two given may ask more of the other than its default is. */
	if (entry->seen_min)
		template->pool_min = given->pool_min;
	if (entry->seen_max)
		template->pool_max = given->pool_max;
	if (!entry->seen_max && template->pool_max < template->pool_min)
		template->pool_max = template->pool_min;
	if (!entry->seen_min && template->pool_min > template->pool_max)
		template->pool_min = template->pool_max;
	if (template->pool_min > template->pool_max)
		return document_wrong(file, entry->pool_mark,
				      "pool: min is %" PRIu64 ", more than max, %" PRIu64,
				      template->pool_min, template->pool_max);
	return 0;
}

static int parse_entry(struct parse *parse, struct template_config *template)
{
	struct document *file = &parse->file;
	yaml_mark_t mark = document_mark(file);
	struct entry entry = {0};
	int r = 0;

	if (!document_is(file, YAML_MAPPING_START_EVENT))
		return document_wrong(file, mark,
				      "a template must be a mapping, such as {name: lab, "
				      "modules: [numpy]}");
	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_MAPPING_END_EVENT))
		r = parse_entry_key(file, &entry);
	if (r == 0)
		r = finish_entry(file, &entry, mark, template);
	template_config_free(&entry.template);
	return r;
}

static int parse_templates(struct parse *parse)
{
	struct document *file = &parse->file;
	struct daemon_config *config = &parse->config;
	int r = document_enter(file, YAML_SEQUENCE_START_EVENT, "templates must be a list");

	/* Exactly these are there, instead of the built-in ones. */
	for (size_t i = 0; i < config->template_count; i++)
		template_config_free(&config->templates[i]);
	free(config->templates);
	config->template_count = 0;
	config->templates = calloc(TEMPLATES_MAX, sizeof *config->templates);
	if (!config->templates)
		return document_out_of_memory(file);
	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_SEQUENCE_END_EVENT)) {
		yaml_mark_t mark = document_mark(file);
		struct template_config *template = &config->templates[config->template_count];

		if (config->template_count >= TEMPLATES_MAX)
			return document_wrong(file, mark, "more than %d templates", TEMPLATES_MAX);
		/* It is freed with the others, also half made. */
		config->template_count++;
		r = parse_entry(parse, template);
		for (size_t i = 0; r == 0 && i + 1 < config->template_count; i++)
			if (strcmp(config->templates[i].name, template->name) == 0)
				r = document_wrong(file, mark,
						   "the template '%s' stands here twice",
						   template->name);
	}
	if (r == 0 && config->template_count == 0)
		return document_wrong_here(file, "templates must list at least one");
	return r;
}

static int parse_key(struct parse *parse)
{
	struct document *file = &parse->file;
	yaml_mark_t mark = document_mark(file);
	char key[64], all[160] = "templates";
	size_t used = strlen(all);
	int r = document_scalar(file, "a key", key, sizeof key);

	if (r < 0)
		return r;
	if (strcmp(key, "templates") == 0)
		return (r = document_once(file, &parse->seen_templates, key, mark)) < 0
			       ? r
			       : parse_templates(parse);
	for (size_t i = 0; i < daemon_number_count; i++) {
		const struct daemon_number_info *info = &daemon_number_infos[i];
		struct error why = {0};
		uint64_t number;

		if (strcmp(info->key, key) != 0) {
			used += (size_t)snprintf(all + used, sizeof all - used, ", %s", info->key);
			continue;
		}
		if ((r = document_once(file, &parse->seen[i], key, mark)) < 0 ||
		    (r = config_number(file, key, info->unit, &number)) < 0)
			return r;
		if (daemon_number_check(info, number, &why) < 0)
			return document_wrong_here(file, "%s", why.text);
		*daemon_number_at(&parse->config.numbers, info) = number;
		return 0;
	}
	r = http_config_key(file, key, parse->seen_http, &parse->config.http);
	if (r != 0)
		return r < 0 ? r : 0;
	return document_wrong(file, mark, "there is no key '%s': use %s; or one of docs/http.md",
			      key, all);
}

static int parse_document(struct parse *parse, struct span text, const char *origin,
			  struct error *err)
{
	struct document *file = &parse->file;
	int r = document_open(file, text, origin, KIND, err);

	while (r == 0 && (r = document_next(file)) == 0 &&
	       !document_is(file, YAML_MAPPING_END_EVENT))
		r = parse_key(parse);
	return r < 0 ? r : document_end(file);
}

int config_parse(struct span text, const char *origin, struct daemon_config *ret_config,
		 struct error *err)
{
	struct parse parse = {0};
	int r = config_default(&parse.config, err);

	if (r < 0)
		return r;
	if (text.length > CONFIG_FILE_BYTES_MAX) {
		r = refuse(err, EINVAL, "%.80s: larger than %" PRIu64 " bytes", origin,
			   CONFIG_FILE_BYTES_MAX);
	} else {
		/* Resolved at the end: 0 may stand in the file. */
		parse.config.numbers = daemon_numbers_default();
		r = parse_document(&parse, text, origin, err);
		document_close(&parse.file);
	}
	if (r < 0) {
		config_free(&parse.config);
		return r;
	}
	daemon_numbers_resolve(&parse.config.numbers);
	*ret_config = parse.config;
	return 0;
}

int config_load(const char *path, struct daemon_config *ret_config, struct error *err)
{
	autobytes text = {.ceiling = 2 * CONFIG_FILE_BYTES_MAX};
	int r;

	if (!path)
		return config_default(ret_config, err);
	r = document_read(path, KIND, CONFIG_FILE_BYTES_MAX, &text, err);
	return r < 0 ? r : config_parse(bytes_span(&text), path, ret_config, err);
}
