/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: see doctor.h.
 *
 * Theory of operation. The engine is used as any program would use it. The
 * first run shows that a cell starts at all and what a cold start takes. In
 * the second the probe (doctor_probe.py) tries one thing after the other and
 * prints what it got; the tables below say what it must get. Then each limit is
 * reached in a run of its own. What must not be reachable is laid out by
 * doctor_host.c before, and is reached from outside to show that it could be.
 *
 * Fails closed: an attempt that could not be made, or that the probe does not
 * mention, is a layer that is missing. */
#include "engine/doctor.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/doctor_host.h"
#include "engine/engine.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

extern const char doctor_probe[];
extern const size_t doctor_probe_length;

#define BROKEN_REMEDY "do not run strangers' code with this build on this host; report this line"
#define CGROUP_REMEDY                                                                        \
	"limits are sampled without cgroups; run as root, or with controllers of your own: " \
	"systemd-run --user --scope -p Delegate=yes execpy …"

/* How the answer to an attempt is judged. */
enum judgement {
	EXACTLY,         /* one of the words in `want` */
	NOT,             /* anything but `want` */
	OTHER_NAMESPACE, /* not what the caller's own link says */
	CANARY_UNSEEN,   /* nothing that the probe printed holds the canary */
	SCOPE_REFUSAL,   /* EXACTLY, from Landlock's ABI 6 on */
	IF_TOLD,         /* EXACTLY; being refused an answer is information */
	TELL,            /* information */
};

static const struct attempt {
	const char *name, *layer, *asked, *want;
	enum judgement judgement;
} attempts[] = {
	{"ns_user", "user namespace", "its own", NULL, OTHER_NAMESPACE},
	{"id_map", "user namespace", "one id, and not root", "one", EXACTLY},
	{"host_root", "user namespace", "the host's root is nobody", "EINVAL", EXACTLY},
	{"nested", "user namespace", "no namespace within", "EPERM|ENOSPC", EXACTLY},
	{"ns_mnt", "mount namespace", "its own", NULL, OTHER_NAMESPACE},
	{"host_files", "mount namespace", "host files are not there", "ENOENT", EXACTLY},
	{"canary_read", "mount namespace", "a host file that is open to all", "ENOENT", EXACTLY},
	{"read_only", "mount namespace", "root is read-only", "EROFS", EXACTLY},
	{"mount_flags", "mount namespace", "nosuid, nodev, read-only", "all", EXACTLY},
	{"mount", "mount namespace", "no mounts within", "EPERM", EXACTLY},
	{"ns_pid", "pid namespace", "its own", NULL, OTHER_NAMESPACE},
	{"not_first", "pid namespace", "code is not pid 1", "1", NOT},
	{"own_processes", "pid namespace", "other processes in sight", "none", EXACTLY},
	{"signal_outside", "pid namespace", "no signal leaves", "ESRCH", EXACTLY},
	{"kill_init", "pid namespace", "init cannot be killed", "no effect", EXACTLY},
	{"others_memory", "pid namespace", "init cannot be read", "EPERM|EACCES|ENOENT", EXACTLY},
	{"ns_net", "network namespace", "its own", NULL, OTHER_NAMESPACE},
	{"interfaces", "network namespace", "interfaces", "none", EXACTLY},
	{"loopback", "network namespace", "host's TCP port unreachable", "ENETUNREACH|EACCES",
	 EXACTLY},
	{"loopback_udp", "network namespace", "host's UDP port unreachable", "ENETUNREACH",
	 EXACTLY},
	{"outside", "network namespace", "outside unreachable", "ENETUNREACH|EACCES", EXACTLY},
	{"port", "network namespace", "no port is opened", "EACCES", EXACTLY},
	{"local_sockets", "network namespace", "host's local sockets", "unreachable", EXACTLY},
	{"families", "network namespace", "no exotic families", "EAFNOSUPPORT", EXACTLY},
	{"raw_socket", "network namespace", "no raw sockets", "EPERM", EXACTLY},
	{"ns_ipc", "ipc namespace", "its own", NULL, OTHER_NAMESPACE},
	{"ns_uts", "uts namespace", "its own", NULL, OTHER_NAMESPACE},
	{"hostname", "uts namespace", "a name of its own", "sandbox", EXACTLY},
	{"ns_cgroup", "cgroup namespace", "its own", NULL, OTHER_NAMESPACE},
	{"capability_sets", "capabilities", "all five sets empty", "empty", EXACTLY},
	{"securebits", "capabilities", "securebits locked", "0xef", IF_TOLD},
	{"no_new_privileges", "capabilities", "no_new_privs", "1", EXACTLY},
	{"identity", "capabilities", "no change of identity", "EPERM|EINVAL", EXACTLY},
	{"seccomp_mode", "seccomp", "filter is in force", "2", EXACTLY},
	{"denied_calls", "seccomp", "a denied call", "EPERM", EXACTLY},
	{"unknown_calls", "seccomp", "an unknown call", "ENOSYS", EXACTLY},
	{"clone3", "seccomp", "clone3", "ENOSYS", EXACTLY},
	{"foreign_calls", "seccomp", "a foreign call is fatal", "SIGSYS", EXACTLY},
	{"landlock_scope", "landlock", "a cell is fenced in", "EPERM", SCOPE_REFUSAL},
	{"descriptors", "descriptors", "0, 1, 2 and no more", "0 1 2", EXACTLY},
	{"environment", "environment", "caller's variables unseen", NULL, CANARY_UNSEEN},
	{"resource_limits", "limits", "resource limits", "set", EXACTLY},
	{"interpreter", "interpreter", "version", NULL, TELL},
};

/* A limit that is really reached. `want` is a status, or the errno that the
 * probe says it got. */
static const struct limit_attempt {
	const char *name, *asked, *want;
	bool quick; /* what it does takes no time */
	struct execpy_limits limits;
} limit_attempts[] = {
	{"memory",
	 "memory: ended at 32 MiB",
	 "memory_limit",
	 true,
	 {.memory_bytes = 32 * MIB, .time_ms = 30000, .cpu_ms = 30000}},
	{"processes",
	 "processes: no more than 8",
	 "EAGAIN",
	 true,
	 {.processes = 8, .time_ms = 30000, .cpu_ms = 30000}},
	{"cpu", "CPU: ended at 200 ms", "cpu_limit", false, {.cpu_ms = 200, .time_ms = 30000}},
	{"wall", "time: ended at 300 ms", "timeout", false, {.time_ms = 300}},
	{"output", "output: ended at 64 KiB", "output_limit", false, {.output_bytes = 64 * KIB}},
	{"disk", "disk: full at 1 MiB", "ENOSPC", true, {.disk_bytes = 1 * MIB, .time_ms = 30000}},
};

static const char *const heavy_modules[] = {"numpy", "pandas", "matplotlib"};

struct examination {
	struct doctor *doctor;
	struct execpy_engine *engine;
	struct bait bait;
	bool essential;               /* only what doctor_self_test() asks for */
	struct bytes output, errors;  /* of the last run */
	json_t *answers;              /* of the last run, by attempt */
	json_t *result;               /* its result object */
	char failure[ERROR_TEXT_MAX]; /* why no cell starts; empty: one does */
	char ending[200];             /* of the last run, in words */
};

/* Adds a row; the proof is formatted, the remedy is for what is missing. */
static __attribute__((format(printf, 7, 8))) void add(struct doctor *doctor,
						      enum doctor_state state, const char *layer,
						      const char *asked, const char *got,
						      const char *remedy, const char *proof, ...)
{
	struct doctor_row *row = &doctor->rows[doctor->count];
	char *const texts[] = {row->got, row->proof, row->remedy};
	va_list args;

	if (doctor->count == DOCTOR_ROWS_MAX)
		return;
	doctor->count++;
	doctor->missing += state == DOCTOR_MISSING;
	row->state = state;
	row->layer = layer;
	row->asked = asked;
	snprintf(row->got, sizeof row->got, "%s", got);
	va_start(args, proof);
	vsnprintf(row->proof, sizeof row->proof, proof, args);
	va_end(args);
	if (state == DOCTOR_MISSING)
		snprintf(row->remedy, sizeof row->remedy, "%s", remedy ? remedy : BROKEN_REMEDY);
	/* Some of it came out of a cell. */
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
		for (char *at = texts[i]; *at; at++)
			if ((unsigned char)*at < ' ' || *at == 0x7f)
				*at = ' ';
}

static enum doctor_state holds(bool it_does)
{
	return it_does ? DOCTOR_HOLDS : DOCTOR_MISSING;
}

/* Whether `got` is one of the words in "A|B|C". */
static bool is_one_of(const char *got, const char *want)
{
	size_t length = strlen(got);

	while (*want) {
		size_t word = strcspn(want, "|");

		if (word == length && strncmp(got, want, word) == 0)
			return true;
		want += word + (want[word] == '|');
	}
	return false;
}

static void keep_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	struct examination *exam = user;

	bytes_append(stream == EXECPY_STDOUT ? &exam->output : &exam->errors, data, length);
}

/* The lines of JSON that the probe printed, by their attempt. */
static void read_answers(struct examination *exam)
{
	const char *at = (const char *)exam->output.data, *end = at + exam->output.length;

	json_decref(exam->answers);
	exam->answers = json_object();
	while (at && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = newline ? (size_t)(newline - at) : (size_t)(end - at);
		json_t *line = json_loadb(at, length, 0, NULL);
		const char *name = json_string_value(json_object_get(line, "try"));

		if (name)
			json_object_set(exam->answers, name, line);
		json_decref(line);
		at += length + 1;
	}
}

/* One run. Returns its status; what it printed and its result are kept until
 * the next. A failure of ours leaves its reason in `failure`. */
static enum execpy_status run(struct examination *exam, const char *code, size_t length,
			      const char *const *arguments, const struct execpy_limits *limits)
{
	const struct execpy_callbacks callbacks = {.output = keep_output, .user = exam};
	const struct execpy_request request = {
		.code = code,
		.code_length = length,
		.arguments = arguments,
		.stdin_fd = -1,
		.limits = *limits,
		.policy = "open",
		.out_directory = -1,
	};
	struct execpy_result *result = NULL;
	struct execpy_error err = {0};
	enum execpy_status status = EXECPY_INTERNAL_ERROR;
	const char *text = NULL;
	size_t text_length = 0;

	bytes_free(&exam->output);
	bytes_free(&exam->errors);
	exam->output.ceiling = exam->errors.ceiling = 1 * MIB;
	json_decref(exam->result);
	exam->result = NULL;
	if (execpy_run(exam->engine, &request, &callbacks, &result, &err) < 0) {
		snprintf(exam->failure, sizeof exam->failure, "%s", err.text);
	} else {
		status = execpy_result_status(result);
		text = execpy_result_json(result, &text_length);
		if (text)
			exam->result = json_loadb(text, text_length, 0, NULL);
		if (status == EXECPY_INTERNAL_ERROR) {
			text = execpy_result_reason(result);
			snprintf(exam->failure, sizeof exam->failure, "%s",
				 text ? text : "the run failed without a reason");
		}
	}
	snprintf(exam->ending, sizeof exam->ending, "the run ended before: %s %.150s",
		 execpy_status_name(status),
		 result && execpy_result_reason(result) ? execpy_result_reason(result) : "");
	execpy_result_free(result);
	read_answers(exam);
	return status;
}

static double usage_of(const struct examination *exam, const char *name)
{
	return json_number_value(json_object_get(json_object_get(exam->result, "usage"), name));
}

static void tell_kernel(struct doctor *doctor, const char *directory)
{
	struct utsname name;
	unsigned major = 0, minor = 0;
	char text[100], got[24];
	int abi = host_landlock_abi();
	bool enough;

	if (uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2) {
		enough = major > 5 || (major == 5 && minor >= 14);
		add(doctor, holds(enough), "kernel", "Linux 5.14 or newer", name.release,
		    "Linux 5.14 or newer", "uname(); %s%s", name.machine,
		    major > 6 || (major == 6 && minor >= 12) ? "" : "; full strength from 6.12 on");
	}
	snprintf(got, sizeof got, "ABI %d", abi);
	add(doctor, holds(abi > 0), "landlock", "in the kernel", got,
	    "Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK, and landlock in the lsm= list of "
	    "the kernel's command line",
	    "landlock_create_ruleset(VERSION)%s%s",
	    abi < 4 ? "; TCP is fenced from ABI 4 (Linux 6.7) on" : "",
	    abi < 6 ? "; abstract sockets and signals from ABI 6 (Linux 6.12) on" : "");
	host_try_landlock(directory, text, sizeof text);
	add(doctor, holds(strcmp(text, "EACCES") == 0), "landlock", "a write outside", text,
	    abi > 0 ? NULL : "",
	    "a fenced child tried to create a file in %s, where it could before", directory);
}

static void judge(struct examination *exam, const struct attempt *attempt)
{
	const json_t *answer = json_object_get(exam->answers, attempt->name);
	const char *got = json_string_value(json_object_get(answer, "got"));
	const char *how = json_string_value(json_object_get(answer, "how"));
	struct doctor *doctor = exam->doctor;
	char link[64], own[64];
	ssize_t length;
	bool seen;

	if (!got || !how) {
		add(doctor, attempt->judgement == TELL ? DOCTOR_INFORMATION : DOCTOR_MISSING,
		    attempt->layer, attempt->asked, "not tried", "", "%s",
		    exam->failure[0] ? "no cell could be started: see start" : exam->ending);
		return;
	}
	switch (attempt->judgement) {
	case IF_TOLD:
		if (strcmp(got, "EPERM") == 0) {
			add(doctor, DOCTOR_INFORMATION, attempt->layer, attempt->asked, "not told",
			    NULL, "%s: EPERM; the cell has checked them before it took code", how);
			return;
		}
		break;
	case SCOPE_REFUSAL:
		if (host_landlock_abi() < 6) {
			add(doctor, DOCTOR_INFORMATION, attempt->layer, attempt->asked, got, NULL,
			    "%s; Landlock does from ABI 6 on", how);
			return;
		}
		break;
	case NOT:
		add(doctor, holds(strcmp(got, attempt->want) != 0), attempt->layer, attempt->asked,
		    got, NULL, "%s", how);
		return;
	case OTHER_NAMESPACE:
		snprintf(link, sizeof link, "/proc/self/ns/%s", attempt->name + strlen("ns_"));
		length = readlink(link, own, sizeof own - 1);
		own[length > 0 ? length : 0] = '\0';
		add(doctor, holds(length > 0 && strchr(got, '[') && strcmp(got, own) != 0),
		    attempt->layer, attempt->asked, got, NULL, "%s; the caller's is %s", how, own);
		return;
	case CANARY_UNSEEN:
		seen = memmem(exam->output.data, exam->output.length, exam->bait.canary, 32);
		add(doctor, holds(!seen), attempt->layer, attempt->asked,
		    seen ? "seen" : "not seen", NULL,
		    "%s: %s variables, none holds the caller's " CANARY_VARIABLE, how, got);
		return;
	case TELL:
		add(doctor, DOCTOR_INFORMATION, attempt->layer, attempt->asked, got, NULL, "%s",
		    how);
		return;
	case EXACTLY:
		break;
	}
	if (strncmp(got, "not on this", strlen("not on this")) == 0)
		add(doctor, DOCTOR_INFORMATION, attempt->layer, attempt->asked, got, NULL, "%s",
		    how);
	else
		add(doctor, holds(is_one_of(got, attempt->want)), attempt->layer, attempt->asked,
		    got, NULL, "%s", how);
}

/* What the attempts did must have been seen while it happened: the result
 * holds a finding of the watch for it. */
static void tell_watch(struct examination *exam)
{
	const json_t *findings = json_object_get(exam->result, "findings");
	const char *first = NULL;
	char got[32];
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *finding = json_array_get(findings, i);
		const char *rule = json_string_value(json_object_get(finding, "rule"));

		if (!rule || strcmp(rule, "watch") != 0)
			continue;
		if (count++ == 0)
			first = json_string_value(json_object_get(finding, "message"));
	}
	snprintf(got, sizeof got, "%zu noted", count);
	add(exam->doctor, holds(count > 0), "watch", "attempts are seen", got, NULL,
	    "findings of the run%s%s", first ? ", such as: " : "", first ? first : "");
}

static void try_layers(struct examination *exam)
{
	const struct execpy_limits limits = {.time_ms = 60000, .cpu_ms = 60000};
	const struct bait *bait = &exam->bait;
	char pid[16], tcp_port[16], udp_port[16];
	const char *const arguments[] = {"attempts",      bait->file, pid,
					 tcp_port,        udp_port,   bait->abstract_name,
					 bait->path_name, NULL};
	bool taken;

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	/* Port 9, "discard", where the host has no loopback to listen on. */
	snprintf(tcp_port, sizeof tcp_port, "%u", bait->tcp_port ? bait->tcp_port : 9);
	snprintf(udp_port, sizeof udp_port, "%u", bait->udp_port ? bait->udp_port : 9);
	if (!exam->failure[0])
		run(exam, doctor_probe, doctor_probe_length, arguments, &limits);
	for (size_t i = 0; i < ARRAY_LENGTH(attempts); i++)
		judge(exam, &attempts[i]);
	if (exam->failure[0])
		return;
	tell_watch(exam);
	taken = bait_was_taken(bait);
	add(exam->doctor, holds(!taken), "network namespace", "what arrived at the host",
	    taken ? "something" : "nothing", NULL,
	    "four listening sockets of the caller, which it reached itself");
}

static void judge_limit(struct examination *exam, const struct limit_attempt *attempt,
			enum execpy_status status)
{
	const json_t *answer = json_object_get(exam->answers, attempt->name);
	const char *got = json_string_value(json_object_get(answer, "got"));
	const char *how = json_string_value(json_object_get(answer, "how"));
	bool sampled = strcmp(execpy_cgroup_mode(exam->engine, NULL), "none") == 0;
	const char *word = got ? got : execpy_status_name(status);
	bool good = is_one_of(word, attempt->want);

	/* Without cgroups RLIMIT_DATA may come first, which the code can see. */
	if (strcmp(attempt->name, "memory") == 0 && sampled && status == EXECPY_OK &&
	    exam->output.length > 12 &&
	    memcmp(exam->output.data + exam->output.length - 12, "MemoryError\n", 12) == 0) {
		word = "MemoryError";
		good = true;
	}
	add(exam->doctor, holds(good), "limits", attempt->asked, word, NULL,
	    "a run that wanted more: %s%s%.0f ms, CPU %.0f ms, memory %.1f MiB, %.0f processes",
	    how ? how : "", how ? "; " : "", usage_of(exam, "wall_ms"), usage_of(exam, "cpu_ms"),
	    usage_of(exam, "memory_peak_bytes") / (double)MIB, usage_of(exam, "processes_peak"));
}

static void try_limits(struct examination *exam)
{
	for (size_t i = 0; i < ARRAY_LENGTH(limit_attempts); i++) {
		const struct limit_attempt *attempt = &limit_attempts[i];
		const char *const arguments[] = {attempt->name, NULL};
		enum execpy_status status;

		if (exam->essential && !attempt->quick)
			continue;
		if (exam->failure[0]) {
			add(exam->doctor, DOCTOR_MISSING, "limits", attempt->asked, "not tried", "",
			    "no cell could be started: see start");
			continue;
		}
		status = run(exam, doctor_probe, doctor_probe_length, arguments, &attempt->limits);
		if (status == EXECPY_INTERNAL_ERROR) {
			add(exam->doctor, DOCTOR_MISSING, "limits", attempt->asked, "not tried",
			    NULL, "%s", exam->failure);
			exam->failure[0] = '\0';
			continue;
		}
		judge_limit(exam, attempt, status);
	}
}

static void tell_modules(struct examination *exam)
{
	static const char *const arguments[] = {"modules", NULL};
	const struct execpy_limits limits = {
		.time_ms = 60000, .cpu_ms = 60000, .memory_bytes = 1 * GIB};

	if (!exam->failure[0])
		run(exam, doctor_probe, doctor_probe_length, arguments, &limits);
	for (size_t i = 0; i < ARRAY_LENGTH(heavy_modules); i++) {
		const json_t *answer = json_object_get(exam->answers, heavy_modules[i]);
		const char *got = json_string_value(json_object_get(answer, "got"));
		const char *how = json_string_value(json_object_get(answer, "how"));

		add(exam->doctor, DOCTOR_INFORMATION, "interpreter", heavy_modules[i],
		    got ? got : "not tried", NULL, "%s", how ? how : "the run gave no answer");
	}
}

static void tell_cgroups(struct examination *exam)
{
	const char *why = NULL;
	const char *mode = exam->engine ? execpy_cgroup_mode(exam->engine, &why) : "";
	bool good = (strcmp(mode, "v1") == 0 || strcmp(mode, "v2") == 0) && !why;

	if (!mode[0])
		add(exam->doctor, DOCTOR_MISSING, "cgroups", "limits by the kernel", "not tried",
		    "", "no warden could be started");
	else
		add(exam->doctor, holds(good), "cgroups", "limits by the kernel", mode,
		    CGROUP_REMEDY, "%s",
		    good  ? "memory, processes and CPU are counted and limited for each cell"
		    : why ? why
			  : "no usable hierarchy was found");
}

/* The first run, cold, and once more from the same template. */
static void try_start(struct examination *exam, const struct execpy_options *options)
{
	static const char code[] = "print(55)";
	const struct execpy_limits limits = {.time_ms = 60000, .cpu_ms = 60000};
	struct execpy_error err = {0};
	int64_t began = now_us(), cold_us, second_us;
	enum execpy_status status = EXECPY_INTERNAL_ERROR;
	char remedy[280], got[32];
	struct execpy_options own = options ? *options : (struct execpy_options){0};

	own.no_daemon = true;
	/* What is examined is a jail of its own, made for it. */
	if (execpy_open(&own, &exam->engine, &err) < 0)
		snprintf(exam->failure, sizeof exam->failure, "%s", err.text);
	else
		status = run(exam, code, sizeof code - 1, NULL, &limits);
	cold_us = now_us() - began;
	if (status != EXECPY_OK || exam->output.length != 3 ||
	    memcmp(exam->output.data, "55\n", 3) != 0) {
		if (!exam->failure[0])
			snprintf(exam->failure, sizeof exam->failure, "print(55) ended as %s: %.*s",
				 execpy_status_name(status), (int)exam->errors.length,
				 (const char *)exam->errors.data);
		host_remedy(exam->failure, remedy, sizeof remedy);
		add(exam->doctor, DOCTOR_MISSING, "start", "a cell starts and answers", "failed",
		    remedy, "%s", exam->failure);
		return;
	}
	add(exam->doctor, DOCTOR_HOLDS, "start", "a cell starts and answers", "55", NULL,
	    "print(55)");
	if (exam->essential)
		return;
	began = now_us();
	run(exam, code, sizeof code - 1, NULL, &limits);
	second_us = now_us() - began;
	snprintf(got, sizeof got, "%.0f ms", (double)cold_us / 1000);
	add(exam->doctor, DOCTOR_INFORMATION, "start", "time of a cold run", got, NULL,
	    "from nothing to the result of print(55); with its template there: %.1f ms",
	    (double)second_us / 1000);
}

/* Rows of a layer together, in the order in which layers first came up. */
static void group_rows(struct doctor *doctor)
{
	for (size_t i = 1; i < doctor->count; i++) {
		const struct doctor_row row = doctor->rows[i];
		size_t to = i;

		while (to > 0 && strcmp(doctor->rows[to - 1].layer, row.layer) != 0)
			to--;
		if (to == 0 || to == i)
			continue;
		memmove(&doctor->rows[to + 1], &doctor->rows[to], (i - to) * sizeof row);
		doctor->rows[to] = row;
	}
}

static int examine(const struct execpy_options *options, bool essential, struct doctor **ret_doctor,
		   struct error *err)
{
	struct doctor *doctor = calloc(1, sizeof *doctor);
	struct examination exam = {.doctor = doctor, .essential = essential};
	int r;

	if (!doctor)
		return fail(err, ENOMEM, "doctor");
	r = bait_lay(&exam.bait, err);
	if (r == 0) {
		tell_kernel(doctor, exam.bait.directory);
		try_start(&exam, options);
		if (!essential)
			tell_cgroups(&exam);
		try_layers(&exam);
		try_limits(&exam);
		if (!essential)
			tell_modules(&exam);
		group_rows(doctor);
		*ret_doctor = take_ptr(doctor);
	}
	execpy_close(exam.engine);
	bait_clear(&exam.bait);
	json_decref(exam.answers);
	json_decref(exam.result);
	bytes_free(&exam.output);
	bytes_free(&exam.errors);
	free(doctor);
	return r;
}

int doctor_examine(const struct execpy_options *options, struct doctor **ret_doctor,
		   struct error *err)
{
	return examine(options, false, ret_doctor, err);
}

int doctor_self_test(const struct execpy_options *options, struct error *err)
{
	autofree struct doctor *doctor = NULL;
	int r = examine(options, true, &doctor, err);

	for (size_t i = 0; r == 0 && i < doctor->count; i++) {
		const struct doctor_row *row = &doctor->rows[i];

		/* Of a cell that does not start, the row that says why. */
		if (row->state != DOCTOR_MISSING || strcmp(row->got, "not tried") == 0)
			continue;
		r = refuse(err, EPERM, "%s: %s: %s (%.120s)%s%.120s", row->layer, row->asked,
			   row->got, row->proof, row->remedy[0] ? "; " : "", row->remedy);
	}
	return r == 0 && doctor->missing ? refuse(err, EPERM, "not all could be tried") : r;
}
