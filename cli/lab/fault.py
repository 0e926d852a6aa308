"""`pulsarium fault`: what goes wrong on the wire of a running broker."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.admin.table import table
from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import LabOf, of_broker

SLICE: Final = 20.0  # seconds that one call waits: shorter than any proxy's patience
NOT_YET: Final = 408
ACTIONS: Final = {
    "answer": "is answered with an error instead (--error, --message)",
    "drop": "is lost",
    "delay": "comes later, and so does all behind it (--seconds)",
    "duplicate": "comes again (--times)",
    "reorder": "is overtaken by the next one",
    "corrupt": "has a broken checksum, or another byte (--what)",
    "truncate": "ends after some bytes, and the connection with it (--keep)",
    "close": "never comes: the connection is closed",
    "stall": "never comes, nor does anything behind it, until the fault is removed",
    "wrong-request-id": "has an id that nobody asked for",
    "observe": "comes as it is, and is counted",
}
OF_ACTIONS: Final = ("error", "message", "seconds", "times", "what", "keep")
SELECTORS: Final = ("topic", "client_version", "producer", "consumer", "subscription", "sender", "broker")
OCCURRENCE: Final = ("skip", "every", "probability", "seed")

as_json = click.option("--json", "as_json", is_flag=True, help="Print what the broker answers.")


@click.group(cls=GroupedCommands)
def fault() -> None:
    """Let things go wrong between the broker and its clients.

    \b
    The receipt of a message is lost, the message is not:
      pulsarium fault add SEND drop --after-work --topic 'orders*'
    Each third lookup finds nobody who serves the topic:
      pulsarium fault add LOOKUP answer --error ServiceNotReady --every 3 --forever
    A slow network, for one client:
      pulsarium fault add MESSAGE delay --seconds 0.2 --client-version '*Java*' --forever
    \b
    What happened, and the end of it:
      pulsarium fault list
      pulsarium fault wait 1
      pulsarium fault remove --all
    """


def selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which frames."""
    for option in reversed(
        (
            click.option("--topic", metavar="GLOB", help="Of these topics: 'orders*', 'public/default/*'."),
            click.option("--client-version", metavar="GLOB", help="Of clients that call themselves so."),
            click.option("--producer", metavar="GLOB", help="Of producers of this name."),
            click.option("--consumer", metavar="GLOB", help="Of consumers of this name."),
            click.option("--subscription", metavar="GLOB", help="Of subscriptions of this name."),
            click.option(
                "--sender",
                type=click.Choice(["client", "broker"]),
                help="Where either may send it: PING, CLOSE_CONSUMER.",
            ),
            click.option("--broker", metavar="INDEX", type=int, help="Of one broker of several; the first is 0."),
        )
    ):
        command = option(command)
    return command


@fault.command(
    epilog="\b\nWhat may become of a frame:\n" + "\n".join(f"  {name:17} {does}" for name, does in ACTIONS.items())
)
@click.argument("command")
@click.argument("action", type=click.Choice(list(ACTIONS)), metavar="ACTION")
@click.option("--after-work", is_flag=True, help="The command is handled; what becomes of it happens to its answer.")
@click.option("--error", metavar="NAME", help="answer: a ServerError such as ServiceNotReady.  [default: UnknownError]")
@click.option("--message", metavar="TEXT", help="answer: its text.")
@click.option("--seconds", type=float, metavar="S", help="delay: how long.  [default: 1]")
@click.option("--times", type=int, metavar="N", help="duplicate: how often more.  [default: 1]")
@click.option("--what", type=click.Choice(["checksum", "byte"]), help="corrupt: what.  [default: checksum]")
@click.option("--keep", type=int, metavar="BYTES", help="truncate: after how many.  [default: 10]")
@selecting
@click.option("--count", type=int, metavar="N", help="How often.  [default: 1]")
@click.option("--forever", is_flag=True, help="Each time.")
@click.option("--skip", type=int, metavar="N", help="Not the first N.")
@click.option("--every", type=int, metavar="K", help="Only the first of each K.")
@click.option("--probability", type=float, metavar="P", help="Only by chance, from 0 to 1.")
@click.option("--seed", type=int, metavar="N", help="Of chance, so that it falls the same way again.")
@as_json
@of_broker
def add(
    lab: LabOf,
    command: str,
    action: str,
    after_work: bool,
    count: int | None,
    forever: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Let ACTION become of each COMMAND that the options select: of one, if nothing else is said.

    COMMAND is a name of Pulsar's protocol (SEND, ACK, MESSAGE ...), or '*'. Connections that are open are meant too.
    """
    if forever and count is not None:
        raise click.UsageError("--forever or --count, not both")
    what = {name: given[name] for name in OF_ACTIONS if given[name] is not None}
    rule = {"command": command.upper(), "action": {"kind": action, **what}, **_asked(given, *SELECTORS, *OCCURRENCE)}
    if after_work:
        rule["stage"] = "after"
    if forever:
        rule["count"] = None
    elif count is not None:
        rule["count"] = count
    _print(lab.call("POST", "faults", rule), as_json)


@fault.command()
@click.argument("command")
@selecting
@as_json
@of_broker
def observe(lab: LabOf, command: str, as_json: bool, **given: Any) -> None:
    """Count COMMANDs, and touch none: `fault list` says how many, `fault wait` waits for them."""
    rule = {"command": command.upper(), "action": {"kind": "observe"}, **_asked(given, *SELECTORS)}
    _print(lab.call("POST", "faults", rule), as_json)


@fault.command("list")
@as_json
@of_broker
def list_(lab: LabOf, as_json: bool) -> None:
    """The faults there are, in the order in which they are asked, with how often they acted (hits)."""
    _print(lab.call("GET", "faults"), as_json)


@fault.command()
@click.argument("ids", metavar="ID...", nargs=-1, type=int)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@of_broker
def remove(lab: LabOf, ids: tuple[int, ...], everything: bool) -> None:
    """End faults. What they held up goes on."""
    if everything == bool(ids):
        raise click.UsageError("say which: some IDs, or --all")
    if everything:
        lab.call("DELETE", "faults")
    for each in ids:
        lab.call("DELETE", f"faults/{each}")


@fault.command()
@click.argument("id", type=int)
@click.option("--hits", type=click.IntRange(min=1), default=1, show_default=True, help="How many, in all.")
@click.option("--timeout", type=float, default=30.0, show_default=True, metavar="S", help="How long at most.")
@as_json
@of_broker
def wait(lab: LabOf, id: int, hits: int, timeout: float, as_json: bool) -> None:
    """Wait until fault ID has acted."""
    end = time.monotonic() + timeout
    while True:
        left = max(end - time.monotonic(), 0.0)
        try:
            done = lab.call("GET", f"faults/{id}/wait", n=hits, timeout=min(left, SLICE))
        except ServerError as error:
            if error.status != NOT_YET:
                raise
            if left > SLICE:
                continue
            raise AdminError(f"fault {id} has not acted {hits} times within {timeout:g} s", error.message) from None
        _print(done, as_json)
        return


def _asked(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What was said, by its JSON name."""
    return {_json_name(name): given[name] for name in names if given[name] is not None}


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _print(answer: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo(table([_row(rule) for rule in answer]) if isinstance(answer, list) else table([_row(answer)]))


def _row(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A fault on a line."""
    action = dict(rule["action"])
    kind = action.pop("kind")
    words = [kind, *(f"{name}={value}" for name, value in action.items())]
    who = [f"{name}={rule[name]}" for name in map(_json_name, SELECTORS) if rule[name] not in ("*", None)]
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
