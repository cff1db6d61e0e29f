/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config: any bytes as a daemon's configuration, and as its messages. */
#include "policy/config.h"

#include "base/cleanup.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static struct frame frame_of(const struct bytes *bytes)
{
	struct reader reader = reader_of(bytes_span(bytes));
	struct frame frame;

	MUST(frame_next(&reader, FRAME_MESSAGE_MAX, &frame) == 1);
	return frame;
}

/* What was taken is told to the warden, which takes it as well. */
static void tell(const struct daemon_config *config)
{
	autobytes once = {0}, twice = {0};
	struct daemon_numbers numbers;
	struct error err = {0};
	struct frame frame;

	MUST(config->template_count > 0 && config->numbers.runs > 0);
	for (size_t i = 0; i < config->template_count; i++) {
		struct template_config copy;

		bytes_clear(&once);
		bytes_clear(&twice);
		config_encode_template(&config->templates[i], &once);
		frame = frame_of(&once);
		MUST(config_decode_template(&frame, &copy, &err) == 0);
		config_encode_template(&copy, &twice);
		MUST(once.length == twice.length && once.length <= FRAME_MESSAGE_MAX &&
		     memcmp(once.data, twice.data, once.length) == 0);
		template_config_free(&copy);
	}
	bytes_clear(&once);
	config_encode_serve(&config->numbers, &once);
	frame = frame_of(&once);
	MUST(config_decode_serve(&frame, &numbers, &err) == 0);
	MUST(memcmp(&numbers, &config->numbers, sizeof numbers) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct frame frame = {.body = {data, size}};
	struct template_config template = {0};
	struct daemon_numbers numbers;
	autoconfig config = {0};
	struct error err = {0};
	int r = config_parse((struct span){data, size}, "serve.yaml", &config, &err);

	MUST(r == 0 || (err.number && err.text[0] && config.template_count == 0));
	if (r == 0)
		tell(&config);
	err = (struct error){0};
	r = config_decode_template(&frame, &template, &err);
	MUST(r == 0 || (err.number == -r && err.text[0]));
	template_config_free(&template);
	err = (struct error){0};
	r = config_decode_serve(&frame, &numbers, &err);
	MUST(r == 0 || (err.number == -r && err.text[0]));
	return 0;
}
