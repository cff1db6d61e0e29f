/* SPDX-License-Identifier: Apache-2.0 */
/* serve: `execpy serve`, a daemon whose cells are ready before they are asked
 * for. */
#include "server/daemon.h"
#include "server/keys.h"
#include "server/socket.h"
#include "cli/cli.h"
#include "cli/excerpt.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "engine/report.h"
#include "policy/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help_text[] =
	"usage: execpy serve [--listen ADDRESS]… [--socket PATH] [--config FILE] [--quiet]\n"
	"       execpy serve --status [--json] [--socket PATH]\n"
	"       execpy serve --new-key NAME [--keys FILE] [--config FILE]\n"
	"\n"
	"Keeps templates and confined cells ready, so that `execpy run` starts at once.\n"
	"Stays in the foreground; SIGTERM and SIGINT end it when its runs have ended (a\n"
	"second one: at once), SIGHUP reads the configuration again. Exit status: 0 after a\n"
	"signal, 2 for a wrong configuration, 125 when it could not begin.\n"
	"\n"
	"  --listen ADDRESS     where HTTP is served (docs/http.md): 127.0.0.1:8765 unless told\n"
	"                       otherwise, [::1]:8765, unix:PATH; port 0: any; none: no HTTP;\n"
	"                       may be given more than once\n"
	"  --socket PATH        where clients connect: $EXECPY_SOCKET, or execpy.sock in\n"
	"                       $XDG_RUNTIME_DIR, or /run/execpy.sock for root\n"
	"  --config FILE        templates and numbers (docs/serve.md)\n"
	"  --keys FILE          API keys of HTTP, instead of the configuration's\n"
	"  --new-key NAME       make a key, add it to the file of keys, print it: it is told\n"
	"                       only once\n"
	"  --quiet              print nothing but errors\n"
	"  --status             say how the daemon is: templates, cells, memory, runs\n"
	"  --json               print that as one JSON object\n"
	"\n"
	"Numbers of the configuration:\n";

static void print_number(const char *key, const char *sentence, enum limit_unit unit,
			 uint64_t initial)
{
	char value[32], start[64];

	unit_describe(unit, initial, value, sizeof value);
	snprintf(start, sizeof start, "%s: %s", key, value);
	printf("  %-20s %s\n", start, sentence);
}

static void print_help(void)
{
	fputs(help_text, stdout);
	for (size_t i = 0; i < daemon_number_count; i++)
		print_number(daemon_number_infos[i].key, daemon_number_infos[i].sentence,
			     daemon_number_infos[i].unit, daemon_number_infos[i].initial);
	for (size_t i = 0; i < http_number_count; i++)
		print_number(http_number_infos[i].key, http_number_infos[i].sentence,
			     http_number_infos[i].unit, http_number_infos[i].initial);
}

static void say_aloud(const char *line)
{
	autobytes printable = {0};

	excerpt_text(&printable, (struct span){(const uint8_t *)line, strlen(line)});
	fprintf(stderr, "execpy: %.*s\n", (int)printable.length, (const char *)printable.data);
}

static void say_nothing(const char *line)
{
}

enum { NAME_WIDTH = 14, NUMBER_WIDTH = 8 };

static double mebibytes(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static void print_report(const struct daemon_report *report, struct bytes *out)
{
	static const char *const columns[] = {"parked", "target", "min",   "max",   "running",
					      "hits",   "misses", "cells", "age s", "MiB"};

	bytes_append_format(out, "socket    %s, warden %llu, up %llu s, cgroups %s\n",
			    report->socket, (unsigned long long)report->process,
			    (unsigned long long)(report->up_ms / 1000), report->cgroups);
	bytes_append_format(
		out,
		"runs      %llu so far, %llu now, %llu waiting, %llu refused, %llu without a "
		"parked cell\n",
		(unsigned long long)report->runs, (unsigned long long)report->running,
		(unsigned long long)report->waiting, (unsigned long long)report->refused,
		(unsigned long long)report->misses);
	bytes_append_format(out,
			    "clients   %llu, sessions %llu\nmemory    %.1f of %.0f MiB\n\n%-*s",
			    (unsigned long long)report->clients,
			    (unsigned long long)report->sessions, mebibytes(report->memory_bytes),
			    mebibytes(report->memory_bound_bytes), NAME_WIDTH, "template");
	for (size_t i = 0; i < ARRAY_LENGTH(columns); i++)
		bytes_append_format(out, " %*s", NUMBER_WIDTH, columns[i]);
	bytes_append_text(out, "\n");
	for (size_t i = 0; i < report->template_count; i++) {
		const struct template_report *template = &report->templates[i];
		const uint64_t numbers[] = {
			template->parked,   template->target,  template->pool_min,
			template->pool_max, template->running, template->hits,
			template->misses,   template->cells,   template->age_ms / 1000};

		bytes_append_format(out, "%-*s", NAME_WIDTH, template->name);
		for (size_t j = 0; j < ARRAY_LENGTH(numbers); j++)
			bytes_append_format(out, " %*llu", NUMBER_WIDTH,
					    (unsigned long long)numbers[j]);
		bytes_append_format(out, " %*.1f%s%s\n", NUMBER_WIDTH,
				    mebibytes(template->template_bytes + template->parked_bytes),
				    template->loaded ? "" : "  not loaded",
				    template->why[0] ? ": " : "");
		if (template->why[0]) {
			out->length--; /* on the same line */
			excerpt_text(out, (struct span){(const uint8_t *)template->why,
							strlen(template->why)});
			bytes_append_text(out, "\n");
		}
	}
}

static int status(const char *socket, bool json)
{
	autobytes out = {0};
	autofree struct daemon_report *report = calloc(1, sizeof *report);
	struct error err = {0};
	int r;

	if (!report)
		return own_error("out of memory");
	if (report_ask(socket, report, &err) < 0)
		return own_error("%s", err.text);
	if (json) {
		report_json(report, &out);
		bytes_append_text(&out, "\n");
	} else {
		print_report(report, &out);
	}
	if (out.failed)
		return own_error("out of memory");
	r = write_whole(STDOUT_FILENO, out.data, out.length);
	return r < 0 ? own_error("cannot write the report: %s", strerror(-r)) : 0;
}

static int make_key(const struct daemon_options *options, const char *name)
{
	char key[KEY_TEXT_MAX];
	autoconfig config = {0};
	struct error err = {0};
	const char *path = options->keys;

	if (!path) {
		if (config_load(options->config, &config, &err) < 0)
			return usage_error("%s", err.text);
		path = config.http.keys;
	}
	if (!path)
		return usage_error("--new-key needs --keys FILE, or a --config that names one");
	if (keys_add(path, name, key, &err) < 0)
		return own_error("%s", err.text);
	printf("%s\n", key);
	return fflush(stdout) == 0 ? 0 : own_error("cannot write the key");
}

static int serve(struct daemon_options *options)
{
	char path[SOCKET_PATH_MAX];
	autoconfig config = {0};
	struct error err = {0};

	if (config_load(options->config, &config, &err) < 0)
		return usage_error("%s", err.text);
	if (!options->socket) {
		if (place_default(path, &err) < 0)
			return usage_error("%s", err.text);
		options->socket = path;
	}
	if (daemon_serve(options, &config, &err) == 0)
		return 0;
	say_aloud(err.text);
	return EXIT_OURS;
}

int command_serve(int argc, char **argv)
{
	const char *listen[SETTING_LIST_MAX + 1] = {NULL}, *one = NULL, *new_key = NULL;
	struct daemon_options options = {.say = say_aloud};
	size_t listen_count = 0;
	bool status_wanted = false, json = false, quiet = false;
	const struct {
		const char *name;
		bool *flag;
		const char **value;
	} known[] = {
		{"--status", &status_wanted, NULL},  {"--json", &json, NULL},
		{"--quiet", &quiet, NULL},           {"--socket", NULL, &options.socket},
		{"--config", NULL, &options.config}, {"--listen", NULL, &one},
		{"--keys", NULL, &options.keys},     {"--new-key", NULL, &new_key},
	};

	for (int i = 1; i < argc; i++) {
		char *equals = strncmp(argv[i], "--", 2) == 0 ? strchr(argv[i], '=') : NULL;
		const char *value = equals ? equals + 1 : argv[i + 1];
		size_t at = 0;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help();
			return 0;
		}
		if (equals)
			*equals = '\0';
		while (at < ARRAY_LENGTH(known) && strcmp(known[at].name, argv[i]) != 0)
			at++;
		if (at == ARRAY_LENGTH(known) || (equals && known[at].flag))
			return usage_error("\"%.60s\" is not an option; see `execpy serve --help`",
					   argv[i]);
		if (known[at].flag) {
			*known[at].flag = true;
			continue;
		}
		if (!value)
			return usage_error("%s needs a value; see `execpy serve --help`", argv[i]);
		*known[at].value = value;
		i += !equals;
		if (!one)
			continue;
		if (listen_count == SETTING_LIST_MAX)
			return usage_error("--listen: more than %d", SETTING_LIST_MAX);
		listen[listen_count++] = one;
		one = NULL;
	}
	if (json && !status_wanted)
		return usage_error("--json goes with --status");
	if (status_wanted && (quiet || options.config || options.keys || listen_count > 0))
		return usage_error("--status goes with --json and --socket alone");
	if (new_key && (status_wanted || quiet || options.socket || listen_count > 0))
		return usage_error("--new-key goes with --keys and --config alone");
	if (new_key)
		return make_key(&options, new_key);
	if (status_wanted)
		return status(options.socket, json);
	if (listen_count > 0)
		options.listen = listen;
	if (quiet)
		options.say = say_nothing;
	return serve(&options);
}
