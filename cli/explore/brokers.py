"""The brokers of the runs of an exploration: new ones in memory, or a running one behind proxies."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pulsarium.cli.lab.proxy import proxy_of, refuse_options_of_a_broker, refuse_options_of_a_proxy, served
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.serve import gather

if TYPE_CHECKING:
    from pulsarium.broker.config import ServeOptions
    from pulsarium.broker.lab.explore.script import Script
    from pulsarium.broker.lab.explore.search import RunOutcome
    from pulsarium.broker.testing.shared_broker import SharedBroker
    from pulsarium.cli.explore.run import Begin
    from pulsarium.cli.run import Opener

WITHOUT_EFFECT: Final = ("data", "durability", "capture", "ready_file")
"""Options of pulsarium serve that explore refuses, and does not list."""
Job = Callable[[], Awaitable[None]]


def _nothing(outcome: RunOutcome) -> None:
    """Leave nothing behind a run."""


def _all(scripts: Sequence[Script]) -> Sequence[Script]:
    return scripts


@dataclass(frozen=True, kw_only=True)
class RunBrokers:
    """The brokers that the runs of an exploration connect to.

    begin: makes a run of a plan. run: runs the exploration. clean: is called behind each run. options: words of the
    command line that a repetition needs. possible: returns the scripts that can be run. left_out: kinds that
    are not chosen here.
    """

    begin: Begin
    run: Callable[[Job], None]
    clean: Callable[[RunOutcome], None] = _nothing
    options: Sequence[str] = ()
    possible: Callable[[Sequence[Script]], Sequence[Script]] = _all
    left_out: Sequence[str] = ()


def new_brokers(asked: dict[str, Any]) -> RunBrokers:
    """Return a new broker for each run. Raise `RequestRefused` for options without an effect."""
    refuse_options_of_a_proxy("deletes")
    for option in WITHOUT_EFFECT:
        if asked[option] is not None:
            name = option.replace("_", "-")
            raise RequestRefused(f"explore: --{name} has no effect: each run has a new broker in memory")
    options, loaded = gather(asked, free_ports=True)
    from pulsarium.broker.testing.exploring import ExploredRun
    from pulsarium.cli.run import run_loop

    def run(job: Job) -> None:
        async def exploring(options: ServeOptions, opener: Opener) -> None:
            await job()

        run_loop(options, loaded, exploring)

    return RunBrokers(begin=partial(ExploredRun, options), run=run)


def behind_a_proxy(
    url: str, admin_url: str | None, asked: Mapping[str, Any], kinds: Iterable[str], *, sure: bool, deletes: bool
) -> RunBrokers:
    """Return the broker at `url`, behind a new proxy for each run.

    `kinds` are those that the command line names. `deletes` says that the topics of each run are deleted behind it.
    Raise `RequestRefused` for what cannot be.
    """
    from pulsarium.broker.testing.shared_broker import SharedBroker
    from pulsarium.cli.admin.asked import TOKEN
    from pulsarium.cli.admin.caller import Caller, Credentials, credentials
    from pulsarium.cli.run import raise_file_limit, run_job

    refuse_options_of_a_broker(asked)
    options = proxy_of(url, admin_url=admin_url, sure=sure)
    proof = credentials(*Caller(token=os.environ.get(TOKEN)).proof) if deletes else Credentials()
    broker = SharedBroker(options=options, deletes=deletes, headers=proof.headers)
    try:
        broker.check(kinds)
    except ValueError as error:
        raise RequestRefused(f"explore: {error}") from None
    raise_file_limit()
    words = ["--proxy", url, *(["--proxy-admin-url", admin_url] if admin_url else [])]
    return RunBrokers(
        begin=broker.begin,
        run=partial(run_job, served(broker.options)),
        clean=partial(_clean, broker),
        options=[*words, *["--yes-not-production"] * sure, *["--delete-topics"] * deletes],
        left_out=broker.left_out,
        possible=broker.possible,
    )


def _clean(broker: SharedBroker, outcome: RunOutcome) -> None:
    from pulsarium.broker.testing.http import RemoteRefusal

    try:
        broker.clean(outcome)
    except (RemoteRefusal, ConnectionError) as error:
        raise RunRefused(f"explore: --delete-topics: {error}") from None
