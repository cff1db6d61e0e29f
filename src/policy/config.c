/* SPDX-License-Identifier: Apache-2.0 */
/* config: see config.h. */
#include "policy/config.h"
#include "policy/templates.h"
#include "policy/text.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#define RUNS_A_PROCESSOR 4

const struct daemon_number_info daemon_number_infos[] = {
#define DAEMON_NUMBER_INFO(name, key, unit, field, initial, least, most, sentence) \
	{key, sentence, unit, field, initial, least, most, offsetof(struct daemon_numbers, name)},
	DAEMON_NUMBER_TABLE(DAEMON_NUMBER_INFO)
#undef DAEMON_NUMBER_INFO
};

const size_t daemon_number_count = ARRAY_LENGTH(daemon_number_infos);

struct daemon_numbers daemon_numbers_default(void)
{
	struct daemon_numbers numbers;

	for (size_t i = 0; i < daemon_number_count; i++)
		*daemon_number_at(&numbers, &daemon_number_infos[i]) =
			daemon_number_infos[i].initial;
	return numbers;
}

void daemon_numbers_resolve(struct daemon_numbers *numbers)
{
	if (numbers->runs == 0)
		numbers->runs = RUNS_A_PROCESSOR * (uint64_t)get_nprocs();
}

int daemon_number_check(const struct daemon_number_info *info, uint64_t number, struct error *err)
{
	return config_check_number(info->key, info->unit, number, info->least, info->most, err);
}

/* Names are shown, compared and typed: nothing but what is easily told apart. */
bool template_name_is_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return length > 0 && length <= TEMPLATE_NAME_BYTES_MAX && !name[length] && name[0] != '-' &&
	       strcmp(name, "auto") != 0;
}

int template_config_add_module(struct template_config *template, const char *module,
			       struct error *err)
{
	char **grown;

	if (!name_is_dotted(module) || strlen(module) > MODULE_NAME_BYTES_MAX)
		return refuse(err, EINVAL, "'%.40s' is no module's name", module);
	for (size_t i = 0; i < template->module_count; i++)
		if (strcmp(template->modules[i], module) == 0)
			return refuse(err, EINVAL, "the module '%s' stands here twice", module);
	if (template->module_count >= MODULE_COUNT_MAX)
		return refuse(err, EINVAL, "more than %d modules", MODULE_COUNT_MAX);
	grown = realloc(template->modules, (template->module_count + 1) * sizeof *grown);
	if (!grown)
		return fail(err, ENOMEM, "configuration");
	template->modules = grown;
	grown[template->module_count] = strdup(module);
	if (!grown[template->module_count])
		return fail(err, ENOMEM, "configuration");
	template->module_count++;
	return 0;
}

int template_config_init(struct template_config *template, const char *name, struct error *err)
{
	const struct template_info *builtin = template_find(name);
	bool small = builtin && !builtin->modules[0];
	int r = 0;

	*template = (struct template_config){
		.pool_min = small ? POOL_MIN_BARE : POOL_MIN_DEFAULT,
		.pool_max = small ? POOL_MAX_BARE : POOL_MAX_DEFAULT,
		.warm_up = strdup(builtin ? builtin->warm_up : ""),
	};
	if (!template->warm_up)
		return fail(err, ENOMEM, "configuration");
	snprintf(template->name, sizeof template->name, "%s", name);
	for (size_t i = 0; r == 0 && builtin && builtin->modules[i]; i++)
		r = template_config_add_module(template, builtin->modules[i], err);
	return r;
}

void template_config_free(struct template_config *template)
{
	for (size_t i = 0; i < template->module_count; i++)
		free(template->modules[i]);
	free(template->modules);
	free(template->warm_up);
	*template = (struct template_config){0};
}

int config_default(struct daemon_config *ret_config, struct error *err)
{
	struct daemon_config config = {.numbers = daemon_numbers_default()};

	config.templates = calloc(TEMPLATE_COUNT, sizeof *config.templates);
	if (!config.templates)
		return fail(err, ENOMEM, "configuration");
	for (; config.template_count < TEMPLATE_COUNT; config.template_count++) {
		struct template_config *template = &config.templates[config.template_count];
		int r = template_config_init(template, template_infos[config.template_count].name,
					     err);

		if (r < 0) {
			template_config_free(template);
			config_free(&config);
			return r;
		}
	}
	daemon_numbers_resolve(&config.numbers);
	http_config_default(&config.http);
	*ret_config = config;
	return 0;
}

void config_free(struct daemon_config *config)
{
	for (size_t i = 0; i < config->template_count; i++)
		template_config_free(&config->templates[i]);
	free(config->templates);
	http_config_free(&config->http);
	*config = (struct daemon_config){0};
}

void config_encode_template(const struct template_config *template, struct bytes *out)
{
	size_t at = frame_begin(out, MESSAGE_TEMPLATE, 0);

	frame_put_text(out, FIELD_NAME, template->name);
	for (size_t i = 0; i < template->module_count; i++)
		frame_put_text(out, FIELD_MODULE, template->modules[i]);
	frame_put_text(out, FIELD_CODE, template->warm_up);
	frame_put_number(out, FIELD_POOL_MIN, template->pool_min);
	frame_put_number(out, FIELD_POOL_MAX, template->pool_max);
	frame_end(out, at);
}

void config_encode_serve(const struct daemon_numbers *numbers, struct bytes *out)
{
	size_t at = frame_begin(out, MESSAGE_SERVE, 0);

	for (size_t i = 0; i < daemon_number_count; i++)
		frame_put_number(out, daemon_number_infos[i].field,
				 daemon_number_get(numbers, &daemon_number_infos[i]));
	frame_end(out, at);
}

/* A field as text without NUL, at most `most` bytes; to be freed. */
static int field_text(const struct field *field, size_t most, char **ret_text, struct error *err)
{
	char *text;

	if (field->value.length > most ||
	    (field->value.length && memchr(field->value.data, '\0', field->value.length)))
		return refuse(err, EBADMSG, "template: a text of %zu bytes", field->value.length);
	text = span_to_string(field->value);
	if (!text)
		return fail(err, ENOMEM, "template");
	*ret_text = text;
	return 0;
}

static int decode_field(const struct field *field, struct template_config *template,
			struct error *err)
{
	autofree char *text = NULL;
	int r = 0;

	switch (field->name) {
	case FIELD_NAME:
		if ((r = field_text(field, TEMPLATE_NAME_BYTES_MAX, &text, err)) < 0)
			return r;
		snprintf(template->name, sizeof template->name, "%s", text);
		return 0;
	case FIELD_MODULE:
		if ((r = field_text(field, MODULE_NAME_BYTES_MAX, &text, err)) < 0)
			return r;
		return template_config_add_module(template, text, err);
	case FIELD_CODE:
		if (template->warm_up)
			return refuse(err, EBADMSG, "template: two warm-ups");
		return field_text(field, WARM_UP_BYTES_MAX, &template->warm_up, err);
	case FIELD_POOL_MIN:
		r = field_number(field, &template->pool_min);
		break;
	case FIELD_POOL_MAX:
		r = field_number(field, &template->pool_max);
		break;
	default:
		break;
	}
	return r < 0 ? refuse(err, EBADMSG, "template: a field that is no number") : 0;
}

int config_decode_template(const struct frame *frame, struct template_config *ret_template,
			   struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct template_config template = {0};
	struct field field;
	int r;

	while ((r = frame_next_field(&fields, &field)) == 1)
		if ((r = decode_field(&field, &template, err)) < 0)
			break;
	if (r < 0 && !err->number)
		refuse(err, EBADMSG, "template: not a list of fields");
	else if (r == 0 && !template_name_is_valid(template.name))
		r = refuse(err, EBADMSG, "template: no valid name");
	else if (r == 0 && !template.warm_up)
		r = refuse(err, EBADMSG, "template %s: no warm-up", template.name);
	else if (r == 0 && (template.pool_max < 1 || template.pool_max > POOL_CELLS_MAX ||
			    template.pool_min > template.pool_max))
		r = refuse(err, ERANGE, "template %s: a pool of %llu to %llu", template.name,
			   (unsigned long long)template.pool_min,
			   (unsigned long long)template.pool_max);
	if (r < 0) {
		template_config_free(&template);
		return r;
	}
	*ret_template = template;
	return 0;
}

int config_decode_serve(const struct frame *frame, struct daemon_numbers *ret_numbers,
			struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct daemon_numbers numbers = daemon_numbers_default();
	bool seen[ARRAY_LENGTH(daemon_number_infos)] = {false};
	struct field field;
	uint64_t number;
	int r;

	while ((r = frame_next_field(&fields, &field)) == 1) {
		for (size_t i = 0; i < daemon_number_count; i++) {
			const struct daemon_number_info *info = &daemon_number_infos[i];

			if (info->field != field.name)
				continue;
			if (seen[i] || field_number(&field, &number) < 0)
				return refuse(err, EBADMSG, "serve: %s is not one number",
					      info->key);
			if ((r = daemon_number_check(info, number, err)) < 0)
				return r;
			seen[i] = true;
			*daemon_number_at(&numbers, info) = number;
		}
	}
	if (r < 0)
		return refuse(err, EBADMSG, "serve: not a list of fields");
	for (size_t i = 0; i < daemon_number_count; i++)
		if (!seen[i])
			return refuse(err, EBADMSG, "serve: no %s", daemon_number_infos[i].key);
	daemon_numbers_resolve(&numbers);
	*ret_numbers = numbers;
	return 0;
}
