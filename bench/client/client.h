/* SPDX-License-Identifier: Apache-2.0 */
/* client: what the files of the benchmarks' client share.
 *
 * A driver does one run of a workload in one way: through libexecpy, as a
 * command, through a server's socket, or over HTTP. All are timed and checked alike, with
 * no interpreter on the way. */
#ifndef EXECPY_BENCH_CLIENT_H
#define EXECPY_BENCH_CLIENT_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TEXTS_MAX   8
#define PATIENCE_MS 120000 /* no run of any workload takes longer */

/* What is to be run, and how; from the command line. */
struct workload {
	struct bytes code;
	uint64_t time_ms, memory_bytes, disk_bytes; /* limits; 0: the default */
	const char *template, *policy;
	const char *programs; /* where execpy-warden and execpy-guest are */
	bool no_daemon;
	char **command;     /* with {n} where a number that is new each time shall stand */
	const char *server; /* path of a socket */
	unsigned port;      /* of an HTTP server on loopback */
	const char *file;   /* for commands: where they leave the file that is fetched */
	uint64_t as_bytes;  /* for commands: RLIMIT_AS; 0: none */
	bool wants_file;
};

/* What has to come out; empty fields are not checked. */
struct expectation {
	const char *status;
	struct bytes out, file, file_base64;
	bool has_out;
	const char *texts[TEXTS_MAX];
	size_t text_count;
};

/* What came out. The spans are the driver's, until its next run. */
struct answer {
	char status[32];
	struct span out;   /* stdout */
	struct span said;  /* stderr, or the result's JSON */
	struct span file;  /* the file that was fetched; libexecpy: inside the JSON */
	bool file_in_json; /* as base64 */
};

struct driver {
	/* Once, before the first run. */
	int (*open)(const struct workload *workload, void **ret_state, struct error *err);
	/* From the request to the answer in our memory. */
	int (*run)(void *state, struct answer *ret_answer, struct error *err);
	/* After the clock was stopped: frees what the run left. May be NULL. */
	void (*forget)(void *state);
	void (*close)(void *state);
};

extern const struct driver engine_driver, command_driver, server_driver, http_driver;

int read_whole_file(const char *path, struct bytes *out, struct error *err);
/* Reads once what is there; 0 at the end. */
int read_some(int fd, struct bytes *out, struct error *err);
void base64(struct span data, struct bytes *out);
int check(const struct expectation *expectation, const struct answer *answer, struct error *err);
uint64_t now_ns(void);
/* Of a result: the cell was there before the run was asked for. */
bool was_warm(const struct answer *answer);

/* One sample: 0 with its nanoseconds, or a failure. The answer stays for the
 * caller to look at until it calls forget(). */
int sample(const struct driver *driver, void *state, const struct expectation *expectation,
	   struct answer *ret_answer, uint64_t *ret_ns, struct error *err);

/* load.c: many clients at once, each a process with a state of its own, for so
 * long or for so many runs together. Prints what came of it as JSON. */
struct load {
	unsigned clients;
	double seconds;
	uint64_t runs;      /* 0: as many as come */
	uint64_t settle_ms; /* between the clients' first runs and the others */
};
int load_run(const struct load *load, const struct driver *driver, const struct workload *workload,
	     const struct expectation *expectation, struct error *err);

#endif
