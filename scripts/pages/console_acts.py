"""The acts of the console: each is a command line with fields in braces.

The REST call of an act is derived from the command: `console.py` runs the command and records its request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TEXT: Final = "text"
NUMBER: Final = "number"
POSITION: Final = "position"  # LEDGER:ENTRY, or found by index or by time
CHOICE: Final = "choice"


@dataclass(frozen=True, slots=True)
class Field:
    """A value that a person enters. An optional field may stay empty."""

    name: str
    label: str
    kind: str = TEXT
    default: str = ""
    optional: bool = False
    choices: tuple[str, ...] = ()
    example: str = ""  # a valid value, for the run that derives the call


@dataclass(frozen=True, slots=True)
class Act:
    """An act on an object of the kind `on`. `command` follows `pulsarium`; brackets enclose an optional part.

    A `danger` deletes messages or settings, so the console asks in red.
    """

    id: str
    on: str
    label: str
    about: str
    command: str
    fields: tuple[Field, ...] = ()
    danger: bool = False


COUNT: Final = Field("count", "Messages", NUMBER, "1")
SECONDS: Final = Field("seconds", "Seconds", NUMBER, "3600")
AT: Final = Field("position", "Message", POSITION, "earliest")
OF_SCALABLE: Final = Field("segment", "Segment", NUMBER, "0")
COMMANDS: Final = ("SEND", "ACK", "SUBSCRIBE", "PRODUCER", "LOOKUP", "FLOW", "MESSAGE", "SEND_RECEIPT", "PING", "*")
ACTIONS: Final = ("drop", "delay", "close", "answer", "duplicate", "corrupt", "truncate")

ACTS: Final = (
    # subscriptions
    Act("skip", "subscription", "Skip messages", "Acknowledge the next messages, in order.",
        "admin topics skip {topic} -s {subscription} -n {count}", (COUNT,), danger=True),
    Act("skip-message", "subscription", "Skip one message", "Acknowledge one message by its id, also out of order.",
        "admin topics skip-messages {topic} -s {subscription} --messageId-triplet {position}", (AT,), danger=True),
    Act("seek", "subscription", "Seek", "Move the subscription to a message, found by id, index or time.",
        "admin topics reset-cursor {topic} -s {subscription} -m {position}", (AT,)),
    Act("rewind", "subscription", "Go back in time", "Move the subscription back by some seconds.",
        "admin topics reset-cursor {topic} -s {subscription} -t {seconds}", (SECONDS,)),
    Act("clear", "subscription", "Clear backlog", "Acknowledge all messages.",
        "admin topics clear-backlog {topic} -s {subscription}", danger=True),
    Act("expire", "subscription", "Expire old messages", "Acknowledge the messages that are older.",
        "admin topics expire-messages {topic} -s {subscription} -t {seconds}", (SECONDS,), danger=True),
    Act("expire-to", "subscription", "Expire up to a message", "Acknowledge all messages up to this one.",
        "admin topics expire-messages {topic} -s {subscription} -p {position}", (AT,), danger=True),
    Act("unsubscribe", "subscription", "Delete subscription", "Delete the subscription with its position.",
        "admin topics unsubscribe {topic} -s {subscription}", danger=True),
    Act("unsubscribe-force", "subscription", "Delete with consumers", "Disconnect the consumers, and delete.",
        "admin topics unsubscribe {topic} -s {subscription} -f", danger=True),
    # topics
    Act("subscribe", "topic", "Create subscription", "Create a subscription, which keeps messages for consumers.",
        "admin topics create-subscription {topic} -s {subscription} -m {position}",
        (Field("subscription", "Name", example="my-subscription"), AT)),
    Act("unload", "topic", "Unload", "Close the topic. Its clients look the topic up again.",
        "admin topics unload {topic}"),
    Act("compact", "topic", "Compact", "Keep the last message of each key for readers of the compacted topic.",
        "admin topics compact {topic}"),
    Act("expire-all", "topic", "Expire old messages", "Acknowledge older messages, for every subscription.",
        "admin topics expire-messages-all-subscriptions {topic} -t {seconds}", (SECONDS,), danger=True),
    Act("trim", "topic", "Trim", "Delete the ledgers that retention does not keep.",
        "admin topics trim-topic {topic}"),
    Act("truncate", "topic", "Truncate", "Delete all messages.", "admin topics truncate {topic}", danger=True),
    Act("terminate", "topic", "Terminate", "Accept no more messages, forever.",
        "admin topics terminate {topic}", danger=True),
    Act("delete", "topic", "Delete topic", "Delete the topic without clients.",
        "admin topics delete {topic}", danger=True),
    Act("delete-force", "topic", "Delete with clients", "Disconnect all clients, and delete the topic.",
        "admin topics delete {topic} -f", danger=True),
    Act("delete-schema", "topic", "Delete schema", "Delete the schema of the topic.",
        "admin schemas delete {topic}", danger=True),
    # partitioned topics
    Act("partitions", "partitioned", "Add partitions", "Set a larger number of partitions.",
        "admin topics update-partitioned-topic {topic} -p {count}", (Field("count", "Partitions", NUMBER, "4"),)),
    Act("missing", "partitioned", "Create missing partitions", "Create the partitions that are missing.",
        "admin topics create-missed-partitions {topic}"),
    Act("unload-all", "partitioned", "Unload", "Close all partitions. Their clients look them up again.",
        "admin topics unload {topic}"),
    Act("subscribe-all", "partitioned", "Create subscription", "Create a subscription on all partitions.",
        "admin topics create-subscription {topic} -s {subscription} -m {position}",
        (Field("subscription", "Name", example="my-subscription"), AT)),
    Act("delete-partitioned", "partitioned", "Delete topic", "Delete all partitions without clients.",
        "admin topics delete-partitioned-topic {topic}", danger=True),
    Act("delete-partitioned-force", "partitioned", "Delete with clients", "Disconnect all clients, and delete.",
        "admin topics delete-partitioned-topic {topic} -f", danger=True),
    # scalable topics
    Act("split", "scalable", "Split a segment", "Split a segment into its two halves.",
        "admin scalable-topics split-segment {topic} -s {segment}", (OF_SCALABLE,)),
    Act("merge", "scalable", "Merge segments", "Merge two adjacent segments into one.",
        "admin scalable-topics merge-segments {topic} --segment-id-1 {segment} --segment-id-2 {other}",
        (OF_SCALABLE, Field("other", "Other segment", NUMBER, "1"))),
    Act("delete-scalable", "scalable", "Delete topic", "Delete the topic with its segments.",
        "admin scalable-topics delete {topic}", danger=True),
    # namespaces and tenants
    Act("create", "namespace", "Create topic", "Create a topic without partitions.",
        "admin topics create {newTopic}", (Field("newTopic", "Topic", "topic"),)),
    Act("create-partitioned", "namespace", "Create partitioned topic", "Create a topic with partitions.",
        "admin topics create-partitioned-topic {newTopic} -p {count}",
        (Field("newTopic", "Topic", "topic"), Field("count", "Partitions", NUMBER, "4"))),
    Act("create-scalable", "namespace", "Create scalable topic", "Create a topic of segments that split and merge.",
        "admin scalable-topics create {newTopic} -s {count}",
        (Field("newTopic", "Topic", "scalable"), Field("count", "Segments", NUMBER, "1"))),
    Act("unload-namespace", "namespace", "Unload", "Close all topics. Their clients look them up again.",
        "admin namespaces unload {namespace}"),
    Act("clear-namespace", "namespace", "Clear all backlogs", "Acknowledge all messages of all subscriptions.",
        "admin namespaces clear-backlog {namespace} --force", danger=True),
    Act("delete-namespace", "namespace", "Delete namespace", "Delete the namespace, which has no topics.",
        "admin namespaces delete {namespace}", danger=True),
    Act("create-namespace", "tenant", "Create namespace", "Create a namespace.",
        "admin namespaces create {newNamespace}", (Field("newNamespace", "tenant/namespace", "namespace"),)),
    Act("create-tenant", "broker", "Create tenant", "Create a tenant, which owns namespaces.",
        "admin tenants create {tenant} -c {cluster}",
        (Field("tenant", "Tenant", example="shop"), Field("cluster", "Cluster", default="standalone"))),
    Act("delete-tenant", "tenant", "Delete tenant", "Delete the tenant, which has no namespaces.",
        "admin tenants delete {tenant}", danger=True),
    Act("abort", "transaction", "Abort", "Abort the transaction, as its timeout does.",
        "admin transactions abort-transaction -m {most} -l {least}", danger=True),
    # the lab
    Act("freeze", "clock", "Freeze", "Stop the broker's clock.", "clock freeze"),
    Act("resume", "clock", "Resume", "Let the clock run again from the time that it shows.", "clock resume"),
    Act("reset-clock", "clock", "Return to real time", "Return to the machine's time.", "clock reset"),
    Act("advance", "clock", "Advance", "Advance the clock, and run each timer on the way.", "clock advance {seconds}",
        (SECONDS,)),
    Act("run-next", "clock", "Run next timer", "Advance the clock to its next timer, and run the timer.",
        "clock run-next"),
    Act("fault", "faults", "Add fault", "Act on the next frames of this command.",
        "fault add {command} {action} [--topic {pattern}] [--count {count}]",
        (Field("command", "Command", CHOICE, "SEND", choices=COMMANDS),
         Field("action", "Action", CHOICE, "drop", choices=ACTIONS),
         Field("pattern", "Topic (glob)", optional=True), Field("count", "Times", NUMBER, "1", optional=True))),
    Act("remove-fault", "fault", "Remove", "Remove the fault. The frames that it holds up go on.", "fault remove {id}"),
    Act("remove-faults", "faults", "Remove all", "Remove all faults.", "fault remove --all"),
    Act("mask", "masks", "Add mask", "Present an older or smaller broker to new connections.",
        "mask add --max-protocol-version {version} [--client-version {client}]",
        (Field("version", "Highest protocol version", NUMBER, "19"),
         Field("client", "Client version (glob)", optional=True))),
    Act("remove-mask", "mask", "Remove", "Remove the mask. Open connections keep it.", "mask remove {id}"),
    Act("capture", "captures", "Start capture", "Record every frame from now on, in memory.", "capture start"),
    Act("stop-capture", "capture", "Stop", "End the capture. Its frames can still be read.", "capture stop {id}"),
    Act("lint", "linter", "Start", "Check all connections that are opened from now on.", "lint --live --start"),
    Act("lint-stop", "linter", "Stop", "Stop checking. Findings stay.", "lint --live --stop"),
    Act("lint-clear", "linter", "Clear", "Delete all findings.", "lint --live --clear"),
    Act("reset-state", "state", "Delete everything", "Delete all topics, policies and tenants, as if just started.",
        "state reset", danger=True),
)  # fmt: skip
