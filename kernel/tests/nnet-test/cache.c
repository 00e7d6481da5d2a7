// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The delay of a cache hit. */
#include "nnet-test.h"

#include <math.h>

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Steps of a sixteenth of an octave that hold anything, as rows or as a line. */
static void steps(const uint64_t *t, uint32_t n, int rows)
{
	uint32_t i = 0, from;
	double top = 1;

	while (i < n) {
		while (top < t[i])
			top *= exp2(1.0 / 16);
		for (from = i; i < n && t[i] <= top; i++)
			;
		if (rows)
			row_of("latency_count", i - from, "1", "le_ns=%.0f", top);
		else
			printf(" %.0f (%u)", top, i - from);
	}
}

static void histogram(const uint64_t *t, uint32_t n)
{
	printf("histogram, ns at most (samples):");
	steps(t, n, 0);
	printf("\n");
	steps(t, n, 1);
}

static void tell(uint64_t *t, uint32_t found, uint32_t samples)
{
	static const int per[] = { 1, 25, 50, 90, 99 };
	uint64_t sum = 0;

	qsort(t, found, sizeof(*t), by_size);
	for (uint32_t i = 0; i < found; i++)
		sum += t[i];
	printf("hits %u of %u, mean %llu ns", found, samples, (unsigned long long)(sum / found));
	for (int q = 0; q < 5; q++)
		printf(", p%d %llu", per[q], (unsigned long long)t[(uint64_t)found * per[q] / 100]);
	printf("\n");
	row("latency_mean_s", sum / 1e9 / found, "s");
	row("latency_p50_s", t[found / 2] / 1e9, "s");
	row("latency_p99_s", t[(uint64_t)found * 99 / 100] / 1e9, "s");
	histogram(t, found);
}

/* How long one of the cached Data takes, in ns; 0 where it does not come. */
static uint64_t asked(int fd, uint8_t *interest, size_t len, size_t number_at, uint32_t number, uint32_t nonce)
{
	uint8_t packet[ONYM_PACKET_MAX];
	uint64_t begun;

	number_put(interest + number_at, number);
	memcpy(interest + len - 4, &nonce, 4);
	begun = now_ns();
	CHECK(send(fd, interest, len, 0) > 0);
	return recv(fd, packet, sizeof(packet), 0) > 0 && packet[0] == 6 ? now_ns() - begun : 0;
}

/*
 * hit MEGABYTES SAMPLES: fills the cache with Data of 1024 octets that nobody
 * asked for, then asks for SAMPLES of them and tells the delays. The cache is
 * the kernel's, or the store's where that was attached with --user. A question
 * during the fill stands behind all offers in the store's queue: its answer says
 * that they are kept. So none is lost, and no sample waits for it.
 */
int hit(int argc, char **argv)
{
	uint32_t count = atoi(argv[0]) * 1024, samples = atoi(argv[1]), most = UINT32_MAX, found = 0;
	uint64_t bytes = UINT64_MAX >> 1, *t = calloc(samples, sizeof(*t));
	int control = onym_ctl_open(), fd = onym_socket(SOCK_RAW, 0), ask = onym_socket(SOCK_RAW, 0);
	struct onym_name n = name_of("/cached/objects");
	struct onym_data d = { .name = &n, .content = content, .len = 1024 };
	uint8_t packet[ONYM_PACKET_MAX], interest[256], all = NNET_UNSOLICITED_ALL;
	size_t interest_len, number_at, asked_at;
	ssize_t len;

	CHECK(!onym_ctl_call(control, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_CAPACITY, &most, (size_t)4,
			     NNET_A_BYTES_MAX, &bytes, (size_t)8,
			     NNET_A_UNSOLICITED, &all, (size_t)1, 0));
	patience(ask, 5);
	CHECK(!onym_name_segment(&n, NUMBER_FIRST));
	len = onym_data_make(&d, NULL, packet, sizeof(packet));
	number_at = number_in(packet, len);
	CHECK(len > 0 && number_at);
	interest_len = interest_of(&n, interest);
	asked_at = number_in(interest, interest_len);
	for (uint32_t i = 0; i < count; i++) {
		number_put(packet + number_at, i);
		CHECK(send(fd, packet, len, 0) == len);
		if (i % 1024 == 1023)
			CHECK(asked(ask, interest, interest_len, asked_at, i, ~i));
	}
	for (uint32_t i = 0; i < samples; i++) {
		t[found] = asked(ask, interest, interest_len, asked_at, (uint64_t)i * 2654435761u % count, i);
		found += t[found] != 0;
	}
	CHECK(found > samples * 9 / 10);
	tell(t, found, samples);
	return 0;
}
