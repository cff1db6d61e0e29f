/* SPDX-License-Identifier: Apache-2.0 */
/* e2b_context: how contexts come to be, are restarted, and end.
 *
 * Theory of operation. A context is taken through steps (enum e2b_step), each of which
 * asks the engine for something and waits for the answer without blocking:
 *
 *   new        COUNT → OPEN → ENTER → READY         COUNT only at the tenant's ceiling,
 *   renewed            OPEN → ENTER → READY         ENTER only for another directory than
 *   restarted  INTERRUPT → SAVE → END → OPEN → RESTORE → ENTER → READY       /workspace
 *   closed     END → it is freed
 *
 * What fails on the way to READY ends the context, but for INTERRUPT, SAVE and END, which
 * find nothing to do when the session is gone. Who goes away while it waits is taken from
 * the list; a new context that nobody waits for any more is closed. */
#include "server/compat/e2b.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORKSPACE "/workspace"

static const char enter_code[] = "import os as _os, sys as _sys\n"
				 "_os.makedirs(_sys.argv[1], exist_ok=True)\n"
				 "_os.chdir(_sys.argv[1])\n"
				 "del _os, _sys\n";

static void take_step(struct e2b_context *context, enum e2b_step step);

struct compat *e2b_state(struct server *server)
{
	if (!server->compat_state) {
		server->compat_state = calloc(1, sizeof *server->compat_state);
		if (!server->compat_state)
			return NULL;
		server->compat_state->server = server;
		TAILQ_INIT(&server->compat_state->contexts);
	}
	return server->compat_state;
}

struct e2b_context *e2b_find(struct compat *compat, const struct tenant *tenant, const char *id)
{
	struct e2b_context *context;

	TAILQ_FOREACH(context, &compat->contexts, entry)
	if (context->tenant == tenant && !context->closing && strcmp(context->id, id) == 0)
		break;
	return context;
}

struct e2b_context *e2b_default(struct compat *compat, const struct tenant *tenant)
{
	struct e2b_context *context;

	TAILQ_FOREACH(context, &compat->contexts, entry)
	if (context->tenant == tenant && !context->closing && context->is_default)
		break;
	return context;
}

/* --- who waits ----------------------------------------------------------------------- */

void e2b_await(struct e2b_call *call, struct e2b_context *context)
{
	static const struct error none = {0};

	TAILQ_REMOVE(&context->compat->contexts, context, entry);
	TAILQ_INSERT_TAIL(&context->compat->contexts, context, entry);
	if (context->step == E2B_READY) {
		call->ready(call, context, &none);
		return;
	}
	call->awaited = context;
	TAILQ_INSERT_TAIL(&context->waiting, call, entry);
}

static void tell_waiting(struct e2b_context *context, bool is_ready, const struct error *why)
{
	struct e2b_call *call;

	/* One that is told may ask for the next step: then the others go on waiting. */
	while ((call = TAILQ_FIRST(&context->waiting)) &&
	       (!is_ready || context->step == E2B_READY)) {
		TAILQ_REMOVE(&context->waiting, call, entry);
		call->awaited = NULL;
		call->ready(call, is_ready ? context : NULL, why);
	}
}

void e2b_forget(struct e2b_context *context)
{
	TAILQ_REMOVE(&context->compat->contexts, context, entry);
	owned_abandon(context->asking, &context->room);
	async_abandon(context->run);
	ask_free(&context->ask);
	close_fd(&context->archive);
	free(context);
}

/* With the session, as far as there is one. */
static void fail_context(struct e2b_context *context, const struct error *why)
{
	context->closing = true;
	tenant_leave_room(&context->room);
	tell_waiting(context, false, why);
	take_step(context, E2B_END);
}

static void is_ready(struct e2b_context *context)
{
	static const struct error none = {0};

	context->step = E2B_READY;
	if (context->closing)
		take_step(context, E2B_END);
	else if (TAILQ_EMPTY(&context->waiting) && !context->told && !context->is_default)
		e2b_close(context);
	else
		tell_waiting(context, true, &none);
}

/* --- steps that ask about the session ------------------------------------------------ */

static void is_ended(struct e2b_context *context)
{
	static const struct error gone = {.number = ENOENT, .text = "the context was removed"};

	owned_drop(context->compat->server, context->session);
	context->session[0] = '\0';
	if (!context->closing) {
		take_step(context, E2B_OPEN);
		return;
	}
	tell_waiting(context, false, &gone);
	e2b_forget(context);
}

static void is_open(struct e2b_context *context, const struct execpy_session_info *info)
{
	snprintf(context->session, sizeof context->session, "%s", info->id);
	if (!context->id[0])
		snprintf(context->id, sizeof context->id, "%s", info->id);
	tenant_leave_room(&context->room);
	owned_add(context->compat->server, context->tenant, info->id);
	context->executions = 0;
	take_step(context, E2B_RESTORE);
}

static void on_asked(void *user, const struct execpy_session_info *infos, size_t count,
		     const struct error *why)
{
	struct e2b_context *context = user;
	char(*ids)[EXECPY_SESSION_ID_MAX];
	size_t id_count;

	context->asking = NULL;
	if (context->step == E2B_COUNT) {
		id_count = owned_ids(context->compat->server, context->tenant, &ids);
		if (ids && !why->number)
			owned_keep(context->compat->server, context->tenant, ids, id_count, infos,
				   count);
		free(ids);
		take_step(context, E2B_OPEN);
	} else if (context->step == E2B_INTERRUPT) {
		take_step(context, E2B_SAVE);
	} else if (context->step == E2B_END) {
		is_ended(context);
	} else if (count > 0) {
		is_open(context, &infos[0]);
	} else if (!context->plain) {
		context->plain = true;
		take_step(context, E2B_OPEN);
	} else {
		fail_context(context, why);
	}
}

static bool ask(struct e2b_context *context, const struct session_question *question)
{
	struct error err = {0};

	context->asking = async_ask_session(context->compat->server->engine, question, on_asked,
					    context, &err);
	return context->asking != NULL;
}

static bool act(struct e2b_context *context, enum session_action action)
{
	const struct session_question question = {
		.kind = SESSION_ASK_ACT, .action = action, .id = context->session};

	return context->session[0] && ask(context, &question);
}

static void count(struct e2b_context *context)
{
	char(*ids)[EXECPY_SESSION_ID_MAX];
	size_t id_count = owned_ids(context->compat->server, context->tenant, &ids);
	const struct session_question question = {.kind = SESSION_ASK_EACH,
						  .ids = (const char(*)[EXECPY_SESSION_ID_MAX])ids,
						  .id_count = id_count};

	if (!ids || id_count == 0 || !ask(context, &question))
		take_step(context, E2B_OPEN);
	free(ids);
}

static void open_session(struct e2b_context *context)
{
	const struct execpy_session_options options = {
		.limits = ask_to_engine(&context->limits),
		.policy = context->policy,
		.template = context->plain ? NULL : "plot",
	};
	const struct session_question question = {.kind = SESSION_ASK_OPEN, .options = &options};
	struct error err = {0};

	tenant_leave_room(&context->room); /* of a try before */
	if (!tenant_take_room(context->tenant, 1, &context->room)) {
		refuse(&err, EMFILE, "you have as many sessions as you may: %u",
		       context->tenant->sessions_max);
		fail_context(context, &err);
		return;
	}
	context->asking = async_ask_session(context->compat->server->engine, &question, on_asked,
					    context, &err);
	if (context->asking)
		return;
	if (context->plain) {
		fail_context(context, &err);
		return;
	}
	context->plain = true;
	open_session(context);
}

/* --- steps that use the session ------------------------------------------------------ */

static void on_used(void *user, struct execpy_result *result, const struct error *why)
{
	struct e2b_context *context = user;
	struct error failed = result ? context->hold.failed : *why;

	context->run = NULL;
	if (context->step == E2B_ENTER && result && result->status != EXECPY_OK)
		refuse(&failed, EINVAL,
		       "the directory %.200s cannot be entered: only what is "
		       "beneath /workspace and /tmp can be made",
		       context->cwd);
	execpy_result_free(result);
	if (context->step == E2B_SAVE) {
		if (failed.number)
			close_fd(&context->archive);
		take_step(context, E2B_END);
	} else if (failed.number) {
		fail_context(context, &failed);
	} else if (context->step == E2B_RESTORE) {
		close_fd(&context->archive);
		take_step(context, E2B_ENTER);
	} else {
		is_ready(context);
	}
}

static bool use(struct e2b_context *context, struct async async)
{
	struct error err = {0};

	async.session = context->session;
	async.done = on_used;
	async.user = context;
	context->run = async_begin(context->compat->server->engine,
				   async.hold ? NULL : &context->ask.request, &async, &err);
	return context->run != NULL;
}

static bool hold(struct e2b_context *context, struct hold hold)
{
	context->hold = hold;
	return use(context, (struct async){.hold = &context->hold});
}

static bool save(struct e2b_context *context)
{
	close_fd(&context->archive);
	context->archive = memfd_create("execpy-archive", MFD_CLOEXEC);
	return context->archive >= 0 && context->session[0] &&
	       hold(context, (struct hold){.use = workspace_tar_out,
					   .user = &context->archive,
					   .apart = true});
}

static bool restore(struct e2b_context *context)
{
	return lseek(context->archive, 0, SEEK_SET) == 0 &&
	       hold(context, (struct hold){.use = workspace_tar_in,
					   .user = &context->archive,
					   .changes = true,
					   .apart = true});
}

/* Our own code, which no client's policy is for. */
static bool enter(struct e2b_context *context)
{
	struct ask *ask = &context->ask;

	ask_free(ask);
	ask->arguments = calloc(2, sizeof *ask->arguments);
	if (!ask->arguments)
		return false;
	ask->arguments[0] = context->cwd;
	ask->request.arguments = ask->arguments;
	ask->request.code = enter_code;
	ask->request.code_length = sizeof enter_code - 1;
	ask->request.policy = "open";
	context->hold = (struct hold){0};
	return use(context, (struct async){0});
}

static void take_step(struct e2b_context *context, enum e2b_step step)
{
	static const struct error failed = {.number = EIO, .text = "the context cannot be made"};

	context->step = step;
	switch (step) {
	case E2B_COUNT:
		count(context);
		break;
	case E2B_INTERRUPT:
		if (!act(context, SESSION_INTERRUPT))
			take_step(context, E2B_SAVE);
		break;
	case E2B_SAVE:
		if (!save(context))
			take_step(context, E2B_END);
		break;
	case E2B_END:
		if (!act(context, SESSION_END))
			is_ended(context);
		break;
	case E2B_OPEN:
		open_session(context);
		break;
	case E2B_RESTORE:
		if (context->archive < 0)
			take_step(context, E2B_ENTER);
		else if (!restore(context))
			fail_context(context, &failed);
		break;
	case E2B_ENTER:
		if (strcmp(context->cwd, WORKSPACE) == 0)
			is_ready(context);
		else if (!enter(context))
			fail_context(context, &failed);
		break;
	case E2B_READY:
		is_ready(context);
		break;
	}
}

/* --- what is asked for --------------------------------------------------------------- */

/* The other server's home is where its files are: ours are in the workspace. */
static void take_directory(struct e2b_context *context, const char *cwd)
{
	static const char home[] = "/home/user";
	size_t length = sizeof home - 1;

	if (!cwd || strcmp(cwd, "") == 0)
		cwd = WORKSPACE;
	if (strncmp(cwd, home, length) == 0 && (!cwd[length] || cwd[length] == '/'))
		snprintf(context->cwd, sizeof context->cwd, "%s%s", WORKSPACE, cwd + length);
	else
		snprintf(context->cwd, sizeof context->cwd, "%s", cwd);
}

/* Contexts outlive their sessions, and clients that forget theirs are many. */
static void make_place(struct compat *compat, const struct tenant *tenant)
{
	struct e2b_context *context, *first = NULL;
	size_t count = 0;

	TAILQ_FOREACH(context, &compat->contexts, entry)
	{
		if (context->tenant != tenant || context->closing)
			continue;
		count++;
		if (!first && context->step == E2B_READY)
			first = context;
	}
	if (first && count >= COMPAT_CONTEXTS_MAX)
		e2b_close(first);
}

struct e2b_context *e2b_new(struct compat *compat, struct rest_call *call, const char *cwd,
			    bool is_default)
{
	struct e2b_context *context = calloc(1, sizeof *context);
	struct tenant *tenant = call->tenant;
	const struct ask_rules rules = compat_rules(call);

	if (!context)
		return NULL;
	make_place(compat, tenant);
	context->compat = compat;
	context->tenant = tenant;
	context->is_default = is_default;
	context->limits = rules.initial;
	context->policy = compat_policy(call);
	context->archive = -1;
	ask_init(&context->ask);
	TAILQ_INIT(&context->waiting);
	take_directory(context, cwd);
	TAILQ_INSERT_TAIL(&compat->contexts, context, entry);
	context->step = owned_should_count(tenant, 1) ? E2B_COUNT : E2B_OPEN;
	return context;
}

void e2b_begin(struct e2b_context *context)
{
	take_step(context, context->step);
}

void e2b_restart(struct e2b_context *context)
{
	if (context->step == E2B_READY)
		take_step(context, E2B_INTERRUPT);
}

void e2b_renew(struct e2b_context *context)
{
	if (context->step != E2B_READY)
		return;
	owned_drop(context->compat->server, context->session);
	context->session[0] = '\0';
	context->renewed = true;
	take_step(context, E2B_OPEN);
}

void e2b_close(struct e2b_context *context)
{
	context->closing = true;
	if (context->step == E2B_READY)
		take_step(context, E2B_END);
}
