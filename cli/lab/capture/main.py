"""`pulsarium capture`: start and stop captures of a running broker, and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import LabOf, as_json, listed, of_broker
from pulsarium.cli.lab.capture.diff import diff
from pulsarium.cli.lab.capture.file import new_name
from pulsarium.cli.lab.capture.packets import dissector_, import_
from pulsarium.cli.lab.capture.proxy import proxy, proxy_options, run_proxy
from pulsarium.cli.lab.capture.replay import replay
from pulsarium.cli.lab.capture.show import export, show
from pulsarium.cli.refusal import RequestRefused, RunRefused


@click.group(cls=GroupedCommands, invoke_without_command=True)
@click.option("--proxy", "target", metavar="URL", help="Do the same as: pulsarium capture proxy URL.")
@proxy_options
@click.pass_context
def capture(context: click.Context, /, target: str | None, **options: Any) -> None:
    """Record every frame between clients and a broker, and read the records.

    \b
    Record a whole run, from the first connection on:
      pulsarium serve --capture run.pulscap
    Record a part of it, on a running broker:
      pulsarium capture start
      pulsarium capture stop --out part.pulscap
    Watch the frames live:
      pulsarium capture show --live
    Record the frames of a real broker:
      pulsarium capture proxy pulsar://localhost:6650 --out real.pulscap
    Compare the two:
      pulsarium capture diff real.pulscap run.pulscap

    A capture contains messages, but no tokens, passwords or other credentials: asterisks stand in their place.
    """
    given = context.get_parameter_source
    options_given = [name for name in options if given(name) is click.core.ParameterSource.COMMANDLINE]
    if context.invoked_subcommand is not None:
        if target is not None or options_given:
            raise RequestRefused(f"capture --proxy takes no command; pass options behind {context.invoked_subcommand}")
    elif target is not None:
        run_proxy(target, **options)
    else:
        click.echo(context.get_help())


@capture.command()
@click.argument("file", required=False)
@click.option(
    "--keep-entry", type=click.IntRange(min=0), metavar="BYTES", help="Keep at most this many bytes of each message."
)
@of_broker
def start(lab: LabOf, file: str | None, keep_entry: int | None) -> None:
    """Capture every frame of a running broker from now on.

    Without FILE the broker keeps the newest 64 MB in memory, for capture stop --out. With FILE, which must end with
    .pulscap, the broker writes the file below the folder of its --lab-dir. FILE/ makes a new file in that subfolder.

    \b
      pulsarium capture start
      pulsarium capture stop --out part.pulscap
    With a broker that writes files: pulsarium serve --lab-dir captures
      pulsarium capture start run.pulscap
    """
    path = file + new_name() if file is not None and file.endswith("/") else file
    if path is not None and not path.endswith(".pulscap"):
        raise RequestRefused(f"FILE {file}: end the name with .pulscap, or with / for a folder")
    started = lab.call("POST", "captures", {"path": path, "keepEntry": keep_entry})
    click.echo(_line(started))


@capture.command()
@click.argument("number", metavar="[ID]", required=False, type=int)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the capture to FILE."
)
@of_broker
def stop(lab: LabOf, number: int | None, out: Path | None) -> None:
    """End a capture. ID is needed only when several captures run."""
    if number is None:
        running = [each["id"] for each in lab.call("GET", "captures") if each["running"]]
        if len(running) != 1:
            raise RunRefused(f"{len(running) or 'no'} captures run: pass an ID of pulsarium capture list")
        number = running[0]
    stopped = lab.call("POST", f"captures/{number}/stop")
    if out is not None:
        from pulsarium.cli.lab.capture.file import pieces_of

        try:
            with out.open("wb") as file:
                for _, piece in pieces_of(lab, int(stopped["id"])):
                    file.write(piece)
        except OSError as error:
            raise RunRefused(f"{out}: {error.strerror or error}") from None
    click.echo(_line(stopped))


@capture.command("list")
@as_json
@of_broker
def list_(lab: LabOf, as_json: bool) -> None:
    """List the running captures, and the last ones that ended."""
    import json

    found = lab.call("GET", "captures")
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        listed(map(_line, found), "captures")


def _line(told: dict[str, Any]) -> str:
    where = told["path"] or "in memory"
    state = "running" if told["running"] else f"ended: {told['reason']}" if told["reason"] else "ended"
    lost = f", {told['dropped']} records dropped" if told["dropped"] else ""
    return f"{told['id']}  {state:<8} {told['frames']:>9} frames  since {told['startedAt']}  {where}{lost}"


for _command in (show, diff, export, import_, dissector_, replay, proxy):
    capture.add_command(_command)
