"""docs/client.md: what the async client takes and raises, out of its classes and the texts beside their fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from pulsarium.client import errors
from pulsarium.client.connection.settings import Settings
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, ReceivingOptions, TableViewOptions
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    MultiplierRedeliveryBackoff,
)
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.statistics import ConsumerStatistics, ProducerStatistics
from pulsarium.client.transaction.options import TransactionOptions

OPTIONS: tuple[tuple[str, type], ...] = (
    ("`connect(service_url, ...)`", Settings),
    ("`client.create_producer(topic, ...)`", ProducerOptions),
    ("`producer.send(content, ...)`, and `submit` and `send_nowait`", MessageOptions),
    ("`producer.statistics()`: a `ProducerStatistics`", ProducerStatistics),
    ("What `subscribe`, `create_reader` and `create_table_view` share", ReceivingOptions),
    ("`client.subscribe(topic, subscription_name, ...)`", ConsumerOptions),
    ("`consumer.statistics()`: a `ConsumerStatistics`", ConsumerStatistics),
    ("`ConsumerDeadLetterPolicy`", ConsumerDeadLetterPolicy),
    ("`ConsumerBatchReceivePolicy`", ConsumerBatchReceivePolicy),
    ("`MultiplierRedeliveryBackoff`", MultiplierRedeliveryBackoff),
    ("`client.create_reader(topic, start_message_id, ...)`", ReaderOptions),
    ("`client.create_table_view(topic, ...)`", TableViewOptions),
    ("`client.transaction(...)` and `client.begin_transaction(...)`", TransactionOptions),
)


class Field(NamedTuple):
    """One option as the source has it."""

    name: str
    type: str
    default: str
    text: str


def fields_of(cls: type) -> list[Field]:
    """The annotated fields of a class, each with the string behind it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    found = []
    for statement, following in zip(definition.body, [*definition.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if statement.target.id.startswith("_"):
            continue
        default = "" if statement.value is None else _default(statement.value)
        text = _text(following)
        if not text and _is_inherited(cls, statement.target.id):
            continue  # there is nothing new about it
        found.append(Field(statement.target.id, ast.unparse(statement.annotation), default, text))
    return found


def _is_inherited(cls: type, name: str) -> bool:
    return any(name in vars(base).get("__annotations__", ()) for base in cls.__mro__[1:])


def _default(value: ast.expr) -> str:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        return "empty"
    return ast.unparse(value)


def _text(following: ast.stmt | None) -> str:
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return " ".join(str(following.value.value).split())
    return ""


def client_page() -> str:
    """The whole page."""
    return "\n".join(
        (
            "# The async client",
            "",
            "Every option and every error of `pulsarium.client`; the README has the examples. Generated from",
            "`client/`; do not edit. Times are seconds unless something else is said.",
            *(line for title, cls in OPTIONS for line in _options(title, cls)),
            "",
            "## Errors",
            "",
            "All of them are in `pulsarium.client.errors`, under `PulsarError`.",
            "",
            "| error | when |",
            "|---|---|",
            *_errors(),
            "",
        )
    )


def _options(title: str, cls: type) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| option | type | default | meaning |", "|---|---|---|---|")
    for name, type_, default, text in fields_of(cls):
        shown = f"`{default}`" if default else ""
        yield f"| `{name}` | `{_escaped(type_)}` | {_escaped(shown)} | {_escaped(text)} |"


def _errors() -> Iterator[str]:
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, errors.PulsarError) and error is not errors.PulsarError:
            yield f"| `{name}` | {' '.join((inspect.getdoc(error) or '').split())} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
