/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sockets: socket.c, bind.c, send.c, sockopt.c, message.c, publish.c; what of
 * sequence.c and consume.c they call.
 */
#ifndef _NNET_SOCKET_H
#define _NNET_SOCKET_H

#include <linux/rbtree.h>
#include <net/sock.h>

#include "compat.h"
#include "include/uapi/linux/nnet.h"
#include "wire.h"

struct nnet_face;
struct nnet_net;
struct nnet_user;

struct nnet_published {
	struct rb_node named;
	struct list_head spent;
	struct rb_node timed;
	struct sk_buff *skb;
	unsigned long expires;
	bool forever;
	const u8 *name;
	u16 name_len;
};

/**
 * struct nnet_publication - what a socket published
 * @named: in the canonical order of names
 * @last: where the next looks for its place
 * @spent: what was served and may go when room is needed
 * @timed: what has a time, by it
 * @timer: wakes who waits for room; runs while somebody does
 */
struct nnet_publication {
	spinlock_t lock;
	struct rb_root named;
	struct nnet_published *last;
	struct list_head spent;
	struct rb_root_cached timed;
	struct timer_list timer;
	u32 count;
	u64 bytes;
	u64 served;
};

struct nnet_sequence;

struct nnet_sock {
	struct sock sk;		/* first */
	struct nnet_net *nn;
	struct nnet_face *face;
	struct nnet_user *user;	/* who made it, a reference */
	u32 face_id;
	u32 bind_flags;
	u32 lifetime;
	u32 window;		/* SEQPACKET, fixed */
	bool strict;
	bool multibind;
	bool lp;
	bool local_fields;
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
int nnet_bind(struct socket *sock, struct nnet_sockaddr *addr, int len);
int nnet_connect(struct socket *sock, struct nnet_sockaddr *addr, int len,
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

void nnet_publish_init(struct nnet_sock *ns);
int nnet_publish_add(struct nnet_sock *ns, struct sk_buff *skb, u32 ms);
bool nnet_publish_room(struct nnet_sock *ns, u32 truesize);
bool nnet_publish_writable(struct nnet_sock *ns);
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

#endif /* _NNET_SOCKET_H */
