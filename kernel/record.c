// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Records of a pending Interest: who asked and who was asked; what a face and a
 * user may have pending; and the nonces of Interests that ended.
 *
 * Records are under the lock of their entry. In-records also hang on the slot of
 * their face, under the lock of the slot, which is the innermost: so a face that
 * goes finds what it asked for.
 */
#include "nnet.h"

/* Memory of an entry for an Interest, which counts for each face that asks. */
u32 nnet_pending_octets(const struct sk_buff *skb)
{
	return skb->truesize + sizeof(struct nnet_pending);
}

/**
 * nnet_over_share() - whether a face or its user has enough pending
 * @nn: whose
 * @id: the face
 * @octets: memory of what it asks for now
 *
 * Each may have pending three times what the table has room for: three quarters
 * of it when it is alone, and always a share of what others left.
 */
bool nnet_over_share(struct nnet_net *nn, u32 id, u32 octets)
{
	const struct nnet_pit *pit = &nn->pit;
	long room = (long)READ_ONCE(pit->max) - atomic_read(&pit->count);
	long left = READ_ONCE(pit->octets_max) - atomic_long_read(&pit->octets);
	struct nnet_slot *slot = nnet_slot(nn, id);
	const struct nnet_user *user;

	if (!slot)
		return false;
	room *= 3;
	left *= 3;
	if ((long)READ_ONCE(slot->pending) >= room ||
	    (long)READ_ONCE(slot->octets) + octets > left)
		return true;
	user = READ_ONCE(slot->user);
	return user && (atomic_read(&user->pending) >= room ||
			atomic_long_read(&user->octets) + octets > left);
}

struct nnet_record *nnet_record_find(struct list_head *list, u32 face)
{
	struct nnet_record *r;

	list_for_each_entry(r, list, node)
		if (r->face == face)
			return r;
	return NULL;
}

static void nnet_slot_tally(struct nnet_slot *slot, const struct nnet_record *r,
			    int n)
{
	long octets = n * (long)r->entry->octets;

	WRITE_ONCE(slot->pending, slot->pending + n);
	WRITE_ONCE(slot->octets, slot->octets + octets);
	if (slot->user) {
		atomic_add(n, &slot->user->pending);
		atomic_long_add(octets, &slot->user->octets);
	}
}

/* Hangs an in-record on its face, unless that has gone. */
static bool nnet_slot_add(struct nnet_slot *slot, struct nnet_record *r)
{
	bool there;

	spin_lock_bh(&slot->lock);
	there = slot->generation == (u16)(r->face >> NNET_FACE_SLOT_BITS) &&
		rcu_access_pointer(slot->face);
	if (there) {
		list_add_tail(&r->of_face, &slot->asked);
		nnet_slot_tally(slot, r, 1);
	}
	spin_unlock_bh(&slot->lock);
	return there;
}

/*
 * The in-record of a face, made when there is none; NULL at a bound, and when
 * the face has gone. Context: e->lock held.
 */
struct nnet_record *nnet_in_get(struct nnet_pending *e, u32 face)
{
	struct nnet_record *r = nnet_record_find(&e->in, face);
	struct nnet_slot *slot = nnet_slot(e->nn, face);

	if (r) {
		r->repeats = 1;
		return r;
	}
	if (!slot || e->ins >= NNET_IN_MAX - 1 ||
	    (e->ins && nnet_over_share(e->nn, face, e->octets)))
		return NULL;
	r = e->in0.face ? kzalloc(sizeof(*r), GFP_ATOMIC) : &e->in0;
	if (!r)
		return NULL;
	r->face = face;
	r->entry = e;
	if (!nnet_slot_add(slot, r)) {
		if (r == &e->in0)
			memset(r, 0, sizeof(*r));
		else
			kfree(r);
		return NULL;
	}
	list_add_tail(&r->node, &e->in);
	e->ins++;
	return r;
}

/* Context: e->lock held, or the last reference. */
void nnet_in_free(struct nnet_pending *e, struct nnet_record *r)
{
	struct nnet_slot *slot = nnet_slot(e->nn, r->face);

	spin_lock_bh(&slot->lock);
	if (!list_empty(&r->of_face)) {
		list_del_init(&r->of_face);
		nnet_slot_tally(slot, r, -1);
	}
	spin_unlock_bh(&slot->lock);
	list_del(&r->node);
	e->ins--;
	if (r == &e->in0)
		memset(r, 0, sizeof(*r));
	else
		kfree(r);
}

/* Ends what a face waits for in an entry, and the entry when nobody else waits. */
static void nnet_pending_forget(struct nnet_pending *e, u32 face)
{
	struct nnet_record *r;
	bool ended = false;

	spin_lock_bh(&e->lock);
	r = e->dead ? NULL : nnet_record_find(&e->in, face);
	if (r) {
		nnet_in_free(e, r);
		ended = list_empty(&e->in);
		e->dead = ended;
	}
	spin_unlock_bh(&e->lock);
	if (ended) {
		nnet_pending_expired(e);
		nnet_pit_kill(e);
	}
}

/**
 * nnet_face_forget_asked() - end what a face asked for
 * @nn: whose
 * @face: the number of a face that is detached, so that it gets no more
 *
 * Context: a process.
 */
void nnet_face_forget_asked(struct nnet_net *nn, u32 face)
{
	struct nnet_slot *slot = nnet_slot(nn, face);
	struct nnet_record *r;
	struct nnet_pending *e;

	for (;;) {
		spin_lock_bh(&slot->lock);
		r = list_first_entry_or_null(&slot->asked, struct nnet_record,
					     of_face);
		if (!r) {
			spin_unlock_bh(&slot->lock);
			return;
		}
		list_del_init(&r->of_face);
		nnet_slot_tally(slot, r, -1);
		e = refcount_inc_not_zero(&r->entry->ref) ? r->entry : NULL;
		spin_unlock_bh(&slot->lock);
		if (e) {
			nnet_pending_forget(e, face);
			nnet_pit_put(e);
		}
		cond_resched();
	}
}

struct nnet_record *nnet_out_get(struct nnet_pending *e, u32 face)
{
	struct nnet_record *r = nnet_record_find(&e->out, face);

	if (r)
		return r;
	if (e->outs >= NNET_OUT_MAX)
		return NULL;
	r = e->out0.face ? kzalloc(sizeof(*r), GFP_ATOMIC) : &e->out0;
	if (!r)
		return NULL;
	r->face = face;
	r->interval = NNET_RETX_MIN_MS;
	list_add_tail(&r->node, &e->out);
	e->outs++;
	return r;
}

/* Context: e->lock held, or the last reference. */
void nnet_out_free(struct nnet_pending *e, struct nnet_record *r)
{
	list_del(&r->node);
	e->outs--;
	if (r == &e->out0)
		memset(r, 0, sizeof(*r));
	else
		kfree(r);
}

static struct nnet_dead *nnet_dead_slot(struct nnet_net *nn, u64 name,
					u32 nonce, u64 *hash)
{
	*hash = siphash_2u64(name, nonce, &nnet_secret);
	return &nn->dead[*hash & (NNET_DEAD_SLOTS - 1)];
}

/*
 * Whether an Interest of that name and nonce ended lately. The list is a
 * table without chains: a newer nonce may push an older one out, and without
 * lock: a torn entry is one that does not match.
 */
bool nnet_dead_has(struct nnet_net *nn, u64 name, u32 nonce)
{
	struct nnet_dead *d;
	u64 hash;

	d = nnet_dead_slot(nn, name, nonce, &hash);
	return READ_ONCE(d->hash) == hash &&
	       time_before(jiffies, READ_ONCE(d->when) +
			   msecs_to_jiffies(NNET_DEAD_MS));
}

void nnet_dead_add(struct nnet_net *nn, u64 name, u32 nonce)
{
	struct nnet_dead *d;
	u64 hash;

	d = nnet_dead_slot(nn, name, nonce, &hash);
	WRITE_ONCE(d->when, jiffies);
	WRITE_ONCE(d->hash, hash);
}

/* Remembers the nonces that an entry sent. Context: e->lock, or e is dead. */
void nnet_dead_add_outs(struct nnet_pending *e)
{
	struct nnet_record *r;

	list_for_each_entry(r, &e->out, node)
		nnet_dead_add(e->nn, e->full, r->nonce);
}
