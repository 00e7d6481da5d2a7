/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* cs.c: the content store. */
#ifndef _NNET_CS_H
#define _NNET_CS_H

#include <linux/refcount.h>
#include <linux/skbuff.h>

#include "table.h"
#include "wire.h"

struct nnet_net;

struct nnet_cs_packet;

/* One name or prefix of a cached Data; @sibling ties those of one packet. */
struct nnet_cs_entry {
	struct hlist_node node;
	struct list_head sibling;
	struct nnet_cs_packet *packet;
	u64 hash;
	u16 name_len;
};

/**
 * struct nnet_cs_packet - a cached Data
 * @lru: in the queue of the content store, under cs->lock
 * @entries: its full name first, then its prefixes
 * @hot: found since the clock's hand passed
 */
struct nnet_cs_packet {
	struct list_head lru;
	struct list_head entries;
	struct rcu_head rcu;
	refcount_t ref;
	struct sk_buff *skb;
	const u8 *name;
	unsigned long fresh_until;
	u32 freshness;
	u32 size;
	u16 name_len;
	u16 n;
	u8 hot;
	u8 dead;
	u8 unsolicited;
	u8 has_digest;
	u8 digest[32];
	struct nnet_cs_entry entry[];
};

struct nnet_cs {
	struct nnet_table table;
	spinlock_t lock;
	struct list_head queue;
	u32 packets;
	u32 entries;
	u64 bytes;
	u32 packets_max;
	u32 entries_max;
	u64 bytes_max;
	bool admit;
	bool serve;
	u8 unsolicited;
};

int nnet_cs_init(struct nnet_net *nn);
void nnet_cs_exit(struct nnet_net *nn);
bool nnet_cs_insert(struct nnet_net *nn, struct sk_buff *skb,
		    const struct nnet_view *v, const struct nnet_key *key,
		    bool unsolicited);
struct nnet_cs_packet *nnet_cs_find(struct nnet_net *nn,
				    const struct nnet_view *v,
				    const struct nnet_key *key);
void nnet_cs_put(struct nnet_cs_packet *p);
u32 nnet_cs_erase(struct nnet_net *nn, const u8 *name, u16 len, u32 max);
void nnet_cs_shrink(struct nnet_net *nn);

#endif /* _NNET_CS_H */
