/* SPDX-License-Identifier: Apache-2.0 */
/* main: the guest program's first lines, inside the jail.
 *
 * It is executed by the keeper with its socket to the warden as descriptor 3,
 * under the template's seccomp filter and without capabilities. Started in any
 * other way it refuses. */
#include "guest/guest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WARDEN_SOCKET 3

static int check_confinement(struct error *err)
{
#if !defined(UNSAFE_WITHOUT_SECCOMP)
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		return refuse(err, EPERM, "guest: no seccomp filter is in force");
#endif
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return refuse(err, EPERM, "guest: no_new_privs is not set");
#if !defined(UNSAFE_WITHOUT_MOUNTS)
	if (access("/etc/shadow", F_OK) == 0 || access("/workspace", F_OK) != 0)
		return refuse(err, EPERM, "guest: this is not the jail's root");
#endif
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(err, errno, "guest: dumpable");
	return 0;
}

static void say_failed(const struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

	frame_put_text(&frame, FIELD_TEXT, err->text);
	frame_put_number(&frame, FIELD_ERRNO, (uint64_t)err->number);
	frame_end(&frame, at);
	frame_send(WARDEN_SOCKET, &frame, NULL, 0);
}

int main(void)
{
	struct error err = {0};
	struct bytes request = {0};

	if (check_confinement(&err) < 0) {
		fprintf(stderr, "execpy-guest: %s\n", err.text);
		say_failed(&err);
		return 1;
	}
	memory_prepare();
	PyImport_AppendInittab(FIGURES_BACKEND, figures_backend_init);
	if (stopframes_prepare(&err) < 0 || audit_install(&err) < 0 ||
	    interpreter_start(&err) < 0 || display_install(&err) < 0 || ipython_install(&err) < 0 ||
	    run_prepare(&err) < 0 || print_install(&err) < 0) {
		say_failed(&err);
		return 1;
	}
	interpreter_prepare_caches();
	if (verifier_init(&err) < 0) {
		say_failed(&err);
		return 1;
	}
	if (template_serve(WARDEN_SOCKET, &request, &err) < 0) {
		say_failed(&err);
		return 1;
	}
	run_request(bytes_span(&request));
}
