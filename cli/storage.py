"""`pulsarium storage`: show the contents of a data folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.refusal import RunRefused


@click.group(cls=GroupedCommands)
def storage() -> None:
    """Look into a data folder, without a broker."""


@storage.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--entries", is_flag=True, help="List the place of each run of entries in the log.")
@click.option("--json", "as_json", is_flag=True, help="Print the contents as JSON.")
def show(folder: Path, entries: bool, as_json: bool) -> None:
    """Show the entry log of the data folder DIR: its files, their records and checksums, and the ledgers.

    The command only reads. The folder may belong to a running broker, to a stopped one, or to one that was killed.

    \b
    For example:
      pulsarium storage show ./data
      pulsarium storage show ./data --entries --json
    """
    from pulsarium.broker.storage.inspection import inspect
    from pulsarium.broker.storage.interface import StorageError

    try:
        contents = inspect(folder)
    except (StorageError, OSError) as error:
        raise RunRefused(str(error)) from None
    shown: dict[str, Any] = {
        "applied": contents.applied._asdict(),
        "files": [
            {
                "file": file.name,
                "bytes": file.size,
                "records": file.records,
                "firstRecord": file.first_record,
                "entries": file.entries,
                "garbage": round(file.garbage, 3),
                "state": file.state,
            }
            for file in contents.files
        ],
        "ledgers": [ledger._asdict() for ledger in contents.ledgers],
    }
    if entries:
        shown["entries"] = [
            {
                "ledger": row.ledger_id,
                "first": row.piece.first,
                "last": row.piece.first + row.piece.entries - 1,
                "file": file.name,
                "offset": row.piece.offset,
                "bytes": row.piece.size,
                "needed": row.needed,
            }
            for file in contents.files
            for row in file.rows
        ]
    click.echo(json.dumps(shown, indent=2) if as_json else _text(shown))


def _text(shown: dict[str, Any]) -> str:
    from pulsarium.cli.admin.output import table

    place = shown["applied"]
    parts = [
        f"The database has the log up to record {place['sequence']} (file {place['file']}, offset {place['offset']})."
    ]
    parts += (table(shown[name]) for name in ("files", "ledgers", "entries") if name in shown)
    return "\n\n".join(parts)
