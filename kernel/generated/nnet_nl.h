/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Written by kernel/tools/nlgen.py from spec/netlink/nnet.yaml; not by hand. */
#ifndef _NNET_NL_H
#define _NNET_NL_H

#define NNET_NL_NAME	"nnet"
#define NNET_NL_VERSION	1

enum nnet_face_kind {
	NNET_FACE_KIND_LOCAL = 1,
	NNET_FACE_KIND_SOCKET = 2,
	NNET_FACE_KIND_ETHER = 3,
	NNET_FACE_KIND_UDP = 4,
};

enum nnet_strategy {
	NNET_STRATEGY_BEST_ROUTE = 1,
	NNET_STRATEGY_MULTICAST = 2,
	NNET_STRATEGY_RANDOM = 3,
};

enum nnet_unsolicited {
	NNET_UNSOLICITED_DROP = 0,
	NNET_UNSOLICITED_LOCAL = 1,
	NNET_UNSOLICITED_NETWORK = 2,
	NNET_UNSOLICITED_ALL = 3,
};

enum nnet_dispatch {
	NNET_DISPATCH_INLINE = 0,
	NNET_DISPATCH_NAME = 1,
	NNET_DISPATCH_PREFIX = 2,
	NNET_DISPATCH_RANDOM = 3,
};

enum nnet_attr {
	NNET_A_FACE_ID = 1,	/* u32 */
	NNET_A_FACE_KIND = 2,	/* u8 */
	NNET_A_IFINDEX = 3,	/* u32 */
	NNET_A_PEER = 4,	/* binary: Ethernet address of the peer or group */
	NNET_A_ADDRESS = 5,	/* binary: IPv6 address */
	NNET_A_PORT = 6,	/* u16: host byte order */
	NNET_A_MTU = 7,	/* u16: octets of a frame; 0 is the link's own */
	NNET_A_FLAGS = 8,	/* u32: of a face: bit 0 local, 1 several peers, 2 local fields, 3 link headers; of a pending Interest: bit 0 CanBePrefix, 1 MustBeFresh */
	NNET_A_NAME = 9,	/* binary: value of a Name TLV */
	NNET_A_COST = 10,	/* u32 */
	NNET_A_STRATEGY = 11,	/* u8: 0 takes a choice back */
	NNET_A_CAPACITY = 12,	/* u32: packets */
	NNET_A_LIFETIME = 13,	/* u32: ms that a pending Interest has left, or for which a Data is still fresh */
	NNET_A_BYTES_MAX = 14,	/* u64 */
	NNET_A_ADMIT = 15,	/* u8 */
	NNET_A_SERVE = 16,	/* u8 */
	NNET_A_UNSOLICITED = 17,	/* u8 */
	NNET_A_ENTRIES = 18,	/* u32 */
	NNET_A_PACKETS = 19,	/* u32 */
	NNET_A_BYTES = 20,	/* u64 */
	NNET_A_COUNT = 21,	/* u32 */
	NNET_A_PIT_MAX = 22,	/* u32 */
	NNET_A_COUNTER_KIND = 23,	/* string */
	NNET_A_COUNTER_WORD = 24,	/* string */
	NNET_A_VALUE = 25,	/* u64 */
	NNET_A_DISPATCH_MODE = 26,	/* u8 */
	NNET_A_DISPATCH_DEPTH = 27,	/* u8 */
	NNET_A_DISPATCH_THREADS = 28,	/* u8 */
	NNET_A_DISPATCH_SEPARATE = 29,	/* u8 */
	NNET_A_AUTO_FACES = 30,	/* u8 */
	NNET_A_PACKET = 31,	/* binary */
	NNET_A_IN_USER = 32,	/* u8: every Data goes to the store in user space and none is kept */
	NNET_A_IN_INTERESTS = 33,	/* u64 */
	NNET_A_IN_DATA = 34,	/* u64 */
	NNET_A_IN_NACKS = 35,	/* u64 */
	NNET_A_IN_BYTES = 36,	/* u64 */
	NNET_A_OUT_INTERESTS = 37,	/* u64 */
	NNET_A_OUT_DATA = 38,	/* u64 */
	NNET_A_OUT_NACKS = 39,	/* u64 */
	NNET_A_OUT_BYTES = 40,	/* u64 */
	NNET_A_FAMILY = 41,	/* u32 */
	NNET_A_LOCAL_FIELDS = 42,	/* u8 */
	NNET_A_PAD = 43,	/* pad */
	NNET_A_END,
	NNET_A_MAX = NNET_A_END - 1,
};

enum nnet_cmd {
	NNET_CMD_FACE_NEW = 1,
	NNET_CMD_FACE_DEL = 2,
	NNET_CMD_FACE_SET = 3,
	NNET_CMD_FACE_GET = 4,
	NNET_CMD_FIB_ADD = 5,
	NNET_CMD_FIB_DEL = 6,
	NNET_CMD_FIB_GET = 7,
	NNET_CMD_STRATEGY_SET = 8,
	NNET_CMD_CS_CONFIG = 9,
	NNET_CMD_CS_ERASE = 10,
	NNET_CMD_CS_GET = 11,
	NNET_CMD_BPT_GET = 12,
	NNET_CMD_PIT_SET = 13,
	NNET_CMD_PIT_GET = 14,
	NNET_CMD_STATS_GET = 15,
	NNET_CMD_DISPATCH_SET = 16,
	NNET_CMD_NET_SET = 17,
	NNET_CMD_STORE_ATTACH = 18,
	NNET_CMD_STORE_OFFER = 19,
	NNET_CMD_STORE_ASK = 20,
	NNET_CMD_STORE_DATA = 21,
	NNET_CMD_STORE_MISS = 22,
	NNET_CMD_FACE_EVENT = 23,
	NNET_CMD_PIT_INFO = 24,
	NNET_CMD_PIT_ERASE = 25,
	NNET_CMD_STORE_HAVE = 26,
	NNET_CMD_END,
};

#define NNET_GROUP_FACES	"faces"

#endif /* _NNET_NL_H */
