"""`pulsarium clock`: steer the clock of a running broker, or of one of its namespaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.durations import Duration, spoken
from pulsarium.cli.grouped import GroupedCommands
from pulsarium.cli.lab.broker import LabOf, as_json, of_broker, sure
from pulsarium.rest.exchange import NO_BODY

APART: Final = ("keep-alive", "token-expiry")


@click.group(cls=GroupedCommands)
@click.option("--namespace", metavar="TENANT/NAMESPACE", help="Steer the clock of one namespace instead.")
def clock(namespace: str | None) -> None:
    """Freeze the broker's clock, or advance it by days in no time.

    \b
    Deliver a message now that is due in seven days:
      pulsarium clock advance 7d
    Go from timer to timer:
      pulsarium clock freeze
      pulsarium clock run-next
    Give one namespace its own time:
      pulsarium clock --namespace public/orders advance 7d

    All timers of the broker follow this clock: delayed delivery, TTL, retention, failover delay, deletion of inactive
    topics. A namespace that --namespace steered has its own time until `reset`. Keep-alive and the expiry of tokens
    follow the broker's clock only when they are included. Clients have their own clocks.
    """


@clock.command()
@as_json
@of_broker
def show(lab: LabOf, as_json: bool) -> None:
    """Show the broker's time, and whether the clock is frozen."""
    _print(_call(lab, "GET", "clock"), as_json)


@clock.command()
@as_json
@of_broker
def freeze(lab: LabOf, as_json: bool) -> None:
    """Freeze the clock."""
    _print(_call(lab, "POST", "clock/freeze"), as_json)


@clock.command()
@as_json
@of_broker
def resume(lab: LabOf, as_json: bool) -> None:
    """Let the clock run again from the time that it shows."""
    _print(_call(lab, "POST", "clock/resume"), as_json)


@clock.command()
@as_json
@of_broker
def reset(lab: LabOf, as_json: bool) -> None:
    """Return to the machine's time. All included timers are excluded again."""
    _print(_call(lab, "POST", "clock/reset"), as_json)


@clock.command()
@click.argument("duration", type=Duration(), required=False)
@click.option("--to", metavar="TIME", help="Advance to an ISO time instead, such as 2030-01-01T00:00:00Z.")
@as_json
@sure
@of_broker
def advance(lab: LabOf, duration: float | None, to: str | None, as_json: bool, sure: bool) -> None:
    """Advance the clock by DURATION, such as 90s, 5m, 7d or 1d12h. The broker runs each timer on the way, in order.

    Messages and topics that expire on the way are deleted. The command names the broker on stderr. It asks first on a
    terminal where no option names the broker.
    """
    if (duration is None) == (to is None):
        raise click.UsageError("pass a DURATION such as 7d, or --to TIME")
    lab.warn(sure=sure)
    try:
        state = _call(lab, "POST", "clock/advance", {"seconds": duration} if to is None else {"to": to})
    except ServerError as error:
        raise AdminError("DURATION" if to is None else f"--to {to}", error.message) from None
    _print(state, as_json)


@clock.command("run-next")
@as_json
@sure
@of_broker
def run_next(lab: LabOf, as_json: bool, sure: bool) -> None:
    """Advance the clock to the next timer, and run the timer. Names the broker, and asks, as `advance` does."""
    lab.warn(sure=sure)
    _print(_call(lab, "POST", "clock/run-next"), as_json)


@clock.command()
@click.argument("switch", type=click.Choice(["on", "off"]))
@as_json
@sure
@of_broker
def auto(lab: LabOf, switch: str, as_json: bool, sure: bool) -> None:
    """Switch auto-advance on or off. With auto-advance, an idle broker goes to its next timer by itself.

    Before auto-advance is on, the command names the broker, and asks, as `advance` does.
    """
    if switch == "on":
        lab.warn(sure=sure)
    _print(_call(lab, "POST", "clock/auto-advance", {"on": switch == "on"}), as_json)


def _call(lab: LabOf, method: str, path: str, body: object = NO_BODY) -> Any:
    group = click.get_current_context().parent
    namespace = None if group is None else group.params["namespace"]
    return lab.call(method, path, body, **({} if namespace is None else {"namespace": namespace}))


def _of_names(name: str, text: str) -> Callable[..., None]:
    @clock.command(name, help=text)
    @click.argument("names", nargs=-1, required=True, type=click.Choice(APART), metavar="NAME...")
    @as_json
    @of_broker
    def command(lab: LabOf, names: tuple[str, ...], as_json: bool) -> None:
        _print(_call(lab, "POST", f"clock/{name}", {"names": list(names)}), as_json)

    return command


include = _of_names("include", "Put keep-alive or token-expiry under this clock too.")
exclude = _of_names("exclude", "Return keep-alive or token-expiry to the machine's clock.")


def _print(state: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(state, indent=2))
        return
    if "advancedSeconds" in state:
        click.echo(f"advanced by {spoken(state['advancedSeconds'])}")
    offset = state["offsetMs"] / 1000
    where = f"{spoken(abs(offset))} {'ahead of' if offset > 0 else 'behind'} the machine's clock"
    words = [state["now"], where if round(offset) else "the machine's time"]
    if state["frozen"]:
        words.append("frozen")
    if state["autoAdvance"]:
        words.append("auto-advance")
    words += [f"{name} included" for name in state.get("included", ())]
    if not state.get("own", True):
        words.append("the broker's clock")
    if state.get("namespaces"):
        words.append(f"namespaces with their own time: {' '.join(state['namespaces'])}")
    following = state["nextInSeconds"]
    words.append("no timer waits" if following is None else f"next timer in {spoken(following)}")
    click.echo(", ".join(words))
