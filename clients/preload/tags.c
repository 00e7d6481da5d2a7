// SPDX-License-Identifier: Apache-2.0 OR MIT
// What a descriptor is, and what became of it: names of Unix sockets, which copies of a descriptor share, and a
// table that processes forked later share.

#include "stream.h"

#include <sys/mman.h>

static const char MARK[8] = "onym-tcp";

struct told {
	uint32_t generation;
	int32_t error;
};

// Of this process' pump, and of the one of the process that it was forked from.
static struct fates {
	struct told *told;
	uint8_t life[8];
} own, inherited;

// Draws a name with this tag.
socklen_t tag_name(struct tag *t, struct sockaddr_un *name)
{
	(void)!getrandom(t->draw, sizeof(t->draw), GRND_NONBLOCK);
	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	memcpy(name->sun_path + 1, t, sizeof(*t));
	memcpy(name->sun_path + 1, MARK, sizeof(MARK));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(*t));
}

static bool read_tag(const struct sockaddr_un *name, socklen_t len, struct tag *t)
{
	if (len != offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(*t) || name->sun_family != AF_UNIX ||
	    name->sun_path[0] || memcmp(name->sun_path + 1, MARK, sizeof(MARK)))
		return false;
	memcpy(t, name->sun_path + 1, sizeof(*t));
	return true;
}

// Whose other end names itself so: it is believed to this user and to root.
static bool is_ours(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	REAL(getsockopt);

	return !real_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && (who.uid == geteuid() || who.uid == 0);
}

// What the stream socket is; false where it is none of ours. errno stays.
bool tag_of(int fd, struct tag *t)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);
	int before = errno;
	bool is_one, is_connected;
	REAL(getsockname);
	REAL(getpeername);

	// One that was accepted has the name of the socket that listens, too.
	is_connected = !real_getpeername(fd, (struct sockaddr *)&name, &len);
	is_one = is_connected && read_tag(&name, len, t) && t->role == 'A' && is_ours(fd);
	len = sizeof(name);
	if (!is_one)
		is_one = !real_getsockname(fd, (struct sockaddr *)&name, &len) && read_tag(&name, len, t) &&
			 t->role == (is_connected ? 'C' : 'L');
	errno = before;
	return is_one;
}

// A new pump: what its streams come to is shared with processes that are forked from now on.
bool fates_begin(const uint8_t life[8])
{
	void *table = mmap(NULL, STREAMS_MAX * sizeof(struct told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (table == MAP_FAILED)
		return false;
	own.told = table;
	memcpy(own.life, life, sizeof(own.life));
	return true;
}

void fates_forked(void)
{
	if (own.told) {
		inherited = own;
		memset(&own, 0, sizeof(own));
	}
}

void pump_tell(const struct stream *s, int error)
{
	struct told *t = &own.told[s->slot];

	__atomic_store_n(&t->error, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&t->generation, s->generation, __ATOMIC_RELEASE);
	__atomic_store_n(&t->error, error, __ATOMIC_RELEASE);
}

// The error that a stream came to, once.
int pump_told(const struct tag *t)
{
	const struct fates *f = own.told && !memcmp(own.life, t->life, sizeof(own.life)) ? &own : &inherited;
	struct told *told;

	if (!f->told || memcmp(f->life, t->life, sizeof(f->life)))
		return 0;
	told = &f->told[t->slot];
	if (__atomic_load_n(&told->generation, __ATOMIC_ACQUIRE) != t->generation)
		return 0;
	return __atomic_exchange_n(&told->error, 0, __ATOMIC_ACQ_REL);
}
