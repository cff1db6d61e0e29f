/* SPDX-License-Identifier: Apache-2.0 */
/* test_template: what a template answers to PRELOAD, with a witness in the
 * warden's place. A keeper builds the jail and starts the real guest program. */
#include "unit.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/keeper.h"
#include "policy/templates.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#define NOBODY 1900000001u /* the keeper's id, if the caller is root */

static int guest_program = -1, keeper_program = -1;

/* What is loaded, and what comes of it. */
struct trial {
	const char *name, *modules[TEMPLATE_MODULES_MAX + 1], *code;
	char answer[512]; /* "loaded", with what could not be; or why it failed */
};

static int receive(int socket, struct bytes *buffer, struct frame *frame)
{
	int fds[FRAME_FDS_MAX];
	size_t count = 0;

	return frame_receive(socket, buffer, frame, fds, &count);
}

static void preload(int socket, const struct trial *trial)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_PRELOAD, 0);

	if (trial->name)
		frame_put_text(&frame, FIELD_NAME, trial->name);
	for (size_t i = 0; trial->modules[i]; i++)
		frame_put_text(&frame, FIELD_MODULE, trial->modules[i]);
	if (trial->code)
		frame_put_text(&frame, FIELD_CODE, trial->code);
	frame_end(&frame, at);
	assert_int_equal(frame_send(socket, &frame, NULL, 0), 0);
}

static void read_answer(int socket, struct trial *trial)
{
	autobytes buffer = {0};
	char text[400] = "";
	struct frame frame;

	if (receive(socket, &buffer, &frame) != 1) {
		snprintf(trial->answer, sizeof trial->answer, "nothing");
		return;
	}
	frame_text(&frame, FIELD_TEXT, text, sizeof text);
	snprintf(trial->answer, sizeof trial->answer, "%s%s%s",
		 frame.type == MESSAGE_LOADED ? "loaded" : "",
		 frame.type == MESSAGE_LOADED && text[0] ? "; " : "", text);
}

static int start(void *argument)
{
	static char *const environment[] = {
		(char *)"LC_ALL=C.UTF-8",
		(char *)"OMP_NUM_THREADS=1",
		(char *)"OPENBLAS_NUM_THREADS=1",
		(char *)"NUMEXPR_MAX_THREADS=1",
		(char *)"MPLBACKEND=module://_execpy_agg",
		(char *)"MPLCONFIGDIR=/var/cache/matplotlib",
		NULL,
	};
	struct trial *trial = argument;
	struct keeper_options options = {
		.outside_uid = geteuid() == 0 ? NOBODY : geteuid(),
		.outside_gid = geteuid() == 0 ? NOBODY : getegid(),
		.font_list = -1,
		.program = keeper_program,
		.environment = environment,
	};
	int keeper[2], template[2], pidfd, fds[3];
	autobytes buffer = {0};
	autobytes frame = {0};
	struct error err = {0};
	struct frame ready;
	size_t at;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, template), 0);
	if (geteuid() == 0)
		assert_int_equal(credentials_become(NOBODY, NOBODY, &err), 0);
	options.socket = keeper[1];
	if (keeper_start(&options, &pidfd, &err) < 0)
		fail_msg("%s", err.text);
	close(keeper[1]);
	if (receive(keeper[0], &buffer, &ready) != 1 || ready.type != MESSAGE_READY)
		fail_msg("the keeper is not ready");
	fds[0] = guest_program;
	fds[1] = template[1];
	fds[2] = memfd_create("log", MFD_CLOEXEC);
	at = frame_begin(&frame, MESSAGE_MAKE_TEMPLATE, 0);
	frame_end(&frame, at);
	assert_int_equal(frame_send(keeper[0], &frame, fds, 3), 0);
	close(template[1]);
	preload(template[0], trial);
	read_answer(template[0], trial);
	pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	return 0;
}

/* In a child of its own, which becomes somebody else. */
static const char *answer_to(struct trial *trial)
{
	struct trial *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(shared, MAP_FAILED);
	*shared = *trial;
	assert_int_equal(in_child(start, shared), 0);
	*trial = *shared;
	munmap(shared, sizeof *shared);
	return trial->answer;
}

static void a_guess_may_fail(void **state)
{
	struct trial trial = {.modules = {"json", "no_such_module"}};

	assert_string_equal(answer_to(&trial),
			    "loaded; import no_such_module: ModuleNotFoundError: "
			    "No module named 'no_such_module'");
}

static void a_named_template_must_have_its_modules(void **state)
{
	struct trial trial = {.name = "mine", .modules = {"json", "no_such_module"}};

	assert_string_equal(answer_to(&trial),
			    "template mine: import no_such_module: ModuleNotFoundError: "
			    "No module named 'no_such_module'");
}

static void a_warm_up_runs(void **state)
{
	struct trial trial = {
		.name = "mine",
		.modules = {"json"},
		.code = "import json\nassert json.loads('[1]') == [1] and __name__ == 'warm_up'\n"
			"print('dropped')\nimport warnings; warnings.warn('dropped')\n"
			"class C:\n pass\ndisplay(C)",
	};

	assert_string_equal(answer_to(&trial), "loaded");
}

static void a_failing_warm_up_is_named(void **state)
{
	static const struct {
		const char *code, *answer;
	} cases[] = {
		{"x = 1\n\ny = x / 0\n",
		 "template mine: warm-up, line 3: ZeroDivisionError: division by zero"},
		{"def f():\n  g()\nf()\n",
		 "template mine: warm-up, line 3: NameError: name 'g' is not defined"},
		{"x = (\n",
		 "template mine: warm-up: SyntaxError: '(' was never closed (<warm-up>, line 1)"},
		{"raise SystemExit(3)", "template mine: warm-up, line 1: SystemExit: 3"},
		{"import threading, time\n"
		 "threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n",
		 "template mine: template: the warm-up started 1 threads"},
		{"file = open('/etc/hostname')\nimport builtins; builtins.kept = file\n",
		 "template mine: template: the warm-up left 1 descriptors open (/etc/hostname)"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct trial trial = {.name = "mine", .code = cases[i].code};

		assert_string_equal(answer_to(&trial), cases[i].answer);
	}
}

static void ours_can_be_loaded(void **state)
{
	for (size_t i = 0; i < TEMPLATE_COUNT; i++) {
		struct trial trial = {.name = template_infos[i].name,
				      .code = template_infos[i].warm_up};

		memcpy(trial.modules, template_infos[i].modules, sizeof trial.modules);
		assert_string_equal(answer_to(&trial), "loaded");
	}
}

static void names_are_found(void **state)
{
	assert_string_equal(template_find("plot")->modules[2], "matplotlib.pyplot");
	assert_null(template_find("auto"));
	assert_null(template_find(""));
}

static void the_smallest_that_covers(void **state)
{
	static const struct {
		const char *modules[4], *name;
	} cases[] = {
		{{NULL}, "bare"},
		{{"json"}, "bare"},
		{{"numpy"}, "numpy"},
		{{"scipy", "numpy"}, "numpy"},
		{{"pandas"}, "pandas"},
		{{"pandas", "numpy"}, "pandas"},
		{{"matplotlib.pyplot"}, "plot"},
		{{"numpy", "matplotlib.pyplot"}, "plot"},
		{{"matplotlib.pyplot", "numpy", "json"}, "plot"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		size_t count = 0;

		while (cases[i].modules[count])
			count++;
		assert_string_equal(template_covering(cases[i].modules, count)->name,
				    cases[i].name);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(the_smallest_that_covers),
		cmocka_unit_test(a_guess_may_fail),
		cmocka_unit_test(a_named_template_must_have_its_modules),
		cmocka_unit_test(a_warm_up_runs),
		cmocka_unit_test(a_failing_warm_up_is_named),
		cmocka_unit_test(ours_can_be_loaded),
	};

	guest_program = open(argc > 1 ? argv[1] : "execpy-guest", O_RDONLY | O_CLOEXEC);
	keeper_program = open(argc > 2 ? argv[2] : "execpy-keeper", O_RDONLY | O_CLOEXEC);
	if (guest_program < 0 || keeper_program < 0) {
		perror("the programs of the jail");
		return 1;
	}
	return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
