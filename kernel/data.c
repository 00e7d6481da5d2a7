// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The path of a Data: the entries that it answers, the content store, those who
 * wait. Entry: nnet_data(), last.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include <crypto/sha2.h>

#include "forward.h"

/*
 * Takes an entry that a Data answers. Its nonces need not be remembered, for a
 * looping Interest meets the Data, but when it wants it fresher than that will
 * be, or when another upstream may still send it around.
 */
static bool nnet_take(struct nnet_pending *e, u32 freshness)
{
	bool mine;

	spin_lock(&e->lock);
	mine = !e->dead;
	if (mine) {
		e->dead = true;
		e->satisfied = true;
		if (e->outs > 1 || ((e->flags & NNET_V_FRESH) &&
				    freshness < NNET_DEAD_MS))
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
			if (nnet_take(found[k], v->freshness)) {
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
bool nnet_data(struct nnet_net *nn, struct sk_buff *skb, bool local)
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
