// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Faces and their life: register, release, hold, put, free, orphan, blackhole.
 *
 * A FaceID is a slot and the slot's generation, which grows each time the slot
 * is given back, so that a late Data for an old record finds nobody. Slots are
 * taken in turn. Slots change under nn->face_lock and are read under RCU.
 */
#include "nnet.h"

static void nnet_face_free_rcu(struct rcu_head *rcu)
{
	struct nnet_face *face = container_of(rcu, struct nnet_face, rcu);

	nnet_user_put(face->user);
	free_percpu(face->stats);
	kfree(face);
}

static void nnet_face_free(struct nnet_face *face)
{
	call_rcu(&face->rcu, nnet_face_free_rcu);
}

void nnet_face_put(struct nnet_face *face)
{
	if (refcount_dec_and_test(&face->users))
		nnet_face_free(face);
}

static void nnet_partial_timeout(struct timer_list *t)
{
	struct nnet_face *face = from_timer(face, t, partial_timer);

	nnet_link_flush(face);
}

/**
 * nnet_face_new() - a face that is not registered yet
 * @nn: whose
 * @kind: what it stands for
 * @gfp: how to allocate
 *
 * Return: the face, to be registered or freed by kfree_rcu; NULL without memory.
 */
struct nnet_face *nnet_face_new(struct nnet_net *nn, enum nnet_kind kind,
				gfp_t gfp)
{
	struct nnet_face *face = kzalloc(sizeof(*face), gfp);

	if (!face)
		return NULL;
	face->stats = alloc_percpu_gfp(struct nnet_face_stats, gfp);
	if (!face->stats) {
		kfree(face);
		return NULL;
	}
	refcount_set(&face->users, 1);
	face->nn = nn;
	face->kind = kind;
	face->created = jiffies;
	spin_lock_init(&face->rx_lock);
	INIT_LIST_HEAD(&face->partial);
	INIT_HLIST_NODE(&face->lower);
	timer_setup(&face->partial_timer, nnet_partial_timeout, 0);
	return face;
}

/*
 * Whether a face may still be had: one user does not take them all, nor do peers
 * that nobody named, and some are kept for those who administrate the namespace.
 * Context: nn->face_lock held.
 */
static bool nnet_face_allowed(struct nnet_net *nn, const struct nnet_face *face)
{
	const u32 most = NNET_FACES_MAX - NNET_FACE_FIRST - NNET_FACES_KEPT;

	if (face->automatic)
		return nn->auto_made < NNET_FACES_AUTO_MAX && nn->faces < most;
	if (face->user)
		return face->user->faces < NNET_FACES_USER_MAX &&
		       nn->faces < most;
	return true;
}

static void nnet_face_tally(struct nnet_net *nn, const struct nnet_face *face,
			    int n)
{
	nn->faces += n;
	if (face->automatic)
		nn->auto_made += n;
	if (face->user)
		face->user->faces += n;
}

static int nnet_slot_take(struct nnet_net *nn, const struct nnet_face *face,
			  u32 *slot)
{
	u32 i, at;

	if (!nnet_face_allowed(nn, face))
		return -ENOBUFS;

	for (i = 0; i < NNET_FACES_MAX - NNET_FACE_FIRST; i++) {
		at = nn->cursor++;
		if (nn->cursor == NNET_FACES_MAX)
			nn->cursor = NNET_FACE_FIRST;
		if (!rcu_access_pointer(nn->slots[at].face) &&
		    !nn->slots[at].draining) {
			*slot = at;
			return 0;
		}
	}
	return -ENOBUFS;
}

/**
 * nnet_face_register() - give a face its port and its FaceID
 * @face: fresh from nnet_face_new()
 * @port: its handler
 * @id: NNET_FACE_LOCAL, or 0 for the next free one
 *
 * Return: 0, or -ENOBUFS when all slots are taken or the share of who asks; then the face is freed and
 * the port is still the caller's.
 */
int nnet_face_register(struct nnet_face *face, struct nnet_port *port, u32 id)
{
	struct nnet_net *nn = face->nn;
	u32 slot = id;
	int err = 0;

	spin_lock_bh(&nn->face_lock);
	if (!id)
		err = nnet_slot_take(nn, face, &slot);
	if (!err) {
		WRITE_ONCE(face->id, slot | (u32)nn->slots[slot].generation
					<< NNET_FACE_SLOT_BITS);
		nn->slots[slot].user = face->user;
		rcu_assign_pointer(face->port, port);
		rcu_assign_pointer(nn->slots[slot].face, face);
		nnet_face_tally(nn, face, 1);
	}
	spin_unlock_bh(&nn->face_lock);
	if (err)
		nnet_face_free(face);
	return err;
}

static void nnet_port_free_rcu(struct rcu_head *rcu)
{
	struct nnet_port *port = container_of(rcu, struct nnet_port, rcu);

	port->free(port);
}

/* Leave nothing but the shell: the number and the handler go. */
static void nnet_face_orphan(struct nnet_face *face)
{
	struct nnet_port *port = rcu_dereference_protected(face->port, 1);

	RCU_INIT_POINTER(face->port, NULL);
	if (port)
		call_rcu(&port->rcu, nnet_port_free_rcu);
}

/* Takes the number of a face back: nothing is pending for it from now on. */
static u32 nnet_face_withdraw(struct nnet_net *nn, struct nnet_face *face)
{
	struct nnet_slot *slot = nnet_slot(nn, face->id);
	u32 id = face->id;

	spin_lock_bh(&nn->face_lock);
	RCU_INIT_POINTER(slot->face, NULL);
	slot->draining = true;
	spin_lock(&slot->lock);
	slot->generation++;
	spin_unlock(&slot->lock);
	nnet_face_tally(nn, face, -1);
	if (!hlist_unhashed(&face->lower))
		hlist_del_rcu(&face->lower);
	spin_unlock_bh(&nn->face_lock);
	return id;
}

/**
 * nnet_face_detach() - the interface of a face goes away
 * @face: a registered face
 *
 * Never waits for the data path. The number is withdrawn first, then the
 * handler; holders keep the shell, whose packets go into the blackhole. Fragments
 * that still come are dropped and arm no timer.
 *
 * Context: nn->control held; called once for each face.
 * Return: its number, for nnet_face_drain(); until then nobody gets its slot.
 */
u32 nnet_face_detach(struct nnet_face *face)
{
	u32 id = nnet_face_withdraw(face->nn, face);

	spin_lock_bh(&face->rx_lock);
	WRITE_ONCE(face->id, 0);
	spin_unlock_bh(&face->rx_lock);
	nnet_face_orphan(face);
	del_timer_sync(&face->partial_timer);
	nnet_window();
	nnet_link_flush(face);
	return id;
}

/**
 * nnet_face_drain() - end what a face asked for, and give it up
 * @face: a face that is detached
 * @id: the number that it had
 *
 * There may be much of it: who can do it without nn->control does.
 */
void nnet_face_drain(struct nnet_face *face, u32 id)
{
	struct nnet_net *nn = face->nn;
	struct nnet_slot *slot = nnet_slot(nn, id);

	nnet_face_forget_asked(nn, id);
	spin_lock_bh(&nn->face_lock);
	WRITE_ONCE(slot->user, NULL);
	slot->draining = false;
	spin_unlock_bh(&nn->face_lock);
	nnet_face_put(face);
}

/* Both. Context: nn->control held. */
void nnet_face_release(struct nnet_face *face)
{
	nnet_face_drain(face, nnet_face_detach(face));
}

/* The face of a number, without holding it. Context: RCU read side. */
struct nnet_face *nnet_face_peek(struct nnet_net *nn, u32 id)
{
	struct nnet_slot *slot = nnet_slot(nn, id);
	struct nnet_face *face;

	if (!slot)
		return NULL;
	face = rcu_dereference(slot->face);
	return face && READ_ONCE(face->id) == id ? face : NULL;
}

/**
 * nnet_face_hold() - the face of a number, held
 * @nn: whose
 * @id: its number
 *
 * Context: RCU read side.
 * Return: the face, for nnet_face_put(); NULL when it is gone.
 */
struct nnet_face *nnet_face_hold(struct nnet_net *nn, u32 id)
{
	struct nnet_face *face = nnet_face_peek(nn, id);

	return face && refcount_inc_not_zero(&face->users) ? face : NULL;
}

void nnet_face_received(struct nnet_face *face, const struct sk_buff *skb)
{
	struct nnet_face_stats *s = this_cpu_ptr(face->stats);

	s->in_bytes += skb->len;
	if (NNET_CB(skb)->flags & NNET_CB_NACK)
		s->in_nacks++;
	else if (skb->data[0] == NNET_T_INTEREST)
		s->in_interests++;
	else
		s->in_data++;
}

/**
 * nnet_face_out() - send a packet by a held face
 * @face: the face
 * @skb: the packet, link fields in its control block; taken
 *
 * Context: bottom halves off, RCU read side.
 */
void nnet_face_out(struct nnet_face *face, struct sk_buff *skb)
{
	struct nnet_port *port = rcu_dereference(face->port);
	struct nnet_face_stats *s = this_cpu_ptr(face->stats);
	struct nnet_net *nn = face->nn;

	if (!port) {
		nnet_count(nn, NNET_C_S_BLACKHOLE);
		kfree_skb(skb);
		return;
	}
	s->out_bytes += skb->len;
	if (NNET_CB(skb)->flags & NNET_CB_NACK) {
		s->out_nacks++;
		nnet_count(nn, NNET_C_S_NACKS);
	} else if (skb->data[0] == NNET_T_INTEREST) {
		s->out_interests++;
		nnet_count(nn, NNET_C_S_INTERESTS);
	} else {
		s->out_data++;
		nnet_count(nn, NNET_C_S_DATA);
	}
	port->send(face, port, skb);
}

void nnet_face_sum(const struct nnet_face *face, struct nnet_face_stats *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct nnet_face_stats *s = per_cpu_ptr(face->stats, cpu);

		sum->in_interests += READ_ONCE(s->in_interests);
		sum->in_data += READ_ONCE(s->in_data);
		sum->in_nacks += READ_ONCE(s->in_nacks);
		sum->in_bytes += READ_ONCE(s->in_bytes);
		sum->out_interests += READ_ONCE(s->out_interests);
		sum->out_data += READ_ONCE(s->out_data);
		sum->out_nacks += READ_ONCE(s->out_nacks);
		sum->out_bytes += READ_ONCE(s->out_bytes);
		sum->dropped += READ_ONCE(s->dropped);
	}
}

/* Releases every face of a namespace that ends. */
void nnet_faces_exit(struct nnet_net *nn)
{
	struct nnet_face *face;
	u32 i;

	mutex_lock(&nn->control);
	for (i = 0; i < NNET_FACES_MAX; i++) {
		face = rcu_dereference_protected(nn->slots[i].face,
						 lockdep_is_held(&nn->control));
		if (face)
			nnet_face_release(face);
	}
	mutex_unlock(&nn->control);
}
