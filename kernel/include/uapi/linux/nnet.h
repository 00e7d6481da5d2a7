/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Written by kernel/tools/nlgen.py from spec/netlink/socket.yaml; not by hand. */
/*
 * AF_NNET: sockets of named data. What a program needs beside <sys/socket.h>.
 */
#ifndef _UAPI_LINUX_NNET_H
#define _UAPI_LINUX_NNET_H

#include <linux/types.h>
#include <linux/socket.h>

/* The number of the family is a module parameter: /sys/module/nnet/parameters/family. */
#define NNET_FAMILY_DEFAULT	19
#define SOL_NNET	319	/* level of options and control messages */
#define NNET_UDP_PORT	6363
#define NNET_ETHERTYPE	0x8624
#define NNET_ADDR_NAME_MAX	116	/* octets of a name in an address */
#define NNET_NAME_MAX	8192	/* octets of a name value in options */

/* protocol argument of socket() with SOCK_RAW */
enum {
	NNET_PROTO_OWN = 0,	/* Interests of its prefixes, answers to its Interests */
	NNET_PROTO_ALL = 1,	/* every packet of the host; CAP_NET_RAW */
	NNET_PROTO_INTEREST = 2,	/* Interests of its prefixes only */
	NNET_PROTO_DATA = 3,	/* answers to its Interests only */
};

/* flags of an address */
enum {
	NNET_ADDR_STRICT = 1,	/* bind: refuse a prefix without route */
	NNET_ADDR_EXTERNAL = 2,	/* the name was given by NNET_NAME */
	NNET_ADDR_TRUNC = 4,	/* the name did not fit (recvfrom) */
	NNET_ADDR_DECIMAL = 8,	/* connect, SEQPACKET: segments are decimal text */
};

/* socket options at level SOL_NNET */
enum {
	NNET_NAME = 1,	/* octets: the name for bind() or connect() with EXTERNAL */
	NNET_FACE = 2,	/* u32: the face, 0 before the first send or bind */
	NNET_STRICT_BIND = 3,	/* int: bind() refuses a prefix without route */
	NNET_MULTIBIND = 4,	/* int: bind() may be called again */
	NNET_BIND_FLAGS = 5,	/* u32: NNET_BIND_NOROUTE: what the last bind() found */
	NNET_LP = 6,	/* int: RAW, before the first packet: frames carry NDNLPv2 headers */
	NNET_STATS = 7,	/* struct nnet_sock_stats: counters and the state of the window */
	NNET_WINDOW = 8,	/* u32: fixed window of SEQPACKET, 0: adaptive */
	NNET_LIFETIME = 9,	/* u32 ms: InterestLifetime where no message says it */
	NNET_WHOLE = 10,	/* int: received packets also as NNET_CM_PACKET */
	NNET_UNPUBLISH = 11,	/* octets: forget what was published under this prefix */
	NNET_UNBIND = 12,	/* octets: give this prefix back */
	NNET_FINAL = 13,	/* u64: number of the last segment, ~0: unknown */
	NNET_STATUS = 14,	/* int: Interests that were answered are told too */
	NNET_LOCAL_FIELDS = 15,	/* int: with NNET_LP, before the first packet: NextHopFaceId and IncomingFaceId; CAP_NET_ADMIN */
};

/* NNET_BIND_FLAGS */
enum {
	NNET_BIND_NOROUTE = 1,	/* no route leads Interests to this prefix */
};

/* control messages at level SOL_NNET */
enum {
	NNET_CM_NAME = 1,	/* octets: value of the Name */
	NNET_CM_TYPE = 2,	/* u32: NNET_INTEREST, NNET_DATA, NNET_NACK */
	NNET_CM_LIFETIME = 3,	/* u32 ms */
	NNET_CM_FRESHNESS = 4,	/* u32 ms */
	NNET_CM_FLAGS = 5,	/* u32: NNET_CAN_BE_PREFIX, NNET_MUST_BE_FRESH */
	NNET_CM_HOPLIMIT = 6,	/* u32 */
	NNET_CM_CONTENT_TYPE = 7,	/* u32 */
	NNET_CM_FINAL_BLOCK = 8,	/* octets: one name component TLV */
	NNET_CM_SIGINFO = 9,	/* octets: SignatureInfo TLV */
	NNET_CM_SIGVALUE = 10,	/* octets: the signature */
	NNET_CM_FACE = 11,	/* u32: received: where it came from */
	NNET_CM_NONCE = 12,	/* u32 */
	NNET_CM_REASON = 13,	/* u32: reason of a Nack */
	NNET_CM_PUBLISH = 14,	/* u32 ms: keep this Data and answer with it; 0: until close */
	NNET_CM_MARK = 15,	/* u32: congestion mark */
	NNET_CM_SEGMENT = 16,	/* u64: received: number of the segment */
	NNET_CM_PACKET = 17,	/* octets: received: the whole packet as it came */
	NNET_CM_SATISFIED = 18,	/* u32 1: received: answered by what is published */
};

/* NNET_CM_TYPE */
enum {
	NNET_INTEREST = 5,
	NNET_DATA = 6,
	NNET_NACK = 800,
};

/* NNET_CM_FLAGS */
enum {
	NNET_CAN_BE_PREFIX = 1,
	NNET_MUST_BE_FRESH = 2,
};

/* 128 octets, as much as bind() takes. The name is the value of a Name TLV. */
struct sockaddr_nnet {
	__kernel_sa_family_t snn_family;
	__u8 snn_version;	/* 0 */
	__u8 snn_flags;
	__u32 snn_face;	/* recvfrom: where it came from */
	__u16 snn_name_len;
	__u8 snn_pad[2];	/* 0 */
	__u8 snn_name[NNET_ADDR_NAME_MAX];
};

struct nnet_sock_stats {
	__u64 in_interests;
	__u64 in_data;
	__u64 in_nacks;
	__u64 out_interests;
	__u64 out_data;
	__u64 dropped;	/* the receive queue was full */
	__u64 published;	/* packets kept now */
	__u64 served;	/* Interests answered from what was published */
	__u64 retransmitted;	/* SEQPACKET */
	__u32 window;	/* SEQPACKET, segments */
	__u32 in_flight;
	__u32 srtt_us;
	__u32 rto_us;
};

#endif /* _UAPI_LINUX_NNET_H */
