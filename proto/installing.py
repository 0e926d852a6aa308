"""Find out how this Pulsarium was installed, and the command that adds an extra to the installation."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

NAME: Final = "pulsarium"
IMAGE: Final = Path("/opt/pulsarium")
_MARKED: Final = re.compile(r"\s*;\s*extra == [\"']([\w-]+)[\"']\s*$")
_NAME: Final = re.compile(r"[\w.-]+")
_NESTED: Final = re.compile(rf"{NAME}\[([\w,-]+)\]")


def remedy(extra: str) -> str:
    """Return what to do for an extra that is missing, as the installation of this process needs it."""
    prefix = Path(sys.prefix)
    if prefix == IMAGE:
        return f'the container image does not have it; use an installation with: pip install "{NAME}[{extra}]"'
    return f"install it with: {_command(prefix, extra)}"


def _command(prefix: Path, extra: str) -> str:
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {NAME} {' '.join(map(shlex.quote, sorted(set(filter(_is_missing, libraries(extra))))))}"
    named = f'"{_source()}[{extra}]"'
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install {named}"
    if any(part.startswith("archive-v") for part in prefix.parts):
        return f"uvx --from {named} {NAME}"
    if find_spec("pip") is None and _is_of_uv(prefix):
        return f"uv pip install {named}"
    return f'pip install "{NAME}[{extra}]"'


def libraries(extra: str) -> Iterator[str]:
    """Yield the requirements of an extra, and of the extras that it names."""
    for requirement in metadata.requires(NAME) or ():
        marked = _MARKED.search(requirement)
        if marked is None or marked[1] != extra:
            continue
        nested = _NESTED.match(requirement)
        if nested is None:
            yield requirement[: marked.start()]
        else:
            for name in nested[1].split(","):
                yield from libraries(name)


def _is_missing(requirement: str) -> bool:
    name = _NAME.match(requirement)
    try:
        return name is None or not metadata.version(name[0])
    except metadata.PackageNotFoundError:
        return True


def _source() -> str:
    """Return the folder of the checkout that was installed, or the name of the package."""
    try:
        url = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}").get("url", "")
    except (metadata.PackageNotFoundError, ValueError):
        url = ""
    return str(url).removeprefix("file://") if str(url).startswith("file://") else NAME


def _is_of_uv(prefix: Path) -> bool:
    try:
        return bool(re.search(r"^uv = ", (prefix / "pyvenv.cfg").read_text(), re.MULTILINE))
    except OSError:
        return False
