// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The pending Interest table: one Interest kept per entry, whose name is the
 * entry's name.
 *
 * First level: the lock of a bucket covers its chain. Second level: the lock
 * of an entry covers its records. A bucket's lock is never taken inside an
 * entry's. Whoever finds an entry dead unlinks it and looks again.
 */
#include <linux/mm.h>
#include <crypto/sha2.h>

#include "nnet.h"

static void nnet_pending_timeout(struct timer_list *t);

int nnet_pit_init(struct nnet_net *nn)
{
	nn->pit.max = 65536;
	nn->dead = kvcalloc(NNET_DEAD_SLOTS, sizeof(*nn->dead),
			    GFP_KERNEL_ACCOUNT);
	if (!nn->dead)
		return -ENOMEM;
	return nnet_table_init(&nn->pit.table, nnet_hash_bits,
			       nnet_lock_scheme);
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
			nnet_write_lock(t, b);
			e = hlist_entry_safe(b->head.first, struct nnet_pending,
					     node);
			if (e)
				refcount_inc(&e->ref);
			nnet_write_unlock(t, b);
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
		if (r != &e->out0)
			kfree(r);
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
 * Chains are read under RCU whatever the lock, so entries and the Interests
 * that hold their names live until readers have gone: the Interest is freed
 * with the last reference, and a reader reads names of entries in the chain
 * only, which the table refers to; so a name is compared after a reference is
 * taken where readers are free.
 */
static struct nnet_pending *nnet_pit_chain(struct nnet_bucket *b,
					   const struct nnet_view *v, u64 hash)
{
	struct nnet_pending *e;

	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (e->hash != hash || !refcount_inc_not_zero(&e->ref))
			continue;
		if (nnet_pending_is(e, v, hash))
			return e;
		nnet_pit_put(e);
	}
	return NULL;
}

/**
 * nnet_pit_find() - the entry of an Interest
 * @nn: whose
 * @v: the Interest
 * @hash: of its name
 *
 * Return: the entry, for nnet_pit_put(), or NULL.
 */
struct nnet_pending *nnet_pit_find(struct nnet_net *nn,
				   const struct nnet_view *v, u64 hash)
{
	struct nnet_table *t = &nn->pit.table;
	struct nnet_bucket *b = nnet_bucket(t, hash);
	struct nnet_pending *e;

	nnet_read_lock(t, b);
	e = nnet_pit_chain(b, v, hash);
	nnet_read_unlock(t, b);
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
	e->hash = key->full;
	e->depth = min_t(u16, key->n, NNET_DEPTH_MAX + 1);
	e->skb = skb_get(skb);
	e->name = v->name;
	e->name_len = v->name_len;
	e->hint = v->hint;
	e->hint_len = v->hint_len;
	e->flags = v->flags;
	e->interval = NNET_RETX_MIN_MS;
	return e;
}

static void nnet_pit_tally(struct nnet_pending *e, int n)
{
	struct nnet_pit *pit = &e->nn->pit;

	atomic_add(n, &pit->count);
	if (e->flags & NNET_V_DIGEST)
		atomic_add(n, &pit->digests);
	if (e->flags & NNET_V_PREFIX && e->depth <= NNET_DEPTH_MAX)
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
 * -ENOMEM.
 */
struct nnet_pending *nnet_pit_insert(struct nnet_net *nn, struct sk_buff *skb,
				     const struct nnet_view *v,
				     const struct nnet_key *key, bool *is_new)
{
	struct nnet_table *t = &nn->pit.table;
	struct nnet_bucket *b = nnet_bucket(t, key->full);
	struct nnet_pending *e, *new;

	*is_new = false;
	if (atomic_read(&nn->pit.count) >= READ_ONCE(nn->pit.max))
		return ERR_PTR(-ENOSPC);
	new = nnet_pending_new(nn, skb, v, key);
	if (!new)
		return ERR_PTR(-ENOMEM);
	nnet_write_lock(t, b);
	e = nnet_pit_chain(b, v, key->full);
	if (!e) {
		hlist_add_head_rcu(&new->node, &b->head);
		nnet_pit_tally(new, 1);
	}
	nnet_write_unlock(t, b);
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
	struct nnet_table *t = &e->nn->pit.table;
	struct nnet_bucket *b = nnet_bucket(t, e->hash);
	bool was;

	nnet_write_lock(t, b);
	was = !hlist_unhashed(&e->node);
	if (was) {
		hlist_del_init_rcu(&e->node);
		nnet_pit_tally(e, -1);
	}
	nnet_write_unlock(t, b);
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

struct nnet_record *nnet_record_find(struct list_head *list, u32 face)
{
	struct nnet_record *r;

	list_for_each_entry(r, list, node)
		if (r->face == face)
			return r;
	return NULL;
}

/* The in-record of a face, made when there is none; NULL at the bound. */
struct nnet_record *nnet_in_get(struct nnet_pending *e, u32 face)
{
	struct nnet_record *r = nnet_record_find(&e->in, face);
	struct nnet_slot *slot = nnet_slot(e->nn, face);

	if (r)
		return r;
	if (e->ins >= NNET_IN_MAX - 1)
		return NULL;
	r = e->in0.face ? kzalloc(sizeof(*r), GFP_ATOMIC) : &e->in0;
	if (!r)
		return NULL;
	r->face = face;
	list_add_tail(&r->node, &e->in);
	e->ins++;
	if (slot)
		atomic_inc(&slot->pending);
	return r;
}

/* Context: e->lock held, or the last reference. */
void nnet_in_free(struct nnet_pending *e, struct nnet_record *r)
{
	struct nnet_slot *slot = nnet_slot(e->nn, r->face);

	/* A slot that was given back has forgotten its former face's share. */
	if (slot && READ_ONCE(slot->generation) ==
			    (u16)(r->face >> NNET_FACE_SLOT_BITS))
		atomic_dec_if_positive(&slot->pending);
	list_del(&r->node);
	e->ins--;
	if (r == &e->in0)
		memset(r, 0, sizeof(*r));
	else
		kfree(r);
}

struct nnet_record *nnet_out_get(struct nnet_pending *e, u32 face)
{
	struct nnet_record *r = nnet_record_find(&e->out, face);

	if (r)
		return r;
	if (e->outs >= NNET_OUT_MAX)
		return NULL;
	r = e->out0.face ? kzalloc(sizeof(*r), GFP_ATOMIC) : &e->out0;
	if (!r)
		return NULL;
	r->face = face;
	r->interval = NNET_RETX_MIN_MS;
	list_add_tail(&r->node, &e->out);
	e->outs++;
	return r;
}

static bool nnet_name_is(const struct nnet_pending *e, const u8 *name, u16 len)
{
	return e->name_len == len && !memcmp(e->name, name, len);
}

/* Takes what a chain holds for a name. @prefix: CanBePrefix only. */
static unsigned int nnet_match_chain(struct nnet_net *nn, u64 hash,
				     const u8 *name, u16 len, bool prefix,
				     struct nnet_pending **found,
				     unsigned int n)
{
	struct nnet_table *t = &nn->pit.table;
	struct nnet_bucket *b = nnet_bucket(t, hash);
	struct nnet_pending *e;

	nnet_read_lock(t, b);
	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (n == NNET_MATCH_MAX)
			break;
		if (e->hash != hash ||
		    (prefix && !(e->flags & NNET_V_PREFIX)) ||
		    !refcount_inc_not_zero(&e->ref))
			continue;
		if (nnet_name_is(e, name, len))
			found[n++] = e;
		else
			nnet_pit_put(e);
	}
	nnet_read_unlock(t, b);
	return n;
}

/* Takes what a bucket holds under a prefix, at most NNET_MATCH_MAX. */
unsigned int nnet_pit_under(struct nnet_net *nn, u32 bucket, const u8 *name,
			    u16 len, struct nnet_pending **found)
{
	struct nnet_table *t = &nn->pit.table;
	struct nnet_bucket *b = &t->buckets[bucket];
	struct nnet_pending *e;
	unsigned int n = 0;

	if (hlist_empty(&b->head))
		return 0;
	nnet_read_lock(t, b);
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
	nnet_read_unlock(t, b);
	return n;
}

/* Interests for one packet by its implicit digest. */
static unsigned int nnet_match_digest(struct nnet_net *nn,
				      const struct nnet_view *v,
				      const struct nnet_key *key,
				      const u8 *digest,
				      struct nnet_pending **found,
				      unsigned int n)
{
	siphash_key_t chain = { { nnet_secret.key[0] ^ key->full,
				  nnet_secret.key[1] } };
	struct nnet_table *t = &nn->pit.table;
	struct nnet_pending *e;
	struct nnet_bucket *b;
	u8 component[34];
	u64 hash;

	component[0] = NNET_T_DIGEST;
	component[1] = 32;
	memcpy(component + 2, digest, 32);
	hash = siphash(component, sizeof(component), &chain);
	b = nnet_bucket(t, hash);
	nnet_read_lock(t, b);
	hlist_for_each_entry_rcu(e, &b->head, node, true) {
		if (n == NNET_MATCH_MAX)
			break;
		if (e->hash != hash || e->name_len != v->name_len + 34 ||
		    !refcount_inc_not_zero(&e->ref))
			continue;
		if (!memcmp(e->name, v->name, v->name_len) &&
		    !memcmp(e->name + v->name_len, component, 34))
			found[n++] = e;
		else
			nnet_pit_put(e);
	}
	nnet_read_unlock(t, b);
	return n;
}

/**
 * nnet_pit_match() - the Interests that a Data answers
 * @nn: whose
 * @v: the Data
 * @key: hashes of its name
 * @digest: its implicit digest, or NULL when no Interest asks for one
 * @found: room for NNET_MATCH_MAX entries, each for nnet_pit_put()
 *
 * The whole name is probed, then each prefix of a depth at which Interests
 * with CanBePrefix wait.
 *
 * Return: how many were found; call again after NNET_MATCH_MAX.
 */
unsigned int nnet_pit_match(struct nnet_net *nn, const struct nnet_view *v,
			    const struct nnet_key *key, const u8 *digest,
			    struct nnet_pending **found)
{
	unsigned int n;
	u16 d;

	n = nnet_match_chain(nn, key->full, v->name, v->name_len, false, found,
			     0);
	for (d = 1; d <= key->deep && d < key->n; d++)
		if (atomic_read(&nn->pit.prefixes[d]))
			n = nnet_match_chain(nn, key->h[d], v->name,
					     key->end[d], true, found, n);
	if (digest)
		n = nnet_match_digest(nn, v, key, digest, found, n);
	return n;
}

static struct nnet_dead *nnet_dead_slot(struct nnet_net *nn, u64 name,
					u32 nonce, u64 *hash)
{
	*hash = siphash_2u64(name, nonce, &nnet_secret);
	return &nn->dead[*hash & (NNET_DEAD_SLOTS - 1)];
}

/*
 * Whether an Interest of that name and nonce ended lately. The list is a
 * table without chains: a newer nonce may push an older one out, and without
 * lock: a torn entry is one that does not match.
 */
bool nnet_dead_has(struct nnet_net *nn, u64 name, u32 nonce)
{
	struct nnet_dead *d;
	u64 hash;

	d = nnet_dead_slot(nn, name, nonce, &hash);
	return READ_ONCE(d->hash) == hash &&
	       time_before(jiffies, READ_ONCE(d->when) +
			   msecs_to_jiffies(NNET_DEAD_MS));
}

void nnet_dead_add(struct nnet_net *nn, u64 name, u32 nonce)
{
	struct nnet_dead *d;
	u64 hash;

	d = nnet_dead_slot(nn, name, nonce, &hash);
	WRITE_ONCE(d->when, jiffies);
	WRITE_ONCE(d->hash, hash);
}

/* Remembers the nonces that an entry sent. Context: e->lock, or e is dead. */
void nnet_dead_add_outs(struct nnet_pending *e)
{
	struct nnet_record *r;

	list_for_each_entry(r, &e->out, node)
		nnet_dead_add(e->nn, e->hash, r->nonce);
}
