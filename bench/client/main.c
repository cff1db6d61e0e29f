/* SPDX-License-Identifier: Apache-2.0 */
/* main: the benchmarks' client: runs one workload in one way, again and again,
 * and tells how long each run took, from the request to the checked answer.
 *
 * It says "ready" and then obeys lines on its stdin: "go COUNT PAUSE_MS" makes
 * that many samples, each after a pause, and prints a line for each:
 * nanoseconds, the clock at its end, and of runs through libexecpy also the
 * milliseconds that it waited for a cell and whether a template was there. So
 * whoever compares several ways keeps one client for each and chooses the order.
 * The first answer that is not the expected one ends it with "wrong: …". */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
	"usage: client OPTION… [-- COMMAND…]\n"
	"  --code FILE          what is run\n"
	"  --time MS            limits\n"
	"  --memory BYTES       --disk BYTES\n"
	"  --template NAME      --policy NAME\n"
	"  --no-daemon          through libexecpy, but not through a daemon\n"
	"  --programs DIRECTORY of execpy-warden and execpy-guest\n"
	"  --server PATH        through this socket instead\n"
	"  --http PORT          by POST /v1/run of the server on this port of loopback\n"
	"  --address-space BYTES          limit of a command\n"
	"  --fetch PATH         a file that the run makes; a command leaves it there\n"
	"  --expect-status TEXT --expect-output FILE --expect-file FILE\n"
	"  --expect-text TEXT   in stderr or the result's JSON; may be repeated\n"
	"  --load CLIENTS       all at once, for --seconds S and at most --runs N\n"
	"  --settle MS          of rest after each client's first run\n";

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int sample(const struct driver *driver, void *state, const struct expectation *expectation,
	   struct answer *ret_answer, uint64_t *ret_ns, struct error *err)
{
	uint64_t began = now_ns();
	int r;

	*ret_answer = (struct answer){0};
	r = driver->run(state, ret_answer, err);
	if (r == 0)
		r = check(expectation, ret_answer, err);
	*ret_ns = now_ns() - began;
	return r;
}

/* The value after "key": in JSON of ours; 0 when it is not there. */
static double number_after(struct span json, const char *key)
{
	const char *place = memmem(json.data, json.length, key, strlen(key));

	return place ? strtod(place + strlen(key), NULL) : 0;
}

static void rest(unsigned long ms)
{
	struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	nanosleep(&pause, NULL);
}

static int obey(const struct driver *driver, const struct workload *workload,
		const struct expectation *expectation, struct error *err)
{
	unsigned long count, pause_ms;
	char line[128];
	void *state = NULL;
	int r = driver->open(workload, &state, err);

	if (r < 0)
		return r;
	printf("ready\n");
	fflush(stdout);
	while (r == 0 && fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "go %lu %lu", &count, &pause_ms) != 2)
			return refuse(err, EINVAL, "what is \"%.40s\"?", line);
		while (r == 0 && count-- > 0) {
			struct answer answer;
			uint64_t ns;

			if (pause_ms)
				rest(pause_ms);
			r = sample(driver, state, expectation, &answer, &ns, err);
			if (r < 0)
				break;
			printf("%llu %llu", (unsigned long long)ns, (unsigned long long)now_ns());
			if (driver == &engine_driver)
				printf(" %.3f %d", number_after(answer.said, "\"wait_ms\":"),
				       was_warm(&answer));
			printf("\n");
			fflush(stdout);
			if (driver->forget)
				driver->forget(state);
		}
	}
	driver->close(state);
	return r;
}

struct arguments {
	struct workload workload;
	struct expectation expectation;
	struct load load;
};

/* An option with a value; false when there is none of this name. */
static bool take_option(struct arguments *arguments, const char *name, char *value,
			struct error *err)
{
	struct workload *workload = &arguments->workload;
	struct expectation *expectation = &arguments->expectation;

	if (strcmp(name, "--code") == 0)
		return read_whole_file(value, &workload->code, err) == 0;
	if (strcmp(name, "--expect-file") == 0) {
		if (read_whole_file(value, &expectation->file, err) < 0)
			return false;
		base64(bytes_span(&expectation->file), &expectation->file_base64);
	} else if (strcmp(name, "--expect-output") == 0) {
		expectation->has_out = true;
		return read_whole_file(value, &expectation->out, err) == 0;
	} else if (strcmp(name, "--time") == 0) {
		workload->time_ms = strtoull(value, NULL, 10);
	} else if (strcmp(name, "--memory") == 0) {
		workload->memory_bytes = strtoull(value, NULL, 10);
	} else if (strcmp(name, "--disk") == 0) {
		workload->disk_bytes = strtoull(value, NULL, 10);
	} else if (strcmp(name, "--address-space") == 0) {
		workload->as_bytes = strtoull(value, NULL, 10);
	} else if (strcmp(name, "--template") == 0) {
		workload->template = value;
	} else if (strcmp(name, "--policy") == 0) {
		workload->policy = value;
	} else if (strcmp(name, "--programs") == 0) {
		workload->programs = value;
	} else if (strcmp(name, "--server") == 0) {
		workload->server = value;
	} else if (strcmp(name, "--http") == 0) {
		workload->port = (unsigned)strtoul(value, NULL, 10);
	} else if (strcmp(name, "--fetch") == 0) {
		workload->file = value;
		workload->wants_file = true;
	} else if (strcmp(name, "--expect-status") == 0) {
		expectation->status = value;
	} else if (strcmp(name, "--expect-text") == 0 && expectation->text_count < TEXTS_MAX) {
		expectation->texts[expectation->text_count++] = value;
	} else if (strcmp(name, "--load") == 0) {
		arguments->load.clients = (unsigned)strtoul(value, NULL, 10);
	} else if (strcmp(name, "--seconds") == 0) {
		arguments->load.seconds = strtod(value, NULL);
	} else if (strcmp(name, "--settle") == 0) {
		arguments->load.settle_ms = strtoull(value, NULL, 10);
	} else if (strcmp(name, "--runs") == 0) {
		arguments->load.runs = strtoull(value, NULL, 10);
	} else {
		refuse(err, EINVAL, "no option %s", name);
		return false;
	}
	return true;
}

static bool parse(struct arguments *arguments, char **word, struct error *err)
{
	for (; *word; word++) {
		if (strcmp(*word, "--") == 0) {
			arguments->workload.command = word + 1;
			return word[1] != NULL;
		}
		if (strcmp(*word, "--no-daemon") == 0) {
			arguments->workload.no_daemon = true;
		} else if (!word[1]) {
			refuse(err, EINVAL, "%s wants a value", *word);
			return false;
		} else {
			if (!take_option(arguments, word[0], word[1], err))
				return false;
			word++;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {0};
	const struct driver *driver = &engine_driver;
	struct error err = {0};
	int r;

	if (argc < 2 || !parse(&arguments, argv + 1, &err)) {
		fprintf(stderr, "client: %s\n%s", err.text, usage);
		return 2;
	}
	if (arguments.workload.command)
		driver = &command_driver;
	else if (arguments.workload.server)
		driver = &server_driver;
	else if (arguments.workload.port)
		driver = &http_driver;
	if (arguments.load.clients)
		r = load_run(&arguments.load, driver, &arguments.workload, &arguments.expectation,
			     &err);
	else
		r = obey(driver, &arguments.workload, &arguments.expectation, &err);
	if (r < 0)
		printf("wrong: %s\n", err.text);
	bytes_free(&arguments.workload.code);
	bytes_free(&arguments.expectation.out);
	bytes_free(&arguments.expectation.file);
	bytes_free(&arguments.expectation.file_base64);
	return r < 0;
}
