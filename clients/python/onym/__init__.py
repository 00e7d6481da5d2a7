"""Clients of an Onym node. `onym.push` is publish/subscribe."""
