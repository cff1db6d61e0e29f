/* SPDX-License-Identifier: Apache-2.0 */
/* tls: encryption of connections, by OpenSSL. */
#include "server/http/tls.h"
#include "server/http/connection.h"

#include "base/cleanup.h"
#include "base/memfile.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <string.h>

/* OpenSSL's own words for what went wrong, which name no secret. */
static int fail_ssl(struct error *err, const char *what)
{
	unsigned long number = ERR_get_error();
	const char *reason = number ? ERR_reason_error_string(number) : NULL;

	ERR_clear_error();
	return refuse(err, EINVAL, "tls: %s: %s", what, reason ? reason : "is not as it must be");
}

static BIO *open_pem(int fd, const char *what, struct bytes *text, struct error *err)
{
	BIO *bio;

	if (memfile_read(fd, what, TLS_FILE_BYTES_MAX, text, err) < 0)
		return NULL;
	bio = BIO_new_mem_buf(text->data, (int)text->length);
	if (!bio)
		fail(err, ENOMEM, "tls");
	return bio;
}

/* The server's own certificate, and behind it those that lead to a known one. */
static int use_certificate(SSL_CTX *context, BIO *pem, struct error *err)
{
	X509 *first = PEM_read_bio_X509_AUX(pem, NULL, NULL, NULL), *next;
	int r = first && SSL_CTX_use_certificate(context, first) == 1
			? 0
			: fail_ssl(err, "the certificate");

	X509_free(first);
	while (r == 0 && (next = PEM_read_bio_X509(pem, NULL, NULL, NULL)))
		if (SSL_CTX_add0_chain_cert(context, next) != 1) {
			X509_free(next);
			r = fail_ssl(err, "the certificate's chain");
		}
	ERR_clear_error(); /* the end of the file is one */
	return r;
}

/* There is nobody to type a passphrase. */
static int no_passphrase(char *text, int size, int writing, void *user)
{
	return -1;
}

static int use_key(SSL_CTX *context, BIO *pem, struct error *err)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_passphrase, NULL);
	int r = key && SSL_CTX_use_PrivateKey(context, key) == 1 &&
				SSL_CTX_check_private_key(context) == 1
			? 0
			: fail_ssl(err, "the private key");

	EVP_PKEY_free(key);
	return r;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *length,
			   const unsigned char *offered, unsigned int offered_length, void *user)
{
	static const unsigned char ours[] = "\x08http/1.1";

	return SSL_select_next_proto((unsigned char **)out, length, ours, sizeof ours - 1, offered,
				     offered_length) == OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int tls_context(int certificate, int private_key, void **ret_tls, struct error *err)
{
	autobytes certificate_text = {0}, key_text = {0};
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	BIO *certificate_pem = NULL, *key_pem = NULL;
	int r = 0;

	if (!context)
		return fail(err, ENOMEM, "tls");
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					     SSL_OP_CIPHER_SERVER_PREFERENCE);
	/* An idle connection keeps no buffers. */
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	certificate_pem = open_pem(certificate, "the certificate", &certificate_text, err);
	key_pem = open_pem(private_key, "the private key", &key_text, err);
	if (!certificate_pem || !key_pem)
		r = -err->number;
	if (r == 0)
		r = use_certificate(context, certificate_pem, err);
	if (r == 0)
		r = use_key(context, key_pem, err);
	BIO_free(certificate_pem);
	BIO_free(key_pem);
	if (key_text.data)
		explicit_bzero(key_text.data, key_text.length);
	if (r < 0) {
		SSL_CTX_free(context);
		return r;
	}
	*ret_tls = context;
	return 0;
}

void tls_context_free(void *tls)
{
	SSL_CTX_free(tls);
}

struct bufferevent *tls_buffers(struct http *http, int fd, void *tls)
{
	SSL *ssl = SSL_new(tls);
	struct bufferevent *buffers =
		ssl ? bufferevent_openssl_socket_new(http->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
						     BEV_OPT_CLOSE_ON_FREE)
		    : NULL;

	if (!buffers)
		SSL_free(ssl);
	return buffers;
}

void tls_say_end(struct bufferevent *buffers)
{
	SSL *ssl = bufferevent_openssl_get_ssl(buffers);

	if (ssl)
		SSL_shutdown(ssl);
	ERR_clear_error();
}
