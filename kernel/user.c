// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Users: whose share of a table a socket takes.
 *
 * The list of a namespace is under nn->user_lock, a leaf. A user is there while
 * it has a socket or a face.
 *
 * Owners: whose network namespaces share a bound, however many they are. An owner
 * is there while a namespace of theirs has tables.
 *
 * The host: what all namespaces keep together. Half of that bound is for root's
 * alone. A namespace may keep three times the room that is left, and so may an
 * owner of the half for owners, so that the next one always gets a share.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu_counter.h>
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

static unsigned long nnet_owner_bytes = 256 << 20;
module_param_named(owner_bytes, nnet_owner_bytes, ulong, 0644);
MODULE_PARM_DESC(owner_bytes, "octets of pending Interests and cached Data that all network namespaces of one user keep together; those of root have no such bound");

static unsigned long nnet_host_bytes;
module_param_named(host_bytes, nnet_host_bytes, ulong, 0644);
MODULE_PARM_DESC(host_bytes, "octets of pending Interests and cached Data that all network namespaces keep together, half of it those of root alone; 0 when it loads: half of the memory");

/* Octets of a processor that the sums may not know of yet. */
#define NNET_HOST_BATCH	(1 << 16)

static struct percpu_counter nnet_host_all, nnet_host_owners;

int nnet_host_init(void)
{
	int err;

	if (!nnet_host_bytes)
		nnet_host_bytes = totalram_pages() / 2 * PAGE_SIZE;
	err = percpu_counter_init(&nnet_host_all, 0, GFP_KERNEL);
	if (err)
		return err;
	err = percpu_counter_init(&nnet_host_owners, 0, GFP_KERNEL);
	if (err)
		percpu_counter_destroy(&nnet_host_all);
	return err;
}

void nnet_host_exit(void)
{
	percpu_counter_destroy(&nnet_host_owners);
	percpu_counter_destroy(&nnet_host_all);
}

static DEFINE_MUTEX(nnet_owners_lock);
static LIST_HEAD(nnet_owners);

/* Who pays for a network namespace. */
static kuid_t nnet_owner_uid(const struct net *net)
{
	const struct user_namespace *ns = net->user_ns;

	if (!ns->parent)
		return GLOBAL_ROOT_UID;
	while (ns->parent->parent)
		ns = ns->parent;
	return ns->owner;
}

/* Finds the owner of a namespace, or makes it. Return: 0 or -ENOMEM. */
int nnet_owner_find(struct nnet_net *nn)
{
	kuid_t uid = nnet_owner_uid(nn->net);
	struct nnet_owner *owner;

	if (uid_eq(uid, GLOBAL_ROOT_UID))
		return 0;
	mutex_lock(&nnet_owners_lock);
	list_for_each_entry(owner, &nnet_owners, node)
		if (uid_eq(owner->uid, uid))
			goto found;
	owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	if (!owner) {
		mutex_unlock(&nnet_owners_lock);
		return -ENOMEM;
	}
	owner->uid = uid;
	list_add(&owner->node, &nnet_owners);
found:
	owner->namespaces++;
	nn->owner = owner;
	mutex_unlock(&nnet_owners_lock);
	return 0;
}

/* The tables of a namespace are gone. */
void nnet_owner_put(struct nnet_net *nn)
{
	struct nnet_owner *owner = nn->owner;

	if (!owner)
		return;
	nn->owner = NULL;
	mutex_lock(&nnet_owners_lock);
	if (--owner->namespaces)
		owner = NULL;
	else
		list_del(&owner->node);
	mutex_unlock(&nnet_owners_lock);
	if (owner)
		kfree(owner->flows);
	kfree(owner);
}

/* What is left of a bound. */
static long nnet_room(unsigned long most, struct percpu_counter *kept)
{
	return min_t(unsigned long, most, LONG_MAX / 4) -
	       (long)percpu_counter_read(kept);
}

static bool nnet_over_own(const struct nnet_owner *owner, long octets,
			  unsigned long host)
{
	long had = atomic_long_read(&owner->octets) + octets;

	return had > (long)min_t(unsigned long, READ_ONCE(nnet_owner_bytes),
				 LONG_MAX) ||
	       had > 3 * nnet_room(host / 2, &nnet_host_owners);
}

/**
 * nnet_owner_over() - whether so many octets more are too many
 * @nn: for which namespace
 * @octets: how many
 *
 * Too many for its owner, or for the host.
 */
bool nnet_owner_over(const struct nnet_net *nn, long octets)
{
	unsigned long host = READ_ONCE(nnet_host_bytes);
	long had = atomic_long_read(&nn->pit.octets) +
		   (long)READ_ONCE(nn->cs.bytes) + octets;

	return had > 3 * nnet_room(host, &nnet_host_all) ||
	       (nn->owner && nnet_over_own(nn->owner, octets, host));
}

void nnet_owner_charge(const struct nnet_net *nn, long octets)
{
	percpu_counter_add_batch(&nnet_host_all, octets, NNET_HOST_BATCH);
	if (!nn->owner)
		return;
	atomic_long_add(octets, &nn->owner->octets);
	percpu_counter_add_batch(&nnet_host_owners, octets, NNET_HOST_BATCH);
}
