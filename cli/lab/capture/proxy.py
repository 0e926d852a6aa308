"""`pulsarium capture proxy`: capture the frames between clients and any broker."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.grouped import together
from pulsarium.cli.lab.capture.file import capture_file
from pulsarium.cli.refusal import RequestRefused

if TYPE_CHECKING:
    from pulsarium.broker.proxying import ProxyOptions

proxy_options = together(
    click.option(
        "--out", metavar="FILE", help="Write the capture to FILE, or to a new file in a folder.  [default: here]"
    ),
    click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Listen on this address."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        metavar="N",
        help="Listen on this port.  [default: a free one]",
    ),
    click.option(
        "--keep-entry",
        type=click.IntRange(min=0),
        metavar="BYTES",
        help="Keep at most this many bytes of each message.",
    ),
)


@click.command()
@click.argument("target", metavar="URL", required=False)
@click.option("--target", "named", metavar="URL", help="Name the broker by an option instead.")
@proxy_options
def proxy(target: str | None, named: str | None, **options: Any) -> None:
    """Proxy a broker, and capture every frame that passes. The proxy runs until Ctrl-C.

    \b
      pulsarium capture proxy pulsar://localhost:6650 --port 6651 --out real.pulscap

    Point clients at the URL that the command prints. When a lookup is answered with the URL of a broker, the client
    receives a URL of the proxy instead, also for other brokers of the cluster. Nothing else is changed. URL may be
    pulsar+ssl://, and clients use pulsar://. Lookups over HTTP would bypass this proxy: pulsarium proxy forwards them,
    and has the whole lab.
    """
    given = target or named
    if given is None or (target and named):
        raise RequestRefused("capture proxy: pass the URL of one broker: pulsarium capture proxy pulsar://HOST:PORT")
    run_proxy(given, **options)


def run_proxy(url: str, out: str | None, host: str, port: int, keep_entry: int | None) -> None:
    """Run the proxy until SIGINT or SIGTERM.

    Raise `CommandRefusal` when the URL, the file or the port cannot be used.
    """
    from pulsarium.cli.lab.proxy import proxy_of, served
    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import run_job

    options = proxy_of(url, host=host, port=port)
    path = capture_file(out or "./", "--out")
    configure("info", "text")
    run_job(served(options), _proxy, options, path, keep_entry)


async def _proxy(options: ProxyOptions, path: Path, keep_entry: int | None) -> None:
    import trio

    from pulsarium.broker.proxying import recording

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with recording(options, path, keep_entry=keep_entry) as (capture, url):
            click.echo(f"pulsarium proxy {url} for {options.upstream}, {path}")
            async for _ in signals:
                break
    click.echo(f"{capture.frames} frames in {path}")
