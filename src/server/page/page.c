/* SPDX-License-Identifier: Apache-2.0 */
/* page: GET / and what it loads: files in the program, with the policies that hold a
 * browser to what they need.
 *
 * Theory of operation. The page is static and knows nothing, so it is open without a key;
 * what it shows it asks for as any other client. There are two policies. The page's own
 * allows scripts, styles and requests of this origin, and no other way to run or load
 * anything; with trusted types it cannot make documents or scripts of text at all. What a
 * guest made is shown by guest.html (guest.js says how), which may have inline styles and
 * data: pictures, and may ask nobody for anything.
 *
 * Browsers ask each time whether what they have is still true (no-cache and a tag made of
 * the content): another version of execpy never meets files of the one before. */
#include "server/page/assets.h"
#include "server/server.h"

#include <string.h>

#define PAGE_POLICY                                                                       \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " \
	"connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "     \
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
#define GUEST_POLICY                                                                \
	"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " \
	"img-src data:; font-src data:; base-uri 'none'; form-action 'none'; "      \
	"frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types guest"
/* Nothing of a device is ever needed, nor by what a guest's markup holds. */
#define NO_DEVICES                                                                      \
	"accelerometer=(), autoplay=(), camera=(), display-capture=(), fullscreen=(), " \
	"geolocation=(), gyroscope=(), hid=(), microphone=(), midi=(), payment=(), "    \
	"serial=(), usb=()"

static const struct page_asset *find_asset(const char *name)
{
	for (const struct page_asset *asset = page_assets; asset->name; asset++)
		if (strcmp(asset->name, name) == 0)
			return asset;
	return NULL;
}

/* Whether If-None-Match names what the client has as what there is (RFC 9110, 13.1.2). */
static bool client_has(struct exchange *exchange, const struct page_asset *asset)
{
	const char *tags = exchange_header(exchange, "if-none-match");

	return tags && (strcmp(tags, "*") == 0 || strstr(tags, asset->tag));
}

static void answer(struct exchange *exchange, const struct page_asset *asset)
{
	bool guest = strcmp(asset->name, "guest.html") == 0;

	exchange_field(exchange, "ETag", "%s", asset->tag);
	exchange_field(exchange, "Cache-Control", "no-cache");
	exchange_field(exchange, "Content-Security-Policy", "%s",
		       guest ? GUEST_POLICY : PAGE_POLICY);
	exchange_field(exchange, "Cross-Origin-Opener-Policy", "same-origin");
	exchange_field(exchange, "Cross-Origin-Resource-Policy", "same-origin");
	exchange_field(exchange, "Permissions-Policy", "%s", NO_DEVICES);
	exchange_field(exchange, "Referrer-Policy", "no-referrer");
	if (client_has(exchange, asset)) {
		exchange_begin(exchange, 304, NULL, 0);
	} else {
		exchange_begin(exchange, 200, asset->media_type, (int64_t)asset->length);
		exchange_write(exchange,
			       (struct span){(const uint8_t *)asset->data, asset->length});
	}
	exchange_end(exchange);
}

static void handle_page(struct exchange *exchange)
{
	answer(exchange, find_asset("index.html"));
}

static void handle_asset(struct exchange *exchange)
{
	const char *name = exchange_parameter(exchange, "name");
	const struct page_asset *asset = find_asset(name);

	/* Its links are relative to where it is. */
	if (!asset || strcmp(name, "index.html") == 0)
		exchange_problem(exchange, 404, "the page has no file `%s`", name);
	else
		answer(exchange, asset);
}

static const struct route routes[] = {
	{"GET", "/", ROUTE_NO_BODY, 0, true, handle_page},
	{"GET", "/page/{name}", ROUTE_NO_BODY, 0, true, handle_asset},
	{0},
};

const struct server_part page_part = {.name = "page", .routes = routes};
