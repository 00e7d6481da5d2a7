/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Named data over the sockets of the kernel stack (nnet.ko).
 *
 * Names are octets: the value of a Name TLV. Calls return a descriptor, a
 * count or 0, and a negative errno when they fail.
 */
#ifndef ONYM_NNET_H
#define ONYM_NNET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/socket.h>
#include <linux/nnet.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ONYM_NAME_MAX 8192
#define ONYM_PACKET_MAX 8800

struct onym_name {
	size_t len;
	uint8_t v[1024];
};

/* The name of a URI such as /a/b%20c/seg=3. -EINVAL, -ENAMETOOLONG. */
int onym_name(const char *uri, struct onym_name *name);
int onym_name_append(struct onym_name *name, uint32_t type, const void *value, size_t len);
int onym_name_segment(struct onym_name *name, uint64_t segment);
int onym_name_version(struct onym_name *name, uint64_t version);
/* The URI of a name; returns its length. */
int onym_name_show(const uint8_t *v, size_t len, char *buf, size_t size);

/* Number of the address family, as the module was loaded. -EAFNOSUPPORT. */
int onym_family(void);
int onym_socket(int type, int protocol);
int onym_bind(int fd, const struct onym_name *name, int flags);
int onym_connect(int fd, const struct onym_name *name, int flags);

/* What recvmsg() said about a packet. */
struct onym_packet {
	uint32_t type;		/* NNET_INTEREST, NNET_DATA, NNET_NACK */
	uint32_t lifetime, freshness, flags, nonce, reason, face, mark, content_type;
	uint32_t satisfied;	/* an Interest that was answered by what is published */
	uint64_t segment;
	int last;		/* MSG_EOR */
	struct onym_name name;
	uint8_t final[64];
	size_t final_len;
	uint8_t *content;	/* given by the caller */
	size_t size;		/* room in content */
	size_t len;		/* octets of it, and more when it was cut */
};

struct onym_data {
	const struct onym_name *name;
	const void *content;
	size_t len;
	uint32_t freshness, content_type;
	const uint8_t *final;	/* one component, or NULL */
	size_t final_len;
};

ssize_t onym_recv(int fd, struct onym_packet *p, int flags);
int onym_send_interest(int fd, const struct onym_name *name, uint32_t flags, uint32_t lifetime);
int onym_send_nack(int fd, const struct onym_packet *interest, uint32_t reason);
/* DGRAM: answers with a Data without signature. */
int onym_send_data(int fd, const struct onym_data *d);

/* Signing and verification: octets of a whole Data, in user space. */
typedef int (*onym_signer)(void *ctx, const uint8_t *octets, size_t len, uint8_t *value, size_t size);
struct onym_key {
	uint32_t type;		/* SignatureType: 0 digest, 4 HMAC, or a signer's */
	const struct onym_name *locator;
	const uint8_t *secret;	/* HMAC */
	size_t secret_len;
	onym_signer sign;	/* other types */
	void *ctx;
};
/* Writes a signed Data; its length. key NULL: DigestSha256. */
ssize_t onym_data_make(const struct onym_data *d, const struct onym_key *key, uint8_t *buf, size_t size);
/* 0 when digest or HMAC fit; -EBADMSG; -ENOTSUP for types that need a public key. */
int onym_data_verify(const uint8_t *data, size_t len, const struct onym_key *key);
void onym_sha256(const void *octets, size_t len, uint8_t out[32]);

/* The information-centric calls, on a RAW socket that is bound where it publishes. */
int onym_publish(int fd, const struct onym_data *d, const struct onym_key *key);
int onym_cast(int fd, const struct onym_data *d, const struct onym_key *key, uint32_t lifetime_ms);
int onym_unpublish(int fd, const struct onym_name *prefix);
/* Publishes content as segments below a name, and its metadata at <name>/_TOUCH. */
int onym_pump(int fd, const struct onym_name *name, const void *content, size_t len,
	      size_t segment, const struct onym_key *key);
int onym_unpump(int fd, const struct onym_name *name);

struct onym_meta {
	uint32_t name_len;	/* octets of the base name */
	uint8_t pin[4];		/* first octets of the digest of the content */
	uint64_t first, last;	/* segments */
	uint32_t mtu;		/* octets of content of a segment, but for the last */
	uint32_t packet_len;	/* octets of the largest packet */
	uint64_t size;		/* octets of the object */
};
int onym_touch(const struct onym_name *name, struct onym_meta *meta, int timeout_ms);
/* Fetches all segments in order; sink returns 0 to go on. Octets fetched. */
typedef int (*onym_sink)(void *ctx, uint64_t segment, const uint8_t *content, size_t len);
int64_t onym_request(const struct onym_name *name, onym_sink sink, void *ctx, int timeout_ms);
/* A descriptor that becomes readable for each Interest below a name. */
int onym_watch(const struct onym_name *name);
int onym_unwatch(int fd);
/* The next Interest of a watched or publishing socket; p->satisfied tells whether it was answered. */
int onym_status(int fd, struct onym_packet *p, int timeout_ms);

/* Control, for those with CAP_NET_ADMIN: the netlink family. */
int onym_ctl_open(void);
void onym_ctl_close(int ctl);
int onym_ctl_ether(int ctl, const char *device, const uint8_t mac[6], uint16_t mtu, uint32_t *face);
int onym_ctl_udp(int ctl, const uint8_t address[16], uint16_t port, uint16_t mtu, uint32_t *face);
int onym_ctl_face_del(int ctl, uint32_t face);
int onym_ctl_route(int ctl, const struct onym_name *prefix, uint32_t face, uint32_t cost);
int onym_ctl_unroute(int ctl, const struct onym_name *prefix, uint32_t face);
int onym_ctl_strategy(int ctl, const struct onym_name *prefix, uint8_t strategy);
/* Any request: attributes follow as triples (type, pointer, length), ended by 0. */
int onym_ctl_call(int ctl, uint8_t command, uint32_t *reply, uint16_t reply_attr, ...);
uint16_t onym_ctl_family(int ctl);

#ifdef __cplusplus
}
#endif
#endif
