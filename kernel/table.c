// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Hash heads, each with the lock of who changes its chain. */
#include <linux/mm.h>

#include "nnet.h"

int nnet_table_init(struct nnet_table *t, unsigned int bits)
{
	u32 i;

	t->mask = BIT(bits) - 1;
	t->buckets = kvcalloc(BIT(bits), sizeof(*t->buckets),
			      GFP_KERNEL_ACCOUNT);
	if (!t->buckets)
		return -ENOMEM;
	for (i = 0; i <= t->mask; i++) {
		INIT_HLIST_HEAD(&t->buckets[i].head);
		spin_lock_init(&t->buckets[i].lock);
	}
	return 0;
}

void nnet_table_free(struct nnet_table *t)
{
	kvfree(t->buckets);
	t->buckets = NULL;
}
