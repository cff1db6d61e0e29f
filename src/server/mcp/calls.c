/* SPDX-License-Identifier: Apache-2.0 */
/* calls: requests from when they are taken until they are answered, and what goes on for
 * them meanwhile.
 *
 * A call ends with exactly one answer, or with none when its client cancelled it or is
 * gone. What is over is noted from the loop and gone on with between its turns, since
 * the next step may begin something (engine/async.h). */
#include "server/mcp/protocol.h"
#include "server/owned.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct mcp_call *find(struct mcp_client *client, const json_t *id)
{
	struct mcp_call *call;

	TAILQ_FOREACH(call, &client->calls, entry)
	if (json_equal(call->id, id) && !call->cancelled)
		break;
	return call;
}

struct mcp_call *mcp_call_new(struct mcp_client *client, struct mcp_message *message, void *carrier)
{
	bool taken = find(client, message->id) != NULL;
	struct mcp_call *call =
		taken || client->call_count >= MCP_CALLS_MAX ? NULL : calloc(1, sizeof *call);
	const json_t *token;

	if (!call) {
		mcp_refuse(client, carrier, message->id,
			   taken ? MCP_INVALID_REQUEST : MCP_INTERNAL_ERROR,
			   taken ? "a request of this id is not answered yet"
				 : "too many requests at one time");
		json_decref(message->object);
		return NULL;
	}
	call->client = client;
	call->server = client->server;
	call->carrier = carrier;
	call->message = take_ptr(message->object);
	call->id = message->id;
	call->params = message->params;
	ask_init(&call->ask);
	call->get.fd = -1;
	call->began_us = (uint64_t)now_us();
	token = json_object_get(json_object_get(call->params, "_meta"), "progressToken");
	if (json_is_integer(token) ||
	    (json_is_string(token) && json_string_length(token) <= MCP_PROGRESS_TOKEN_MAX))
		call->progress_token = token;
	TAILQ_INSERT_TAIL(&client->calls, call, entry);
	client->call_count++;
	return call;
}

static void end_count(struct mcp_call *call)
{
	if (call->counted)
		tenant_end_run(call->server->tenant);
	call->counted = false;
}

/* They came to be for a call that ends before it could say whose they are. */
static void end_sessions(struct mcp_call *call)
{
	for (size_t i = 0; call->makes_sessions && i < call->info_count; i++)
		owned_end(call->server->engine, call->infos[i].id, &call->room);
}

/* What ran for a client is in the records, also when there is nobody to be answered. */
static void abandon_run(struct mcp_call *call)
{
	struct execpy_result *result = async_give_up(call->run);

	if (result && call->ran_as && call->server->ran)
		call->server->ran(call, result);
	execpy_result_free(result);
}

void mcp_call_free(struct mcp_call *call)
{
	end_count(call);
	end_sessions(call);
	TAILQ_REMOVE(&call->client->calls, call, entry);
	call->client->call_count--;
	if (call->over)
		TAILQ_REMOVE(&call->server->over, call, over_entry);
	if (call->ticker)
		event_free(call->ticker);
	abandon_run(call);
	owned_abandon(call->asking, &call->room);
	free(call->infos);
	free(call->ids);
	execpy_result_free(call->result);
	ask_free(&call->ask);
	if (call->get.fd >= 0)
		close(call->get.fd);
	bytes_free(&call->part);
	free(call->name);
	json_decref(call->message);
	free(call);
}

void mcp_cancel(struct mcp_client *client, const json_t *id)
{
	struct mcp_call *call = find(client, id);

	if (!call)
		return;
	call->cancelled = true;
	if (call->ticker)
		event_del(call->ticker);
	if (call->run)
		async_cancel(call->run);
}

/* --- progress ------------------------------------------------------------------------ */

static void on_tick(evutil_socket_t fd, short what, void *argument)
{
	struct mcp_call *call = argument;
	uint64_t us = (uint64_t)now_us() - call->began_us;
	char text[120];
	struct bytes message;
	struct json json;

	snprintf(text, sizeof text, "running for %llu s, %llu bytes of output so far",
		 (unsigned long long)(us / 1000000), (unsigned long long)call->output_bytes);
	mcp_begin_progress(call, &message, &json);
	emit_milliseconds(&json, us / 1000); /* so that it is seconds */
	emit_key(&json, "message");
	emit_string(&json, text);
	mcp_end_notice(call, &message, &json);
}

static void start_ticker(struct mcp_call *call)
{
	const struct timeval second = {MCP_PROGRESS_MS / 1000, MCP_PROGRESS_MS % 1000 * 1000};

	if (!call->progress_token || call->ticker)
		return;
	/* Without it there is no progress to be seen, and all else goes on. */
	call->ticker = event_new(async_base(call->server->engine), -1, EV_PERSIST, on_tick, call);
	if (call->ticker)
		event_add(call->ticker, &second);
}

static void count_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	struct mcp_call *call = user;

	call->output_bytes += length;
}

/* --- runs ---------------------------------------------------------------------------- */

/* Called from the loop, where nothing may be begun: mcp_proceed() does it. */
static void is_over(struct mcp_call *call, const struct error *why)
{
	call->over = true;
	call->why = *why;
	TAILQ_INSERT_TAIL(&call->server->over, call, over_entry);
}

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct mcp_call *call = user;

	end_count(call);
	if (result && call->ran_as && call->server->ran)
		call->server->ran(call, result);
	call->run = NULL;
	call->result = result;
	is_over(call, why);
}

void mcp_proceed(struct mcp_server *server)
{
	struct mcp_call *call;

	while ((call = TAILQ_FIRST(&server->over))) {
		struct execpy_result *result = take_ptr(call->result);

		TAILQ_REMOVE(&server->over, call, over_entry);
		call->over = false;
		if (call->cancelled) {
			struct mcp_client *client = call->client;
			void *carrier = call->carrier;

			mcp_call_free(call);
			if (client->transport->dropped)
				client->transport->dropped(client->user, carrier);
		} else {
			call->finish(call, result, &call->why);
		}
		execpy_result_free(result);
	}
}

int mcp_begin(struct mcp_call *call, const struct async *what, struct error *err)
{
	struct async async = *what;
	struct tenant *tenant = call->server->tenant;

	if (tenant && !what->hold && !tenant_begin_run(tenant))
		return refuse(err, EAGAIN, "as many runs go on as may; try again when one is over");
	call->counted = tenant && !what->hold;
	call->check_only = what->check_only;
	async.session = call->session[0] ? call->session : NULL;
	async.callbacks = (struct execpy_callbacks){.output = count_output, .user = call};
	async.done = on_done;
	async.user = call;
	call->run = async_begin(call->server->engine, &call->ask.request, &async, err);
	if (!call->run) {
		end_count(call);
		return -err->number;
	}
	start_ticker(call);
	return 0;
}

static void on_answer(void *user, const struct execpy_session_info *infos, size_t count,
		      const struct error *why)
{
	struct mcp_call *call = user;
	struct error memory = {0};

	call->asking = NULL;
	call->infos = calloc(count + 1, sizeof *call->infos);
	if (call->infos && count > 0)
		memcpy(call->infos, infos, count * sizeof *infos);
	if (call->infos)
		call->info_count = count;
	else
		fail(&memory, ENOMEM, "sessions");
	for (size_t i = 0; !call->infos && call->makes_sessions && i < count; i++)
		owned_end(call->server->engine, infos[i].id, &call->room);
	is_over(call, memory.number ? &memory : why);
}

int mcp_begin_asking(struct mcp_call *call, const struct session_question *question,
		     struct error *err)
{
	/* Of a question before. */
	free(call->infos);
	call->infos = NULL;
	call->info_count = 0;
	call->makes_sessions =
		question->kind == SESSION_ASK_OPEN ||
		(question->kind == SESSION_ASK_ACT && question->action == SESSION_FORK);
	call->asking = async_ask_session(call->server->engine, question, on_answer, call, err);
	if (!call->asking)
		return -err->number;
	if (question->kind == SESSION_ASK_OPEN)
		start_ticker(call);
	return 0;
}
