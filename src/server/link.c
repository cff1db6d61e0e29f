/* SPDX-License-Identifier: Apache-2.0 */
/* link: see link.h. */
#include "server/link.h"

#include "base/bounds.h"
#include "base/bytes.h"

#include <errno.h>
#include <poll.h>

int link_send(int socket, enum message message, const char *name, const char *text, uint64_t number,
	      int fd, struct error *err)
{
	autobytes frame = {0};
	struct pollfd polled = {.fd = socket, .events = POLLOUT};
	size_t at = frame_begin(&frame, (uint16_t)message, 0);
	int r;

	if (name)
		frame_put_text(&frame, FIELD_NAME, name);
	if (text)
		frame_put_text(&frame, FIELD_TEXT, text);
	frame_put_number(&frame, FIELD_NUMBER, number);
	frame_end(&frame, at);
	if (frame.failed)
		return fail(err, ENOMEM, "link");
	while ((r = frame_send(socket, &frame, &fd, fd >= 0)) == -EAGAIN &&
	       poll(&polled, 1, WARDEN_TAKES_MS) > 0)
		;
	return r < 0 ? fail(err, -r, "link") : 0;
}
