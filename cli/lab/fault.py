"""`pulsarium fault`: inject faults into the connections of a running broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from pulsarium.broker.lab.arguments import Selected, When, json_arguments
from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.admin.output import table
from pulsarium.cli.completing import commands, faults
from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import NOT_YET, LabOf, as_json, asked, listed, of_broker, taking

ACTIONS: Final = {
    "answer": "Refuse the command with an error (--error, --message).",
    "drop": "Lose the frame.",
    "delay": "Delay the frame and all frames behind it (--seconds).",
    "duplicate": "Send the frame again (--times).",
    "reorder": "Let the next frame overtake this one.",
    "corrupt": "Break the checksum, or change a byte (--what).",
    "truncate": "Send the first bytes only, and close the connection (--keep).",
    "close": "Close the connection instead.",
    "stall": "Hold this frame and all behind it until the fault is removed.",
    "wrong-request-id": "Change the request id to one that nobody sent.",
    "observe": "Count the frame and do not change it.",
}
OF_ACTIONS: Final = ("error", "message", "seconds", "times", "what", "keep")
OF_RULES: Final = json_arguments(Selected)
WHO: Final = sorted(OF_RULES, key=lambda name: OF_RULES[name].types != (str,))  # names first


@click.group(cls=GroupedCommands)
def fault() -> None:
    """Inject faults between the broker and its clients.

    \b
    Lose the receipt of a message, and store the message:
      pulsarium fault add SEND drop --after-work --topic 'orders*'
    Refuse every third lookup:
      pulsarium fault add LOOKUP answer --error ServiceNotReady --every 3 --forever
    Slow the network down for one client:
      pulsarium fault add MESSAGE delay --seconds 0.2 --client-version '*Java*' --forever

    \b
    See the faults, wait for one, and end them:
      pulsarium fault list
      pulsarium fault wait 1
      pulsarium fault remove --all
    """


@fault.command(epilog="\b\nActions:\n" + "\n".join(f"  {name:17} {does}" for name, does in ACTIONS.items()))
@click.argument("command", shell_complete=commands)
@click.argument("action", type=click.Choice(list(ACTIONS)), metavar="ACTION")
@click.option("--after-work", is_flag=True, help="Handle the command, and apply ACTION to its answer.")
@click.option(
    "--error", metavar="NAME", help="answer: the ServerError, such as ServiceNotReady.  [default: UnknownError]"
)
@click.option("--message", metavar="TEXT", help="answer: the text of the error.")
@click.option("--seconds", type=float, metavar="S", help="delay: delay by S seconds.  [default: 1]")
@click.option("--times", type=int, metavar="N", help="duplicate: send N more copies.  [default: 1]")
@click.option(
    "--what", type=click.Choice(["checksum", "byte"]), help="corrupt: the part to break.  [default: checksum]"
)
@click.option("--keep", type=int, metavar="BYTES", help="truncate: send this many bytes.  [default: 10]")
@taking(Selected)
@click.option("--forever", is_flag=True, help="Apply ACTION to every matching frame, without end.")
@taking(When)
@as_json
@of_broker
def add(
    lab: LabOf,
    command: str,
    action: str,
    after_work: bool,
    forever: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Apply ACTION to each matching COMMAND. Without --count or --forever, only to the first one.

    COMMAND is a name of Pulsar's protocol (SEND, ACK, MESSAGE ...), or '*' for all. The fault applies to open
    connections too.
    """
    if forever and given["count"] is not None:
        raise click.UsageError("pass --forever or --count, not both")
    what = {name: given[name] for name in OF_ACTIONS if given[name] is not None}
    rule = {
        "command": command.upper(),
        "action": {"kind": action, **what},
        **asked(given, Selected),
        **asked(given, When),
    }
    if after_work:
        rule["stage"] = "after"
    if forever:
        rule["count"] = None
    _print(lab.call("POST", "faults", rule), as_json)


@fault.command()
@click.argument("command", shell_complete=commands)
@taking(Selected)
@as_json
@of_broker
def observe(lab: LabOf, command: str, as_json: bool, **given: Any) -> None:
    """Count the matching COMMANDs and change none. `fault list` shows the count, `fault wait` waits for a number."""
    rule = {"command": command.upper(), "action": {"kind": "observe"}, **asked(given, Selected)}
    _print(lab.call("POST", "faults", rule), as_json)


@fault.command("list")
@as_json
@of_broker
def list_(lab: LabOf, as_json: bool) -> None:
    """List the faults, and how often each has acted (hits). The broker tries them in this order."""
    found = lab.call("GET", "faults")
    if as_json or found:
        _print(found, as_json)
    else:
        listed((), "faults")


@fault.command()
@click.argument("ids", metavar="ID...", nargs=-1, type=int, shell_complete=faults)
@click.option("--all", "everything", is_flag=True, help="Remove all faults.")
@of_broker
def remove(lab: LabOf, ids: tuple[int, ...], everything: bool) -> None:
    """Remove faults. The frames that they held up go on."""
    if everything == bool(ids):
        raise click.UsageError("pass the IDs of the faults to remove, or --all")
    if everything:
        lab.call("DELETE", "faults")
    for each in ids:
        lab.call("DELETE", f"faults/{each}")


@fault.command()
@click.argument("id", type=int, shell_complete=faults)
@click.option(
    "--hits", type=click.IntRange(min=1), default=1, show_default=True, help="Wait for this many hits in all."
)
@click.option("--timeout", type=float, default=30.0, show_default=True, metavar="S", help="Give up after S seconds.")
@as_json
@of_broker
def wait(lab: LabOf, id: int, hits: int, timeout: float, as_json: bool) -> None:
    """Wait until fault ID has acted --hits times."""
    try:
        done = lab.wait(f"faults/{id}/wait", timeout, n=hits)
    except ServerError as error:
        if error.status != NOT_YET:
            raise
        raise AdminError(f"fault {id} has not acted {hits} times within {timeout:g} s", error.message) from None
    _print(done, as_json)


def _print(answer: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo(table([_row(rule) for rule in answer]) if isinstance(answer, list) else table([_row(answer)]))


def _row(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return one fault as a row of the table."""
    action = dict(rule["action"])
    kind = action.pop("kind")
    words = [kind, *(f"{name}={value}" for name, value in action.items())]
    who = [f"{name}={rule[name]}" for name in WHO if rule[name] not in ("*", None)]
    return {
        "id": rule["id"],
        "command": rule["command"],
        "action": " ".join(words) + (", after the work" if rule["stage"] == "after" else ""),
        "which": " ".join(who),
        "when": _when(rule),
        "hits": rule["hits"],
    }


def _when(rule: Mapping[str, Any]) -> str:
    often = "always" if rule["count"] is None else "once" if rule["count"] == 1 else f"{rule['count']} times"
    parts = [often]
    if rule["skip"]:
        parts.append(f"after {rule['skip']}")
    if rule["every"] > 1:
        parts.append(f"1 of {rule['every']}")
    if rule["probability"] < 1:
        parts.append(f"p={rule['probability']:g} seed={rule['seed']}")
    return ", ".join(parts)
