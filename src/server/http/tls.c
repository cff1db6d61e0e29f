/* SPDX-License-Identifier: Apache-2.0 */
/* tls: encryption of connections, by OpenSSL. */
#include "server/http/connection.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/ssl.h>

struct bufferevent *tls_buffers(struct http *http, int fd, void *tls)
{
	SSL *ssl = SSL_new(tls);

	return ssl ? bufferevent_openssl_socket_new(http->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
						    BEV_OPT_CLOSE_ON_FREE)
		   : NULL;
}

void tls_say_end(struct bufferevent *buffers)
{
	SSL *ssl = bufferevent_openssl_get_ssl(buffers);

	if (ssl)
		SSL_shutdown(ssl);
}
