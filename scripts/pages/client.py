"""Generate docs/client.md from the client's classes and the texts beside their fields."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from pulsarium.client import (
    Client,
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    MessageOptions,
    MultiplierRedeliveryBackoff,
    connect,
    errors,
)
from pulsarium.client.admin import errors as admin_errors
from pulsarium.client.connection.protocol import MAX_PROTOCOL_VERSION
from pulsarium.client.statistics import ConsumerStatistics, ProducerStatistics

Explained: TypeAlias = type | Callable[..., Any]
"""A class whose fields have a string behind them, or a function whose docstring describes its arguments."""

OPTIONS: tuple[tuple[str, Explained], ...] = (
    ("`connect(service_url, ...)`", connect),
    ("`client.create_producer(topic, ...)`", Client.create_producer),
    ("`producer.send(content, ...)`, and `submit` and `send_nowait`", MessageOptions),
    ("`producer.statistics()`: a `ProducerStatistics`", ProducerStatistics),
    ("`client.subscribe(topic, subscription_name, ...)`", Client.subscribe),
    ("`consumer.statistics()`: a `ConsumerStatistics`", ConsumerStatistics),
    ("`ConsumerDeadLetterPolicy`", ConsumerDeadLetterPolicy),
    ("`ConsumerBatchReceivePolicy`", ConsumerBatchReceivePolicy),
    ("`MultiplierRedeliveryBackoff`", MultiplierRedeliveryBackoff),
    ("`client.create_reader(topic, start_message_id, ...)`, others as `subscribe`", Client.create_reader),
    ("`client.create_table_view(topic, ...)`, others as `subscribe`", Client.create_table_view),
    ("`client.transaction(...)` and `client.begin_transaction(...)`", Client.begin_transaction),
)


NAMED: Mapping[str, str] = {
    "_BATCH": "ConsumerBatchReceivePolicy()",
    "_NOTHING": "{}",
    "MAX_PROTOCOL_VERSION": str(MAX_PROTOCOL_VERSION),
}
"""Defaults whose name says nothing to a user, and what they are."""


class Field(NamedTuple):
    """An option of the client, as the source declares it."""

    name: str
    type: str
    default: str
    text: str


def fields_of(explained: Explained) -> list[Field]:
    """Return the documented fields of a class, or the documented arguments of a function."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(explained))).body
    if isinstance(definition, ast.ClassDef):
        return list(_fields(definition))
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments, texts = definition.args, _texts(inspect.getdoc(explained) or "")
    positional = zip(arguments.args[::-1], [*arguments.defaults[::-1], *[None] * len(arguments.args)], strict=False)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [
        Field(one.arg, ast.unparse(one.annotation), _default(default), texts[one.arg])
        for one, default in (*[*positional][::-1], *named)
        if one.annotation is not None and one.arg in texts
    ]


def _fields(definition: ast.ClassDef) -> Iterator[Field]:
    for statement, following in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            type_ = ast.unparse(statement.annotation)
            yield Field(statement.target.id, type_, _default(statement.value), _text(following))


def _texts(doc: str) -> Mapping[str, str]:
    """Return the text of each argument: `name: text`, below `Args:` or not indented, with further lines indented."""
    found = re.findall(r"^((?: {4})?)([a-z_]+): (.*(?:\n\1 {4}.*)*)", doc, re.MULTILINE)
    return {name: " ".join(text.split()) for _, name, text in found}


def _default(value: ast.expr | None) -> str:
    if value is None:
        return ""
    text = ast.unparse(value)
    return NAMED.get(text, text)


def _text(following: ast.stmt | None) -> str:
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return " ".join(str(following.value.value).split())
    return ""


def client_page() -> str:
    """Return the text of docs/client.md."""
    return "\n".join(
        (
            "# The async client",
            "",
            "Options and errors of `pulsarium.client`. [The guide](client-guide.md) has examples, and",
            "[the API reference](api/client.md) has the options of `client.scalable` and `create_raw_reader`.",
            "Generated from `client/`; do not edit. Times are in seconds unless the text names another unit.",
            *(line for title, explained in OPTIONS for line in _options(title, explained)),
            "",
            "## Errors",
            "",
            "All errors are in `pulsarium.client.errors`, those of the REST API in `pulsarium.client.admin.errors`.",
            "Each is a `PulsarError` of one of these kinds. Its `code` never changes: it is the name of Pulsar's",
            "ServerError where one exists.",
            *(line for kind in (errors.RetryError, errors.FixError, errors.GiveUpError) for line in _errors(kind)),
            "",
        )
    )


def _options(title: str, explained: Explained) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| option | type | default | meaning |", "|---|---|---|---|")
    for name, type_, default, text in fields_of(explained):
        shown = f"`{default}`" if default else ""
        yield f"| `{name}` | `{_escaped(type_)}` | {_escaped(shown)} | {_escaped(text)} |"


def _errors(kind: type[errors.PulsarError]) -> Iterator[str]:
    yield from (
        "",
        f"### `{kind.__name__}`",
        "",
        inspect.getdoc(kind) or "",
        "",
        "| error | code | when |",
        "|---|---|---|",
    )
    for error in (*vars(errors).values(), *vars(admin_errors).values()):
        if isinstance(error, type) and issubclass(error, kind) and error is not kind:
            yield f"| `{error.__name__}` | `{error.code}` | {' '.join((inspect.getdoc(error) or '').split())} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
