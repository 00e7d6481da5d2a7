// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The content store: Data as the buffer it came in, found by its name and by
 * every prefix of it, none of them copied.
 *
 * Bucket locks cover chains. cs->lock covers the queue and the sums; it is
 * never held together with a bucket's. A packet that is evicted is marked dead
 * and out of the queue first; then its entries are unlinked one by one, so no
 * two buckets are locked at once.
 */
#include <crypto/sha2.h>

#include "nnet.h"

int nnet_cs_init(struct nnet_net *nn)
{
	struct nnet_cs *cs = &nn->cs;

	spin_lock_init(&cs->lock);
	INIT_LIST_HEAD(&cs->queue);
	cs->packets_max = 65536;
	cs->entries_max = 10 * 65536;
	cs->bytes_max = 64 << 20;
	cs->admit = true;
	cs->serve = true;
	cs->unsolicited = NNET_UNSOLICITED_DROP;
	return nnet_table_init(&cs->table, nnet_hash_bits, nnet_lock_scheme);
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

/* Takes the entries of a dead packet out of their chains. */
static void nnet_cs_unlink(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	struct nnet_table *t = &cs->table;
	struct nnet_cs_entry *e;
	struct nnet_bucket *b;

	list_for_each_entry(e, &p->entries, sibling) {
		b = nnet_bucket(t, e->hash);
		nnet_write_lock(t, b);
		hlist_del_rcu(&e->node);
		nnet_write_unlock(t, b);
	}
	nnet_cs_put(p);
}

/* Takes a packet out of the queue. Context: cs->lock held. */
static bool nnet_cs_dequeue(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	if (p->dead)
		return false;
	WRITE_ONCE(p->dead, 1);
	list_del(&p->lru);
	cs->packets--;
	cs->entries -= p->n;
	cs->bytes -= p->size;
	return true;
}

static bool nnet_cs_kill(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	bool mine;

	spin_lock_bh(&cs->lock);
	mine = nnet_cs_dequeue(cs, p);
	spin_unlock_bh(&cs->lock);
	if (mine)
		nnet_cs_unlink(cs, p);
	return mine;
}

static bool nnet_cs_over(const struct nnet_cs *cs)
{
	return cs->packets > cs->packets_max ||
	       cs->entries > cs->entries_max || cs->bytes > cs->bytes_max;
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

/* Evicts until both limits hold. */
void nnet_cs_shrink(struct nnet_net *nn)
{
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p;

	for (;;) {
		spin_lock_bh(&cs->lock);
		p = nnet_cs_over(cs) ? nnet_cs_victim(cs) : NULL;
		if (p)
			nnet_cs_dequeue(cs, p);
		spin_unlock_bh(&cs->lock);
		if (!p)
			return;
		nnet_count(nn, NNET_C_T_CS_EVICTED);
		nnet_store_offer(nn, p->skb);
		nnet_cs_unlink(cs, p);
	}
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
	return p->freshness &&
	       time_before(jiffies, READ_ONCE(p->fresh_until));
}

static bool nnet_cs_matches(struct nnet_cs_entry *e, const struct nnet_view *v,
			    u64 hash, u16 len, bool prefix)
{
	struct nnet_cs_packet *p = e->packet;

	return e->hash == hash && e->name_len == len && !READ_ONCE(p->dead) &&
	       (prefix || p->name_len == len) &&
	       (!(v->flags & NNET_V_FRESH) || nnet_cs_fresh(p)) &&
	       !memcmp(p->name, v->name, len);
}

static struct nnet_cs_packet *nnet_cs_probe(struct nnet_net *nn,
					    const struct nnet_view *v, u64 hash,
					    u16 len, bool prefix,
					    const u8 *digest)
{
	struct nnet_table *t = &nn->cs.table;
	struct nnet_bucket *b = nnet_bucket(t, hash);
	struct nnet_cs_packet *p = NULL;
	struct nnet_cs_entry *e;

	rcu_read_lock();
	nnet_read_lock(t, b);
	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (!nnet_cs_matches(e, v, hash, len, prefix))
			continue;
		if (digest) {
			nnet_cs_digest(e->packet);
			if (memcmp(e->packet->digest, digest, 32))
				continue;
		}
		if (refcount_inc_not_zero(&e->packet->ref)) {
			p = e->packet;
			break;
		}
	}
	nnet_read_unlock(t, b);
	rcu_read_unlock();
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
 * Of several under a prefix the newest is taken.
 *
 * Return: the packet, for nnet_cs_put(), or NULL.
 */
struct nnet_cs_packet *nnet_cs_find(struct nnet_net *nn,
				    const struct nnet_view *v,
				    const struct nnet_key *key)
{
	bool prefix = v->flags & NNET_V_PREFIX;
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p = NULL;

	if (!READ_ONCE(cs->serve) || !READ_ONCE(cs->packets))
		return NULL;
	if (v->flags & NNET_V_DIGEST)
		p = nnet_cs_probe(nn, v, key->parent, key->parent_len, false,
				  v->name + v->name_len - 32);
	if (!p)
		p = nnet_cs_probe(nn, v, key->full, v->name_len, prefix, NULL);
	if (p)
		nnet_cs_touch(cs, p);
	return p;
}

/* The same Data is here already: it is fresh again. */
static bool nnet_cs_refresh(struct nnet_net *nn, const struct sk_buff *skb,
			    const struct nnet_view *v,
			    const struct nnet_key *key)
{
	struct nnet_table *t = &nn->cs.table;
	struct nnet_bucket *b = nnet_bucket(t, key->full);
	struct nnet_cs_packet *p = NULL;
	struct nnet_cs_entry *e;

	rcu_read_lock();
	nnet_read_lock(t, b);
	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (e->hash == key->full && e->name_len == v->name_len &&
		    e->packet->skb->len == skb->len &&
		    !READ_ONCE(e->packet->dead) &&
		    !memcmp(e->packet->skb->data, skb->data, skb->len)) {
			p = e->packet;
			WRITE_ONCE(p->fresh_until,
				   jiffies + msecs_to_jiffies(p->freshness));
			break;
		}
	}
	nnet_read_unlock(t, b);
	rcu_read_unlock();
	return p;
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

static void nnet_cs_entry_init(struct nnet_cs_packet *p, u64 hash, u16 len)
{
	struct nnet_cs_entry *e = &p->entry[p->n++];

	e->packet = p;
	e->hash = hash;
	e->name_len = len;
	list_add_tail(&e->sibling, &p->entries);
}

static struct nnet_cs_packet *nnet_cs_packet_new(struct sk_buff *skb,
						 const struct nnet_view *v,
						 const struct nnet_key *key)
{
	u16 prefixes = min_t(u16, key->deep, key->n ? key->n - 1 : 0), d;
	struct nnet_cs_packet *p;

	p = kzalloc(struct_size(p, entry, prefixes + 1), GFP_ATOMIC);
	if (!p)
		return NULL;
	p->skb = nnet_cs_buffer(skb);
	if (!p->skb) {
		kfree(p);
		return NULL;
	}
	refcount_set(&p->ref, 1);
	INIT_LIST_HEAD(&p->entries);
	p->name = p->skb->data + (v->name - skb->data);
	p->name_len = v->name_len;
	p->freshness = v->freshness;
	p->fresh_until = jiffies + msecs_to_jiffies(v->freshness);
	p->size = p->skb->truesize + struct_size(p, entry, prefixes + 1);
	nnet_cs_entry_init(p, key->full, v->name_len);
	for (d = 1; d <= prefixes; d++)
		nnet_cs_entry_init(p, key->h[d], key->end[d]);
	return p;
}

static void nnet_cs_link(struct nnet_cs *cs, struct nnet_cs_packet *p)
{
	struct nnet_table *t = &cs->table;
	struct nnet_cs_entry *e;
	struct nnet_bucket *b;

	list_for_each_entry(e, &p->entries, sibling) {
		b = nnet_bucket(t, e->hash);
		nnet_write_lock(t, b);
		hlist_add_head_rcu(&e->node, &b->head);
		nnet_write_unlock(t, b);
	}
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
	struct nnet_cs_packet *p;

	if (READ_ONCE(nn->store.in_user)) {
		nnet_store_offer(nn, skb);
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
	/*
	 * Entries first: a packet in the queue can be unlinked by anyone. Dead
	 * until it is there, so nobody finds it before.
	 */
	p->dead = 1;
	nnet_cs_link(cs, p);
	spin_lock_bh(&cs->lock);
	WRITE_ONCE(p->dead, 0);
	list_add_tail(&p->lru, &cs->queue);
	cs->packets++;
	cs->entries += p->n;
	cs->bytes += p->size;
	spin_unlock_bh(&cs->lock);
	nnet_count(nn, NNET_C_T_CS_INSERTED);
	nnet_cs_shrink(nn);
	return true;
}

/* Erases up to @max packets under a prefix. Return: how many. */
u32 nnet_cs_erase(struct nnet_net *nn, const u8 *name, u16 len, u32 max)
{
	struct nnet_view v = { .name = name, .name_len = len };
	struct nnet_cs *cs = &nn->cs;
	struct nnet_cs_packet *p;
	struct nnet_key key;
	u32 n = 0;

	nnet_key_make(&nnet_secret, name, len, &key);
	while (n < max) {
		if (len) {
			p = nnet_cs_probe(nn, &v, key.full, len, true, NULL);
		} else {
			spin_lock_bh(&cs->lock);
			p = list_first_entry_or_null(&cs->queue,
						     struct nnet_cs_packet,
						     lru);
			if (p)
				refcount_inc(&p->ref);
			spin_unlock_bh(&cs->lock);
		}
		if (!p)
			break;
		if (nnet_cs_kill(cs, p))
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
