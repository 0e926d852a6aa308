"""Mask the broker's abilities from some of its clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, Protocol, Unpack

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.config.profile import PROFILES, Profile
from pulsarium.broker.lab.acts import Undo, acts_of
from pulsarium.broker.lab.arguments import ANY, Whose, Worn, arguments_of, check_names, json_arguments
from pulsarium.broker.session.session import Session, Sessions, sessions_of
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import did_you_mean

HIGHEST: Final = 22
FLAGS: Final = tuple(each.name for each in pb.FeatureFlags.DESCRIPTOR.fields)
ERRORS: Final = tuple(pb.ServerError.keys())
TAKEN: Final = frozenset(spec.name for spec in COMMANDS.values() if spec.direction is not Direction.BROKER)
"""Commands that a client may send."""
ALWAYS: Final = frozenset(spec.name for spec in COMMANDS.values() if spec.family == "connection") & TAKEN
"""Commands that every connection needs."""


class MaskError(ValueError):
    """A mask that is not valid. The text says what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The abilities that a broker shows to a client. Values that are not given stay unchanged. Raise `MaskError`.

    profile: behave as this profile, a name of `--profile`.
    max_protocol_version: 0 to 22. CONNECTED announces at most this version, and later commands are not sent.
    flags: feature flags of the broker in CONNECTED, by their names in FeatureFlags.
    client_flags: feature flags of the client, which replace those of its CONNECT.
    allowed: names of the commands that are accepted, beside those of the connection itself.
    unknown_error: name of the ServerError that answers other commands. None closes the connection, as Pulsar does.
    """

    profile: str | None = None
    max_protocol_version: int | None = None
    flags: Mapping[str, bool] = field(default_factory=dict)
    client_flags: Mapping[str, bool] = field(default_factory=dict)
    allowed: frozenset[str] | None = None
    unknown_error: str | None = None

    def __post_init__(self) -> None:
        version = self.max_protocol_version
        if self.profile is not None and self.profile not in PROFILES:
            raise MaskError(f"no profile {self.profile!r}; there are {', '.join(PROFILES)}")
        if version is not None and not 0 <= version <= HIGHEST:
            raise MaskError(f"max_protocol_version is {version}; it must be 0 to {HIGHEST}")
        for name in (*self.flags, *self.client_flags):
            if name not in FLAGS:
                raise MaskError(f"no feature flag {name!r}; there are {', '.join(FLAGS)}")
        unknown = sorted((self.allowed or frozenset()) - TAKEN)
        if unknown:
            meant = did_you_mean(unknown[0], TAKEN) or f"there are {', '.join(sorted(TAKEN))}"
            raise MaskError(f"no command {unknown[0]!r} of a client; {meant}")
        if self.unknown_error is not None and self.unknown_error not in ERRORS:
            raise MaskError(f"no error {self.unknown_error!r}; there are {', '.join(ERRORS)}")

    def over(self, base: Profile) -> Profile:
        """Return the profile `base` as this mask changes it."""
        masked = base if self.profile is None else PROFILES[self.profile]
        version = masked.max_protocol_version
        if self.max_protocol_version is not None:
            version = min(version, self.max_protocol_version)
        on = {name for name, value in self.flags.items() if value}
        unknown = masked.unknown if self.allowed is None else masked.unknown | (TAKEN - ALWAYS - self.allowed)
        return replace(
            masked,
            max_protocol_version=version,
            flags=frozenset((masked.flags - self.flags.keys()) | on),
            unknown=unknown,
            unknown_error=self.unknown_error,
        )


class Wearer(Protocol):
    """A client that a mask may be for."""

    @property
    def client_version(self) -> str: ...
    @property
    def listener(self) -> str: ...
    @property
    def role(self) -> str | None: ...


@dataclass(eq=False)
class WornMask:
    """A mask, the connections that it is for, and how many have received it. Leaving its `with` block removes it."""

    id: int
    mask: Mask
    whose: Whose
    _forget: Callable[[WornMask], None] = field(repr=False)
    hits: int = 0

    def fits(self, session: Wearer) -> bool:
        """Return whether the mask is for this client. Texts are globs."""
        return (
            fnmatchcase(session.client_version, self.whose.get("client_version", ANY))
            and fnmatchcase(session.listener, self.whose.get("listener", ANY))
            and fnmatchcase(session.role or "", self.whose.get("role", ANY))
        )

    def put_on(self, session: Session, connect: pb.CommandConnect) -> None:
        """Apply the mask to a session. Call this before CONNECTED is sent."""
        self.hits += 1
        session.profile = self.mask.over(session.profile)
        for name, value in self.mask.client_flags.items():
            setattr(connect.feature_flags, name, value)

    def remove(self) -> None:
        """Remove the mask. Open connections keep it."""
        self._forget(self)

    def __enter__(self) -> WornMask:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Masks:
    """The masks of a cluster. A new connection receives the newest mask that matches, for its whole life."""

    def __init__(self, cluster: Cluster) -> None:
        self.worn: list[WornMask] = []
        self._cluster = cluster
        self._connecting = cluster.attached(Sessions).connecting
        self._numbers = itertools.count(1)

    def add(self, mask: Mask, *, disconnect: bool = False, **whose: Unpack[Whose]) -> WornMask:
        """Add a mask for connections that are opened from now on, and whose client matches these globs.

        client_version: the client's version in CONNECT. listener: the broker's URL that the client connected to,
        pulsar://HOST:PORT or pulsar+ssl://HOST:PORT. role: the client's role, "" without authentication. `disconnect`
        closes the open connections that match, so that their clients reconnect behind the mask. Raise `TypeError` for
        another name.
        """
        check_names(whose, Worn)
        worn = WornMask(next(self._numbers), mask, whose, self._remove)
        self._wear([*self.worn, worn])
        undo = Undo("DELETE", f"/lab/masks/{worn.id}", lambda: worn in self.worn)
        acts_of(self._cluster).note(f"added mask {worn.id}", undo=undo, hits=lambda: worn.hits)
        if disconnect:
            for close in [close for each, close in self._connected() if worn.fits(each)]:
                close()
        return worn

    def _connected(self) -> Iterator[tuple[Wearer, Callable[[], object]]]:
        """Yield the clients that have connected, each with the function that closes its connection."""
        for broker in self._cluster.brokers:
            for session in sessions_of(broker):
                if session.connected:
                    yield session, partial(broker.close_session, session)

    def find(self, number: int) -> WornMask | None:
        """Return the mask of this id, or None."""
        return next((worn for worn in self.worn if worn.id == number), None)

    def clear(self) -> None:
        """Remove every mask."""
        for worn in self.worn:
            self._remove(worn)

    def connecting(self, session: Session, connect: pb.CommandConnect) -> None:
        """Apply the newest matching mask to a new connection."""
        for worn in reversed(self.worn):
            if worn.fits(session):
                worn.put_on(session, connect)
                return

    def _remove(self, worn: WornMask) -> None:
        if worn in self.worn:
            self._wear([each for each in self.worn if each is not worn])
            acts_of(self._cluster).note(f"removed mask {worn.id}", hits=lambda: worn.hits)

    def _wear(self, worn: list[WornMask]) -> None:
        """Apply these masks to new connections. Without any, no connection is looked at."""
        if bool(worn) != bool(self.worn):
            (self._connecting.append if worn else self._connecting.remove)(self.connecting)
        self.worn = worn


_WORDS: Final = {str: "a text", int: "a number", dict: "an object", list: "a list", bool: "true or false"}


def add_from_json(masks: Masks, given: Any) -> WornMask:
    """Add a mask, whose arguments are one JSON object. Raise `MaskError` when a value is not valid."""
    if not isinstance(given, dict):
        raise MaskError("a mask is a JSON object, such as " + '{"maxProtocolVersion": 19}')
    mask_takes, known = arguments_of(Mask), json_arguments(Mask, Worn)
    for name, value in given.items():
        if name not in known:
            raise MaskError(f"{name}: a mask takes {', '.join(known)}")
        wanted = known[name].types[0]
        if value is not None and type(value) is not wanted:
            raise MaskError(f"{name}: it is {_WORDS[wanted]}")
    said = {name: value for name, value in given.items() if value is not None}
    for name in ("flags", "clientFlags"):
        if not all(isinstance(value, bool) for value in said.get(name, {}).values()):
            raise MaskError(f"{name}: each is true or false")
    if not all(isinstance(each, str) for each in said.get("allowed", [])):
        raise MaskError("allowed: names of commands, such as SEND")
    if "allowed" in said:
        said["allowed"] = frozenset(said["allowed"])
    arguments = {known[name].name: value for name, value in said.items()}
    mask = Mask(**{name: value for name, value in arguments.items() if name in mask_takes})
    return masks.add(mask, **{name: value for name, value in arguments.items() if name not in mask_takes})


def mask_to_json(worn: WornMask) -> dict[str, Any]:
    """Return a mask and its globs as JSON, without the values that were not given."""
    shown: dict[str, Any] = {"id": worn.id}
    for name, each in json_arguments(Mask).items():
        value = getattr(worn.mask, each.name)
        if value or value == 0 or isinstance(value, frozenset):
            shown[name] = sorted(value) if isinstance(value, frozenset) else value
    for name, each in json_arguments(Whose).items():
        if (glob := worn.whose.get(each.name, ANY)) != ANY:
            shown[name] = glob
    return {**shown, "hits": worn.hits}
