/* SPDX-License-Identifier: Apache-2.0 */
/* mcp: `execpy mcp`, a Model Context Protocol server over stdin and stdout. */
#include "server/mcp/mcp.h"
#include "cli/cli.h"
#include "cli/options.h"

#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

static const char help_text[] =
	"usage: execpy mcp [OPTION…]\n"
	"\n"
	"Gives a model the tools execute_python, check_python and python_session over the Model\n"
	"Context Protocol, a message a line on stdin and stdout. It is started by its client\n"
	"(docs/mcp.md) and ends with stdin.\n"
	"\n"
	"A limit that is given here is what a call gets and the most that it may ask for; one\n"
	"that is not has its default, and a call may ask for more.\n"
	"\n"
	"  --time 5s            wall-clock limit          --cpu 5s        CPU limit\n"
	"  --memory 100M        memory limit              --processes 64  processes and threads\n"
	"  --output 1M          stdout and stderr         --disk 64M      files\n"
	"  --truncate           keep head and tail of too much output instead of ending the run\n"
	"  --policy NAME|FILE   strict, standard, open, or a policy file\n"
	"  --template NAME      auto (default), bare, or a template's name\n"
	"  --no-daemon          never use a running daemon\n";

/* What a call gets, and what it may ask for where the command line does not say. */
static void choose_limits(const struct options *options, struct mcp_options *mcp)
{
	mcp->limits = limits_default();
	mcp->ceilings = mcp_ceilings();
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t given = limit_get(&options->limits, &limit_infos[i]);

		if (given == 0)
			continue;
		if (given == UINT64_MAX) /* the options' word for none at all */
			given = 0;
		*limit_at(&mcp->limits, &limit_infos[i]) = given;
		*limit_at(&mcp->ceilings, &limit_infos[i]) = given;
	}
}

static int serve(const struct options *options, bool truncate)
{
	const struct execpy_options how = {.no_daemon = options->no_daemon};
	struct mcp_options mcp = {
		.policy = options->request.policy,
		.template = options->request.template,
		.truncate_output = truncate,
	};
	struct execpy_engine *engine = NULL;
	struct execpy_error err = {0};
	int r;

	choose_limits(options, &mcp);
	signal(SIGPIPE, SIG_IGN);
	if (execpy_open(&how, &engine, &err) < 0)
		return own_error("%s", err.text);
	r = mcp_serve(engine, &mcp, (struct error *)&err);
	execpy_close(engine);
	if (r == -EINVAL)
		return usage_error("%s", err.text);
	return r < 0 ? own_error("%s", err.text) : 0;
}

int command_mcp(int argc, char **argv)
{
	static const char *const valued[] = {"--time",      "--cpu",      "--memory",
					     "--processes", "--output",   "--disk",
					     "--policy",    "--template", NULL};
	struct options options = options_default();
	bool truncate = false;
	const struct options_flag flags[] = {
		{"--truncate", &truncate}, {"--no-daemon", &options.no_daemon}, {NULL, NULL}};
	const struct options_syntax syntax = {
		.command = "mcp", .help = help_text, .flags = flags, .valued = valued};
	int status = options_parse(&options, &syntax, argc, argv);

	if (status)
		status--;
	else if (options.path_count > 0)
		status = usage_error("\"%.60s\": mcp takes no code; its client sends it",
				     options.paths[0]);
	else
		status = serve(&options, truncate);
	options_free(&options);
	return status;
}
