// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The content store: Data as the buffer it came in, found by the hash of its
 * name, and for CanBePrefix in the canonical order of names, which is that of
 * their octets.
 *
 * Chains are read under RCU, and bucket locks are for who changes them;
 * cs->order_lock covers the order, cs->lock the queue and the sums. None is held
 * together with another. A packet that is evicted is marked dead and out of the
 * queue first; then it leaves its chain and the order.
 */
#include "nnet.h"

int nnet_cs_init(struct nnet_net *nn)
{
	struct nnet_cs *cs = &nn->cs;

	spin_lock_init(&cs->lock);
	spin_lock_init(&cs->order_lock);
	cs->order = RB_ROOT;
	INIT_LIST_HEAD(&cs->queue);
	cs->packets_max = 65536;
	cs->bytes_max = 64 << 20;
	cs->admit = true;
	cs->serve = true;
	cs->unsolicited = NNET_UNSOLICITED_DROP;
	return nnet_table_init(&cs->table, nnet_hash_bits);
}

void nnet_cs_sum(struct nnet_net *nn, struct nnet_cs_sums *s)
{
	struct nnet_cs *cs = &nn->cs;

	spin_lock_bh(&cs->lock);
	s->packets = cs->packets;
	s->packets_max = cs->packets_max;
	s->bytes = cs->bytes;
	s->bytes_max = cs->bytes_max;
	spin_unlock_bh(&cs->lock);
}

static void nnet_cs_free(struct rcu_head *rcu)
{
	struct nnet_cs_packet *p =
		container_of(rcu, struct nnet_cs_packet, rcu);

	kfree_skb(p->skb);
	kfree(p);
}

void nnet_cs_put(struct nnet_cs_packet *p)
{
	if (refcount_dec_and_test(&p->ref))
		call_rcu(&p->rcu, nnet_cs_free);
}

static struct nnet_cs_packet *nnet_cs_of(struct rb_node *node)
{
	return node ? rb_entry(node, struct nnet_cs_packet, order) : NULL;
}

/*
 * The first packet whose name is not before another, or, with @beyond, is
 * behind it. Context: cs->order_lock held.
 */
static struct nnet_cs_packet *nnet_cs_bound(struct nnet_cs *cs, const u8 *name,
					    u16 len, bool beyond)
{
	struct rb_node *node = cs->order.rb_node, *found = NULL;
	struct nnet_cs_packet *p;
	int d;

	while (node) {
		p = nnet_cs_of(node);
		d = nnet_name_compare(p->name, p->name_len, name, len);
		if (d < 0 || (beyond && !d)) {
			node = node->rb_right;
		} else {
			found = node;
			node = node->rb_left;
		}
	}
	return nnet_cs_of(found);
}

/*
 * Whether a packet belongs right behind the one that came before it with the
 * same parent, as segments do; then it is linked there.
 */
static bool nnet_cs_order_behind(struct nnet_cs *cs, struct nnet_cs_packet *p,
				 struct nnet_cs_packet *last)
{
	struct rb_node *next, **link;

	if (nnet_name_compare(p->name, p->name_len, last->name,
			    last->name_len) <= 0)
		return false;
	next = rb_next(&last->order);
	if (next && nnet_name_compare(p->name, p->name_len,
				    nnet_cs_of(next)->name,
				    nnet_cs_of(next)->name_len) > 0)
		return false;
	link = &last->order.rb_right;
	if (*link)
		link = &next->rb_left;
	rb_link_node(&p->order, link == &last->order.rb_right ? &last->order :
								next, link);
	rb_insert_color(&p->order, &cs->order);
	return true;
}

/* Of one name the newest comes first. */
static void nnet_cs_order_in(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	struct rb_node **link = &cs->order.rb_node, *parent = NULL;
	struct nnet_cs_packet **last = &cs->finger[p->finger], *q;

	spin_lock_bh(&cs->order_lock);
	if (*last && nnet_cs_order_behind(cs, p, *last))
		goto out;
	while (*link) {
		parent = *link;
		q = nnet_cs_of(parent);
		link = nnet_name_compare(p->name, p->name_len, q->name,
				       q->name_len) > 0 ?
			       &parent->rb_right : &parent->rb_left;
	}
	rb_link_node(&p->order, parent, link);
	rb_insert_color(&p->order, &cs->order);
out:
	*last = p;
	spin_unlock_bh(&cs->order_lock);
}

/* Takes a dead packet out of its chain and the order. */
static void nnet_cs_unlink(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	struct nnet_bucket *b = nnet_bucket(&cs->table, p->hash);

	spin_lock_bh(&b->lock);
	hlist_del_rcu(&p->node);
	spin_unlock_bh(&b->lock);
	spin_lock_bh(&cs->order_lock);
	rb_erase(&p->order, &cs->order);
	RB_CLEAR_NODE(&p->order);
	if (cs->finger[p->finger] == p)
		cs->finger[p->finger] = NULL;
	spin_unlock_bh(&cs->order_lock);
	nnet_cs_put(p);
}

/* Takes a packet out of the queue. Context: cs->lock held. */
static bool nnet_cs_dequeue(struct nnet_net *nn, struct nnet_cs_packet *p)
{
	struct nnet_cs *cs = &nn->cs;

	if (p->dead)
		return false;
	WRITE_ONCE(p->dead, 1);
	list_del(&p->lru);
	WRITE_ONCE(cs->packets, cs->packets - 1);
	WRITE_ONCE(cs->bytes, cs->bytes - p->size);
	nnet_owner_charge(nn, -(long)p->size);
	return true;
}

static bool nnet_cs_kill(struct nnet_net *nn, struct nnet_cs_packet *p)
{
	struct nnet_cs *cs = &nn->cs;
	bool mine;

	spin_lock_bh(&cs->lock);
	mine = nnet_cs_dequeue(nn, p);
	spin_unlock_bh(&cs->lock);
	if (mine)
		nnet_cs_unlink(cs, p);
	return mine;
}

static bool nnet_cs_over(const struct nnet_net *nn)
{
	const struct nnet_cs *cs = &nn->cs;

	return cs->packets > cs->packets_max || cs->bytes > cs->bytes_max ||
	       nnet_owner_over(nn, 0);
}

/*
 * The next packet to go. One that was found while the lock of the queue was
 * busy is marked hot and gets its place at the end now. Context: cs->lock held.
 */
static struct nnet_cs_packet *nnet_cs_victim(struct nnet_cs *cs)
{
	struct nnet_cs_packet *p;
	int tries;

	for (tries = 0; tries < 16; tries++) {
		p = list_first_entry_or_null(&cs->queue, struct nnet_cs_packet,
					     lru);
		if (!p || !READ_ONCE(p->hot))
			return p;
		WRITE_ONCE(p->hot, 0);
		list_move_tail(&p->lru, &cs->queue);
	}
	return list_first_entry_or_null(&cs->queue, struct nnet_cs_packet, lru);
}

/* For how much longer it is fresh. */
static u32 nnet_cs_fresh_ms(const struct nnet_cs_packet *p)
{
	long left = READ_ONCE(p->fresh_until) - jiffies;

	return READ_ONCE(p->freshness) && left > 0 ? jiffies_to_msecs(left) : 0;
}

/**
 * nnet_cs_shrink() - evict until both limits hold
 * @nn: whose
 * @max: so many packets at most: what smaller limits left over is not for the
 *	data path to take away at once
 *
 * Return: whether there may be more.
 */
bool nnet_cs_shrink(struct nnet_net *nn, unsigned int max)
{
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p;

	while (max--) {
		spin_lock_bh(&cs->lock);
		p = nnet_cs_over(nn) ? nnet_cs_victim(cs) : NULL;
		if (p)
			nnet_cs_dequeue(nn, p);
		spin_unlock_bh(&cs->lock);
		if (!p)
			return false;
		nnet_count(nn, NNET_C_T_CS_EVICTED);
		nnet_store_offer(nn, p->skb, nnet_cs_fresh_ms(p));
		nnet_cs_unlink(cs, p);
	}
	return true;
}

static void nnet_cs_digest(struct nnet_cs_packet *p)
{
	if (smp_load_acquire(&p->has_digest))
		return;
	/* Two that do it at once write the same octets. */
	sha256(p->skb->data, p->skb->len, p->digest);
	smp_store_release(&p->has_digest, 1);
}

static bool nnet_cs_fresh(const struct nnet_cs_packet *p)
{
	return READ_ONCE(p->freshness) &&
	       time_before(jiffies, READ_ONCE(p->fresh_until));
}

static bool nnet_cs_named(const struct nnet_cs_packet *p, u64 hash,
			  const u8 *name, u16 len)
{
	return p->hash == hash && p->name_len == len &&
	       !memcmp(p->name, name, len);
}

/* Of one name the newest, which comes first in its chain. */
static struct nnet_cs_packet *nnet_cs_probe(struct nnet_net *nn,
					    const struct nnet_view *v, u64 hash,
					    u16 len, const u8 *digest)
{
	struct nnet_bucket *b = nnet_bucket(&nn->cs.table, hash);
	struct nnet_cs_packet *p, *found = NULL;

	rcu_read_lock();
	hlist_for_each_entry_rcu(p, &b->head, node, true) {
		if (!nnet_cs_named(p, hash, v->name, len) ||
		    READ_ONCE(p->dead) ||
		    ((v->flags & NNET_V_FRESH) && !nnet_cs_fresh(p)))
			continue;
		if (digest) {
			nnet_cs_digest(p);
			if (memcmp(p->digest, digest, 32))
				continue;
		}
		if (refcount_inc_not_zero(&p->ref)) {
			found = p;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/*
 * Lets others have the lock of the order. Context: cs->order_lock held.
 * Return: @p, or the first behind its name when it has gone meanwhile.
 */
static struct nnet_cs_packet *nnet_cs_breathe(struct nnet_cs *cs,
					      struct nnet_cs_packet *p)
{
	struct nnet_cs_packet *at = p;

	if (!refcount_inc_not_zero(&p->ref))
		return NULL;
	spin_unlock_bh(&cs->order_lock);
	cpu_relax();
	spin_lock_bh(&cs->order_lock);
	if (RB_EMPTY_NODE(&p->order))
		at = nnet_cs_bound(cs, p->name, p->name_len, true);
	nnet_cs_put(p);
	return at;
}

/*
 * The first packet under a prefix that answers, in canonical order. So many are
 * examined at most; one farther on is missed.
 */
static struct nnet_cs_packet *nnet_cs_first(struct nnet_net *nn,
					    const struct nnet_view *v)
{
	bool fresh = v->flags & NNET_V_FRESH;
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p;
	unsigned int n;

	spin_lock_bh(&cs->order_lock);
	p = nnet_cs_bound(cs, v->name, v->name_len, false);
	for (n = 1; p && n <= NNET_SCAN_MAX; n++) {
		if (p->name_len < v->name_len ||
		    memcmp(p->name, v->name, v->name_len))
			goto none;
		if (!READ_ONCE(p->dead) && (!fresh || nnet_cs_fresh(p)) &&
		    refcount_inc_not_zero(&p->ref))
			goto out;
		p = nnet_cs_of(rb_next(&p->order));
		if (p && !(n % NNET_SCAN_HELD))
			p = nnet_cs_breathe(cs, p);
	}
none:
	p = NULL;
out:
	spin_unlock_bh(&cs->order_lock);
	return p;
}

static void nnet_cs_touch(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	if (!spin_trylock_bh(&cs->lock)) {
		WRITE_ONCE(p->hot, 1);
		return;
	}
	if (!p->dead)
		list_move_tail(&p->lru, &cs->queue);
	spin_unlock_bh(&cs->lock);
}

/**
 * nnet_cs_find() - a cached Data that answers an Interest
 * @nn: whose
 * @v: the Interest
 * @key: hashes of its name
 *
 * Of several under a prefix the first in canonical order is taken, of several
 * of one name the newest.
 *
 * Return: the packet, for nnet_cs_put(), or NULL.
 */
struct nnet_cs_packet *nnet_cs_find(struct nnet_net *nn,
				    const struct nnet_view *v,
				    const struct nnet_key *key)
{
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p = NULL;

	if (!READ_ONCE(cs->serve) || !READ_ONCE(cs->packets))
		return NULL;
	if (v->flags & NNET_V_DIGEST)
		p = nnet_cs_probe(nn, v, key->parent, key->parent_len,
				  v->name + v->name_len - 32);
	if (!p)
		p = v->flags & NNET_V_PREFIX ?
			    nnet_cs_first(nn, v) :
			    nnet_cs_probe(nn, v, key->full, v->name_len, NULL);
	if (p)
		nnet_cs_touch(cs, p);
	return p;
}

/*
 * How long a Data that comes is fresh: from the store, which does not say when
 * it came, it is not. The store is asked for it again.
 */
static u32 nnet_cs_freshness(const struct sk_buff *skb,
			     const struct nnet_view *v)
{
	return NNET_CB(skb)->face == NNET_FACE_STORE ? 0 : v->freshness;
}

/* The same Data is here already: it is fresh again. */
static bool nnet_cs_refresh(struct nnet_net *nn, const struct sk_buff *skb,
			    const struct nnet_view *v,
			    const struct nnet_key *key)
{
	struct nnet_bucket *b = nnet_bucket(&nn->cs.table, key->full);
	struct nnet_cs_packet *p;
	bool found = false;

	rcu_read_lock();
	hlist_for_each_entry_rcu(p, &b->head, node, true) {
		if (p->hash == key->full && p->name_len == v->name_len &&
		    p->skb->len == skb->len && !READ_ONCE(p->dead) &&
		    !memcmp(p->skb->data, skb->data, skb->len)) {
			if (nnet_cs_freshness(skb, v)) {
				WRITE_ONCE(p->freshness, v->freshness);
				WRITE_ONCE(p->fresh_until,
					   jiffies +
					   msecs_to_jiffies(v->freshness));
			}
			found = true;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* The buffer to keep: a small Data must not pin a large one. */
static struct sk_buff *nnet_cs_buffer(struct sk_buff *skb)
{
	struct sk_buff *copy;

	if (skb->len > NNET_SMALL_DATA ||
	    skb->truesize <= 2 * SKB_TRUESIZE(skb->len + NNET_LINK_HEADROOM))
		return skb_get(skb);
	copy = skb_copy_expand(skb, NNET_LINK_HEADROOM, 0, GFP_ATOMIC);
	if (copy && !skb_cloned(copy) && !copy->nohdr)
		__skb_header_release(copy);
	return copy;
}

static struct nnet_cs_packet *nnet_cs_packet_new(struct sk_buff *skb,
						 const struct nnet_view *v,
						 const struct nnet_key *key)
{
	struct nnet_cs_packet *p = kzalloc(sizeof(*p), GFP_ATOMIC);

	if (!p)
		return NULL;
	p->skb = nnet_cs_buffer(skb);
	if (!p->skb) {
		kfree(p);
		return NULL;
	}
	refcount_set(&p->ref, 1);
	p->name = p->skb->data + (v->name - skb->data);
	p->name_len = v->name_len;
	p->hash = key->full;
	p->finger = key->parent % NNET_CS_FINGERS;
	p->freshness = nnet_cs_freshness(skb, v);
	p->fresh_until = jiffies + msecs_to_jiffies(p->freshness);
	p->size = p->skb->truesize + sizeof(*p);
	/* Until it is in the queue, so that nobody finds it before. */
	p->dead = 1;
	return p;
}

/*
 * Puts a packet in its chain. Return: the oldest of its name, held, when there
 * are too many of them; or NULL.
 */
static struct nnet_cs_packet *nnet_cs_link(struct nnet_cs *cs,
					   struct nnet_cs_packet *p)
{
	struct nnet_bucket *b = nnet_bucket(&cs->table, p->hash);
	struct nnet_cs_packet *q, *oldest = NULL;
	unsigned int same = 0;

	spin_lock_bh(&b->lock);
	hlist_for_each_entry(q, &b->head, node) {
		if (q->dead || !nnet_cs_named(q, p->hash, p->name, p->name_len))
			continue;
		oldest = q;
		same++;
	}
	if (same < NNET_CS_SAME_MAX || !refcount_inc_not_zero(&oldest->ref))
		oldest = NULL;
	hlist_add_head_rcu(&p->node, &b->head);
	spin_unlock_bh(&b->lock);
	return oldest;
}

/**
 * nnet_cs_insert() - keep a Data
 * @nn: whose
 * @skb: the Data, which is shared and not written to from now on
 * @v: the Data, read
 * @key: hashes of its name
 * @unsolicited: nobody asked for it
 *
 * Return: whether it is kept.
 */
bool nnet_cs_insert(struct nnet_net *nn, struct sk_buff *skb,
		    const struct nnet_view *v, const struct nnet_key *key,
		    bool unsolicited)
{
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p, *oldest;

	if (READ_ONCE(nn->store.in_user) && READ_ONCE(nn->store.portid)) {
		nnet_store_offer(nn, skb, v->freshness);
		return true;
	}
	if (!READ_ONCE(cs->admit) || !READ_ONCE(cs->packets_max))
		return false;
	if (nnet_cs_refresh(nn, skb, v, key))
		return true;
	p = nnet_cs_packet_new(skb, v, key);
	if (!p) {
		nnet_count(nn, NNET_C_T_CS_REFUSED);
		return false;
	}
	p->unsolicited = unsolicited;
	/* First, because a packet in the queue can be unlinked by anyone. */
	oldest = nnet_cs_link(cs, p);
	nnet_cs_order_in(cs, p);
	spin_lock_bh(&cs->lock);
	WRITE_ONCE(p->dead, 0);
	list_add_tail(&p->lru, &cs->queue);
	WRITE_ONCE(cs->packets, cs->packets + 1);
	WRITE_ONCE(cs->bytes, cs->bytes + p->size);
	nnet_owner_charge(nn, p->size);
	spin_unlock_bh(&cs->lock);
	nnet_count(nn, NNET_C_T_CS_INSERTED);
	if (oldest) {
		if (nnet_cs_kill(nn, oldest))
			nnet_count(nn, NNET_C_T_CS_EVICTED);
		nnet_cs_put(oldest);
	}
	nnet_cs_shrink(nn, NNET_CS_EVICT_MAX);
	return true;
}

/* Erases up to @max packets under a prefix. Return: how many. */
u32 nnet_cs_erase(struct nnet_net *nn, const u8 *name, u16 len, u32 max)
{
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p;
	u32 n = 0;

	while (n < max) {
		spin_lock_bh(&cs->order_lock);
		p = nnet_cs_bound(cs, name, len, false);
		while (p && !refcount_inc_not_zero(&p->ref))
			p = nnet_cs_of(rb_next(&p->order));
		spin_unlock_bh(&cs->order_lock);
		if (!p)
			break;
		if (p->name_len < len || memcmp(p->name, name, len)) {
			nnet_cs_put(p);
			break;
		}
		if (nnet_cs_kill(nn, p))
			n++;
		nnet_cs_put(p);
		cond_resched();
	}
	return n;
}

void nnet_cs_exit(struct nnet_net *nn)
{
	if (nn->cs.table.buckets)
		nnet_cs_erase(nn, NULL, 0, U32_MAX);
	nnet_table_free(&nn->cs.table);
}
