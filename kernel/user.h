/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* user.c: what one user may take of the tables of a namespace. */
#ifndef _NNET_USER_H
#define _NNET_USER_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>

struct nnet_flow;
struct nnet_net;

/**
 * struct nnet_user - a user without CAP_NET_ADMIN in a namespace
 * @ref: 1 for each socket, face and binding of the user
 * @uid: as the owner of the network namespace knows it: what runs in a user
 *	namespace below counts for the owner of that, for uids are many and cheap there
 * @faces: under nn->face_lock
 * @bindings: under nn->control
 * @pending: in-records in the PIT, of all its faces
 * @octets: memory that they keep
 */
struct nnet_user {
	struct hlist_node node;
	struct nnet_net *nn;
	refcount_t ref;
	kuid_t uid;
	u32 faces;
	u32 bindings;
	atomic_t pending;
	atomic_long_t octets;
};

/**
 * struct nnet_owner - a user of the host who has network namespaces
 * @uid: who made the outermost user namespace; root is none of them
 * @namespaces: that have tables, under the lock of the list
 * @octets: of memory that their pending Interests and cached Data keep
 * @flows: their packets that wait for threads; NULL until they ask for them
 */
struct nnet_owner {
	struct list_head node;
	kuid_t uid;
	u32 namespaces;
	atomic_long_t octets;
	struct nnet_flow *flows;
};

int nnet_host_init(void);
void nnet_host_exit(void);
int nnet_owner_find(struct nnet_net *nn);
void nnet_owner_put(struct nnet_net *nn);
bool nnet_owner_over(const struct nnet_net *nn, long octets);
void nnet_owner_charge(const struct nnet_net *nn, long octets);
void nnet_users_init(struct nnet_net *nn);
bool nnet_admin(const struct nnet_net *nn);
struct nnet_user *nnet_user_current(struct nnet_net *nn);
void nnet_user_get(struct nnet_user *user);
void nnet_user_put(struct nnet_user *user);

#endif /* _NNET_USER_H */
