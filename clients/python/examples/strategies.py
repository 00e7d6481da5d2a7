"""Publishes by every strategy, and shows what came by which, with two nodes that are neighbours.

At one: python3 examples/strategies.py NODE listen
At the other: python3 examples/strategies.py NODE publish LABEL TABLE FILTER, where LABEL is that of
the first node, TABLE and FILTER what `onym topology tree /1/2` prints.
"""

import sys

from onym.push import App, Data, Id, StartPublish, Strategy

SCOPE, MATCHED, FREE = (Id.parse(text) for text in ("/1", "/1/2", "/7/8"))
PATIENCE = 30.0


def listen(app: App) -> None:
    app.subscribe_scope(SCOPE)
    # What is under no rendezvous comes by any strategy that has none.
    app.subscribe_item(FREE, Strategy.IMPLICIT)
    print("ready", flush=True)
    while event := app.event(PATIENCE):
        if isinstance(event, Data):
            by = event.came_by if event.came_by is not None else Strategy.DOMAIN_LOCAL
            print(f"{by.name}: {event.payload.decode()}", flush=True)
            if event.payload == b"the end":
                return


def publish(app: App, neighbour: bytes, route: bytes) -> None:
    app.publish_scope(SCOPE)
    app.publish_item(MATCHED)
    while app.event(PATIENCE) != StartPublish(MATCHED):
        pass
    # To who subscribed, by the rendezvous; then to one neighbour, to all, along a filter.
    app.publish_told(MATCHED, b"to subscribers")
    app.publish_told(FREE, b"to a neighbour", Strategy.LINK_LOCAL, node=neighbour)
    app.publish_told(FREE, b"to all neighbours", Strategy.BROADCAST)
    app.publish_told(FREE, b"by a filter", Strategy.IMPLICIT, route=route)
    # Where another item goes: within this node, and everywhere.
    app.publish_told(FREE, b"within the node", Strategy.ALGORITHMIC_LOCAL, about=MATCHED)
    app.publish_told(FREE, b"the end", Strategy.ALGORITHMIC_DOMAIN, about=MATCHED)


def main(node: str, what: str, label: str = "0", table: str = "0", digits: str = "0") -> None:
    with App.open(node, what) as app:
        if what == "listen":
            listen(app)
        else:
            # Form 1, the table, and the filter: bit 255 is the first digit, and in the last octet.
            route = bytes([1, int(table)]) + int(digits, 2).to_bytes(32, "little")
            publish(app, int(label, 16).to_bytes(8, "big"), route)


if __name__ == "__main__":
    main(*sys.argv[1:])
