// SPDX-License-Identifier: Apache-2.0 OR MIT
// Whom a socket talks to: scopes and items of each peer, and datagrams that wait for a way.

#include "onym_udp.h"

void publish_scopes(int fd, const uint8_t *id)
{
	(void)say(fd, PUBLISH_SCOPE, id, 1, NULL, 0);
	(void)say(fd, PUBLISH_SCOPE, id, 2, NULL, 0);
}

void forget_waiting(struct peer *p)
{
	while (p->waiting) {
		struct waiting *w = p->waiting;

		p->waiting = w->next;
		free(w);
	}
	p->waiting_count = 0;
	p->waiting_end = &p->waiting;
}

static void forget(int fd, struct sock *s, struct peer *p)
{
	forget_waiting(p);
	(void)say(fd, UNPUBLISH_ITEM, p->out, 3, NULL, 0);
	if (p->is_client)
		(void)say(fd, UNSUBSCRIBE_ITEM, p->in, 3, NULL, 0);
	if (s->connected == p)
		s->connected = NULL;
	memset(p, 0, sizeof(*p));
}

// A place for a new peer; the one that was used longest ago makes room.
static struct peer *place(int fd, struct sock *s)
{
	struct peer *oldest = NULL;

	for (struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++) {
		if (!p->is_used)
			return p;
		if (p != s->connected && (!oldest || p->last_use < oldest->last_use))
			oldest = p;
	}
	forget(fd, s, oldest);
	return oldest;
}

// The peer that the program means by `address`; a new one is a server that we are a client of.
struct peer *peer_at(int fd, struct sock *s, const struct sockaddr_in6 *address)
{
	struct peer *p;

	for (p = s->peers; p < s->peers + PEERS_MAX; p++)
		if (p->is_used && is_same_place(&p->address, address))
			return p;
	p = place(fd, s);
	p->is_used = p->is_client = true;
	p->waiting_end = &p->waiting;
	p->address = *address;
	scope_of(address, ROOTS, p->out);
	memcpy(p->in, p->out, ID_MAX);
	if (getrandom(p->out + 2 * LABEL, LABEL, 0) != LABEL)
		return NULL;
	sha256_label(p->out, ID_MAX, p->in + 2 * LABEL);
	publish_scopes(fd, p->out);
	(void)say(fd, SUBSCRIBE_ITEM, p->in, 3, NULL, 0);
	(void)say(fd, PUBLISH_ITEM, p->out, 3, NULL, 0);
	return p;
}

// The peer that sent what came under `id`; a new one is a client of ours.
struct peer *peer_from(int fd, struct sock *s, const uint8_t *id)
{
	struct peer *p;

	for (p = s->peers; p < s->peers + PEERS_MAX; p++)
		if (p->is_used && !memcmp(p->in, id, ID_MAX))
			return p;
	if (!s->bound.sin6_port)
		return NULL;
	p = place(fd, s);
	p->is_used = true;
	p->waiting_end = &p->waiting;
	memcpy(p->in, id, ID_MAX);
	memcpy(p->out, id, ID_MAX);
	sha256_label(id, ID_MAX, p->out + 2 * LABEL);
	client_place(id, ROOTS, &p->address);
	(void)say(fd, PUBLISH_ITEM, p->out, 3, NULL, 0);
	return p;
}

void deliver(int fd, struct sock *s, struct peer *p, const void *payload, size_t len)
{
	struct waiting *w;

	p->last_use = ++s->uses;
	if (p->is_started) {
		(void)say(fd, PUBLISH, p->out, 3, payload, len);
		return;
	}
	if (p->waiting_count >= WAITING_MAX)
		return;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return;
	w->next = NULL;
	w->len = len;
	memcpy(w->payload, payload, len);
	*p->waiting_end = w;
	p->waiting_end = &w->next;
	p->waiting_count++;
}

void event(int fd, struct sock *s, const struct message *m)
{
	bool is_start = m->kind == START_PUBLISH;

	if ((!is_start && m->kind != STOP_PUBLISH) || m->id_len != ID_MAX)
		return;
	for (struct peer *p = s->peers; p < s->peers + PEERS_MAX; p++) {
		if (!p->is_used || memcmp(p->out, m->id, ID_MAX))
			continue;
		p->is_started = is_start;
		if (is_start) {
			for (struct waiting *w = p->waiting; w; w = w->next)
				(void)say(fd, PUBLISH, p->out, 3, w->payload, w->len);
			forget_waiting(p);
		} else if (!p->is_client) {
			forget(fd, s, p);
		}
		return;
	}
}

// Obeys what the node said before the next datagram, without waiting.
void obey(int fd, struct sock *s)
{
	struct message m;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &s->obeyed);
	while (look(fd, &s->in, &m) > 0 && m.kind != DATA) {
		event(fd, s, &m);
		if (!pass(fd, &s->in))
			return;
	}
}

// Whether that has to be done before something is sent to `p`: a way that is there is hardly ever gone.
bool must_obey(const struct sock *s, const struct peer *p)
{
	struct timespec now;

	if (!p || !p->is_started)
		return true;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (now.tv_sec - s->obeyed.tv_sec) * 1000 + (now.tv_nsec - s->obeyed.tv_nsec) / 1000000 >= OBEY_MS;
}
