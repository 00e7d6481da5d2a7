/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* table.c: hash heads with the first level of locks. */
#ifndef _NNET_TABLE_H
#define _NNET_TABLE_H

#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include "generated/nnet_nl.h"

struct nnet_bucket {
	struct hlist_head head;
	union {
		rwlock_t rw;
		spinlock_t lock;
	};
};

struct nnet_table {
	enum nnet_lock scheme;
	u32 mask;
	spinlock_t one;
	struct nnet_bucket *buckets;
};

int nnet_table_init(struct nnet_table *t, unsigned int bits,
		    enum nnet_lock scheme);
void nnet_table_free(struct nnet_table *t);

static inline struct nnet_bucket *nnet_bucket(struct nnet_table *t, u64 hash)
{
	return &t->buckets[(u32)hash & t->mask];
}

static inline void nnet_read_lock(struct nnet_table *t, struct nnet_bucket *b)
{
	if (t->scheme == NNET_LOCK_RW)
		read_lock_bh(&b->rw);
	else if (t->scheme == NNET_LOCK_RCU)
		rcu_read_lock();
	else
		spin_lock_bh(&t->one);
}

static inline void nnet_read_unlock(struct nnet_table *t, struct nnet_bucket *b)
{
	if (t->scheme == NNET_LOCK_RW)
		read_unlock_bh(&b->rw);
	else if (t->scheme == NNET_LOCK_RCU)
		rcu_read_unlock();
	else
		spin_unlock_bh(&t->one);
}

static inline void nnet_write_lock(struct nnet_table *t, struct nnet_bucket *b)
{
	if (t->scheme == NNET_LOCK_RW)
		write_lock_bh(&b->rw);
	else if (t->scheme == NNET_LOCK_RCU)
		spin_lock_bh(&b->lock);
	else
		spin_lock_bh(&t->one);
}

static inline void nnet_write_unlock(struct nnet_table *t,
				     struct nnet_bucket *b)
{
	if (t->scheme == NNET_LOCK_RW)
		write_unlock_bh(&b->rw);
	else if (t->scheme == NNET_LOCK_RCU)
		spin_unlock_bh(&b->lock);
	else
		spin_unlock_bh(&t->one);
}

#endif /* _NNET_TABLE_H */
