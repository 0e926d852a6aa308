"""Generate docs/errors.md: the errors of the protocol, and texts of logs and commands as the code has them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pulsarium.broker.model import errors as broker_errors
from pulsarium.client import errors as client_errors
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ROOT: Final = Path(__file__).parents[2]

NEXT: Final = {
    "UnknownError": "Read the text of the error and the broker's log: no code says more.",
    "MetadataError": "Read the text. A consumer that the broker does not know subscribes again; a topic that asks for "
    "encryption takes only producers with keys.",
    "PersistenceError": "Look at the disk and the broker's log. Clients connect again by themselves, and succeed when "
    "the broker can write.",
    "AuthenticationError": "Compare the client's token, password or certificate with the broker's configuration: see "
    "[With authentication and TLS](secure.md).",
    "AuthorizationError": "Grant the role what the text names: `pulsarium admin namespaces grant-permission`.",
    "ConsumerBusy": "Close the other consumer, choose another subscription, or a type for several consumers: Shared, "
    "Failover or Key_Shared.",
    "ServiceNotReady": "Wait: clients look the topic up again by themselves. The broker's log says what "
    "closes or deletes the topic.",
    "ProducerBlockedQuotaExceededError": "Consume the backlog, or raise or remove the quota: `pulsarium admin "
    "namespaces remove-backlog-quota`. The producer waits meanwhile.",
    "ProducerBlockedQuotaExceededException": "Consume the backlog, or raise or remove the quota: `pulsarium "
    "admin namespaces remove-backlog-quota`. Then create the producer again.",
    "ChecksumError": "Send the message again, as clients do. A repeated error tells of a network or a proxy that "
    "changes bytes.",
    "UnsupportedVersionError": "Use a newer client, or remove the mask or profile that limits the broker's version.",
    "TopicNotFound": "Create the topic or its namespace, or allow the broker to: allowAutoTopicCreation.",
    "SubscriptionNotFound": "Create the subscription, or allow the broker to: allowAutoSubscriptionCreation.",
    "ConsumerNotFound": "Subscribe again: the broker has closed the consumer.",
    "TooManyRequests": "Wait, and ask less often. maxConcurrentLookupRequest is the limit.",
    "TopicTerminatedError": "Publish to another topic: a terminated topic accepts no message any more.",
    "ProducerBusy": "Give each producer a name of its own, or raise maxProducersPerTopic.",
    "InvalidTopicName": "Correct the name: see [Names](names.md).",
    "IncompatibleSchema": "Change the schema so that the compatibility strategy of the namespace allows it, or change "
    "the strategy: `pulsarium admin namespaces set-schema-compatibility-strategy`.",
    "ConsumerAssignError": "Give the sticky Key_Shared consumers hash ranges that do not overlap.",
    "TransactionCoordinatorNotFound": "Switch transactions on (transactionCoordinatorEnabled), or look the coordinator "
    "up again.",
    "InvalidTxnStatus": "Begin another transaction: this one is ending or has ended.",
    "NotAllowedError": "Read the text: it names the policy, the setting or the feature that forbids the request.",
    "TransactionConflict": "Abort the transaction, and let the other one end first.",
    "TransactionNotFound": "Begin another transaction. This one has ended, at the latest by its timeout.",
    "ProducerFenced": "Close the producer. Another one has exclusive access to the topic now.",
}
"""The next step for each ServerError of PulsarApi.proto."""


class Text(NamedTuple):
    """A text of the code. `name` is its heading, `module` a file of the checkout, and `part` finds the text in it."""

    name: str
    module: str
    part: str
    cause: str
    remedy: str


START: Final = (
    Text(
        "A port is in use",
        "broker/net/accepting.py",
        "is in use",
        "another broker, or a real Pulsar, uses the port",
        "stop it, or pass `--port 0 --http-port 0`",
    ),
    Text(
        "The data folder is in use",
        "broker/storage/place.py",
        "in use by another",
        "another broker uses the data folder",
        "stop it, or choose another `--data DIR`",
    ),
    Text(
        "The data folder cannot be used",
        "broker/storage/place.py",
        "for data",
        "the folder belongs to another user, such as a folder of the host that "
        "a container mounts, or nothing can be written there",
        "type the `chown` or `install` line of the message, or choose another `--data DIR`; `bin/pulsar standalone` "
        "keeps data in memory with `PULSARIUM_IN_MEMORY=true`",
    ),
    Text(
        "No data folder of Pulsarium",
        "broker/storage/probe.py",
        "not a store of",
        "DIR holds something else",
        "choose another `--data DIR`",
    ),
    Text(
        "A data folder of another version",
        "broker/storage/database.py",
        "written by",
        "another version wrote the folder, in another format",
        "start that version, or choose another folder",
    ),
    Text(
        "A damaged data folder",
        "broker/storage/probe.py",
        "is damaged:",
        "the disk, or a program, changed the database",
        "do what the text says: `pulsarium state snapshot` makes such snapshots",
    ),
    Text(
        "A damaged database",
        "broker/storage/database.py",
        "it is damaged, or no store",
        "the head of the database was overwritten",
        "do what the text says; without a snapshot, restore the folder from a copy",
    ),
    Text(
        "A damaged entry log",
        "broker/storage/entry_log.py",
        "the entry log is damaged",
        "the disk, a program or a crash of the machine changed the end of the log",
        "nothing: the broker serves what is before, and the copy `kept_as` has the rest",
    ),
    Text(
        "A missing file of the entry log",
        "broker/storage/entry_log.py",
        "is missing: its commits",
        "a program deleted the newest file",
        "the broker serves what is before; put the file back before the start",
    ),
    Text(
        "An unfinished record in the entry log",
        "broker/storage/entry_log.py",
        "unfinished record: nothing",
        "the broker was killed while it wrote, or the file was cut",
        "nothing, after a kill: no client has a receipt for it",
    ),
    Text(
        "A network file system",
        "broker/storage/database.py",
        "shared memory maps",
        "DIR is on a network file system",
        "use a local disk",
    ),
    Text(
        "A damaged topic",
        "broker/model/topic/topics.py",
        "is damaged, and left",
        "the stored form of one topic cannot be read; all other topics work",
        "restore the folder from a copy, or delete the topic with force",
    ),
    Text(
        "An extra is not installed",
        "proto/installing.py",
        "install it with",
        "the installation lacks an extra of Pulsarium",
        "type the line of the message: it fits the way in which this Pulsarium was installed",
    ),
    Text(
        "No file locks",
        "broker/storage/place.py",
        "no file locks",
        "`--data` on Windows",
        "run without `--data`, or in WSL",
    ),
)
CONNECT: Final = (
    Text(
        "The port of the admin API",
        "client/connection/wrong_port.py",
        "HTTP answers there",
        "the URL has the port of the admin API",
        "use the port of `pulsar://`, by default 6650",
    ),
    Text(
        "The port speaks TLS",
        "client/connection/wrong_port.py",
        "that port speaks TLS",
        "a plain URL at a TLS port",
        "use `pulsar+ssl://`",
    ),
    Text(
        "The port does not speak TLS",
        "client/connection/wrong_port.py",
        "does not speak TLS",
        "a TLS URL at a plain port",
        "use `pulsar://`, or the TLS port",
    ),
    Text(
        "A certificate is not trusted",
        "client/connection/wrong_port.py",
        "is not trusted",
        "the client does not know who signed the certificate",
        "name the authority's file: `--tls-trust-cert-path`, `tls_trust_certs_file_path=`",
    ),
    Text(
        "A host that the broker does not know",
        "broker/web/http/browser.py",
        "if you trust it",
        "the broker does not know the host of the URL, or a page of another site calls",
        "`pulsarium serve --set httpAllowedHosts=NAME`, `pulsarium proxy --allow-host NAME`",
    ),
)
SPARK: Final = (
    Text(
        "Two queries on one subscription",
        "pipeline/source/subscription.py",
        "another query or program",
        "two queries have the same checkpoint, or the same predefinedSubscription",
        "give each its own, or stop one",
    ),
    Text(
        "Data was lost",
        "pipeline/source/losses.py",
        "data was lost",
        "retention, TTL, a backlog quota or a skip removed messages before Spark read them",
        "see [Offsets and lost data](pipeline.md#offsets-and-lost-data); `failOnDataLoss=false` continues",
    ),
)


LOG: Final = (
    Text(
        "The event loop was held",
        "broker/net/stalls.py",
        "the event loop was held",
        "one piece of the broker's work took the processor for that long",
        "nothing, if it happens once. Else ask less at once of what `longest_work` names",
    ),
    Text(
        "Too few open files",
        "broker/net/accepting.py",
        "raise the limit of open files",
        "the process has as many connections and files as the system allows",
        "type `ulimit -n 65536` before the start, or close connections",
    ),
    Text(
        "A TLS handshake failed",
        "broker/net/accepting.py",
        "a TLS handshake failed",
        "a client without TLS, one that does not trust the certificate, or one without a certificate of its own",
        "read `reason`, and compare the client's URL and its trusted certificates: see [Secure a broker](secure.md)",
    ),
    Text(
        "Changed TLS files cannot be used",
        "broker/auth/tls.py",
        "TLS files cannot",
        "the new certificate and key do not fit each other, or one of them cannot be read",
        "write both files again. The broker looks every tlsCertRefreshCheckDurationSec seconds, and needs no new start",
    ),
    Text(
        "Refused without credentials",
        "broker/web/http/permission.py",
        "without valid credentials",
        "a request over HTTP had no token or password, or one that is wrong or has expired",
        "set PULSARIUM_TOKEN for `pulsarium admin`, or the token of your own client: see [Secure a broker](secure.md)",
    ),
    Text(
        "Refused without permission",
        "broker/web/http/permission.py",
        "refused an unauthorized call",
        "the role of the request lacks the permission that `needs` names",
        "grant it: `pulsarium admin namespaces grant-permission`",
    ),
    Text(
        "A setting without effect",
        "broker/model/policy/without_effect.py",
        "is stored and has no effect",
        "Pulsarium keeps and shows the setting, as Pulsar does, and lacks what it controls",
        "nothing, unless a test needs it: see [Differences](differences.md)",
    ),
    Text(
        "Damaged entries are skipped",
        "broker/model/subscription/persistent.py",
        "damaged entries are skipped",
        "the disk, or a program, changed these messages, and autoSkipNonRecoverableData lets the broker go on",
        "publish the messages again, or restore the folder from a copy",
    ),
)


def errors_page() -> str:
    """Return docs/errors.md."""
    return "\n".join(
        (
            "# Errors",
            "",
            "What an error means, and what to do next. Search for the name that a client's log shows, or for a part",
            "of the text; `...` stands for a name or a number. Generated from the code and `scripts/pages/errors.py`;",
            "do not edit.",
            "",
            "## The broker does not start, or warns at its start",
            *_texts_of(START),
            "",
            "## A client does not connect",
            *_texts_of(CONNECT),
            "",
            "## The log warns",
            *_texts_of(LOG),
            "",
            "## Spark stops",
            *_texts_of(SPARK),
            "",
            "## Errors that the broker answers",
            "",
            "Each has the name of a ServerError of Pulsar's protocol. Clients of other languages show the name, or a",
            "class with a similar one. [The client](client.md#errors) lists the classes of Pulsarium's own.",
            *(line for name, code in pb.ServerError.items() for line in _answer(name, code)),
            "",
        )
    )


def _texts_of(rows: tuple[Text, ...]) -> Iterator[str]:
    for row in rows:
        yield from ("", f"### {row.name}", "", f"`{text_of(row)}`", "")
        yield f"Cause: {row.cause}.<br>Next: {row.remedy}."


def _answer(name: str, code: int) -> Iterator[str]:
    yield from ("", f"### {name}", "")
    own = client_errors.BY_CODE.get(code, client_errors.UnknownError)
    yield f"{_summary(own)} Pulsarium's client raises `{own.__name__}`, a `{_kind(own)}`."
    reasons = [each for each in vars(broker_errors).values() if inspect.isclass(each) and _sends(each, code)]
    if reasons:
        yield from ("", "The broker answers so in these cases:", "")
        yield from (f"- {_summary(each)}" for each in reasons)
    yield from ("", NEXT[name])


def _sends(error: type, code: int) -> bool:
    return issubclass(error, broker_errors.BrokerServiceError) and error.code == code != pb.UnknownError


def _kind(error: type[client_errors.PulsarError]) -> str:
    kinds = (client_errors.RetryError, client_errors.FixError, client_errors.GiveUpError)
    return next(kind.__name__ for kind in kinds if issubclass(error, kind))


def _summary(documented: type) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def text_of(row: Text) -> str:
    """Return the text as the code has it, with `...` for each expression in it."""
    found = [text for text in _texts(ROOT / row.module) if row.part in text]
    if not found:
        raise LookupError(f"{row.module} has no text with {row.part!r}: correct its row in scripts/pages/errors.py")
    return found[0].strip(" ;")


def _texts(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
