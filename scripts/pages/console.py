"""Generate the console's table of acts: each command line with the REST call that the command makes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import parse_qsl, quote, urlsplit

import click
from click.testing import CliRunner

from pulsarium.cli.admin.api import Api
from pulsarium.cli.main import cli
from pulsarium.rest.exchange import RestReply
from scripts.pages.console_acts import ACTS, CHOICE, NUMBER, POSITION, Act, Field

TOPIC: Final = "persistent://tenA/nameS/topI"
SCALABLE: Final = "topic://tenA/nameS/topI"
FIRST_NUMBER: Final = 700_001
SMALL: Final = {"version": 17}  # the values of fields that have a small range
NOTHING: Final = {  # answers of GET
    "/lab/violations": b'{"running": true, "counts": {}, "violations": []}',
    "/lab/process": b'{"pid": 1, "upSinceMs": 0, "data": null}',
}
AGO_MS: Final = 300_000  # a time of the request within this distance of its own time ago is a relative one

POLICIES: Final = {"namespace": ("namespaces", "tenA/nameS"), "topic": ("topicPolicies", TOPIC)}
GROUP_MODULES: Final = {"namespaces": "namespaces", "topicPolicies": "topic_policies"}

Json = dict[str, Any]


class _Recorded(Exception):
    """End of a command, whose request is known."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the admin API, as a command makes it."""

    method: str
    path: str
    query: list[tuple[str, str]]
    body: Any


def acts_js() -> str:
    """Return acts.js: the table of acts, for the browser."""
    rows = ",\n".join("  " + json.dumps(_row(act), ensure_ascii=False) for act in ACTS)
    return (
        "// Generated from scripts/pages/console_acts.py by scripts/generate-docs; do not edit.\n"
        f"export const ACTS = [\n{rows},\n];\n"
        "// The command that sets each policy, by the last part of its path. {name} is the topic or namespace.\n"
        f"export const POLICY_COMMANDS = {json.dumps({own: dict(_policies(own)) for own in POLICIES})};\n"
    )


def _policies(own: str) -> Iterator[tuple[str, str]]:
    """Yield the set command of each policy, by the path that its get command asks for."""
    group, name = POLICIES[own]
    commands = import_module(f"pulsarium.cli.admin.{GROUP_MODULES[group]}").GROUPS[group].commands
    params = {command.name: command.params for command in commands if not command.hidden}
    asked: list[str] = []

    async def send(self: Api, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        asked.append(urlsplit(url).path)
        raise _Recorded

    for command in params:
        _, get, what = command.partition("get-")
        if get and f"set-{what}" in params:
            asked.clear()
            with patch.object(Api, "_send", send):
                CliRunner().invoke(cli, ["admin", group, command, name])
            if asked:
                words = (f"{group} set-{what} {{name}}", *_usage(params[f"set-{what}"]))
                yield asked[0].rpartition("/")[2].removesuffix("Map"), " ".join(words)


def _usage(params: Iterable[click.Parameter]) -> Iterator[str]:
    """Yield the parameters of a command behind its first one, with brackets around those that may be left out.

    {value} is the policy that is a number.
    """
    context = click.Context(cli)
    for each in list(params)[1:]:
        value = "{value}" if each.name == "number" else each.make_metavar(context)
        word = " ".join([*each.opts[:1], *([] if getattr(each, "is_flag", False) else [value])])
        if isinstance(each, click.Argument):
            word = value
        yield word if each.required else f"[{word}]"


def _row(act: Act) -> Json:
    values = dict(_values(act))
    request = recorded(act, values)
    template = _Template(act, values)
    row: Json = {"id": act.id, "on": act.on, "label": act.label, "about": act.about, "danger": act.danger}
    row["fields"] = [_field(each) for each in act.fields]
    row |= {"command": act.command, "method": request.method, "path": template.path(request.path)}
    if request.query:
        row["query"] = {name: template.text(value) for name, value in request.query}
    if request.body is not None:
        row["body"] = template.value(request.body)
    return row


def _field(field: Field) -> Json:
    shown: Json = {"name": field.name, "label": field.label, "kind": field.kind, "default": field.default}
    if field.optional:
        shown["optional"] = True
    if field.choices:
        shown["choices"] = list(field.choices)
    return shown


def _values(act: Act) -> Iterator[tuple[str, str]]:
    """Yield a value of each name in the command that can be recognized in a request."""
    fields = {field.name: field for field in act.fields}
    for number, name in enumerate(dict.fromkeys(re.findall(r"{(\w+)}", act.command))):
        kind = fields[name].kind if name in fields else ""
        if kind == NUMBER or name in ("id", "most", "least"):
            yield name, str(SMALL.get(name, FIRST_NUMBER + number))
        elif kind == POSITION:
            yield name, f"{FIRST_NUMBER + number}0:{FIRST_NUMBER + number}1"
        elif kind == CHOICE:
            yield name, fields[name].default
        elif name == "topic" or kind in ("topic", "scalable"):
            scalable = kind == "scalable" or act.on == "scalable"
            yield name, SCALABLE if scalable else TOPIC
        elif name == "namespace" or kind == "namespace":
            yield name, "tenA/nameS"
        elif name == "tenant" or name == "cluster":
            yield name, f"{name}X"
        else:
            yield name, f"{name}/X"


def recorded(act: Act, values: Mapping[str, str]) -> Request:
    """Run the command, and return its first request that is not a GET."""
    requests: list[Request] = []

    async def send(self: Api, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        parts = urlsplit(url)
        query = [pair for pair in parse_qsl(parts.query) if pair[1] not in ("false", "")]
        if method == "GET":
            return RestReply(200, {"content-type": "application/json"}, NOTHING.get(parts.path, b"[]"))
        requests.append(Request(method, parts.path, query, json.loads(body) if body else None))
        raise _Recorded

    words = [word.format(**values) for word in act.command.replace("[", "").replace("]", "").split()]
    with patch.object(Api, "_send", send):
        result = CliRunner().invoke(cli, words)
    if not requests:
        raise AssertionError(f"{act.command} made no request: {result.output}{result.exception!r}")
    return requests[0]


class _Template:
    """Put the names of values in place of the values."""

    def __init__(self, act: Act, values: Mapping[str, str]) -> None:
        self._act = act
        self._values = values
        self._kinds = {field.name: field.kind for field in act.fields}

    def path(self, path: str) -> str:
        """Return the template of a path. {name:1} is encoded once, {name:2} twice."""
        for name, value in self._values.items():
            if value in (TOPIC, SCALABLE):
                path = path.replace(value.replace("://", "/"), f"{{{name}}}")
                path = path.replace("tenA/nameS/topI", f"{{{name}:local}}")
            elif value == "tenA/nameS":
                path = path.replace(value, f"{{{name}}}")
            else:
                once = quote(value, safe="")
                twice = quote(once, safe="")
                if twice != once:
                    path = path.replace(twice, f"{{{name}:2}}")
                path = path.replace(once, f"{{{name}:1}}")
        return re.sub(r"\d{12,}", self._ago, path)

    def _ago(self, found: re.Match[str]) -> str:
        for name, value in self._values.items():
            at = time.time() * 1000 - float(value) * 1000 if value.isdecimal() else 0
            if abs(at - int(found[0])) < AGO_MS:
                return f"{{{name}:ago}}"
        return found[0]

    def text(self, value: str) -> str:
        return next((f"{{{name}}}" for name, each in self._values.items() if each == value), value)

    def value(self, value: Any) -> Any:
        """Return the template of a JSON value."""
        if isinstance(value, dict):
            return {key: self.value(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, bool) or value is None:
            return value
        for name, each in self._values.items():
            ledger, colon, entry = each.partition(":")
            if colon and str(value) in (ledger, entry) and self._kinds.get(name) == POSITION:
                return f"{{{name}.{'ledger' if str(value) == ledger else 'entry'}}}"
            if str(value) == each or (isinstance(value, float) and each.isdecimal() and value == float(each)):
                return f"{{{name}}}"
        return value
