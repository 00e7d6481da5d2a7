/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * face.c: faces, their ports and their slots; ether.c and udp.c: the faces that
 * have a device or a UDP peer behind them.
 */
#ifndef _NNET_FACE_H
#define _NNET_FACE_H

#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/refcount.h>
#include <linux/skbuff.h>
#include <linux/timer.h>

#include "generated/nnet_nl.h"
#include "wire.h"

struct nnet_face;
struct nnet_net;
struct nnet_user;

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
 * @user: a reference
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
	bool automatic;		/* of a peer that nobody named */
	bool routed;		/* a route led to it once */
	u16 mtu;		/* of a frame; 0: the packet bound */
	struct nnet_port __rcu *port;
	struct nnet_net *nn;
	struct nnet_user *user;	/* whose share it takes; NULL: nobody's */
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
	unsigned int partial_octets;	/* of memory */
	struct timer_list partial_timer;
	struct rcu_head rcu;
};

/**
 * struct nnet_slot - a place in the table of faces
 * @lock: of what is below it; the innermost
 * @draining: what the face that had it asked for is being ended; not to be had
 * @user: whose share the face takes; NULL: nobody's
 * @pending: in-records of the face in the PIT
 * @octets: memory that they keep
 * @asked: these records
 */
struct nnet_slot {
	struct nnet_face __rcu *face;
	spinlock_t lock;
	u16 generation;
	bool draining;
	struct nnet_user *user;
	u32 pending;
	unsigned long octets;
	struct list_head asked;
};

struct nnet_face *nnet_face_new(struct nnet_net *nn, enum nnet_kind kind,
				gfp_t gfp);
int nnet_face_register(struct nnet_face *face, struct nnet_port *port, u32 id);
u32 nnet_face_detach(struct nnet_face *face);
void nnet_face_drain(struct nnet_face *face, u32 id);
void nnet_face_release(struct nnet_face *face);
struct nnet_face *nnet_face_hold(struct nnet_net *nn, u32 id);
struct nnet_face *nnet_face_peek(struct nnet_net *nn, u32 id);
void nnet_face_put(struct nnet_face *face);
void nnet_face_out(struct nnet_face *face, struct sk_buff *skb);
void nnet_faces_exit(struct nnet_net *nn);
void nnet_face_sum(const struct nnet_face *face, struct nnet_face_stats *sum);
void nnet_face_received(struct nnet_face *face, const struct sk_buff *skb);

#define NNET_CB(skb) ((struct nnet_cb *)(skb)->cb)

/* ether.c, udp.c */

struct nnet_face *nnet_ether_find(struct nnet_net *nn, int ifindex,
				  const u8 *mac);
int nnet_ether_face_new(struct nnet_net *nn, struct net_device *dev,
			const u8 *mac, u16 mtu, bool automatic, u32 *id);
int nnet_udp_face_new(struct nnet_net *nn, struct sockaddr_in6 *remote, u16 mtu,
		      bool automatic, u32 *id);
int nnet_udp_listen(struct nnet_net *nn, u16 port);
void nnet_udp_exit(struct nnet_net *nn);
int nnet_ether_init(void);
void nnet_ether_exit(void);

#endif /* _NNET_FACE_H */
