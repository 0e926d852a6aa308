"""The reasons why a subscription of a real broker waits, in one table.

A dispatcher sends a message when it has read an entry that no consumer has, and a consumer can take it. So a
subscription waits in five ways, and the table asks for them in this order:

1. There is nobody to send to: no topic, no cursor, no consumer.
2. The consumers cannot take more: limits of unacknowledged messages, permits, the keys of Key_Shared.
3. The entry must not be sent yet: delayed delivery, open transactions, dispatch rates.
4. The broker cannot send, although all counters allow it: a lost ledger, a full connection.
5. There is nothing to send: everything is with consumers, or producers cannot publish.

A counter that tells the reason makes a finding certain. Where a counter only fits, `because` says what makes the
reason likely. Counters of a healthy subscription pass through the same values for moments, so most reasons need a
subscription that stands still (`State.quiet`). Names of reasons are those of the broker's own dispatcher where both
tell the same thing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pulsarium.proto.routing import bucket_hash
from pulsarium.rest.why.facts import Facts, Json
from pulsarium.rest.why.state import KEY_SHARED, ONE_READS, State, number, position, rate_of

COUNTERS: Final = "the counters say so"
LIKELY: Final = "likely"
SHOWN: Final = 5  # names of consumers in a text
CONSUMER: Final = (
    "consumerName",
    "address",
    "availablePermits",
    "unackedMessages",
    "msgOutCounter",
    "lastConsumedFlowTimestamp",
)


@dataclass(frozen=True)
class Finding:
    """A reason, as a sentence, with the fields behind it. `because` is "" when the counters leave no doubt.

    `command` loses no messages. `destructive` is one that does, where it is a way out, or "".
    """

    text: str
    facts: Json
    command: str
    because: str = ""
    destructive: str = field(default="", kw_only=True)
    reason: str = ""
    advice: str = ""

    @property
    def certainty(self) -> str:
        """Return how certain the reason is, as words."""
        return f"{LIKELY}, because {self.because}" if self.because else COUNTERS

    def as_json(self) -> dict[str, Any]:
        """Return the finding for programs."""
        found = {"reason": self.reason, "text": self.text, "certain": not self.because, "certainty": self.certainty}
        commands = {"command": self.command, "destructive": self.destructive}
        return {**found, "facts": dict(self.facts), "advice": self.advice, **commands}


Rule: TypeAlias = Callable[[State], Finding | None]


@dataclass(frozen=True)
class WhyReason:
    """A row: the name of a reason, the rule that finds it, what it means, and what to do."""

    name: str
    rule: Rule
    about: str
    advice: str
    needs_quiet: bool = field(default=True, kw_only=True)
    if_idle: bool = field(default=False, kw_only=True)  # only where no message waits to be sent

    def find(self, state: State) -> Finding | None:
        """Return the finding, or None where the reason does not apply."""
        if (self.needs_quiet and not state.quiet) or (self.if_idle and state.waits_to_be_sent):
            return None
        return self.rule(state)


# ---- 1. nobody to send to


def _topic_not_found(state: State) -> Finding | None:
    refused = state.facts.refused
    if refused.get("status") != 404:
        return None
    command = f"pulsarium admin topics list {_namespace(state.facts)}"
    return Finding(f"the broker has no such topic: {refused.get('reason')}", refused, command)


def _topic_unavailable(state: State) -> Finding | None:
    refused = state.facts.refused
    if not refused or refused.get("status") == 404:
        return None
    text = f"the broker serves no stats of the topic: {refused.get('reason')}"
    because = "no broker serves a bundle that is being unloaded, or whose isolation policy names no broker that runs"
    if refused.get("status") in OF_GATEWAYS:
        because = "a proxy on the way says so"
    return Finding(text, refused, f"pulsarium admin topics lookup {_t(state)}", because)


OF_GATEWAYS: Final = (502, 504)


def _no_consumer(state: State) -> Finding | None:
    if state.consumers or not state.backlog:
        return None
    text = f"no consumer is connected, and {_count(state.backlog, 'entry', 'entries')} wait"
    unsubscribe = f"pulsarium admin topics unsubscribe -s {_s(state)} {_t(state)}"
    return Finding(text, _fields(state, "msgBacklog", "consumers"), _stats_command(state), destructive=unsubscribe)


# ---- 2. consumers that cannot take more


def _redelivery_loop(state: State) -> Finding | None:
    redelivered = max(
        state.rate("msgRateRedeliver"), sum(rate_of(each, "msgRateRedeliver") for each in state.consumers)
    )
    per_entry = max([1, *(number(each, "avgMessagesPerEntry") for each in state.consumers)])
    never_acked = not any(number(each, "lastAckedTimestamp") for each in (state.stats, *state.consumers))
    again = never_acked and state.sent >= SENT_AGAIN * per_entry * max(1, state.backlog)
    if not state.backlog or not state.mark_delete_stands or not (redelivered or again):
        return None
    facts = _fields(state, "msgBacklog", "msgRateRedeliver", "messageAckRate", "lastMarkDeleteAdvancedTimestamp")
    facts = {**facts, "msgOutCounter": state.sent, **_message(state)}
    what = f"message {facts['messageId']}" if "messageId" in facts else "a message"
    rate = f"{redelivered:.1f} messages a second are redelivered" if redelivered else f"{state.sent} messages were sent"
    because = f"{rate}, {_count(state.backlog, 'entry is', 'entries are')} in the backlog, and mark-delete stands still"
    text = f"{what} is redelivered again and again: no consumer acknowledges it"
    return Finding(text, facts, _peek(state), because, destructive=_skip(state))


SENT_AGAIN: Final = 5  # times the backlog


def _subscription_owes(state: State) -> Finding | None:
    limit = _limit(state, "maxUnackedMessagesOnSubscription", "maxUnackedMessagesPerSubscription")
    if not state.stats.get("blockedSubscriptionOnUnackedMsgs") or (limit and state.unacked < limit):
        return None
    text = f"its consumers have {state.unacked} unacknowledged messages{_of(limit)} (maxUnackedMessagesPerSubscription)"
    facts = {**_fields(state, "blockedSubscriptionOnUnackedMsgs", "unackedMessages"), "limit": limit}
    because = "" if limit else "it is blocked, and its limit is not known: it may be that of the broker, too"
    command = f"pulsarium admin topicPolicies get-max-unacked-messages-per-subscription -ap {_t(state)}"
    return Finding(text, facts, command, because)


def _broker_owes(state: State) -> Finding | None:
    limit = _limit(state, "maxUnackedMessagesOnSubscription", "maxUnackedMessagesPerSubscription")
    if not state.stats.get("blockedSubscriptionOnUnackedMsgs") or not limit or state.unacked >= limit:
        return None
    of_broker = number(state.facts.config, "maxUnackedMessagesPerBroker")
    text = f"the broker has too many unacknowledged messages{_of(of_broker)} (maxUnackedMessagesPerBroker)"
    facts = {**_fields(state, "blockedSubscriptionOnUnackedMsgs", "unackedMessages"), "limit": of_broker}
    because = f"the subscription is blocked below its own limit: {state.unacked} unacknowledged messages, of {limit}"
    return Finding(text, facts, "pulsarium admin brokers get-runtime-config", because)


def _consumers_owe(state: State) -> Finding | None:
    if not state.owing or state.able:
        return None
    limit = _limit(state, "maxUnackedMessagesOnConsumer", "maxUnackedMessagesPerConsumer")
    text = f"{_names(state.owing)} did not acknowledge enough messages{_of(limit)} for each consumer"
    facts = {"consumers": [_consumer(each) for each in state.owing], "limit": limit}
    command = f"pulsarium admin topicPolicies get-max-unacked-messages-per-consumer -ap {_t(state)}"
    return Finding(f"{text} (maxUnackedMessagesPerConsumer)", facts, command)


def _no_permits(state: State) -> Finding | None:
    without = [each for each in state.without_permits if each not in state.owing]
    if not without or state.able or not state.waits_to_be_sent:
        return None
    names = _names(without)
    text = f"{names} has no permits left: its client sent no FLOW"
    if len(without) > 1:
        text = f"none of the {len(without)} consumers {names} has permits left: their clients sent no FLOW"
    standby = len(state.consumers) - len(state.served)
    text += f"; {_count(standby, 'consumer stands', 'consumers stand')} by" if standby else ""
    return Finding(text, {"consumers": [_consumer(each) for each in without]}, _stats_command(state))


def _draining(state: State) -> Finding | None:
    drains = {str(each.get("consumerName")): each.get("drainingHashes") or [] for each in state.consumers}
    held = {name: [one for one in hashes if number(one, "blockedAttempts")] for name, hashes in drains.items()}
    held = {name: hashes for name, hashes in held.items() if hashes}
    if not held or not state.waits_to_be_sent:
        return None
    name, hashes = max(held.items(), key=lambda pair: len(pair[1]))
    entries = _count(sum(number(each, "unackMsgs") for each in hashes), "entry", "entries")
    belong = _count(len(hashes), "key hash belongs", "key hashes belong")
    text = f"{belong} to another consumer now, but {name} has not acknowledged {entries} from before"
    return Finding(text, {"drainingHashes": held}, _stats_command(state))


def _recently_joined(state: State) -> Finding | None:
    joined = state.stats.get("consumersAfterMarkDeletePosition") or {}
    if not joined or not state.waits_to_be_sent:
        return None
    holders = [each for each in state.consumers if number(each, "unackedMessages")]
    text = f"{', '.join(sorted(joined)[:SHOWN])} joined while older messages were unacknowledged, which come first"
    text += f": {_names(holders)} holds them" if holders else ""
    facts = {"consumersAfterMarkDeletePosition": joined, "consumers": [_consumer(each) for each in holders]}
    return Finding(text, facts, _stats_command(state))


def _no_owner(state: State) -> Finding | None:
    gaps = state.gaps
    if state.type != KEY_SHARED or state.stats.get("keySharedMode") != "STICKY" or not gaps:
        return None
    if not state.consumers or not state.waits_to_be_sent:
        return None
    key = state.facts.peeked.get("x-pulsar-partition-key")
    owned = None if key is None else not any(first <= bucket_hash(key) <= last for first, last in gaps)
    if owned:
        return None
    facts: dict[str, Any] = {"gaps": [list(each) for each in gaps[:SHOWN]], **_message(state)}
    facts |= {} if key is None else {"keyHash": bucket_hash(key)}
    text = "no consumer has the key of the message: the STICKY ranges leave a gap"
    because = "messages wait, and nobody knows their keys" if key is None else ""
    return Finding(text, facts, _stats_command(state), because)


def _waiting(state: State) -> Finding | None:
    unable = [each for each in state.served if each not in state.able]
    if state.type != KEY_SHARED or not unable or not state.able or not state.waits_to_be_sent:
        return None
    facts = {"msgInReplay": state.count("msgInReplay"), "consumers": [_consumer(each) for each in unable]}
    text = f"messages wait for the consumers of their keys: {_names(unable)} cannot take more"
    because = f"{_names(unable)} has no permits or is at its limit, while others are free"
    return Finding(text, facts, _stats_command(state), because)


# ---- 3. entries that must not be sent yet


def _delayed(state: State) -> Finding | None:
    delayed = state.count("msgDelayed")
    if not delayed or state.unread:
        return None
    facts = {**_fields(state, "msgDelayed", "msgBacklogNoDelayed"), **_message(state)}
    text = f"{_count(delayed, 'message waits', 'messages wait')} for the deliver_at_time"
    at = state.facts.peeked.get("x-pulsar-deliver-at-time")
    text += f"; the first of the backlog is due at {at}" if at else ""
    return Finding(text, facts, _peek(state))


def _open_transaction(state: State) -> Finding | None:
    ongoing, limit = number(state.topic, "ongoingTxnCount"), state.max_read
    read = position(state.cursor.get("readPosition"))
    waits = state.waits_to_be_sent if state.unread is None else state.unread
    if not ongoing or not waits or not state.without_progress:
        return None
    if limit is not None and read is not None and read <= limit:
        return None
    facts = {"ongoingTxnCount": ongoing, "readPosition": state.cursor.get("readPosition")}
    facts |= {"maxReadPosition": "{}:{}".format(*limit)} if limit is not None else {}
    text = f"{_count(ongoing, 'transaction is', 'transactions are')} open: consumers read nothing in it or behind it"
    because = "" if limit is not None else "nothing else holds the subscription, and the topic has open transactions"
    return Finding(text, facts, "pulsarium admin transactions slow-transactions -t 10s", because)


def _transaction_buffer(state: State) -> Finding | None:
    buffer, peeked = state.facts.transactions.get("buffer") or {}, state.facts.peeked
    uncommitted = peeked.get("x-pulsar-txn-uncommitted") == "true" and "x-pulsar-txnid-most-bits" not in peeked
    recovering = buffer.get("state") in BUFFER_IN_RECOVERY
    if number(state.topic, "ongoingTxnCount") or not state.unread or not (uncommitted or recovering):
        return None
    facts = {**_message(state), **{name: peeked[name] for name in peeked if name.startswith("x-pulsar-txn")}}
    facts |= {name: buffer[name] for name in ("state", "maxReadPosition") if name in buffer}
    text = "the transaction buffer of the topic is being recovered: consumers read nothing until it is"
    because = "" if recovering else "the broker calls the message uncommitted, though it is in no transaction"
    return Finding(text, facts, f"pulsarium admin transactions transaction-buffer-stats -t {_t(state)}", because)


BUFFER_IN_RECOVERY: Final = ("None", "Initializing", "FirstSnapshotting")


def _pending_ack(state: State) -> Finding | None:
    """Judge acknowledgements in transactions. A dispatcher acknowledges all else that it gives to no consumer."""
    known = state.facts.transactions.get("pendingAck")
    ongoing = number(known or {}, "ongoingTxnSize")
    likely = known is None and state.consumers and state.unread == 0 and not state.unacked and not state.holds_back
    if not state.backlog or state.unread or not (ongoing or likely):
        return None
    facts = {**({"pendingAck.ongoingTxnSize": ongoing} if ongoing else {}), "msgBacklog": state.backlog}
    whose = _count(ongoing, "open transaction", "open transactions") if ongoing else "open transactions"
    because = "" if ongoing else "everything was read, and no consumer has a message"
    command = f"pulsarium admin transactions pending-ack-stats -s {_s(state)} -t {_t(state)}"
    return Finding(f"{whose} acknowledged messages of the backlog", facts, command, because)


_DISPATCH_RATES: Final = ("dispatchRate", "subscriptionDispatchRate")
_LIMITED: Final = {
    "Broker": "brokers get-all-dynamic-config",
    "Topic": "topicPolicies get-dispatch-rate -ap {topic}",
    "Subscription": "topicPolicies get-subscription-dispatch-rate -ap {topic}",
}
"""Commands that show a dispatch rate, by what has the rate."""


def _rate_limited(state: State) -> Finding | None:
    if not state.waits_to_be_sent or state.unread == 0 or not state.able:
        return None
    throttled = {
        name: state.count(name)
        for what in ("Msg", "Bytes")
        for each in _LIMITED
        if state.count(name := f"dispatchThrottled{what}EventsBy{each}Limit")
    }
    rates = {word: rate for word in _DISPATCH_RATES if _limits(rate := _policy(state, word))}
    if not throttled and not rates:
        return None
    limited = [each for each in _LIMITED if any(f"By{each}" in name for name in throttled)]
    whose = f" of its {' and '.join(limited).lower()}" if limited else ""
    because = "" if throttled and rates else "a dispatch rate is set, and nothing else holds the subscription"
    if throttled and not rates:
        because = "the broker throttled the subscription since the topic was loaded"
    shown = limited[-1] if limited else "Topic" if "dispatchRate" in rates else "Subscription"
    command = f"pulsarium admin {_LIMITED[shown]}".format(topic=_t(state))
    return Finding(f"a dispatch rate{whose} is used up", {**throttled, **rates}, command, because)


# ---- 4. a broker that cannot send


def _ack_gaps(state: State) -> Finding | None:
    gaps = number(state.cursor, "totalNonContiguousDeletedMessagesRange")
    stored = number(state.facts.config, "managedLedgerMaxUnackedRangesToPersist")
    if not _policy(state, "dispatcherPauseOnAckStatePersistent") or not 0 < stored < gaps or not state.unread:
        return None
    text = f"acknowledgements leave {gaps} gaps, and the broker can store {stored}: the dispatcher pauses"
    text += " (dispatcherPauseOnAckStatePersistent)"
    facts: dict[str, Any] = {
        "totalNonContiguousDeletedMessagesRange": gaps,
        "managedLedgerMaxUnackedRangesToPersist": stored,
    }
    facts |= {"markDeletePosition": state.cursor.get("markDeletePosition")}
    command = f"pulsarium admin topicPolicies remove-dispatcher-pause-on-ack-state-persistent {_t(state)}"
    return Finding(text, facts, command)


def _unreadable(state: State) -> Finding | None:
    refused = state.facts.peeked.get("reason", "")
    if UNREAD not in refused or not state.waits_to_be_sent:
        return None
    error = re.search("Message: (.*)", refused)
    read = position(state.cursor.get("readPosition"))
    ledgers = {number(each, "ledgerId"): number(each, "entries") for each in state.facts.internal.get("ledgers") or ()}
    lost = max(1, ledgers.get(read[0], 0) - read[1]) if read else 1
    facts = {"peek": error[1] if error else refused, "readPosition": state.cursor.get("readPosition")}
    text = f"the broker cannot read the backlog: {facts['peek']}"
    because = "a peek at its first message fails"
    command = f"pulsarium admin topics stats-internal {_t(state)}"
    return Finding(text, facts, command, because, destructive=_skip(state, lost))


UNREAD: Final = "ManagedLedgerException"  # Pulsar names the Java class in the reason of the refusal


def _not_writable(state: State) -> Finding | None:
    given = {id(each): number(each, "unackedMessages") for each in state.served}
    if state.type in ONE_READS:
        given = dict.fromkeys(given, state.unacked)
    full = [each for each in state.served if given[id(each)] > number(each, "msgOutCounter")]
    if not full:
        return None
    sent = sum(number(each, "msgOutCounter") for each in full)
    text = f"the connection of {_names(full)} is full: the client does not read"
    because = f"the dispatcher gave {sum(given[id(each)] for each in full)} messages to it, and {sent} left"
    facts = {"consumers": [_consumer(each) for each in full[:SHOWN]]}
    return Finding(text, facts, _stats_command(state), because)


def _dispatcher_stuck(state: State) -> Finding | None:
    waits = state.unread if state.unread is not None else state.backlog > max(state.sent, state.unacked)
    if not state.able or not waits:
        return None
    facts = {"unreadEntries": state.unread, "consumers": [_consumer(each) for each in state.able[:SHOWN]]}
    facts |= {name: state.cursor[name] for name in ("pendingReadOps", "waitingReadOp") if name in state.cursor}
    text = f"the dispatcher does not serve {_names(state.able)}: it hangs, or the connection is full"
    because = "the consumers have permits and are at no limit, entries are unread, and no other counter says why"
    return Finding(text, facts, _unload(state), because)


# ---- 5. nothing to send


def _delivered(state: State) -> Finding | None:
    holders = [each for each in state.consumers if number(each, "unackedMessages")]
    if state.unread is None and state.type in ONE_READS and state.able and state.sent >= state.backlog > 0:
        text = f"everything was delivered: {_names(state.able)} acknowledges nothing"
        because = f"it was sent {state.sent} messages and has permits, and {state.backlog} entries are in the backlog"
        return Finding(text, _fields(state, "msgBacklog", "lastAckedTimestamp"), _stats_command(state), because)
    if not state.backlog or not state.unacked or state.unread or state.holds_back:
        return None
    messages = _count(state.unacked, "unacknowledged message", "unacknowledged messages")
    text = f"everything was delivered: {_names(holders or state.served)} has {messages}"
    facts = {**_fields(state, "msgBacklog", "lastAckedTimestamp"), "consumers": [_consumer(c) for c in holders[:SHOWN]]}
    return Finding(text, facts, _stats_command(state))


def _terminated(state: State) -> Finding | None:
    if state.facts.internal.get("state") != "Terminated" or state.backlog:
        return None
    last = state.facts.internal.get("lastConfirmedEntry")
    facts = {"state": "Terminated", "lastConfirmedEntry": last}
    text = f"the topic was terminated at {last}, and accepts no messages"
    delete = f"pulsarium admin topics delete {_t(state)}"
    return Finding(text, facts, _stats_command(state), destructive=delete)


def _backlog_quota(state: State) -> Finding | None:
    limits = {kind: quota for kind, quota in (_policy(state, "backlogQuotaMap") or {}).items() if quota}
    size, age = number(state.topic, "backlogSize"), number(state.topic, "oldestBacklogMessageAgeSeconds")
    by_size, by_age = number(state.topic, "backlogQuotaLimitSize"), number(state.topic, "backlogQuotaLimitTime")
    if not (0 < by_size <= size or 0 < by_age <= age):
        return None
    policies = {str(quota.get("policy")) for quota in limits.values() if _has_limit(quota)} or {"producer_request_hold"}
    if policies == {"consumer_backlog_eviction"}:
        return None
    backlogs = {name: number(each, "msgBacklog") for name, each in state.facts.subscriptions.items()}
    most = max(backlogs, key=lambda name: backlogs[name])
    over = f"{size} bytes, of {by_size}" if 0 < by_size <= size else f"{age} s old, of {by_age} s"
    text = f"the backlog of the topic is {over}: producers are refused or held until {most} acknowledges"
    facts = {"backlogSize": size, "backlogQuotaLimitSize": by_size, "backlogs": backlogs}
    clear = f"pulsarium admin topics clear-backlog -s {shlex.quote(most)} {_t(state)}"
    return Finding(text, facts, _stats_command(state), destructive=clear)


def _publish_rate(state: State) -> Finding | None:
    times, rate = number(state.topic, "publishRateLimitedTimes"), _policy(state, "publishRate")
    per_second = [per_second for per_second, limit in _PUBLISHED.items() if _is_at(state, per_second, limit, rate)]
    if not times and not per_second:
        return None
    facts = {"publishRateLimitedTimes": times, "publishRate": rate}
    facts |= {name: state.topic[name] for name in per_second}
    because = f"the broker paused producers {_count(times, 'time', 'times')} since the topic was loaded"
    if not times:  # Pulsar 4.0 does not count
        because = "they publish as much as the rate allows"
    command = f"pulsarium admin topicPolicies get-publish-rate {_t(state)}"
    return Finding("a publish rate holds the producers back", facts, command, because)


_PUBLISHED: Final = {"msgRateIn": "publishThrottlingRateInMsg", "msgThroughputIn": "publishThrottlingRateInByte"}
AT_LIMIT: Final = 0.9


def _is_at(state: State, per_second: str, limit: str, rate: Json | None) -> bool:
    return 0 < AT_LIMIT * number(rate or {}, limit) <= rate_of(state.topic, per_second)


# fmt: off
_ROWS: Final = (
    WhyReason("topic-not-found", _topic_not_found, "The broker has no such topic.",
        "compare the name with the topics of the namespace", needs_quiet=False),
    WhyReason("topic-unavailable", _topic_unavailable,
        "The topic is being loaded or unloaded, its broker has failed, or no broker may serve it.",
        "ask again; if the answer stays, look at the brokers, and at ns-isolation-policy", needs_quiet=False),
    WhyReason("no-consumer", _no_consumer, "No consumer is connected.",
        "start a consumer, or delete the subscription if nobody needs it", needs_quiet=False),
    WhyReason("redelivery-loop", _redelivery_loop, "A message is redelivered again and again.",
        "skip the message, or set a dead letter policy on the consumer", needs_quiet=False),
    WhyReason("subscription-owes", _subscription_owes,
        "The consumers together have reached maxUnackedMessagesPerSubscription.",
        "acknowledge the messages, or close a consumer that hangs; the command shows the limit"),
    WhyReason("broker-owes", _broker_owes, "The broker has reached maxUnackedMessagesPerBroker.",
        "look for subscriptions of this broker with many unacknowledged messages; the command shows the limit"),
    WhyReason("consumers-owe", _consumers_owe, "Each consumer has reached maxUnackedMessagesPerConsumer.",
        "acknowledge the messages, or close a consumer that hangs; the command shows the limit"),
    WhyReason("no-permits", _no_permits, "The consumers that are served have no permits.",
        "look at the client: it works, it hangs, or it is paused; when it is closed, others get its messages"),
    WhyReason("draining", _draining,
        "Hashes of keys drain: the consumer before has unacknowledged messages of them (4.0 and later).",
        "acknowledge the messages of that consumer, or close it"),
    WhyReason("recently-joined", _recently_joined,
        "Consumers that joined wait for the messages before them (3.x, and the classic dispatcher).",
        "acknowledge the older messages, or close the consumer that has them"),
    WhyReason("no-owner", _no_owner, "The STICKY ranges of the consumers leave a gap.",
        "start a consumer with the hashes of the gap"),
    WhyReason("waiting", _waiting, "The consumer of a key cannot take more, while others can.",
        "look at the client that has the key; when it is closed, others get its keys"),
    WhyReason("delayed", _delayed, "All messages that wait are delayed.",
        "wait; the command shows the first messages"),
    WhyReason("open-transaction", _open_transaction, "An open transaction stands before the messages.",
        "end the transaction; abort one that nobody ends with abort-transaction", needs_quiet=False),
    WhyReason("transaction-buffer", _transaction_buffer, "The transaction buffer of the topic is being recovered.",
        "wait, and unload the topic if the state stays"),
    WhyReason("pending-ack", _pending_ack, "Open transactions acknowledged the backlog.",
        "end the transactions; slow-transactions lists them, and abort-transaction ends one"),
    WhyReason("rate-limited", _rate_limited, "A dispatch rate is used up.",
        "wait, or raise the rate of the topic, of the subscription or of the broker"),
    WhyReason("ack-gaps", _ack_gaps, "The broker pauses, because it cannot store which messages were acknowledged.",
        "acknowledge the first messages, or remove the policy of the topic, its namespace or the broker"),
    WhyReason("unreadable", _unreadable, "The broker cannot read the messages: a ledger is lost, or bookies are down.",
        "start the bookies; if the messages are lost, skip them, or set autoSkipNonRecoverableData and unload"),
    WhyReason("not-writable", _not_writable, "A connection is full: the client does not read.",
        "look at the client and at its network; when it is closed, others get its messages"),
    WhyReason("dispatcher-stuck", _dispatcher_stuck, "Consumers have permits, and no other counter says why.",
        "unload the topic: its clients reconnect; if that does not help, look for lost ledgers in the broker's log"),
    WhyReason("delivered", _delivered, "Consumers have all messages, and acknowledge none.",
        "look at the client: it works, or it hangs; when it is closed, others get its messages"),
    WhyReason("terminated", _terminated, "The topic was terminated, and everything was acknowledged.",
        "let producers and consumers use another topic, and delete this one when they have left", needs_quiet=False),
    WhyReason("backlog-quota", _backlog_quota, "A backlog quota stops the producers.",
        "let the slowest subscription acknowledge, or clear or delete it", needs_quiet=False, if_idle=True),
    WhyReason("publish-rate", _publish_rate, "A publish rate slows the producers down.",
        "raise the rate, or publish less", needs_quiet=False, if_idle=True),
)
# fmt: on
REASONS: Final[Mapping[str, WhyReason]] = {each.name: each for each in _ROWS}
LAST_RESORT: Final = "dispatcher-stuck"


# ---- words


def _t(state: State) -> str:
    return shlex.quote(state.facts.topic)


def _s(state: State) -> str:
    return shlex.quote(state.facts.subscription)


def _namespace(facts: Facts) -> str:
    return "/".join(facts.topic.partition("://")[2].split("/")[:2])


def _unload(state: State) -> str:
    return f"pulsarium admin topics unload {_t(state)}"


def _skip(state: State, count: int = 1) -> str:
    return f"pulsarium admin topics skip -s {_s(state)} -n {count} {_t(state)}"


def _peek(state: State) -> str:
    return f"pulsarium admin topics peek-messages -s {_s(state)} {_t(state)}"


def _stats_command(state: State) -> str:
    return f"pulsarium admin topics stats {_t(state)}"


def _message(state: State) -> dict[str, str]:
    found = state.facts.peeked.get("x-pulsar-message-id")
    return {} if found is None else {"messageId": found}


def _fields(state: State, *names: str) -> dict[str, Any]:
    return {name: state.stats[name] for name in names if name in state.stats}


def _consumer(consumer: Json) -> dict[str, Any]:
    return {name: consumer[name] for name in CONSUMER if name in consumer}


def _policy(state: State, word: str) -> Any:
    return state.facts.policies.get(word)


def _limit(state: State, word: str, key: str) -> int:
    found = _policy(state, word)
    return number(state.facts.config, key) if found is None else int(found)


def _limits(rate: Json | None) -> bool:
    return any(number(rate or {}, f"dispatchThrottlingRateIn{what}") > 0 for what in ("Msg", "Byte"))


def _has_limit(quota: Json) -> bool:
    return max(number(quota, "limitSize"), number(quota, "limit"), number(quota, "limitTime")) > 0


def _of(limit: int) -> str:
    return f", and the limit is {limit}" if limit else ""


def _names(consumers: Iterable[Json]) -> str:
    names = [str(each.get("consumerName") or each.get("address") or "a consumer") for each in consumers]
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
