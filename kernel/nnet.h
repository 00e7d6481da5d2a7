/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The parts of AF_NNET and who owns what.
 *
 * Lock order, outermost first:
 *   nn->control (mutex)		FIB, BPT, faces: every change of them
 *   lock_sock
 *   sk->nnet lock (tp->lock, pub->lock)
 *   bucket of the PIT or CS
 *   pending Interest (entry->lock)
 *   cs->lock, nn->face_lock, face->rx_lock	never nested in each other
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

/* Bounds. What happens at each is in README.md. */
enum {
	NNET_FACES_MAX		= 4096,
	NNET_FACE_LOCAL		= 1,	/* the entrance to the applications */
	NNET_FACE_STORE		= 253,	/* the cache behind the cache */
	NNET_FACE_CACHE		= 254,
	NNET_FACE_FIRST		= 256,
	NNET_FACE_SLOT_BITS	= 16,
	NNET_FACE_MTU_MIN	= 128,	/* room for the header of a fragment */
	NNET_HOPS_MAX		= 16,	/* next hops of a FIB entry */
	NNET_ROUTES_MAX		= 65536,
	NNET_BINDINGS_MAX	= 65536,
	NNET_BINDINGS_SOCK_MAX	= 1024,
	NNET_IN_MAX		= 256,	/* downstream faces of an entry */
	NNET_OUT_MAX		= 32,
	NNET_MATCH_MAX		= 16,	/* entries taken at a time by a Data */
	NNET_PARTIAL_MAX	= 16,	/* packets put together at once, a face */
	NNET_PARTIAL_ALL_MAX	= 1024,	/* and in a namespace */
	NNET_PARTIAL_MS		= 500,
	NNET_DEAD_SLOTS		= 16384,
	NNET_DEAD_MS		= 6000,
	NNET_RETX_MIN_MS	= 10,
	NNET_RETX_MAX_MS	= 250,
	NNET_SMALL_DATA		= 2048,
	NNET_DISPATCH_QUEUE	= 4096,	/* packets that wait for a thread */
	NNET_THREADS_MAX	= 64,
	NNET_PUBLISHED_MAX	= 65536, /* packets that a socket keeps */
	NNET_PUBLISHED_HEADS	= 1024,
	NNET_HASH_BITS_MIN	= 4,
	NNET_HASH_BITS_MAX	= 20,
	NNET_REGIONS_MAX	= 16,
	NNET_LINK_HEADROOM	= 128,	/* link header and lower headers */
};

struct nnet_net;
struct nnet_face;

/* ---- table.c: hash heads with the first level of locks ---- */

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

/* ---- face.c ---- */

enum nnet_kind {
	NNET_KIND_LOCAL = NNET_FACE_KIND_LOCAL,
	NNET_KIND_SOCKET = NNET_FACE_KIND_SOCKET,
	NNET_KIND_ETHER = NNET_FACE_KIND_ETHER,
	NNET_KIND_UDP = NNET_FACE_KIND_UDP,
};

struct nnet_face_stats {
	u64 in_interests, in_data, in_nacks, in_bytes;
	u64 out_interests, out_data, out_nacks, out_bytes;
	u64 dropped;
};

/**
 * struct nnet_port - the handler of a face: the paper's entity and function
 * @send: takes a packet that goes out by the face; owns the buffer
 * @free: gives the entity back, after every reader of the port has gone
 *
 * A face that was released has no port: its packets go into the blackhole.
 */
struct nnet_port {
	void (*send)(struct nnet_face *face, struct nnet_port *port,
		     struct sk_buff *skb);
	void (*free)(struct nnet_port *port);
	struct rcu_head rcu;
};

struct nnet_ether_port {
	struct nnet_port port;
	struct net_device *dev;
	netdevice_tracker tracker;
	u8 peer[ETH_ALEN];
};

struct nnet_udp_port {
	struct nnet_port port;
	bool v6;
	__be16 rport;
	union {
		__be32 v4addr;
		struct in6_addr v6addr;
	};
	int ifindex;
};

struct nnet_sock;

struct nnet_sock_port {
	struct nnet_port port;
	struct nnet_sock *ns;
};

struct nnet_partial;

/**
 * struct nnet_face - what an Interest or a Data comes from or goes to
 * @users: 1 while registered, and 1 for each holder on the data path
 * @id: slot and generation; 0 once released
 * @port: the handler; NULL once released
 * @lower: in nn->lower, for faces of a device or a UDP peer
 * @partial: packets that are put together, under @rx_lock
 */
struct nnet_face {
	refcount_t users;
	u32 id;
	u8 kind;
	bool local;
	bool multi;		/* several peers behind it */
	bool fragment;
	bool local_fields;
	bool lp;		/* a RAW socket that sees link headers */
	u16 mtu;		/* of a frame; 0: the packet bound */
	struct nnet_port __rcu *port;
	struct nnet_net *nn;
	struct nnet_face_stats __percpu *stats;
	struct hlist_node lower;
	u32 lower_hash;
	int ifindex;
	u8 peer[ETH_ALEN];
	struct sockaddr_in6 remote;	/* UDP, IPv4 mapped */
	u64 created;

	atomic64_t tx_sequence;
	spinlock_t rx_lock;
	struct list_head partial;
	unsigned int partials;
	struct timer_list partial_timer;
	struct rcu_head rcu;
};

struct nnet_slot {
	struct nnet_face __rcu *face;
	u16 generation;
	atomic_t pending;	/* in-records of this slot's face in the PIT */
};

struct nnet_face *nnet_face_new(struct nnet_net *nn, enum nnet_kind kind,
				gfp_t gfp);
int nnet_face_register(struct nnet_face *face, struct nnet_port *port, u32 id);
void nnet_face_release(struct nnet_face *face);
struct nnet_face *nnet_face_hold(struct nnet_net *nn, u32 id);
struct nnet_face *nnet_face_peek(struct nnet_net *nn, u32 id);
void nnet_face_put(struct nnet_face *face);
void nnet_face_out(struct nnet_face *face, struct sk_buff *skb);
void nnet_faces_exit(struct nnet_net *nn);
void nnet_face_sum(const struct nnet_face *face, struct nnet_face_stats *sum);
void nnet_face_received(struct nnet_face *face, const struct sk_buff *skb);

static inline struct nnet_slot *nnet_slot(struct nnet_net *nn, u32 id);

#define NNET_CB(skb) ((struct nnet_cb *)(skb)->cb)

/* ---- lower.c, ether.c, udp.c ---- */

struct nnet_face *nnet_ether_find(struct nnet_net *nn, int ifindex,
				  const u8 *mac);
int nnet_ether_face_new(struct nnet_net *nn, struct net_device *dev,
			const u8 *mac, u16 mtu, u32 *id);
int nnet_udp_face_new(struct nnet_net *nn, const struct sockaddr_in6 *remote,
		      u16 mtu, u32 *id);
int nnet_udp_listen(struct nnet_net *nn, u16 port);
void nnet_udp_exit(struct nnet_net *nn);
int nnet_ether_init(void);
void nnet_ether_exit(void);

/* ---- link.c ---- */

void nnet_link_receive(struct nnet_face *face, struct sk_buff *skb,
		       const u8 *source);
void nnet_link_header(struct sk_buff *skb, const struct nnet_cb *cb);
typedef int (*nnet_frame_fn)(void *ctx, struct sk_buff *skb);
void nnet_link_send(struct nnet_face *face, struct sk_buff *skb,
		    unsigned int mtu, unsigned int headroom, nnet_frame_fn out,
		    void *ctx);
void nnet_link_flush(struct nnet_face *face);

/* ---- dispatch.c ---- */

void nnet_dispatch(struct nnet_net *nn, struct sk_buff *skb);
int nnet_dispatch_set(struct nnet_net *nn, u8 mode, u8 depth, u8 threads,
		      bool separate);
void nnet_dispatch_show(struct seq_file *m, struct nnet_net *nn);
void nnet_dispatch_flush(struct nnet_net *nn);
void nnet_dispatch_exit(void);

/* ---- fib.c ---- */

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
void nnet_fib_forget_face(struct nnet_net *nn, u32 face);
int nnet_strategy_set(struct nnet_net *nn, const u8 *name, u16 len,
		      u8 strategy);
struct nnet_hops *nnet_fib_lookup(struct nnet_net *nn, const u8 *name,
				  const struct nnet_key *key);
u8 nnet_strategy_lookup(struct nnet_net *nn, const u8 *name,
			const struct nnet_key *key);
struct nnet_hops *nnet_fib_route(struct nnet_net *nn,
				 const struct nnet_view *v,
				 const struct nnet_key *key);

/* ---- bpt.c: the binding prefix table ---- */

struct nnet_binding {
	struct hlist_node node;
	struct list_head of_sock;
	struct rcu_head rcu;
	u64 hash;
	u32 face;
	u8 depth;
	u16 name_len;
	u8 name[];
};

struct nnet_bpt {
	struct hlist_head *heads;
	u32 mask;
	u32 count;
	u32 depth_count[NNET_DEPTH_MAX + 1];
	unsigned long depths;
};

int nnet_bpt_init(struct nnet_net *nn);
void nnet_bpt_exit(struct nnet_net *nn);
int nnet_bpt_add(struct nnet_net *nn, const u8 *name, u16 len, u32 face,
		 struct list_head *of_sock);
int nnet_bpt_del(struct nnet_net *nn, const u8 *name, u16 len,
		 struct list_head *of_sock);
void nnet_bpt_del_all(struct nnet_net *nn, struct list_head *of_sock);
u32 nnet_bpt_lookup(struct nnet_net *nn, const u8 *name,
		    const struct nnet_key *key);

/* ---- pit.c ---- */

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

/* ---- cs.c ---- */

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

/* ---- store.c: the cache behind the cache ---- */

struct nnet_store {
	u32 portid;		/* of the user-space store, 0 without */
	bool in_user;		/* every Data goes there and none is kept */
	unsigned long *filter;
};

void nnet_store_init(struct nnet_net *nn);
void nnet_store_exit(struct nnet_net *nn);
int nnet_store_attach(struct nnet_net *nn, u32 portid);
void nnet_store_offer(struct nnet_net *nn, struct sk_buff *data);
bool nnet_store_wanted(struct nnet_net *nn, const struct nnet_view *v,
		       const struct nnet_key *key);
bool nnet_store_ask(struct nnet_net *nn, struct sk_buff *interest);

/* ---- forward.c, interest.c, strategy.c ---- */

bool nnet_forward(struct nnet_net *nn, struct sk_buff *skb);
void nnet_send(struct nnet_net *nn, u32 face, struct sk_buff *skb,
	       const struct nnet_cb *cb);
void nnet_pending_expired(struct nnet_pending *e);
void nnet_store_missed(struct nnet_net *nn, struct sk_buff *skb);
void nnet_next_hop_added(struct nnet_net *nn, const u8 *name, u16 len,
			 u32 face);

/* ---- socket.c, bind.c, send.c, sockopt.c, message.c, publish.c, sequence.c, consume.c ---- */

struct nnet_published {
	struct hlist_node node;
	struct list_head order;
	struct sk_buff *skb;
	u64 hash;
	unsigned long expires;
	bool forever;
	bool served;
	const u8 *name;
	u16 name_len;
};

struct nnet_publication {
	spinlock_t lock;
	struct hlist_head *heads;	/* NNET_PUBLISHED_HEADS, with the first */
	struct list_head order;
	u32 count;
	u64 bytes;
	u64 served;
};

struct nnet_sequence;

struct nnet_sock {
	struct sock sk;		/* first */
	struct nnet_net *nn;
	struct nnet_face *face;
	u32 face_id;
	u32 bind_flags;
	u32 lifetime;
	u32 window;		/* SEQPACKET, fixed */
	bool strict;
	bool multibind;
	bool lp;
	bool whole;
	bool status;
	u8 protocol;
	u16 option_name_len;
	u8 *option_name;
	struct list_head bindings;	/* under nn->control */
	struct hlist_node tap;
	struct nnet_publication pub;
	struct nnet_sequence *seq;	/* SEQPACKET, connected */
	u8 *prefix;			/* SEQPACKET, bound: its object */
	u16 prefix_len;
	u64 next_segment;
	bool closed;
	atomic64_t in_interests, in_data, in_nacks, out_interests, out_data;
	atomic64_t dropped;
};

static inline struct nnet_sock *nnet_sk(const struct sock *sk)
{
	return (struct nnet_sock *)sk;
}

struct nnet_message {
	u32 type;
	u32 lifetime;
	u32 freshness;
	u32 flags;
	u32 hop_limit;
	u32 content_type;
	u32 nonce;
	u32 publish;
	u32 reason;
	u32 mark;
	bool has_type, has_nonce, has_publish, has_hop, has_final;
	const u8 *name;
	const u8 *final;
	const u8 *sig_info;
	const u8 *sig_value;
	u16 name_len, final_len, sig_info_len, sig_value_len;
};

int nnet_socket_init(void);
void nnet_socket_exit(void);
int nnet_sock_attach(struct nnet_sock *ns);
int nnet_sock_attach_locked(struct nnet_sock *ns);
int nnet_bind(struct socket *sock, struct sockaddr *addr, int len);
int nnet_connect(struct socket *sock, struct sockaddr *addr, int len,
		 int flags);
int nnet_getname(struct socket *sock, struct sockaddr *addr, int peer);
int nnet_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int nnet_setsockopt(struct socket *sock, int level, int option,
		    sockptr_t optval, unsigned int len);
int nnet_getsockopt(struct socket *sock, int level, int option,
		    char __user *optval, int __user *optlen);
bool nnet_sock_submit(struct nnet_sock *ns, struct sk_buff *skb);
void nnet_tap(struct nnet_net *nn, struct sk_buff *skb);

int nnet_message_read(struct msghdr *msg, struct nnet_message *m);
struct sk_buff *nnet_message_build(const struct nnet_message *m,
				   struct msghdr *msg, size_t len);
int nnet_message_tell(struct nnet_sock *ns, struct msghdr *msg,
		      struct sk_buff *skb, size_t len, int flags);
void nnet_message_segment(struct msghdr *msg, u64 segment);
struct sk_buff *nnet_interest_make(const u8 *name, u16 len, u32 flags,
				   u32 lifetime, u32 nonce, gfp_t gfp);

void nnet_publish_init(struct nnet_publication *pub);
void nnet_publish_exit(struct nnet_publication *pub);
int nnet_publish_add(struct nnet_sock *ns, struct sk_buff *skb, u32 ms);
bool nnet_publish_room(struct nnet_sock *ns, u32 size);
struct sk_buff *nnet_publish_find(struct nnet_sock *ns,
				  const struct nnet_view *v);
void nnet_publish_served(struct nnet_sock *ns, struct sk_buff *skb);
u32 nnet_publish_remove(struct nnet_sock *ns, const u8 *name, u16 len);

int nnet_sequence_connect(struct nnet_sock *ns, const u8 *name, u16 len,
			  bool decimal);
void nnet_sequence_close(struct nnet_sock *ns);
void nnet_sequence_free(struct nnet_sock *ns);
bool nnet_sequence_receive(struct nnet_sock *ns, struct sk_buff *skb);
int nnet_sequence_recv(struct nnet_sock *ns, struct msghdr *msg, size_t len,
		       int flags);
__poll_t nnet_sequence_poll(struct nnet_sock *ns);
void nnet_sequence_stats(struct nnet_sock *ns, struct nnet_sock_stats *s);
int nnet_sequence_window(struct nnet_sock *ns, u32 window);
u64 nnet_sequence_final(struct nnet_sock *ns);

/* ---- netlink.c (and nl_face.c, nl_route.c, nl_cache.c), procfs.c, main.c ---- */

struct nnet_counters {
	u64 c[NNET_C_COUNT];
};

struct nnet_dispatch_conf {
	u8 mode;	/* NNET_DISPATCH_* */
	u8 depth;
	u8 threads;
	bool separate;
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
	spinlock_t face_lock;
	struct nnet_slot *slots;
	u32 faces;
	u32 cursor;
	struct nnet_face *local;
	struct hlist_head lower[256];
	atomic_t partials;
	struct nnet_fib fib;
	struct nnet_bpt bpt;
	struct nnet_pit pit;
	struct nnet_cs cs;
	struct nnet_dead *dead;
	struct nnet_store store;
	struct nnet_dispatch_conf dispatch;
	atomic_t dispatched;
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
extern unsigned int nnet_lock_scheme;

static inline struct nnet_net *nnet_pernet(struct net *net)
{
	return net_generic(net, nnet_net_id);
}

static inline struct nnet_slot *nnet_slot(struct nnet_net *nn, u32 id)
{
	u32 slot = id & (BIT(NNET_FACE_SLOT_BITS) - 1);

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
			    struct sk_buff *packet);
int nnet_procfs_init(struct nnet_net *nn);
void nnet_procfs_exit(struct nnet_net *nn);

#ifdef NNET_DEBUG
int nnet_selftest(void);
#else
static inline int nnet_selftest(void)
{
	return 0;
}
#endif

#endif /* _NNET_H */
