// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The path of a packet: Interest, Data, Nack. Entry: nnet_forward(), last;
 * above it, in call order, its parts. Nothing is sent while a lock is held.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include <linux/random.h>
#include <crypto/sha2.h>

#include "nnet.h"

/* An Interest on its way in. */
struct nnet_incoming {
	struct nnet_net *nn;
	struct sk_buff *skb;
	struct nnet_view v;
	struct nnet_key key;
	struct nnet_cb cb;
	bool local;		/* of the face it came from */
	bool multi;
	u8 hop;			/* HopLimit as it came */
};

/* Where an Interest goes. */
struct nnet_decision {
	u32 face[NNET_HOPS_MAX];
	u8 n;
	u8 nack;		/* reason of the Nack that it gets instead */
	bool store;		/* the store is asked first */
	enum nnet_counter verdict;
};

/**
 * nnet_send() - send a packet by the face of a number
 * @nn: whose
 * @id: the face
 * @skb: the packet; stays the caller's
 * @cb: link fields; cb->face is the face it came from
 */
void nnet_send(struct nnet_net *nn, u32 id, struct sk_buff *skb,
	       const struct nnet_cb *cb)
{
	struct nnet_face *face = nnet_face_hold(nn, id);
	struct sk_buff *clone;

	if (!face) {
		nnet_count(nn, NNET_C_U_FACE_GONE);
		return;
	}
	clone = skb_clone(skb, GFP_ATOMIC);
	if (clone) {
		*NNET_CB(clone) = *cb;
		NNET_CB(clone)->next_face = face->local_fields ? cb->face : 0;
		nnet_face_out(face, clone);
	} else {
		nnet_count(nn, NNET_C_U_NO_MEMORY);
	}
	nnet_face_put(face);
}

/* Sends an Interest back as a Nack, with the nonce and hop limit it had. */
static void nnet_nack(struct nnet_net *nn, u32 id, const struct sk_buff *skb,
		      const struct nnet_view *v, u8 reason,
		      const struct nnet_record *to)
{
	struct sk_buff *copy;
	struct nnet_cb cb = {
		.flags = NNET_CB_NACK,
		.reason = reason,
		.token_len = to->token_len,
	};

	copy = skb_copy_expand(skb, NNET_LINK_HEADROOM, 0, GFP_ATOMIC);
	if (!copy) {
		nnet_count(nn, NNET_C_U_NO_MEMORY);
		return;
	}
	memcpy(cb.token, to->token, to->token_len);
	put_unaligned_be32(to->nonce, copy->data + v->nonce_at);
	if (v->flags & NNET_V_HOP)
		copy->data[v->hop_at] = to->hop;
	nnet_send(nn, id, copy, &cb);
	consume_skb(copy);
}

static void nnet_record_of(struct nnet_record *r, const struct nnet_incoming *i)
{
	r->face = i->cb.face;
	r->nonce = i->v.nonce;
	r->hop = i->hop;
	r->expires = jiffies + msecs_to_jiffies(i->v.lifetime);
	r->token_len = i->cb.token_len;
	memcpy(r->token, i->cb.token, i->cb.token_len);
}

static void nnet_refuse(const struct nnet_incoming *i, u8 reason)
{
	struct nnet_record to = {};

	if (i->multi)
		return;
	nnet_record_of(&to, i);
	nnet_nack(i->nn, i->cb.face, i->skb, &i->v, reason, &to);
}

/*
 * The face that a next hop means for an Interest, 0 when it must not go there.
 * Face_local stands for the application that serves the name.
 */
static u32 nnet_eligible(const struct nnet_incoming *i, u32 id)
{
	struct nnet_face *face;

	if (id == NNET_FACE_LOCAL) {
		id = nnet_bpt_lookup(i->nn, i->v.name, &i->key);
		if (!id) {
			nnet_count(i->nn, NNET_C_T_BPT_MISS);
			return 0;
		}
	}
	if (id == i->cb.face)
		return 0;
	face = nnet_face_peek(i->nn, id);
	if (!face)
		return 0;
	if (face->local)
		return id;
	if ((i->v.flags & NNET_V_LOCALHOST) ||
	    ((i->v.flags & NNET_V_LOCALHOP) && !i->local))
		return 0;
	return id;
}

/* best-route: the cheapest; on retransmissions one that was not used yet. */
static void nnet_best_route(const struct nnet_incoming *i,
			    struct nnet_pending *e,
			    const struct nnet_hops *hops,
			    struct nnet_decision *d)
{
	struct nnet_record *r, *oldest = NULL;
	bool again = false;
	u32 n, id, best = 0;

	list_for_each_entry(r, &e->out, node)
		again |= time_before(jiffies, r->expires);
	if (again && time_before(jiffies, e->last_sent +
				 msecs_to_jiffies(e->interval))) {
		d->verdict = NNET_C_I_SUPPRESSED;
		return;
	}
	for (n = 0; hops && n < hops->n && !best; n++) {
		id = nnet_eligible(i, hops->hop[n].face);
		if (!id)
			continue;
		r = nnet_record_find(&e->out, id);
		if (!again || !r || !time_before(jiffies, r->expires))
			best = id;
		else if (!oldest || time_before(r->sent, oldest->sent))
			oldest = r;
	}
	if (!best && oldest)
		best = oldest->face;
	if (best) {
		d->face[d->n++] = best;
		if (again)
			e->interval = min(e->interval * 2, NNET_RETX_MAX_MS);
	} else if (!again) {
		d->nack = 150;
		d->verdict = hops ? NNET_C_I_NO_ELIGIBLE : NNET_C_I_NO_ROUTE;
	}
}

/* multicast: all of them, each with its own suppression; no Nacks. */
static void nnet_multicast(const struct nnet_incoming *i,
			   struct nnet_pending *e,
			   const struct nnet_hops *hops,
			   struct nnet_decision *d)
{
	struct nnet_record *r;
	bool held = false;
	u32 n, id;

	for (n = 0; hops && n < hops->n; n++) {
		id = nnet_eligible(i, hops->hop[n].face);
		if (!id)
			continue;
		r = nnet_record_find(&e->out, id);
		if (r && time_before(jiffies, r->expires)) {
			if (time_before(jiffies, r->sent +
					msecs_to_jiffies(r->interval))) {
				held = true;
				continue;
			}
			r->interval = min(r->interval * 2, NNET_RETX_MAX_MS);
		}
		d->face[d->n++] = id;
	}
	if (d->n)
		return;
	if (held)
		d->verdict = NNET_C_I_SUPPRESSED;
	else if (list_empty(&e->out))
		d->verdict = hops ? NNET_C_I_NO_ELIGIBLE : NNET_C_I_NO_ROUTE;
}

static void nnet_random(const struct nnet_incoming *i, struct nnet_pending *e,
			const struct nnet_hops *hops, struct nnet_decision *d)
{
	u32 n, id, count = 0, chosen = 0;

	for (n = 0; hops && n < hops->n; n++) {
		id = nnet_eligible(i, hops->hop[n].face);
		if (id && !(get_random_u32() % ++count))
			chosen = id;
	}
	if (chosen) {
		d->face[d->n++] = chosen;
	} else {
		d->nack = 150;
		d->verdict = hops ? NNET_C_I_NO_ELIGIBLE : NNET_C_I_NO_ROUTE;
	}
}

/* Decides about an Interest and notes what will be sent. Context: e->lock. */
static void nnet_decide(const struct nnet_incoming *i, struct nnet_pending *e,
			struct nnet_decision *d)
{
	const struct nnet_hops *hops = nnet_fib_route(i->nn, &i->v, &i->key);
	struct nnet_record *r;
	u8 n;

	d->verdict = NNET_C_I_AGGREGATED;
	switch (nnet_strategy_lookup(i->nn, i->v.name, &i->key)) {
	case NNET_STRATEGY_MULTICAST:
		nnet_multicast(i, e, hops, d);
		break;
	case NNET_STRATEGY_RANDOM:
		nnet_random(i, e, hops, d);
		break;
	default:
		nnet_best_route(i, e, hops, d);
	}
	for (n = 0; n < d->n; n++) {
		r = nnet_out_get(e, d->face[n]);
		if (!r)
			break;
		r->nonce = i->v.nonce;
		r->nacked = 0;
		r->sent = jiffies;
		r->expires = jiffies + msecs_to_jiffies(i->v.lifetime);
		e->last_sent = jiffies;
		d->verdict = NNET_C_I_FORWARDED;
	}
	d->n = n;
}

static bool nnet_is_loop(const struct nnet_incoming *i, struct nnet_pending *e)
{
	struct nnet_record *r;

	list_for_each_entry(r, &e->in, node)
		if (r->nonce == i->v.nonce &&
		    (r->face != i->cb.face || i->multi))
			return true;
	list_for_each_entry(r, &e->out, node)
		if (r->nonce == i->v.nonce)
			return true;
	return false;
}

static void nnet_loop(const struct nnet_incoming *i, enum nnet_counter verdict)
{
	nnet_count(i->nn, verdict);
	if (nnet_strategy_lookup(i->nn, i->v.name, &i->key) !=
	    NNET_STRATEGY_MULTICAST)
		nnet_refuse(i, 100);
}

/* Sends an Interest to where it was decided that it goes. */
static void nnet_interest_out(const struct nnet_incoming *i,
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
 * The application chose the next hop: no strategy, no scope check.
 * Context: e->lock held.
 */
static void nnet_decide_chosen(const struct nnet_incoming *i,
			       struct nnet_pending *e, struct nnet_decision *d)
{
	struct nnet_record *r;

	if (!nnet_face_peek(i->nn, i->cb.next_face)) {
		d->verdict = NNET_C_I_NEXT_HOP_INVALID;
		return;
	}
	r = nnet_out_get(e, i->cb.next_face);
	if (!r) {
		d->verdict = NNET_C_I_NO_MEMORY;
		return;
	}
	r->nonce = i->v.nonce;
	r->sent = jiffies;
	r->expires = jiffies + msecs_to_jiffies(i->v.lifetime);
	e->last_sent = jiffies;
	d->face[d->n++] = i->cb.next_face;
	d->verdict = NNET_C_I_FORWARDED;
}

/* The store is an upstream that is asked before all others. */
static void nnet_decide_store(const struct nnet_incoming *i,
			      struct nnet_pending *e, struct nnet_decision *d)
{
	struct nnet_record *r = nnet_out_get(e, NNET_FACE_STORE);

	d->verdict = NNET_C_I_FORWARDED;
	if (!r)
		return;
	r->nonce = i->v.nonce;
	r->sent = jiffies;
	r->expires = jiffies + msecs_to_jiffies(i->v.lifetime);
	e->last_sent = jiffies;
	d->store = true;
}

/* A face may use three quarters of the table and no more. */
static bool nnet_over_share(const struct nnet_incoming *i)
{
	struct nnet_slot *slot = nnet_slot(i->nn, i->cb.face);
	u32 max = READ_ONCE(i->nn->pit.max);

	return slot && atomic_read(&slot->pending) >= max - max / 4;
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
		spin_unlock(&e->lock);
		nnet_count(i->nn, NNET_C_I_PIT_SHARE);
		return true;
	}
	nnet_record_of(in, i);
	if (!timer_pending(&e->timer) ||
	    time_before(e->timer.expires, in->expires))
		nnet_pit_arm(e, in->expires);
	if (i->cb.flags & NNET_CB_NEXT_FACE)
		nnet_decide_chosen(i, e, &d);
	else if (list_empty(&e->out) &&
		 nnet_store_wanted(i->nn, &i->v, &i->key))
		nnet_decide_store(i, e, &d);
	else
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
		e = nnet_pit_find(nn, &i->v, i->key.full);
		if (!e && nnet_interest_cached(i))
			return;
		if (dead) {
			if (e)
				nnet_pit_put(e);
			nnet_loop(i, NNET_C_I_DEAD_NONCE);
			return;
		}
		if (!e && nnet_over_share(i)) {
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
			nnet_count(nn, PTR_ERR(e) == -ENOSPC ?
					       NNET_C_I_PIT_FULL :
					       NNET_C_I_NO_MEMORY);
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
	u32 type, len;
	u8 n;

	if (!p || !READ_ONCE(nn->regions))
		return false;
	while (p < end && !nnet_tl_get(&p, end, &type, &len)) {
		for (n = 0; n < READ_ONCE(nn->regions); n++)
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

static void nnet_interest(struct nnet_incoming *i)
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

/* Takes an entry that a Data answers; its in-records go to the list. */
static bool nnet_take(struct nnet_pending *e)
{
	bool mine;

	spin_lock(&e->lock);
	mine = !e->dead;
	if (mine) {
		e->dead = true;
		e->satisfied = true;
		nnet_dead_add_outs(e);
	}
	spin_unlock(&e->lock);
	nnet_pit_kill(e);
	return mine;
}

/* Whether a face was sent this Data already, through an earlier record. */
static bool nnet_was_sent(struct nnet_pending **found, unsigned int n,
			  const struct nnet_record *until)
{
	struct nnet_record *r;
	unsigned int k;

	for (k = 0; k < n; k++)
		list_for_each_entry(r, &found[k]->in, node) {
			if (r == until)
				return false;
			if (r->face == until->face)
				return true;
		}
	return false;
}

/* Sends a Data to everyone who waits in the entries taken. */
static void nnet_fan_out(struct nnet_net *nn, struct sk_buff *skb,
			 const struct nnet_cb *came, bool multi,
			 struct nnet_pending **found, unsigned int n)
{
	struct nnet_cb cb = { .face = came->face, .mark = came->mark };
	struct nnet_record *r;
	unsigned int k;

	for (k = 0; k < n; k++) {
		list_for_each_entry(r, &found[k]->in, node) {
			if (time_after(jiffies, r->expires) ||
			    (r->face == came->face && !multi) ||
			    (n > 1 && nnet_was_sent(found, n, r)))
				continue;
			cb.token_len = r->token_len;
			memcpy(cb.token, r->token, r->token_len);
			nnet_send(nn, r->face, skb, &cb);
		}
	}
}

static bool nnet_unsolicited(struct nnet_net *nn, bool local)
{
	u8 policy = READ_ONCE(nn->cs.unsolicited);

	return policy == NNET_UNSOLICITED_ALL ||
	       policy == (local ? NNET_UNSOLICITED_LOCAL :
				  NNET_UNSOLICITED_NETWORK);
}

static bool nnet_data_deliver(struct nnet_net *nn, struct sk_buff *skb,
			      const struct nnet_view *v, bool local)
{
	struct nnet_pending *found[NNET_MATCH_MAX];
	struct nnet_cb cb = *NNET_CB(skb);
	bool any = false, cached = false;
	unsigned int n, k, taken;
	struct nnet_key key;
	u8 digest[32];
	bool asks;

	nnet_key_make(&nnet_secret, v->name, v->name_len, &key);
	asks = atomic_read(&nn->pit.digests);
	if (asks)
		sha256(skb->data, skb->len, digest);
	do {
		n = nnet_pit_match(nn, v, &key, asks ? digest : NULL, found);
		taken = 0;
		for (k = 0; k < n; k++) {
			if (nnet_take(found[k])) {
				found[taken++] = found[k];
				nnet_count(nn, NNET_C_P_SATISFIED);
			} else {
				nnet_pit_put(found[k]);
			}
		}
		any |= taken;
		if (taken && !cached) {
			cached = true;
			if (cb.face == NNET_FACE_STORE)
				nnet_count(nn, NNET_C_T_STORE_HIT);
			if (!(cb.flags & NNET_CB_NO_CACHE) &&
			    !(cb.face == NNET_FACE_STORE &&
			      READ_ONCE(nn->store.in_user)))
				nnet_cs_insert(nn, skb, v, &key, false);
		}
		nnet_fan_out(nn, skb, &cb, false, found, taken);
		for (k = 0; k < taken; k++)
			nnet_pit_put(found[k]);
	} while (n == NNET_MATCH_MAX);
	if (any)
		nnet_count(nn, NNET_C_D_SATISFIED);
	else if (nnet_unsolicited(nn, local) &&
		 !(cb.flags & NNET_CB_NO_CACHE) &&
		 nnet_cs_insert(nn, skb, v, &key, true))
		nnet_count(nn, NNET_C_D_STORED);
	else
		nnet_count(nn, NNET_C_D_UNSOLICITED);
	return any;
}

/* Return: whether somebody had asked for it. */
static bool nnet_data(struct nnet_net *nn, struct sk_buff *skb, bool local)
{
	bool asked = false;
	struct nnet_view v;

	nnet_count(nn, NNET_C_C_DATA);
	if (NNET_CB(skb)->flags & (NNET_CB_NEXT_FACE | NNET_CB_NON_DISCOVERY))
		nnet_count(nn, NNET_C_D_UNEXPECTED_FIELD);
	else if (nnet_data_parse(skb->data, skb->len, &v))
		nnet_count(nn, NNET_C_D_MALFORMED);
	else if ((v.flags & NNET_V_LOCALHOST) && !local)
		nnet_count(nn, NNET_C_D_SCOPE);
	else
		asked = nnet_data_deliver(nn, skb, &v, local);
	consume_skb(skb);
	return asked;
}

static u8 nnet_severity(u8 reason)
{
	return reason ?: 255;
}

/*
 * What a Nack means for its entry. Context: e->lock held.
 * Return: the reason to pass on, 255 for None, 0 to wait; *only is the one
 * downstream that learns of it, or 0 for all.
 */
static u8 nnet_nack_merge(struct nnet_pending *e, u32 *only)
{
	struct nnet_record *r, *last = NULL;
	unsigned int open = 0;
	u8 least = 255;

	list_for_each_entry(r, &e->out, node) {
		if (!r->nacked) {
			open++;
			last = r;
		} else {
			least = min(least, nnet_severity(r->reason));
		}
	}
	*only = 0;
	if (!open)
		return least;
	if (open == 1 && nnet_record_find(&e->in, last->face)) {
		*only = last->face;
		return least;
	}
	return 0;
}

/* Passes a Nack on to downstreams; those of the entry are taken first. */
static void nnet_nack_down(struct nnet_pending *e, u8 reason, u32 only)
{
	struct nnet_net *nn = e->nn;
	struct nnet_record *r, *next;
	struct nnet_face *face;
	struct nnet_view v;

	if (nnet_interest_parse(e->skb->data, e->skb->len, &v))
		return;
	list_for_each_entry_safe(r, next, &e->in, node) {
		if (only && r->face != only)
			continue;
		face = nnet_face_peek(nn, r->face);
		if (face && !face->multi && time_before(jiffies, r->expires))
			nnet_nack(nn, r->face, e->skb, &v,
				  reason == 255 ? 0 : reason, r);
	}
}

/* Return: the verdict on a Nack for an entry. */
static enum nnet_counter nnet_nack_entry(struct nnet_net *nn,
					 struct nnet_pending *e,
					 const struct nnet_incoming *i)
{
	bool multicast = nnet_strategy_lookup(nn, i->v.name, &i->key) ==
			 NNET_STRATEGY_MULTICAST;
	struct nnet_record *r, copy;
	bool ended = false;
	u32 only = 0;
	u8 reason;

	spin_lock(&e->lock);
	r = e->dead ? NULL : nnet_record_find(&e->out, i->cb.face);
	if (!r || r->nonce != i->v.nonce) {
		spin_unlock(&e->lock);
		return r ? NNET_C_N_STALE_NONCE : NNET_C_N_NO_ENTRY;
	}
	r->nacked = 1;
	r->reason = i->cb.reason;
	reason = nnet_nack_merge(e, &only);
	if (reason && !only) {
		ended = true;
		e->dead = true;
		nnet_dead_add_outs(e);
	} else if (only && !multicast) {
		r = nnet_record_find(&e->in, only);
		copy = *r;
		nnet_in_free(e, r);
	}
	spin_unlock(&e->lock);
	if (ended)
		nnet_pit_kill(e);
	if (!reason || multicast)
		return NNET_C_N_ABSORBED;
	if (ended) {
		nnet_count(nn, NNET_C_P_UNSATISFIED);
		nnet_nack_down(e, reason, 0);
	} else {
		struct nnet_view v;

		if (!nnet_interest_parse(e->skb->data, e->skb->len, &v))
			nnet_nack(nn, only, e->skb, &v,
				  reason == 255 ? 0 : reason, &copy);
	}
	return NNET_C_N_FORWARDED;
}

static void nnet_nack_in(struct nnet_incoming *i)
{
	struct nnet_net *nn = i->nn;
	enum nnet_counter verdict;
	struct nnet_pending *e;

	nnet_count(nn, NNET_C_C_NACKS);
	if (i->multi) {
		verdict = NNET_C_N_NOT_P2P;
	} else if (i->cb.flags & (NNET_CB_NEXT_FACE | NNET_CB_CACHE_POLICY |
				  NNET_CB_NON_DISCOVERY |
				  NNET_CB_ANNOUNCEMENT)) {
		verdict = NNET_C_N_UNEXPECTED_FIELD;
	} else if (nnet_interest_parse(i->skb->data, i->skb->len, &i->v)) {
		verdict = NNET_C_N_MALFORMED;
	} else {
		nnet_key_make(&nnet_secret, i->v.name, i->v.name_len, &i->key);
		e = nnet_pit_find(nn, &i->v, i->key.full);
		verdict = e ? nnet_nack_entry(nn, e, i) : NNET_C_N_NO_ENTRY;
		if (e)
			nnet_pit_put(e);
	}
	nnet_count(nn, verdict);
	consume_skb(i->skb);
}

/* The timer of an entry ran out. */
void nnet_pending_expired(struct nnet_pending *e)
{
	nnet_count(e->nn, NNET_C_P_UNSATISFIED);
	nnet_dead_add_outs(e);
}

/* Decides about an entry that the store could not answer. */
static void nnet_store_retry(struct nnet_incoming *i, struct nnet_pending *e)
{
	struct nnet_decision d = {};
	struct nnet_record *r;
	bool ended;

	spin_lock(&e->lock);
	r = e->dead ? NULL : nnet_record_find(&e->out, NNET_FACE_STORE);
	if (!r || list_empty(&e->in)) {
		spin_unlock(&e->lock);
		return;
	}
	list_del(&r->node);
	e->outs--;
	if (r == &e->out0)
		memset(r, 0, sizeof(*r));
	else
		kfree(r);
	r = list_last_entry(&e->in, struct nnet_record, node);
	i->cb.face = r->face;
	i->hop = r->hop;
	i->cb.token_len = r->token_len;
	memcpy(i->cb.token, r->token, r->token_len);
	nnet_decide(i, e, &d);
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
	struct nnet_incoming i = { .nn = nn, .skb = skb, .local = true };
	struct nnet_pending *e;

	rcu_read_lock();
	if (!nnet_interest_parse(skb->data, skb->len, &i.v)) {
		nnet_key_make(&nnet_secret, i.v.name, i.v.name_len, &i.key);
		e = nnet_pit_find(nn, &i.v, i.key.full);
		if (e) {
			nnet_store_retry(&i, e);
			nnet_pit_put(e);
		}
	}
	rcu_read_unlock();
	consume_skb(skb);
}

/**
 * nnet_forward() - take a packet through the tables
 * @nn: whose
 * @skb: the packet, linear; link fields and ingress in its control block; taken
 *
 * Return: whether it was a Data that somebody had asked for.
 */
bool nnet_forward(struct nnet_net *nn, struct sk_buff *skb)
{
	struct nnet_incoming i;
	struct nnet_face *face;
	bool asked = false;

	i.nn = nn;
	i.skb = skb;
	i.cb = *NNET_CB(skb);
	rcu_read_lock();
	face = nnet_face_peek(nn, i.cb.face);
	i.local = (face && face->local) || i.cb.face == NNET_FACE_STORE;
	i.multi = face && face->multi;
	if (!hlist_empty(&nn->taps))
		nnet_tap(nn, skb);
	if (i.cb.flags & NNET_CB_NACK) {
		nnet_nack_in(&i);
	} else if (skb->len && skb->data[0] == NNET_T_INTEREST) {
		nnet_interest(&i);
	} else if (skb->len && skb->data[0] == NNET_T_DATA) {
		asked = nnet_data(nn, skb, i.local);
	} else {
		nnet_count(nn, NNET_C_F_MALFORMED);
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return asked;
}
