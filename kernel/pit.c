// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The pending Interest table: one Interest kept per entry, whose name is the
 * entry's name.
 *
 * First level: chains are read under RCU, and the lock of a bucket is for who
 * changes its chain. Second level: the lock of an entry covers its records. A
 * bucket's lock is never taken inside an entry's. Whoever finds an entry dead
 * unlinks it and looks again.
 */
#include <linux/mm.h>

#include "nnet.h"

static void nnet_pending_timeout(struct timer_list *t);

int nnet_pit_init(struct nnet_net *nn)
{
	nn->pit.max = NNET_PIT_MAX;
	nn->pit.octets_max = NNET_PIT_OCTETS_MAX;
	nn->dead = kvcalloc(NNET_DEAD_SLOTS, sizeof(*nn->dead),
			    GFP_KERNEL_ACCOUNT);
	if (!nn->dead)
		return -ENOMEM;
	return nnet_table_init(&nn->pit.table, nnet_hash_bits);
}

/* Nobody uses the table any more but timers. */
void nnet_pit_exit(struct nnet_net *nn)
{
	struct nnet_table *t = &nn->pit.table;
	struct nnet_pending *e;
	u32 i;

	for (i = 0; t->buckets && i <= t->mask; i++) {
		struct nnet_bucket *b = &t->buckets[i];

		for (;;) {
			spin_lock_bh(&b->lock);
			e = hlist_entry_safe(b->head.first, struct nnet_pending,
					     node);
			if (e)
				refcount_inc(&e->ref);
			spin_unlock_bh(&b->lock);
			if (!e)
				break;
			spin_lock_bh(&e->lock);
			e->dead = true;
			spin_unlock_bh(&e->lock);
			if (del_timer_sync(&e->timer))
				nnet_pit_put(e);
			nnet_pit_unlink(e);
			nnet_pit_put(e);
		}
	}
	nnet_table_free(t);
	kvfree(nn->dead);
	nn->dead = NULL;
}

static void nnet_pending_free(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct nnet_pending, rcu));
}

void nnet_pit_put(struct nnet_pending *e)
{
	struct nnet_record *r, *next;

	if (!refcount_dec_and_test(&e->ref))
		return;
	list_for_each_entry_safe(r, next, &e->in, node)
		nnet_in_free(e, r);
	list_for_each_entry_safe(r, next, &e->out, node)
		nnet_out_free(e, r);
	kfree_skb(e->skb);
	call_rcu(&e->rcu, nnet_pending_free);
}

static bool nnet_pending_is(const struct nnet_pending *e,
			    const struct nnet_view *v, u64 hash)
{
	return e->hash == hash && e->name_len == v->name_len &&
	       !((e->flags ^ v->flags) & NNET_V_KEY) &&
	       e->hint_len == v->hint_len &&
	       !memcmp(e->name, v->name, v->name_len) &&
	       !memcmp(e->hint ?: e->name, v->hint ?: e->name, v->hint_len);
}

/*
 * An entry lives until readers of its chain have gone, but the Interest that
 * holds its name goes with the last reference: so a name is compared after a
 * reference is taken. Context: RCU, or the lock of the bucket.
 */
static struct nnet_pending *nnet_pit_chain(struct nnet_bucket *b,
					   const struct nnet_view *v, u64 hash,
					   unsigned int *variants)
{
	struct nnet_pending *e;

	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (e->hash != hash || !refcount_inc_not_zero(&e->ref))
			continue;
		if (nnet_pending_is(e, v, hash))
			return e;
		*variants += e->hint || (e->flags & NNET_V_DIGEST);
		nnet_pit_put(e);
	}
	return NULL;
}

/* The chain of an Interest: that of the Data which it asks for. */
static u64 nnet_pit_hash(const struct nnet_view *v, const struct nnet_key *key)
{
	return v->flags & NNET_V_DIGEST ? key->parent : key->full;
}

/**
 * nnet_pit_find() - the entry of an Interest
 * @nn: whose
 * @v: the Interest
 * @key: hashes of its name
 *
 * Return: the entry, for nnet_pit_put(), or NULL.
 */
struct nnet_pending *nnet_pit_find(struct nnet_net *nn,
				   const struct nnet_view *v,
				   const struct nnet_key *key)
{
	u64 hash = nnet_pit_hash(v, key);
	struct nnet_bucket *b = nnet_bucket(&nn->pit.table, hash);
	unsigned int variants = 0;
	struct nnet_pending *e;

	rcu_read_lock();
	e = nnet_pit_chain(b, v, hash, &variants);
	rcu_read_unlock();
	return e;
}

static struct nnet_pending *nnet_pending_new(struct nnet_net *nn,
					     struct sk_buff *skb,
					     const struct nnet_view *v,
					     const struct nnet_key *key)
{
	struct nnet_pending *e = kzalloc(sizeof(*e), GFP_ATOMIC);

	if (!e)
		return NULL;
	refcount_set(&e->ref, 2);	/* the table's and the caller's */
	spin_lock_init(&e->lock);
	INIT_LIST_HEAD(&e->in);
	INIT_LIST_HEAD(&e->out);
	timer_setup(&e->timer, nnet_pending_timeout, 0);
	e->nn = nn;
	e->hash = nnet_pit_hash(v, key);
	e->full = key->full;
	e->depth = min_t(u16, key->n, NNET_DEPTH_MAX + 1);
	e->skb = skb_get(skb);
	e->octets = nnet_pending_octets(skb);
	e->name = v->name;
	e->name_len = v->name_len;
	e->hint = v->hint;
	e->hint_len = v->hint_len;
	e->flags = v->flags;
	e->interval = NNET_RETX_MIN_MS;
	return e;
}

/* Whose digest is given is one packet, whatever else the Interest says. */
static bool nnet_takes_prefix(u16 flags)
{
	return (flags & (NNET_V_PREFIX | NNET_V_DIGEST)) == NNET_V_PREFIX;
}

static bool nnet_pit_full(struct nnet_net *nn, const struct sk_buff *skb)
{
	u32 octets = nnet_pending_octets(skb);
	const struct nnet_pit *pit = &nn->pit;

	return atomic_read(&pit->count) >= READ_ONCE(pit->max) ||
	       atomic_long_read(&pit->octets) + octets >
		       READ_ONCE(pit->octets_max) ||
	       nnet_owner_over(nn, octets);
}

static void nnet_pit_tally(struct nnet_pending *e, int n)
{
	struct nnet_pit *pit = &e->nn->pit;

	atomic_add(n, &pit->count);
	atomic_long_add(n * (long)e->octets, &pit->octets);
	nnet_owner_charge(e->nn, n * (long)e->octets);
	if (nnet_takes_prefix(e->flags) && e->depth <= NNET_DEPTH_MAX)
		atomic_add(n, &pit->prefixes[e->depth]);
}

/**
 * nnet_pit_insert() - the entry of an Interest, made when there is none
 * @nn: whose
 * @skb: the Interest, which the new entry keeps
 * @v: the Interest, read
 * @key: its hashes
 * @is_new: whether it was made
 *
 * Return: the entry, for nnet_pit_put(); -ENOSPC when the table is full,
 * -ENOBUFS when too many Interests of the name differ in hint or digest, -ENOMEM.
 */
struct nnet_pending *nnet_pit_insert(struct nnet_net *nn, struct sk_buff *skb,
				     const struct nnet_view *v,
				     const struct nnet_key *key, bool *is_new)
{
	u64 hash = nnet_pit_hash(v, key);
	struct nnet_bucket *b = nnet_bucket(&nn->pit.table, hash);
	bool variant = v->hint || (v->flags & NNET_V_DIGEST);
	struct nnet_pending *e, *new;
	unsigned int variants = 0;

	*is_new = false;
	if (nnet_pit_full(nn, skb))
		return ERR_PTR(-ENOSPC);
	new = nnet_pending_new(nn, skb, v, key);
	if (!new)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&b->lock);
	e = nnet_pit_chain(b, v, hash, &variants);
	if (!e && variant && variants >= NNET_PIT_VARIANTS_MAX)
		e = ERR_PTR(-ENOBUFS);
	if (!e) {
		hlist_add_head_rcu(&new->node, &b->head);
		nnet_pit_tally(new, 1);
	}
	spin_unlock_bh(&b->lock);
	if (!e) {
		*is_new = true;
		return new;
	}
	refcount_set(&new->ref, 1);
	nnet_pit_put(new);
	return e;
}

/* Takes an entry out of its chain; the second call does nothing. */
void nnet_pit_unlink(struct nnet_pending *e)
{
	struct nnet_bucket *b = nnet_bucket(&e->nn->pit.table, e->hash);
	bool was;

	spin_lock_bh(&b->lock);
	was = !hlist_unhashed(&e->node);
	if (was) {
		hlist_del_init_rcu(&e->node);
		nnet_pit_tally(e, -1);
	}
	spin_unlock_bh(&b->lock);
	if (was)
		nnet_pit_put(e);
}

/* Ends a dead entry: no timer, no chain. The caller's reference stays. */
void nnet_pit_kill(struct nnet_pending *e)
{
	if (del_timer(&e->timer))
		nnet_pit_put(e);
	nnet_pit_unlink(e);
}

/* Lets the timer run at @expires. Context: e->lock held, e not dead. */
void nnet_pit_arm(struct nnet_pending *e, unsigned long expires)
{
	refcount_inc(&e->ref);
	if (mod_timer(&e->timer, expires))
		refcount_dec(&e->ref);
}

static void nnet_pending_timeout(struct timer_list *t)
{
	struct nnet_pending *e = from_timer(e, t, timer);
	bool mine;

	spin_lock(&e->lock);
	mine = !e->dead;
	e->dead = true;
	spin_unlock(&e->lock);
	if (mine) {
		nnet_pending_expired(e);
		nnet_pit_unlink(e);
	}
	nnet_pit_put(e);
}

static bool nnet_name_is(const struct nnet_pending *e, const u8 *name, u16 len)
{
	return e->name_len == len && !memcmp(e->name, name, len);
}

/*
 * Whether a Data answers an entry by its name. Its digest is computed where an
 * Interest of its name asks for one, and nowhere else.
 */
static bool nnet_arrival_is(struct nnet_arrival *a,
			    const struct nnet_pending *e, u16 len, bool prefix)
{
	if (prefix && !nnet_takes_prefix(e->flags))
		return false;
	if (!(e->flags & NNET_V_DIGEST))
		return nnet_name_is(e, a->v->name, len);
	if (e->name_len != len + 34 || memcmp(e->name, a->v->name, len))
		return false;
	if (!a->hashed) {
		sha256(a->skb->data, a->skb->len, a->digest);
		a->hashed = true;
	}
	return !memcmp(e->name + len + 2, a->digest, 32);
}

/*
 * Takes an entry that a Data answers, if it came from who was asked. Its nonces
 * need not be remembered, for a looping Interest meets the Data, but when it
 * wants it fresher than that will be, or when another upstream may still send it
 * around.
 */
static bool nnet_arrival_take(const struct nnet_arrival *a,
			      struct nnet_pending *e)
{
	bool mine;

	spin_lock(&e->lock);
	mine = !e->dead && nnet_record_find(&e->out, a->face);
	if (mine) {
		e->dead = true;
		e->satisfied = true;
		if (e->outs > 1 || ((e->flags & NNET_V_FRESH) &&
				    a->v->freshness < NNET_DEAD_MS))
			nnet_dead_add_outs(e);
	}
	spin_unlock(&e->lock);
	return mine;
}

static unsigned int nnet_take_chain(struct nnet_net *nn, struct nnet_arrival *a,
				    u64 hash, u16 len, bool prefix,
				    struct nnet_pending **found, unsigned int n)
{
	struct nnet_bucket *b = nnet_bucket(&nn->pit.table, hash);
	struct nnet_pending *e;

	rcu_read_lock();
	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (n == NNET_MATCH_MAX)
			break;
		if (e->hash != hash || !refcount_inc_not_zero(&e->ref))
			continue;
		if (nnet_arrival_is(a, e, len, prefix) &&
		    nnet_arrival_take(a, e))
			found[n++] = e;
		else
			nnet_pit_put(e);
	}
	rcu_read_unlock();
	return n;
}

/**
 * nnet_pit_take() - take the Interests that a Data answers
 * @nn: whose
 * @a: the Data
 * @found: room for NNET_MATCH_MAX entries, each for nnet_pit_put()
 *
 * The whole name is probed, then each prefix of a depth at which Interests
 * with CanBePrefix wait. What is found is dead and in no chain.
 *
 * Return: how many were found; call again after NNET_MATCH_MAX.
 */
unsigned int nnet_pit_take(struct nnet_net *nn, struct nnet_arrival *a,
			   struct nnet_pending **found)
{
	const struct nnet_key *key = &a->key;
	unsigned int n, k;
	u16 d;

	n = nnet_take_chain(nn, a, key->full, a->v->name_len, false, found, 0);
	for (d = 1; d <= key->deep && d < key->n; d++)
		if (atomic_read(&nn->pit.prefixes[d]))
			n = nnet_take_chain(nn, a, key->h[d], key->end[d], true,
					    found, n);
	for (k = 0; k < n; k++)
		nnet_pit_kill(found[k]);
	return n;
}

/* Takes what a bucket holds under a prefix, at most NNET_MATCH_MAX. */
unsigned int nnet_pit_under(struct nnet_net *nn, u32 bucket, const u8 *name,
			    u16 len, struct nnet_pending **found)
{
	struct nnet_bucket *b = &nn->pit.table.buckets[bucket];
	struct nnet_pending *e;
	unsigned int n = 0;

	if (hlist_empty(&b->head))
		return 0;
	rcu_read_lock();
	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (n == NNET_MATCH_MAX)
			break;
		if (e->name_len < len || !refcount_inc_not_zero(&e->ref))
			continue;
		if (!memcmp(e->name, name, len))
			found[n++] = e;
		else
			nnet_pit_put(e);
	}
	rcu_read_unlock();
	return n;
}

/*
 * Ends up to @max pending Interests under a prefix, as if their time were over.
 * Context: a process. Return: how many.
 */
u32 nnet_pit_erase(struct nnet_net *nn, const u8 *name, u16 len, u32 max)
{
	struct nnet_pending *found[NNET_MATCH_MAX];
	unsigned int n, k;
	u32 bucket, ended = 0;
	bool mine;

	for (bucket = 0; bucket <= nn->pit.table.mask; bucket++) {
		do {
			local_bh_disable();
			n = nnet_pit_under(nn, bucket, name, len, found);
			for (k = 0; k < n; k++) {
				spin_lock(&found[k]->lock);
				mine = !found[k]->dead && ended < max;
				found[k]->dead |= mine;
				spin_unlock(&found[k]->lock);
				if (mine) {
					ended++;
					nnet_pending_expired(found[k]);
					nnet_pit_kill(found[k]);
				}
				nnet_pit_put(found[k]);
			}
			local_bh_enable();
			cond_resched();
			if (ended == max)
				return ended;
		} while (n == NNET_MATCH_MAX);
	}
	return ended;
}
