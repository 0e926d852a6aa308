"""Declare the arguments of rules and masks, each once.

Python's keywords, JSON, the command line and docs/faults.md follow from these rows. Imports nothing of the broker,
because `pulsarium fault` starts by importing this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypedDict, Union, get_args, get_origin
from typing import get_type_hints as hints_of

if TYPE_CHECKING:
    from pulsarium.broker.lab.faults.tapped import Predicate

ANY: Final = "*"
ADDED_BY: Final = {
    "faults": "pulsarium fault add SEND drop --after-work --topic orders",
    "masks": "pulsarium mask add --max-protocol-version 19",
    "captures": "pulsarium capture start",
}
"""A command that adds to each list of the lab, for people who see an empty one."""


class Told(NamedTuple):
    """The meaning of an argument, and the name that the command line gives to its value."""

    text: str
    metavar: str = ""


class Selected(TypedDict, total=False):
    """Select frames: all given arguments must match. Texts are globs; "*" also matches frames without such a name."""

    sender: Annotated[
        Literal["client", "broker"] | None,
        Told("Sender of the frame, `client` or `broker`: needed where both send the command (PING, CLOSE_CONSUMER)."),
    ]
    topic: Annotated[
        str,
        Told("Glob of the topic: `orders*`, `public/default/*`, `persistent://...`. Matches its partitions too."),
    ]
    namespace: Annotated[
        str,
        Told(
            "Glob of the namespace: `public/default`. A frame without a topic, such as PING or END_TXN, matches by the "
            "producers and consumers of its connection. CONNECT and CONNECTED come before them, and are refused."
        ),
    ]
    client_version: Annotated[str, Told("Glob of the client's version in CONNECT.")]
    producer: Annotated[str, Told("Glob of the producer's name.")]
    consumer: Annotated[str, Told("Glob of the consumer's name.")]
    subscription: Annotated[str, Told("Glob of the subscription's name.")]
    broker: Annotated[int | None, Told("Index of the broker in its cluster; the first is 0.", "INDEX")]
    when: Annotated[
        str | None,
        Told(
            'Expression on the fields of the frame, such as `metadata.partition_key == "a" and payload_size > 100`.',
            "EXPRESSION",
        ),
    ]
    predicate: Annotated[
        Predicate | None,
        Told(
            "Python only: a function of the frame (`name`, `body`, `entry`, `topic`, `session` ...) that does not wait."
        ),
    ]


class When(TypedDict, total=False):
    """Choose which of the selected frames the action applies to."""

    skip: Annotated[int, Told("Skip the first N matching frames.", "N")]
    every: Annotated[int, Told("Act on the first of every K matching frames.", "K")]
    count: Annotated[
        int | None,
        Told(
            "Act N times in all, by default once. No limit: `--forever`, in Python `None`, in JSON `null`.",
            "N",
        ),
    ]
    probability: Annotated[float, Told("Act with this probability, from 0 to 1.", "P")]
    seed: Annotated[int | None, Told("Seed of the probability and of the corrupted byte, to repeat a run.", "N")]


class Which(Selected, When, total=False):
    """Select the frames that a rule acts on, and the stage."""

    stage: Annotated[
        Literal["before", "after"],
        Told("`before`: act on the frame itself. `after`: handle the client's command, and act on its answer."),
    ]


class Whose(TypedDict, total=False):
    """Select the connections that receive a mask: all given arguments must match."""

    client_version: Annotated[str, Told("Glob of the client's version in CONNECT.")]
    listener: Annotated[str, Told("Glob of the broker's URL that the client connected to, such as `pulsar+ssl:*`.")]
    role: Annotated[str, Told("Glob of the role that the client proved.")]


class Worn(Whose, total=False):
    """Select the connections that receive a mask, and say whether to close open ones."""

    disconnect: Annotated[bool, Told("Close the open connections that match: their clients reconnect behind the mask.")]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as JSON and the command line accept it. `types` are the Python types of a JSON value."""

    name: str
    types: tuple[type, ...]
    choices: tuple[str, ...] = ()
    text: str = ""
    metavar: str = ""


def json_name(name: str) -> str:
    """Return the name of an argument in JSON, such as clientVersion."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def json_arguments(*kinds: type) -> dict[str, Argument]:
    """Return the arguments that JSON can express, by their JSON names."""
    found = (each for kind in kinds for each in arguments_of(kind).values())
    return {json_name(each.name): each for each in found if {*each.types} - {type(None)}}


def arguments_of(kind: type) -> dict[str, Argument]:
    """Return the arguments that a class declares by its annotations, by their names in Python."""
    hints = hints_of(kind, localns={"Predicate": object, "Mapping": Mapping}, include_extras=True)
    return {name: _argument(name, hint) for name, hint in hints.items()}


def check_names(given: Iterable[str], kind: type) -> None:
    """Raise `TypeError` when `given` has a name that `kind` does not declare."""
    for name in given:
        if name not in kind.__annotations__:
            raise TypeError(f"there is no argument {name!r}: use one of {', '.join(kind.__annotations__)}")


def _argument(name: str, hint: Any) -> Argument:
    told = ("", "")
    if get_origin(hint) is Annotated:
        hint, told = get_args(hint)
    types, choices = list[type](), list[str]()
    for each in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(each) is Literal:
            types.append(str)
            choices += get_args(each)
        else:
            types += _JSON_TYPES.get(get_origin(each) or each, ())
    return Argument(name, tuple(types), tuple(choices), *told)


_JSON_TYPES: Final[Mapping[Any, tuple[type, ...]]] = {
    **{kind: (kind,) for kind in (str, int, bool, type(None))},
    float: (int, float),
    Mapping: (dict,),
    frozenset: (list,),
}


class Awaited(NamedTuple):
    """The meaning of a state that a caller can wait for. A counted state takes a number, by default 1."""

    text: str
    counted: bool = False


OF_SUBSCRIPTION: Final[Mapping[str, Awaited]] = {
    "exists": Awaited("The subscription exists, on every partition."),
    "absent": Awaited("No such subscription exists."),
    "connected": Awaited("N consumers are connected, on every partition.", counted=True),
    "no-consumer": Awaited("The subscription exists, and no consumer is connected."),
    "caught-up": Awaited("The subscription exists, and all messages are acknowledged."),
    "delivered": Awaited("N messages were sent to consumers.", counted=True),
    "acked": Awaited("N messages since the start of the subscription are acknowledged.", counted=True),
}
OF_TOPIC: Final[Mapping[str, Awaited]] = {
    "exists": Awaited("The topic exists."),
    "absent": Awaited("No such topic exists."),
    "connected": Awaited("N producers are connected, all partitions together.", counted=True),
    "no-producer": Awaited("The topic exists, and no producer is connected."),
    "produced": Awaited("N messages were published.", counted=True),
}
