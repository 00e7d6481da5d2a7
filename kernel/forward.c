// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where a packet enters and leaves the tables.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#include "forward.h"

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

/* The timer of an entry ran out. */
void nnet_pending_expired(struct nnet_pending *e)
{
	nnet_count(e->nn, NNET_C_P_UNSATISFIED);
	nnet_dead_add_outs(e);
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
