"""Clients of an Onym node. `onym.push` is publish/subscribe, `onym.sync` groups that stay in step."""
