/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* table.c: hash heads. Chains are read under RCU; a spinlock of each head is for writers. */
#ifndef _NNET_TABLE_H
#define _NNET_TABLE_H

#include <linux/list.h>
#include <linux/spinlock.h>

struct nnet_bucket {
	struct hlist_head head;
	spinlock_t lock;
};

struct nnet_table {
	u32 mask;
	struct nnet_bucket *buckets;
};

int nnet_table_init(struct nnet_table *t, unsigned int bits);
void nnet_table_free(struct nnet_table *t);

static inline struct nnet_bucket *nnet_bucket(struct nnet_table *t, u64 hash)
{
	return &t->buckets[(u32)hash & t->mask];
}

#endif /* _NNET_TABLE_H */
