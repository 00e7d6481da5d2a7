// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The cache behind the cache: Data that leaves the kernel's memory is offered
 * to a store in user space over the netlink family, and Interests for what was
 * offered are asked there before they are forwarded.
 *
 * A filter of the names and prefixes offered, and of those that the store says
 * it has, keeps other Interests from asking. It has false hits, which cost a
 * question, and forgets nothing until the store attaches anew. Its bits are set
 * and read without lock. portid is written by netlink calls and the netlink
 * notifier, and read anywhere.
 */
#include <linux/mm.h>

#include "nnet.h"

enum {
	NNET_FILTER_BITS	= 1 << 23,
};

void nnet_store_init(struct nnet_net *nn)
{
	nn->store.portid = 0;
}

void nnet_store_exit(struct nnet_net *nn)
{
	kvfree(nn->store.filter);
	nn->store.filter = NULL;
}

/* Makes @portid the store. Context: nn->control held. Return: 0 or -ENOMEM. */
int nnet_store_attach(struct nnet_net *nn, u32 portid)
{
	unsigned long *filter = nn->store.filter;

	if (!filter) {
		filter = kvzalloc(NNET_FILTER_BITS / 8, GFP_KERNEL_ACCOUNT);
		if (!filter)
			return -ENOMEM;
		smp_store_release(&nn->store.filter, filter);
	} else {
		bitmap_zero(filter, NNET_FILTER_BITS);
	}
	WRITE_ONCE(nn->store.portid, portid);
	return 0;
}

static void nnet_filter_add(unsigned long *filter, u64 hash)
{
	set_bit((u32)hash % NNET_FILTER_BITS, filter);
	set_bit((u32)(hash >> 32) % NNET_FILTER_BITS, filter);
}

static bool nnet_filter_has(const unsigned long *filter, u64 hash)
{
	return test_bit((u32)hash % NNET_FILTER_BITS, filter) &&
	       test_bit((u32)(hash >> 32) % NNET_FILTER_BITS, filter);
}

/* From now on Interests for @name are asked, if there is a store. */
void nnet_store_have(struct nnet_net *nn, const u8 *name, u16 len)
{
	unsigned long *filter = smp_load_acquire(&nn->store.filter);
	struct nnet_key key;
	u16 d;

	if (!filter)
		return;
	nnet_key_make(&nnet_secret, name, len, &key);
	nnet_filter_add(filter, key.full);
	for (d = 1; d <= key.deep; d++)
		nnet_filter_add(filter, key.h[d]);
}

/*
 * Offers a Data that is fresh for @fresh_ms more. It is lost when the store
 * does not keep up; that is counted.
 */
void nnet_store_offer(struct nnet_net *nn, struct sk_buff *data, u32 fresh_ms)
{
	u32 portid = READ_ONCE(nn->store.portid);
	struct nnet_view v;

	if (!portid)
		return;
	if (nnet_netlink_store_send(nn, portid, NNET_CMD_STORE_OFFER, data,
				    fresh_ms)) {
		nnet_count(nn, NNET_C_T_STORE_LOST);
		return;
	}
	nnet_count(nn, NNET_C_T_STORE_OFFERED);
	if (!nnet_data_parse(data->data, data->len, &v))
		nnet_store_have(nn, v.name, v.name_len);
}

/* Whether the store may have an answer. */
bool nnet_store_wanted(struct nnet_net *nn, const struct nnet_view *v,
		       const struct nnet_key *key)
{
	unsigned long *filter = smp_load_acquire(&nn->store.filter);

	if (!READ_ONCE(nn->store.portid) || !filter)
		return false;
	if (READ_ONCE(nn->store.in_user))
		return true;
	return nnet_filter_has(filter, v->flags & NNET_V_DIGEST ? key->parent :
								  key->full);
}

/* Asks the store. Return: whether it was asked. */
bool nnet_store_ask(struct nnet_net *nn, struct sk_buff *interest)
{
	u32 portid = READ_ONCE(nn->store.portid);

	if (!portid ||
	    nnet_netlink_store_send(nn, portid, NNET_CMD_STORE_ASK, interest,
				    0))
		return false;
	nnet_count(nn, NNET_C_T_STORE_ASKED);
	return true;
}
