// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nacks: made, merged, passed on. Entry: nnet_nack_in(), last.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include "forward.h"

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

void nnet_refuse(const struct nnet_incoming *i, u8 reason)
{
	struct nnet_record to = {};

	if (i->multi)
		return;
	nnet_record_of(&to, i);
	nnet_nack(i->nn, i->cb.face, i->skb, &i->v, reason, &to);
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
void nnet_nack_down(struct nnet_pending *e, u8 reason, u32 only)
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

void nnet_nack_in(struct nnet_incoming *i)
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
		e = nnet_pit_find(nn, &i->v, &i->key);
		verdict = e ? nnet_nack_entry(nn, e, i) : NNET_C_N_NO_ENTRY;
		if (e)
			nnet_pit_put(e);
	}
	nnet_count(nn, verdict);
	consume_skb(i->skb);
}
