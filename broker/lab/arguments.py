"""The arguments of rules and masks, each declared once: Python's keywords, JSON, the command line and docs/faults.md
follow from these rows. Imports nothing of the broker: `pulsarium fault` begins with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypedDict, Union, get_args, get_origin
from typing import get_type_hints as hints_of

if TYPE_CHECKING:
    from pulsarium.broker.lab.faults.which import Predicate

ANY: Final = "*"


class Told(NamedTuple):
    """Say what an argument means, and how the command line names a value of it."""

    text: str
    metavar: str = ""


class Selected(TypedDict, total=False):
    """Which frames a rule is about: all of it has to fit. Texts are globs; "*" fits also what has no such name."""

    sender: Annotated[
        Literal["client", "broker"] | None,
        Told("`client` or `broker`, where either sends the command (PING, CLOSE_CONSUMER); otherwise who sends it."),
    ]
    topic: Annotated[
        str,
        Told(
            "Glob of the topic: `orders*`, `public/default/*`, `persistent://...`; partitions by the topic's name too."
        ),
    ]
    client_version: Annotated[str, Told("Glob of what the client calls itself in CONNECT.")]
    producer: Annotated[str, Told("Glob of the producer's name.")]
    consumer: Annotated[str, Told("Glob of the consumer's name.")]
    subscription: Annotated[str, Told("Glob of the subscription's name.")]
    broker: Annotated[int | None, Told("Of one broker of several; the first is 0.", "INDEX")]
    predicate: Annotated[
        Predicate | None,
        Told(
            "Python only: a function of the frame (`name`, `body`, `entry`, `topic`, `session` ...). It must not wait."
        ),
    ]


class When(TypedDict, total=False):
    """Which of the frames that were selected."""

    skip: Annotated[int, Told("Not the first N.", "N")]
    every: Annotated[int, Told("Only the first of each K.", "K")]
    count: Annotated[
        int | None,
        Told(
            "So many in all, 1 unless said; without end: `None`, in JSON `null`, on the command line `--forever`.", "N"
        ),
    ]
    probability: Annotated[float, Told("Only by chance, from 0 to 1.", "P")]
    seed: Annotated[int | None, Told("Of chance, and of the byte that is corrupted: it falls the same way again.", "N")]


class Which(Selected, When, total=False):
    """All that says what a rule acts on."""

    stage: Annotated[
        Literal["before", "after"],
        Told("`before`: the frame itself; `after`: the client's command is handled, and its answer is meant."),
    ]


class Whose(TypedDict, total=False):
    """Which connections wear a mask: all of it has to fit."""

    client_version: Annotated[str, Told("Glob of what the client calls itself in CONNECT.")]
    listener: Annotated[str, Told("Glob of the URL that the client came by, such as `pulsar+ssl:*`.")]
    role: Annotated[str, Told("Glob of the role that the client proved.")]


class Worn(Whose, total=False):
    """The same, and what becomes of those that are open."""

    disconnect: Annotated[bool, Told("Close open connections that it is for: they come back behind the mask.")]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as JSON and the command line take it. `types` are Python's for a value of JSON."""

    name: str
    types: tuple[type, ...]
    choices: tuple[str, ...] = ()
    text: str = ""
    metavar: str = ""


def json_name(name: str) -> str:
    """Return the name of an argument in JSON: clientVersion."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def json_arguments(*kinds: type) -> dict[str, Argument]:
    """Return those that JSON can have, by their names there."""
    found = (each for kind in kinds for each in arguments_of(kind).values())
    return {json_name(each.name): each for each in found if {*each.types} - {type(None)}}


def arguments_of(kind: type) -> dict[str, Argument]:
    """Return the arguments that a class declares by its annotations, by their names in Python."""
    hints = hints_of(kind, localns={"Predicate": object, "Mapping": Mapping}, include_extras=True)
    return {name: _argument(name, hint) for name, hint in hints.items()}


def check_names(given: Iterable[str], kind: type) -> None:
    """Raise TypeError for an argument that is not declared."""
    for name in given:
        if name not in kind.__annotations__:
            raise TypeError(f"there is no argument {name!r}; there are {', '.join(kind.__annotations__)}")


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
