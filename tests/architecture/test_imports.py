"""Rules of imports between the folders and modules of Pulsarium."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import pytest

import pulsarium.client
from tests.architecture.source import FOLDERS, Module, modules, production, within

# broker -> capture -> proto <- rest <- client <- pipeline -> capture; matrix may import all of these, cli all.
MAY_IMPORT = {
    "proto": {"proto"},
    "capture": {"capture", "proto"},
    "rest": {"rest", "proto"},
    "broker": {"broker", "capture", "proto"},
    "client": {"client", "rest", "proto"},
    "pipeline": {"pipeline", "client", "rest", "capture", "proto"},
    "matrix": set(FOLDERS) - {"cli", "kit"},
    "kit": {"kit", "broker", "client", "rest", "capture", "proto"},
    "cli": set(FOLDERS),
}
# broker -> rest.policies <- rest: both import the table of policies.
TABLE = "pulsarium.rest.policies"

# session -> commands -> model -> storage, console -> admin -> http -> model <- http <- lab.rest, websocket -> session:
# for each part of the broker, the parts that it must not import.
UPPER = {"broker", "server", "session", "commands", "http", "admin", "console", "web", "websocket", "lab", "testing"}
MUST_NOT_IMPORT = {
    "session": {"http", "admin", "console", "web", "websocket", "broker", "server"},
    "commands": {"session", "http", "admin", "console", "web", "websocket", "broker", "server"},
    "http": {"session", "commands", "admin", "console", "web", "websocket", "lab", "server"},
    "admin": {"session", "commands", "console", "web", "websocket", "server"},
    "console": {"session", "commands", "web", "websocket", "server"},
    "websocket": {"commands", "admin", "console", "web", "server"},
    "model": UPPER | {"auth"},
    "cluster": UPPER,
    "config": UPPER | {"model", "storage", "cluster"},
    "auth": UPPER | {"storage", "cluster"},
    "clock": UPPER | {"model", "storage", "cluster"},
    "logs": UPPER | {"model", "storage", "cluster"},
}
# These parts may import types from above: a handler gets a session, a session its broker, and a cluster has brokers.
MAY_NAME_TYPES = {"session", "commands", "cluster", "admin"}
# The lab's hooks. Other parts of the broker must not import the lab.
OPEN_THE_LAB = {"server", "cluster", "web", "testing", "pytest_plugin", "lab"}
STORAGE_MAY_IMPORT = {"storage", "config", "clock", "logs"}

# The parts of the model (folders, and modules beside them), lowest first: each imports only parts before it, types too.
MODEL = (
    "errors",
    "ledger",
    "client",
    "policy",
    "namespace",
    "schema",
    "rate",
    "cursor",
    "transaction",
    "compaction",
    "context",
    "subscription",
    "dispatch",
    "topic",
    "scalable",
    "upkeep",
)
# Imports of later parts that are still allowed. Remove an entry when its import is gone, and add none.
STILL_UPWARDS: dict[str, set[str]] = {}

# `proto` only converts bytes, so it needs none of these modules.
NO_IO = {"trio", "anyio", "asyncio", "socket", "select", "selectors", "ssl", "time", "threading", "subprocess"}

WALL_CLOCK = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}


def wrong(imported: Iterable[tuple[Module, str]]) -> list[str]:
    return sorted({f"{module.name} imports {name}" for module, name in imported})


def part(name: str, package: str) -> str:
    """Return "model" for `part("pulsarium.broker.model.cursor", "pulsarium.broker")`."""
    return name.removeprefix(package).strip(".").partition(".")[0]


def test_there_is_something_to_check() -> None:
    assert {part(module.name, "pulsarium") for module in production()} >= {"proto", "broker", "client", "cli"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_arrows_between_folders(folder: str) -> None:
    assert not wrong(
        (module, name)
        for module in modules(folder)
        for name in module.imports
        if within(name, "pulsarium") and part(name, "pulsarium") in FOLDERS.keys() - MAY_IMPORT[folder]
        if not (folder == "broker" and (within(name, TABLE) or name == "pulsarium.rest"))
    )


def test_the_table_of_policies_stands_below_all() -> None:
    """The table imports nothing of Pulsarium, and the broker imports only the table from `rest/`."""
    (table,) = (module for module in modules("rest") if module.name == TABLE)
    assert not [name for name in table.imports if within(name, "pulsarium")]
    of_rest = {name for module in modules("broker") for name in module.imports if within(name, "pulsarium.rest")}
    assert {name for name in of_rest if not within(name, TABLE)} <= {"pulsarium.rest"}


@pytest.mark.parametrize("lower", MUST_NOT_IMPORT)
def test_arrows_inside_the_broker(lower: str) -> None:
    assert not wrong(
        (module, name)
        for module in modules("broker")
        if part(module.name, FOLDERS["broker"]) == lower
        for name in (module.imports_when_run if lower in MAY_NAME_TYPES else module.imports)
        if any(within(name, f"{FOLDERS['broker']}.{upper}") for upper in MUST_NOT_IMPORT[lower])
    )


def _model_arrows(lower: str) -> list[tuple[Module, str]]:
    package = f"{FOLDERS['broker']}.model"
    return [
        (module, name)
        for module in modules("broker")
        if within(module.name, package) and part(module.name, package) == lower
        for name in module.imports
        if within(name, package) and part(name, package) not in {"", lower}
    ]


def test_every_part_of_the_model_has_its_place() -> None:
    package = f"{FOLDERS['broker']}.model"
    parts = {part(module.name, package) for module in modules("broker") if within(module.name, package)}
    assert parts - {""} == set(MODEL)


@pytest.mark.parametrize("lower", MODEL)
def test_arrows_inside_the_model(lower: str) -> None:
    below = {*MODEL[: MODEL.index(lower)], *STILL_UPWARDS.get(lower, ())}
    package = f"{FOLDERS['broker']}.model"
    assert not wrong((module, name) for module, name in _model_arrows(lower) if part(name, package) not in below)


def test_arrows_allowed_to_point_upwards_still_exist() -> None:
    package = f"{FOLDERS['broker']}.model"
    for lower, upper in STILL_UPWARDS.items():
        assert upper <= {part(name, package) for _, name in _model_arrows(lower)}, f"{lower}: remove old entries"
        assert not upper & set(MODEL[: MODEL.index(lower)])


def test_nothing_but_its_hooks_imports_the_lab() -> None:
    assert not wrong(
        (module, name)
        for module in modules("broker")
        if part(module.name, FOLDERS["broker"]) not in OPEN_THE_LAB | {""}
        for name in module.imports
        if within(name, "pulsarium.broker.lab")
    )


def test_the_lab_does_not_stand_on_the_admin_api() -> None:
    """The lab and the admin API use broker/http. Another test checks that the admin API does not import the lab."""
    assert not wrong(
        (module, name)
        for module in modules("broker")
        if within(module.name, "pulsarium.broker.lab")
        for name in module.imports
        if within(name, "pulsarium.broker.admin") or within(name, "pulsarium.broker.web")
    )


def test_storage_knows_nothing_of_the_broker() -> None:
    assert not wrong(
        (module, name)
        for module in modules("broker")
        if part(module.name, FOLDERS["broker"]) == "storage"
        for name in module.imports
        if within(name, FOLDERS["broker"]) and part(name, FOLDERS["broker"]) not in STORAGE_MAY_IMPORT | {""}
    )


@pytest.mark.parametrize("folder", ["proto", "capture", "rest"])
def test_sans_io_folders_import_no_io(folder: str) -> None:
    assert not wrong(
        (module, name) for module in modules(folder) for name in module.imports if name.partition(".")[0] in NO_IO
    )


def test_the_client_knows_no_event_loop() -> None:
    """The client runs under trio and asyncio, so it uses anyio. Only one module imports sockets."""
    loops = {"trio", "asyncio", "sniffio", "socket", "select", "selectors", "threading", "subprocess"}
    assert wrong(
        (module, name) for module in modules("client") for name in module.imports if name.partition(".")[0] in loops
    ) == ["pulsarium.client.connection.tcp imports socket"]


def test_the_pipeline_uses_of_the_client_what_is_public() -> None:
    """The names that `pulsarium.client` exports are public, and so are the modules that its docstring names."""
    client = "pulsarium.client"
    public = [f"{client}.{name}" for name in ("admin.errors", "bulk", "errors", "topics")]
    exported = {client, *(f"{client}.{name}" for name in pulsarium.client.__all__)}
    assert not wrong(
        (module, name)
        for module in modules("pipeline")
        for name in module.imports
        if within(name, client) and name not in exported and not any(within(name, one) for one in public)
    )
    assert not [
        f"{module.path}:{node.lineno}: {ast.unparse(node)}"
        for module in modules("pipeline")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if ast.unparse(node.value) in ("client", "consumer", "producer", "reader", "self._client", "pulsar.client")
    ]


def test_nothing_imports_the_folders_by_their_bare_names() -> None:
    bare = re.compile(rf"^ *(?:from|import) (?:{'|'.join(FOLDERS)})\b", re.MULTILINE)
    everything = [*production(), *modules("tests", "tests"), *modules("src/pulsarium", "pulsarium")]
    assert [module.path for module in everything if bare.search(module.path.read_text())] == []


def test_there_is_one_style_of_imports() -> None:
    """Imports are absolute. Only the modules of broker.conf's keys evaluate their annotations."""
    evaluated = {"pulsarium.broker.config.keys", "pulsarium.broker.config.scalable_keys"}
    assert {
        module.name
        for module in (*production(), *modules("src/pulsarium", "pulsarium"))
        if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(module.tree))
        or not (module.is_package or module.name in evaluated or "__future__.annotations" in module.imports)
    } == set()


def test_state_has_owners() -> None:
    """Modules have no state, because several brokers live in one process."""
    assert not [
        f"{module.path}:{node.lineno}: global {', '.join(node.names)}"
        for module in production()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Global)
    ]


def test_the_broker_has_one_clock() -> None:
    """Publish times and timers can be frozen and advanced: only broker/clock.py reads the wall clock."""
    assert not [
        f"{module.path}:{node.lineno}: {node.value.id}.{node.attr}"
        for module in modules("broker")
        if not within(module.name, "pulsarium.broker.clock")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in WALL_CLOCK
    ]
