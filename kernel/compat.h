/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What differs between the kernels that this compiles for. Kbuild looks into their
 * headers for what came in the middle of a series (NNET_HAS_*), for distributions
 * take such changes into older ones.
 */
#ifndef _NNET_COMPAT_H
#define _NNET_COMPAT_H

#include <linux/netdevice.h>
#include <linux/rbtree.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#ifndef from_timer
#define from_timer timer_container_of
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define del_timer timer_delete
#define del_timer_sync timer_delete_sync
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
#include <crypto/sha2.h>
#else
#include <crypto/sha.h>
#endif

/* Linux 5.10: compiled and not run. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
typedef struct {
} netdevice_tracker, netns_tracker;

#define netdev_hold(dev, tracker, gfp) dev_hold(dev)
#define netdev_put(dev, tracker) dev_put(dev)
#define netns_tracker_alloc(net, tracker, gfp) ((void)(tracker))
#define put_net_track(net, tracker) put_net(net)
#define pde_data PDE_DATA
#define skb_recv_datagram(sk, flags, err) \
	skb_recv_datagram(sk, (flags) & ~MSG_DONTWAIT, (flags) & MSG_DONTWAIT, err)

static inline void sk_error_report(struct sock *sk)
{
	sk->sk_error_report(sk);
}

static inline void rb_add_cached(struct rb_node *node,
				 struct rb_root_cached *tree,
				 bool (*less)(struct rb_node *,
					      const struct rb_node *))
{
	struct rb_node **link = &tree->rb_root.rb_node, *parent = NULL;
	bool first = true;

	while (*link) {
		parent = *link;
		if (less(node, parent)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(node, parent, link);
	rb_insert_color_cached(node, tree, first);
}
#endif

/* What calls of a socket take for an address. */
#ifdef NNET_HAS_SOCKADDR_UNSIZED
#define nnet_sockaddr sockaddr_unsized
#else
#define nnet_sockaddr sockaddr
#endif

#endif /* _NNET_COMPAT_H */
