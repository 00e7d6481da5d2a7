// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Users: whose share of a table a socket takes.
 *
 * The list of a namespace is under nn->user_lock, a leaf. A user is there while
 * it has a socket or a face.
 */
#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "nnet.h"

void nnet_users_init(struct nnet_net *nn)
{
	spin_lock_init(&nn->user_lock);
}

/* Whether the caller administrates a namespace. */
bool nnet_admin(const struct nnet_net *nn)
{
	return ns_capable_noaudit(nn->net->user_ns, CAP_NET_ADMIN);
}

static kuid_t nnet_uid_current(const struct nnet_net *nn)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_euid();

	for (; ns != nn->net->user_ns && ns->parent; ns = ns->parent)
		uid = ns->owner;
	return uid;
}

/**
 * nnet_user_current() - the user who calls
 * @nn: whose
 *
 * Return: the user, for nnet_user_put(), or NULL without memory.
 */
struct nnet_user *nnet_user_current(struct nnet_net *nn)
{
	kuid_t uid = nnet_uid_current(nn);
	struct hlist_head *head = &nn->users[__kuid_val(uid) %
					     ARRAY_SIZE(nn->users)];
	struct nnet_user *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	struct nnet_user *user;

	if (!new)
		return NULL;
	new->nn = nn;
	new->uid = uid;
	refcount_set(&new->ref, 1);
	spin_lock_bh(&nn->user_lock);
	hlist_for_each_entry(user, head, node) {
		if (uid_eq(user->uid, uid)) {
			refcount_inc(&user->ref);
			spin_unlock_bh(&nn->user_lock);
			kfree(new);
			return user;
		}
	}
	hlist_add_head(&new->node, head);
	spin_unlock_bh(&nn->user_lock);
	return new;
}

void nnet_user_get(struct nnet_user *user)
{
	refcount_inc(&user->ref);
}

void nnet_user_put(struct nnet_user *user)
{
	spinlock_t *lock;

	if (!user)
		return;
	lock = &user->nn->user_lock;
	spin_lock_bh(lock);
	if (refcount_dec_and_test(&user->ref))
		hlist_del(&user->node);
	else
		user = NULL;
	spin_unlock_bh(lock);
	kfree(user);
}
