"""Connections of old and new clients, which are opened, closed, and ended by illegal commands."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.broker.wire import Type

from ..pair import Said
from ..program import Program
from .values import ANY, LINKS

VERSIONS = st.sampled_from([21, 21, 21, 20, 17, 12, 11, 9, 22])
FLAGS = st.lists(
    st.sampled_from(
        [
            "supports_auth_refresh",
            "supports_broker_entry_metadata",
            "supports_partial_producer",
            "supports_topic_watchers",
        ]
    ),
    unique=True,
)


class Connecting(Program):
    """Rules that open and close connections."""

    @rule(link=LINKS, version=VERSIONS, flags=FLAGS)
    def open(self, link: int, version: int, flags: list[str]) -> None:
        if link not in self.links:
            self.connect(link, version, feature_flags=dict.fromkeys(flags, True))

    @precondition(lambda self: self.links)
    @rule(which=ANY)
    def drop(self, which: int) -> None:
        self.disconnect(self.some_link(which))

    @precondition(lambda self: self.links)
    @rule(which=ANY)
    def ping(self, which: int) -> None:
        self.tell(self.some_link(which), Said(Type.PING, {}))

    @precondition(lambda self: self.links)
    @rule(which=ANY)
    def pong(self, which: int) -> None:
        self.tell(self.some_link(which), Said(Type.PONG, {}))

    @precondition(lambda self: self.links)
    @rule(which=ANY, what=st.sampled_from([0, 1, 1, 1, 2]))
    def break_the_rules(self, which: int, what: int) -> None:
        """Send a command that ends the connection."""
        link = self.some_link(which)
        if what == 0:
            self.tell(link, Said(Type.CONNECT, {"client_version": "again", "protocol_version": 21}))
        elif what == 1:
            self.tell(link, Said(Type.AUTH_RESPONSE, {"client_version": "a", "protocol_version": 21}))
        elif what == 2:
            self.tell(link, Said(Type.CONNECTED, {"server_version": "a client"}))
