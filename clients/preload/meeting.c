// SPDX-License-Identifier: Apache-2.0 OR MIT
// How streams begin and end, between the items of the push half and the sockets of the program.

#include "stream.h"

// What a request was for: its tag is this, the number of the stream or listener, and its place.
enum asked { ITEM = 1u << 28, WAY_BACK = 2u << 28, LISTENING = 3u << 28 };

static uint32_t tag_for(enum asked asked, uint32_t generation, unsigned slot)
{
	return (uint32_t)asked | (generation & 0xFFFFF) << 8 | slot;
}

static int error_of(unsigned status)
{
	return status == 14 ? ENETUNREACH : status == 12 ? EADDRNOTAVAIL : ECONNREFUSED;
}

// Asks for both ways of a stream that the program calls.
void stream_call(struct stream *s)
{
	(void)pump_ask(SUBSCRIBE_ITEM, tag_for(WAY_BACK, s->generation, s->slot), s->in, 3);
	(void)pump_ask(PUBLISH_ITEM, tag_for(ITEM, s->generation, s->slot), s->out, 3);
}

static void listener_end(struct listener *l)
{
	for (unsigned n = 0; n < l->count; n++) {
		(void)pump_ask(UNPUBLISH_SCOPE, 1, l->back[n], 2);
		(void)pump_ask(UNPUBLISH_SCOPE, 1, l->there[n], 2);
	}
	memset(l, 0, sizeof(*l));
}

void listener_publish(struct listener *l)
{
	uint32_t tag = tag_for(LISTENING, 0, (unsigned)(l - pump.listeners));

	l->answers = 5 * l->count;
	l->error = 0;
	l->is_told = l->is_over = l->is_doubtful = false;
	for (unsigned n = 0; n < l->count; n++) {
		(void)pump_ask(PUBLISH_SCOPE, tag, l->back[n], 1);
		(void)pump_ask(PUBLISH_SCOPE, tag, l->back[n], 2);
		(void)pump_ask(PUBLISH_SCOPE, tag, l->there[n], 1);
		(void)pump_ask(PUBLISH_SCOPE, tag, l->there[n], 2);
		(void)pump_ask(SUBSCRIBE_SCOPE, tag, l->there[n], 2);
	}
}

// Nobody listens any more; streams that were accepted go on, each with a subscription of its own.
void listener_withdraw(struct listener *l)
{
	for (struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++)
		if (s->state && s->listener == l)
			(void)pump_ask(SUBSCRIBE_ITEM, 1, s->in, 3);
	for (unsigned n = 0; n < l->count; n++)
		(void)pump_ask(UNSUBSCRIBE_SCOPE, 1, l->there[n], 2);
	l->is_over = true;
	l->is_doubtful = false;
	if (!l->streams)
		listener_end(l);
}

// Whether the program, or one that was forked from it, still listens: the name of its socket is taken then.
void listener_look(struct listener *l)
{
	int probe = sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REAL(bind);

	if (probe < 0)
		return;
	if (!real_bind(probe, (struct sockaddr *)&l->name, l->name_len))
		listener_withdraw(l);
	sys_close(probe);
}

// Ends a stream here; the program's end says `error` then.
void stream_fail(struct stream *s, int error)
{
	struct listener *l = s->listener;

	if (s->fd >= 0) {
		pump_tell(s, error);
		sys_close(s->fd);
	}
	(void)pump_ask(UNPUBLISH_ITEM, 1, s->out, 3);
	if (!l || l->is_over)
		(void)pump_ask(UNSUBSCRIBE_ITEM, 1, s->in, 3);
	stream_clear(s);
	memset(s, 0, sizeof(*s));
	if (l && --l->streams == 0 && l->is_over)
		listener_end(l);
	pthread_cond_broadcast(&pump.told);
}

static unsigned count(enum stream_state state)
{
	unsigned n = 0;

	for (const struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++)
		n += s->state == state;
	return n;
}

// A segment of nobody's: a client that calls, or what is left of a stream.
static void stranger(struct listener *l, unsigned n, const uint8_t *id, const struct segment *in, int64_t now)
{
	bool is_call = in->kind == OPEN && in->acknowledged == 0;
	bool is_taken = is_call && !l->is_over && count(ANSWERING) < ANSWERING_MAX;
	struct stream *s = is_taken ? pump_place(ANSWERING, now) : NULL;

	if (!s) {
		if (!is_call && in->kind != OCTETS && in->kind != END)
			return;
		s = count(REFUSING) < REFUSALS_MAX ? pump_place(REFUSING, now) : NULL;
		if (!s)
			return;
		s->reason = is_call ? REFUSED : UNKNOWN;
	}
	l->streams++;
	s->deadline = now + ANSWER_MS;
	s->listener = l;
	s->own = l->place[n];
	memcpy(s->in, id, ID_MAX);
	memcpy(s->out, l->back[n], ID_MAX);
	memcpy(s->out + 2 * LABEL, id + 2 * LABEL, LABEL);
	client_place(id, THERE, &s->peer);
	if (l->is_over)
		(void)pump_ask(SUBSCRIBE_ITEM, 1, s->in, 3);
	if (s->state == ANSWERING)
		stream_hear(s, in, now);
	(void)pump_ask(PUBLISH_ITEM, tag_for(ITEM, s->generation, s->slot), s->out, 3);
}

// There is a way to the client, so it is there: its connection waits for accept. Where too many wait, it is
// tried again when the client repeats itself.
static void attach(struct stream *s, int64_t now)
{
	struct tag t = { .role = 'A', .slot = s->slot, .domain = (uint16_t)s->listener->domain,
			 .generation = s->generation, .own = s->own, .peer = s->peer };
	struct sockaddr_un name;
	socklen_t len;
	int fd = sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	REAL(bind);

	if (fd < 0)
		return;
	memcpy(t.life, pump.life, sizeof(t.life));
	len = tag_name(&t, &name);
	if (!real_bind(fd, (struct sockaddr *)&name, len) &&
	    !sys_connect(fd, (struct sockaddr *)&s->listener->name, s->listener->name_len)) {
		s->fd = fd;
		stream_put(s, OPEN, NULL, 0, now);
		return;
	}
	sys_close(fd);
	if (errno != EAGAIN) {
		s->listener->is_doubtful = true;
		stream_reset(s, REFUSED);
		stream_fail(s, 0);
	}
}

static void started(struct stream *s, bool is_started, int64_t now)
{
	s->is_started = is_started;
	s->stopped_at = is_started ? 0 : now;
	s->again_at = now;
	if (!is_started)
		return;
	if (s->state == CALLING)
		s->deadline = now + CONNECT_MS;
	if (s->state == ANSWERING && s->fd < 0)
		attach(s, now);
	if (s->state == REFUSING) {
		stream_reset(s, s->reason);
		stream_fail(s, 0);
	}
}

static void heard(const struct message *m, int64_t now)
{
	struct segment in;

	if (!segment_parse(m->payload, m->payload_len, &in))
		return;
	for (struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++) {
		if (!s->state || memcmp(s->in, m->id, ID_MAX))
			continue;
		if (s->state == REFUSING)
			return;
		if (in.kind == RESET)
			return stream_fail(s, s->state == CALLING && in.number == REFUSED ? ECONNREFUSED : ECONNRESET);
		stream_hear(s, &in, now);
		if (s->state == ANSWERING && s->fd < 0 && s->is_started)
			attach(s, now);
		return;
	}
	for (struct listener *l = pump.listeners; l < pump.listeners + LISTENERS_MAX; l++)
		for (unsigned n = 0; n < l->count; n++)
			if (l->is_used && !memcmp(l->there[n], m->id, 2 * LABEL))
				return stranger(l, n, m->id, &in, now);
}

static void answered(const struct message *m, int64_t now)
{
	uint32_t asked = m->tag & (3u << 28);
	unsigned slot = m->tag & 0xFF;
	struct stream *s = &pump.streams[slot];

	if (asked == LISTENING) {
		struct listener *l = &pump.listeners[slot % LISTENERS_MAX];

		if (!l->is_used || !l->answers)
			return;
		// 3: it was published before.
		if (m->status && m->status != 3)
			l->error = error_of(m->status);
		l->is_told = --l->answers == 0;
		pthread_cond_broadcast(&pump.told);
		return;
	}
	if (!asked || !s->state || (s->generation & 0xFFFFF) != (m->tag >> 8 & 0xFFFFF))
		return;
	if (m->status)
		return stream_fail(s, error_of(m->status));
	if (asked == ITEM && s->state == CALLING && !s->is_started) {
		s->is_known = true;
		s->deadline = now + NOBODY_MS;
	}
}

// What the node said.
void streams_hear(const struct message *m, int64_t now)
{
	if (m->kind == STATUS)
		return answered(m, now);
	if (m->id_len != ID_MAX)
		return;
	if (m->kind == DATA)
		return heard(m, now);
	if (m->kind != START_PUBLISH && m->kind != STOP_PUBLISH)
		return;
	for (struct stream *s = pump.streams; s < pump.streams + STREAMS_MAX; s++)
		if (s->state && !memcmp(s->out, m->id, ID_MAX))
			return started(s, m->kind == START_PUBLISH, now);
}

// Takes what the program wrote; false where the stream ended by it.
static bool pull(struct stream *s, int64_t now)
{
	uint8_t octets[SEGMENT_MAX];

	while (!s->has_ended && stream_has_room(s) && pump.out_end - pump.out_at < OUT_DATA_MAX) {
		ssize_t got = sys_recv(s->fd, octets, s->cork && s->cork < sizeof(octets) ? s->cork : sizeof(octets), MSG_DONTWAIT);
		uint8_t *copy;

		if (got < 0 && errno == EAGAIN && !pump.is_leaving)
			return true;
		if (got < 0 && errno != EAGAIN) {
			// It has closed without reading what came.
			stream_reset(s, CLOSED);
			stream_fail(s, 0);
			return false;
		}
		if (got <= 0) {
			s->has_ended = true;
			stream_put(s, END, NULL, 0, now);
			return true;
		}
		if (s->cork) {
			s->cork -= (size_t)got < s->cork ? (size_t)got : s->cork;
			continue;
		}
		copy = malloc((size_t)got);
		if (!copy) {
			stream_reset(s, CLOSED);
			stream_fail(s, ENOBUFS);
			return false;
		}
		memcpy(copy, octets, (size_t)got);
		stream_put(s, OCTETS, copy, (size_t)got, now);
	}
	return true;
}

// Hands out what came in order, as far as the program takes it; false where the stream ended by it.
static bool hand_out(struct stream *s)
{
	while (s->base != s->expected && !s->is_blocked) {
		struct held *h = &s->got[s->base % WINDOW];
		REAL(shutdown);

		if (h->kind == END)
			(void)real_shutdown(s->fd, SHUT_WR);
		while (s->taken < h->len) {
			ssize_t sent = sys_send(s->fd, h->octets + s->taken, h->len - s->taken, MSG_DONTWAIT | MSG_NOSIGNAL);

			if (sent < 0 && errno == EAGAIN) {
				s->is_blocked = true;
				return true;
			}
			if (sent < 0) {
				stream_reset(s, CLOSED);
				stream_fail(s, 0);
				return false;
			}
			s->taken += (size_t)sent;
		}
		s->taken = 0;
		free(h->octets);
		memset(h, 0, sizeof(*h));
		s->base++;
	}
	return true;
}

static bool has_all(const struct stream *s)
{
	return s->has_end && s->base == s->end + 1;
}

// When a peer that is not reached is gone; what came of it is for the program first.
static int64_t gone_at(const struct stream *s)
{
	return s->stopped_at && s->base == s->expected ? s->stopped_at + GONE_MS : INT64_MAX;
}

// What has to end now: `error` for the program, or -1.
static int over(struct stream *s, int64_t now)
{
	bool is_done = s->state == RUNNING && s->has_ended && stream_is_idle(s) && has_all(s);
	bool is_late = s->deadline && now >= s->deadline;

	// Who was called waits until the caller, who had the last word, has gone.
	if (is_done && (!s->listener || s->stopped_at || is_late))
		return 0;
	if (is_done && !s->deadline)
		s->deadline = now + GONE_MS;
	if (s->state == RUNNING && s->is_closed && stream_is_idle(s) && !s->deadline)
		s->deadline = now + ORPHAN_MS;
	if (s->state == CALLING && is_late)
		return s->is_started || !s->is_known ? ETIMEDOUT : ECONNREFUSED;
	if (s->state != RUNNING)
		return is_late ? 0 : -1;
	if (is_late || now >= gone_at(s))
		return ECONNRESET;
	return !stream_is_idle(s) && s->is_started && now >= s->heard_at + SILENT_MS ? ETIMEDOUT : -1;
}

// When the next thing is to be done without anything coming.
int64_t stream_due(const struct stream *s)
{
	int64_t due = INT64_MAX;

	if (s->deadline)
		due = s->deadline;
	if (gone_at(s) < due)
		due = gone_at(s);
	if (!stream_is_idle(s) && s->is_started && s->again_at < due)
		due = s->again_at;
	return due;
}

void stream_step(struct stream *s, int64_t now)
{
	int error;

	if ((s->state == CALLING && s->is_opened && s->una) || (s->state == ANSWERING && s->fd >= 0 && s->una)) {
		s->state = RUNNING;
		s->deadline = 0;
	}
	if (s->state == RUNNING && (!hand_out(s) || !pull(s, now)))
		return;
	// A client that is not let in yet hears nothing, so it repeats itself.
	if (s->state != ANSWERING || s->fd >= 0)
		stream_send(s, now);
	error = over(s, now);
	if (error >= 0) {
		if (error)
			stream_reset(s, error == ETIMEDOUT ? SILENT : CLOSED);
		stream_fail(s, error);
	}
}
