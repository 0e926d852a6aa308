"""Generate the pages of docs/ that come from the code. scripts/generate-docs runs this module."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pulsarium.broker.commands import MODULES
from pulsarium.broker.commands.registry import declared
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.missing import FOREIGN_CLASS, KEYS
from pulsarium.broker.config.profile import PIP
from pulsarium.broker.web.http.pulsar_routes import absent_routes
from pulsarium.broker.web.routes import all_routes
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction
from scripts.pages.check import check_page
from scripts.pages.client import client_page
from scripts.pages.command_line import command_line_page
from scripts.pages.conformance import conformance_page
from scripts.pages.console import acts_js
from scripts.pages.errors import errors_page
from scripts.pages.explore import explore_page
from scripts.pages.faults import fault_page
from scripts.pages.fields import fields_page
from scripts.pages.launchers import launchers_page
from scripts.pages.lint import lint_page
from scripts.pages.llms import llms_txt
from scripts.pages.names import names_page
from scripts.pages.pipeline import pipeline_page
from scripts.pages.proposals import proposals_page
from scripts.pages.requirements import requirements_page
from scripts.pages.toxiproxy import toxiproxy_page

SENDERS = {Direction.CLIENT: "client", Direction.BROKER: "broker", Direction.BOTH: "both"}


def commands_page() -> str:
    """Return docs/commands.md: every command of the protocol and the broker's handler for it."""
    return "\n".join(
        (
            "# Commands of the protocol",
            "",
            "Generated from `proto/commands.py` and the handlers in `broker/commands`; do not edit.",
            "[Command line](command-line.md) has the commands of a shell.",
            "The broker closes the connection when a client sends a command without a handler, as Pulsar does.",
            "",
            "| # | command | family | sent by | since | flag | answer | here |",
            "|---|---|---|---|---|---|---|---|",
            *_command_rows(),
            "",
        )
    )


def _command_rows() -> Iterator[str]:
    handled = {handles.command: function for handles, function in declared(MODULES)}
    for spec in COMMANDS.values():
        reply = COMMANDS[spec.reply].name if spec.reply is not None else ""
        flag = f"`{spec.feature_flag}`" if spec.feature_flag else ""
        handler = handled.get(spec.type)
        here = _sent_here(spec) if handler is None else f"`{handler.__module__.rpartition('.')[2]}.{handler.__name__}`"
        sender = SENDERS[spec.direction]
        yield f"| {spec.type} | {spec.name} | {spec.family} | {sender} | v{spec.since} | {flag} | {reply} | {here} |"


def _sent_here(spec: CommandSpec) -> str:
    return "" if spec.direction is Direction.BROKER else "no handler: the broker closes the connection"


def configuration_page() -> str:
    """Return docs/configuration.md: every broker.conf key that has an effect."""
    rows, own = [], dict(PIP.defaults)
    for each in documented_keys().values():
        default = "unset" if each.default is None else f"`{_shown(each.default)}`"
        if each.name in own:
            default = f"`{_shown(own[each.name])}`; with the profile of a release {default}"
        proposal = each.meaning.proposal
        needs = f"; needs `--pip {proposal}` ([PIP-{proposal}](proposals.md))" if proposal else ""
        rows.append(f"| `{each.name}` | {default} | {each.meaning.doc}{needs} | {each.meaning.unit} |")
    return "\n".join(
        (
            "# Configuration",
            "",
            "The broker.conf keys that have an effect in Pulsarium, for `--config FILE` and `--set key=value`. The log",
            "names other keys of a file once, as keys without effect, and warns of the keys [below](#missing).",
            "Generated from `broker/config/keys.py` and `broker/config/missing.py`; do not edit.",
            "",
            "| key | default | meaning | unit |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Missing",
            "",
            "Keys of Pulsar that ask for something that Pulsarium does not have. When a file has another value than",
            "the default, the log warns, and says what does not work. The log also warns of keys that name classes",
            f"other than Pulsar's own: {FOREIGN_CLASS}. Nothing is lost without Pulsar's remaining keys.",
            "",
            "| key | Pulsar's default | with another value |",
            "|---|---|---|",
            *(f"| `{each.key}` | `{each.default}` | {each.lost} |" for each in KEYS),
            "",
        )
    )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(sorted(value)) if isinstance(value, (tuple, frozenset)) else str(value)


def admin_routes_page() -> str:
    """Return docs/admin-routes.md: the routes of Pulsar's REST API that exist here, and those that do not."""
    built = sorted(all_routes(), key=lambda item: (item[0].path, item[0].method))
    absent = sorted(absent_routes({route for route, _ in built}), key=lambda route: (route.path, route.method))
    return "\n".join(
        (
            "# Admin routes",
            "",
            "Generated from the routes that `broker/web/admin`, `broker/web/console` and `broker/web/lab` declare;",
            "do not edit.",
            "",
            f"## Built: {len(built)}",
            "",
            "| method | path | here |",
            "|---|---|---|",
            *(
                f"| {route.method} | `{route.path}` | `{handler.__module__.rpartition('.')[2]}.{handler.__name__}` |"
                for route, handler in built
            ),
            "",
            f"## Not built: {len(absent)}",
            "",
            "Pulsar 4.2.4 has these. They answer 503, as a broker without enablePackagesManagement does. Functions,",
            "sinks and sources answer 409, as a broker without a function worker does.",
            "",
            *(f"- {route.method} `{route.path}`" for route in absent),
            "",
        )
    )


PAGES = {
    "check.md": check_page,
    "client.md": client_page,
    "command-fields.md": fields_page,
    "command-line.md": command_line_page,
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "admin-routes.md": admin_routes_page,
    "errors.md": errors_page,
    "explore.md": explore_page,
    "faults.md": fault_page,
    "toxiproxy.md": toxiproxy_page,
    "launchers.md": launchers_page,
    "conformance.md": conformance_page,
    "lint.md": lint_page,
    "names.md": names_page,
    "pipeline-options.md": pipeline_page,
    "proposals.md": proposals_page,
    "requirements.md": requirements_page,
    "llms.txt": llms_txt,
    "../broker/web/console/static/acts.js": acts_js,
}


def main() -> None:
    """Write the pages, or with --check name the stale ones."""
    parser = argparse.ArgumentParser(description="Write the pages of docs/ that come from the code.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 and name the stale pages")
    options = parser.parse_args()
    stale = []
    for name, page in PAGES.items():
        path, text = options.folder / name, page()
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not options.check:
                path.write_text(text)
    if options.check and stale:
        sys.exit(f"stale: {', '.join(stale)}; run scripts/generate-docs")


if __name__ == "__main__":
    main()
