/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Every packet ends in exactly one verdict, every frame that is no packet in
 * one link verdict; the words are those of spec/registry.md. Declared here
 * once: the counters, /proc/net/nnet/stats and the netlink dump follow.
 *
 * Counters are per processor and per network namespace; no lock.
 */
#ifndef _NNET_VERDICT_H
#define _NNET_VERDICT_H

/* X(symbol, kind, word) */
#define NNET_COUNTERS(X)						\
	X(I_FORWARDED, "interest", "forwarded")				\
	X(I_AGGREGATED, "interest", "aggregated")			\
	X(I_SUPPRESSED, "interest", "suppressed")			\
	X(I_CS_HIT, "interest", "cs_hit")				\
	X(I_MALFORMED, "interest", "malformed")				\
	X(I_UNEXPECTED_FIELD, "interest", "unexpected_field")		\
	X(I_HOP_LIMIT_ZERO, "interest", "hop_limit_zero")		\
	X(I_SCOPE, "interest", "scope")					\
	X(I_DEAD_NONCE, "interest", "dead_nonce")			\
	X(I_DUPLICATE_NONCE, "interest", "duplicate_nonce")		\
	X(I_NO_ROUTE, "interest", "no_route")				\
	X(I_NO_ELIGIBLE, "interest", "no_eligible_next_hop")		\
	X(I_PIT_FULL, "interest", "pit_full")				\
	X(I_PIT_SHARE, "interest", "pit_share")				\
	X(I_NEXT_HOP_INVALID, "interest", "next_hop_face_invalid")	\
	X(I_NO_MEMORY, "interest", "no_memory")				\
	X(D_SATISFIED, "data", "satisfied")				\
	X(D_STORED, "data", "stored")					\
	X(D_MALFORMED, "data", "malformed")				\
	X(D_UNEXPECTED_FIELD, "data", "unexpected_field")		\
	X(D_SCOPE, "data", "scope")					\
	X(D_UNSOLICITED, "data", "unsolicited")				\
	X(N_FORWARDED, "nack", "nack_forwarded")			\
	X(N_ABSORBED, "nack", "nack_absorbed")				\
	X(N_MALFORMED, "nack", "malformed")				\
	X(N_UNEXPECTED_FIELD, "nack", "unexpected_field")		\
	X(N_NO_ENTRY, "nack", "nack_no_entry")				\
	X(N_STALE_NONCE, "nack", "nack_stale_nonce")			\
	X(N_NOT_P2P, "nack", "nack_not_point_to_point")			\
	X(F_PACKET, "frame", "packet")					\
	X(F_FRAGMENT_HELD, "frame", "fragment_held")			\
	X(F_IDLE, "frame", "idle")					\
	X(F_LP_MALFORMED, "frame", "lp_malformed")			\
	X(F_LP_UNKNOWN, "frame", "lp_unknown_critical")			\
	X(F_FRAG_INVALID, "frame", "frag_invalid")			\
	X(F_FRAG_REFUSED, "frame", "frag_refused")			\
	X(F_REASSEMBLY_FULL, "frame", "reassembly_full")		\
	X(F_LP_EMPTY, "frame", "lp_empty")				\
	X(F_UNEXPECTED_FIELD, "frame", "unexpected_field")		\
	X(F_UNKNOWN_PEER, "frame", "unknown_peer")			\
	X(F_TRANSPORT_REFUSED, "frame", "transport_refused")		\
	X(F_MALFORMED, "frame", "malformed")				\
	X(F_DISPATCH_FULL, "frame", "dispatch_full")			\
	X(H_FRAG_TIMEOUT, "held", "frag_timeout")			\
	X(H_FRAG_EVICTED, "held", "frag_evicted")			\
	X(U_QUEUE_FULL, "unsent", "queue_full")				\
	X(U_FACE_GONE, "unsent", "face_gone")				\
	X(U_OVER_MTU, "unsent", "over_mtu")				\
	X(U_OUT_HOP_LIMIT, "unsent", "out_hop_limit")			\
	X(U_OUT_SCOPE, "unsent", "out_scope")				\
	X(U_NO_MEMORY, "unsent", "no_memory")				\
	X(S_INTERESTS, "sent", "interests")				\
	X(S_DATA, "sent", "data")					\
	X(S_NACKS, "sent", "nacks")					\
	X(S_BLACKHOLE, "sent", "blackhole")				\
	X(C_INTERESTS, "received", "interests")				\
	X(C_DATA, "received", "data")					\
	X(C_NACKS, "received", "nacks")					\
	X(P_SATISFIED, "pit", "satisfied")				\
	X(P_UNSATISFIED, "pit", "unsatisfied")				\
	X(T_CS_INSERTED, "cs", "inserted")				\
	X(T_CS_EVICTED, "cs", "evicted")				\
	X(T_CS_MISSES, "cs", "misses")					\
	X(T_CS_REFUSED, "cs", "refused")				\
	X(T_STORE_ASKED, "store", "asked")				\
	X(T_STORE_HIT, "store", "hit")					\
	X(T_STORE_OFFERED, "store", "offered")				\
	X(T_STORE_LOST, "store", "lost")				\
	X(T_BPT_MISS, "bindings", "miss")

enum nnet_counter {
#define X(symbol, kind, word) NNET_C_##symbol,
	NNET_COUNTERS(X)
#undef X
	NNET_C_COUNT
};

#endif /* _NNET_VERDICT_H */
