"""`pulsarium wait`: wait until a topic or a subscription has a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from pulsarium.broker.lab.arguments import OF_SUBSCRIPTION, OF_TOPIC, Awaited
from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.completing import subscriptions, topics
from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.lab.broker import NOT_YET, LabOf, of_broker


def _states(title: str, states: Mapping[str, Awaited]) -> Iterator[str]:
    yield title
    for name, state in states.items():
        yield f"  {name:12} {state.text}"


EPILOG = "\n".join(
    (
        "\b",
        *_states("States of a subscription:", OF_SUBSCRIPTION),
        "\b",
        *_states("States of a topic, without --subscription:", OF_TOPIC),
    )
).replace("\n\b", "\n\n\b")


@click.command(cls=GroupedCommand, epilog=EPILOG)
@click.argument("topic", shell_complete=topics)
@click.option(
    "--subscription", "-s", metavar="NAME", shell_complete=subscriptions, help="Wait for a state of this subscription."
)
@click.option(
    "--state",
    type=click.Choice([*dict.fromkeys([*OF_SUBSCRIPTION, *OF_TOPIC])]),
    required=True,
    help="Wait until the topic or the subscription has this state.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="The number N of a state.  [default: 1]")
@click.option("--timeout", type=float, default=30.0, show_default=True, metavar="S", help="Give up after S seconds.")
@of_broker
def wait(lab: LabOf, topic: str, subscription: str | None, state: str, count: int | None, timeout: float) -> None:
    """Wait until a topic or a subscription has a state. Exit with 1 after --timeout, and print the state it has.

    \b
    Wait for a consumer, and until all messages are acknowledged:
      pulsarium wait orders --subscription billing --state connected
      pulsarium wait orders --subscription billing --state caught-up --timeout 60
    Wait until ten messages were published:
      pulsarium wait orders --state produced --count 10

    \b
    `pulsarium fault wait ID --hits N` waits for a fault.
    """
    asked = {"topic": topic, "subscription": subscription, "state": state, "count": count}
    try:
        lab.wait("wait", timeout, **{name: value for name, value in asked.items() if value is not None})
    except ServerError as error:
        if error.status != NOT_YET:
            raise
        raise AdminError(f"waited {timeout:g} s", error.message) from None
