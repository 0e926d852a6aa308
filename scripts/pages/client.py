"""Generate docs/client.md from the client's classes and the texts beside their fields."""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

from pulsarium import client
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
from pulsarium.client.arguments import texts_of
from pulsarium.client.schema.schema import BYTES
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
    ("`client.create_reader(topic, start_message_id, ...)`", Client.create_reader),
    ("`client.create_table_view(topic, ...)`", Client.create_table_view),
    ("`client.transaction(...)` and `client.begin_transaction(...)`", Client.begin_transaction),
)


class Field(NamedTuple):
    """An option of the client, as the source declares it."""

    name: str
    type: str
    default: str
    text: str


def fields_of(explained: Explained) -> list[Field]:
    """Return the documented fields of a class, or the documented arguments of a function."""
    if isinstance(explained, type):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(explained))).body
        assert isinstance(definition, ast.ClassDef)
        return list(_fields(definition))
    texts = texts_of(explained.__doc__)
    return [
        Field(one.name, one.annotation, shown(one.default), " ".join(texts[one.name].split()))
        for one in inspect.signature(explained).parameters.values()
        if one.name in texts
    ]


def shown(default: object) -> str:
    """Return a default as an application writes it."""
    if default is inspect.Parameter.empty:
        return ""
    if isinstance(default, enum.Enum):
        return str(default)
    return "BYTES" if default is BYTES else getattr(default, "__name__", repr(default))


def _fields(definition: ast.ClassDef) -> Iterator[Field]:
    for statement, following in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            type_ = ast.unparse(statement.annotation)
            yield Field(statement.target.id, type_, _default(statement.value), _text(following))


def _default(value: ast.expr | None) -> str:
    return "" if value is None else ast.unparse(value)


def _text(following: ast.stmt | None) -> str:
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return " ".join(str(following.value.value).split())
    return ""


def client_page() -> str:
    """Return the text of docs/client.md."""
    return "\n".join(
        (
            "# Options of the client",
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
            "## Classes and methods",
            "",
            *map(_names, client.__all__),
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


def _names(name: str) -> str:
    """Return a line for an exported name. The site's search leaves out the API reference, and finds this one."""
    methods = (FunctionType, classmethod, staticmethod, property)
    members = vars(getattr(client, name)).items() if isinstance(getattr(client, name), type) else ()
    shown = [f"`{each}`" for each, value in members if isinstance(value, methods) and not each.startswith("_")]
    return f"- [`{name}`](api/client.md#pulsarium.client.{name}){': ' if shown else ''}{', '.join(shown)}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
