/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* pit.c: pending Interests, and the nonces of those that ended. */
#ifndef _NNET_PIT_H
#define _NNET_PIT_H

#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/timer.h>

#include "table.h"
#include "wire.h"

struct nnet_net;

struct nnet_record {
	struct list_head node;
	u32 face;
	u32 nonce;
	unsigned long expires;
	unsigned long sent;	/* out: when */
	u16 interval;		/* out, multicast: suppression, ms */
	u8 nacked;
	u8 reason;
	u8 hop;			/* in: the HopLimit as it came */
	u8 token_len;
	u8 token[NNET_TOKEN_MAX];
};

/**
 * struct nnet_pending - a pending Interest
 * @ref: 1 for the table, 1 for the timer, 1 for each that works on it
 * @lock: the second level: everything below it
 * @skb: the one Interest; @name and @hint point into it
 * @dead: taken out; whoever finds it looks again
 */
struct nnet_pending {
	struct hlist_node node;
	struct rcu_head rcu;
	refcount_t ref;
	u64 hash;
	struct sk_buff *skb;
	const u8 *name;
	const u8 *hint;
	u16 name_len;
	u16 hint_len;
	u16 flags;
	u8 depth;

	spinlock_t lock;
	bool dead;
	bool satisfied;
	u8 ins;
	u8 outs;
	u16 interval;		/* suppression of best-route, ms */
	unsigned long last_sent;
	struct list_head in;
	struct list_head out;
	struct nnet_record in0, out0;
	struct nnet_net *nn;
	struct timer_list timer;
};

struct nnet_pit {
	struct nnet_table table;
	atomic_t count;
	atomic_t prefixes[NNET_DEPTH_MAX + 1];	/* CanBePrefix, by depth */
	atomic_t digests;
	u32 max;
};

struct nnet_dead {
	u64 hash;
	unsigned long when;
};

int nnet_pit_init(struct nnet_net *nn);
void nnet_pit_exit(struct nnet_net *nn);
struct nnet_pending *nnet_pit_find(struct nnet_net *nn,
				   const struct nnet_view *v, u64 hash);
struct nnet_pending *nnet_pit_insert(struct nnet_net *nn, struct sk_buff *skb,
				     const struct nnet_view *v,
				     const struct nnet_key *key, bool *is_new);
void nnet_pit_put(struct nnet_pending *e);
void nnet_pit_kill(struct nnet_pending *e);
void nnet_pit_unlink(struct nnet_pending *e);
void nnet_pit_arm(struct nnet_pending *e, unsigned long expires);
struct nnet_record *nnet_record_find(struct list_head *list, u32 face);
struct nnet_record *nnet_in_get(struct nnet_pending *e, u32 face);
struct nnet_record *nnet_out_get(struct nnet_pending *e, u32 face);
void nnet_in_free(struct nnet_pending *e, struct nnet_record *r);
unsigned int nnet_pit_match(struct nnet_net *nn, const struct nnet_view *v,
			    const struct nnet_key *key, const u8 *digest,
			    struct nnet_pending **found);
unsigned int nnet_pit_under(struct nnet_net *nn, u32 bucket, const u8 *name,
			    u16 len, struct nnet_pending **found);
bool nnet_dead_has(struct nnet_net *nn, u64 name, u32 nonce);
void nnet_dead_add(struct nnet_net *nn, u64 name, u32 nonce);
void nnet_dead_add_outs(struct nnet_pending *e);

#endif /* _NNET_PIT_H */
