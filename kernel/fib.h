/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* fib.c: routable prefixes and their strategies. */
#ifndef _NNET_FIB_H
#define _NNET_FIB_H

#include <linux/list.h>
#include <linux/rcupdate.h>

#include "wire.h"

struct nnet_net;

struct nnet_hop {
	u32 face;
	u32 cost;
};

struct nnet_hops {
	struct rcu_head rcu;
	u32 n;
	struct nnet_hop hop[];
};

/* Written under nn->control, read under RCU. */
struct nnet_fib_entry {
	struct hlist_node node;
	struct rcu_head rcu;
	u64 hash;
	struct nnet_hops __rcu *hops;	/* NULL: a strategy only */
	u8 strategy;			/* NNET_STRATEGY_*, 0: inherited */
	u8 depth;
	u16 name_len;
	u8 name[];
};

struct nnet_fib {
	struct hlist_head *heads;
	u32 mask;
	u32 count;
	u32 depth_count[NNET_DEPTH_MAX + 1];
	unsigned long depths;	/* bit d: there are entries of d components */
	u32 multicasts;		/* prefixes whose strategy is multicast */
	u8 strategy;		/* of the root */
};

int nnet_fib_init(struct nnet_net *nn);
void nnet_fib_exit(struct nnet_net *nn);
int nnet_fib_add(struct nnet_net *nn, const u8 *name, u16 len, u32 face,
		 u32 cost);
int nnet_fib_del(struct nnet_net *nn, const u8 *name, u16 len, u32 face);
void nnet_fib_sweep(struct nnet_net *nn);
int nnet_strategy_set(struct nnet_net *nn, const u8 *name, u16 len,
		      u8 strategy);
struct nnet_hops *nnet_fib_lookup(struct nnet_net *nn, const u8 *name,
				  const struct nnet_key *key);
u8 nnet_strategy_lookup(struct nnet_net *nn, const u8 *name,
			const struct nnet_key *key);
struct nnet_hops *nnet_fib_route(struct nnet_net *nn,
				 const struct nnet_view *v,
				 const struct nnet_key *key);

#endif /* _NNET_FIB_H */
