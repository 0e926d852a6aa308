"""`pulsarium explain`: what an error means and what to do next, without a network and without the documentation."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.refusal import RunRefused
from pulsarium.cli.terminal import styled
from pulsarium.proto.text import did_you_mean

if TYPE_CHECKING:
    from pulsarium.cli.known_errors import Text

FROM_STDIN: Final = "-"
WIDEST: Final = 100  # characters in a line
OF_CLIENTS: Final = {
    "TopicDoesNotExistException": "TopicNotFound",
    "LookupException": "ServiceNotReady",
    "ServiceUnitNotReady": "ServiceNotReady",
    "TooManyLookupRequestException": "TooManyRequests",
    "TopicTerminated": "TopicTerminatedError",
}
"""Names of Java's, Python's and Pulsarium's clients that do not come from those of the protocol."""
_AROUND: Final = re.compile(r"^(Result|Broker)?(.+?)(Exception|Error)?$")
_LINK: Final = re.compile(r"\[([^]]+)\]\((\w[^)]*)\)")
_WORD: Final = re.compile(r"[A-Za-z_]\w+")


def _names(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from pulsarium.cli.known_errors import NEXT

    return [CompletionItem(name) for name in NEXT if name.lower().startswith(incomplete.lower())]


@click.command(cls=GroupedCommand)
@click.argument("text", nargs=-1, shell_complete=_names)
def explain(text: tuple[str, ...]) -> None:
    """Explain an error: what it means, and what to do next.

    TEXT is the name of an error, in any client's spelling, or the line of a log or of a command that shows it, or words
    to search for. `-` reads a whole log from standard input. Without TEXT, list what can be explained. No broker is
    asked: `pulsarium why` explains why a message does not come.

    \b
    For example:
      pulsarium explain ProducerBusy
      pulsarium explain ProducerBusyException
      pulsarium explain "port 6650 is in use"
      pulsarium explain certificate
      pytest tests 2>&1 | pulsarium explain -
    """
    said = " ".join(text)
    if not said:
        _list()
        return
    lines = (line.decode(errors="replace") for line in sys.stdin.buffer) if said == FROM_STDIN else [said]
    shown = [*_found(lines, whole=said != FROM_STDIN)]
    if not shown:
        raise RunRefused(_unknown(said))
    click.echo("\n\n".join(shown))


def _found(lines: Iterable[str], *, whole: bool) -> Iterator[str]:
    """Yield what explains these lines, each entry once. A `whole` text may be a name or words to search for, too."""
    from pulsarium.cli.known_errors import NEXT, TEXTS, own_errors, shows

    spellings = _spellings()
    texts: dict[Text, None] = {}
    names: dict[str, None] = {}
    own: dict[str, str] = {}
    for line in lines:
        texts.update((row, None) for row in TEXTS if shows(row, line))
        names.update((spellings[word], None) for word in _WORD.findall(line) if word in spellings)
        if whole:
            own = {name: said for name, said in own_errors().items() if name in _WORD.findall(line)}
        if whole and not (texts or names or own):
            loose = {word.lower(): name for word, name in spellings.items()}
            names.update((name, None) for name in NEXT if loose.get(line.lower()) == name)
        if whole and not (texts or names or own):
            words = line.lower().split()
            texts.update((row, None) for row in TEXTS if _has(_text(row), words))
            names.update((name, None) for name in NEXT if _has(_answer(name), words))
    yield from (_text(row) for row in texts)
    yield from (_answer(name) for name in names)
    yield from (_entry(name, [said]) for name, said in own.items())


def _spellings() -> dict[str, str]:
    """Return the names of the protocol's errors by the spellings of clients, such as ProducerBusyException."""
    from pulsarium.cli.known_errors import NEXT

    found = dict(OF_CLIENTS)
    for name in NEXT:
        bare = _bare(name)
        for kind in ("Exception", "Error"):
            found.setdefault(f"{bare}{kind}", name)
            found.setdefault(f"Broker{bare}{kind}", name)
    found |= {name: name for name in NEXT}
    return found | {f"Result{word}": name for word, name in found.items()}


def _bare(name: str) -> str:
    match = _AROUND.match(name)
    return match[2] if match else name


def _has(entry: str, words: list[str]) -> bool:
    plain = click.unstyle(entry).lower()
    return all(word in plain for word in words)


def _text(row: Text) -> str:
    from pulsarium.cli.known_errors import text_of

    return _entry(row.name, [f"Cause: {row.cause}.", f"Next: {row.remedy}."], said=text_of(row))


def _answer(name: str) -> str:
    from pulsarium.cli.known_errors import NEXT, cases, meaning

    reasons = cases(name)
    about = ["The broker answers so in these cases:", *(f"- {each}" for each in reasons)] if reasons else []
    return _entry(name, [each for each in (meaning(name), *about, f"Next: {NEXT[name]}") if each])


def _entry(name: str, lines: list[str], *, said: str = "") -> str:
    shown = [styled(line, dim=True) for line in _wrapped(said).splitlines()]
    shown += (_wrapped(_LINK.sub(r"\1 (docs/\2)", line)) for line in lines)
    return "\n".join((styled(name, bold=True), *shown))


def _wrapped(line: str) -> str:
    return click.wrap_text(line, min(WIDEST, get_terminal_size().columns), "  ", "    ")


def _list() -> None:
    from pulsarium.cli.known_errors import NEXT, SECTIONS

    for section, rows in SECTIONS.items():
        click.echo(styled(section, bold=True))
        click.echo("".join(f"  {row.name}\n" for row in rows))
    click.echo(styled("Errors that the broker answers", bold=True))
    click.echo("\n".join(f"  {name}" for name in NEXT))


def _unknown(said: str) -> str:
    from pulsarium.cli.known_errors import NEXT

    if said == FROM_STDIN:
        return "no known error is in the text; `pulsarium explain` lists those that can be explained"
    near = did_you_mean(said, NEXT) or "`pulsarium explain` lists what can be explained"
    return f"nothing is known about {said!r}; {near}"
