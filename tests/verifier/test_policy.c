/* SPDX-License-Identifier: Apache-2.0 */
/* test_policy: tables, paths, text and codecs of src/policy, without Python. */
#include "policy/finding.h"
#include "policy/policy.h"
#include "policy/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct span text(const char *from)
{
	return (struct span){(const uint8_t *)from, strlen(from)};
}

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < RULE_COUNT; i++) {
		const struct rule_info *rule = &rule_infos[i];

		assert_int_equal(rule_find(rule->id), i);
		assert_true(strlen(rule->message) > 0 && strlen(rule->hint) > 10);
		assert_true(strlen(rule->matches) > 10 && strlen(rule->reason) > 10);
		/* Each profile refuses no more than the one before it. */
		assert_true(rule->severity[PROFILE_STRICT] >= rule->severity[PROFILE_STANDARD] ||
			    rule->severity[PROFILE_STANDARD] == SEVERITY_NOTE);
		/* Lint never refuses. */
		if (strcmp(rule->kind, "lint") == 0)
			assert_true(rule->severity[PROFILE_STRICT] < SEVERITY_BLOCK);
		if (strcmp(rule->kind, "danger") == 0) {
			assert_int_equal(rule->severity[PROFILE_STRICT], SEVERITY_BLOCK);
			assert_int_equal(rule->severity[PROFILE_OPEN], SEVERITY_NOTE);
		}
	}
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < name_count(); i++) {
		const struct name_info *info = name_at(i);

		/* No name stands there twice, and each is found. */
		assert_ptr_equal(name_find(info->name), info);
		if (info->kind == NAME_ALIAS)
			assert_non_null(info->text);
		if (info->kind == NAME_CALL)
			assert_non_null(info->text);
	}
	assert_null(name_find("os.nothing"));
	assert_int_equal(internal_attribute(text("__globals__")), RULE_INTERNALS);
	assert_int_equal(internal_attribute(text("__name__")), RULE_COUNT);
}

static void test_paths(void **state)
{
	static const struct {
		const char *path;
		bool prefix;
		enum path_place place;
	} cases[] = {
		{"x.txt", false, PATH_INSIDE},
		{"./a/../b", false, PATH_INSIDE},
		{"", false, PATH_INSIDE},
		{"..", false, PATH_OUTSIDE},
		{"../workspace/x", false, PATH_INSIDE},
		{"../../etc/passwd", false, PATH_SYSTEM},
		{"/workspace", false, PATH_INSIDE},
		{"/workspaces/x", false, PATH_OUTSIDE},
		{"/tmp/x", false, PATH_INSIDE},
		{"/tmp/../etc/x", false, PATH_SYSTEM},
		{"/tmpx", false, PATH_OUTSIDE},
		{"/dev/shm/x", false, PATH_INSIDE},
		{"/dev/null", false, PATH_INSIDE},
		{"/dev/mem", false, PATH_SECRET},
		{"/dev/sda", false, PATH_SYSTEM},
		{"//etc//passwd", false, PATH_SYSTEM},
		{"/etc/shadow", false, PATH_SECRET},
		{"/etc/localtime", false, PATH_SHARED},
		{"/usr/share/fonts/x", false, PATH_SHARED},
		{"/usr/bin/x", false, PATH_SYSTEM},
		{"/proc/self/mem", false, PATH_SECRET},
		{"/proc/self/environ", false, PATH_SECRET},
		{"/proc/cpuinfo", false, PATH_SHARED},
		{"/home/user/.ssh/id_rsa", false, PATH_SECRET},
		{".ssh/id_rsa", false, PATH_INSIDE},
		{"/data/x", false, PATH_OUTSIDE},
		{"file:///etc/passwd", false, PATH_SYSTEM},
		{"/", true, PATH_UNKNOWN},
		{"/w", true, PATH_UNKNOWN},
		{"/tm", true, PATH_UNKNOWN},
		{"/etc/", true, PATH_SYSTEM},
		{"/home/", true, PATH_OUTSIDE},
		{"", true, PATH_UNKNOWN},
		{"out_", true, PATH_INSIDE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (path_place(text(cases[i].path), cases[i].prefix) != cases[i].place)
			fail_msg("%s: %d", cases[i].path,
				 path_place(text(cases[i].path), cases[i].prefix));
}

static void test_questions(void **state)
{
	struct policy strict = policy_profile(PROFILE_STRICT), open = policy_profile(PROFILE_OPEN);
	struct policy standard = policy_profile(PROFILE_STANDARD);
	enum rule rule;

	(void)state;
	assert_int_equal(policy_module_severity(&strict, "os", false, &rule), SEVERITY_OFF);
	assert_int_equal(policy_module_severity(&strict, "subprocess", false, &rule),
			 SEVERITY_BLOCK);
	assert_int_equal(rule, RULE_PROCESS);
	assert_int_equal(policy_module_severity(&strict, "multiprocessing.pool", false, NULL),
			 SEVERITY_BLOCK);
	assert_int_equal(policy_module_severity(&strict, "socket", true, NULL), SEVERITY_OFF);
	assert_int_equal(policy_module_severity(&strict, "urllib.parse", false, NULL),
			 SEVERITY_OFF);
	assert_int_equal(policy_module_severity(&open, "subprocess", false, NULL), SEVERITY_NOTE);
	assert_int_equal(policy_event_severity(&strict, "os.system", false, &rule), SEVERITY_BLOCK);
	assert_int_equal(policy_event_severity(&strict, "ctypes.dlsym/handle", false, NULL),
			 SEVERITY_BLOCK);
	assert_int_equal(policy_event_severity(&strict, "socket.bind", true, NULL), SEVERITY_OFF);
	assert_int_equal(policy_event_severity(&strict, "object.__getattr__", false, NULL),
			 SEVERITY_OFF);
	assert_int_equal(policy_path_severity(&standard, text("/etc/x"), false, true, &rule),
			 SEVERITY_BLOCK);
	assert_int_equal(rule, RULE_WRITE_SYSTEM);
	assert_int_equal(policy_path_severity(&strict, text("a"), false, true, NULL), SEVERITY_OFF);
}

static void test_policy_codec(void **state)
{
	static const char file[] = "profile: standard\nname: lab\nrules: {process: note}\n"
				   "modules: {requests: allow}\ncalls: {os.fork: block}\n"
				   "paths: {read: [/data], write: [/out/]}\n";
	autopolicy policy = {0}, copy = {0};
	autobytes encoded = {0};
	struct error err = {0};
	enum severity severity;

	(void)state;
	assert_int_equal(policy_parse(text(file), "lab.yaml", &policy, &err), 0);
	policy_encode(&policy, &encoded);
	for (size_t length = 0; length < encoded.length; length++) {
		autopolicy cut = {0};

		/* A cut copy is refused, or a policy with fewer entries. */
		(void)policy_decode((struct span){encoded.data, length}, &cut, &err);
	}
	assert_int_equal(policy_decode(bytes_span(&encoded), &copy, &err), 0);
	assert_string_equal(copy.name, "lab");
	assert_int_equal(copy.profile, PROFILE_STANDARD);
	assert_int_equal(copy.severity[RULE_PROCESS], SEVERITY_NOTE);
	assert_true(policy_name(&copy, "requests.sessions", &severity));
	assert_int_equal(severity, SEVERITY_OFF);
	assert_false(policy_name(&copy, "requestsx", &severity));
	assert_true(policy_name(&copy, "os.fork", &severity));
	assert_false(policy_name(&copy, "os.fork.x", &severity));
	assert_int_equal(policy_path_severity(&copy, text("/out/a"), false, true, NULL),
			 SEVERITY_OFF);
	assert_int_equal(policy_module_severity(&copy, "requests", false, NULL), SEVERITY_OFF);
}

static void test_verdict_codec(void **state)
{
	autoverdict verdict = {0}, copy = {0};
	autobytes encoded = {0}, broken = {0};
	struct error err = {0};
	char large[1000];

	(void)state;
	memset(large, 'x', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	memcpy(large + 399, "é", 2); /* would be cut in its middle */
	assert_int_equal(verdict_add_import(&verdict, "numpy"), 0);
	assert_int_equal(verdict_add_import(&verdict, "numpy"), 0);
	for (uint32_t i = 0; i < FINDINGS_MAX + 10; i++)
		assert_int_equal(verdict_add(&verdict, RULE_UNDEFINED, SEVERITY_WARN,
					     (uint32_t[4]){i + 1, 1, i + 1, 2}, large,
					     "line\nbreak"),
				 0);
	assert_false(verdict.blocked);
	assert_int_equal(verdict_add(&verdict, RULE_PROCESS, SEVERITY_BLOCK,
				     (uint32_t[4]){1, 1, 1, 2}, "m", "h"),
			 0);
	assert_true(verdict.blocked && verdict.truncated);
	assert_int_equal(verdict.finding_count, FINDINGS_MAX);
	assert_int_equal(strlen(verdict.findings[0].message), 399);
	assert_string_equal(verdict.findings[0].hint, "line break");
	verdict_sort(&verdict);
	assert_int_equal(verdict_cause(&verdict)->rule, RULE_PROCESS);
	assert_string_equal(finding_error_type(verdict_cause(&verdict)), "SecurityError");
	verdict_encode(&verdict, &encoded);
	assert_int_equal(verdict_decode(bytes_span(&encoded), &copy, &err), 0);
	assert_int_equal(copy.finding_count, FINDINGS_MAX);
	assert_int_equal(copy.import_count, 1);
	assert_true(copy.blocked && copy.truncated);
	assert_memory_equal(&copy.findings[7].message, &verdict.findings[7].message, 300);
	/* Every cut and every changed byte is refused or harmless. */
	for (size_t i = 0; i < encoded.length && i < 3000; i++) {
		autoverdict other = {0};

		bytes_clear(&broken);
		bytes_append(&broken, encoded.data, encoded.length);
		broken.data[i] ^= 0x55;
		(void)verdict_decode(bytes_span(&broken), &other, &err);
		(void)verdict_decode((struct span){encoded.data, i}, &other, &err);
		verdict_free(&other);
	}
}

static void test_text(void **state)
{
	static const char *const good[] = {"", "abc", "äé", "€", "😀", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {
		"\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"};
	struct span inner;
	uint32_t line;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(utf8_valid(text(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(utf8_valid(text(bad[i])));
	assert_int_equal(utf8_floor(text("aé"), 2), 1);
	assert_int_equal(utf8_count(text("aé€😀")), 4);
	assert_true(fence_strip(text("```python\nx = 1\n```\n"), &inner, &line));
	assert_true(span_equals(inner, "x = 1\n"));
	assert_int_equal(line, 1);
	assert_true(fence_strip(text("Look:\n~~~\na\n```\nb\n~~~\nbye"), &inner, &line));
	assert_true(span_equals(inner, "a\n```\nb\n"));
	assert_true(fence_strip(text("```\nopen end"), &inner, &line));
	assert_true(span_equals(inner, "open end"));
	assert_false(fence_strip(text("x = 1\n"), &inner, &line));
	assert_false(fence_strip(text("s = '''\n```\n'''\n"), &inner, &line));
	assert_false(fence_strip(text("``\nx\n``"), &inner, &line));
	assert_false(fence_strip(text("    ```\nx\n    ```"), &inner, &line));
	assert_false(fence_strip(text(""), &inner, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_paths),        cmocka_unit_test(test_questions),
		cmocka_unit_test(test_policy_codec), cmocka_unit_test(test_verdict_codec),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
