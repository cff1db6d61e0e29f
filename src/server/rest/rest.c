/* SPDX-License-Identifier: Apache-2.0 */
/* rest: the routes of the REST API, and the part of the server that it is. */
#include "server/rest/rest.h"

#include <stdlib.h>

/* GET answers HEAD, too. Longer literal paths stand before those that would match them. */
static const struct route routes[] = {
	{"POST", "/v1/run", ROUTE_TEXT, REST_BODY_BYTES_MAX, false, rest_handle_run},
	{"GET", "/v1/runs/{id}", ROUTE_NO_BODY, 0, false, rest_get_run},
	{"DELETE", "/v1/runs/{id}", ROUTE_NO_BODY, 0, false, rest_delete_run},
	{"POST", "/v1/batch", ROUTE_TEXT, REST_BODY_BYTES_MAX, false, rest_handle_batch},
	{"POST", "/v1/check", ROUTE_TEXT, REST_CODE_BODY_BYTES, false, rest_handle_check},
	{"POST", "/v1/probe", ROUTE_TEXT, REST_CODE_BODY_BYTES, false, rest_handle_probe},
	{"GET", "/v1/info", ROUTE_NO_BODY, 0, false, rest_handle_info},
	{"GET", "/v1/sessions", ROUTE_NO_BODY, 0, false, rest_list_sessions},
	{"POST", "/v1/sessions", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false, rest_open_session},
	{"GET", "/v1/sessions/{id}", ROUTE_NO_BODY, 0, false, rest_get_session},
	{"DELETE", "/v1/sessions/{id}", ROUTE_NO_BODY, 0, false, rest_end_session},
	{"POST", "/v1/sessions/{id}/run", ROUTE_TEXT, REST_BODY_BYTES_MAX, false,
	 rest_handle_session_run},
	{"POST", "/v1/sessions/{id}/fork", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false, rest_fork},
	{"POST", "/v1/sessions/{id}/checkpoint", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false,
	 rest_checkpoint},
	{"DELETE", "/v1/sessions/{id}/checkpoints/{name}", ROUTE_NO_BODY, 0, false,
	 rest_drop_checkpoint},
	{"POST", "/v1/sessions/{id}/rollback", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false,
	 rest_rollback},
	{"POST", "/v1/sessions/{id}/undo", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false, rest_undo},
	{"POST", "/v1/sessions/{id}/interrupt", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false,
	 rest_interrupt},
	{"GET", "/v1/sessions/{id}/files", ROUTE_NO_BODY, 0, false, rest_list_files},
	{"GET", "/v1/sessions/{id}/files.tar", ROUTE_NO_BODY, 0, false, rest_get_tar},
	{"PUT", "/v1/sessions/{id}/files.tar", ROUTE_FILE, REST_FILE_BYTES_MAX, false,
	 rest_put_tar},
	{"GET", "/v1/sessions/{id}/files/{path*}", ROUTE_NO_BODY, 0, false, rest_get_file},
	{"PUT", "/v1/sessions/{id}/files/{path*}", ROUTE_FILE, REST_FILE_BYTES_MAX, false,
	 rest_put_file},
	{"DELETE", "/v1/sessions/{id}/files/{path*}", ROUTE_NO_BODY, 0, false, rest_delete_file},
	{0},
};

static int begin(struct server *server, struct error *err)
{
	struct rest *rest = calloc(1, sizeof *rest);

	if (!rest)
		return fail(err, ENOMEM, "rest");
	rest->server = server;
	TAILQ_INIT(&rest->calls);
	TAILQ_INIT(&rest->kept);
	server->rest = rest;
	return 0;
}

static void end(struct server *server)
{
	struct rest *rest = server->rest;

	if (!rest)
		return;
	while (!TAILQ_EMPTY(&rest->calls))
		rest_call_free(TAILQ_FIRST(&rest->calls));
	kept_free(rest);
	free(rest->packages);
	free(rest->python);
	free(rest);
	server->rest = NULL;
}

const struct server_part rest_part = {.name = "rest", .routes = routes, .begin = begin, .end = end};
