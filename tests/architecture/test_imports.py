"""Rules of imports between the folders and modules of Pulsarium. The reader of imports finds every form of import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pulsarium.client
from tests.architecture.source import FOLDERS, Module, modules, production, within

# broker -> capture -> proto <- rest <- client <- pipeline -> capture; cli may import all.
MAY_IMPORT = {
    "proto": {"proto"},
    "capture": {"capture", "proto"},
    "rest": {"rest", "proto"},
    "broker": {"broker", "capture", "proto"},
    "client": {"client", "rest", "proto"},
    "pipeline": {"pipeline", "client", "rest", "capture", "proto"},
    "conformance": {"conformance", "broker", "client", "rest", "capture", "proto"},
    "cli": set(FOLDERS),
}
# broker -> rest.policies <- rest: both import the table of policies.
TABLE = "pulsarium.rest.policies"

# Around the broker itself stand web, lab and testing. The broker runs without them, and only `server` and `proxying`
# open them all.
# The package itself names them (`pulsarium.broker.running`).
AROUND = {"web", "lab", "testing"}
OPENS_ALL = {"server", "proxying", ""}

# testing -> server -> web -> lab -> commands -> session -> cluster -> model -> storage, and in web: console -> admin ->
# http <- lab, websocket -> http. For each part of the broker, the parts that it must not import.
UPPER = {"server", "proxying", "session", "commands", *AROUND}
OVER_HTTP = {"admin", "console", "websocket", "lab", "toxiproxy", "routes"}
MUST_NOT_IMPORT = {
    "commands": {"server", "proxying"},
    "session": {"commands", "server", "proxying"},
    "web": {"testing", "server", "proxying"},
    "web.http": {"session", "commands", "lab", *(f"web.{part}" for part in OVER_HTTP)},
    "web.admin": {"session", "commands", "lab", *(f"web.{part}" for part in OVER_HTTP - {"admin"})},
    "web.console": {"session", "commands", "lab", *(f"web.{part}" for part in OVER_HTTP - {"admin", "console"})},
    "web.websocket": {"commands", "lab", *(f"web.{part}" for part in OVER_HTTP - {"websocket"})},
    "web.lab": {"commands", *(f"web.{part}" for part in OVER_HTTP - {"lab"})},
    "lab": {"server", "proxying", "testing", "web"},
    "model": UPPER | {"auth"},
    "cluster": UPPER - AROUND,
    "config": UPPER | {"model", "storage", "cluster"},
    "auth": UPPER | {"storage", "cluster"},
    "clock": UPPER | {"model", "storage", "cluster"},
    "jackson": UPPER | {"auth", "config", "model", "net", "storage", "cluster"},
    "logs": UPPER | {"model", "storage", "cluster"},
    "net": UPPER | {"auth", "model", "storage", "cluster"},
}
STORAGE_MAY_IMPORT = {"storage", "config", "clock", "logs"}

# The parts of the model (folders, and modules beside them), lowest first: each imports only parts before it, types too.
MODEL = (
    "errors",
    "refusals",
    "delay_ticks",
    "moves",
    "news",
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

# `proto` only converts bytes, so it needs none of these modules.
NO_IO = {"trio", "anyio", "asyncio", "socket", "select", "selectors", "ssl", "time", "threading", "subprocess"}

WALL_CLOCK = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}


def wrong(imported: Iterable[tuple[Module, str]]) -> list[str]:
    return sorted({f"{module.name} imports {name}" for module, name in imported})


def part(name: str, package: str) -> str:
    """Return "model" for `part("pulsarium.broker.model.cursor", "pulsarium.broker")`."""
    return name.removeprefix(package).strip(".").partition(".")[0]


def circle(among: Iterable[Module]) -> list[str]:
    """Return modules that import each other in a circle, also those that are imported for types only, or []."""
    named = {module.name: module for module in among}
    try:
        TopologicalSorter({name: module.modules_among(named) for name, module in named.items()}).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


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


def test_no_imports_go_in_a_circle() -> None:
    """Read each module with only those below it: also a type needs no word from above."""
    assert circle(production()) == []


def test_a_circle_of_types_is_found(tmp_path: Path) -> None:
    one, other, apart = (tmp_path / f"{name}.py" for name in ("one", "other", "apart"))
    one.write_text("def late() -> None:\n    import other\n")
    other.write_text("if TYPE_CHECKING:\n    from one import late\n")
    apart.write_text("import one\n")
    modules = [Module(path.stem, path, is_package=False) for path in (one, other, apart)]
    assert set(circle(modules)) == {"one", "other"}
    assert circle([modules[0], modules[2]]) == []


def in_broker(name: str, part: str) -> bool:
    """Return whether a module is in a part of the broker, such as "web.http"."""
    return within(name, f"{FOLDERS['broker']}.{part}")


@pytest.mark.parametrize("lower", MUST_NOT_IMPORT)
def test_arrows_inside_the_broker(lower: str) -> None:
    assert not wrong(
        (module, name)
        for module in modules("broker")
        if in_broker(module.name, lower)
        for name in module.imports
        if any(in_broker(name, upper) for upper in MUST_NOT_IMPORT[lower])
    )


def test_the_broker_itself_does_not_know_what_stands_around_it() -> None:
    assert not wrong(
        (module, name)
        for module in modules("broker")
        if part(module.name, FOLDERS["broker"]) not in OPENS_ALL | AROUND
        for name in module.imports
        if any(in_broker(name, around) for around in AROUND)
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
    below = MODEL[: MODEL.index(lower)]
    package = f"{FOLDERS['broker']}.model"
    assert not wrong((module, name) for module, name in _model_arrows(lower) if part(name, package) not in below)


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
    evaluated = {f"pulsarium.broker.config.{name}" for name in ("keys", "connection_keys", "scalable_keys")}
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


@pytest.mark.parametrize(
    ("is_package", "line", "imported"),
    [
        (False, "import pulsarium.proto.entry as e", {"pulsarium.proto.entry"}),
        (False, "from pulsarium import proto", {"pulsarium", "pulsarium.proto"}),
        (False, "from . import x", {"pulsarium.broker.model", "pulsarium.broker.model.x"}),
        (False, "from ..storage import y", {"pulsarium.broker.storage", "pulsarium.broker.storage.y"}),
        (True, "from .x import y", {"pulsarium.broker.model.cursor.x", "pulsarium.broker.model.cursor.x.y"}),
        (True, "from ..x import y", {"pulsarium.broker.model.x", "pulsarium.broker.model.x.y"}),
        (False, "def f():\n    if TYPE_CHECKING:\n        import trio", {"trio"}),
    ],
)
def test_the_imports_of_a_line_are_found_as_full_names(
    tmp_path: Path, is_package: bool, line: str, imported: set[str]
) -> None:
    path = tmp_path / "cursor.py"
    path.write_text(line)
    assert Module("pulsarium.broker.model.cursor", path, is_package).imports == imported


def test_of_a_package_and_its_module_the_module_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import a\nfrom a import b, c\nfrom a.b import d\nfrom e import f\nfrom a.g import h\n")
    module = Module("module", path, is_package=False)
    assert module.modules_among({"a", "a.b", "a.g", "e", "module"}) == {"a", "a.b", "a.g", "e"}
    path.write_text("from a import b\n")
    assert Module("module", path, is_package=False).modules_among({"a", "a.b"}) == {"a.b"}


def test_within_respects_dots() -> None:
    assert within("a.b", "a.b")
    assert within("a.b.c", "a.b")
    assert not within("a.bc", "a.b")
