// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Publish and subscribe over a node: the exchange of spec/push.md, section 8. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onym/push.h>
#include "stream.h"

enum {
	TYPE = 0xF2,
	PIECE_MAX = 4096,            // with the longest identifiers a message stays within its bound
	HEADS_MAX = 3 * 2048 + 256,  // all fields of a message but its payload
	ANSWER_MS = 30000,           // longer than a dispatcher looks for a rendezvous
	EVENTS_MAX = 65536,          // that wait; publications beyond are missed, others -ENOBUFS at twice that
	OCTETS_MAX = 16 << 20,       // of publications that wait
	LENGTH_MAX = 1 << 30,        // of a publication, whatever a node grants
};

enum kind { PUBLISH = 8, REGISTER = 9, RETAIN = 10, STATUS = 106, REGISTERED = 110 };

enum field {
	ID = 1, PREFIX = 3, STRATEGY = 5, STATUS_IS = 7, ROUTE = 9, NODE = 17, NUMBER = 25,
	LENGTH = 65, OFFSET = 67, ABOUT = 69, PAYLOAD = 71, TEXT = 96, LOCAL = 98, FRAMES = 100, LIFETIME = 102,
	DEADLINE = 104, PRIORITY = 106, WAIT = 108,
};

struct octets {
	const uint8_t *v;
	size_t len;
};

// A message of the node, parsed; what is absent is empty.
struct message {
	int kind, status, strategy;
	uint32_t tag;
	struct octets id, payload;
	uint64_t number, length, offset, local, frames;
	bool has_length, has_offset;
};

struct waiting {
	struct waiting *next;
	struct onym_push_event event;
	uint8_t payload[];
};

struct onym_push {
	struct onym_stream stream;
	uint32_t tag;
	uint64_t length_max;
	struct waiting *first, **end, *taken;
	size_t events, octets;
	struct waiting *partial;  // a publication of which pieces are still to come
	size_t partial_at;
	bool is_answered;         // the request `tag` was, by:
	struct message answer;
};

// Messages of the node.

static int parse_field(struct message *m, uint64_t type, const uint8_t *v, size_t len)
{
	uint64_t number = len <= 8 ? onym_get_nni(v, len) : 0;
	bool is_number = len == 1 || len == 2 || len == 4 || len == 8;

	switch (type) {
	case ID:
		m->id = (struct octets){ v, len };
		return len % ONYM_PUSH_LABEL || len > ONYM_PUSH_DEPTH_MAX * ONYM_PUSH_LABEL ? -EPROTO : 0;
	case PAYLOAD:
		m->payload = (struct octets){ v, len };
		return 0;
	case STRATEGY:
		m->strategy = (int)number;
		return len == 1 ? 0 : -EPROTO;
	case STATUS_IS:
		m->status = (int)number;
		return len == 1 ? 0 : -EPROTO;
	case NUMBER: m->number = number; return is_number ? 0 : -EPROTO;
	case LENGTH: m->length = number; m->has_length = true; return is_number ? 0 : -EPROTO;
	case OFFSET: m->offset = number; m->has_offset = true; return is_number ? 0 : -EPROTO;
	case LOCAL: m->local = number; return is_number ? 0 : -EPROTO;
	case FRAMES: m->frames = number; return is_number ? 0 : -EPROTO;
	default: return 0;
	}
}

static int parse(const uint8_t *v, size_t len, struct message *m)
{
	const uint8_t *at = v + 6, *end = v + len;
	uint64_t type, field;
	int error;

	*m = (struct message){ .kind = -1, .status = -1, .strategy = -1 };
	if (len < 6 || v[0] != 1)
		return -EPROTO;
	m->kind = v[1];
	m->tag = (uint32_t)onym_get_nni(v + 2, 4);
	while (at < end) {
		if (onym_get_tl(&at, end, &type, &field))
			return -EPROTO;
		error = parse_field(m, type, at, (size_t)field);
		if (error)
			return error;
		at += field;
	}
	return 0;
}

// Events that wait. The place of a publication that finds no room is taken by how many were missed.

static struct waiting *last_of(struct onym_push *app)
{
	return app->first ? (struct waiting *)((char *)app->end - offsetof(struct waiting, next)) : NULL;
}

static int append(struct onym_push *app, struct waiting *w)
{
	struct waiting *last = last_of(app);
	bool is_full = app->events >= EVENTS_MAX || (app->octets && app->octets + w->event.len > OCTETS_MAX);

	if (w->event.kind == ONYM_DATA && is_full)
		w->event = (struct onym_push_event){ .kind = ONYM_MISSED, .status = -1, .came_by = -1, .count = 1 };
	if (w->event.kind == ONYM_MISSED && last && last->event.kind == ONYM_MISSED &&
	    last->event.status == w->event.status) {
		last->event.count += w->event.count;
		free(w);
		return 0;
	}
	if (app->events >= 2 * EVENTS_MAX) {
		free(w);
		return -ENOBUFS;
	}
	w->next = NULL;
	*app->end = w;
	app->end = &w->next;
	app->events++;
	app->octets += w->event.len;
	return 0;
}

static struct waiting *made(const struct message *m, size_t len)
{
	struct waiting *w = calloc(1, sizeof(*w) + len);

	if (!w)
		return NULL;
	w->event = (struct onym_push_event){
		.kind = (enum onym_push_event_kind)m->kind, .status = m->status, .came_by = m->strategy,
		.count = m->number, .payload = w->payload, .len = len,
	};
	w->event.id.len = m->id.len;
	if (m->id.len)
		memcpy(w->event.id.v, m->id.v, m->id.len);
	return w;
}

// A publication, or a piece of one; whole ones are appended.
static int data(struct onym_push *app, const struct message *m)
{
	uint64_t length = m->has_length && m->has_offset ? m->length : m->payload.len;
	uint64_t offset = m->has_length && m->has_offset ? m->offset : 0;
	struct waiting *w;

	if (offset == 0) {
		free(app->partial);
		app->partial = NULL;
		if (length > app->length_max)
			return -EPROTO;
		app->partial = made(m, (size_t)length);
		app->partial_at = 0;
		if (!app->partial)
			return -ENOMEM;
	}
	w = app->partial;
	if (!w || offset != app->partial_at || length != w->event.len || m->payload.len > length - offset)
		return -EPROTO;
	if (m->payload.len)
		memcpy(w->payload + offset, m->payload.v, m->payload.len);
	app->partial_at += m->payload.len;
	if (app->partial_at < w->event.len)
		return 0;
	app->partial = NULL;
	return append(app, w);
}

static int obey(struct onym_push *app, const struct message *m)
{
	struct waiting *w;

	switch (m->kind) {
	case ONYM_DATA:
		return data(app, m);
	case STATUS:
	case REGISTERED:
		if (m->tag) {
			if (m->tag == app->tag) {
				app->answer = *m;
				app->is_answered = true;
			}
			return 0;
		}
		break;
	case ONYM_START_PUBLISH:
	case ONYM_STOP_PUBLISH:
	case ONYM_SCOPE_PUBLISHED:
	case ONYM_SCOPE_UNPUBLISHED:
	case ONYM_MISSED:
		break;
	default:  // of a later version
		return 0;
	}
	w = made(m, 0);
	return w ? append(app, w) : -ENOMEM;
}

static int obey_element(void *ctx, const struct onym_element *element)
{
	struct message m;

	// Packets of the pull half may come between; they are not ours.
	if (element->type != TYPE)
		return 0;
	return parse(element->value, (size_t)(element->end - element->value), &m) ?: obey(ctx, &m);
}

static int answer(struct onym_push *app)
{
	int64_t until = onym_now_ms() + ANSWER_MS;

	while (!app->is_answered) {
		int error = onym_stream_turn(&app->stream, POLLIN, until);

		if (error < 0)
			return error;
		if (!error)
			return -ETIMEDOUT;
	}
	return app->answer.status < 0 ? 0 : app->answer.status;
}

// Messages to the node: fields are put behind room for the head, which is put before them.

struct out {
	uint8_t octets[8 + HEADS_MAX + PIECE_MAX], *at;
};

static void begin(struct out *o, int kind, uint32_t tag)
{
	o->at = o->octets + 8;
	*o->at++ = 1;
	*o->at++ = (uint8_t)kind;
	for (int shift = 24; shift >= 0; shift -= 8)
		*o->at++ = (uint8_t)(tag >> shift);
}

static void put(struct out *o, enum field field, const void *v, size_t len)
{
	if (!len && field != PAYLOAD)
		return;
	o->at = onym_put_tl(o->at, field, len);
	if (len)
		memcpy(o->at, v, len);
	o->at += len;
}

static int finish(struct onym_push *app, struct out *o)
{
	uint8_t *value = o->octets + 8, head[8];
	size_t len = (size_t)(o->at - value), size = (size_t)(onym_put_tl(head, TYPE, len) - head);

	if (len + size > ONYM_PACKET_MAX)
		return -EMSGSIZE;
	memcpy(value - size, head, size);
	return onym_stream_send(&app->stream, value - size, len + size);
}

static uint32_t next_tag(struct onym_push *app)
{
	app->is_answered = false;
	app->tag = app->tag == UINT32_MAX ? 1 : app->tag + 1;
	return app->tag;
}

int onym_push_ask(struct onym_push *app, enum onym_push_request request, const struct onym_push_id *id,
		  enum onym_push_strategy strategy)
{
	uint8_t number = (uint8_t)strategy;
	struct out o;
	int error;

	if (id->len < ONYM_PUSH_LABEL || id->len > sizeof(id->v) || request > ONYM_UNSUBSCRIBE_ITEM)
		return -EINVAL;
	begin(&o, (int)request, next_tag(app));
	put(&o, ID, id->v + id->len - ONYM_PUSH_LABEL, ONYM_PUSH_LABEL);
	put(&o, PREFIX, id->v, id->len - ONYM_PUSH_LABEL);
	put(&o, STRATEGY, &number, 1);
	put(&o, TEXT, id->word, strnlen(id->word, sizeof(id->word) - 1));
	error = finish(app, &o);
	return error ? error : answer(app);
}

int onym_push_retain(struct onym_push *app, const struct onym_push_id *id, uint64_t count)
{
	return onym_push_retain_as(app, id, &(struct onym_push_terms){ .count = count });
}

int onym_push_retain_as(struct onym_push *app, const struct onym_push_id *id, const struct onym_push_terms *terms)
{
	const uint8_t wait = 1;
	struct out o;
	int error;

	if (id->len > sizeof(id->v))
		return -EINVAL;
	begin(&o, RETAIN, next_tag(app));
	put(&o, ID, id->v, id->len);
	o.at = onym_put_nni(o.at, NUMBER, terms->count);
	o.at = onym_put_nni(o.at, LIFETIME, terms->lifetime_ms);
	o.at = onym_put_nni(o.at, DEADLINE, terms->deadline_ms);
	put(&o, PRIORITY, &terms->priority, 1);
	put(&o, WAIT, &wait, terms->waits ? 1 : 0);
	error = finish(app, &o);
	return error ? error : answer(app);
}

int onym_push_publish(struct onym_push *app, const struct onym_push_publication *p, struct onym_push_sent *sent)
{
	uint32_t tag = sent ? next_tag(app) : 0;
	uint8_t strategy = (uint8_t)p->strategy;
	size_t offset = 0;
	int error;

	if (p->id->len > sizeof(p->id->v) || (p->about && p->about->len > sizeof(p->about->v)))
		return -EINVAL;
	if (p->len > app->length_max)
		return -EMSGSIZE;
	do {
		size_t len = p->len - offset < PIECE_MAX ? p->len - offset : PIECE_MAX;
		struct out o;

		begin(&o, PUBLISH, tag);
		if (!offset) {
			put(&o, ID, p->id->v, p->id->len);
			put(&o, ABOUT, p->about ? p->about->v : NULL, p->about ? p->about->len : 0);
			put(&o, ROUTE, p->route ? p->route->octets : NULL, p->route ? p->route->len : 0);
			put(&o, NODE, p->node, p->node ? ONYM_PUSH_LABEL : 0);
			if (p->lifetime_ms)
				o.at = onym_put_nni(o.at, LIFETIME, p->lifetime_ms);
		}
		put(&o, STRATEGY, &strategy, 1);
		if (p->len > PIECE_MAX) {
			o.at = onym_put_nni(o.at, LENGTH, p->len);
			o.at = onym_put_nni(o.at, OFFSET, offset);
		}
		put(&o, PAYLOAD, p->len ? (const uint8_t *)p->payload + offset : NULL, len);
		error = finish(app, &o);
		if (error)
			return error;
		offset += len;
	} while (offset < p->len);
	if (!sent)
		return 0;
	error = answer(app);
	*sent = (struct onym_push_sent){ app->answer.local, app->answer.frames };
	return error;
}

int onym_push_event(struct onym_push *app, struct onym_push_event *event, int timeout_ms)
{
	int64_t until = timeout_ms < 0 ? -1 : onym_now_ms() + timeout_ms;

	free(app->taken);
	app->taken = NULL;
	while (!app->first) {
		int got = onym_stream_turn(&app->stream, POLLIN, until);

		if (got <= 0)
			return got;
	}
	app->taken = app->first;
	app->first = app->taken->next;
	if (!app->first)
		app->end = &app->first;
	app->events--;
	app->octets -= app->taken->event.len;
	*event = app->taken->event;
	return 1;
}

static int register_as(struct onym_push *app, const char *name)
{
	struct out o;
	int error;

	begin(&o, REGISTER, next_tag(app));
	put(&o, TEXT, name, strnlen(name, 256));
	error = finish(app, &o);
	if (!error)
		error = answer(app);
	if (error < 0)
		return error;
	if (app->answer.kind != REGISTERED)
		return -EACCES;
	app->length_max = app->answer.length < LENGTH_MAX ? app->answer.length : LENGTH_MAX;
	return 0;
}

struct onym_push *onym_push_open(const char *path, const char *name)
{
	struct onym_push *app = calloc(1, sizeof(*app));
	int error;

	if (!app)
		return NULL;
	app->stream.obey = obey_element;
	app->stream.ctx = app;
	app->end = &app->first;
	error = onym_stream_open(&app->stream, path) ?: register_as(app, name ? name : "c");
	if (error) {
		onym_push_close(app);
		errno = -error;
		return NULL;
	}
	return app;
}

void onym_push_close(struct onym_push *app)
{
	if (!app)
		return;
	if (app->stream.fd >= 0)
		close(app->stream.fd);
	while (app->first) {
		struct waiting *next = app->first->next;

		free(app->first);
		app->first = next;
	}
	free(app->taken);
	free(app->partial);
	free(app);
}

int onym_push_fd(const struct onym_push *app)
{
	return app->stream.fd;
}

uint64_t onym_push_length_max(const struct onym_push *app)
{
	return app->length_max;
}
