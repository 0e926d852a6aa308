"""The policies of a namespace as one JSON object, as Pulsar shows it, and the bundles of the namespace."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pulsarium.broker.config.keys import MOST_BUNDLES, Config
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import ABSENT, NAMESPACE_DEFAULTS, POLICIES

LAST_HASH = 0xFFFFFFFF


def boundary_text(boundary: int) -> str:
    return f"0x{boundary:08x}"


def even_boundaries(bundles: int) -> list[str]:
    """Return the boundaries of `bundles` ranges of equal size (defaultNumberOfNamespaceBundles)."""
    width = (LAST_HASH + 1) // bundles
    return [boundary_text(width * index) for index in range(bundles)] + [boundary_text(LAST_HASH)]


def ranges(boundaries: Sequence[str]) -> list[str]:
    """Return the names of the ranges between boundaries."""
    return [f"{low}_{high}" for low, high in pairwise(boundaries)]


def hash_position(topic: TopicName) -> int:
    """Return the position of a topic in the hash space: the CRC32 of its name."""
    return zlib.crc32(str(topic).encode())


def bundle_of(boundaries: Sequence[str], topic: TopicName) -> str:
    """Return the range of a topic. `boundaries` cover the whole hash space, in the order of their texts."""
    end = bisect_right(boundaries, boundary_text(hash_position(topic)), 1, len(boundaries) - 1)
    return f"{boundaries[end - 1]}_{boundaries[end]}"


def bundle_named(boundaries: Sequence[str], namespace: str, named: str) -> str:
    """Return the existing range with the name `named`. Raise `ValueError` with Pulsar's text if there is none."""
    parts = named.split("_")
    if len(parts) < 2 or not parts[1]:
        raise ValueError(f"Invalid bundle range: {named}")
    low, high = (decoded(part) for part in parts[:2])
    if low > high:
        raise ValueError(f"Invalid range: [{low}..{high})")
    if low == high:
        raise ValueError("Cannot create bundle object for an empty key range")
    asked = f"{boundary_text(low % 2**64)}_{boundary_text(high % 2**64)}"
    found = next((name for name in ranges(boundaries) if edges(name)[0] == low), None)
    if found is None:
        raise ValueError(f"Cannot find bundle {namespace}/{asked} in the bundles list")
    if found != asked:
        text = f"Invalid upper boundary for bundle {namespace}/{asked}. "
        raise ValueError(f"{text}Expected upper boundary of {namespace}/{found}")
    return found


def decoded(number: str) -> int:
    """Parse a hexadecimal or decimal number as Java's Long.decode does. Raise `ValueError` with Java's text."""
    if not number:
        raise ValueError("Zero length string")
    is_hex = number.lower().startswith("0x")
    digits = number[2:] if is_hex else number
    try:
        value = int(digits, 16 if is_hex else 10)
    except ValueError:
        value = 2**63
    if not -(2**63) <= value < 2**63:
        raise ValueError(f'For input string: "{digits}"{" under radix 16" if is_hex else ""}')
    return value


def edges(bundle: str) -> tuple[int, int]:
    """Return the lower and upper boundary of a range."""
    low, high = bundle.split("_")
    return int(low, 16), int(high, 16)


def middle(bundle: str) -> int:
    """Return the boundary between two halves of equal size (range_equally_divide)."""
    low, high = edges(bundle)
    return low + (high - low) // 2


def topics_middle(topics: Sequence[TopicName]) -> int | None:
    """Return the boundary between two halves with equally many topics (topic_count_equally_divide).

    Return None for fewer than two topics.
    """
    if len(topics) < 2:
        return None
    positions = sorted(map(hash_position, topics))
    half = len(positions) // 2
    return positions[half - 1] + (positions[half] - positions[half - 1]) // 2


def split_at(boundaries: Sequence[str], bundle: str, positions: Iterable[int]) -> list[str]:
    """Return the boundaries after a range is split. Positions outside of the range are ignored."""
    low, high = edges(bundle)
    inner = {boundary_text(position) for position in positions if low < position < high}
    return sorted({*boundaries, *inner})


Json = dict[str, Any]

REPLICATORS_UPDATE_SCHEMAS = "is_allow_auto_update_schema_with_replicator"  # 5.0.1
TYPES: Mapping[str, Any] = {row.kept: dict if row.per_cluster else row.json for row in POLICIES}
OTHER_TYPES: Mapping[str, Any] = {"bundles": dict, "resource_group_name": str, REPLICATORS_UPDATE_SCHEMAS: bool}


def whole_policies(kept: Mapping[str, Any], config: Config) -> Json:
    """Return the stored policies of a namespace, with defaults for the others."""
    shown = {
        name: kept.get(name, default)
        for name, default in NAMESPACE_DEFAULTS.items()
        if kept.get(name) is not None or default is not ABSENT
    }
    if "bundles" not in shown:
        shown = {**shown, "bundles": bundles_data(even_boundaries(config.defaultNumberOfNamespaceBundles))}
        shown = {name: shown[name] for name in NAMESPACE_DEFAULTS if name in shown}
    return shown


def boundaries_of(kept: Mapping[str, Any], config: Config) -> list[str]:
    """Return the boundaries of a namespace's bundles."""
    bundles = kept.get("bundles")
    boundaries: list[str] = (
        even_boundaries(config.defaultNumberOfNamespaceBundles) if not bundles else bundles["boundaries"]
    )
    return boundaries


def read_policies(policies: Mapping[str, Any]) -> Json:
    """Return the fields of `policies` that Pulsar knows, for the store."""
    return {name: policies[name] for name in NAMESPACE_DEFAULTS if policies.get(name) is not None}


def is_readable(name: str, value: Any) -> bool:
    """Return whether a policy has a value of the right type. Unknown policies may have any value."""
    if value is None or name not in NAMESPACE_DEFAULTS:
        return True
    kind = TYPES.get(name) or OTHER_TYPES.get(name) or type(NAMESPACE_DEFAULTS[name])
    if kind is int:
        return isinstance(value, (int, float))
    if kind in (list, list[str]):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, kind if kind in (bool, str) else dict)


def bundles_data(boundaries: list[str]) -> Json:
    return {"boundaries": boundaries, "numBundles": len(boundaries) - 1}


def read_bundles(sent: Any, default: int) -> Json:
    """Return the bundles of a new namespace. Raise `ValueError` for boundaries that do not cover the hash space."""
    if not isinstance(sent, dict):
        return bundles_data(even_boundaries(default))
    boundaries = sent.get("boundaries")
    if not boundaries:
        count = sent.get("numBundles")
        if not isinstance(count, int) or count <= 0:
            count = default
        if count > MOST_BUNDLES:
            raise ValueError(f"{count} bundles are too many for this broker: at most {MOST_BUNDLES}")
        return bundles_data(even_boundaries(count))
    if not isinstance(boundaries, list):
        raise ValueError("The boundaries of bundles must be a list of strings")
    try:
        numbers = sorted({int(str(boundary), 16) for boundary in boundaries})
    except ValueError:
        raise ValueError("The boundaries of bundles must be hexadecimal numbers") from None
    if numbers[0] != 0 or numbers[-1] != LAST_HASH:
        first, last = boundary_text(numbers[0]), boundary_text(numbers[-1])
        raise ValueError(f"Input bundles do not cover the whole hash range. first:{first}, last:{last}")
    return bundles_data([boundary_text(number) for number in numbers])
