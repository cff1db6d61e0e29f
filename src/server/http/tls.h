/* SPDX-License-Identifier: Apache-2.0 */
/* tls: encryption of connections. */
#ifndef EXECPY_SERVER_HTTP_TLS_H
#define EXECPY_SERVER_HTTP_TLS_H

#include "base/error.h"

struct bufferevent;
struct http;

/* What connections are encrypted with, from two PEM files; to be freed. */
int tls_context(int certificate, int private_key, void **ret_tls, struct error *err);
void tls_context_free(void *tls); /* connections keep what they need of it; NULL-safe */
/* A connection's buffers: NULL when memory is out. */
struct bufferevent *tls_buffers(struct http *http, int fd, void *tls);
/* Tells the client that what it got is all: before the connection is closed. */
void tls_say_end(struct bufferevent *buffers);

#endif
