/* SPDX-License-Identifier: Apache-2.0 */
/* notify: tells a service manager how the daemon is (sd_notify(3)). */
#ifndef EXECPY_SERVER_NOTIFY_H
#define EXECPY_SERVER_NOTIFY_H

/* Sends `words`, such as "READY=1", to the socket that $NOTIFY_SOCKET names.
 * Without one, or when it cannot be reached, nothing happens. */
void notify(const char *words);
/* The beginning of a reload, which wants the time as well. */
void notify_reloading(void);

#endif
