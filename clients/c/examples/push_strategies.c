// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Publishes by every strategy, and shows what came by which, with two nodes that are neighbours.
 *
 * At one: push_strategies NODE listen
 * At the other: push_strategies NODE publish NEIGHBOUR TABLE FILTER, where NEIGHBOUR is the identifier of
 * the first node, TABLE and FILTER what `onym topology tree /1/2` prints.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onym/push.h>

enum { PATIENCE = 30000 };

static const char *const NAMES[] = {
	"node-local", "link-local", "domain-local", "implicit",
	"broadcast", "algorithmic-local", "algorithmic-domain", "inter-domain",
};

static struct onym_push_id scope, matched, neighbour, free_one;

static void must(const char *what, int status)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s\n", what, onym_push_status(status));
	exit(1);
}

static int listen_to(struct onym_push *app)
{
	struct onym_push_event event;
	int got;

	must("subscribe", onym_push_ask(app, ONYM_SUBSCRIBE_SCOPE, &scope, ONYM_DOMAIN_LOCAL));
	/* What is under no rendezvous comes by any strategy that has none. */
	must("subscribe", onym_push_ask(app, ONYM_SUBSCRIBE_ITEM, &free_one, ONYM_IMPLICIT));
	puts("ready");
	fflush(stdout);
	while ((got = onym_push_event(app, &event, PATIENCE)) > 0) {
		if (event.kind != ONYM_DATA)
			continue;
		printf("%s: %.*s\n", NAMES[event.came_by < 0 ? ONYM_DOMAIN_LOCAL : event.came_by],
		       (int)event.len, (const char *)event.payload);
		if (event.len == 7 && !memcmp(event.payload, "the end", 7))
			return 0;
	}
	fprintf(stderr, "nothing more came: %s\n", got ? onym_push_status(got) : "nobody publishes");
	return 1;
}

static void send_by(struct onym_push *app, const char *text, struct onym_push_publication publication)
{
	struct onym_push_sent sent;

	publication.payload = text;
	publication.len = strlen(text);
	must(text, onym_push_publish(app, &publication, &sent));
}

static int publish(struct onym_push *app, const struct onym_push_route *route)
{
	struct onym_push_event event = { 0 };

	must("publish", onym_push_ask(app, ONYM_PUBLISH_SCOPE, &scope, ONYM_DOMAIN_LOCAL));
	must("publish", onym_push_ask(app, ONYM_PUBLISH_ITEM, &matched, ONYM_DOMAIN_LOCAL));
	while (event.kind != ONYM_START_PUBLISH)
		if (onym_push_event(app, &event, PATIENCE) <= 0) {
			fputs("nobody subscribed\n", stderr);
			return 1;
		}
	/* To who subscribed, by the rendezvous; then to one neighbour, to all, along a filter. */
	send_by(app, "to subscribers", (struct onym_push_publication){ .id = &matched, .strategy = ONYM_DOMAIN_LOCAL });
	send_by(app, "to a neighbour", (struct onym_push_publication){ .id = &free_one, .strategy = ONYM_LINK_LOCAL, .node = neighbour.v });
	send_by(app, "to all neighbours", (struct onym_push_publication){ .id = &free_one, .strategy = ONYM_BROADCAST });
	send_by(app, "by a filter", (struct onym_push_publication){ .id = &free_one, .strategy = ONYM_IMPLICIT, .route = route });
	/* Where another item goes: within this node, and everywhere. */
	send_by(app, "within the node", (struct onym_push_publication){ .id = &free_one, .strategy = ONYM_ALGORITHMIC_LOCAL, .about = &matched });
	send_by(app, "the end", (struct onym_push_publication){ .id = &free_one, .strategy = ONYM_ALGORITHMIC_DOMAIN, .about = &matched });
	return 0;
}

int main(int argc, char **argv)
{
	struct onym_push_route route = { 0 };
	struct onym_push *app;
	char label[20];
	int status;

	onym_push_id("/1", &scope);
	onym_push_id("/1/2", &matched);
	onym_push_id("/7/8", &free_one);
	if (argc == 6 && !strcmp(argv[2], "publish")) {
		snprintf(label, sizeof(label), "/%s", argv[3]);
		must("NEIGHBOUR", onym_push_id(label, &neighbour));
		must("FILTER", onym_push_route((unsigned)atoi(argv[4]), argv[5], &route));
	} else if (argc != 3 || strcmp(argv[2], "listen")) {
		fputs("push_strategies NODE listen | push_strategies NODE publish NEIGHBOUR TABLE FILTER\n", stderr);
		return 2;
	}
	app = onym_push_open(argv[1], argv[2]);
	if (!app) {
		perror(argv[1]);
		return 1;
	}
	status = argc == 3 ? listen_to(app) : publish(app, &route);
	onym_push_close(app);
	return status;
}
