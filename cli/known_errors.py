"""Errors that logs and commands show, each with its cause and the next step. docs/errors.md is made of them, too.

The texts themselves stay where they are raised: a row names the file and a part of the text.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarium.broker.model import errors as broker_errors
from pulsarium.proto.errors import MissingExtra
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.errors import PulsarError

NEXT: Final = {
    "UnknownError": "Read the text of the error and the broker's log: no code says more.",
    "MetadataError": "Read the text. A consumer that the broker does not know subscribes again; a topic that asks for "
    "encryption takes only producers with keys.",
    "PersistenceError": "Look at the disk and the broker's log. Clients connect again by themselves, and succeed when "
    "the broker can write.",
    "AuthenticationError": "Compare the client's token, password or certificate with the broker's configuration: see "
    "[Secure a broker](secure.md).",
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
    """A text of the code. `name` is its heading, `module` a file of the package, and `part` finds the text in it."""

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
        "No Pulsar broker at the port",
        "client/connection/wrong_port.py",
        "no Pulsar broker answers there",
        "another server listens at the host and port of the service URL",
        "compare host and port: brokers listen at 6650, and at 6651 with TLS",
    ),
    Text(
        "An open connection without an answer",
        "client/connection/wrong_port.py",
        "connected, and no answer within",
        "the broker hangs, or another server listens there that waits, as a TLS or database server may",
        "compare host and port. `pulsarium admin brokers healthcheck` asks the broker itself",
    ),
    Text(
        "No HTTP at the port",
        "cli/admin/api.py",
        "does not answer in HTTP",
        "the URL of the admin API has the port of Pulsar's clients, or one for https://",
        "use the port of `http://`, by default 8080: `--admin-url http://HOST:8080`",
    ),
    Text(
        "Not the URL of the admin API",
        "cli/admin/api.py",
        "write http://HOST:PORT",
        "the URL begins with `pulsar://`, or with no scheme",
        "write `http://HOST:8080`, or `https://HOST:8443`",
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

SECTIONS: Final = {
    "The broker does not start, or warns at its start": START,
    "A client does not connect": CONNECT,
    "The log warns": LOG,
    "Spark stops": SPARK,
}
LEAST: Final = 15  # characters of a text that tell it from others
TEXTS: Final = tuple(row for rows in SECTIONS.values() for row in rows)


@cache
def text_of(row: Text) -> str:
    """Return the text as the code has it, with `...` for each expression in it."""
    found = [text for text in _texts(row.module) if row.part in text]
    if not found:
        raise LookupError(f"{row.module} has no text with {row.part!r}: correct its row in cli/known_errors.py")
    return found[0].strip(" ;")


def _texts(module: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(files("pulsarium").joinpath(module).read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def shows(row: Text, line: str) -> bool:
    """Return whether a line has the text of this row, with anything for each `...`, or at least its first clause.

    Commands write names of their options behind it, where a program has names of arguments.
    """
    first = text_of(row).partition("; ")[0]
    said = first if len(first.replace("...", "")) > LEAST else text_of(row)
    at = 0
    for part in map(str.strip, said.split("...")):  # not a regular expression, whose time grows with the line's square
        found = line.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def meaning(name: str) -> str:
    """Return what an error of the protocol says, and the class of Pulsarium's client. Without the client, nothing."""
    try:
        from pulsarium.client.errors import BY_CODE, UnknownError
    except MissingExtra:
        return ""
    own = BY_CODE.get(pb.ServerError.Value(name), UnknownError)
    return f"{_summary(own)} Pulsarium's client raises `{own.__name__}`, a `{_kind_of(own).__name__}`."


def own_errors() -> dict[str, str]:
    """Return the errors that only Pulsarium's client knows, each with its meaning. Without the client, nothing."""
    try:
        from pulsarium.client import errors
    except MissingExtra:
        return {}
    found = (each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.PulsarError))
    return {
        each.__name__: f"{_summary(each)} {_summary(_kind_of(each))}"
        for each in found
        if each is not _kind_of(each) and each.code not in NEXT
    }


def cases(name: str) -> list[str]:
    """Return the cases in which the broker answers with this error of the protocol."""
    code = pb.ServerError.Value(name)
    found = [each for each in vars(broker_errors).values() if inspect.isclass(each) and _sends(each, code)]
    return [_summary(each) for each in found]


def _sends(error: type, code: int) -> bool:
    return issubclass(error, broker_errors.BrokerServiceError) and error.code == code != pb.UnknownError


def _kind_of(error: type[PulsarError]) -> type[PulsarError]:
    """Return RetryError, FixError or GiveUpError, which say what to do; or the class itself above them."""
    from pulsarium.client.errors import FixError, GiveUpError, RetryError

    return next((kind for kind in (RetryError, FixError, GiveUpError) if issubclass(error, kind)), error)


def _summary(documented: type) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())
