/* SPDX-License-Identifier: Apache-2.0 */
/* session: `execpy session`, cells of a daemon that stay from run to run. */
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/outcome.h"
#include "cli/session_files.h"
#include "cli/session_text.h"

#include "base/cleanup.h"
#include "engine/session_report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
	"usage: execpy session ACTION …\n"
	"\n"
	"A session keeps variables, imports and files from run to run, and survives runs\n"
	"that crash. It lives in a daemon (`execpy serve`) until it ends or is unused for\n"
	"too long. Exit status: 0; 1 when it cannot be done, say because there is no such\n"
	"session; 2 wrong usage. Of run: as of `execpy run`.\n"
	"\n"
	"  create [OPTION…]           open one; prints its id\n"
	"  list                       all there are\n"
	"  info ID                    what it is like, and when it ends\n"
	"  run ID [FILE | - | -c CODE] [OPTION…]\n"
	"                             execpy run --session ID …\n"
	"  checkpoint ID NAME         keep variables and workspace under a name\n"
	"  rollback ID NAME           return to them\n"
	"  undo ID                    return to before the last run\n"
	"  drop ID NAME               give a checkpoint up\n"
	"  fork ID [N]                make N sessions of it (1), each with its variables and\n"
	"                             files, independent from then on; prints their ids.\n"
	"                             --same-random: they draw the same random numbers\n"
	"  interrupt ID               end the run that goes on with KeyboardInterrupt\n"
	"  end ID                     end the session\n"
	"  files ID [list]            its workspace\n"
	"  files ID get NAME [TO]     copy a file to here; TO may be - for stdout\n"
	"  files ID put FILE[:NAME]…  copy files to there\n"
	"  files ID delete NAME…\n"
	"  files ID rename FROM TO\n"
	"  files ID tar-out [FILE|-]  the whole workspace as a tar archive\n"
	"  files ID tar-in [FILE|-]   unpack one there\n"
	"\n"
	"  --json                     print JSON: with create, list, info, fork,\n"
	"                             checkpoint, rollback, undo, drop, files list\n"
	"\n"
	"Options of create:\n"
	"  --template NAME            bare (default), or a template's name\n"
	"  --policy NAME|FILE         of runs that name none: strict, standard, open, a file\n"
	"  --idle 30m  --life 24h     it ends when unused for so long, or that old\n"
	"  --memory 100M  --processes 64  --disk 64M      of the session as a whole\n"
	"  --time 5s  --cpu 5s  --output 1M               of each run that brings none\n";

struct call {
	struct execpy_engine *engine;
	const struct options *options;
	const char *id, *name; /* the first two operands, or NULL */
	uint64_t idle_ms, life_ms;
	bool json, same_random;
};

/* --- what comes out ------------------------------------------------------------- */

static int print_info(const struct call *call, const struct execpy_session_info *info)
{
	autobytes out = {0};
	struct json json = {.out = &out};

	if (call->json) {
		session_report_json(info, &json);
		bytes_append_text(&out, "\n");
	} else {
		session_text_info(info, &out);
	}
	return cli_print(&out);
}

/* Of a call that changed the session: its end, and what that lost. */
static int changed(const struct call *call, int r, const struct execpy_session_info *info,
		   const struct execpy_error *err)
{
	if (r < 0)
		return outcome_session_error(err);
	if (call->json)
		return print_info(call, info);
	if (info->lost[0])
		outcome_tell_lines("lost: ", info->lost);
	return 0;
}

/* --- the actions ---------------------------------------------------------------- */

static int create(struct call *call)
{
	const struct execpy_request *request = &call->options->request;
	struct execpy_session_options options = {
		.limits = request->limits,
		.policy = request->policy,
		.template = request->template,
		.idle_ms = call->idle_ms,
		.life_ms = call->life_ms,
	};
	struct execpy_session_info info = {0};
	struct execpy_error err = {0};

	if (execpy_session_open(call->engine, &options, &info, &err) < 0)
		return outcome_session_error(&err);
	if (call->json)
		return print_info(call, &info);
	printf("%s\n", info.id);
	return fflush(stdout) == 0 ? 0 : own_error("cannot write the session's id");
}

struct listing {
	struct bytes out;
	struct json json;
	bool is_json;
	size_t count;
};

static void add_session(void *user, const struct execpy_session_info *info)
{
	struct listing *listing = user;

	if (listing->is_json) {
		session_report_json(info, &listing->json);
	} else {
		if (listing->count == 0)
			session_text_heads(&listing->out);
		session_text_row(info, &listing->out);
	}
	listing->count++;
}

static int list(struct call *call)
{
	struct listing listing = {.json = {.out = &listing.out}, .is_json = call->json};
	struct execpy_error err = {0};
	int r;

	if (call->json)
		emit_begin_array(&listing.json);
	r = execpy_session_list(call->engine, add_session, &listing, &err);
	if (call->json)
		emit_end_array(&listing.json);
	if (call->json)
		bytes_append_text(&listing.out, "\n");
	else if (r == 0 && listing.count == 0)
		fprintf(stderr, "no sessions\n");
	r = r < 0 ? outcome_session_error(&err) : cli_print(&listing.out);
	bytes_free(&listing.out);
	return r;
}

static void add_branch(void *user, const struct execpy_session_info *info)
{
	struct listing *listing = user;

	if (listing->is_json)
		session_report_json(info, &listing->json);
	else
		bytes_append_format(&listing->out, "%s\n", info->id);
}

static int fork_session(struct call *call)
{
	struct listing listing = {.json = {.out = &listing.out}, .is_json = call->json};
	int count = call->name ? text_number(call->name) : 1;
	struct execpy_error err = {0};
	int r;

	if (count < 1)
		return usage_error("\"%.60s\" is no number of sessions", call->name);
	if (call->json)
		emit_begin_array(&listing.json);
	r = execpy_session_fork(call->engine, call->id, (unsigned)count, call->same_random,
				add_branch, &listing, &err);
	if (call->json) {
		emit_end_array(&listing.json);
		bytes_append_text(&listing.out, "\n");
	}
	r = r < 0 ? outcome_session_error(&err) : cli_print(&listing.out);
	bytes_free(&listing.out);
	return r;
}

static int info(struct call *call)
{
	struct execpy_session_info found = {0};
	struct execpy_error err = {0};

	int status;

	if (execpy_session_info(call->engine, call->id, &found, &err) < 0)
		return outcome_session_error(&err);
	if (!found.ended[0] || call->json) {
		status = print_info(call, &found);
		return status || !found.ended[0] ? status : EXIT_NOT_DONE;
	}
	snprintf(err.text, sizeof err.text, "session %s has ended: %.250s", found.id, found.ended);
	return outcome_session_error(&err);
}

static int checkpoint(struct call *call)
{
	struct execpy_session_info after = {0};
	struct execpy_error err = {0};
	int r = execpy_session_checkpoint(call->engine, call->id, call->name, &after, &err);

	return changed(call, r, &after, &err);
}

static int rollback(struct call *call)
{
	struct execpy_session_info after = {0};
	struct execpy_error err = {0};
	int r = execpy_session_rollback(call->engine, call->id, call->name, &after, &err);

	return changed(call, r, &after, &err);
}

static int undo(struct call *call)
{
	struct execpy_session_info after = {0};
	struct execpy_error err = {0};
	int r = execpy_session_undo(call->engine, call->id, &after, &err);

	return changed(call, r, &after, &err);
}

static int drop(struct call *call)
{
	struct execpy_session_info after = {0};
	struct execpy_error err = {0};
	int r = execpy_session_drop(call->engine, call->id, call->name, &after, &err);

	return changed(call, r, &after, &err);
}

static int interrupt(struct call *call)
{
	struct execpy_error err = {0};

	if (execpy_session_interrupt(call->engine, call->id, &err) < 0)
		return outcome_session_error(&err);
	return 0;
}

static int end(struct call *call)
{
	struct execpy_error err = {0};

	if (execpy_session_end(call->engine, call->id, &err) < 0)
		return outcome_session_error(&err);
	return 0;
}

static int files(struct call *call)
{
	return session_files(call->engine, call->id, call->options, call->json);
}

static const struct action {
	const char *name, *operands;
	size_t least, most;
	bool json;
	int (*act)(struct call *call);
} actions[] = {
	{"create", "[OPTION…]", 0, 0, true, create},
	{"list", "", 0, 0, true, list},
	{"info", "ID", 1, 1, true, info},
	{"checkpoint", "ID NAME", 2, 2, true, checkpoint},
	{"rollback", "ID NAME", 2, 2, true, rollback},
	{"undo", "ID", 1, 1, true, undo},
	{"drop", "ID NAME", 2, 2, true, drop},
	{"fork", "ID [N]", 1, 2, true, fork_session},
	{"interrupt", "ID", 1, 1, false, interrupt},
	{"end", "ID", 1, 1, false, end},
	{"files", "ID ACTION …", 1, SIZE_MAX, true, files},
};

/* --- the command ---------------------------------------------------------------- */

static int carry_out(const struct action *action, struct call *call)
{
	const struct execpy_options options = {.daemon_only = true};
	struct execpy_error err = {0};
	size_t count = call->options->path_count;
	int status;

	if (count < action->least || count > action->most)
		return usage_error("write it as `execpy session %s%s%s`", action->name,
				   action->operands[0] ? " " : "", action->operands);
	call->id = count > 0 ? call->options->paths[0] : NULL;
	call->name = count > 1 ? call->options->paths[1] : NULL;
	signal(SIGPIPE, SIG_IGN);
	if (execpy_open(&options, &call->engine, &err) < 0)
		return outcome_no_daemon(&err);
	status = action->act(call);
	execpy_close(call->engine);
	return status;
}

static int act(const struct action *action, int argc, char **argv)
{
	static const char *const none[] = {NULL};
	static const char *const of_create[] = {"--template",  "--policy", "--memory",
						"--processes", "--disk",   "--time",
						"--cpu",       "--output", NULL};
	bool creates = action->act == create;
	struct options options = options_default();
	struct call call = {.options = &options};
	const char *idle = NULL, *life = NULL;
	const struct options_text texts[] = {{"--idle", &idle}, {"--life", &life}, {NULL, NULL}};
	const struct options_flag flags[] = {
		{action->json ? "--json" : NULL, &call.json},
		{action->act == fork_session ? "--same-random" : NULL, &call.same_random},
		{NULL, NULL},
	};
	const struct options_syntax syntax = {
		.command = "session",
		.help = help_text,
		.flags = flags,
		.valued = creates ? of_create : none,
		.texts = creates ? texts : NULL,
	};
	int status = options_parse(&options, &syntax, argc, argv);

	if (status > 0) {
		status--;
	} else {
		if (idle)
			status = options_time("--idle", idle, &call.idle_ms);
		if (status == 0 && life)
			status = options_time("--life", life, &call.life_ms);
		if (status == 0)
			status = carry_out(action, &call);
	}
	options_free(&options);
	return status;
}

/* session run ID … is run --session ID … */
static int run(int argc, char **argv)
{
	const char **words = calloc((size_t)argc + 2, sizeof *words);
	int status;

	if (!words)
		return own_error("out of memory");
	words[0] = "run";
	words[1] = "--session";
	for (int i = 1; i < argc; i++)
		words[i + 1] = argv[i];
	status = argc > 1 && argv[1][0] != '-'
			 ? command_run(argc + 1, (char **)words)
			 : usage_error("write it as `execpy session run ID [FILE | - | -c CODE]`");
	free(words);
	return status;
}

int command_session(int argc, char **argv)
{
	if (argc < 2)
		return usage_error("what shall be done? `execpy session --help` lists it");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(help_text, stdout);
		return 0;
	}
	if (strcmp(argv[1], "run") == 0)
		return run(argc - 1, argv + 1);
	for (size_t i = 0; i < ARRAY_LENGTH(actions); i++)
		if (strcmp(argv[1], actions[i].name) == 0)
			return act(&actions[i], argc - 1, argv + 1);
	return usage_error("\"%.60s\" is nothing to do with sessions; see `execpy session --help`",
			   argv[1]);
}
