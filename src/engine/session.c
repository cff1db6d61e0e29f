/* SPDX-License-Identifier: Apache-2.0 */
/* session: what may be asked about a session, and runs in one.
 *
 * The warden has the sessions; an engine only knows names. What a run takes from
 * its session when it brings nothing of its own (limits, policy) is asked for
 * once and remembered. */
#include "engine/async.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- questions --------------------------------------------------------------- */

bool query_message(struct execpy_engine *engine, const struct frame *frame)
{
	struct query *query;
	char text[ERROR_TEXT_MAX] = "the warden failed";

	TAILQ_FOREACH(query, &engine->queries, entry)
	if (query->id == frame->id)
		break;
	if (!query)
		return false;
	query->answered = true;
	if (frame->type == MESSAGE_SESSION || frame->type == MESSAGE_REPORT) {
		bytes_append(&query->answer, frame->body.data, frame->body.length);
	} else {
		uint64_t number = frame_number(frame, FIELD_ERRNO);

		frame_text(frame, FIELD_TEXT, text, sizeof text);
		refuse(&query->failed, number > 0 && number < 4096 ? (int)number : EIO, "%s", text);
	}
	event_active(query->event, EV_TIMEOUT, 0);
	return true;
}

int query_send(struct execpy_engine *engine, struct query *query, const struct bytes *frame,
	       struct error *err)
{
	if (engine->dead && engine->remote)
		engine_revive(engine, &(struct error){0});
	if (engine->dead)
		return refuse(err, EPIPE, "%s", engine->why);
	if (frame->failed)
		return fail(err, -frame->failed, "session");
	if (engine_say(engine, frame, NULL, 0, err) < 0)
		return -err->number;
	TAILQ_INSERT_TAIL(&engine->queries, query, entry);
	return 0;
}

int query_end(struct execpy_engine *engine, struct query *query, struct error *err)
{
	TAILQ_REMOVE(&engine->queries, query, entry);
	if (!query->answered)
		return refuse(err, EPIPE, "%s",
			      engine->dead ? engine->why : "the event loop ended");
	if (!query->failed.number)
		return 0;
	*err = query->failed;
	return -err->number;
}

/* --- answers ------------------------------------------------------------------ */

static void copy_text(char *to, size_t size, struct span from)
{
	size_t length = from.length < size - 1 ? from.length : size - 1;

	memcpy(to, from.data, length);
	to[length] = '\0';
}

static void limits_to_public(const struct limits *limits, struct execpy_limits *ret_limits)
{
	*ret_limits = (struct execpy_limits){
		.time_ms = limits->time_ms,
		.cpu_ms = limits->cpu_ms,
		.memory_bytes = limits->memory_bytes,
		.processes = limits->processes,
		.output_bytes = limits->output_bytes,
		.disk_bytes = limits->disk_bytes,
	};
}

static void read_info(struct span body, struct execpy_session_info *info,
		      struct known_session *known)
{
	struct reader fields = reader_of(body);
	struct limits limits = limits_default();
	struct error err = {0};
	struct field field;
	uint64_t number = 0;

	*info = (struct execpy_session_info){0};
	while (frame_next_field(&fields, &field) == 1) {
		field_number(&field, &number);
		switch (field.name) {
		case FIELD_NAME:
			copy_text(info->id, sizeof info->id, field.value);
			break;
		case FIELD_TYPE:
			copy_text(info->template, sizeof info->template, field.value);
			break;
		case FIELD_TEXT:
			copy_text(info->ended, sizeof info->ended, field.value);
			break;
		case FIELD_LIMITS:
			limits_decode(field.value, &limits, &err);
			break;
		case FIELD_RUNS:
			info->runs = number;
			break;
		case FIELD_WALL_US:
			info->age_ms = number / 1000;
			break;
		case FIELD_WAIT_US:
			info->unused_ms = number / 1000;
			break;
		case FIELD_IDLE_MS:
			info->idle_ms = number;
			break;
		case FIELD_LIFE_MS:
			info->life_ms = number;
			break;
		case FIELD_SIZE:
			info->memory_bytes = number;
			break;
		case FIELD_BUSY:
			info->busy = number != 0;
			break;
		case FIELD_CHECKPOINT:
			if (info->checkpoint_count < EXECPY_SESSION_CHECKPOINTS_MAX)
				copy_text(info->checkpoints[info->checkpoint_count++],
					  EXECPY_SESSION_NAME_MAX, field.value);
			break;
		case FIELD_POLICY:
			if (known)
				bytes_append(&known->policy, field.value.data, field.value.length);
			break;
		default:
			break;
		}
	}
	limits_to_public(&limits, &info->limits);
	if (known)
		known->limits = limits;
}

int session_read_answer(const struct query *query, struct execpy_session_info *ret_info,
			struct known_session *known, struct error *err)
{
	struct reader fields = reader_of(bytes_span(&query->answer));
	struct execpy_session_info info = {0};
	struct field field;
	size_t used = 0;

	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_SESSION && !info.id[0]) {
			read_info(field.value, &info, known);
		} else if (field.name == FIELD_LOST &&
			   used + field.value.length + 2 < sizeof info.lost) {
			if (used > 0)
				info.lost[used++] = '\n';
			copy_text(info.lost + used, sizeof info.lost - used, field.value);
			used += field.value.length;
		}
	}
	if (!info.id[0])
		return refuse(err, ENOENT, "there is no such session");
	if (ret_info)
		*ret_info = info;
	return 0;
}

/* --- what is known --------------------------------------------------------------- */

static void forget(struct execpy_engine *engine, struct known_session *known)
{
	TAILQ_REMOVE(&engine->known, known, entry);
	engine->known_count--;
	bytes_free(&known->policy);
	free(known);
}

void sessions_forget(struct execpy_engine *engine)
{
	while (!TAILQ_EMPTY(&engine->known))
		forget(engine, TAILQ_FIRST(&engine->known));
}

const struct known_session *session_find(struct execpy_engine *engine, const char *id)
{
	struct known_session *known;

	TAILQ_FOREACH(known, &engine->known, entry)
	if (strcmp(known->id, id) == 0)
		break;
	if (known) {
		TAILQ_REMOVE(&engine->known, known, entry);
		TAILQ_INSERT_TAIL(&engine->known, known, entry);
	}
	return known;
}

/* Most sessions end by themselves, of which nobody tells us. One that is used again after
 * so many others is asked for again. */
static void make_place(struct execpy_engine *engine)
{
	while (engine->known_count >= SESSION_KNOWN_MAX)
		forget(engine, TAILQ_FIRST(&engine->known));
}

void session_forget(struct execpy_engine *engine, const char *id)
{
	struct known_session *known = (struct known_session *)session_find(engine, id);

	if (known)
		forget(engine, known);
}

const struct known_session *session_learn(struct execpy_engine *engine, const char *id,
					  const struct query *query, struct error *err)
{
	const struct known_session *other = session_find(engine, id);
	struct execpy_session_info info;
	struct known_session *known;

	if (other)
		return other;
	known = calloc(1, sizeof *known);
	if (!known) {
		fail(err, ENOMEM, "session");
		return NULL;
	}
	snprintf(known->id, sizeof known->id, "%s", id);
	make_place(engine);
	TAILQ_INSERT_TAIL(&engine->known, known, entry);
	engine->known_count++;
	if (session_read_answer(query, &info, known, err) == 0 && !info.ended[0])
		return known;
	if (err->number)
		refuse(err, ENOENT, "there is no session %.39s", id);
	else
		refuse(err, EIDRM, "session %s has ended: %.200s", id, info.ended);
	forget(engine, known);
	return NULL;
}

/* --- what is asked ------------------------------------------------------------------- */

static void put_module(void *user, const char *module)
{
	frame_put_text(user, FIELD_MODULE, module);
}

const char *session_template(const char *asked)
{
	return !asked || strcmp(asked, "auto") == 0 ? "bare" : asked;
}

static int put_options(struct execpy_engine *engine, const struct execpy_session_options *options,
		       struct bytes *frame, struct error *err)
{
	const char *template = session_template(options->template);
	autopolicy policy = {0};
	autobytes encoded = {0};
	struct limits limits;
	int r = request_limits(&options->limits, NULL, &limits, err);

	if (r == 0)
		r = policy_load(options->policy ? options->policy : "strict", &policy, err);
	if (r < 0)
		return r;
	policy_encode(&policy, &encoded);
	limits_encode(&limits, frame, FIELD_LIMITS);
	frame_put(frame, FIELD_POLICY, encoded.data, encoded.length);
	if (encoded.failed)
		return fail(err, -encoded.failed, "session");
	if (options->idle_ms)
		frame_put_number(frame, FIELD_IDLE_MS, options->idle_ms);
	if (options->life_ms)
		frame_put_number(frame, FIELD_LIFE_MS, options->life_ms);
	if (engine->remote)
		frame_put_text(frame, FIELD_NAME, template);
	else if (!imports_template(template, put_module, frame))
		return refuse(err, EINVAL,
			      "template \"%.40s\": there is auto, bare, numpy, pandas and plot",
			      template);
	return 0;
}

static int put_action(const struct session_question *question, struct bytes *frame,
		      struct error *err)
{
	const char *name = question->name;

	if (name && (!name[0] || strlen(name) > SESSION_NAME_BYTES_MAX))
		return refuse(err, EINVAL, "a checkpoint's name has 1 to %d bytes",
			      SESSION_NAME_BYTES_MAX);
	frame_put_text(frame, FIELD_SESSION, question->id);
	frame_put_number(frame, FIELD_ACTION, question->action);
	if (name)
		frame_put_text(frame, FIELD_NAME, name);
	if (question->action != SESSION_FORK)
		return 0;
	if (question->count < 1 || question->count > BRANCHES_MAX)
		return refuse(err, EINVAL, "a session is forked into 1 to %d", BRANCHES_MAX);
	frame_put_number(frame, FIELD_COUNT, question->count);
	frame_put_number(frame, FIELD_MORE, question->same_random);
	return 0;
}

int session_ask(struct execpy_engine *engine, const struct session_question *question,
		struct query *query, struct error *err)
{
	static const enum message messages[] = {
		[SESSION_ASK_OPEN] = MESSAGE_OPEN_SESSION, [SESSION_ASK_INFO] = MESSAGE_SESSIONS,
		[SESSION_ASK_LIST] = MESSAGE_SESSIONS,     [SESSION_ASK_EACH] = MESSAGE_SESSIONS,
		[SESSION_ASK_ACT] = MESSAGE_ACT,
	};
	autobytes frame = {0};
	size_t at;
	int r = 0;

	query->id = ++engine->next_run;
	at = frame_begin(&frame, (uint16_t)messages[question->kind], query->id);
	if (question->kind == SESSION_ASK_OPEN)
		r = put_options(engine, question->options, &frame, err);
	else if (question->kind == SESSION_ASK_ACT)
		r = put_action(question, &frame, err);
	else if (question->kind == SESSION_ASK_INFO || question->kind == SESSION_ASK_EACH)
		frame_put_text(&frame, FIELD_SESSION, question->id);
	if (r < 0)
		return r;
	frame_end(&frame, at);
	return query_send(engine, query, &frame, err);
}

bool session_next(struct reader *fields, struct execpy_session_info *ret_info)
{
	struct field field;

	while (frame_next_field(fields, &field) == 1) {
		if (field.name != FIELD_SESSION)
			continue;
		read_info(field.value, ret_info, NULL);
		return true;
	}
	return false;
}

/* --- the public calls: they wait for what async.h begins ------------------------------ */

struct waiting {
	bool over;
	struct execpy_session_info *ret_info;
	void (*tell)(void *user, const struct execpy_session_info *info);
	void *user;
	struct error why; /* number 0: it was done */
};

static void on_answer(void *user, const struct execpy_session_info *infos, size_t count,
		      const struct error *why)
{
	struct waiting *waiting = user;

	waiting->over = true;
	waiting->why = *why;
	if (waiting->ret_info && count > 0)
		*waiting->ret_info = infos[0];
	for (size_t i = 0; waiting->tell && i < count; i++)
		waiting->tell(waiting->user, &infos[i]);
}

static int ask(struct execpy_engine *engine, const struct session_question *question,
	       struct waiting *waiting, struct error *err)
{
	struct asking *asking = async_ask_session(engine, question, on_answer, waiting, err);

	if (!asking)
		return -err->number;
	while (!waiting->over) {
		if (event_base_loop(engine->base, EVLOOP_ONCE) == 0)
			continue;
		async_abandon_asking(asking, NULL, NULL);
		return refuse(err, EPIPE, "the event loop ended");
	}
	if (!waiting->why.number)
		return 0;
	*err = waiting->why;
	return -err->number;
}

static int act(struct execpy_engine *engine, const char *id, enum session_action action,
	       const char *name, struct execpy_session_info *ret_info, struct execpy_error *error)
{
	const struct session_question question = {
		.kind = SESSION_ASK_ACT, .id = id, .action = action, .name = name};
	struct waiting waiting = {.ret_info = ret_info};

	return ask(engine, &question, &waiting, (struct error *)error);
}

int execpy_session_open(struct execpy_engine *engine, const struct execpy_session_options *options,
			struct execpy_session_info *ret_info, struct execpy_error *error)
{
	const struct session_question question = {.kind = SESSION_ASK_OPEN, .options = options};
	struct waiting waiting = {.ret_info = ret_info};

	return ask(engine, &question, &waiting, (struct error *)error);
}

int execpy_session_run(struct execpy_engine *engine, const char *id,
		       const struct execpy_request *request,
		       const struct execpy_callbacks *callbacks, struct execpy_result **ret_result,
		       struct execpy_error *error)
{
	const struct run_purpose purpose = {.session = id};
	struct run *run = run_start(engine, request, callbacks, &purpose, (struct error *)error);

	return run ? run_wait(run, ret_result, (struct error *)error) : -error->number;
}

int execpy_session_info(struct execpy_engine *engine, const char *id,
			struct execpy_session_info *ret_info, struct execpy_error *error)
{
	const struct session_question question = {.kind = SESSION_ASK_INFO, .id = id};
	struct waiting waiting = {.ret_info = ret_info};

	return ask(engine, &question, &waiting, (struct error *)error);
}

int execpy_session_list(struct execpy_engine *engine,
			void (*tell)(void *user, const struct execpy_session_info *info),
			void *user, struct execpy_error *error)
{
	const struct session_question question = {.kind = SESSION_ASK_LIST};
	struct waiting waiting = {.tell = tell, .user = user};

	return ask(engine, &question, &waiting, (struct error *)error);
}

int execpy_session_checkpoint(struct execpy_engine *engine, const char *id, const char *name,
			      struct execpy_session_info *ret_info, struct execpy_error *error)
{
	return act(engine, id, SESSION_CHECKPOINT, name, ret_info, error);
}

int execpy_session_rollback(struct execpy_engine *engine, const char *id, const char *name,
			    struct execpy_session_info *ret_info, struct execpy_error *error)
{
	return act(engine, id, SESSION_ROLLBACK, name, ret_info, error);
}

int execpy_session_undo(struct execpy_engine *engine, const char *id,
			struct execpy_session_info *ret_info, struct execpy_error *error)
{
	return act(engine, id, SESSION_UNDO, NULL, ret_info, error);
}

int execpy_session_drop(struct execpy_engine *engine, const char *id, const char *name,
			struct execpy_session_info *ret_info, struct execpy_error *error)
{
	return act(engine, id, SESSION_DROP, name, ret_info, error);
}

int execpy_session_fork(struct execpy_engine *engine, const char *id, unsigned count,
			bool same_random,
			void (*tell)(void *user, const struct execpy_session_info *info),
			void *user, struct execpy_error *error)
{
	const struct session_question question = {.kind = SESSION_ASK_ACT,
						  .id = id,
						  .action = SESSION_FORK,
						  .count = count,
						  .same_random = same_random};
	struct waiting waiting = {.tell = tell, .user = user};

	return ask(engine, &question, &waiting, (struct error *)error);
}

int execpy_session_interrupt(struct execpy_engine *engine, const char *id,
			     struct execpy_error *error)
{
	return act(engine, id, SESSION_INTERRUPT, NULL, NULL, error);
}

int execpy_session_end(struct execpy_engine *engine, const char *id, struct execpy_error *error)
{
	return act(engine, id, SESSION_END, NULL, NULL, error);
}

uint64_t execpy_result_session_run(struct execpy_result *result, bool *ret_restored,
				   const char **ret_lost)
{
	*ret_restored = result->restored;
	*ret_lost = result->lost.length > 0 ? (const char *)result->lost.data : NULL;
	return result->session_run;
}
