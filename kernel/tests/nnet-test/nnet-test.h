/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the commands of nnet-test share. Each command takes its arguments and
 * gives the exit status: 0 when its law holds; what did not hold is said.
 */
#ifndef NNET_TEST_H
#define NNET_TEST_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>

#include "onym/nnet.h"
#include "nnet_nl.h"

#define CHECK(law)                                                         \
	do {                                                               \
		if (!(law)) {                                              \
			printf("%s:%d: does not hold: %s (errno %d %s)\n", \
			       __func__, __LINE__, #law, errno,            \
			       strerror(errno));                           \
			fflush(stdout);                                    \
			exit(1);                                           \
		}                                                          \
	} while (0)

struct onym_name name_of(const char *uri);
void patience(int fd, int seconds);
int mac_of(const char *text, uint8_t mac[6]);
/* A DGRAM socket bound to a prefix, or a negative errno. */
int bound(const char *uri, int flags);

uint64_t now_ns(void);
/* Whether two costs are of one kind. A clock that only ticks tells nothing below its tick. */
int alike(uint64_t few, uint64_t many);

/*
 * A row of what is measured: "ROW CASE SUBJECT METRIC VALUE UNIT", where CASE and
 * SUBJECT are in the environment; without them nothing. row_of() adds to the case.
 */
void row(const char *metric, double value, const char *unit);
void row_of(const char *metric, double value, const char *unit, const char *more, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Packets that are made once and sent with other numbers: the last component of
 * their name is a segment of four octets.
 */
enum { NUMBER_FIRST = 65536 };
size_t interest_of(const struct onym_name *name, uint8_t *packet);
/* Where the number is in a packet; 0 when there is none. */
size_t number_in(const uint8_t *packet, size_t len);
void number_put(uint8_t *at, uint32_t number);

extern uint8_t content[ONYM_PACKET_MAX];

/* An Interest, octet by octet. */
struct ask {
	const uint8_t *name, *hint;
	size_t name_len, hint_len;
	uint32_t flags, lifetime, nonce;
};

size_t ask_make(const struct ask *a, uint8_t *packet);
void want(int fd, const struct onym_name *name, uint32_t flags, uint32_t lifetime);
void offer(int fd, const struct onym_name *name, const char *text, uint32_t freshness);
long told(const char *file, const char *word);
int comes(int (*law)(void *), void *arg);
int as_user(int uid, int flags, int (*run)(void *), void *arg);
/* Rows of the pending Interests; the lifetime that the last of them has left. */
int pit_row_lifetime(size_t *longest, uint64_t *lifetime);

/* The commands. */
int ctl(int argc, char **argv);
int serve(int argc, char **argv);
int fetch(int argc, char **argv);
int binding(int argc, char **argv);
int refused(int argc, char **argv);
int published(int argc, char **argv);
int calls(int argc, char **argv);
int relay(int argc, char **argv);
int pump(int argc, char **argv);
int request(int argc, char **argv);
int pair(int argc, char **argv);
int fuzz(int argc, char **argv);
int closing(int argc, char **argv);
int reuse(int argc, char **argv);
int storm(int argc, char **argv);
int probe(int argc, char **argv);
int hit(int argc, char **argv);
int flood(int argc, char **argv);
int cost(int argc, char **argv);
int lpfields(int argc, char **argv);
int shares(int argc, char **argv);
int hostlimits(int argc, char **argv);
int blocked(int argc, char **argv);
int longrows(int argc, char **argv);
int pad(int argc, char **argv);
int autoload(int argc, char **argv);
int charged(int argc, char **argv);
int rights(int argc, char **argv);
int closes(int argc, char **argv);
int bindings(int argc, char **argv);
int crowd(int argc, char **argv);
int peers(int argc, char **argv);
int traffic(int argc, char **argv);
int witness(int argc, char **argv);
int run_as(int argc, char **argv);
int partial(int argc, char **argv);
int cached_prefix(int argc, char **argv);
int cached_name(int argc, char **argv);
int forged(int argc, char **argv);
int dumps(int argc, char **argv);
int digest(int argc, char **argv);
int publications(int argc, char **argv);
int pending_lifetime(int argc, char **argv);
int pending_octets(int argc, char **argv);
int pending_close(int argc, char **argv);
int pending_share(int argc, char **argv);
int pending_user(int argc, char **argv);
int pending_variants(int argc, char **argv);
int pending_drain(int argc, char **argv);
int parts(int argc, char **argv);
int hostsum(int argc, char **argv);
int stale(int argc, char **argv);
int turns(int argc, char **argv);
int downs(int argc, char **argv);
int parallel(int argc, char **argv);

#endif /* NNET_TEST_H */
