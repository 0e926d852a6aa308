"""Masks as JSON: what POST /lab/masks takes, and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pulsarium.broker.lab.masks import ANY, Mask, MaskError, WornMask

if TYPE_CHECKING:
    from pulsarium.broker.lab.masks import Masks

# name in JSON: (name in Python, what it is)
_OF_MASK: Final[dict[str, tuple[str, type]]] = {
    "profile": ("profile", str),
    "maxProtocolVersion": ("max_protocol_version", int),
    "flags": ("flags", dict),
    "clientFlags": ("client_flags", dict),
    "allowed": ("allowed", list),
    "unknownError": ("unknown_error", str),
}
_OF_CLIENT: Final[dict[str, tuple[str, type]]] = {
    "clientVersion": ("client_version", str),
    "listener": ("listener", str),
    "role": ("role", str),
    "disconnect": ("disconnect", bool),
}
_WORDS: Final = {str: "a text", int: "a number", dict: "an object", list: "a list", bool: "true or false"}


def add_from_json(masks: Masks, given: Any) -> WornMask:
    """Masks.add, with its arguments in one object. Raises MaskError."""
    if not isinstance(given, dict):
        raise MaskError("a mask is an object, such as " + '{"maxProtocolVersion": 19}')
    known = {**_OF_MASK, **_OF_CLIENT}
    for name, value in given.items():
        if name not in known:
            raise MaskError(f"{name}: a mask takes {', '.join(known)}")
        wanted = known[name][1]
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
    mask = Mask(**{_OF_MASK[name][0]: value for name, value in said.items() if name in _OF_MASK})
    return masks.add(mask, **{_OF_CLIENT[name][0]: value for name, value in said.items() if name in _OF_CLIENT})


def mask_to_json(worn: WornMask) -> dict[str, Any]:
    """What it is and whom it was given to; only what was asked for."""
    shown: dict[str, Any] = {"id": worn.id}
    for name, (attribute, _) in _OF_MASK.items():
        value = getattr(worn.mask, attribute)
        if value or value == 0 or isinstance(value, frozenset):
            shown[name] = sorted(value) if isinstance(value, frozenset) else value
    for name, attribute in (("clientVersion", "client_version"), ("listener", "listener"), ("role", "role")):
        if getattr(worn, attribute) != ANY:
            shown[name] = getattr(worn, attribute)
    return {**shown, "hits": worn.hits}
