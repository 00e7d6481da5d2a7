// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Hash heads with the first level of locks. The schemes stand behind one
 * interface so that they can be measured side by side.
 */
#include <linux/mm.h>

#include "nnet.h"

int nnet_table_init(struct nnet_table *t, unsigned int bits,
		    enum nnet_lock scheme)
{
	u32 i;

	t->scheme = scheme;
	t->mask = BIT(bits) - 1;
	spin_lock_init(&t->one);
	t->buckets = kvcalloc(BIT(bits), sizeof(*t->buckets),
			      GFP_KERNEL_ACCOUNT);
	if (!t->buckets)
		return -ENOMEM;
	for (i = 0; i <= t->mask; i++) {
		INIT_HLIST_HEAD(&t->buckets[i].head);
		if (scheme == NNET_LOCK_RW)
			rwlock_init(&t->buckets[i].rw);
		else
			spin_lock_init(&t->buckets[i].lock);
	}
	return 0;
}

void nnet_table_free(struct nnet_table *t)
{
	kvfree(t->buckets);
	t->buckets = NULL;
}
