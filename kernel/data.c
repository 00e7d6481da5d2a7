// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The path of a Data: the entries that it answers, the content store, those who
 * wait. Entry: nnet_data(), last.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include "forward.h"

/*
 * Sends a Data to everyone who waits in the entries taken. @told: the slots of
 * those who got it, where there are several entries; else NULL.
 */
static void nnet_fan_out(struct nnet_net *nn, struct sk_buff *skb,
			 const struct nnet_cb *came, unsigned long *told,
			 struct nnet_pending **found, unsigned int n)
{
	struct nnet_cb cb = { .face = came->face, .mark = came->mark };
	struct nnet_record *r;
	unsigned int k;

	for (k = 0; k < n; k++) {
		list_for_each_entry(r, &found[k]->in, node) {
			if (time_after(jiffies, r->expires) ||
			    r->face == came->face)
				continue;
			if (told && __test_and_set_bit(nnet_slot_of(r->face),
						       told))
				continue;
			cb.token_len = r->token_len;
			memcpy(cb.token, r->token, r->token_len);
			nnet_send(nn, r->face, skb, &cb);
		}
	}
}

/* As above for several entries, each of which may hold the same face. */
static noinline void nnet_fan_out_once(struct nnet_net *nn, struct sk_buff *skb,
				       const struct nnet_cb *came,
				       struct nnet_pending **found,
				       unsigned int n)
{
	DECLARE_BITMAP(told, NNET_FACES_MAX);

	bitmap_zero(told, NNET_FACES_MAX);
	nnet_fan_out(nn, skb, came, told, found, n);
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
	struct nnet_arrival a;
	bool any = false;
	unsigned int n, k;

	a.skb = skb;
	a.v = v;
	a.face = cb.face;
	a.hashed = false;
	nnet_key_make(&nnet_secret, v->name, v->name_len, &a.key);
	do {
		n = nnet_pit_take(nn, &a, found);
		for (k = 0; k < n; k++)
			nnet_count(nn, NNET_C_P_SATISFIED);
		if (n && !any) {
			any = true;
			if (cb.face == NNET_FACE_STORE)
				nnet_count(nn, NNET_C_T_STORE_HIT);
			if (!(cb.flags & NNET_CB_NO_CACHE) &&
			    !(cb.face == NNET_FACE_STORE &&
			      READ_ONCE(nn->store.in_user)))
				nnet_cs_insert(nn, skb, v, &a.key, false);
		}
		if (n > 1)
			nnet_fan_out_once(nn, skb, &cb, found, n);
		else
			nnet_fan_out(nn, skb, &cb, NULL, found, n);
		for (k = 0; k < n; k++)
			nnet_pit_put(found[k]);
	} while (n == NNET_MATCH_MAX);
	if (any)
		nnet_count(nn, NNET_C_D_SATISFIED);
	else if (nnet_unsolicited(nn, local) &&
		 !(cb.flags & NNET_CB_NO_CACHE) &&
		 nnet_cs_insert(nn, skb, v, &a.key, true))
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
