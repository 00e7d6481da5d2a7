// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a socket published: Data that the kernel answers with on its behalf.
 * Everything here is under pub->lock.
 */
#include "nnet.h"

/* The time of something has come: who waits for room looks again. */
static void nnet_publish_timeout(struct timer_list *t)
{
	struct nnet_sock *ns = from_timer(ns, t, pub.timer);

	ns->sk.sk_write_space(&ns->sk);
	sock_put(&ns->sk);
}

void nnet_publish_init(struct nnet_sock *ns)
{
	struct nnet_publication *pub = &ns->pub;

	spin_lock_init(&pub->lock);
	pub->named = RB_ROOT;
	INIT_LIST_HEAD(&pub->spent);
	pub->timed = RB_ROOT_CACHED;
	timer_setup(&pub->timer, nnet_publish_timeout, 0);
}

#define nnet_published_of(rb) rb_entry(rb, struct nnet_published, timed)

static bool nnet_published_sooner(struct rb_node *a, const struct rb_node *b)
{
	return time_before(nnet_published_of(a)->expires,
			   nnet_published_of(b)->expires);
}

static struct nnet_published *nnet_publish_first(struct nnet_publication *pub)
{
	struct rb_node *rb = rb_first_cached(&pub->timed);

	return rb ? nnet_published_of(rb) : NULL;
}

static void nnet_published_drop(struct nnet_publication *pub,
				struct nnet_published *p)
{
	rb_erase(&p->named, &pub->named);
	if (pub->last == p)
		pub->last = NULL;
	list_del(&p->spent);
	if (!p->forever)
		rb_erase_cached(&p->timed, &pub->timed);
	pub->count--;
	pub->bytes -= p->skb->truesize;
	kfree_skb(p->skb);
	kfree(p);
}

static void nnet_published_serve(struct nnet_publication *pub,
				 struct nnet_published *p)
{
	pub->served++;
	if (list_empty(&p->spent))
		list_add_tail(&p->spent, &pub->spent);
}

static struct nnet_published *nnet_published_next(struct rb_node *node)
{
	return node ? rb_entry(node, struct nnet_published, named) : NULL;
}

/* The first in order that is not before a name. Context: pub->lock held. */
static struct nnet_published *
nnet_published_from(const struct nnet_publication *pub, const u8 *name, u16 len)
{
	struct rb_node *node = pub->named.rb_node, *found = NULL;
	struct nnet_published *p;

	while (node) {
		p = nnet_published_next(node);
		if (nnet_name_compare(p->name, p->name_len, name, len) < 0) {
			node = node->rb_right;
		} else {
			found = node;
			node = node->rb_left;
		}
	}
	return nnet_published_next(found);
}

/* Gives a packet its place; of one name the newest comes first. */
static void nnet_published_link(struct nnet_publication *pub,
				struct nnet_published *p)
{
	struct rb_node **link = &pub->named.rb_node, *parent = NULL;
	struct nnet_published *q = pub->last;

	/* Segments come one behind the other. */
	if (q && !q->named.rb_right && !rb_next(&q->named) &&
	    nnet_name_compare(p->name, p->name_len, q->name, q->name_len) > 0) {
		parent = &q->named;
		link = &parent->rb_right;
	}
	while (*link) {
		parent = *link;
		q = nnet_published_next(parent);
		link = nnet_name_compare(p->name, p->name_len, q->name,
					 q->name_len) > 0 ?
			       &parent->rb_right : &parent->rb_left;
	}
	rb_link_node(&p->named, parent, link);
	rb_insert_color(&p->named, &pub->named);
	pub->last = p;
}

/* Drops what was served, the first of it first, and what is over its time. */
static bool nnet_publish_make_room(struct nnet_publication *pub, u64 size,
				   u64 limit)
{
	struct nnet_published *p;

	while (pub->bytes + size > limit || pub->count >= NNET_PUBLISHED_MAX) {
		p = list_first_entry_or_null(&pub->spent, struct nnet_published,
					     spent);
		if (!p) {
			p = nnet_publish_first(pub);
			if (!p || !time_after(jiffies, p->expires))
				return false;
		}
		nnet_published_drop(pub, p);
	}
	return true;
}

/**
 * nnet_publish_room() - whether a packet can be kept
 * @ns: whose
 * @truesize: of the packet
 *
 * Where it can not, sk_write_space() is called when the next time is over.
 */
bool nnet_publish_room(struct nnet_sock *ns, u32 truesize)
{
	struct nnet_publication *pub = &ns->pub;
	struct nnet_published *first;
	bool room;

	spin_lock_bh(&pub->lock);
	room = nnet_publish_make_room(pub, truesize,
				      READ_ONCE(ns->sk.sk_sndbuf));
	first = room ? NULL : nnet_publish_first(pub);
	if (first)
		sk_reset_timer(&ns->sk, &pub->timer, first->expires + 1);
	spin_unlock_bh(&pub->lock);
	return room;
}

/* Room for the largest packet, or for half of a buffer that is small for one. */
bool nnet_publish_writable(struct nnet_sock *ns)
{
	return nnet_publish_room(ns, min_t(u32, SKB_TRUESIZE(NNET_PACKET_MAX),
					   READ_ONCE(ns->sk.sk_sndbuf) / 2));
}

/**
 * nnet_publish_add() - keep a Data and answer with it
 * @ns: whose
 * @skb: the Data; a reference is taken
 * @ms: for how long, 0 until the socket closes
 *
 * Return: 0, -EINVAL, -ENOMEM, -ENOBUFS when SO_SNDBUF holds no more, -EMSGSIZE
 * when it never holds this one.
 */
int nnet_publish_add(struct nnet_sock *ns, struct sk_buff *skb, u32 ms)
{
	struct nnet_publication *pub = &ns->pub;
	struct nnet_published *p;
	struct nnet_view v;
	int err = 0;

	if (nnet_data_parse(skb->data, skb->len, &v))
		return -EINVAL;
	if (skb->truesize > READ_ONCE(ns->sk.sk_sndbuf))
		return -EMSGSIZE;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return -ENOMEM;
	p->skb = skb_get(skb);
	p->name = v.name;
	p->name_len = v.name_len;
	p->forever = !ms;
	p->expires = jiffies + msecs_to_jiffies(ms);
	INIT_LIST_HEAD(&p->spent);
	spin_lock_bh(&pub->lock);
	if (nnet_publish_make_room(pub, skb->truesize,
				   READ_ONCE(ns->sk.sk_sndbuf))) {
		nnet_published_link(pub, p);
		if (ms)
			rb_add_cached(&p->timed, &pub->timed,
				      nnet_published_sooner);
		pub->count++;
		pub->bytes += skb->truesize;
	} else {
		err = -ENOBUFS;
	}
	spin_unlock_bh(&pub->lock);
	if (err) {
		kfree_skb(p->skb);
		kfree(p);
	}
	return err;
}

static bool nnet_published_under(const struct nnet_published *p,
				 const u8 *name, u16 len)
{
	return p->name_len >= len && !memcmp(p->name, name, len);
}

/**
 * nnet_publish_find() - the published Data that answers an Interest
 * @ns: whose
 * @v: the Interest
 *
 * With CanBePrefix the first in canonical order is taken, of one name the newest.
 * NNET_SCAN_MAX are examined; those of them whose time is over go.
 *
 * Return: the packet with a reference, or NULL.
 */
struct sk_buff *nnet_publish_find(struct nnet_sock *ns,
				  const struct nnet_view *v)
{
	struct nnet_publication *pub = &ns->pub;
	bool prefix = v->flags & NNET_V_PREFIX;
	struct nnet_published *p, *next;
	struct sk_buff *skb = NULL;
	unsigned int n;

	if (!READ_ONCE(pub->count))
		return NULL;
	spin_lock_bh(&pub->lock);
	p = nnet_published_from(pub, v->name, v->name_len);
	for (n = 0; p && n < NNET_SCAN_MAX; n++, p = next) {
		if (!nnet_published_under(p, v->name, v->name_len) ||
		    (!prefix && p->name_len != v->name_len))
			break;
		if (p->forever || time_before(jiffies, p->expires)) {
			nnet_published_serve(pub, p);
			skb = skb_get(p->skb);
			break;
		}
		next = nnet_published_next(rb_next(&p->named));
		nnet_published_drop(pub, p);
	}
	spin_unlock_bh(&pub->lock);
	return skb;
}

/* A Data went to those who waited for it already: it may go when room is needed. */
void nnet_publish_served(struct nnet_sock *ns, struct sk_buff *skb)
{
	struct nnet_publication *pub = &ns->pub;
	struct nnet_published *p;
	struct nnet_view v;

	if (nnet_data_parse(skb->data, skb->len, &v))
		return;
	spin_lock_bh(&pub->lock);
	/* It is the newest of its name, unless another was published since. */
	p = nnet_published_from(pub, v.name, v.name_len);
	if (p && p->skb == skb)
		nnet_published_serve(pub, p);
	spin_unlock_bh(&pub->lock);
}

/**
 * nnet_publish_remove() - forget what was published under a prefix
 * @ns: whose
 * @name: the prefix
 * @len: its octets, 0 for everything
 *
 * Context: a process. Return: how many.
 */
u32 nnet_publish_remove(struct nnet_sock *ns, const u8 *name, u16 len)
{
	struct nnet_publication *pub = &ns->pub;
	struct nnet_published *p;
	u32 n = 0;

	spin_lock_bh(&pub->lock);
	for (;;) {
		p = nnet_published_from(pub, name, len);
		if (!p || !nnet_published_under(p, name, len))
			break;
		nnet_published_drop(pub, p);
		if (++n % NNET_SCAN_HELD)
			continue;
		spin_unlock_bh(&pub->lock);
		cond_resched();
		spin_lock_bh(&pub->lock);
	}
	spin_unlock_bh(&pub->lock);
	return n;
}
