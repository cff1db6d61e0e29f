/* SPDX-License-Identifier: Apache-2.0 */
/* test_config: a daemon's configuration as a file and as messages (H11). */
#include "unit.h"

#include "base/cleanup.h"
#include "policy/config.h"
#include "policy/templates.h"

#include <errno.h>

static int parse(const char *text, struct daemon_config *config, struct error *err)
{
	*err = (struct error){0};
	return config_parse(text_of(text), "serve.yaml", config, err);
}

static void without_a_file_the_built_in_templates_are_there(void **state)
{
	autoconfig config = {0};
	struct error err = {0};

	assert_int_equal(config_load(NULL, &config, &err), 0);
	assert_int_equal(config.template_count, TEMPLATE_COUNT);
	for (size_t i = 0; i < TEMPLATE_COUNT; i++) {
		assert_string_equal(config.templates[i].name, template_infos[i].name);
		assert_string_equal(config.templates[i].warm_up, template_infos[i].warm_up);
		assert_true(config.templates[i].pool_min <= config.templates[i].pool_max);
	}
	assert_int_equal(config.templates[0].pool_min, POOL_MIN_BARE);
	assert_int_equal(config.templates[3].pool_max, POOL_MAX_DEFAULT);
	assert_int_equal(config.templates[3].module_count, 3);
	assert_string_equal(config.templates[3].modules[2], "matplotlib.pyplot");
	assert_true(config.numbers.runs > 0);
	for (size_t i = 0; i < daemon_number_count; i++) {
		const struct daemon_number_info *info = &daemon_number_infos[i];

		assert_true(info->least <= info->initial && info->initial <= info->most);
	}
}

static void every_key_is_read(void **state)
{
	static const char text[] =
		"# a comment\n"
		"memory: 2G\n"
		"rotate_cells: 17\n"
		"rotate_after: 1.5m\n"
		"idle_after: 0\n"
		"runs: 3\n"
		"queue: 0\n"
		"queue_wait: 250ms\n"
		"clients: 9\n"
		"templates:\n"
		"  - {name: bare, pool: {min: 0, max: 1}}\n"
		"  - name: lab_2\n"
		"    modules: [json, xml.etree.ElementTree]\n"
		"    warm_up: |\n"
		"      import json\n"
		"      json.dumps({})\n"
		"    pool: {max: 1}\n"
		"  - {name: numpy, modules: [numpy, numpy.linalg], pool: {min: 20}}\n"
		"  - {name: pandas, warm_up: ''}\n";
	autoconfig config = {0};
	struct error err;

	if (parse(text, &config, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(config.numbers.memory_bytes, 2 * GIB);
	assert_int_equal(config.numbers.rotate_cells, 17);
	assert_int_equal(config.numbers.rotate_ms, 90000);
	assert_int_equal(config.numbers.idle_ms, 0);
	assert_int_equal(config.numbers.runs, 3);
	assert_int_equal(config.numbers.queue, 0);
	assert_int_equal(config.numbers.queue_ms, 250);
	assert_int_equal(config.numbers.clients, 9);
	assert_int_equal(config.template_count, 4);

	/* A built-in one by its name alone is what it always is, but for its pool. */
	assert_int_equal(config.templates[0].module_count, 0);
	assert_int_equal(config.templates[0].pool_min, 0);
	assert_int_equal(config.templates[0].pool_max, 1);
	assert_string_equal(config.templates[1].name, "lab_2");
	assert_int_equal(config.templates[1].module_count, 2);
	assert_string_equal(config.templates[1].modules[1], "xml.etree.ElementTree");
	assert_string_equal(config.templates[1].warm_up, "import json\njson.dumps({})\n");
	assert_int_equal(config.templates[1].pool_min, 1);
	assert_int_equal(config.templates[1].pool_max, 1);
	/* With other modules the built-in warm-up is not run. */
	assert_int_equal(config.templates[2].module_count, 2);
	assert_string_equal(config.templates[2].warm_up, "");
	assert_int_equal(config.templates[2].pool_min, 20);
	assert_int_equal(config.templates[2].pool_max, 20);
	assert_int_equal(config.templates[3].module_count, 2);
	assert_string_equal(config.templates[3].warm_up, "");
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "serve.yaml:1:1: the configuration is empty"},
		{"[1]\n", "serve.yaml:1:1: a configuration is a mapping of keys"},
		{"memory: 1G\nmemory: 1G\n", "serve.yaml:2:1: the key 'memory' stands here twice"},
		{"memory: 1G\n---\nqueue: 1\n", "serve.yaml:2:1: there is a second document"},
		{"memroy: 1G\n",
		 "serve.yaml:1:1: there is no key 'memroy': use templates, memory, rotate_cells, "
		 "rotate_after, idle_after, runs, queue, queue_wait, clients, sessions, "
		 "session_idle, session_life; or one of docs/http.md"},
		{"memory: 1T\n",
		 "serve.yaml:1:9: memory: cannot read \"1T\"; write it like 100M, 64K "
		 "or 1G"},
		{"memory: 1K\n",
		 "serve.yaml:1:9: memory: 1 KiB is out of range (64 MiB to 1024 GiB)"},
		{"queue: -1\n", "serve.yaml:1:8: queue: cannot read \"-1\"; write it like 64"},
		{"queue: 1.5\n", "serve.yaml:1:8: queue: cannot read \"1.5\"; write it like 64"},
		{"queue: 99999999999999999999\n",
		 "serve.yaml:1:8: queue: \"99999999999999999999\" is too large"},
		{"queue: [1]\n", "serve.yaml:1:8: queue must be one word"},
		{"queue: ''\n", "serve.yaml:1:8: queue must have 1 to 63 bytes"},
		{"queue_wait: 5d\n",
		 "serve.yaml:1:13: queue_wait: cannot read \"5d\"; write it like "
		 "5s, 250ms or 2m"},
		{"runs: &a 1\n", "serve.yaml:1:7: anchors and tags are not allowed"},
		{"runs: !!int 1\n", "serve.yaml:1:7: anchors and tags are not allowed"},
		{"templates: bare\n", "serve.yaml:1:12: templates must be a list"},
		{"templates: []\n", "serve.yaml:1:13: templates must list at least one"},
		{"templates: [bare]\n", "serve.yaml:1:13: a template must be a mapping, such as "
					"{name: lab, modules: [numpy]}"},
		{"templates:\n  - {pool: {min: 1}}\n", "serve.yaml:2:5: the key 'name' is missing"},
		{"templates:\n  - {name: lab}\n", "serve.yaml:2:5: the template 'lab' is not built "
						  "in: give it modules or warm_up"},
		{"templates:\n  - {name: Lab, modules: []}\n",
		 "serve.yaml:2:12: 'Lab' cannot be a template's name: a-z, 0-9, _ and -, and not "
		 "auto"},
		{"templates:\n  - {name: auto, modules: []}\n",
		 "serve.yaml:2:12: 'auto' cannot be a template's name: a-z, 0-9, _ and -, and not "
		 "auto"},
		{"templates:\n  - {name: bare}\n  - {name: bare}\n",
		 "serve.yaml:3:5: the template 'bare' stands here twice"},
		{"templates:\n  - {name: bare, name: numpy}\n",
		 "serve.yaml:2:18: the key 'name' stands here twice"},
		{"templates:\n  - {name: bare, min: 1}\n",
		 "serve.yaml:2:18: there is no key 'min' in templates: use name, modules, warm_up, "
		 "pool"},
		{"templates:\n  - {name: a, modules: numpy}\n",
		 "serve.yaml:2:24: modules must be a list of names"},
		{"templates:\n  - {name: a, modules: [os, 'a b']}\n",
		 "serve.yaml:2:29: 'a b' is no module's name"},
		{"templates:\n  - {name: a, modules: [os, os]}\n",
		 "serve.yaml:2:29: the module 'os' stands here twice"},
		{"templates:\n  - {name: a, warm_up: [x]}\n",
		 "serve.yaml:2:24: warm_up must be text"},
		{"templates:\n  - {name: a, warm_up: \"a\\0b\"}\n",
		 "serve.yaml:2:24: warm_up must have at most 65536 bytes, none of them NUL"},
		{"templates:\n  - {name: bare, pool: 4}\n",
		 "serve.yaml:2:24: pool must be a mapping of min and max"},
		{"templates:\n  - {name: bare, pool: {least: 4}}\n",
		 "serve.yaml:2:25: there is no key 'least' in pool: use min, max"},
		{"templates:\n  - {name: bare, pool: {max: 0}}\n",
		 "serve.yaml:2:30: max: 0 is out of range (1 to 4096)"},
		{"templates:\n  - {name: bare, pool: {min: 5000}}\n",
		 "serve.yaml:2:30: min: 5000 is out of range (0 to 4096)"},
		{"templates:\n  - {name: bare, pool: {min: 5, max: 4}}\n",
		 "serve.yaml:2:24: pool: min is 5, more than max, 4"},
		{"queue: 1\n\tx: 2\n", "serve.yaml:2:1: "},
		{"\"\\e[31m\": 1\n", "serve.yaml:1:1: there is no key '?[31m': use "},
	};
	struct daemon_config config, untouched;
	struct error err;

	memset(&config, 0x5a, sizeof config);
	untouched = config;
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int r = parse(cases[i].text, &config, &err);
		bool whole = cases[i].message[strlen(cases[i].message) - 1] != ' ';

		if (r != -EINVAL ||
		    (whole ? strcmp(err.text, cases[i].message) != 0
			   : strncmp(err.text, cases[i].message, strlen(cases[i].message)) != 0))
			fail_msg("%s: %d, %s", cases[i].text, r, err.text);
		assert_memory_equal(&config, &untouched, sizeof config);
	}
}

static void bounds_of_the_file_hold(void **state)
{
	autobytes text = {0};
	autoconfig config = {0};
	struct error err;

	bytes_append_text(&text, "templates:\n");
	for (int i = 0; i < TEMPLATES_MAX; i++)
		bytes_append_format(&text, "  - {name: t%d, modules: []}\n", i);
	bytes_append(&text, "", 1);
	if (parse((const char *)text.data, &config, &err) < 0)
		fail_msg("%s", err.text);
	text.length--;
	bytes_append_text(&text, "  - {name: more, modules: []}\n");
	bytes_append(&text, "", 1);
	assert_int_equal(parse((const char *)text.data, &config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 32 templates"));

	bytes_clear(&text);
	bytes_append_text(&text, "templates: [{name: a, modules: [");
	for (int i = 0; i <= MODULE_COUNT_MAX; i++)
		bytes_append_format(&text, "m%d, ", i);
	bytes_append(&text, "]}]", 4);
	assert_int_equal(parse((const char *)text.data, &config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 64 modules"));

	bytes_clear(&text);
	while (text.length <= CONFIG_FILE_BYTES_MAX)
		bytes_append_text(&text, "# sixteen bytes\n");
	assert_int_equal(config_parse(bytes_span(&text), "serve.yaml", &config, &err), -EINVAL);
	assert_string_equal(err.text, "serve.yaml: larger than 262144 bytes");
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
	autoconfig config = {0};
	struct error err = {0};

	assert_int_equal(config_load("/nowhere/serve.yaml", &config, &err), -ENOENT);
	assert_string_equal(err.text,
			    "configuration /nowhere/serve.yaml: No such file or directory");
	assert_int_equal(config_load("/dev", &config, &err), -EINVAL);
	assert_int_equal(config.template_count, 0);
}

/* The first frame of the bytes. */
static struct frame frame_of(const struct bytes *bytes)
{
	struct reader reader = reader_of(bytes_span(bytes));
	struct frame frame;

	assert_int_equal(frame_next(&reader, FRAME_MESSAGE_MAX, &frame), 1);
	return frame;
}

static void messages_say_what_was_configured(void **state)
{
	static const char text[] = "{runs: 5, queue: 7, templates: [{name: lab, modules: [a.b, c], "
				   "warm_up: x, pool: {min: 3, max: 9}}]}";
	autoconfig config = {0};
	autobytes bytes = {0};
	struct template_config template = {0};
	struct daemon_numbers numbers;
	struct frame frame;
	struct error err = {0};

	assert_int_equal(parse(text, &config, &err), 0);
	config_encode_template(&config.templates[0], &bytes);
	frame = frame_of(&bytes);
	assert_int_equal(frame.type, MESSAGE_TEMPLATE);
	assert_int_equal(config_decode_template(&frame, &template, &err), 0);
	assert_string_equal(template.name, "lab");
	assert_int_equal(template.module_count, 2);
	assert_string_equal(template.modules[0], "a.b");
	assert_string_equal(template.modules[1], "c");
	assert_string_equal(template.warm_up, "x");
	assert_int_equal(template.pool_min, 3);
	assert_int_equal(template.pool_max, 9);
	template_config_free(&template);

	bytes_clear(&bytes);
	config_encode_serve(&config.numbers, &bytes);
	frame = frame_of(&bytes);
	assert_int_equal(frame.type, MESSAGE_SERVE);
	assert_int_equal(config_decode_serve(&frame, &numbers, &err), 0);
	assert_memory_equal(&numbers, &config.numbers, sizeof numbers);
}

static void the_largest_template_fits_one_message(void **state)
{
	autofree char *code = calloc(1, WARM_UP_BYTES_MAX + 1);
	struct template_config template;
	autobytes bytes = {0};
	struct error err = {0};
	char module[MODULE_NAME_BYTES_MAX + 1];

	assert_int_equal(template_config_init(&template, "t", &err), 0);
	for (int i = 0; i < MODULE_COUNT_MAX; i++) {
		snprintf(module, sizeof module, "m%099d", i);
		assert_int_equal(template_config_add_module(&template, module, &err), 0);
	}
	memset(code, 'x', WARM_UP_BYTES_MAX);
	free(template.warm_up);
	template.warm_up = take_ptr(code);
	config_encode_template(&template, &bytes);
	assert_int_equal(bytes.failed, 0);
	assert_true(bytes.length <= FRAME_MESSAGE_MAX);
	template_config_free(&template);
}

/* A frame of these fields, decoded; each is a name and a text, or a number when
 * the text is NULL. */
struct part {
	uint16_t field;
	const char *text;
	uint64_t number;
};

static int decode(uint16_t type, const struct part *parts, size_t count, struct error *err)
{
	struct template_config template = {0};
	struct daemon_numbers numbers;
	autobytes bytes = {0};
	size_t at = frame_begin(&bytes, type, 0);
	struct frame frame;
	int r;

	for (size_t i = 0; i < count; i++)
		if (parts[i].text)
			frame_put_text(&bytes, parts[i].field, parts[i].text);
		else
			frame_put_number(&bytes, parts[i].field, parts[i].number);
	frame_end(&bytes, at);
	frame = frame_of(&bytes);
	*err = (struct error){0};
	r = type == MESSAGE_TEMPLATE ? config_decode_template(&frame, &template, err)
				     : config_decode_serve(&frame, &numbers, err);
	template_config_free(&template);
	assert_true(r == 0 || (err->number == -r && err->text[0]));
	return r;
}

static void a_template_that_nobody_could_configure_is_refused(void **state)
{
	static const struct part good[] = {{FIELD_NAME, "a", 0},
					   {FIELD_MODULE, "os", 0},
					   {FIELD_CODE, "", 0},
					   {FIELD_POOL_MIN, NULL, 1},
					   {FIELD_POOL_MAX, NULL, 2}};
	static const struct part bad[] = {
		{FIELD_NAME, "", 0},       {FIELD_NAME, "-a", 0},
		{FIELD_NAME, "auto", 0},   {FIELD_NAME, "abcdefghijklmnopqrstuvwxyz012345", 0},
		{FIELD_MODULE, "", 0},     {FIELD_MODULE, "a b", 0},
		{FIELD_MODULE, "os", 0},   {FIELD_CODE, "x", 0},
		{FIELD_POOL_MIN, NULL, 3}, {FIELD_POOL_MIN, "1", 0},
		{FIELD_POOL_MAX, NULL, 0}, {FIELD_POOL_MAX, NULL, 4097},
		{FIELD_POOL_MAX, "1", 0},  {FIELD_POOL_MAX, NULL, UINT64_MAX},
	};
	struct error err;

	assert_int_equal(decode(MESSAGE_TEMPLATE, good, ARRAY_LENGTH(good), &err), 0);
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		struct part parts[ARRAY_LENGTH(good) + 1];

		memcpy(parts, good, sizeof good);
		parts[ARRAY_LENGTH(good)] = bad[i];
		if (decode(MESSAGE_TEMPLATE, parts, ARRAY_LENGTH(parts), &err) >= 0)
			fail_msg("%u %s %llu was taken", bad[i].field, bad[i].text,
				 (unsigned long long)bad[i].number);
	}
	/* Each of name, warm-up and pool's most must be there. */
	assert_true(decode(MESSAGE_TEMPLATE, good + 1, ARRAY_LENGTH(good) - 1, &err) < 0);
	assert_true(decode(MESSAGE_TEMPLATE, good, 2, &err) < 0);
	assert_true(decode(MESSAGE_TEMPLATE, good, 4, &err) < 0);
}

static void numbers_that_nobody_could_configure_are_refused(void **state)
{
	struct part parts[16] = {0};
	struct error err;
	size_t count = daemon_number_count;

	assert_true(count < ARRAY_LENGTH(parts));
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct part){daemon_number_infos[i].field, NULL,
					 daemon_number_infos[i].initial};
	assert_int_equal(decode(MESSAGE_SERVE, parts, count, &err), 0);
	assert_int_equal(decode(MESSAGE_SERVE, parts, count - 1, &err), -EBADMSG);
	parts[count] = parts[0];
	assert_int_equal(decode(MESSAGE_SERVE, parts, count + 1, &err), -EBADMSG);
	for (size_t i = 0; i < count; i++) {
		const struct daemon_number_info *info = &daemon_number_infos[i];

		parts[i].number = info->most + 1;
		assert_int_equal(decode(MESSAGE_SERVE, parts, count, &err), -ERANGE);
		assert_non_null(strstr(err.text, info->key));
		parts[i].number = info->least;
		assert_int_equal(decode(MESSAGE_SERVE, parts, count, &err), 0);
		parts[i].text = "7";
		assert_int_equal(decode(MESSAGE_SERVE, parts, count, &err), -EBADMSG);
		parts[i].text = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_file_the_built_in_templates_are_there),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(what_is_wrong_is_named_with_its_place),
		cmocka_unit_test(bounds_of_the_file_hold),
		cmocka_unit_test(a_file_that_cannot_be_read_is_named),
		cmocka_unit_test(messages_say_what_was_configured),
		cmocka_unit_test(the_largest_template_fits_one_message),
		cmocka_unit_test(a_template_that_nobody_could_configure_is_refused),
		cmocka_unit_test(numbers_that_nobody_could_configure_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
