// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * video_stream serve NAME < STREAM: the stream, cut into segments as it comes,
 * each kept until it was fetched. video_stream play NAME > STREAM: the segments
 * in order, as they come.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <onym/nnet.h>

static int serve(const struct onym_name *name)
{
	int fd = onym_socket(SOCK_SEQPACKET, 0);
	char block[2][1200];
	size_t n, next;
	int at = 0;

	if (fd < 0 || onym_bind(fd, name, 0))
		return 1;
	n = fread(block[0], 1, sizeof(*block), stdin);
	do {
		/* One ahead: the last segment must say that it is the last. */
		next = fread(block[!at], 1, sizeof(*block), stdin);
		if (send(fd, block[at], n, next ? 0 : MSG_EOR) < 0) {
			perror("send");
			return 1;
		}
		at = !at;
		n = next;
	} while (n);
	pause();
	return 0;
}

static int play(const struct onym_name *name)
{
	int fd = onym_socket(SOCK_SEQPACKET, 0);
	char block[8800];
	ssize_t n;

	if (fd < 0 || onym_connect(fd, name, 0))
		return 1;
	while ((n = recv(fd, block, sizeof(block), 0)) > 0)
		fwrite(block, 1, n, stdout);
	if (n < 0)
		perror("recv");
	return n < 0;
}

int main(int argc, char **argv)
{
	struct onym_name name;

	if (argc == 3 && !onym_name(argv[2], &name) && !strcmp(argv[1], "serve"))
		return serve(&name);
	if (argc == 3 && !onym_name(argv[2], &name) && !strcmp(argv[1], "play"))
		return play(&name);
	fprintf(stderr, "usage: video_stream serve|play NAME\n");
	return 2;
}
