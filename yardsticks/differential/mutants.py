"""Brokers with one planted mistake each. A suite that does not notice the mistakes proves nothing.

As a script, this module is `pulsarium serve` with the mutant's name before the options.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.session.session import Session
from pulsarium.broker.web.admin.topic import internal_stats
from pulsarium.broker.web.admin.topic.stats_json import StatsWriter
from pulsarium.cli.main import cli


def never_says_the_end() -> None:
    """Send no REACHED_END_OF_TOPIC."""
    Session.reached_end_of_topic = lambda self, consumer_id: None  # type: ignore[method-assign]


def swaps_permits() -> None:
    """Show the permits of each consumer of a subscription under the name of another consumer."""
    told = StatsWriter.consumer

    def consumer(self: StatsWriter, consumer: Consumer, ranges: Any) -> Any:
        others = list(consumer.subscription.consumers)
        other = others[-1 - others.index(consumer)]
        return told(self, consumer, ranges) | {"availablePermits": other.permits}

    StatsWriter.consumer = consumer  # type: ignore[method-assign]


def misplaces_readers() -> None:
    """Show the read positions of readers one entry too far."""
    told = internal_stats.subscription_stats

    def stats(subscription: PersistentSubscription) -> Any:
        cursor = told(subscription)
        if not subscription.cursor.durable:
            ledger, _, entry = cursor["readPosition"].partition(":")
            cursor["readPosition"] = f"{ledger}:{int(entry) + 1}"
        return cursor

    internal_stats.subscription_stats = stats


def miscounts_what_is_behind() -> None:
    """Count one entry too many since the first unacknowledged entry."""
    told = internal_stats.cursor_stats

    def stats(*args: Any, **options: Any) -> Any:
        cursor = told(*args, **options)
        return cursor | {BEHIND: cursor[BEHIND] + 1}

    internal_stats.cursor_stats = stats


BEHIND = "numberOfEntriesSinceFirstNotAckedMessage"
MUTANTS = {
    each.__name__: each for each in (never_says_the_end, swaps_permits, misplaces_readers, miscounts_what_is_behind)
}
"""Mutants by their names, as `command` takes them."""


def command(mutant: str) -> tuple[str, ...]:
    """Return the command that starts a mutant. The command takes the options of `pulsarium serve`."""
    return (sys.executable, "-P", str(Path(__file__)), mutant)


if __name__ == "__main__":
    MUTANTS[sys.argv[1]]()
    cli(["serve", "--with-parent", *sys.argv[2:]], prog_name="pulsarium")
