// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * NDNLPv2 on a face: headers, cutting and joining. No reliability: its
 * acknowledgements are read and ignored.
 *
 * Packets that are put together hang on their face, under face->rx_lock.
 */
#include "nnet.h"

struct nnet_partial {
	struct list_head node;
	u64 id;
	unsigned long since;
	u8 source[ETH_ALEN];
	u16 count;
	u16 have;
	u32 octets;		/* of the packet */
	u32 held;		/* of memory */
	struct nnet_cb cb;
	struct sk_buff *part[];
};

/* What a buffer needs to be kept: no owner, no route, no device. */
static struct sk_buff *nnet_settle(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	skb->dev = NULL;
	skb->ip_summed = CHECKSUM_NONE;
	if (!skb_cloned(skb) && !skb->nohdr)
		__skb_header_release(skb);
	return skb;
}

static void nnet_partial_free(struct nnet_face *face, struct nnet_partial *p)
{
	u16 i;

	list_del(&p->node);
	face->partials--;
	face->partial_octets -= p->held;
	atomic_dec(&face->nn->partials);
	atomic_sub(p->held, &face->nn->partial_octets);
	for (i = 0; i < p->count; i++)
		kfree_skb(p->part[i]);
	kfree(p);
}

/* Drops what waits too long; all of it when the face has been released. */
void nnet_link_flush(struct nnet_face *face)
{
	unsigned long limit = msecs_to_jiffies(NNET_PARTIAL_MS);
	struct nnet_partial *p, *next;

	spin_lock_bh(&face->rx_lock);
	list_for_each_entry_safe(p, next, &face->partial, node) {
		if (face->id && time_before(jiffies, p->since + limit))
			continue;
		nnet_count(face->nn, NNET_C_H_FRAG_TIMEOUT);
		nnet_partial_free(face, p);
	}
	if (face->id && !list_empty(&face->partial))
		mod_timer(&face->partial_timer, jiffies + limit / 2);
	spin_unlock_bh(&face->rx_lock);
}

static struct nnet_partial *nnet_partial_find(struct nnet_face *face, u64 id,
					      const u8 *source)
{
	struct nnet_partial *p;

	list_for_each_entry(p, &face->partial, node)
		if (p->id == id && ether_addr_equal(p->source, source))
			return p;
	return NULL;
}

static void nnet_partial_hold(struct nnet_face *face, struct nnet_partial *p,
			      unsigned int octets)
{
	p->held += octets;
	face->partial_octets += octets;
	atomic_add(octets, &face->nn->partial_octets);
}

/*
 * Whether a fragment may be held: a frame can be much larger than what it says, so
 * its memory counts. The oldest packets of the face go first.
 */
static bool nnet_partial_room(struct nnet_face *face,
			      const struct nnet_partial *p, unsigned int octets)
{
	struct nnet_partial *oldest;

	while (face->partial_octets + octets > NNET_PARTIAL_OCTETS) {
		oldest = list_first_entry(&face->partial, struct nnet_partial,
					  node);
		if (oldest == p)
			return false;
		nnet_count(face->nn, NNET_C_H_FRAG_EVICTED);
		nnet_partial_free(face, oldest);
	}
	return atomic_read(&face->nn->partial_octets) + octets <=
	       NNET_PARTIAL_ALL_OCTETS;
}

static struct nnet_partial *nnet_partial_new(struct nnet_face *face, u64 id,
					     const u8 *source, u16 count)
{
	struct nnet_net *nn = face->nn;
	struct nnet_partial *p;

	if (face->partials >= NNET_PARTIAL_MAX) {
		nnet_count(nn, NNET_C_H_FRAG_EVICTED);
		nnet_partial_free(face, list_first_entry(&face->partial,
							 struct nnet_partial,
							 node));
	}
	if (atomic_read(&nn->partials) >= NNET_PARTIAL_ALL_MAX)
		return NULL;
	p = kzalloc(struct_size(p, part, count), GFP_ATOMIC);
	if (!p)
		return NULL;
	p->id = id;
	p->count = count;
	ether_addr_copy(p->source, source);
	list_add_tail(&p->node, &face->partial);
	face->partials++;
	atomic_inc(&nn->partials);
	nnet_partial_hold(face, p, struct_size(p, part, count));
	return p;
}

static struct sk_buff *nnet_partial_join(struct nnet_partial *p)
{
	struct sk_buff *skb;
	u16 i;

	skb = alloc_skb(NNET_LINK_HEADROOM + p->octets, GFP_ATOMIC);
	if (!skb)
		return NULL;
	skb_reserve(skb, NNET_LINK_HEADROOM);
	for (i = 0; i < p->count; i++)
		skb_put_data(skb, p->part[i]->data, p->part[i]->len);
	*NNET_CB(skb) = p->cb;
	return skb;
}

/*
 * Takes a fragment; the whole packet when it was the last one.
 * Context: face->rx_lock held.
 */
static struct sk_buff *nnet_fragment(struct nnet_face *face,
				     struct sk_buff *skb,
				     const struct nnet_lp *lp, const u8 *source)
{
	struct nnet_net *nn = face->nn;
	u64 id = lp->sequence - lp->index;
	struct sk_buff *whole = NULL;
	struct nnet_partial *p;

	if (!face->id) {
		/* Released: what would be held here nobody would let go. */
		nnet_count(nn, NNET_C_F_REASSEMBLY_FULL);
		goto drop;
	}
	p = nnet_partial_find(face, id, source);
	if (p && p->count != lp->count) {
		nnet_count(nn, NNET_C_H_FRAG_EVICTED);
		nnet_partial_free(face, p);
		p = NULL;
	}
	if (!p) {
		p = nnet_partial_new(face, id, source, lp->count);
		if (!p) {
			nnet_count(nn, NNET_C_F_REASSEMBLY_FULL);
			goto drop;
		}
	}
	if (p->part[lp->index] ||
	    p->octets + lp->fragment_len > NNET_PACKET_MAX + 64) {
		nnet_count(nn, NNET_C_F_FRAG_INVALID);
		goto drop;
	}
	if (!nnet_partial_room(face, p, skb->truesize)) {
		nnet_count(nn, NNET_C_F_REASSEMBLY_FULL);
		goto drop;
	}
	nnet_partial_hold(face, p, skb->truesize);
	p->part[lp->index] = skb;
	p->octets += skb->len;
	p->since = jiffies;
	if (!lp->index)
		p->cb = lp->cb;
	if (++p->have == p->count) {
		whole = nnet_partial_join(p);
		nnet_count(nn, whole ? NNET_C_F_PACKET :
				       NNET_C_F_REASSEMBLY_FULL);
		nnet_partial_free(face, p);
		return whole;
	}
	nnet_count(nn, NNET_C_F_FRAGMENT_HELD);
	if (!timer_pending(&face->partial_timer))
		mod_timer(&face->partial_timer,
			  jiffies + msecs_to_jiffies(NNET_PARTIAL_MS));
	return NULL;
drop:
	kfree_skb(skb);
	return NULL;
}

static const enum nnet_counter nnet_lp_verdict[] = {
	[NNET_LP_OK] = NNET_C_F_PACKET,
	[NNET_LP_MALFORMED] = NNET_C_F_LP_MALFORMED,
	[NNET_LP_UNKNOWN_CRITICAL] = NNET_C_F_LP_UNKNOWN,
	[NNET_LP_EMPTY] = NNET_C_F_LP_EMPTY,
	[NNET_LP_IDLE] = NNET_C_F_IDLE,
	[NNET_LP_FRAG_INVALID] = NNET_C_F_FRAG_INVALID,
};

/* NextHopFaceId is for faces that were given the privilege. */
static bool nnet_lp_allowed(const struct nnet_face *face, struct nnet_cb *cb)
{
	return !(cb->flags & NNET_CB_NEXT_FACE) || face->local_fields;
}

/**
 * nnet_link_receive() - a frame came in by a face
 * @face: the face, held
 * @skb: the frame, linear, one TLV; taken
 * @source: who sent it, on a face with several peers
 *
 * Context: bottom halves off, RCU read side.
 */
void nnet_link_receive(struct nnet_face *face, struct sk_buff *skb,
		       const u8 *source)
{
	static const u8 nobody[ETH_ALEN];
	struct nnet_net *nn = face->nn;
	enum nnet_lp_error err;
	struct nnet_lp lp;

	err = nnet_lp_parse(skb->data, skb->len, &lp);
	if (err) {
		nnet_count(nn, nnet_lp_verdict[err]);
		kfree_skb(skb);
		return;
	}
	if (!nnet_lp_allowed(face, &lp.cb)) {
		nnet_count(nn, NNET_C_F_UNEXPECTED_FIELD);
		kfree_skb(skb);
		return;
	}
	__skb_pull(skb, lp.fragment - skb->data);
	skb_trim(skb, lp.fragment_len);
	nnet_settle(skb);
	lp.cb.face = face->id;
	if (lp.count > 1) {
		if (!face->fragment) {
			nnet_count(nn, NNET_C_F_FRAG_REFUSED);
			kfree_skb(skb);
			return;
		}
		spin_lock(&face->rx_lock);
		skb = nnet_fragment(face, skb, &lp,
				    face->multi && source ? source : nobody);
		spin_unlock(&face->rx_lock);
		if (!skb)
			return;
		nnet_settle(skb);
	} else {
		nnet_count(nn, NNET_C_F_PACKET);
		*NNET_CB(skb) = lp.cb;
	}
	nnet_face_received(face, skb);
	if (face->kind == NNET_KIND_SOCKET)
		nnet_forward(nn, skb);
	else
		nnet_dispatch(nn, skb);
}

static unsigned int nnet_fields_size(const struct nnet_cb *cb)
{
	unsigned int n = 0;

	if (cb->token_len)
		n += nnet_tl_size(NNET_T_TOKEN, cb->token_len);
	if (cb->flags & NNET_CB_NACK)
		n += nnet_tl_size(NNET_T_NACK,
				  cb->reason ? nnet_tl_size(NNET_T_REASON, 1) :
					       0);
	if (cb->next_face)
		n += nnet_tl_size(NNET_T_IN_FACE,
				  nnet_nni_size(cb->next_face));
	if (cb->mark)
		n += nnet_tl_size(NNET_T_MARK, 1);
	if (cb->flags & NNET_CB_NON_DISCOVERY)
		n += nnet_tl_size(NNET_T_NON_DISCOVERY, 0);
	return n;
}

/* Towards a face, cb->next_face is the IncomingFaceId to be told. */
static u8 *nnet_fields_put(u8 *p, const struct nnet_cb *cb)
{
	if (cb->token_len) {
		p = nnet_tl_put(p, NNET_T_TOKEN, cb->token_len);
		memcpy(p, cb->token, cb->token_len);
		p += cb->token_len;
	}
	if (cb->flags & NNET_CB_NACK) {
		p = nnet_tl_put(p, NNET_T_NACK,
				cb->reason ? nnet_tl_size(NNET_T_REASON, 1) :
					     0);
		if (cb->reason)
			p = nnet_nni_put(p, NNET_T_REASON, cb->reason);
	}
	if (cb->next_face)
		p = nnet_nni_put(p, NNET_T_IN_FACE, cb->next_face);
	if (cb->mark)
		p = nnet_nni_put(p, NNET_T_MARK, cb->mark);
	if (cb->flags & NNET_CB_NON_DISCOVERY)
		p = nnet_tl_put(p, NNET_T_NON_DISCOVERY, 0);
	return p;
}

/* Octets in front of a fragment of @len. @more: those of a numbered frame. */
static unsigned int nnet_header_size(unsigned int fields, unsigned int len,
				     bool more)
{
	unsigned int inner = fields + (more ? 10 + 4 + 4 : 0) +
			     nnet_tl_size(NNET_T_FRAGMENT, len);

	return nnet_tl_size(NNET_T_LP, inner) - len;
}

/**
 * nnet_link_header() - put the link fields in front of a packet
 * @skb: the packet, with room in front
 * @cb: the fields; nothing is put when there are none
 */
void nnet_link_header(struct sk_buff *skb, const struct nnet_cb *cb)
{
	unsigned int fields = nnet_fields_size(cb), len = skb->len;
	u8 *p;

	if (!fields)
		return;
	p = skb_push(skb, nnet_header_size(fields, len, false));
	p = nnet_tl_put(p, NNET_T_LP,
			fields + nnet_tl_size(NNET_T_FRAGMENT, len));
	p = nnet_fields_put(p, cb);
	nnet_tl_put(p, NNET_T_FRAGMENT, len);
}

static u8 *nnet_u16_put(u8 *p, u8 type, u16 v)
{
	*p++ = type;
	*p++ = 2;
	put_unaligned_be16(v, p);
	return p + 2;
}

static struct sk_buff *nnet_cut(const struct sk_buff *skb, unsigned int at,
				unsigned int len, const struct nnet_cb *cb,
				u64 sequence, u16 index, u16 count,
				unsigned int headroom)
{
	unsigned int fields = cb ? nnet_fields_size(cb) : 0;
	unsigned int size = nnet_header_size(fields, len, true);
	struct sk_buff *frame;
	u8 *p;

	frame = alloc_skb(headroom + size + len, GFP_ATOMIC);
	if (!frame)
		return NULL;
	skb_reserve(frame, headroom);
	p = skb_put(frame, size + len);
	p = nnet_tl_put(p, NNET_T_LP, fields + 18 +
			nnet_tl_size(NNET_T_FRAGMENT, len));
	*p++ = NNET_T_SEQUENCE;
	*p++ = 8;
	put_unaligned_be64(sequence + index, p);
	p = nnet_u16_put(p + 8, NNET_T_FRAG_INDEX, index);
	p = nnet_u16_put(p, NNET_T_FRAG_COUNT, count);
	if (cb)
		p = nnet_fields_put(p, cb);
	p = nnet_tl_put(p, NNET_T_FRAGMENT, len);
	skb_copy_bits(skb, at, p, len);
	return frame;
}

static void nnet_send_cut(struct nnet_face *face, struct sk_buff *skb,
			  unsigned int mtu, unsigned int headroom,
			  nnet_frame_fn out, void *ctx)
{
	const struct nnet_cb *cb = NNET_CB(skb);
	unsigned int room, at = 0, i, n, count;
	struct sk_buff *frame;
	u64 sequence;

	/* 32 octets are more than the header of a numbered frame takes. */
	room = mtu - 32 - nnet_fields_size(cb);
	if (!face->fragment || room > mtu) {
		nnet_count(face->nn, NNET_C_U_OVER_MTU);
		goto done;
	}
	count = DIV_ROUND_UP(skb->len, room);
	if (count > NNET_FRAGMENTS_MAX) {
		nnet_count(face->nn, NNET_C_U_OVER_MTU);
		goto done;
	}
	sequence = atomic64_fetch_add(count, &face->tx_sequence);
	for (i = 0; i < count; i++) {
		n = min(room, skb->len - at);
		frame = nnet_cut(skb, at, n, i ? NULL : cb, sequence, i, count,
				 headroom);
		if (!frame || out(ctx, frame)) {
			nnet_count(face->nn, NNET_C_U_QUEUE_FULL);
			break;
		}
		at += n;
	}
done:
	consume_skb(skb);
}

/**
 * nnet_link_send() - bring a packet into frames
 * @face: the face
 * @skb: the packet, fields in its control block; taken
 * @mtu: octets of a frame
 * @headroom: what the lower layer needs in front
 * @out: sends a frame; takes it, whatever it returns
 * @ctx: for @out
 */
void nnet_link_send(struct nnet_face *face, struct sk_buff *skb,
		    unsigned int mtu, unsigned int headroom, nnet_frame_fn out,
		    void *ctx)
{
	struct nnet_cb cb = *NNET_CB(skb);
	unsigned int fields = nnet_fields_size(&cb), size = 0;

	if (fields)
		size = nnet_header_size(fields, skb->len, false);
	if (size + skb->len > mtu) {
		nnet_send_cut(face, skb, mtu, headroom, out, ctx);
		return;
	}
	if (skb_cow_head(skb, headroom + size)) {
		nnet_count(face->nn, NNET_C_U_NO_MEMORY);
		kfree_skb(skb);
		return;
	}
	nnet_link_header(skb, &cb);
	if (out(ctx, skb))
		nnet_count(face->nn, NNET_C_U_QUEUE_FULL);
}
