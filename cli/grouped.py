"""Help in which options stand under headings."""

from collections.abc import Callable
from typing import Any

import click


class GroupedOption(click.Option):
    """An option that knows its heading."""

    def __init__(self, *args: Any, heading: str = "Other", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command whose --help lists options by heading, in the order in which headings first appear."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "heading", "Other"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def options_of(heading: str) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """`click.option` for one heading: `network = options_of("Network")`, then `@network("--port", ...)`."""

    def option(*names: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return click.option(*names, cls=GroupedOption, heading=heading, **settings)

    return option
