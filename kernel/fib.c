// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The forwarding information base: routable prefixes, written by privileged
 * tools only, and the strategy of each prefix.
 *
 * Read under RCU, written under nn->control. A lookup probes only the depths
 * at which there are entries.
 */
#include <linux/mm.h>

#include "nnet.h"

int nnet_fib_init(struct nnet_net *nn)
{
	struct nnet_fib *fib = &nn->fib;

	fib->mask = BIT(nnet_hash_bits) - 1;
	fib->strategy = NNET_STRATEGY_BEST_ROUTE;
	fib->heads = kvcalloc(fib->mask + 1, sizeof(*fib->heads),
			      GFP_KERNEL_ACCOUNT);
	return fib->heads ? 0 : -ENOMEM;
}

void nnet_fib_exit(struct nnet_net *nn)
{
	struct nnet_fib *fib = &nn->fib;
	struct nnet_fib_entry *e;
	struct hlist_node *next;
	u32 i;

	for (i = 0; fib->heads && i <= fib->mask; i++) {
		hlist_for_each_entry_safe(e, next, &fib->heads[i], node) {
			hlist_del_rcu(&e->node);
			kfree(rcu_dereference_protected(e->hops, 1));
			kfree(e);
		}
	}
	kvfree(fib->heads);
	fib->heads = NULL;
}

static struct nnet_fib_entry *nnet_fib_find(struct nnet_net *nn, u64 hash,
					    const u8 *name, u16 len)
{
	struct nnet_fib *fib = &nn->fib;
	struct nnet_fib_entry *e;

	hlist_for_each_entry_rcu(e, &fib->heads[(u32)hash & fib->mask], node,
				 lockdep_is_held(&nn->control))
		if (e->hash == hash && e->name_len == len &&
		    !memcmp(e->name, name, len))
			return e;
	return NULL;
}

/* The entry of a prefix, made when there is none. */
static struct nnet_fib_entry *nnet_fib_get(struct nnet_net *nn, const u8 *name,
					   u16 len)
{
	struct nnet_fib *fib = &nn->fib;
	struct nnet_fib_entry *e;
	struct nnet_key key;
	u16 n;

	if (nnet_name_check(name, len, &n))
		return ERR_PTR(-EINVAL);
	if (n > NNET_DEPTH_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	nnet_key_make(&nnet_secret, name, len, &key);
	e = nnet_fib_find(nn, key.full, name, len);
	if (e)
		return e;
	if (fib->count >= NNET_ROUTES_MAX)
		return ERR_PTR(-ENOBUFS);
	e = kzalloc(struct_size(e, name, len), GFP_KERNEL_ACCOUNT);
	if (!e)
		return ERR_PTR(-ENOMEM);
	e->hash = key.full;
	e->depth = n;
	e->name_len = len;
	memcpy(e->name, name, len);
	hlist_add_head_rcu(&e->node, &fib->heads[(u32)e->hash & fib->mask]);
	fib->count++;
	if (!fib->depth_count[n]++)
		set_bit(n, &fib->depths);
	return e;
}

static void nnet_fib_drop_empty(struct nnet_net *nn, struct nnet_fib_entry *e)
{
	struct nnet_fib *fib = &nn->fib;

	if (rcu_access_pointer(e->hops) || e->strategy)
		return;
	hlist_del_rcu(&e->node);
	fib->count--;
	if (!--fib->depth_count[e->depth])
		clear_bit(e->depth, &fib->depths);
	kfree_rcu(e, rcu);
}

static struct nnet_hops *nnet_hops(struct nnet_net *nn,
				   struct nnet_fib_entry *e)
{
	return rcu_dereference_protected(e->hops,
					 lockdep_is_held(&nn->control));
}

/* The hops of an entry without one face; *found says whether it was there. */
static struct nnet_hops *nnet_hops_without(const struct nnet_hops *old,
					   u32 face, u32 room, bool *found)
{
	u32 i, n = old ? old->n : 0;
	struct nnet_hops *new;

	*found = false;
	new = kzalloc(struct_size(new, hop, n + room), GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	for (i = 0; i < n; i++) {
		if (old->hop[i].face == face)
			*found = true;
		else
			new->hop[new->n++] = old->hop[i];
	}
	return new;
}

static void nnet_hops_replace(struct nnet_fib_entry *e, struct nnet_hops *old,
			      struct nnet_hops *new)
{
	if (new && !new->n) {
		kfree(new);
		new = NULL;
	}
	rcu_assign_pointer(e->hops, new);
	if (old)
		kfree_rcu(old, rcu);
}

/**
 * nnet_fib_add() - add a next hop, or change its cost
 * @nn: whose
 * @name: the prefix
 * @len: its octets
 * @face: where to
 * @cost: cheaper ones are preferred
 *
 * Context: nn->control held.
 * Return: 0 or a negative errno; -ENODEV: no such face.
 */
int nnet_fib_add(struct nnet_net *nn, const u8 *name, u16 len, u32 face,
		 u32 cost)
{
	struct nnet_hops *old, *new;
	struct nnet_fib_entry *e;
	struct nnet_face *to;
	bool found;
	u32 i;

	rcu_read_lock();
	to = nnet_face_peek(nn, face);
	if (to)
		to->routed = true;
	rcu_read_unlock();
	if (!to)
		return -ENODEV;
	e = nnet_fib_get(nn, name, len);
	if (IS_ERR(e))
		return PTR_ERR(e);
	old = nnet_hops(nn, e);
	new = nnet_hops_without(old, face, 1, &found);
	if (!new || new->n >= NNET_HOPS_MAX) {
		nnet_fib_drop_empty(nn, e);
		if (!new)
			return -ENOMEM;
		kfree(new);
		return -ENOSPC;
	}
	for (i = new->n++; i && new->hop[i - 1].cost > cost; i--)
		new->hop[i] = new->hop[i - 1];
	new->hop[i].face = face;
	new->hop[i].cost = cost;
	nnet_hops_replace(e, old, new);
	return 0;
}

static int nnet_fib_entry_forget(struct nnet_net *nn, struct nnet_fib_entry *e,
				 u32 face)
{
	struct nnet_hops *old = nnet_hops(nn, e), *new;
	bool found;
	u32 i = 0;

	while (old && i < old->n && old->hop[i].face != face)
		i++;
	if (!old || i == old->n)
		return -ENOENT;
	new = nnet_hops_without(old, face, 0, &found);
	if (!new)
		return -ENOMEM;
	nnet_hops_replace(e, old, new);
	nnet_fib_drop_empty(nn, e);
	return 0;
}

/* Takes a next hop away. Context: nn->control held. Return: 0, -ENOENT, … */
int nnet_fib_del(struct nnet_net *nn, const u8 *name, u16 len, u32 face)
{
	struct nnet_fib_entry *e;
	struct nnet_key key;
	u16 n;

	if (nnet_name_check(name, len, &n))
		return -EINVAL;
	nnet_key_make(&nnet_secret, name, len, &key);
	e = nnet_fib_find(nn, key.full, name, len);
	return e ? nnet_fib_entry_forget(nn, e, face) : -ENOENT;
}

/*
 * Takes the numbers that lead to no face any more out of an entry. Where memory is
 * short one stays; it leads nowhere, for it is never given to another face of the
 * same generation.
 */
static void nnet_fib_entry_sweep(struct nnet_net *nn, struct nnet_fib_entry *e)
{
	struct nnet_hops *hops = nnet_hops(nn, e);
	bool there, last;
	u32 i = 0, face;

	while (hops && i < hops->n) {
		face = hops->hop[i].face;
		last = hops->n == 1;
		rcu_read_lock();
		there = nnet_face_peek(nn, face);
		rcu_read_unlock();
		if (there || nnet_fib_entry_forget(nn, e, face) == -ENOMEM) {
			i++;
			continue;
		}
		/* The last one may have taken the entry with it. */
		if (last)
			return;
		hops = nnet_hops(nn, e);
	}
}

/*
 * Takes the faces that have gone out of every entry: one walk for however many.
 * Context: nn->control held.
 */
void nnet_fib_sweep(struct nnet_net *nn)
{
	struct nnet_fib *fib = &nn->fib;
	struct nnet_fib_entry *e;
	struct hlist_node *next;
	u32 i;

	for (i = 0; fib->count && i <= fib->mask; i++)
		hlist_for_each_entry_safe(e, next, &fib->heads[i], node)
			nnet_fib_entry_sweep(nn, e);
}

static void nnet_strategy_replace(struct nnet_fib *fib, u8 *at, u8 strategy)
{
	fib->multicasts += strategy == NNET_STRATEGY_MULTICAST;
	fib->multicasts -= *at == NNET_STRATEGY_MULTICAST;
	WRITE_ONCE(*at, strategy);
}

/* Chooses a strategy; 0 takes the choice back, but not the root's. */
int nnet_strategy_set(struct nnet_net *nn, const u8 *name, u16 len, u8 strategy)
{
	struct nnet_fib_entry *e;

	if (strategy > NNET_STRATEGY_RANDOM)
		return -EINVAL;
	if (!len) {
		if (!strategy)
			return -EPERM;
		nnet_strategy_replace(&nn->fib, &nn->fib.strategy, strategy);
		return 0;
	}
	e = nnet_fib_get(nn, name, len);
	if (IS_ERR(e))
		return PTR_ERR(e);
	nnet_strategy_replace(&nn->fib, &e->strategy, strategy);
	nnet_fib_drop_empty(nn, e);
	return 0;
}

/* Next hops of the longest prefix that has some. Context: RCU read side. */
struct nnet_hops *nnet_fib_lookup(struct nnet_net *nn, const u8 *name,
				  const struct nnet_key *key)
{
	unsigned long depths = READ_ONCE(nn->fib.depths);
	struct nnet_fib_entry *e;
	struct nnet_hops *hops;
	int d;

	for (d = key->deep; d >= 0; d--) {
		if (!(depths & BIT(d)))
			continue;
		e = nnet_fib_find(nn, key->h[d], name, key->end[d]);
		hops = e ? rcu_dereference(e->hops) : NULL;
		if (hops)
			return hops;
	}
	return NULL;
}

u8 nnet_strategy_lookup(struct nnet_net *nn, const u8 *name,
			const struct nnet_key *key)
{
	unsigned long depths = READ_ONCE(nn->fib.depths);
	struct nnet_fib_entry *e;
	u8 strategy;
	int d;

	for (d = key->deep; d > 0; d--) {
		if (!(depths & BIT(d)))
			continue;
		e = nnet_fib_find(nn, key->h[d], name, key->end[d]);
		strategy = e ? READ_ONCE(e->strategy) : 0;
		if (strategy)
			return strategy;
	}
	return READ_ONCE(nn->fib.strategy);
}

/*
 * Next hops of an Interest: by its name, or by the first delegation of its
 * hint that has some. Context: RCU read side.
 */
struct nnet_hops *nnet_fib_route(struct nnet_net *nn,
				 const struct nnet_view *v,
				 const struct nnet_key *key)
{
	const u8 *p = v->hint, *end = p + v->hint_len;
	struct nnet_hops *hops;
	struct nnet_key k;
	u32 type, len;

	if (!p)
		return nnet_fib_lookup(nn, v->name, key);
	while (p < end && !nnet_tl_get(&p, end, &type, &len)) {
		if (type == NNET_T_NAME) {
			nnet_key_make(&nnet_secret, p, len, &k);
			hops = nnet_fib_lookup(nn, p, &k);
			if (hops)
				return hops;
		}
		p += len;
	}
	return NULL;
}
