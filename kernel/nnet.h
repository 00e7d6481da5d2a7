/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A network namespace, what is in it, and the order of its locks. Each part has
 * its header, named like the file that owns its types.
 *
 * Lock order, outermost first:
 *   nn->control (mutex)		FIB, BPT, faces: every change of them
 *   lock_sock
 *   sk->nnet lock (tp->lock, pub->lock)
 *   bucket of the PIT or CS (writers of its chain)
 *   pending Interest (entry->lock)
 *   cs->order_lock, cs->lock, nn->face_lock, nn->user_lock, face->rx_lock	never
 *				nested in each other
 *   slot->lock
 *
 * The data path runs with bottom halves off, inside rcu_read_lock(), and never
 * takes the first two.
 */
#ifndef _NNET_H
#define _NNET_H

#include <linux/bitops.h>
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>

#include "compat.h"
#include "include/uapi/linux/nnet.h"
#include "generated/nnet_nl.h"
#include "verdict.h"
#include "wire.h"
#include "table.h"
#include "user.h"
#include "face.h"
#include "link.h"
#include "dispatch.h"
#include "fib.h"
#include "bpt.h"
#include "pit.h"
#include "cs.h"
#include "store.h"
#include "socket.h"

/* Bounds. What happens at each is in README.md. */
enum {
	NNET_FACES_MAX		= 4096,
	NNET_FACES_KEPT		= 480,	/* for those with CAP_NET_ADMIN */
	NNET_FACES_USER_MAX	= 960,	/* of one without it */
	NNET_FACES_AUTO_MAX	= 960,	/* for peers that nobody named */
	NNET_FACE_LOCAL		= 1,	/* the entrance to the applications */
	NNET_FACE_STORE		= 253,	/* the cache behind the cache */
	NNET_FACE_CACHE		= 254,
	NNET_FACE_FIRST		= 256,
	NNET_FACE_SLOT_BITS	= 16,
	NNET_FACE_MTU_MIN	= 128,	/* room for the header of a fragment */
	NNET_HOPS_MAX		= 16,	/* next hops of a FIB entry */
	NNET_ROUTES_MAX		= 65536,
	NNET_BINDINGS_MAX	= 65536,
	NNET_BINDINGS_KEPT	= 8192,	/* for those with CAP_NET_ADMIN */
	NNET_BINDINGS_USER_MAX	= 16384, /* of one without it */
	NNET_BINDINGS_SOCK_MAX	= 1024,
	NNET_IN_MAX		= 256,	/* downstream faces of an entry */
	NNET_OUT_MAX		= 32,
	NNET_MATCH_MAX		= 16,	/* entries taken at a time by a Data */
	NNET_PARTIAL_MAX	= 16,	/* packets put together at once, a face */
	NNET_PARTIAL_ALL_MAX	= 1024,	/* and in a namespace */
	NNET_PARTIAL_OCTETS	= 1 << 20, /* of memory that a face's hold */
	NNET_PARTIAL_ALL_OCTETS	= 16 << 20, /* and those of a namespace */
	NNET_PARTIAL_MS		= 500,
	NNET_DEAD_SLOTS		= 16384,
	NNET_DEAD_MS		= 6000,
	NNET_RETX_MIN_MS	= 10,
	NNET_RETX_MAX_MS	= 250,
	NNET_SMALL_DATA		= 2048,
	NNET_SCAN_MAX		= 1024,	/* names that a lookup for a prefix examines */
	NNET_SCAN_HELD		= 64,	/* of them with one taking of the lock */
	NNET_DISPATCH_QUEUE	= 4096,	/* packets that wait for a thread */
	NNET_DISPATCH_TURN	= 64,	/* of one owner, before the next has its turn */
	NNET_THREADS_MAX	= 64,
	NNET_PUBLISHED_MAX	= 65536, /* packets that a socket keeps */
	NNET_HASH_BITS_MIN	= 4,
	NNET_HASH_BITS_MAX	= 20,
	NNET_REGIONS_MAX	= 16,
	NNET_LINK_HEADROOM	= 128,	/* link header and lower headers */
};

/* forward.c, interest.c, strategy.c */

bool nnet_forward(struct nnet_net *nn, struct sk_buff *skb);
void nnet_send(struct nnet_net *nn, u32 face, struct sk_buff *skb,
	       const struct nnet_cb *cb);
void nnet_pending_expired(struct nnet_pending *e);
void nnet_store_missed(struct nnet_net *nn, struct sk_buff *skb);
void nnet_next_hop_added(struct nnet_net *nn, const u8 *name, u16 len,
			 u32 face);

/* netlink.c (and nl_face.c, nl_route.c, nl_cache.c), procfs.c, main.c */

struct nnet_counters {
	u64 c[NNET_C_COUNT];
};

/**
 * struct nnet_net - everything of a network namespace
 * @control: every change of faces, FIB, bindings and settings
 * @up: the tables are there; they come with the first socket, face or route
 */
struct nnet_net {
	struct net *net;
	struct mutex control;
	bool up;
	bool gone;		/* the namespace ends: no new sockets */
	bool auto_faces;
	u8 regions;
	u8 *region[NNET_REGIONS_MAX];
	u16 region_len[NNET_REGIONS_MAX];
	spinlock_t user_lock;
	struct hlist_head users[64];
	struct nnet_owner *owner;	/* NULL: the host's */
	spinlock_t face_lock;
	struct nnet_slot *slots;
	u32 faces;
	u32 auto_made;		/* of them, those of unknown peers */
	u32 cursor;
	struct nnet_face *local;
	struct hlist_head lower[256];
	atomic_t partials;
	atomic_t partial_octets;
	struct nnet_fib fib;
	struct nnet_bpt bpt;
	struct nnet_pit pit;
	struct nnet_cs cs;
	struct nnet_dead *dead;
	struct nnet_store store;
	struct nnet_dispatch_conf dispatch;
	atomic_t dispatched;
	struct nnet_flow *flows;	/* in the threads' queues; NULL: none yet */
	struct nnet_flow *own_flows;	/* the same, where root owns it */
	struct hlist_head taps;
	struct socket *udp4, *udp6;
	u16 udp_port;
	struct nnet_counters __percpu *counters;
	struct proc_dir_entry *proc;
};

extern unsigned int nnet_net_id;
extern siphash_key_t nnet_secret;
extern struct workqueue_struct *nnet_wq;
extern int nnet_family;
extern unsigned int nnet_hash_bits;
extern unsigned int nnet_ns_packets, nnet_ns_pit;
extern unsigned long nnet_ns_pit_bytes;
extern unsigned long nnet_ns_bytes;

static inline struct nnet_net *nnet_pernet(struct net *net)
{
	return net_generic(net, nnet_net_id);
}

static inline u32 nnet_slot_of(u32 id)
{
	return id & (BIT(NNET_FACE_SLOT_BITS) - 1);
}

static inline struct nnet_slot *nnet_slot(struct nnet_net *nn, u32 id)
{
	u32 slot = nnet_slot_of(id);

	return slot < NNET_FACES_MAX ? &nn->slots[slot] : NULL;
}

static inline void nnet_count(struct nnet_net *nn, enum nnet_counter c)
{
	this_cpu_inc(nn->counters->c[c]);
}

u64 nnet_counter_sum(struct nnet_net *nn, enum nnet_counter c);
extern const char *const nnet_counter_kind[NNET_C_COUNT];
extern const char *const nnet_counter_word[NNET_C_COUNT];
int nnet_up(struct nnet_net *nn);

int nnet_netlink_init(void);
void nnet_netlink_exit(void);
void nnet_netlink_face_event(struct nnet_net *nn, const struct nnet_face *face,
			     u32 id, bool created);
int nnet_netlink_store_send(struct nnet_net *nn, u32 portid, u8 cmd,
			    struct sk_buff *packet, u32 fresh_ms);
int nnet_procfs_init(struct nnet_net *nn);
void nnet_procfs_exit(struct nnet_net *nn);

#ifdef NNET_DEBUG
int nnet_selftest(void);
void nnet_window(void);
#else
static inline void nnet_window(void)
{
}

static inline int nnet_selftest(void)
{
	return 0;
}
#endif

#endif /* _NNET_H */
