/* SPDX-License-Identifier: Apache-2.0 */
/* test_known: what an engine remembers of sessions. Most end without its being told, so
 * their number is bounded, and the one used longest ago goes. */
#include "unit.h"

#include "base/cleanup.h"
#include "engine/engine.h"

static void name(char id[EXECPY_SESSION_ID_MAX], unsigned number)
{
	snprintf(id, EXECPY_SESSION_ID_MAX, "ses_%08u", number);
}

static const struct known_session *learn(struct execpy_engine *engine, unsigned number)
{
	const struct known_session *known;
	struct query query = {0};
	autobytes session = {0};
	char id[EXECPY_SESSION_ID_MAX];
	struct error err = {0};

	name(id, number);
	frame_put_text(&session, FIELD_NAME, id);
	frame_put(&query.answer, FIELD_SESSION, session.data, session.length);
	known = session_learn(engine, id, &query, &err);
	bytes_free(&query.answer);
	return known;
}

static const struct known_session *find(struct execpy_engine *engine, unsigned number)
{
	char id[EXECPY_SESSION_ID_MAX];

	name(id, number);
	return session_find(engine, id);
}

static unsigned count(const struct execpy_engine *engine)
{
	const struct known_session *known;
	unsigned found = 0;

	TAILQ_FOREACH(known, &engine->known, entry)
	found++;
	return found;
}

static void bounded(void **state)
{
	struct execpy_engine engine = {0};

	TAILQ_INIT(&engine.known);
	for (unsigned i = 0; i < SESSION_KNOWN_MAX; i++)
		assert_non_null(learn(&engine, i));
	assert_int_equal(count(&engine), SESSION_KNOWN_MAX);
	/* The first is used once more: the second goes. */
	assert_non_null(find(&engine, 0));
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(learn(&engine, SESSION_KNOWN_MAX + i));
	assert_int_equal(count(&engine), SESSION_KNOWN_MAX);
	assert_non_null(find(&engine, 0));
	for (unsigned i = 1; i < 4; i++)
		assert_null(find(&engine, i));
	assert_non_null(find(&engine, 4));
	assert_non_null(find(&engine, SESSION_KNOWN_MAX + 2));
	/* What is forgotten makes place, and what is learnt twice takes none. */
	session_forget(&engine, find(&engine, 4)->id);
	assert_non_null(learn(&engine, 1));
	assert_non_null(learn(&engine, 1));
	assert_int_equal(count(&engine), SESSION_KNOWN_MAX);
	assert_non_null(find(&engine, 5));
	sessions_forget(&engine);
	assert_int_equal(count(&engine), 0);
	assert_non_null(learn(&engine, 1));
	assert_int_equal(count(&engine), 1);
	sessions_forget(&engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests_name("known", tests, NULL, NULL);
}
