/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* cs.c: the content store. */
#ifndef _NNET_CS_H
#define _NNET_CS_H

#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>

#include "table.h"
#include "wire.h"

struct nnet_net;

enum {
	NNET_CS_SAME_MAX	= 16,	/* cached packets of one name */
	NNET_CS_EVICT_MAX	= 16,	/* packets that an insertion evicts */
	NNET_CS_FINGERS		= 256,
};

/**
 * struct nnet_cs_packet - a cached Data
 * @node: in its chain
 * @order: in the canonical order of names, under cs->order_lock
 * @lru: in the queue of the content store, under cs->lock
 * @hot: found since the clock's hand passed
 * @finger: where the next of its parent looks for its place
 */
struct nnet_cs_packet {
	struct hlist_node node;
	struct rb_node order;
	struct list_head lru;
	struct rcu_head rcu;
	refcount_t ref;
	u16 name_len;
	u8 hot;
	u8 dead;
	u64 hash;
	struct sk_buff *skb;
	const u8 *name;
	unsigned long fresh_until;
	u32 freshness;
	u32 size;
	u8 unsolicited;
	u8 has_digest;
	u8 finger;
	u8 digest[32];
};

struct nnet_cs {
	struct nnet_table table;
	spinlock_t order_lock;
	struct rb_root order;
	struct nnet_cs_packet *finger[NNET_CS_FINGERS];
	spinlock_t lock;
	struct list_head queue;
	u32 packets;
	u64 bytes;
	u32 packets_max;
	u64 bytes_max;
	bool admit;
	bool serve;
	u8 unsolicited;
};

/* What the store holds and may hold, of one moment. */
struct nnet_cs_sums {
	u32 packets;
	u32 packets_max;
	u64 bytes;
	u64 bytes_max;
};

int nnet_cs_init(struct nnet_net *nn);
void nnet_cs_sum(struct nnet_net *nn, struct nnet_cs_sums *s);
void nnet_cs_exit(struct nnet_net *nn);
bool nnet_cs_insert(struct nnet_net *nn, struct sk_buff *skb,
		    const struct nnet_view *v, const struct nnet_key *key,
		    bool unsolicited);
struct nnet_cs_packet *nnet_cs_find(struct nnet_net *nn,
				    const struct nnet_view *v,
				    const struct nnet_key *key);
void nnet_cs_put(struct nnet_cs_packet *p);
u32 nnet_cs_erase(struct nnet_net *nn, const u8 *name, u16 len, u32 max);
bool nnet_cs_shrink(struct nnet_net *nn, unsigned int max);

#endif /* _NNET_CS_H */
