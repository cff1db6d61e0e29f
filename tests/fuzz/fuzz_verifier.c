/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_verifier: any bytes as source. The verdict must always come, hold to
 * its bounds, and survive its codec. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "guest/verifier/verify.h"
#include "policy/text.h"

#include "fuzz.h"

#include <string.h>

/* CPython keeps memory until the process ends. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct error err = {0};

	(void)argc;
	(void)argv;
	Py_InitializeEx(0);
	if (PyRun_SimpleString("import warnings; warnings.simplefilter('ignore')") < 0 ||
	    verifier_init(&err) < 0)
		abort();
	return 0;
}

static void check_finding(const struct finding *finding, size_t size)
{
	struct span message = {(const uint8_t *)finding->message, strlen(finding->message)};
	struct span hint = {(const uint8_t *)finding->hint, strlen(finding->hint)};

	if (!message.length || !hint.length || !utf8_valid(message) || !utf8_valid(hint))
		abort();
	if (finding->severity == SEVERITY_OFF || finding->rule >= RULE_COUNT)
		abort();
	if (finding->line > size + 2 || (finding->line && !finding->column) ||
	    finding->end_line < finding->line)
		abort();
}

/* Whoever passes as Python must be Python to the compiler too: the verifier
 * compiles only what it has doubts about. */
static void check_compiler(struct span code, const struct verdict *verdict, bool top_level_await)
{
	PyCompilerFlags flags = {.cf_flags = PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE,
				 .cf_feature_version = PY_MINOR_VERSION};
	struct span inner;
	uint32_t line;
	PyObject *name, *compiled;
	char *text;

	if (top_level_await)
		flags.cf_flags |= PyCF_ALLOW_TOP_LEVEL_AWAIT;

	for (size_t i = 0; i < verdict->finding_count; i++)
		if (strcmp(rule_infos[verdict->findings[i].rule].kind, "source") == 0 &&
		    verdict->findings[i].severity == SEVERITY_BLOCK)
			return;
	/* What runs, where a notebook's forms were taken out. */
	if (verdict->source.length > 0)
		code = bytes_span(&verdict->source);
	else if (fence_strip(code, &inner, &line))
		code = inner;
	if (code.length >= 3 && memcmp(code.data, "\xef\xbb\xbf", 3) == 0)
		code = (struct span){code.data + 3, code.length - 3};
	text = span_to_string(code);
	name = PyUnicode_FromString("main.py");
	MUST(text && name);
	compiled = Py_CompileStringObject(text, name, Py_file_input, &flags, 0);
	if (!compiled && PyErr_ExceptionMatches(PyExc_SyntaxError)) {
		PyErr_Print();
		abort();
	}
	PyErr_Clear();
	Py_XDECREF(compiled);
	Py_DECREF(name);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = {"data.csv", "helper.py"};
	struct policy policy = policy_profile(size & 1 ? PROFILE_STRICT : PROFILE_STANDARD);
	struct verify_context context = {.files = files,
					 .file_count = 2,
					 .time_ms = 5000,
					 .fragment = (size & 6) == 6,
					 .top_level_await = size & 8};
	autoverdict verdict = {0}, copy = {0};
	autobytes once = {0}, twice = {0};
	struct error err = {0};

	if (verify((struct span){data, size}, &policy, &context, &verdict, &err) < 0)
		abort();
	if (PyErr_Occurred() || verdict.finding_count > FINDINGS_MAX)
		abort();
	for (size_t i = 0; i < verdict.finding_count; i++)
		check_finding(&verdict.findings[i], size);
	check_compiler((struct span){data, size}, &verdict, context.top_level_await);
	verdict_encode(&verdict, &once);
	if (verdict_decode(bytes_span(&once), &copy, &err) < 0)
		abort();
	verdict_encode(&copy, &twice);
	if (once.length != twice.length || memcmp(once.data, twice.data, once.length) != 0)
		abort();
	return 0;
}
