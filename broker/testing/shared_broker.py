"""Explorations in front of a running broker of any kind. The runs share the broker, each by way of a proxy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pulsarium.broker.lab.explore.kinds import ONLY_BROKER
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import Script
from pulsarium.broker.lab.explore.search import RunOutcome
from pulsarium.broker.proxying import MAY_BE_PRODUCTION, ProxyOptions
from pulsarium.broker.testing.exploring import ProxiedRun, topics_of
from pulsarium.broker.testing.http import NOT_FOUND, Http, RemoteRefusal

SECONDS: Final = 60.0  # for a broker to delete a topic


def only_broker(kinds: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with kinds that are named for a proxy."""
    for kind in kinds:
        if kind in ONLY_BROKER:
            yield f"only a broker of Pulsarium can do {kind}, not a proxy: leave it out"


@dataclass(frozen=True, kw_only=True)
class SharedBroker:
    """A running broker, in front of which runs are explored.

    `deletes` says that the topics of a run are deleted behind it, over the admin API. `headers` have the credentials.
    """

    options: ProxyOptions
    deletes: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def check(self, kinds: Iterable[str]) -> None:
        """Raise `ValueError` for what cannot be. `kinds` are those that the caller names."""
        options = self.options
        if not (options.sure or options.upstream.looks_like_a_test):
            raise ValueError(
                f"{MAY_BE_PRODUCTION.format(options.upstream)}; if it is a test cluster, pass --yes-not-production "
                "(in Python yes_not_production=True)"
            )
        if self.deletes and options.admin_url is None:
            raise ValueError(
                "--delete-topics needs the admin API: pass --proxy-admin-url, too (in Python proxy_admin_url=URL)"
            )
        for wrong in only_broker(kinds):
            raise ValueError(wrong)

    def possible(self, scripts: Iterable[Script]) -> list[Script]:
        """Return the scripts whose decisions can all be made here."""
        return [each for each in scripts if not any(decision.kind in self.left_out for decision in each)]

    @property
    def left_out(self) -> Sequence[str]:
        """Return the kinds that are not chosen here."""
        return ONLY_BROKER

    def begin(self, plan: Plan) -> ProxiedRun:
        """Return a run of a plan."""
        return ProxiedRun(self.options, plan)

    def clean(self, outcome: RunOutcome) -> None:
        """Delete the persistent topics that the clients of a run opened, if that was asked for.

        Raise `RemoteRefusal`, or `ConnectionError` without a broker.
        """
        if not self.deletes or self.options.admin_url is None:
            return
        http = Http(self.options.admin_url, headers=self.headers, seconds=SECONDS)
        opened = {each.partitioned_name: each.is_partition for each in topics_of(outcome.records) if each.is_persistent}
        for name, is_partitioned in opened.items():
            path = f"/admin/v2/{name.rest_path}" + ("/partitions" if is_partitioned else "")
            try:
                http.call("DELETE", path, query={"force": "true", "deleteSchema": "true"})
            except RemoteRefusal as refused:
                if refused.status != NOT_FOUND:
                    raise RemoteRefusal(refused.status, f"{name} was not deleted behind its run: {refused}") from None
