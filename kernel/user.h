/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* user.c: what one user may take of the tables of a namespace. */
#ifndef _NNET_USER_H
#define _NNET_USER_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>

struct nnet_net;

/**
 * struct nnet_user - a user without CAP_NET_ADMIN in a namespace
 * @ref: 1 for each socket, face and binding of the user
 * @uid: as the owner of the network namespace knows it: what runs in a user
 *	namespace below counts for the owner of that, for uids are many and cheap there
 * @faces: under nn->face_lock
 * @bindings: under nn->control
 */
struct nnet_user {
	struct hlist_node node;
	struct nnet_net *nn;
	refcount_t ref;
	kuid_t uid;
	u32 faces;
	u32 bindings;
};

void nnet_users_init(struct nnet_net *nn);
bool nnet_admin(const struct nnet_net *nn);
struct nnet_user *nnet_user_current(struct nnet_net *nn);
void nnet_user_get(struct nnet_user *user);
void nnet_user_put(struct nnet_user *user);

#endif /* _NNET_USER_H */
