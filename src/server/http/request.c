/* SPDX-License-Identifier: Apache-2.0 */
/* request: see request.h.
 *
 * Theory of operation. Two readers that disagree about where a request ends are what
 * smuggling needs, so there is one spelling of everything that frames a request, and
 * anything else is refused, also where RFC 9112 lets a server be lenient. The head is
 * scanned byte by byte as it comes: a line ends in CR LF, and no other control
 * character than a tab inside of a field's value gets any further. llhttp then takes the
 * whole head apart, in its strict mode; what it leaves open (how often a field may
 * stand, what a length may look like) is decided here. The body's framing is decoded
 * here, too: llhttp 8.1 lets a chunk's size line end in a lone CR. */
#include "server/http/request.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <llhttp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- the scan ------------------------------------------------------------------ */

static bool is_control(uint8_t byte)
{
	return (byte < ' ' && byte != '\t') || byte == 0x7f;
}

/* Whether `byte` may follow what was scanned. */
static bool may_follow(const struct request *request, uint8_t byte, const char **why)
{
	bool at_start = request->head.length == 0;
	uint8_t before = request->last[2];

	if (before == '\r' && byte != '\n')
		*why = "a CR that no LF follows";
	else if (byte == '\n' && before != '\r')
		*why = "a line that ends without CR";
	else if (byte != '\n' && byte != '\r' && is_control(byte))
		*why = "a control character";
	else if (at_start && (byte == '\r' || byte == ' ' || byte == '\t'))
		*why = "blanks before the request";
	else if (before == '\n' && (byte == ' ' || byte == '\t'))
		*why = "a line that continues the one before it";
	else
		return true;
	return false;
}

static bool is_whole(const struct request *request, uint8_t byte)
{
	return byte == '\n' && request->last[2] == '\r' && request->last[1] == '\n' &&
	       request->last[0] == '\r';
}

size_t request_take_head(struct request *request, struct span bytes, bool *ret_whole,
			 unsigned *ret_refused, const char **why)
{
	bool in_line =
		!request->head.length || !memchr(request->head.data, '\n', request->head.length);

	*ret_whole = false;
	*ret_refused = 0;
	for (size_t i = 0; i < bytes.length; i++) {
		uint8_t byte = bytes.data[i];

		if (!may_follow(request, byte, why)) {
			*ret_refused = 400;
			return i;
		}
		if (bytes_append(&request->head, &byte, 1) < 0) {
			*why = "no memory";
			*ret_refused = 503;
			return i;
		}
		*ret_whole = is_whole(request, byte);
		request->last[0] = request->last[1];
		request->last[1] = request->last[2];
		request->last[2] = byte;
		if (*ret_whole)
			return i + 1;
		in_line = in_line && byte != '\n';
		if (in_line && request->head.length > HTTP_LINE_BYTES_MAX) {
			*why = "the request line is too long";
			*ret_refused = 414;
			return i + 1;
		}
		if (request->head.length >= HTTP_HEAD_BYTES_MAX) {
			*why = "the header is too large";
			*ret_refused = 431;
			return i + 1;
		}
	}
	return bytes.length;
}

/* --- llhttp -------------------------------------------------------------------- */

struct parse {
	llhttp_t parser;
	struct request *request;
	size_t url, url_length;
	struct {
		size_t name, name_length, value, value_length;
	} fields[HTTP_FIELDS_MAX];
	unsigned count;
	bool too_many, in_value;
};

static struct parse *parse_of(llhttp_t *parser)
{
	return parser->data;
}

static size_t offset_of(const struct parse *parse, const char *at)
{
	return (size_t)((const uint8_t *)at - parse->request->head.data);
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	struct parse *parse = parse_of(parser);

	if (parse->url_length == 0)
		parse->url = offset_of(parse, at);
	parse->url_length += length;
	return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t length)
{
	struct parse *parse = parse_of(parser);

	if (parse->count == 0 || parse->in_value) {
		if (parse->count == HTTP_FIELDS_MAX) {
			parse->too_many = true;
			return HPE_USER;
		}
		parse->fields[parse->count++].name = offset_of(parse, at);
		parse->in_value = false;
	}
	parse->fields[parse->count - 1].name_length += length;
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	struct parse *parse = parse_of(parser);

	if (!parse->in_value)
		parse->fields[parse->count - 1].value = offset_of(parse, at);
	parse->in_value = true;
	parse->fields[parse->count - 1].value_length += length;
	return 0;
}

static int on_field_complete(llhttp_t *parser)
{
	parse_of(parser)->in_value = true; /* also when the value is empty */
	return 0;
}

/* Stops here: 1 says that no body follows, which is for us to read. */
static int on_head(llhttp_t *parser)
{
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value = on_value,
	.on_header_value_complete = on_field_complete,
	.on_headers_complete = on_head,
};

static char *text_at(struct request *request, size_t at, size_t length)
{
	static char empty[1];

	if (length == 0)
		return empty;
	request->head.data[at + length] = '\0';
	return (char *)request->head.data + at;
}

static void take_fields(struct request *request, const struct parse *parse)
{
	for (unsigned i = 0; i < parse->count; i++) {
		struct request_field *field = &request->fields[i];
		size_t length = parse->fields[i].value_length;

		field->name = text_at(request, parse->fields[i].name, parse->fields[i].name_length);
		for (char *letter = field->name; *letter; letter++)
			if (*letter >= 'A' && *letter <= 'Z')
				*letter += 'a' - 'A';
		while (length > 0 &&
		       memchr(" \t", request->head.data[parse->fields[i].value + length - 1], 2))
			length--;
		field->value = text_at(request, parse->fields[i].value, length);
	}
	request->field_count = parse->count;
}

/* --- what the fields say ------------------------------------------------------- */

const struct request_field *request_field(const struct request *request, const char *name,
					  const struct request_field *after)
{
	for (unsigned i = after ? (unsigned)(after - request->fields) + 1 : 0;
	     i < request->field_count; i++)
		if (strcmp(request->fields[i].name, name) == 0)
			return &request->fields[i];
	return NULL;
}

/* Fields of which two would say two things. */
static const char *const once[] = {"host",          "content-length", "transfer-encoding",
				   "authorization", "content-type",   "content-encoding",
				   "expect",        "origin",         "range"};

static bool parse_length(const char *text, uint64_t *ret_length)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || text[digits] || digits > 15 || (text[0] == '0' && digits > 1))
		return false;
	*ret_length = strtoull(text, NULL, 10);
	return true;
}

/* One token of a list such as that of Connection. */
static bool has_token(const struct request *request, const char *name, const char *token)
{
	const struct request_field *field = NULL;

	while ((field = request_field(request, name, field)))
		for (const char *at = field->value; *at;) {
			size_t length = strcspn(at, ", \t");

			if (length == strlen(token) && strncasecmp(at, token, length) == 0)
				return true;
			at += length;
			at += strspn(at, ", \t");
		}
	return false;
}

static const char *value_of(const struct request *request, const char *name)
{
	const struct request_field *field = request_field(request, name, NULL);

	return field ? field->value : NULL;
}

static unsigned refuse_for(const char **why, unsigned status, const char *reason)
{
	*why = reason;
	return status;
}

static unsigned read_framing(struct request *request, const char **why)
{
	const char *length = value_of(request, "content-length");
	const char *encoding = value_of(request, "transfer-encoding");
	const char *expect = value_of(request, "expect");

	for (size_t i = 0; i < ARRAY_LENGTH(once); i++) {
		const struct request_field *first = request_field(request, once[i], NULL);

		if (first && request_field(request, once[i], first))
			return refuse_for(why, 400, "a field that may stand there once does twice");
	}
	request->host = value_of(request, "host");
	if (!request->host || !request->host[0])
		return refuse_for(why, 400, "no Host");
	if (length && encoding)
		return refuse_for(why, 400, "both Content-Length and Transfer-Encoding");
	if (length && !parse_length(length, &request->length))
		return refuse_for(why, 400, "Content-Length is no number");
	if (encoding && (strcasecmp(encoding, "chunked") != 0 || request->is_1_0))
		return refuse_for(why, 400, "a Transfer-Encoding other than chunked");
	request->chunked = encoding;
	if (expect && strcasecmp(expect, "100-continue") != 0)
		return refuse_for(why, 417, "an expectation other than 100-continue");
	request->expects_continue = expect && !request->is_1_0;
	request->keep_alive = !has_token(request, "connection", "close") &&
			      (!request->is_1_0 || has_token(request, "connection", "keep-alive"));
	return 0;
}

/* --- the request line ---------------------------------------------------------- */

static int hexadecimal(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool request_decode(char *text)
{
	char *out = text;
	struct span left;

	for (const char *in = text; *in; in++) {
		int high, low;

		if (*in != '%') {
			*out++ = *in;
			continue;
		}
		high = hexadecimal(in[1]);
		low = high < 0 ? -1 : hexadecimal(in[2]);
		if (low < 0 || high * 16 + low == 0)
			return false;
		*out++ = (char)(high * 16 + low);
		in += 2;
	}
	*out = '\0';
	left = (struct span){(uint8_t *)text, (size_t)(out - text)};
	while (left.length > 0) {
		size_t length = utf8_sequence(left);

		if (length == 0)
			return false;
		left.data += length;
		left.length -= length;
	}
	return true;
}

/* Segments are decoded one by one when they are matched (route.c): a %2F is no
 * separator. What must not be in any of them is looked for here. */
static bool path_is_good(const char *path)
{
	while (*path) {
		size_t length = strcspn(++path, "/");
		autofree char *segment = strndup(path, length);

		if (!segment || !request_decode(segment) || strcmp(segment, ".") == 0 ||
		    strcmp(segment, "..") == 0)
			return false;
		path += length;
	}
	return true;
}

static unsigned read_target(struct request *request, char *target, const char **why)
{
	if (target[0] != '/')
		return refuse_for(why, 400, "the target is not a path");
	for (const char *at = target; *at; at++)
		if ((uint8_t)*at <= ' ' || (uint8_t)*at >= 0x7f || *at == '#')
			return refuse_for(why, 400,
					  "a character in the target that must be encoded");
	request->path = target;
	request->query = strchr(target, '?');
	if (request->query)
		*request->query++ = '\0';
	if (!path_is_good(request->path))
		return refuse_for(why, 400, "a path with dot segments, or one that is not UTF-8");
	return 0;
}

/* A field's name is a token, and the colon follows at once: llhttp takes blanks in it. */
static unsigned check_names(const struct request *request, const char **why)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789!#$%&'*+-.^_`|~";
	const char *end = (const char *)request->head.data + request->head.length - 2;
	const char *line = memchr(request->head.data, '\n', request->head.length);

	while (++line < end) {
		size_t length = strspn(line, letters);

		if (length == 0 || line[length] != ':')
			return refuse_for(why, 400, "a malformed header");
		line = memchr(line, '\n', (size_t)(end - line));
	}
	return 0;
}

/* Exactly METHOD SP target SP HTTP/D.D: llhttp takes more than one space. */
static unsigned check_line(const struct request *request, const char **why)
{
	const char *line = (const char *)request->head.data;
	const char *end = memchr(line, '\r', request->head.length);
	const char *first = memchr(line, ' ', (size_t)(end - line));
	const char *second = first ? memchr(first + 1, ' ', (size_t)(end - first - 1)) : NULL;

	if (memchr(line, '\t', (size_t)(end - line)) || !second || second == first + 1 ||
	    end - second != 9 || memcmp(second, " HTTP/", 6) != 0 || second[7] != '.' ||
	    second[6] < '0' || second[6] > '9' || second[8] < '0' || second[8] > '9')
		return refuse_for(why, 400, "no request line");
	if (second[6] != '1' || second[8] > '1')
		return refuse_for(why, 505, "neither HTTP/1.1 nor HTTP/1.0");
	return 0;
}

static unsigned status_of(llhttp_errno_t number, const struct parse *parse, const char **why)
{
	if (parse->too_many)
		return refuse_for(why, 431, "too many fields");
	if (number == HPE_INVALID_METHOD)
		return refuse_for(why, 501, "a method that is not known here");
	return refuse_for(why, 400, "a malformed header");
}

unsigned request_parse(struct request *request, const char **why)
{
	autofree struct parse *parse = calloc(1, sizeof *parse);
	llhttp_errno_t number;
	unsigned refused;

	if (!parse)
		return refuse_for(why, 503, "no memory");
	refused = check_line(request, why);
	if (!refused)
		refused = check_names(request, why);
	if (refused)
		return refused;
	llhttp_init(&parse->parser, HTTP_REQUEST, &settings);
	parse->parser.data = parse;
	parse->request = request;
	number = llhttp_execute(&parse->parser, (const char *)request->head.data,
				request->head.length);
	if (number != HPE_PAUSED)
		return status_of(number, parse, why);
	request->method = llhttp_method_name(llhttp_get_method(&parse->parser));
	request->is_1_0 = llhttp_get_http_minor(&parse->parser) == 0;
	take_fields(request, parse);
	refused = read_framing(request, why);
	if (refused)
		return refused;
	return read_target(request, text_at(request, parse->url, parse->url_length), why);
}

void request_free(struct request *request)
{
	bytes_free(&request->head);
	*request = (struct request){0};
}

/* --- chunks -------------------------------------------------------------------- */

/* The next state after one byte of framing; -1: it is none. */
static int chunk_step(struct chunks *chunks, uint8_t byte)
{
	int digit;

	switch (chunks->state) {
	case CHUNK_SIZE_FIRST:
	case CHUNK_SIZE:
		digit = byte < 0x80 ? hexadecimal((char)byte) : -1;
		if (digit >= 0) {
			if (++chunks->digits > HTTP_CHUNK_DIGITS_MAX)
				return -1;
			chunks->left = chunks->left * 16 + (uint64_t)digit;
			return CHUNK_SIZE;
		}
		if (chunks->state == CHUNK_SIZE_FIRST)
			return -1;
		return byte == ';' ? CHUNK_EXTENSION : byte == '\r' ? CHUNK_SIZE_LF : -1;
	case CHUNK_EXTENSION:
		if (byte == '\r')
			return CHUNK_SIZE_LF;
		return is_control(byte) || ++chunks->overhead > HTTP_CHUNK_OVERHEAD_MAX
			       ? -1
			       : CHUNK_EXTENSION;
	case CHUNK_SIZE_LF:
		chunks->digits = 0;
		if (byte != '\n')
			return -1;
		return chunks->left ? CHUNK_DATA : CHUNK_LAST_CR;
	case CHUNK_DATA_CR:
		return byte == '\r' ? CHUNK_DATA_LF : -1;
	case CHUNK_DATA_LF:
		return byte == '\n' ? CHUNK_SIZE_FIRST : -1;
	case CHUNK_LAST_CR:
		if (byte == '\r')
			return CHUNK_LAST_LF;
		return -1; /* nothing that we read is ever said in a trailer */
	case CHUNK_LAST_LF:
		return byte == '\n' ? CHUNK_END : -1;
	default:
		return -1;
	}
}

long chunks_take(struct chunks *chunks, struct span bytes, struct span *ret_data)
{
	size_t at = 0;

	*ret_data = (struct span){0};
	while (at < bytes.length && chunks->state != CHUNK_END) {
		int next;

		if (chunks->state == CHUNK_DATA) {
			size_t length = bytes.length - at;

			if (length > chunks->left)
				length = (size_t)chunks->left;
			*ret_data = (struct span){bytes.data + at, length};
			chunks->left -= length;
			if (chunks->left == 0)
				chunks->state = CHUNK_DATA_CR;
			return (long)(at + length);
		}
		next = chunk_step(chunks, bytes.data[at++]);
		if (next < 0)
			return -1;
		chunks->state = (enum chunk_state)next;
	}
	return (long)at;
}
