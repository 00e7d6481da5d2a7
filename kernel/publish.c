// SPDX-License-Identifier: GPL-2.0 OR MIT
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
	INIT_LIST_HEAD(&pub->order);
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
	hlist_del(&p->node);
	list_del(&p->order);
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

void nnet_publish_exit(struct nnet_publication *pub)
{
	struct nnet_published *p, *next;

	list_for_each_entry_safe(p, next, &pub->order, order)
		nnet_published_drop(pub, p);
	kvfree(pub->heads);
	pub->heads = NULL;
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
	struct hlist_head *heads = NULL;
	struct nnet_published *p;
	struct nnet_view v;
	struct nnet_key key;
	int err = 0;

	if (nnet_data_parse(skb->data, skb->len, &v))
		return -EINVAL;
	if (skb->truesize > READ_ONCE(ns->sk.sk_sndbuf))
		return -EMSGSIZE;
	if (!READ_ONCE(pub->heads)) {
		heads = kvcalloc(NNET_PUBLISHED_HEADS, sizeof(*heads),
				 GFP_KERNEL_ACCOUNT);
		if (!heads)
			return -ENOMEM;
	}
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p) {
		kvfree(heads);
		return -ENOMEM;
	}
	nnet_key_make(&nnet_secret, v.name, v.name_len, &key);
	p->skb = skb_get(skb);
	p->hash = key.full;
	p->name = v.name;
	p->name_len = v.name_len;
	p->forever = !ms;
	p->expires = jiffies + msecs_to_jiffies(ms);
	INIT_LIST_HEAD(&p->spent);
	spin_lock_bh(&pub->lock);
	if (!pub->heads) {
		pub->heads = heads;
		heads = NULL;
	}
	if (nnet_publish_make_room(pub, skb->truesize,
				   READ_ONCE(ns->sk.sk_sndbuf))) {
		hlist_add_head(&p->node,
			       &pub->heads[p->hash % NNET_PUBLISHED_HEADS]);
		list_add_tail(&p->order, &pub->order);
		if (ms)
			rb_add_cached(&p->timed, &pub->timed,
				      nnet_published_sooner);
		pub->count++;
		pub->bytes += skb->truesize;
	} else {
		err = -ENOBUFS;
	}
	spin_unlock_bh(&pub->lock);
	kvfree(heads);
	if (err) {
		kfree_skb(p->skb);
		kfree(p);
	}
	return err;
}

static bool nnet_published_answers(const struct nnet_published *p,
				   const struct nnet_view *v, bool prefix)
{
	return (prefix ? p->name_len >= v->name_len :
			 p->name_len == v->name_len) &&
	       !memcmp(p->name, v->name, v->name_len) &&
	       (p->forever || time_before(jiffies, p->expires));
}

/**
 * nnet_publish_find() - the published Data that answers an Interest
 * @ns: whose
 * @v: the Interest
 *
 * With CanBePrefix the oldest answer is taken.
 *
 * Return: the packet with a reference, or NULL.
 */
struct sk_buff *nnet_publish_find(struct nnet_sock *ns,
				  const struct nnet_view *v)
{
	struct nnet_publication *pub = &ns->pub;
	struct sk_buff *skb = NULL;
	struct nnet_published *p;
	struct nnet_key key;

	if (!READ_ONCE(pub->count))
		return NULL;
	nnet_key_make(&nnet_secret, v->name, v->name_len, &key);
	spin_lock_bh(&pub->lock);
	hlist_for_each_entry(p, &pub->heads[key.full % NNET_PUBLISHED_HEADS],
			     node)
		if (p->hash == key.full && nnet_published_answers(p, v, false))
			goto found;
	if (v->flags & NNET_V_PREFIX)
		list_for_each_entry(p, &pub->order, order)
			if (nnet_published_answers(p, v, true))
				goto found;
	spin_unlock_bh(&pub->lock);
	return NULL;
found:
	nnet_published_serve(pub, p);
	skb = skb_get(p->skb);
	spin_unlock_bh(&pub->lock);
	return skb;
}

/* A Data went to those who waited for it already: it may go when room is needed. */
void nnet_publish_served(struct nnet_sock *ns, struct sk_buff *skb)
{
	struct nnet_publication *pub = &ns->pub;
	struct nnet_published *p;

	spin_lock_bh(&pub->lock);
	list_for_each_entry_reverse(p, &pub->order, order) {
		if (p->skb == skb) {
			nnet_published_serve(pub, p);
			break;
		}
	}
	spin_unlock_bh(&pub->lock);
}

/* Forgets what was published under a prefix. Return: how many. */
u32 nnet_publish_remove(struct nnet_sock *ns, const u8 *name, u16 len)
{
	struct nnet_publication *pub = &ns->pub;
	struct nnet_published *p, *next;
	u32 n = 0;

	spin_lock_bh(&pub->lock);
	list_for_each_entry_safe(p, next, &pub->order, order) {
		if (p->name_len >= len && !memcmp(p->name, name, len)) {
			nnet_published_drop(pub, p);
			n++;
		}
	}
	spin_unlock_bh(&pub->lock);
	return n;
}
