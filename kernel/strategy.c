// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where an Interest goes: best-route, multicast, random, the application's
 * choice, the store.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include <linux/random.h>

#include "forward.h"

/* Whether an Interest may go to a face: /localhost stays, /localhop goes one hop. */
static bool nnet_in_scope(const struct nnet_incoming *i,
			  const struct nnet_face *face)
{
	return face->local || !((i->v.flags & NNET_V_LOCALHOST) ||
				((i->v.flags & NNET_V_LOCALHOP) && !i->local));
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
	return face && nnet_in_scope(i, face) ? id : 0;
}

/*
 * Whether the first Interest of another downstream joins those that wait: it
 * says nothing of a loss. What is under way was sent within the longest
 * interval, and lasts at least half as long as this one.
 */
static bool nnet_joins(const struct nnet_incoming *i,
		       const struct nnet_pending *e)
{
	const struct nnet_record *r, *latest = NULL;

	list_for_each_entry(r, &e->in, node)
		if (r->face == i->cb.face && r->repeats)
			return false;
	list_for_each_entry(r, &e->out, node)
		if (!r->nacked && time_before(jiffies, r->expires) &&
		    (!latest || time_after(r->sent, latest->sent)))
			latest = r;
	return latest &&
	       time_before(jiffies, latest->sent +
			   msecs_to_jiffies(NNET_RETX_MAX_MS)) &&
	       2 * (latest->expires - jiffies) >=
		       msecs_to_jiffies(i->v.lifetime);
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

	if (nnet_joins(i, e))
		return;
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

/* Notes that an Interest goes out by a face. Context: e->lock held. */
static bool nnet_note_out(const struct nnet_incoming *i, struct nnet_pending *e,
			  u32 face)
{
	struct nnet_record *r = nnet_out_get(e, face);

	if (!r)
		return false;
	r->nonce = i->v.nonce;
	r->nacked = 0;
	r->sent = jiffies;
	r->expires = jiffies + msecs_to_jiffies(i->v.lifetime);
	e->last_sent = jiffies;
	return true;
}

/* By the strategy of the name. Context: e->lock held. */
void nnet_decide_by_strategy(const struct nnet_incoming *i,
			     struct nnet_pending *e, struct nnet_decision *d)
{
	const struct nnet_hops *hops = nnet_fib_route(i->nn, &i->v, &i->key);
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
	for (n = 0; n < d->n && nnet_note_out(i, e, d->face[n]); n++)
		d->verdict = NNET_C_I_FORWARDED;
	d->n = n;
}

/* The application chose the next hop: no strategy. */
static void nnet_decide_chosen(const struct nnet_incoming *i,
			       struct nnet_pending *e, struct nnet_decision *d)
{
	struct nnet_face *face = nnet_face_peek(i->nn, i->cb.next_face);

	if (!face) {
		d->verdict = NNET_C_I_NEXT_HOP_INVALID;
	} else if (!nnet_in_scope(i, face)) {
		d->verdict = NNET_C_I_SCOPE;
	} else if (!nnet_note_out(i, e, i->cb.next_face)) {
		d->verdict = NNET_C_I_NO_MEMORY;
	} else {
		d->face[d->n++] = i->cb.next_face;
		d->verdict = NNET_C_I_FORWARDED;
	}
}

/**
 * nnet_decide() - decide about an Interest and note what will be sent
 * @i: the Interest
 * @e: its entry
 * @d: the decision, zeroed by the caller
 *
 * The store is an upstream that is asked before all others, once.
 *
 * Context: e->lock held.
 */
void nnet_decide(const struct nnet_incoming *i, struct nnet_pending *e,
		 struct nnet_decision *d)
{
	if (i->cb.flags & NNET_CB_NEXT_FACE) {
		nnet_decide_chosen(i, e, d);
	} else if (list_empty(&e->out) &&
		   nnet_store_wanted(i->nn, &i->v, &i->key)) {
		d->verdict = NNET_C_I_FORWARDED;
		d->store = nnet_note_out(i, e, NNET_FACE_STORE);
	} else {
		nnet_decide_by_strategy(i, e, d);
	}
}

/* Whether routes lead an Interest to a face, under multicast. */
static bool nnet_multicast_leads(const struct nnet_incoming *i, u32 face)
{
	const struct nnet_hops *hops;
	u32 n;

	if (nnet_strategy_lookup(i->nn, i->v.name, &i->key) !=
	    NNET_STRATEGY_MULTICAST)
		return false;
	hops = nnet_fib_route(i->nn, &i->v, &i->key);
	for (n = 0; hops && n < hops->n; n++)
		if (hops->hop[n].face == face)
			return true;
	return false;
}

/* Sends a pending Interest to a next hop that is new. */
static void nnet_pending_to(struct nnet_pending *e, u32 face)
{
	struct nnet_incoming i = { .nn = e->nn, .skb = e->skb };
	struct nnet_decision d = {};
	struct nnet_record *in;
	u32 id = 0;

	if (nnet_interest_parse(e->skb->data, e->skb->len, &i.v))
		return;
	nnet_key_make(&nnet_secret, i.v.name, i.v.name_len, &i.key);
	if (!nnet_multicast_leads(&i, face))
		return;
	spin_lock(&e->lock);
	list_for_each_entry(in, &e->in, node) {
		struct nnet_face *from = nnet_face_peek(i.nn, in->face);

		i.cb.face = in->face;
		i.local = from && from->local;
		id = e->dead ? 0 : nnet_eligible(&i, face);
		if (id)
			break;
	}
	if (id && !nnet_record_find(&e->out, id) && nnet_note_out(&i, e, id))
		d.face[d.n++] = id;
	spin_unlock(&e->lock);
	nnet_interest_out(&i, &d);
}

/**
 * nnet_next_hop_added() - a prefix has a new next hop
 * @nn: whose
 * @name: the prefix
 * @len: its octets
 * @face: the next hop
 *
 * Under multicast the Interests that are pending go there too; of those that
 * share a bucket the first NNET_MATCH_MAX.
 *
 * Context: a process, nn->control not held.
 */
void nnet_next_hop_added(struct nnet_net *nn, const u8 *name, u16 len, u32 face)
{
	struct nnet_pending *found[NNET_MATCH_MAX];
	unsigned int n, k;
	u32 bucket;

	if (!READ_ONCE(nn->fib.multicasts))
		return;
	for (bucket = 0; bucket <= nn->pit.table.mask; bucket++) {
		if (!atomic_read(&nn->pit.count))
			return;
		local_bh_disable();
		rcu_read_lock();
		n = nnet_pit_under(nn, bucket, name, len, found);
		for (k = 0; k < n; k++) {
			nnet_pending_to(found[k], face);
			nnet_pit_put(found[k]);
		}
		rcu_read_unlock();
		local_bh_enable();
		cond_resched();
	}
}
