// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The binding prefix table: which application serves which prefix.
 *
 * No prefix in it equals, or is a component-wise prefix of, another; so a name
 * finds at most one. Read under RCU, written under nn->control.
 */
#include <linux/mm.h>

#include "nnet.h"

int nnet_bpt_init(struct nnet_net *nn)
{
	struct nnet_bpt *bpt = &nn->bpt;

	bpt->mask = BIT(min(nnet_hash_bits, 12U)) - 1;
	bpt->heads = kvcalloc(bpt->mask + 1, sizeof(*bpt->heads),
			      GFP_KERNEL_ACCOUNT);
	return bpt->heads ? 0 : -ENOMEM;
}

void nnet_bpt_exit(struct nnet_net *nn)
{
	struct nnet_bpt *bpt = &nn->bpt;
	struct nnet_binding *b;
	struct hlist_node *next;
	u32 i;

	for (i = 0; bpt->heads && i <= bpt->mask; i++)
		hlist_for_each_entry_safe(b, next, &bpt->heads[i], node)
			kfree(b);
	kvfree(bpt->heads);
	bpt->heads = NULL;
}

static struct nnet_binding *nnet_bpt_find(struct nnet_net *nn, u64 hash,
					  const u8 *name, u16 len)
{
	struct nnet_bpt *bpt = &nn->bpt;
	struct nnet_binding *b;

	hlist_for_each_entry_rcu(b, &bpt->heads[(u32)hash & bpt->mask], node,
				 lockdep_is_held(&nn->control))
		if (b->hash == hash && b->name_len == len &&
		    !memcmp(b->name, name, len))
			return b;
	return NULL;
}

/*
 * Whether a longer prefix is bound already: asks all where there are deeper ones,
 * bind() is rare.
 */
static bool nnet_bpt_extended(struct nnet_net *nn, const u8 *name, u16 len,
			      u16 depth)
{
	struct nnet_bpt *bpt = &nn->bpt;
	struct nnet_binding *b;
	u32 i;

	if (!(bpt->depths & ~GENMASK(depth, 0)))
		return false;
	for (i = 0; i <= bpt->mask; i++)
		hlist_for_each_entry_rcu(b, &bpt->heads[i], node,
					 lockdep_is_held(&nn->control))
			if (b->name_len > len && !memcmp(b->name, name, len))
				return true;
	return false;
}

/**
 * nnet_bpt_add() - bind a prefix to an application's face
 * @nn: whose
 * @name: the prefix
 * @len: its octets, more than 0
 * @face: the face
 * @user: whose share it takes; NULL: nobody's
 * @of_sock: list of the socket's bindings
 *
 * Context: nn->control held.
 * Return: 0, -EADDRINUSE (rule 1), -EINVAL, -ENAMETOOLONG, -ENOBUFS, -ENOMEM.
 */
int nnet_bpt_add(struct nnet_net *nn, const u8 *name, u16 len, u32 face,
		 struct nnet_user *user, struct list_head *of_sock)
{
	struct nnet_bpt *bpt = &nn->bpt;
	struct nnet_binding *b;
	struct nnet_key key;
	u16 n, d;

	if (nnet_name_check(name, len, &n) || !n)
		return -EINVAL;
	if (n > NNET_DEPTH_MAX)
		return -ENAMETOOLONG;
	nnet_key_make(&nnet_secret, name, len, &key);
	for (d = 1; d <= n; d++)
		if (nnet_bpt_find(nn, key.h[d], name, key.end[d]))
			return -EADDRINUSE;
	if (nnet_bpt_extended(nn, name, len, n))
		return -EADDRINUSE;
	if (bpt->count >= NNET_BINDINGS_MAX - (user ? NNET_BINDINGS_KEPT : 0) ||
	    (user && user->bindings >= NNET_BINDINGS_USER_MAX))
		return -ENOBUFS;
	b = kzalloc(struct_size(b, name, len), GFP_KERNEL_ACCOUNT);
	if (!b)
		return -ENOMEM;
	b->hash = key.full;
	b->face = face;
	b->user = user;
	if (user) {
		nnet_user_get(user);
		user->bindings++;
	}
	b->depth = n;
	b->name_len = len;
	memcpy(b->name, name, len);
	list_add_tail(&b->of_sock, of_sock);
	hlist_add_head_rcu(&b->node, &bpt->heads[(u32)b->hash & bpt->mask]);
	bpt->count++;
	if (!bpt->depth_count[n]++)
		set_bit(n, &bpt->depths);
	return 0;
}

static void nnet_bpt_drop(struct nnet_net *nn, struct nnet_binding *b)
{
	struct nnet_bpt *bpt = &nn->bpt;

	hlist_del_rcu(&b->node);
	list_del(&b->of_sock);
	bpt->count--;
	if (b->user) {
		b->user->bindings--;
		nnet_user_put(b->user);
	}
	if (!--bpt->depth_count[b->depth])
		clear_bit(b->depth, &bpt->depths);
	kfree_rcu(b, rcu);
}

/* Gives one prefix of a socket back. Context: nn->control held. */
int nnet_bpt_del(struct nnet_net *nn, const u8 *name, u16 len,
		 struct list_head *of_sock)
{
	struct nnet_binding *b;

	list_for_each_entry(b, of_sock, of_sock) {
		if (b->name_len == len && !memcmp(b->name, name, len)) {
			nnet_bpt_drop(nn, b);
			return 0;
		}
	}
	return -ENOENT;
}

void nnet_bpt_del_all(struct nnet_net *nn, struct list_head *of_sock)
{
	struct nnet_binding *b, *next;

	list_for_each_entry_safe(b, next, of_sock, of_sock)
		nnet_bpt_drop(nn, b);
}

/* The face that serves a name, 0 without. Context: RCU read side. */
u32 nnet_bpt_lookup(struct nnet_net *nn, const u8 *name,
		    const struct nnet_key *key)
{
	unsigned long depths = READ_ONCE(nn->bpt.depths);
	struct nnet_binding *b;
	u16 d;

	for (d = 1; d <= key->deep; d++) {
		if (!(depths & BIT(d)))
			continue;
		b = nnet_bpt_find(nn, key->h[d], name, key->end[d]);
		if (b)
			return b->face;
	}
	return 0;
}
