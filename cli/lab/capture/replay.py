"""`pulsarium capture replay`: send the client's frames of a capture to another broker, and compare the answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.lab.capture.diff import report
from pulsarium.cli.lab.capture.file import capture_file
from pulsarium.cli.refusal import RequestRefused, RunRefused

if TYPE_CHECKING:
    from pulsarium.broker.lab.proxy.upstream import Upstream


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--url", required=True, metavar="URL", help="Send the frames to this broker: pulsar://HOST:PORT.")
@click.option("--out", metavar="FILE", help="Keep the capture of the replay in FILE, or in a new file in a folder.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this many seconds for a frame that the recorded broker sent.",
)
@click.option("--ignore", multiple=True, metavar="NAME", help="Ignore a command such as FLOW when comparing.")
@click.option("--texts", is_flag=True, help="Compare the texts of errors too, not only their codes.")
def replay(file: Path, url: str, out: str | None, wait: float, ignore: tuple[str, ...], texts: bool) -> None:
    """Send the client's frames of a capture to any broker, and compare the broker's answers with the recorded ones.

    \b
      pulsarium capture replay real.pulscap --url pulsar://localhost:6650
      pulsarium capture replay run.pulscap --url pulsar://localhost:6650 --out again.pulscap

    The frames go out in the recorded order, each when the frames that the recorded broker had sent before have arrived,
    or after --wait. Message ids and transaction ids become those of the other broker. Credentials are not in captures,
    so the broker must need none. All connections go to URL. The comparison is that of pulsarium capture diff, and the
    exit code is 1 when there is a difference.
    """
    from pulsarium.broker.lab.proxy.upstream import Upstream

    try:
        target = Upstream.plain(url)
    except ValueError as error:
        raise RequestRefused(str(error)) from None
    if out is not None:
        path = capture_file(out, "--out")
        _run(file, path, target, wait)
        report(file, path, ignore, texts)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.pulscap"
        _run(file, path, target, wait)
        report(file, path, ignore, texts)


def _run(file: Path, path: Path, target: Upstream, wait: float) -> None:
    import trio

    from pulsarium.capture.file import CaptureError, CaptureWriter, Header
    from pulsarium.cli.lab.capture.player import Player

    if path.exists() and path.samefile(file):
        raise RequestRefused(f"--out {path}: this is the capture to replay; name another file")
    try:
        with path.open("wb") as out:
            writer = CaptureWriter(out.write, Header(0, str(target)))
            trio.run(Player(writer, target, wait).play, file)
    except* CaptureError as group:
        raise RunRefused(f"{file}: {_first(group)}") from None
    except* OSError as group:
        error = _first(group)
        raise RunRefused(f"capture replay: {target}: {getattr(error, 'strerror', None) or error}") from None
    except* click.ClickException as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
