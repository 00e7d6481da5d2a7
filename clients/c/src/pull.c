// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Interests and Data over a node: packets, requests, registration. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "pull.h"

enum { LP_PACKET = 100, LP_TOKEN = 98, LP_FRAGMENT = 80, LP_NACK = 800, COMMAND_MS = 4000, LIFETIME_MS = 4000 };

int onym_next(const uint8_t **at, const uint8_t *end, struct onym_element *element)
{
	uint64_t len;

	element->at = *at;
	if (onym_get_tl(at, end, &element->type, &len))
		return -EBADMSG;
	element->value = *at;
	*at = element->end = *at + len;
	return 0;
}

static size_t length(const struct onym_element *e)
{
	return (size_t)(e->end - e->value);
}

static uint64_t number(const struct onym_element *e)
{
	return onym_get_nni(e->value, length(e));
}

static uint8_t *put(uint8_t *p, uint64_t type, const void *v, size_t len)
{
	p = onym_put_tl(p, type, len);
	if (len)
		memcpy(p, v, len);
	return p + len;
}

static uint64_t random64(struct onym_pull *app)
{
	uint64_t z = app->nonces += 0x9e3779b97f4a7c15;  // splitmix64

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

// Data

static int parse_meta(const struct onym_element *meta, struct onym_pull_data *data)
{
	const uint8_t *at = meta->value;
	struct onym_element e, last;

	while (at < meta->end) {
		if (onym_next(&at, meta->end, &e))
			return -EBADMSG;
		if (e.type == TLV_FINAL) {
			const uint8_t *in = e.value;

			if (!onym_next(&in, e.end, &last) && last.type == TLV_SEGMENT && length(&last) <= 8 &&
			    number(&last) <= INT64_MAX)
				data->last_segment = (int64_t)number(&last);
		} else if (length(&e) <= 8 && e.type == TLV_FRESHNESS) {
			data->freshness = number(&e) < UINT32_MAX ? (uint32_t)number(&e) : UINT32_MAX;
		} else if (length(&e) <= 8 && e.type == TLV_CONTENT_TYPE) {
			data->content_type = (uint32_t)number(&e);
		}
	}
	return 0;
}

int onym_data_fields(const struct onym_element *element, struct onym_pull_data *data)
{
	const uint8_t *at = element->value;
	struct onym_element e;

	*data = (struct onym_pull_data){
		.wire = element->at, .wire_len = (size_t)(element->end - element->at), .last_segment = -1,
	};
	while (at < element->end) {
		if (onym_next(&at, element->end, &e))
			return -EBADMSG;
		if (e.type == TLV_NAME) {
			data->name = e.value;
			data->name_len = length(&e);
		} else if (e.type == TLV_CONTENT) {
			data->content = e.value;
			data->len = length(&e);
		} else if (e.type == TLV_META && parse_meta(&e, data)) {
			return -EBADMSG;
		}
	}
	return data->name ? 0 : -EBADMSG;
}

int onym_data_parse(const struct onym_element *element, struct onym_pull_data *data)
{
	if (onym_data_fields(element, data) || onym_data_verify(data->wire, data->wire_len, NULL) == -EBADMSG)
		return -EBADMSG;
	return 0;
}

// What comes

static void keep_interest(struct onym_pull *app, const struct onym_element *packet)
{
	size_t len = (size_t)(packet->end - packet->at);

	if (len > sizeof(app->interests) - app->waiting)
		return;
	memcpy(app->interests + app->waiting, packet->at, len);
	app->waiting += len;
}

// The packet in a link frame, its token, and whether it is a Nack. What is wrong in itself is dropped.
static int unwrap(struct onym_element *packet, struct onym_element *token, bool *is_nack)
{
	const uint8_t *at = packet->value, *end = packet->end;
	struct onym_element e, fragment = { 0 };

	if (packet->type != LP_PACKET)
		return 0;
	while (at < end) {
		if (onym_next(&at, end, &e))
			return -EBADMSG;
		if (e.type == LP_FRAGMENT)
			fragment = e;
		else if (e.type == LP_NACK)
			*is_nack = true;
		else if (e.type == LP_TOKEN)
			*token = e;
	}
	at = fragment.value;
	return at ? onym_next(&at, fragment.end, packet) : -EBADMSG;
}

static int take(void *ctx, const struct onym_element *frame)
{
	struct onym_element packet = *frame, token = { 0 }, name;
	struct onym_pull *app = ctx;
	struct onym_answer answer = { 0 };
	bool is_nack = false;
	const uint8_t *at;

	if (unwrap(&packet, &token, &is_nack))
		return 0;
	if (packet.type == TLV_INTEREST && !is_nack) {
		keep_interest(app, frame);
		return 0;
	}
	at = packet.value;
	if (packet.type == TLV_INTEREST && !onym_next(&at, packet.end, &name) && name.type == TLV_NAME) {
		answer.nacked = name.value;
		answer.nacked_len = length(&name);
	} else if (packet.type != TLV_DATA || onym_data_parse(&packet, &answer.data)) {
		return 0;
	}
	return app->answered ? app->answered(app->ctx, &answer) : 0;
}

struct onym_pull *onym_pull_open(const char *path)
{
	struct onym_pull *app = calloc(1, sizeof(*app));
	int error;

	if (!app)
		return NULL;
	app->stream.obey = take;
	app->stream.ctx = app;
	error = onym_stream_open(&app->stream, path);
	if (!error && getrandom(&app->nonces, sizeof(app->nonces), 0) < 0)
		error = -errno;
	if (!error)
		return app;
	onym_pull_close(app);
	errno = -error;
	return NULL;
}

void onym_pull_close(struct onym_pull *app)
{
	if (!app)
		return;
	if (app->stream.fd >= 0)
		close(app->stream.fd);
	free(app);
}

int onym_pull_fd(const struct onym_pull *app)
{
	return app->stream.fd;
}

// Requests

// `tail` are elements behind the lifetime: parameters and what signs them.
static int send_interest(struct onym_pull *app, const struct onym_name *name, unsigned int flags, int lifetime_ms,
			 const struct onym_element *tail)
{
	uint8_t inner[sizeof(name->v) + 512], packet[sizeof(inner) + 8], *p = inner;
	uint64_t nonce = random64(app);

	p = put(p, TLV_NAME, name->v, name->len);
	if (flags & ONYM_CAN_BE_PREFIX)
		p = put(p, TLV_CAN_BE_PREFIX, NULL, 0);
	if (flags & ONYM_MUST_BE_FRESH)
		p = put(p, TLV_MUST_BE_FRESH, NULL, 0);
	p = put(p, TLV_NONCE, &nonce, 4);
	p = onym_put_nni(p, TLV_LIFETIME, lifetime_ms > 0 ? (uint64_t)lifetime_ms : LIFETIME_MS);
	if (tail) {
		memcpy(p, tail->at, (size_t)(tail->end - tail->at));
		p += tail->end - tail->at;
	}
	p = put(packet, TLV_INTEREST, inner, (size_t)(p - inner));
	return onym_stream_send(&app->stream, packet, (size_t)(p - packet));
}

int onym_pull_send(struct onym_pull *app, const struct onym_name *name, unsigned int flags, int lifetime_ms)
{
	return send_interest(app, name, flags, lifetime_ms, NULL);
}

struct request {
	struct onym_pull *app;
	const struct onym_name *name;
	unsigned int flags;
	int status;  // 1: waits
	struct onym_pull_data *data;
};

// Whether a Data is what an Interest of this name asks for.
static bool answers(const struct onym_pull_data *data, const struct onym_name *name, unsigned int flags)
{
	static const uint8_t digest_head[] = { TLV_DIGEST, 32 };
	size_t len = name->len;
	uint8_t digest[32];

	if (len == data->name_len + 34 && !memcmp(name->v + data->name_len, digest_head, 2)) {
		onym_sha256(data->wire, data->wire_len, digest);
		return !memcmp(name->v, data->name, data->name_len) && !memcmp(name->v + len - 32, digest, 32);
	}
	// Octets of a name begin with those of another one where components do.
	return (flags & ONYM_CAN_BE_PREFIX ? len <= data->name_len : len == data->name_len) &&
	       !memcmp(name->v, data->name, len);
}

static int request_answered(void *ctx, const struct onym_answer *answer)
{
	struct request *r = ctx;

	if (answer->nacked && answer->nacked_len == r->name->len && !memcmp(answer->nacked, r->name->v, r->name->len)) {
		r->status = -EHOSTUNREACH;
	} else if (!answer->nacked && r->status == 1 && answers(&answer->data, r->name, r->flags)) {
		struct onym_element e = { .at = r->app->kept, .value = r->app->kept };
		uint64_t len;

		memcpy(r->app->kept, answer->data.wire, answer->data.wire_len);
		onym_get_tl(&e.value, r->app->kept + answer->data.wire_len, &e.type, &len);
		e.end = e.value + len;
		r->status = onym_data_fields(&e, r->data);
	}
	return 0;
}

static int wait_for(struct request *r, int lifetime_ms)
{
	int64_t until = onym_now_ms() + lifetime_ms;
	int got = 1;

	r->app->answered = request_answered;
	r->app->ctx = r;
	while (r->status == 1 && got > 0)
		got = onym_stream_turn(&r->app->stream, POLLIN, until);
	r->app->answered = NULL;
	return got < 0 ? got : r->status == 1 ? -ETIMEDOUT : r->status;
}

int onym_pull_get(struct onym_pull *app, const struct onym_name *name, unsigned int flags, int lifetime_ms,
		  struct onym_pull_data *data)
{
	struct request r = { app, name, flags, 1, data };
	int error;

	lifetime_ms = lifetime_ms > 0 ? lifetime_ms : LIFETIME_MS;
	error = onym_pull_send(app, name, flags, lifetime_ms);
	return error ?: wait_for(&r, lifetime_ms);
}

// Producers

// The status of a response of management (NFD: ControlResponse).
static int status_of(const struct onym_pull_data *data)
{
	const uint8_t *at = data->content;
	struct onym_element e;

	if (!at || onym_next(&at, at + data->len, &e) || e.type != 0x65)
		return -EPROTO;
	at = e.value;
	if (onym_next(&at, e.end, &e) || e.type != 0x66 || length(&e) > 8)
		return -EPROTO;
	return number(&e) < 400 ? 0 : -EACCES;
}

// A signed command (NFD management; Packet Format 0.3, signed Interest), by digest.
int onym_pull_register(struct onym_pull *app, const struct onym_name *prefix)
{
	uint8_t parameters[sizeof(prefix->v) + 16], route[sizeof(prefix->v) + 8], tail[128], info[64], digest[32], *p;
	uint8_t covered[sizeof(prefix->v) + 256];
	struct onym_element behind = { .at = tail };
	struct onym_pull_data data;
	struct onym_name name;
	struct request r = { app, &name, 0, 1, &data };
	struct timespec now;
	uint64_t nonce = random64(app);
	size_t len;
	int error;

	clock_gettime(CLOCK_REALTIME, &now);
	p = put(route, TLV_NAME, prefix->v, prefix->len);
	p = put(parameters, 0x68, route, (size_t)(p - route));
	error = onym_name("/localhost/nfd/rib/register", &name) ?:
		onym_name_append(&name, TLV_GENERIC, parameters, (size_t)(p - parameters));
	// The digest of the parameters has its place behind.
	if (error || name.len + 34 > sizeof(name.v))
		return error ?: -ENAMETOOLONG;
	p = onym_put_nni(info, 0x1B, 0);
	p = put(p, 0x26, &nonce, 8);
	p = onym_put_nni(p, 0x28, (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
	len = (size_t)(p - info);
	p = put(tail, TLV_PARAMETERS, NULL, 0);
	p = put(p, 0x2C, info, len);
	memcpy(covered, name.v, name.len);
	memcpy(covered + name.len, tail, (size_t)(p - tail));
	onym_sha256(covered, name.len + (size_t)(p - tail), digest);
	p = put(p, 0x2E, digest, 32);
	behind.end = p;
	onym_sha256(tail, (size_t)(p - tail), digest);
	error = onym_name_append(&name, TLV_PARAMETERS_DIGEST, digest, 32) ?:
		send_interest(app, &name, ONYM_MUST_BE_FRESH, COMMAND_MS, &behind) ?: wait_for(&r, COMMAND_MS);
	return error ?: status_of(&data);
}

// The name without the digest of the parameters.
static int take_name(const struct onym_element *e, struct onym_name *name)
{
	const uint8_t *at = e->value;
	struct onym_element part;

	name->len = 0;
	while (at < e->end) {
		if (onym_next(&at, e->end, &part))
			return -EBADMSG;
		if (part.type == TLV_PARAMETERS_DIGEST)
			continue;
		if (part.type > UINT16_MAX || onym_name_append(name, (uint32_t)part.type, part.value, length(&part)))
			return -EBADMSG;
	}
	return 0;
}

static int parse_interest(const struct onym_element *frame, struct onym_pull_interest *interest)
{
	struct onym_element packet = *frame, token = { 0 }, e;
	bool is_nack = false, has_name = false;
	const uint8_t *at;

	*interest = (struct onym_pull_interest){ .lifetime_ms = LIFETIME_MS };
	if (unwrap(&packet, &token, &is_nack) || (token.at && length(&token) > sizeof(interest->token)))
		return -EBADMSG;
	if (token.at) {
		interest->token_len = length(&token);
		memcpy(interest->token, token.value, interest->token_len);
	}
	for (at = packet.value; at < packet.end;) {
		if (onym_next(&at, packet.end, &e))
			return -EBADMSG;
		if (e.type == TLV_NAME) {
			if (take_name(&e, &interest->name))
				return -EBADMSG;
			has_name = true;
		} else if (e.type == TLV_CAN_BE_PREFIX) {
			interest->flags |= ONYM_CAN_BE_PREFIX;
		} else if (e.type == TLV_MUST_BE_FRESH) {
			interest->flags |= ONYM_MUST_BE_FRESH;
		} else if (e.type == TLV_LIFETIME && length(&e) <= 8) {
			interest->lifetime_ms = number(&e) < UINT32_MAX ? (uint32_t)number(&e) : UINT32_MAX;
		}
	}
	return has_name ? 0 : -EBADMSG;
}

int onym_pull_interest(struct onym_pull *app, struct onym_pull_interest *interest, int timeout_ms)
{
	int64_t until = timeout_ms < 0 ? -1 : onym_now_ms() + timeout_ms;

	for (;;) {
		const uint8_t *at = app->interests;
		struct onym_element frame;
		int error, got;

		while (app->waiting) {
			error = onym_next(&at, app->interests + app->waiting, &frame) ?: parse_interest(&frame, interest);
			app->waiting -= (size_t)(at - app->interests);
			memmove(app->interests, at, app->waiting);
			at = app->interests;
			if (!error)
				return 1;
		}
		got = onym_stream_turn(&app->stream, POLLIN, until);
		if (got <= 0)
			return got;
	}
}

int onym_pull_answer(struct onym_pull *app, const struct onym_pull_interest *interest, const uint8_t *data, size_t len)
{
	uint8_t frame[ONYM_PACKET_MAX + 64], *p = frame;
	size_t token = interest->token_len ? onym_tl_size(LP_TOKEN, interest->token_len) : 0;

	if (len > ONYM_PACKET_MAX || interest->token_len > sizeof(interest->token))
		return -EMSGSIZE;
	if (!token)
		return onym_stream_send(&app->stream, data, len);
	p = onym_put_tl(p, LP_PACKET, token + onym_tl_size(LP_FRAGMENT, len));
	p = put(p, LP_TOKEN, interest->token, interest->token_len);
	p = put(p, LP_FRAGMENT, data, len);
	return onym_stream_send(&app->stream, frame, (size_t)(p - frame));
}
