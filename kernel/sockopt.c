// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The options of sockets.
 */
#include <linux/net.h>

#include "nnet.h"

/* Copies a name that an option gives. */
static u8 *nnet_option_name(sockptr_t optval, unsigned int len)
{
	u8 *name;
	u16 n;

	if (!len || len > NNET_NAME_MAX)
		return ERR_PTR(-EINVAL);
	name = kmalloc(len, GFP_KERNEL_ACCOUNT);
	if (!name)
		return ERR_PTR(-ENOMEM);
	if (copy_from_sockptr(name, optval, len)) {
		kfree(name);
		return ERR_PTR(-EFAULT);
	}
	if (nnet_name_check(name, len, &n) || !n) {
		kfree(name);
		return ERR_PTR(-EINVAL);
	}
	return name;
}

static int nnet_set_name(struct nnet_sock *ns, int option, u8 *name, u16 len)
{
	int err = 0;

	switch (option) {
	case NNET_NAME:
		lock_sock(&ns->sk);
		kfree(ns->option_name);
		ns->option_name = name;
		ns->option_name_len = len;
		release_sock(&ns->sk);
		return 0;
	case NNET_UNPUBLISH:
		err = nnet_publish_remove(ns, name, len) ? 0 : -ENOENT;
		break;
	default:
		mutex_lock(&ns->nn->control);
		err = nnet_bpt_del(ns->nn, name, len, &ns->bindings);
		mutex_unlock(&ns->nn->control);
	}
	kfree(name);
	return err;
}

static int nnet_set_u32(struct nnet_sock *ns, int option, u32 v)
{
	int err = 0;

	lock_sock(&ns->sk);
	switch (option) {
	case NNET_STRICT_BIND:
		WRITE_ONCE(ns->strict, v);
		break;
	case NNET_MULTIBIND:
		WRITE_ONCE(ns->multibind, v);
		break;
	case NNET_LP:
		if (ns->sk.sk_type != SOCK_RAW || ns->face)
			err = -EINVAL;
		else
			WRITE_ONCE(ns->lp, v);
		break;
	case NNET_LOCAL_FIELDS:
		if (v && !ns_capable(ns->nn->net->user_ns, CAP_NET_ADMIN))
			err = -EPERM;
		else if (ns->sk.sk_type != SOCK_RAW || ns->face)
			err = -EINVAL;
		else
			WRITE_ONCE(ns->local_fields, v);
		break;
	case NNET_LIFETIME:
		if (!v)
			err = -EINVAL;
		else
			WRITE_ONCE(ns->lifetime,
				   min_t(u32, v, NNET_LIFETIME_MAX));
		break;
	case NNET_WHOLE:
		WRITE_ONCE(ns->whole, v);
		break;
	case NNET_STATUS:
		WRITE_ONCE(ns->status, v);
		break;
	case NNET_WINDOW:
		err = nnet_sequence_window(ns, v);
		break;
	default:
		err = -ENOPROTOOPT;
	}
	release_sock(&ns->sk);
	return err;
}

int nnet_setsockopt(struct socket *sock, int level, int option,
			   sockptr_t optval, unsigned int len)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	u8 *name;
	u32 v;

	if (level != SOL_NNET)
		return -ENOPROTOOPT;
	if (option == NNET_NAME || option == NNET_UNPUBLISH ||
	    option == NNET_UNBIND) {
		name = nnet_option_name(optval, len);
		return IS_ERR(name) ? PTR_ERR(name) :
				      nnet_set_name(ns, option, name, len);
	}
	if (len != sizeof(v))
		return -EINVAL;
	if (copy_from_sockptr(&v, optval, sizeof(v)))
		return -EFAULT;
	return nnet_set_u32(ns, option, v);
}

static void nnet_sock_stats_get(struct nnet_sock *ns, struct nnet_sock_stats *s)
{
	memset(s, 0, sizeof(*s));
	s->in_interests = atomic64_read(&ns->in_interests);
	s->in_data = atomic64_read(&ns->in_data);
	s->in_nacks = atomic64_read(&ns->in_nacks);
	s->out_interests = atomic64_read(&ns->out_interests);
	s->out_data = atomic64_read(&ns->out_data);
	s->dropped = atomic64_read(&ns->dropped);
	spin_lock_bh(&ns->pub.lock);
	s->published = ns->pub.count;
	s->served = ns->pub.served;
	spin_unlock_bh(&ns->pub.lock);
	nnet_sequence_stats(ns, s);
}

int nnet_getsockopt(struct socket *sock, int level, int option,
			   char __user *optval, int __user *optlen)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	union {
		u32 v;
		u64 wide;
		struct nnet_sock_stats stats;
	} out;
	int len, size = sizeof(out.v);

	if (level != SOL_NNET)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	memset(&out, 0, sizeof(out));
	switch (option) {
	case NNET_FACE:
		out.v = READ_ONCE(ns->face_id);
		break;
	case NNET_STRICT_BIND:
		out.v = READ_ONCE(ns->strict);
		break;
	case NNET_MULTIBIND:
		out.v = READ_ONCE(ns->multibind);
		break;
	case NNET_BIND_FLAGS:
		out.v = READ_ONCE(ns->bind_flags);
		break;
	case NNET_LP:
		out.v = READ_ONCE(ns->lp);
		break;
	case NNET_LOCAL_FIELDS:
		out.v = READ_ONCE(ns->local_fields);
		break;
	case NNET_LIFETIME:
		out.v = READ_ONCE(ns->lifetime);
		break;
	case NNET_WHOLE:
		out.v = READ_ONCE(ns->whole);
		break;
	case NNET_WINDOW:
		nnet_sock_stats_get(ns, &out.stats);
		out.v = out.stats.window;
		break;
	case NNET_FINAL:
		out.wide = nnet_sequence_final(ns);
		size = sizeof(out.wide);
		break;
	case NNET_STATS:
		nnet_sock_stats_get(ns, &out.stats);
		size = sizeof(out.stats);
		break;
	default:
		return -ENOPROTOOPT;
	}
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(optval, &out, len))
		return -EFAULT;
	return 0;
}
