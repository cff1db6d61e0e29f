/* SPDX-License-Identifier: Apache-2.0 */
/* result_bundle: the value and the displays of a run, for users of the library.
 *
 * What is handed out lies in the copy of the cell's own words, so it is read with
 * the bounded reader each time, and a type that is there twice counts once. */
#include "engine/engine.h"

size_t execpy_result_displays(const struct execpy_result *result)
{
	return result->display_count;
}

bool execpy_result_bundle(const struct execpy_result *result, int index, const char *mime,
			  const void **ret_data, size_t *ret_length)
{
	bool display = index >= 0 && (size_t)index < result->display_count;
	struct reader fields = reader_of(display ? result->displays[index] : result->value);
	struct field field;
	bool wanted = false;

	if (index >= 0 && !display)
		return false;
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_MIME) {
			wanted = span_equals(field.value, mime);
		} else if (field.name == FIELD_DATA && wanted) {
			*ret_data = field.value.data;
			*ret_length = field.value.length;
			return true;
		}
	}
	return false;
}
