"""`pulsarium capture import` and `export --pcapng`: packets to captures, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarium.cli.lab.capture.file import capture_file, header_of, records_of
from pulsarium.cli.refusal import RequestRefused, RunRefused

if TYPE_CHECKING:
    from pulsarium.capture.pcap.blocks import Packet

_PIECE = 1 << 20


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--out", metavar="FILE", help="Write the capture to FILE, or to a new file in a folder.  [default: here]")
def import_(file: Path, out: str | None) -> None:
    """Make a capture of packets that tcpdump or Wireshark recorded (pcapng or pcap), of any broker.

    \b
      tcpdump -i any -s 0 -w broker.pcap tcp port 6650
      pulsarium capture import broker.pcap --out broker.pulscap
      pulsarium lint broker.pulscap
      pulsarium check broker.pulscap

    The command puts the segments of each connection in order, with retransmissions, and keeps the connections that
    speak Pulsar's protocol. Frames with missing bytes are left out, and the command says how many bytes are missing.
    Connections with TLS cannot be read.
    """
    from pulsarium.capture.file import CaptureError
    from pulsarium.capture.pcap.importer import Importer

    packets, before = _packets(file), ""
    try:
        first = next(packets, None)
        if first is None:
            raise RunRefused(f"{file}: the file has no packets")
        path, last = capture_file(out or "./", "--out"), first
        if path.exists() and path.samefile(file):
            raise RequestRefused(f"--out {out}: this is the file with the packets; name another one")
        with path.open("wb") as target:
            before = f"; the frames before are in {path}"
            importer = Importer(target.write, first.ns)
            importer.feed(first)
            for last in packets:
                importer.feed(last)
            importer.end(last.ns)
    except CaptureError as error:
        raise RunRefused(f"{file}: {error}{before}") from None
    except OSError as error:
        raise RunRefused(f"{error.filename}: {error.strerror or error}") from None
    click.echo(f"{importer.frames} frames of {importer.connections} connections in {path}")
    for notice, count in importer.notices.items():
        click.echo(f"{count} {notice}", err=True)


def _packets(file: Path) -> Iterator[Packet]:
    from pulsarium.capture.pcap.blocks import PacketReader

    reader = PacketReader()
    with file.open("rb") as source:
        while piece := source.read(_PIECE):
            yield from reader.feed(piece)
    if reader.pending:
        click.echo(f"{file}: the last packet is incomplete: {reader.pending} bytes", err=True)


@click.command("dissector")
def dissector_() -> None:
    """Print the Wireshark dissector of Pulsar's protocol.

    \b
      pulsarium capture dissector > ~/.local/lib/wireshark/plugins/pulsar.lua
      wireshark run.pcapng
      tshark -X lua_script:pulsar.lua -r run.pcapng -Y 'pulsar.command == "SEND"'
    """
    from pulsarium.capture.pcap.dissector import dissector

    click.echo(dissector(), nl=False)


def export_packets(file: Path, out: Path) -> None:
    """Write the capture `file` as pcapng."""
    from pulsarium.capture.pcap.exporter import Exporter

    header = header_of(file)
    try:
        with out.open("wb") as target:
            exporter = Exporter(target.write, header)
            for number, record in records_of(file):
                exporter.feed(number, record)
    except OSError as error:
        raise RunRefused(f"{out}: {error.strerror or error}") from None
    click.echo(f"{out}: {exporter.packets} packets")
