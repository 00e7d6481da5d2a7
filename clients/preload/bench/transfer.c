// SPDX-License-Identifier: Apache-2.0 OR MIT
// A simple file transfer over UDP, which knows nothing of push networks (Blackadder, section V.B.4):
//   transfer serve PORT
//   transfer get ADDRESS PORT FILE SECONDS     prints octets, datagrams asked for again, seconds
// The files are made up: octet i of segment n of file f is f + n + i. A client asks for blocks of
// segments, two of them under way, and again for what did not come within 200 ms.

#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { SEGMENT = 1400, BLOCK = 32, UNDER_WAY = 2, PATIENCE_MS = 200 };

// A request, and with octets behind it a segment. Both sides are the same machine.
struct head {
	uint32_t file, first, count;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int open_at(const char *address, const char *port, struct sockaddr_in *where)
{
	int room = 4 << 20, fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		fail("socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	memset(where, 0, sizeof(*where));
	where->sin_family = AF_INET;
	where->sin_port = htons((uint16_t)atoi(port));
	if (inet_pton(AF_INET, address, &where->sin_addr) != 1)
		fail("address");
	return fd;
}

static void serve(const char *port)
{
	struct sockaddr_in own, peer;
	int fd = open_at("0.0.0.0", port, &own);
	uint8_t pattern[256 + SEGMENT], out[sizeof(struct head) + SEGMENT];
	struct head request;

	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)i;
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)))
		fail("bind");
	for (;;) {
		socklen_t len = sizeof(peer);

		if (recvfrom(fd, &request, sizeof(request), 0, (struct sockaddr *)&peer, &len) != sizeof(request) ||
		    request.count > BLOCK)
			continue;
		for (uint32_t i = 0; i < request.count; i++) {
			struct head head = { request.file, request.first + i, 1 };

			memcpy(out, &head, sizeof(head));
			memcpy(out + sizeof(head), pattern + (uint8_t)(head.file + head.first), SEGMENT);
			(void)sendto(fd, out, sizeof(out), 0, (struct sockaddr *)&peer, sizeof(peer));
		}
	}
}

// The blocks that are under way: the first segment of each, which came, how many did.
struct block {
	uint32_t first, came;
	uint8_t is_there[BLOCK];
};

static void ask(int fd, uint32_t file, uint32_t first, uint32_t count)
{
	struct head request = { file, first, count };

	(void)send(fd, &request, sizeof(request), 0);
}

// Asks again for what is missing of a block, run by run; how many segments.
static uint32_t ask_again(int fd, uint32_t file, const struct block *b)
{
	uint32_t missing = 0, run = 0;

	for (uint32_t i = 0; i <= BLOCK; i++) {
		if (i < BLOCK && !b->is_there[i]) {
			run++;
			continue;
		}
		if (run)
			ask(fd, file, b->first + i - run, run);
		missing += run;
		run = 0;
	}
	return missing;
}

static void get(const char *address, const char *port, uint32_t file, double seconds)
{
	struct sockaddr_in server;
	int fd = open_at(address, port, &server);
	struct block blocks[UNDER_WAY] = { 0 };
	uint8_t in[sizeof(struct head) + SEGMENT];
	uint64_t octets = 0, again = 0;
	uint32_t next = 0;
	double began = 0;

	if (connect(fd, (struct sockaddr *)&server, sizeof(server)))
		fail("connect");
	for (size_t i = 0; i < UNDER_WAY; i++, next += BLOCK) {
		blocks[i].first = next;
		ask(fd, file, next, BLOCK);
	}
	// The clock starts with the first segment: a way has to be found before, by UDP as well.
	while (began == 0 || now() - began < seconds) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		struct head head;
		struct block *b = NULL;
		ssize_t got = poll(&p, 1, PATIENCE_MS) > 0 ? recv(fd, in, sizeof(in), MSG_DONTWAIT) : 0;

		if (got == 0)
			for (size_t i = 0; i < UNDER_WAY; i++) {
				uint32_t missing = ask_again(fd, file, &blocks[i]);

				// Before the first segment nothing was on its way that could be lost: a way was looked for.
				if (began != 0)
					again += missing;
			}
		if (got != sizeof(in))
			continue;
		memcpy(&head, in, sizeof(head));
		for (size_t i = 0; i < UNDER_WAY; i++)
			if (head.first - blocks[i].first < BLOCK)
				b = &blocks[i];
		if (!b || head.file != file || b->is_there[head.first - b->first])
			continue;
		if (in[sizeof(head)] != (uint8_t)(head.file + head.first) ||
		    in[sizeof(in) - 1] != (uint8_t)((uint8_t)(head.file + head.first) + SEGMENT - 1)) {
			fprintf(stderr, "segment %u is not what was served\n", head.first);
			exit(1);
		}
		if (began == 0)
			began = now();
		b->is_there[head.first - b->first] = 1;
		octets += SEGMENT;
		if (++b->came == BLOCK) {
			*b = (struct block){ .first = next };
			ask(fd, file, next, BLOCK);
			next += BLOCK;
		}
	}
	printf("%llu %llu %.6f\n", (unsigned long long)octets, (unsigned long long)again, now() - began);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 6 && !strcmp(argv[1], "get"))
		get(argv[2], argv[3], (uint32_t)atoi(argv[4]), atof(argv[5]));
	else
		fprintf(stderr, "transfer serve PORT | transfer get ADDRESS PORT FILE SECONDS\n");
	return 1 - (argc == 6);
}
