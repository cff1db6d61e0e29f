/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: `execpy doctor`, whether this host can hold what it runs. */
#include "engine/doctor.h"
#include "cli/cli.h"

#include "base/cleanup.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_MISSING 1

static const char help_text[] =
	"usage: execpy doctor [--json]\n"
	"\n"
	"Tries to break each layer of the sandbox on this host and prints what it got:\n"
	"ok (it holds), MISSING (it does not, with what to do about it), info.\n"
	"Takes some seconds. Exit status: 0 all there, 1 something is missing.\n"
	"\n"
	"  --json               print the report as one JSON object\n";

enum { LAYER_WIDTH = 18, ASKED_WIDTH = 32, GOT_WIDTH = 22 };

static void print_table(const struct doctor *doctor, struct bytes *out)
{
	static const struct {
		const char *word, *colour;
	} marks[] = {
		[DOCTOR_HOLDS] = {"ok", "\033[32m"},
		[DOCTOR_MISSING] = {"MISSING", "\033[1;31m"},
		[DOCTOR_INFORMATION] = {"info", "\033[2m"},
	};
	bool colours = colours_wanted();

	bytes_append_format(out, "%-8s %-*s %-*s %-*s %s\n", "", LAYER_WIDTH, "layer", ASKED_WIDTH,
			    "asked", GOT_WIDTH, "got", "proof");
	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_row *row = &doctor->rows[i];

		bytes_append_format(out, "%s%-8s%s %-*s %-*s %-*s %s\n",
				    colours ? marks[row->state].colour : "", marks[row->state].word,
				    colours ? "\033[0m" : "", LAYER_WIDTH, row->layer, ASKED_WIDTH,
				    row->asked, GOT_WIDTH, row->got, row->proof);
		if (row->remedy[0])
			bytes_append_format(out, "%-8s -> %s\n", "", row->remedy);
	}
	if (doctor->missing == 0)
		bytes_append_text(out, "\nEvery layer holds on this host.\n");
	else
		bytes_append_format(out, "\n%zu of %zu rows are missing.\n", doctor->missing,
				    doctor->count);
}

int command_doctor(int argc, char **argv)
{
	autobytes out = {0};
	autofree struct doctor *doctor = NULL;
	struct error err = {0};
	bool json = false;
	int r;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(help_text, stdout);
			return 0;
		}
		if (strcmp(argv[i], "--json") != 0)
			return usage_error("\"%.60s\" is not an option; see `execpy doctor --help`",
					   argv[i]);
		json = true;
	}
	signal(SIGPIPE, SIG_IGN);
	if (doctor_examine(NULL, &doctor, &err) < 0)
		return own_error("%s", err.text);
	if (json) {
		doctor_json(doctor, &out);
		bytes_append_text(&out, "\n");
	} else {
		print_table(doctor, &out);
	}
	if (out.failed)
		return own_error("out of memory");
	r = write_whole(STDOUT_FILENO, out.data, out.length);
	if (r < 0)
		return own_error("cannot write the report: %s", strerror(-r));
	return doctor->missing ? EXIT_MISSING : 0;
}
