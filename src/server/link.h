/* SPDX-License-Identifier: Apache-2.0 */
/* link: between the daemon and its HTTP server: settings one way, questions the other.
 *
 * Frames (proto/frame.h) over a SEQPACKET pair. The daemon sends settings, one a frame,
 * and MESSAGE_APPLY behind them; each time they are all there is. The server asks for
 * connections to the warden, which it may not make itself. When one of the two is gone
 * the other sees the end of the link. */
#ifndef EXECPY_SERVER_LINK_H
#define EXECPY_SERVER_LINK_H

#include "base/error.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <stdint.h>

#define LINK_SOCKET 3 /* of the server's process */

/* What a setting is about; `text`, `number` and the descriptor as it needs. */
#define SETTING_LISTENER      "listener"      /* fd */
#define SETTING_NUMBER        "number"        /* text: its key; number */
#define SETTING_HOST          "host"          /* text */
#define SETTING_COMPAT        "compat"        /* text */
#define SETTING_POLICY        "policy"        /* fd; text: its path */
#define SETTING_COMPAT_POLICY "compat_policy" /* text */
#define SETTING_KEYS          "keys"          /* fd; text: its path */
#define SETTING_CERTIFICATE   "certificate"   /* fd */
#define SETTING_PRIVATE_KEY   "private_key"   /* fd */
#define SETTING_LOG           "log"           /* fd */
#define SETTING_AUDIT         "audit"         /* fd */
#define SETTING_IDENTITY      "identity"      /* number: the id to become */

/* One message; `text` and `fd` may be NULL and -1. Waits for room. */
int link_send(int socket, enum message message, const char *name, const char *text, uint64_t number,
	      int fd, struct error *err);

#endif
