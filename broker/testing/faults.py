"""Faults of one test, which leave other tests on the same broker alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar, Unpack

from pulsarium.broker.lab.arguments import Selected, Which
from pulsarium.broker.lab.faults import Action, FaultError
from pulsarium.broker.lab.faults.which import WITHOUT_NAMESPACE

NO_NAMESPACE = (
    "this test has no namespace of its own, so the fault would act on other tests too: use the fixture pulsar_topic or "
    "pulsar_namespace, name the topic as tenant/namespace/topic, or pass everywhere=True"
)


class RemovableRule(Protocol):
    """A rule that was added."""

    def remove(self) -> None:
        """Remove the rule, which may be removed already."""
        ...


R = TypeVar("R", bound=RemovableRule)
R_co = TypeVar("R_co", bound=RemovableRule, covariant=True)


class AllFaults(Protocol[R_co]):
    """The faults of a broker, in this process or in another one."""

    def add(self, action: Action | str | Mapping[str, object], command: str, **which: Unpack[Which]) -> R_co:
        """Add a rule."""
        ...

    def observe(self, command: str, **which: Unpack[Selected]) -> R_co:
        """Add a rule that counts frames."""
        ...


class NamespaceFaults(Generic[R]):
    """The faults that a test adds. They act on the topics of the test's own namespace.

    rule = pulsar_faults.add("drop", "SEND", count=2)
    ...
    rule.wait(2)
    """

    def __init__(self, faults: AllFaults[R], namespace: str | None) -> None:
        self._faults = faults
        self._namespace = namespace
        self._added: list[R] = []

    def add(
        self,
        action: Action | str | Mapping[str, object],
        command: str,
        *,
        everywhere: bool = False,
        **which: Unpack[Which],
    ) -> R:
        """Apply `action` to matching frames of `command` in this namespace, by default to the first one only.

        A `namespace`, or a `topic` with its namespace, names another place. `everywhere` selects the frames of all
        namespaces, and of connections that have not named a topic yet. Raise `FaultError`.
        """
        self._place(command, which, everywhere)
        return self._note(self._faults.add(action, command, **which))

    def observe(self, command: str, *, everywhere: bool = False, **which: Unpack[Selected]) -> R:
        """Count matching frames in the rule's `hits`, and change nothing. Raise `FaultError`."""
        self._place(command, which, everywhere)
        return self._note(self._faults.observe(command, **which))

    @property
    def rules(self) -> Sequence[R]:
        """Return the rules that were added here."""
        return list(self._added)

    def clear(self) -> None:
        """Remove the rules that were added here."""
        while self._added:
            self._added.pop().remove()

    def _place(self, command: str, which: Any, everywhere: bool) -> None:
        """Give the rule its namespace. Raise `FaultError` for a rule that would act on other tests."""
        if everywhere or "namespace" in which or "/" in which.get("topic", ""):
            return
        if command in WITHOUT_NAMESPACE:
            raise FaultError(
                f"{command} comes before its connection names a topic, so the fault would act on other tests too: "
                "pass everywhere=True, and perhaps client_version"
            )
        if self._namespace is None:
            raise FaultError(NO_NAMESPACE)
        which["namespace"] = self._namespace

    def _note(self, rule: R) -> R:
        self._added.append(rule)
        return rule
