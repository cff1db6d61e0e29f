/* SPDX-License-Identifier: Apache-2.0 */
/* session_report: what a session is like, as JSON. */
#ifndef EXECPY_ENGINE_SESSION_REPORT_H
#define EXECPY_ENGINE_SESSION_REPORT_H

#include "engine/execpy.h"
#include "engine/json.h"

/* One object; its keys are in docs/sessions.md. And without its braces, for more keys. */
void session_report_members(const struct execpy_session_info *info, struct json *json);
void session_report_json(const struct execpy_session_info *info, struct json *json);
/* The same of a file of its workspace. */
void session_report_file_json(const struct execpy_session_file *file, struct json *json);
/* "file", "directory", "link" or "other". */
const char *session_report_file_kind(const struct execpy_session_file *file);

#endif
