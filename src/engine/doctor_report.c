/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_report: the doctor's report as JSON. */
#include "engine/doctor.h"
#include "engine/json.h"

const char *doctor_state_name(enum doctor_state state)
{
	static const char *const names[] = {
		[DOCTOR_HOLDS] = "ok", [DOCTOR_MISSING] = "missing", [DOCTOR_INFORMATION] = "info"};

	return names[state];
}

int doctor_json(const struct doctor *doctor, struct bytes *out)
{
	struct json json = {.out = out};

	emit_begin_object(&json);
	emit_key(&json, "complete");
	emit_bool(&json, doctor->missing == 0);
	emit_count(&json, "missing", doctor->missing);
	emit_key(&json, "version");
	emit_string(&json, execpy_version());
	emit_key(&json, "rows");
	emit_begin_array(&json);
	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_row *row = &doctor->rows[i];

		emit_begin_object(&json);
		emit_key(&json, "layer");
		emit_string(&json, row->layer);
		emit_key(&json, "asked");
		emit_string(&json, row->asked);
		emit_key(&json, "state");
		emit_string(&json, doctor_state_name(row->state));
		emit_key(&json, "got");
		emit_string(&json, row->got);
		emit_key(&json, "proof");
		emit_string(&json, row->proof);
		emit_key(&json, "remedy");
		emit_string(&json, row->remedy[0] ? row->remedy : NULL);
		emit_end_object(&json);
	}
	emit_end_array(&json);
	emit_end_object(&json);
	return out->failed;
}
