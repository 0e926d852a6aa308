"""The kinds of choices, one row for each: what the broker does, and why Pulsar may do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarium.broker.lab.explore import actions
from pulsarium.broker.lab.explore.script import Script, ScriptError
from pulsarium.broker.lab.faults.actions import Answer, Close
from pulsarium.broker.lab.faults.rule import Action
from pulsarium.broker.lab.faults.tapped import TappedFrame

START: Final = "START"
"""The moment of kinds that change the broker before it starts."""


@dataclass(frozen=True)
class ChoiceKind:
    """A kind of choice.

    does: what happens. legal: why Pulsar may do the same. rate: probability of the choice at each of its moments.
    before: commands before whose handling, or whose delivery, the kind can be chosen. after: the same behind the work,
    at the answer. fits: a further condition on the frame. values: what a decision chooses from, such as seconds.
    config: broker.conf keys that a choice at the start sets. only_broker: whether a proxy cannot make the choice.
    """

    name: str
    does: str
    legal: str
    rate: float
    action: Action | None = None
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    fits: Callable[[TappedFrame], bool] = lambda frame: True
    values: Sequence[float] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    only_broker: bool = False

    @property
    def commands(self) -> Sequence[str]:
        """Return the commands at which the kind can be chosen."""
        return (*self.before, *self.after) if self.action is not None else (START,)

    @property
    def unit(self) -> str:
        """Return what a value counts."""
        return "seconds" if self.values else ""


_TCP = "A network connection can end at any moment."
_TRANSACTIONAL = ("NEW_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN")
_SETUP = ("LOOKUP", "PRODUCER", "SUBSCRIBE")
_REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"
_ROWS = (
    ChoiceKind(
        "close-before",
        "Close the connection before a command is handled.",
        f"{_TCP} The client cannot know whether the broker had handled the command.",
        0.03,
        Close(),
        before=(*_SETUP, "SEND", "FLOW", "SEEK", "UNSUBSCRIBE", _REDELIVER, "CLOSE_CONSUMER", *_TRANSACTIONAL),
    ),
    ChoiceKind(
        "close-after",
        "Handle a command, and close the connection instead of sending the answer.",
        f"{_TCP} The command has taken effect all the same.",
        0.03,
        Close(),
        after=("PRODUCER", "SUBSCRIBE", "SEEK", "UNSUBSCRIBE", "ACK", "CLOSE_CONSUMER", *_TRANSACTIONAL),
    ),
    ChoiceKind(
        "receipt-lost",
        "Store a message, and close the connection instead of sending the receipt.",
        f"{_TCP} The client sends the message again: at-least-once, unless deduplication (PIP-6) is on.",
        0.05,
        Close(),
        after=("SEND",),
    ),
    ChoiceKind(
        "duplicate",
        "Store a message twice and answer once, as for a client that lost the receipt and sent again.",
        "Publishing is at-least-once. Deduplication (PIP-6) stores one of the two, here too.",
        0.05,
        actions.SendTwice(),
        before=("SEND",),
        fits=actions.is_published,
    ),
    ChoiceKind(
        "ack-lost",
        "Close the connection instead of handling an acknowledgement: the message is delivered again.",
        f"{_TCP} Delivery is at-least-once: clients do not wait for the answer to an acknowledgement.",
        0.05,
        Close(),
        before=("ACK",),
    ),
    ChoiceKind(
        "delivery-lost",
        "Close the connection instead of delivering a message.",
        f"{_TCP} The broker delivers the message again, with a redelivery count.",
        0.03,
        Close(),
        before=("MESSAGE",),
    ),
    ChoiceKind(
        "redelivery",
        "Close the consumer behind a delivery: its unacknowledged messages are delivered again, to any consumer.",
        "A broker may close a consumer at any time (CLOSE_CONSUMER). Delivery is at-least-once.",
        0.05,
        actions.CloseConsumer(),
        before=("MESSAGE",),
        fits=actions.is_redelivered,
        only_broker=True,
    ),
    ChoiceKind(
        "takeover",
        "Close a consumer of Failover or Key_Shared at its acknowledgement: another takes its topic or its keys over.",
        "The active consumer, and the consumer of a key (PIP-34), change with the consumers of the subscription.",
        0.05,
        actions.CloseConsumer(),
        before=("ACK", "FLOW"),
        fits=actions.among_others,
        only_broker=True,
    ),
    ChoiceKind(
        "reorder",
        "Swap two messages that wait for a connection: of a Shared consumer, or of a Key_Shared one with other keys.",
        "Shared subscriptions promise no order, and Key_Shared subscriptions (PIP-34) only that of each key.",
        0.2,
        actions.Overtake(),
        before=("MESSAGE",),
        fits=actions.is_unordered,
    ),
    ChoiceKind(
        "unload",
        "Unload the topic: its producers and consumers are closed and return.",
        "The load manager and operators unload namespace bundles at any time.",
        0.03,
        actions.Unload(),
        before=("SEND", "ACK", "MESSAGE"),
        fits=actions.on_topic,
        only_broker=True,
    ),
    ChoiceKind(
        "move",
        "Move the topic's namespace bundle to the next broker (with --brokers 2 or more).",
        "The load manager moves bundles between brokers. CLOSE_ commands name the new broker (PIP-307).",
        0.05,
        actions.Move(),
        before=("SEND", "ACK", "MESSAGE"),
        fits=actions.of_several_brokers,
        only_broker=True,
    ),
    ChoiceKind(
        "not-ready",
        "Refuse a lookup, a producer or a consumer with ServiceNotReady.",
        "A broker refuses while it loads a topic, or while a bundle changes its owner. Clients try again.",
        0.05,
        Answer("ServiceNotReady", "the topic is being loaded (pulsarium explore)"),
        before=_SETUP,
    ),
    ChoiceKind(
        "slow-receipt",
        "Send a receipt, and all answers behind it, late.",
        "A bookie, a disk or the network may be slow. No receipt has a time limit.",
        0.03,
        actions.Wait(),
        before=("SEND_RECEIPT",),
        values=(0.02, 0.1, 0.6),
    ),
    ChoiceKind(
        "slow-ack",
        "Handle an acknowledgement, and all commands behind it, late.",
        "A broker or the network may be slow. No acknowledgement has a time limit.",
        0.03,
        actions.Wait(),
        before=("ACK",),
        values=(0.02, 0.1),
    ),
    ChoiceKind(
        "slow-consumer",
        "Handle a command that opens, closes or feeds a consumer, and all commands behind it, late.",
        "A broker or the network may be slow. No command has a time limit that the broker must keep.",
        0.03,
        actions.Wait(),
        before=("SUBSCRIBE", "FLOW", _REDELIVER, "CLOSE_CONSUMER"),
        values=(0.02, 0.1),
    ),
    ChoiceKind(
        "slow-delivery",
        "Deliver a message, and everything behind it, late.",
        "A broker or the network may be slow. No delivery has a time limit.",
        0.03,
        actions.Wait(),
        before=("MESSAGE",),
        values=(0.02, 0.1),
    ),
    ChoiceKind(
        "late-delayed",
        "Deliver a delayed message late.",
        "A delay is a lower bound (PIP-26): delayed messages are due at ticks, delayedDeliveryTickTimeMillis.",
        0.2,
        actions.Wait(),
        before=("MESSAGE",),
        fits=actions.is_delayed,
        values=(0.1, 0.5),
    ),
    ChoiceKind(
        "transaction-timeout",
        "Abort a transaction, as after its timeout, before a command of the transaction.",
        "A coordinator aborts a transaction at its timeout (PIP-31), and a client or a broker may pause for longer.",
        0.05,
        actions.TimeOut(),
        before=_TRANSACTIONAL[1:],
        fits=actions.in_transaction,
        only_broker=True,
    ),
    ChoiceKind(
        "crash-before",
        "End all brokers before a command is stored, and start them again with what was stored.",
        "Brokers crash. Acknowledgements that were not stored yet are lost "
        "(managedLedgerDefaultMarkDeleteRateLimit), and confirmed messages are not.",
        0.02,
        actions.Crash(),
        before=("SEND", "ACK", "FLOW", "END_TXN"),
        only_broker=True,
    ),
    ChoiceKind(
        "crash-after",
        "End all brokers once a command is stored, before its answer, and start them again with what was stored.",
        "Brokers crash between the write and the answer. What is stored without an answer stays stored.",
        0.02,
        actions.Crash(),
        after=("SEND", "SUBSCRIBE", "END_TXN"),
        only_broker=True,
    ),
    ChoiceKind(
        "clock-jump",
        "Advance the broker's clock over timeouts: of transactions, time to live and delayed messages.",
        "Machines pause, and their clocks are corrected. Timeouts are lower bounds of real time only for one machine.",
        0.02,
        actions.Jump(),
        before=("SEND", "ACK", "FLOW", "MESSAGE"),
        values=(5.0, 65.0, 400.0),
        only_broker=True,
    ),
    ChoiceKind(
        "small-dispatch",
        "Read and deliver one entry at a time, all through the run.",
        "Permits and batches of dispatch are bounds from above: dispatcherMaxReadBatchSize and "
        "dispatcherMaxRoundRobinBatchSize may be anything.",
        0.3,
        config={
            "dispatcherMaxReadBatchSize": 1,
            "dispatcherMaxRoundRobinBatchSize": 1,
        },
        only_broker=True,
    ),
)

KINDS: Final[Mapping[str, ChoiceKind]] = {kind.name: kind for kind in _ROWS}
"""Every kind, by its name."""
ONLY_BROKER: Final = tuple(kind.name for kind in _ROWS if kind.only_broker)
"""The kinds that a proxy leaves out."""


def check(script: Script) -> Script:
    """Return a script, or raise `ScriptError` when it has a kind or a command that does not exist."""
    for decision in script:
        kind = KINDS.get(decision.kind)
        if kind is None:
            raise ScriptError(f"there is no kind {decision.kind!r}: use one of {', '.join(KINDS)}")
        if decision.command not in kind.commands:
            raise ScriptError(f"{decision.kind} is not chosen at {decision.command}: use {', '.join(kind.commands)}")
        if decision.value is not None and not kind.values:
            raise ScriptError(f"{decision}: {decision.kind} takes no value")
    return script
