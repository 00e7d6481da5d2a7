// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The path of an Interest: guard, content store, PIT, decision, out. Entry:
 * nnet_interest(), below its parts. Nothing is sent while a lock is held.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include <linux/random.h>

#include "forward.h"

void nnet_record_of(struct nnet_record *r, const struct nnet_incoming *i)
{
	r->face = i->cb.face;
	r->nonce = i->v.nonce;
	r->hop = i->hop;
	r->expires = jiffies + msecs_to_jiffies(i->v.lifetime);
	r->token_len = i->cb.token_len;
	memcpy(r->token, i->cb.token, i->cb.token_len);
}

/*
 * Whether a Nonce came around. The same one from the same face is somebody's
 * retransmission, unless several stand behind the face.
 */
static bool nnet_is_loop(const struct nnet_incoming *i, struct nnet_pending *e)
{
	struct nnet_record *r;
	bool loop = false;

	list_for_each_entry(r, &e->in, node) {
		if (r->nonce != i->v.nonce)
			continue;
		if (r->face == i->cb.face && !i->multi)
			return false;
		loop = true;
	}
	list_for_each_entry(r, &e->out, node)
		loop |= r->nonce == i->v.nonce;
	return loop;
}

static void nnet_loop(const struct nnet_incoming *i, enum nnet_counter verdict)
{
	nnet_count(i->nn, verdict);
	if (nnet_strategy_lookup(i->nn, i->v.name, &i->key) !=
	    NNET_STRATEGY_MULTICAST)
		nnet_refuse(i, 100);
}

/* Sends an Interest to where it was decided that it goes. */
void nnet_interest_out(const struct nnet_incoming *i,
			      const struct nnet_decision *d)
{
	struct nnet_cb cb = { .face = i->cb.face, .mark = i->cb.mark };
	struct nnet_face *face;
	u8 n;

	for (n = 0; n < d->n; n++) {
		if ((i->v.flags & NNET_V_HOP) && !i->v.hop) {
			face = nnet_face_peek(i->nn, d->face[n]);
			if (!face || !face->local) {
				nnet_count(i->nn, NNET_C_U_OUT_HOP_LIMIT);
				continue;
			}
		}
		nnet_send(i->nn, d->face[n], i->skb, &cb);
	}
}

/*
 * Gives an Interest its in-record and decides about it.
 * Return: false when the entry died meanwhile; look again.
 */
static bool nnet_interest_admit(struct nnet_incoming *i, struct nnet_pending *e)
{
	struct nnet_decision d = {};
	struct nnet_record *in;
	bool ended = false;

	spin_lock(&e->lock);
	if (e->dead) {
		spin_unlock(&e->lock);
		return false;
	}
	if (nnet_is_loop(i, e)) {
		spin_unlock(&e->lock);
		nnet_loop(i, NNET_C_I_DUPLICATE_NONCE);
		return true;
	}
	in = nnet_in_get(e, i->cb.face);
	if (!in) {
		ended = list_empty(&e->in);
		e->dead = ended;
		spin_unlock(&e->lock);
		if (ended)
			nnet_pit_kill(e);
		nnet_count(i->nn, NNET_C_I_PIT_SHARE);
		return true;
	}
	nnet_record_of(in, i);
	if (!timer_pending(&e->timer) ||
	    time_before(e->timer.expires, in->expires))
		nnet_pit_arm(e, in->expires);
	nnet_decide(i, e, &d);
	if (!d.n && list_empty(&e->out)) {
		/* Nothing went out and nothing will: it waits for nobody. */
		if (d.verdict == NNET_C_I_AGGREGATED)
			d.verdict = NNET_C_I_NO_ELIGIBLE;
		ended = d.nack;
		e->dead = ended;
	}
	spin_unlock(&e->lock);
	nnet_count(i->nn, d.verdict);
	if (ended)
		nnet_pit_kill(e);
	if (d.nack)
		nnet_refuse(i, d.nack);
	if (d.store && !nnet_store_ask(i->nn, i->skb))
		nnet_store_missed(i->nn, skb_get(i->skb));
	nnet_interest_out(i, &d);
	return true;
}

static bool nnet_interest_cached(const struct nnet_incoming *i)
{
	struct nnet_cs_packet *p = nnet_cs_find(i->nn, &i->v, &i->key);
	struct nnet_cb cb = {
		.face = NNET_FACE_CACHE,
		.flags = NNET_CB_FROM_CACHE,
		.token_len = i->cb.token_len,
	};

	if (!p)
		return false;
	memcpy(cb.token, i->cb.token, cb.token_len);
	nnet_count(i->nn, NNET_C_I_CS_HIT);
	nnet_send(i->nn, i->cb.face, p->skb, &cb);
	nnet_cs_put(p);
	return true;
}

/* Finds or makes the entry; answers from the cache when there was none. */
static void nnet_interest_pend(struct nnet_incoming *i)
{
	struct nnet_net *nn = i->nn;
	bool dead = nnet_dead_has(nn, i->key.full, i->v.nonce);
	struct nnet_pending *e;
	bool is_new, done;
	int tries;

	for (tries = 0; tries < 8; tries++) {
		e = nnet_pit_find(nn, &i->v, &i->key);
		if (!e && nnet_interest_cached(i))
			return;
		if (dead) {
			if (e)
				nnet_pit_put(e);
			nnet_loop(i, NNET_C_I_DEAD_NONCE);
			return;
		}
		if (!e && nnet_over_share(nn, i->cb.face,
					  nnet_pending_octets(i->skb))) {
			nnet_count(nn, NNET_C_I_PIT_SHARE);
			nnet_refuse(i, 50);
			return;
		}
		if (!e) {
			nnet_count(nn, NNET_C_T_CS_MISSES);
			e = nnet_pit_insert(nn, i->skb, &i->v, &i->key,
					    &is_new);
		}
		if (IS_ERR(e)) {
			nnet_count(nn, PTR_ERR(e) == -ENOMEM ?
					       NNET_C_I_NO_MEMORY :
					       NNET_C_I_PIT_FULL);
			nnet_refuse(i, 50);
			return;
		}
		done = nnet_interest_admit(i, e);
		if (!done)
			nnet_pit_unlink(e);
		nnet_pit_put(e);
		if (done)
			return;
	}
	nnet_count(nn, NNET_C_I_NO_MEMORY);
}

/*
 * An Interest written anew, with a Nonce and without its hint.
 * Rare: applications set the Nonce, and hints end in few places.
 */
static struct sk_buff *nnet_interest_rewrite(struct sk_buff *skb,
					     const struct nnet_view *v,
					     bool strip)
{
	bool nonce = !(v->flags & NNET_V_NONCE);
	const u8 *p = skb->data + v->after_name, *end = skb_tail_pointer(skb);
	unsigned int size = v->name_len + nnet_tl_size(NNET_T_NAME, 0) + 2;
	const u8 *start;
	struct sk_buff *out;
	u32 type, len;
	u8 *q;

	size += end - p + 6;
	out = alloc_skb(NNET_LINK_HEADROOM + 6 + size, GFP_ATOMIC);
	if (!out)
		return NULL;
	skb_reserve(out, NNET_LINK_HEADROOM + 6);
	q = out->data;
	q = nnet_tl_put(q, NNET_T_NAME, v->name_len);
	memcpy(q, v->name, v->name_len);
	q += v->name_len;
	while (p < end) {
		start = p;
		if (nnet_tl_get(&p, end, &type, &len))
			break;
		p += len;
		if (nonce && (type == NNET_T_LIFETIME || type == NNET_T_HOP ||
			      type == NNET_T_PARAMS)) {
			q = nnet_tl_put(q, NNET_T_NONCE, 4);
			put_unaligned_be32(get_random_u32(), q);
			q += 4;
			nonce = false;
		}
		if (type == NNET_T_HINT && strip)
			continue;
		memcpy(q, start, p - start);
		q += p - start;
	}
	if (nonce) {
		q = nnet_tl_put(q, NNET_T_NONCE, 4);
		put_unaligned_be32(get_random_u32(), q);
		q += 4;
	}
	skb_put(out, q - out->data);
	len = out->len;
	skb_push(out, nnet_tl_size(NNET_T_INTEREST, len) - len);
	nnet_tl_put(out->data, NNET_T_INTEREST, len);
	*NNET_CB(out) = *NNET_CB(skb);
	__skb_header_release(out);
	return out;
}

/* Whether a delegation of the hint lies in a region of this host. */
static bool nnet_in_region(struct nnet_net *nn, const struct nnet_view *v)
{
	const u8 *p = v->hint, *end = p + v->hint_len;
	u8 n, regions = smp_load_acquire(&nn->regions);
	u32 type, len;

	if (!p || !regions)
		return false;
	while (p < end && !nnet_tl_get(&p, end, &type, &len)) {
		for (n = 0; n < regions; n++)
			if (type == NNET_T_NAME && len <= nn->region_len[n] &&
			    !memcmp(nn->region[n], p, len))
				return true;
		p += len;
	}
	return false;
}

/* Checks an Interest and makes it writable. Return: the verdict against it. */
static int nnet_interest_guard(struct nnet_incoming *i)
{
	struct nnet_view *v = &i->v;
	struct sk_buff *new;
	bool strip;

	if (i->cb.flags & (NNET_CB_CACHE_POLICY | NNET_CB_ANNOUNCEMENT))
		return NNET_C_I_UNEXPECTED_FIELD;
	if (nnet_interest_parse(i->skb->data, i->skb->len, v))
		return NNET_C_I_MALFORMED;
	i->hop = v->hop;
	if ((v->flags & NNET_V_HOP) && !v->hop)
		return NNET_C_I_HOP_LIMIT_ZERO;
	if ((v->flags & NNET_V_LOCALHOST) && !i->local)
		return NNET_C_I_SCOPE;
	strip = nnet_in_region(i->nn, v);
	if (strip || !(v->flags & NNET_V_NONCE)) {
		new = nnet_interest_rewrite(i->skb, v, strip);
		if (!new)
			return NNET_C_I_NO_MEMORY;
		consume_skb(i->skb);
		i->skb = new;
		if (nnet_interest_parse(new->data, new->len, v))
			return NNET_C_I_MALFORMED;
	}
	if (v->flags & NNET_V_HOP) {
		if (skb_cloned(i->skb)) {
			new = skb_copy_expand(i->skb, NNET_LINK_HEADROOM, 0,
					      GFP_ATOMIC);
			if (!new)
				return NNET_C_I_NO_MEMORY;
			consume_skb(i->skb);
			i->skb = new;
			nnet_interest_parse(new->data, new->len, v);
		}
		i->skb->data[v->hop_at] = --v->hop;
	}
	return -1;
}

void nnet_interest(struct nnet_incoming *i)
{
	int verdict = nnet_interest_guard(i);

	nnet_count(i->nn, NNET_C_C_INTERESTS);
	if (verdict >= 0) {
		nnet_count(i->nn, verdict);
	} else {
		nnet_key_make(&nnet_secret, i->v.name, i->v.name_len, &i->key);
		nnet_interest_pend(i);
	}
	consume_skb(i->skb);
}

/* Decides about an entry that the store could not answer. */
static void nnet_store_retry(struct nnet_incoming *i, struct nnet_pending *e)
{
	struct nnet_decision d = {};
	struct nnet_face *from;
	struct nnet_record *r;
	bool ended;

	spin_lock(&e->lock);
	r = e->dead ? NULL : nnet_record_find(&e->out, NNET_FACE_STORE);
	if (!r || list_empty(&e->in)) {
		spin_unlock(&e->lock);
		return;
	}
	nnet_out_free(e, r);
	r = list_last_entry(&e->in, struct nnet_record, node);
	i->cb.face = r->face;
	/* The scope is that of who asks, not of the store. */
	from = nnet_face_peek(i->nn, r->face);
	i->local = from && from->local;
	i->hop = r->hop;
	i->cb.token_len = r->token_len;
	memcpy(i->cb.token, r->token, r->token_len);
	nnet_decide_by_strategy(i, e, &d);
	ended = !d.n && d.nack;
	e->dead = ended;
	spin_unlock(&e->lock);
	if (ended) {
		nnet_pit_kill(e);
		nnet_nack_down(e, d.nack, 0);
	}
	nnet_interest_out(i, &d);
}

/**
 * nnet_store_missed() - the store has no answer for an Interest
 * @nn: whose
 * @skb: the Interest, as it was asked; taken
 */
void nnet_store_missed(struct nnet_net *nn, struct sk_buff *skb)
{
	struct nnet_incoming i = { .nn = nn, .skb = skb };
	struct nnet_pending *e;

	rcu_read_lock();
	if (!nnet_interest_parse(skb->data, skb->len, &i.v)) {
		nnet_key_make(&nnet_secret, i.v.name, i.v.name_len, &i.key);
		e = nnet_pit_find(nn, &i.v, &i.key);
		if (e) {
			nnet_store_retry(&i, e);
			nnet_pit_put(e);
		}
	}
	rcu_read_unlock();
	consume_skb(skb);
}
