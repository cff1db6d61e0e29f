/* SPDX-License-Identifier: Apache-2.0 */
/* verify-tool: the verifier alone, for tests and benchmarks: no cell, no
 * engine. Reads files and prints one JSON line for each. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/cleanup.h"
#include "guest/verifier/verify.h"
#include "policy/limits.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* CPython keeps memory until the process ends. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned)(unsigned char)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

/* Processor time: other work on the machine does not count. */
static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void print_verdict(const char *name, const struct verdict *verdict, double ms)
{
	printf("{\"name\": ");
	print_text(name);
	printf(", \"decision\": \"%s\", \"ms\": %.4f, \"truncated\": %s, \"imports\": [",
	       verdict->blocked ? "block" : "allow", ms, verdict->truncated ? "true" : "false");
	for (size_t i = 0; i < verdict->import_count; i++) {
		printf("%s", i ? ", " : "");
		print_text(verdict->imports[i]);
	}
	printf("], \"findings\": [");
	for (size_t i = 0; i < verdict->finding_count; i++) {
		const struct finding *finding = &verdict->findings[i];

		printf("%s{\"rule\": \"%s\", \"severity\": \"%s\", \"line\": %u, \"column\": %u, "
		       "\"end_line\": %u, \"end_column\": %u, \"message\": ",
		       i ? ", " : "", rule_infos[finding->rule].id,
		       severity_name(finding->severity), finding->line, finding->column,
		       finding->end_line, finding->end_column);
		print_text(finding->message);
		printf(", \"hint\": ");
		print_text(finding->hint);
		printf("}");
	}
	printf("]");
	if (verdict->source.length) {
		autofree char *text = span_to_string(bytes_span(&verdict->source));

		printf(", \"source\": ");
		print_text(text ? text : "");
	}
	printf("}\n");
}

/* A file's bytes, or standard input's for "-". */
static int read_all(const char *path, struct bytes *out)
{
	autofile *file = NULL;
	uint8_t chunk[65536];
	size_t got;

	if (strcmp(path, "-") == 0)
		file = fdopen(dup(0), "rb");
	else
		file = fopen(path, "rbe");
	if (!file)
		return -errno;
	while ((got = fread(chunk, 1, sizeof chunk, file)) > 0)
		if (bytes_append(out, chunk, got) < 0)
			return out->failed;
	return 0;
}

static bool codec; /* --check-codec */

/* What goes over the wire must come back as it was. */
static int check_codec(struct verdict *verdict, const struct policy *policy)
{
	struct error err = {0};
	autobytes once = {0}, twice = {0}, encoded = {0};
	autoverdict copy = {0};
	autopolicy same = {0};

	verdict_encode(verdict, &once);
	if (verdict_decode(bytes_span(&once), &copy, &err) < 0)
		return fprintf(stderr, "%s\n", err.text), -1;
	verdict_encode(&copy, &twice);
	policy_encode(policy, &encoded);
	if (policy_decode(bytes_span(&encoded), &same, &err) < 0)
		return fprintf(stderr, "%s\n", err.text), -1;
	return once.length == twice.length && memcmp(once.data, twice.data, once.length) == 0 ? 0
											      : -1;
}

static int verify_one(const char *name, struct span code, const struct policy *policy,
		      const struct verify_context *context, int repeat)
{
	double best = 0;

	for (int i = 0; i < repeat; i++) {
		autoverdict verdict = {0};
		struct error err = {0};
		double start = now_ms(), took;

		if (verify(code, policy, context, &verdict, &err) < 0) {
			fprintf(stderr, "%s: %s\n", name, err.text);
			return 1;
		}
		took = now_ms() - start;
		if (!i || took < best)
			best = took;
		if (i == repeat - 1) {
			if (codec && check_codec(&verdict, policy) < 0)
				return fprintf(stderr, "%s: the codec loses something\n", name), 1;
			print_verdict(name, &verdict, best);
		}
	}
	return 0;
}

/* A batch on standard input: "NAME LENGTH\n", then that many bytes, again. */
static int verify_batch(const struct policy *policy, const struct verify_context *context,
			int repeat)
{
	char name[256];
	size_t length;
	int failures = 0;

	while (scanf("%255s %zu", name, &length) == 2) {
		autofree uint8_t *code = malloc(length + 1);

		getchar();
		if (!code || fread(code, 1, length, stdin) != length)
			return 1;
		failures |= verify_one(name, (struct span){code, length}, policy, context, repeat);
	}
	return failures;
}

static const char usage[] =
	"usage: verify-tool [--policy NAME|FILE] [--file NAME]... [--name NAME]... [--stdin]\n"
	"                   [--network] [--any-file] [--fragment] [--time-ms N] [--repeat N]\n"
	"                   [--check-codec]\n"
	"                   --batch | --rules-md | FILE...\n";

int main(int argc, char **argv)
{
	autopolicy policy = policy_profile(PROFILE_STRICT);
	const char *files[256], *names[256];
	struct verify_context context = {.files = files, .names = names, .time_ms = 5000};
	struct error err = {0};
	bool batch = false;
	int repeat = 1, failures = 0, first = argc;

	for (int i = 1; i < argc && first == argc; i++) {
		const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(option, "--policy") == 0) {
			policy_free(&policy);
			if (policy_load(value, &policy, &err) < 0)
				return fprintf(stderr, "%s\n", err.text), 2;
			i++;
		} else if (strcmp(option, "--file") == 0 && context.file_count < 256) {
			files[context.file_count++] = value, i++;
		} else if (strcmp(option, "--name") == 0 && context.name_count < 256) {
			names[context.name_count++] = value, i++;
		} else if (strcmp(option, "--time-ms") == 0) {
			context.time_ms = strtoull(value, NULL, 10), i++;
		} else if (strcmp(option, "--repeat") == 0) {
			repeat = (int)strtol(value, NULL, 10), i++;
		} else if (strcmp(option, "--stdin") == 0) {
			context.has_stdin = true;
		} else if (strcmp(option, "--network") == 0) {
			context.network_allowed = true;
		} else if (strcmp(option, "--any-file") == 0) {
			context.any_file = true;
		} else if (strcmp(option, "--fragment") == 0) {
			context.fragment = true;
		} else if (strcmp(option, "--check-codec") == 0) {
			codec = true;
		} else if (strcmp(option, "--batch") == 0) {
			batch = true;
		} else if (strcmp(option, "--rules-md") == 0) {
			autobytes out = {0};

			rules_document(&out);
			fwrite(out.data, 1, out.length, stdout);
			return 0;
		} else if (option[0] == '-' && option[1]) {
			return fputs(usage, stderr), 2;
		} else {
			first = i;
		}
	}
	if (!batch && first == argc)
		return fputs(usage, stderr), 2;
	Py_InitializeEx(0);
	if (verifier_init(&err) < 0)
		return fprintf(stderr, "%s\n", err.text), 1;
	if (batch)
		failures = verify_batch(&policy, &context, repeat);
	for (int i = first; i < argc; i++) {
		autobytes code = {0};
		int r = read_all(argv[i], &code);

		if (r < 0)
			return fprintf(stderr, "%s: %s\n", argv[i], strerror(-r)), 1;
		failures |= verify_one(argv[i], bytes_span(&code), &policy, &context, repeat);
	}
	return failures;
}
