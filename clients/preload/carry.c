// SPDX-License-Identifier: Apache-2.0 OR MIT
// Reliable and in order over what may lose, repeat and turn round: numbers, windows, repetition. Numbers go
// round; of two the later one is less than half the circle ahead.

#include "stream.h"

static bool is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static void drop(struct held *h)
{
	free(h->octets);
	memset(h, 0, sizeof(*h));
}

void stream_clear(struct stream *s)
{
	for (unsigned i = 0; i < WINDOW; i++) {
		drop(&s->sent[i]);
		drop(&s->got[i]);
	}
}

bool stream_is_idle(const struct stream *s)
{
	return s->una == s->next;
}

// Whether the peer takes one more; one that asks for room may always be under way.
bool stream_has_room(const struct stream *s)
{
	return stream_is_idle(s) || (s->next - s->una < WINDOW && is_before(s->next, s->edge));
}

// Gives a segment its number; it owns `octets`, which are of malloc. There is a place for it.
void stream_put(struct stream *s, enum segment_kind kind, uint8_t *octets, size_t len, int64_t now)
{
	struct held *h = &s->sent[s->next % WINDOW];

	if (stream_is_idle(s)) {
		s->heard_at = now;
		s->again_at = now + s->rto;
	}
	h->octets = octets;
	h->len = len;
	h->kind = kind;
	s->next++;
}

static void describe(const struct stream *s, struct segment *out)
{
	out->window = s->base + WINDOW - s->expected;
	out->acknowledged = s->expected;
	out->came = 0;
	for (uint32_t i = 1; i < out->window; i++)
		if (s->got[(s->expected + i) % WINDOW].is_there)
			out->came |= 1u << (i - 1);
}

static bool publish(struct stream *s, struct segment *out)
{
	uint8_t octets[SEGMENT_HEAD + SEGMENT_MAX];
	size_t head;

	describe(s, out);
	head = segment_write(out, octets);
	if (out->len)
		memcpy(octets + head, out->octets, out->len);
	if (!pump_publish(s->out, octets, head + out->len))
		return false;
	s->must_acknowledge = false;
	s->told = s->base + WINDOW;
	return true;
}

static bool repeat(struct stream *s, uint32_t number, int64_t now)
{
	struct held *h = &s->sent[number % WINDOW];
	struct segment out = { .kind = h->kind, .number = number, .octets = h->octets, .len = h->len };

	if (!publish(s, &out))
		return false;
	h->sent_at = now;
	h->tries++;
	return true;
}

void stream_confirm(struct stream *s)
{
	struct segment out = { .kind = ACKNOWLEDGE };

	(void)publish(s, &out);
}

void stream_reset(struct stream *s, enum reason reason)
{
	struct segment out = { .kind = RESET, .number = reason };

	if (s->is_started)
		(void)publish(s, &out);
}

static void measure(struct stream *s, int64_t rtt)
{
	int64_t off = rtt > s->rtt ? rtt - s->rtt : s->rtt - rtt;

	if (!s->rtt && !s->deviation) {
		s->rtt = rtt;
		s->deviation = rtt / 2;
	} else {
		s->deviation += (off - s->deviation) / 4;
		s->rtt += (rtt - s->rtt) / 8;
	}
}

static void patience(struct stream *s)
{
	s->rto = s->rtt + 4 * s->deviation;
	if (s->rto < RTO_MIN_MS)
		s->rto = RTO_MIN_MS;
	if (s->rto > RTO_MAX_MS)
		s->rto = RTO_MAX_MS;
}

// The network has lost something: half as many, once for what was under way then.
static void yield(struct stream *s, unsigned share)
{
	if (is_before(s->una, s->recover))
		return;
	s->threshold = s->share / 2 > 2 ? s->share / 2 : 2;
	s->share = share ? share : s->threshold;
	s->recover = s->next;
}

static void grow(struct stream *s, unsigned count)
{
	if (s->share < s->threshold) {
		s->share += count;
	} else if ((s->grown += count) >= s->share) {
		s->grown = 0;
		s->share++;
	}
	if (s->share > WINDOW)
		s->share = WINDOW;
}

// Three later ones came: what is before them is lost, and sent again once in a round trip.
static void mend(struct stream *s, const struct segment *in, int64_t now)
{
	unsigned later = 0;

	for (uint32_t i = s->next - 1; i != s->una - 1; i--) {
		struct held *h = &s->sent[i % WINDOW];

		if (i - s->una - 1 < WINDOW - 1 && in->came >> (i - s->una - 1) & 1)
			h->is_there = true;
		if (h->is_there) {
			later++;
		} else if (later >= 3 && (h->tries == 1 || (h->tries && now - h->sent_at > s->rtt + s->deviation))) {
			yield(s, 0);
			(void)repeat(s, i, now);
		}
	}
}

static void acknowledged(struct stream *s, const struct segment *in, int64_t now)
{
	uint32_t count = in->acknowledged - s->una;
	uint32_t edge = in->acknowledged + in->window;

	if (count > s->next - s->una)
		return;
	if (is_before(s->edge, edge))
		s->edge = edge;
	if (count) {
		const struct held *last = &s->sent[(in->acknowledged - 1) % WINDOW];

		if (last->tries == 1 && !last->is_there)
			measure(s, now - last->sent_at);
		for (; s->una != in->acknowledged; s->una++)
			drop(&s->sent[s->una % WINDOW]);
		patience(s);
		s->again_at = now + s->rto;
		grow(s, count);
	}
	if (in->came)
		mend(s, in, now);
}

// Keeps a segment until its turn; what is outside of the window, or comes again, is only answered.
static void keep(struct stream *s, const struct segment *in)
{
	struct held *h = &s->got[in->number % WINDOW];

	s->must_acknowledge = true;
	if (in->kind != OPEN && in->number == 0 && !s->is_opened)
		return;
	if (in->kind == OPEN && s->is_opened)
		return;
	if (in->number - s->base >= WINDOW || is_before(in->number, s->expected) || h->is_there)
		return;
	if (s->has_end && !is_before(in->number, s->end))
		return;
	if (in->len) {
		h->octets = malloc(in->len);
		if (!h->octets)
			return;
		memcpy(h->octets, in->octets, in->len);
	}
	h->len = in->len;
	h->kind = in->kind;
	h->is_there = true;
	if (in->kind == OPEN)
		s->is_opened = true;
	if (in->kind == END) {
		s->has_end = true;
		s->end = in->number;
	}
	while (s->expected - s->base < WINDOW && s->got[s->expected % WINDOW].is_there)
		s->expected++;
}

// What the peer said, but for RESET.
void stream_hear(struct stream *s, const struct segment *in, int64_t now)
{
	s->heard_at = now;
	acknowledged(s, in, now);
	if (in->kind <= END)
		keep(s, in);
}

// Sends what may leave and repeats what was not answered in time. One segment beyond the window asks whether
// there is room again.
void stream_send(struct stream *s, int64_t now)
{
	uint32_t under_way = 0;

	if (!s->is_started)
		return;
	if (s->una != s->next && now >= s->again_at) {
		if (s->sent[s->una % WINDOW].tries)
			yield(s, 2);
		if (repeat(s, s->una, now))
			s->rto = s->rto * 2 < RTO_MAX_MS ? s->rto * 2 : RTO_MAX_MS;
		s->again_at = now + s->rto;
	}
	for (uint32_t i = s->una; i != s->next && under_way < s->share && is_before(i, s->edge); i++) {
		const struct held *h = &s->sent[i % WINDOW];

		if (h->is_there)
			continue;
		under_way++;
		if (!h->tries && !repeat(s, i, now))
			return;
	}
	// Room that came since is told when it is a quarter of the window.
	if (s->base + WINDOW - s->told >= WINDOW / 4 && s->is_opened)
		s->must_acknowledge = true;
	if (s->must_acknowledge)
		stream_confirm(s);
}
