/* SPDX-License-Identifier: Apache-2.0 */
/* audit: the policy while code runs, by a PEP 578 hook.
 *
 * Theory of operation. The hook is installed before the interpreter starts and
 * sleeps until user code is about to run. It sees what the verifier could not:
 * names and source text that were put together at run time. It judges only
 * what user code does itself: an event counts when the innermost Python frame
 * is the user's, so that libraries may import os and open what they need.
 *
 * It informs and ends the run; it is no fence. Code can remove a hook by
 * ctypes, forge events, and catch what a hook raises. So the hook raises
 * nothing: it says what it saw in the mailbox and kills its own process. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct policy *armed;
static struct verify_context context;
static bool recording;
static bool busy; /* verifying: our own compile events mean nothing */
static char (*imports)[VERDICT_IMPORT_BYTES_MAX + 1];
static size_t import_count;

void audit_know_import(struct span module)
{
	char name[VERDICT_IMPORT_BYTES_MAX + 1];
	void *grown;

	if (module.length > VERDICT_IMPORT_BYTES_MAX)
		return;
	memcpy(name, module.data, module.length);
	name[module.length] = '\0';
	for (size_t i = 0; i < import_count; i++)
		if (strcmp(imports[i], name) == 0)
			return;
	grown = realloc(imports, (import_count + 1) * sizeof *imports);
	if (!grown)
		return;
	imports = grown;
	memcpy(imports[import_count++], name, module.length + 1);
}

void audit_know_imports(const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->import_count; i++)
		audit_know_import((struct span){(const uint8_t *)verdict->imports[i],
						strlen(verdict->imports[i])});
}

/* Whether the verifier saw this import, and judged its uses. */
static bool is_known_import(const char *module)
{
	size_t length = strcspn(module, ".");

	for (size_t i = 0; i < import_count; i++)
		if (strlen(imports[i]) == length && strncmp(imports[i], module, length) == 0)
			return true;
	return false;
}

/* The user's own code: main.py, its modules, and strings it compiled. */
static bool is_users(PyObject *file)
{
	const char *name = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL;

	if (!name) {
		PyErr_Clear();
		return false;
	}
	return strcmp(name, RUN_FILE_NAME) == 0 || strncmp(name, "/workspace/", 11) == 0 ||
	       (name[0] == '<' && strncmp(name, "<frozen ", 8) != 0 &&
		strncmp(name, "<__array", 8) != 0);
}

/* The line of main.py when the innermost frame is the user's, else 0. */
static int users_line(void)
{
	PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
	PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
	int line = code && is_users(code->co_filename) ? PyFrame_GetLineNumber(frame) : 0;

	Py_XDECREF(code);
	Py_XDECREF(frame);
	return line;
}

static _Noreturn void end_run(const char *event, const char *detail, int line)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_ANOMALY, 0);

	frame_put_text(&frame, FIELD_EVENT, event);
	frame_put_text(&frame, FIELD_DETAIL, detail);
	frame_put_number(&frame, FIELD_LINE, (uint64_t)line);
	frame_end(&frame, at);
	outbox_append(&frame);
	kill(getpid(), SIGKILL);
	_exit(126);
}

static const char *text_at(PyObject *arguments, Py_ssize_t index)
{
	PyObject *item = PyTuple_Check(arguments) && index < PyTuple_GET_SIZE(arguments)
				 ? PyTuple_GET_ITEM(arguments, index)
				 : NULL;
	const char *text = NULL;

	if (item && PyUnicode_Check(item))
		text = PyUnicode_AsUTF8(item);
	else if (item && PyBytes_Check(item))
		text = PyBytes_AS_STRING(item);
	PyErr_Clear();
	return text;
}

static void judge_import(PyObject *arguments)
{
	const char *module = text_at(arguments, 0);
	enum rule rule;
	int line;

	if (!module || is_known_import(module))
		return;
	if (policy_module_severity(armed, module, context.network_allowed, &rule) != SEVERITY_BLOCK)
		return;
	line = users_line();
	if (line)
		end_run("import", module, line);
}

/* The arguments of an "open" event: path, mode or None, flags. */
static bool is_writing(PyObject *arguments)
{
	const char *mode = text_at(arguments, 1);
	PyObject *flags = PyTuple_GET_SIZE(arguments) > 2 ? PyTuple_GET_ITEM(arguments, 2) : NULL;
	long bits = flags && PyLong_Check(flags) ? PyLong_AsLong(flags) : 0;

	PyErr_Clear();
	if (mode)
		return strpbrk(mode, "wax+") != NULL;
	return (bits & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
}

static void judge_open(PyObject *arguments)
{
	const char *path = text_at(arguments, 0);
	bool write = is_writing(arguments);
	struct span span;
	enum rule rule;
	int line;

	PyErr_Clear();
	if (!path)
		return;
	span = (struct span){(const uint8_t *)path, strlen(path)};
	if (policy_path_severity(armed, span, false, write, &rule) != SEVERITY_BLOCK)
		return;
	line = users_line();
	if (line)
		end_run(write ? "file.write" : "file.read", path, line);
}

/* The source of an exec, eval or compile: verified as the code itself was. */
static void judge_source(PyObject *arguments)
{
	PyObject *source = PyTuple_GET_SIZE(arguments) > 0 ? PyTuple_GET_ITEM(arguments, 0) : NULL;
	const char *text = source ? text_at(arguments, 0) : NULL;
	autoverdict verdict = {0};
	const struct finding *cause;
	struct error err = {0};
	int line;

	if (!text)
		return;
	line = users_line();
	if (!line)
		return;
	busy = true;
	if (verify((struct span){(const uint8_t *)text, strlen(text)}, armed, &context, &verdict,
		   &err) == 0 &&
	    verdict.blocked) {
		cause = verdict_cause(&verdict);
		/* What does not parse is the code's own error to see. */
		if (cause && strcmp(finding_error_type(cause), "SecurityError") == 0)
			end_run("exec", cause->message, line);
	}
	busy = false;
}

static void judge_event(const char *event, PyObject *arguments)
{
	const char *detail;
	enum rule rule;
	int line;

	if (policy_event_severity(armed, event, context.network_allowed, &rule) != SEVERITY_BLOCK)
		return;
	line = users_line();
	if (!line)
		return;
	detail = text_at(arguments, 0);
	end_run(event, detail ? detail : "", line);
}

/* The kinds of event that a dry run tells; the detail is the first argument
 * that is text. */
static const struct {
	const char *prefix, *kind;
} recorded[] = {
	{"import", "import"},     {"open", "open"},           {"os.listdir", "open"},
	{"os.scandir", "open"},   {"subprocess.", "process"}, {"os.system", "process"},
	{"os.exec", "process"},   {"os.fork", "process"},     {"os.posix_spawn", "process"},
	{"os.spawn", "process"},  {"os.kill", "process"},     {"os.remove", "write"},
	{"os.rename", "write"},   {"os.mkdir", "write"},      {"os.rmdir", "write"},
	{"os.truncate", "write"}, {"os.chmod", "write"},      {"shutil.", "write"},
	{"socket.", "socket"},    {"ctypes.", "native"},      {"sqlite3.connect", "open"},
	{"urllib.", "socket"},    {"http.", "socket"},        {"exec", "exec"},
};

static void record(const char *event, PyObject *arguments)
{
	static char seen[PROBE_RECORDS_MAX][120];
	static size_t count;
	const char *kind = NULL, *detail;
	char line_of[120];
	autobytes frame = {0};
	size_t at;
	int line;

	for (size_t i = 0; i < ARRAY_LENGTH(recorded) && !kind; i++)
		if (strncmp(event, recorded[i].prefix, strlen(recorded[i].prefix)) == 0)
			kind = recorded[i].kind;
	line = kind && count < PROBE_RECORDS_MAX ? users_line() : 0;
	if (!line)
		return;
	detail = text_at(arguments, 0);
	if (!detail)
		detail = text_at(arguments, 1);
	if (strcmp(kind, "open") == 0 && is_writing(arguments))
		kind = "write";
	snprintf(line_of, sizeof line_of, "%s %.40s %.60s", kind, event, detail ? detail : "");
	for (size_t i = 0; i < count; i++)
		if (strcmp(seen[i], line_of) == 0)
			return;
	memcpy(seen[count++], line_of, sizeof line_of);
	at = frame_begin(&frame, MESSAGE_RECORD, 0);
	frame_put_text(&frame, FIELD_TYPE, kind);
	frame_put_text(&frame, FIELD_EVENT, event);
	if (detail)
		frame_put(&frame, FIELD_DETAIL, detail, strnlen(detail, 500));
	frame_put_number(&frame, FIELD_LINE, (uint64_t)line);
	frame_end(&frame, at);
	outbox_append(&frame);
}

static int hook(const char *event, PyObject *arguments, void *user)
{
	PyObject *type, *value, *traceback;

	if ((!armed && !recording) || busy)
		return 0;
	PyErr_Fetch(&type, &value, &traceback);
	if (recording)
		record(event, arguments);
	if (!armed)
		;
	else if (strcmp(event, "import") == 0)
		judge_import(arguments);
	else if (strcmp(event, "open") == 0)
		judge_open(arguments);
	else if (strcmp(event, "compile") == 0)
		judge_source(arguments);
	else
		judge_event(event, arguments);
	PyErr_Restore(type, value, traceback);
	return 0;
}

int audit_install(struct error *err)
{
	if (PySys_AddAuditHook(hook, NULL) < 0)
		return refuse(err, EPERM, "guest: the audit hook was refused");
	return 0;
}

void audit_arm(const struct policy *policy, const struct verify_context *of_run)
{
	/* Open refuses nothing, and what the watch sees is noted there. */
	if (policy->profile == PROFILE_OPEN)
		return;
	context = *of_run;
	context.fragment = true;
	armed = policy;
}

void audit_disarm(void)
{
	armed = NULL;
	context = (struct verify_context){0};
}

void audit_record(void)
{
	recording = true;
}
