/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* pit.c: pending Interests, and the nonces of those that ended. */
#ifndef _NNET_PIT_H
#define _NNET_PIT_H

#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/timer.h>

#include "table.h"
#include "wire.h"

struct nnet_net;

/* Bounds. What happens at each is in README.md. */
enum {
	NNET_PIT_MAX		= 65536,	/* entries, unless set */
	NNET_PIT_OCTETS_MAX	= 128 << 20,	/* of memory, unless set */
	NNET_PIT_VARIANTS_MAX	= 64,	/* of one name, by hint and digest */
};

/**
 * struct nnet_record - who asked, or was asked
 * @of_face: in: among what its face asked for, under the lock of the slot; empty
 *	when it does not count for the face (any more)
 * @entry: in: whose it is
 */
struct nnet_record {
	struct list_head node;
	struct list_head of_face;
	struct nnet_pending *entry;
	u32 face;
	u32 nonce;
	unsigned long expires;
	unsigned long sent;	/* out: when */
	u16 interval;		/* out, multicast: suppression, ms */
	u8 nacked;
	u8 reason;
	u8 hop;			/* in: the HopLimit as it came */
	u8 repeats;		/* in: it asked before */
	u8 token_len;
	u8 token[NNET_TOKEN_MAX];
};

/**
 * struct nnet_pending - a pending Interest
 * @ref: 1 for the table, 1 for the timer, 1 for each that works on it
 * @lock: the second level: everything below it
 * @hash: of the name without an implicit digest: that of its chain
 * @full: of the whole name: for nonces
 * @skb: the one Interest; @name and @hint point into it
 * @octets: of memory, which count for each face that asks
 * @dead: taken out; whoever finds it looks again. Its in-records stay as they
 *	are for who took it
 */
struct nnet_pending {
	struct hlist_node node;
	struct rcu_head rcu;
	refcount_t ref;
	u64 hash;
	u64 full;
	struct sk_buff *skb;
	const u8 *name;
	const u8 *hint;
	u32 octets;
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
	atomic_long_t octets;
	u32 max;
	unsigned long octets_max;
};

/**
 * struct nnet_arrival - a Data on its way to those who wait
 * @face: who sent it: only the Interests that went there are answered
 * @hashed: whether @digest, the implicit digest, is known
 */
struct nnet_arrival {
	const struct sk_buff *skb;
	const struct nnet_view *v;
	struct nnet_key key;
	u32 face;
	bool hashed;
	u8 digest[32];
};

struct nnet_dead {
	u64 hash;
	unsigned long when;
};

int nnet_pit_init(struct nnet_net *nn);
void nnet_pit_exit(struct nnet_net *nn);
struct nnet_pending *nnet_pit_find(struct nnet_net *nn,
				   const struct nnet_view *v,
				   const struct nnet_key *key);
struct nnet_pending *nnet_pit_insert(struct nnet_net *nn, struct sk_buff *skb,
				     const struct nnet_view *v,
				     const struct nnet_key *key, bool *is_new);
void nnet_pit_put(struct nnet_pending *e);
void nnet_pit_kill(struct nnet_pending *e);
void nnet_pit_unlink(struct nnet_pending *e);
void nnet_pit_arm(struct nnet_pending *e, unsigned long expires);
unsigned int nnet_pit_take(struct nnet_net *nn, struct nnet_arrival *a,
			   struct nnet_pending **found);
unsigned int nnet_pit_under(struct nnet_net *nn, u32 bucket, const u8 *name,
			    u16 len, struct nnet_pending **found);
u32 nnet_pit_erase(struct nnet_net *nn, const u8 *name, u16 len, u32 max);

/* record.c */

bool nnet_over_share(struct nnet_net *nn, u32 face, u32 octets);
u32 nnet_pending_octets(const struct sk_buff *skb);
struct nnet_record *nnet_record_find(struct list_head *list, u32 face);
struct nnet_record *nnet_in_get(struct nnet_pending *e, u32 face);
struct nnet_record *nnet_out_get(struct nnet_pending *e, u32 face);
void nnet_in_free(struct nnet_pending *e, struct nnet_record *r);
void nnet_out_free(struct nnet_pending *e, struct nnet_record *r);
void nnet_face_forget_asked(struct nnet_net *nn, u32 face);
bool nnet_dead_has(struct nnet_net *nn, u64 name, u32 nonce);
void nnet_dead_add(struct nnet_net *nn, u64 name, u32 nonce);
void nnet_dead_add_outs(struct nnet_pending *e);

#endif /* _NNET_PIT_H */
