"""Draw pictures of captures.

The colors are Okabe and Ito's palette, which color-blind people can tell apart, also in grayscale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from pulsarium.proto.text import printable

Row = Mapping[str, Any]
_Place = Literal["outside lower left", "outside right upper"]

_BLUE, _ORANGE, _GREEN, _RED, _PURPLE, _SKY, _YELLOW = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442"),
)
_SERIES = (_BLUE, _ORANGE, _GREEN, _PURPLE, _SKY, _RED, _YELLOW)
_INK, _FAINT, _OTHER = "#222222", "#D9D9D9", "#BBBBBB"

_FINE, _SOME, _NONE, _SILENT, _SENT = (
    "all answered ok",
    "some refused",
    "all refused",
    "some unanswered",
    "wants no answer",
)
_COLORS = {_FINE: "#A6D3EE", _SOME: "#F7D27F", _NONE: "#E58A5B", _SILENT: "#C9A0BE", _SENT: "#EFEFEF"}
_MOST_BARS = 120
_NO_ANSWER = {"no answer", "closed"}


def matrix(rows: Sequence[Row]) -> Figure:
    """Draw the outcomes of each command (down) for each client (across). The numbers are requests."""
    columns = sorted({_client(row) for row in rows})
    commands = sorted({str(row["command"]) for row in rows})
    cells: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        cells.setdefault((str(row["command"]), _client(row)), Counter())[str(row["outcome"])] += int(row["count"])
    width, height = 2.6 + 2.2 * max(len(columns), 1), 1.5 + 0.34 * max(len(commands), 1)
    figure, axes = _figure(width, height, "What became of each command")
    for (command, column), outcomes in cells.items():
        x, y = columns.index(column), commands.index(command)
        color = _COLORS[_verdict(outcomes)]
        axes.add_patch(Rectangle((x - 0.485, y - 0.46), 0.97, 0.92, facecolor=color, edgecolor="none"))
        axes.text(x, y, _words(outcomes), ha="center", va="center", fontsize=8, color=_INK)
    axes.set(xlim=(-0.5, max(len(columns), 1) - 0.5), ylim=(max(len(commands), 1) - 0.5, -0.5))
    axes.set_xticks(range(len(columns)), columns, fontsize=9)
    axes.set_yticks(range(len(commands)), commands, fontsize=8)
    axes.xaxis.tick_top()
    _bare(axes)
    verdicts = {_verdict(outcomes) for outcomes in cells.values()}
    _legend(
        figure, {name: _COLORS[name] for name in _COLORS if name in verdicts}, "outside lower left", 2 + len(columns)
    )
    return figure


def latencies(rows: Sequence[Row]) -> Figure:
    """Draw the time from request to answer by command: the median, the 99th percentile and the maximum."""
    clients = sorted({_name(row) for row in rows})
    by_command: dict[str, list[Row]] = {}
    for row in sorted(rows, key=_name):
        by_command.setdefault(str(row["command"]), []).append(row)
    middles: dict[str, float] = {}
    y = 0.0
    figure, axes = _figure(8.0, 1.6 + 0.2 * len(rows) + 0.1 * len(by_command), "From request to answer")
    for command, of in sorted(by_command.items(), key=lambda item: max(float(row["p50"]) for row in item[1])):
        middles[command] = y + (len(of) - 1) / 2
        for row in of:
            _span(axes, y, row, _SERIES[clients.index(_name(row)) % len(_SERIES)])
            y += 1
        y += 0.5
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _duration(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(list(middles.values()), list(middles), fontsize=8)
    axes.set_ylim(-0.8, max(y - 0.7, 0.8))
    axes.margins(x=0.09)
    axes.grid(axis="x", color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    _bare(axes)
    axes.set_xlabel(
        "dot: median   thick: to the 99th percentile   thin: to the slowest   number: answers", fontsize=8, loc="left"
    )
    _legend(figure, dict(zip(clients, _SERIES * len(clients), strict=False)), "outside lower left", len(clients))
    return figure


def _span(axes: Axes, y: float, row: Row, color: str) -> None:
    p50, p99, most = (max(float(row[name]), 1.0) for name in ("p50", "p99", "max"))
    axes.plot([p50, most], [y, y], color=color, linewidth=1.0, alpha=0.45, zorder=1)
    axes.plot([p50, p99], [y, y], color=color, linewidth=3.2, alpha=0.45, solid_capstyle="butt", zorder=2)
    axes.plot([p50], [y], "o", color=color, markersize=5.5, zorder=3)
    axes.plot([most], [y], "|", color=color, markersize=6, zorder=3)
    axes.annotate(f"{int(row['count']):,}", (most, y), (6, 0), textcoords="offset points", va="center", fontsize=7)


def over_time(rows: Sequence[Row], most: int = 3) -> Figure:
    """Draw frames by the second, those of clients upwards and those of brokers downwards.

    The `most` frequent commands of each side have series of their own.
    """
    figure, axes = _figure(9.0, 4.2, "Frames per second")
    totals: Counter[tuple[bool, str]] = Counter()
    for row in rows:
        totals[_up(row), str(row["command"])] += int(row["count"])
    frequent = [[name for (up, name), _ in totals.most_common() if up is way][:most] for way in (True, False)]
    names = list(dict.fromkeys([*frequent[0], *frequent[1]]))
    others = {name for _, name in totals} - set(names)
    begin: datetime | None = min((row["second"] for row in rows), default=None)
    span = max(((row["second"] - begin).total_seconds() for row in rows), default=0.0) if begin else 0.0
    step = 1 + int(span) // _MOST_BARS
    floor: Counter[tuple[int, bool]] = Counter()
    for name in [*names, ""]:
        colors = dict(zip(names, _SERIES, strict=False)) | {"": _OTHER}
        shown = [row for row in rows if row["command"] == name or (not name and row["command"] in others)]
        for (at, up), count in _by_time(shown, begin, step).items():
            sign = 1 if up else -1
            bottom = sign * floor[at, up] / step
            height, width = sign * count / step, 0.92 * step
            axes.bar(at * step, height, width, bottom, align="edge", color=colors[name], linewidth=0)
            floor[at, up] += count
    axes.axhline(0, color=_INK, linewidth=0.8)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(f"seconds from {begin:%Y-%m-%d %H:%M:%S} UTC on" if begin else "", fontsize=8, loc="left")
    axes.set_ylabel("from the broker          from clients", fontsize=8)
    axes.grid(axis="y", color=_FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    _bare(axes)
    series = dict(zip(names, _SERIES, strict=False)) | ({f"{len(others)} others": _OTHER} if others else {})
    _legend(figure, series, "outside right upper", 1)
    return figure


def _by_time(rows: Sequence[Row], begin: datetime | None, step: int) -> Counter[tuple[int, bool]]:
    """Return the number of frames in each bar, apart for clients and for brokers."""
    found: Counter[tuple[int, bool]] = Counter()
    for row in rows:
        at = int((row["second"] - begin).total_seconds()) // step
        found[at, _up(row)] += int(row["count"])
    return found


def _up(row: Row) -> bool:
    return bool(row["direction"] == "client->broker")


def _figure(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained", dpi=110)
    axes = figure.add_subplot()
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold", color=_INK)
    return figure, axes


def _legend(figure: Figure, colors: Mapping[str, str], place: _Place, across: int) -> None:
    handles = [Patch(facecolor=color, label=name) for name, color in colors.items()]
    if handles:
        figure.legend(handles=handles, loc=place, ncols=min(max(across, 1), 4), frameon=False, fontsize=8)


def _bare(axes: Axes) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, colors=_INK, labelsize=8)


def _verdict(outcomes: Counter[str]) -> str:
    if outcomes.keys() & _NO_ANSWER:
        return _SILENT
    if set(outcomes) == {"sent"}:
        return _SENT
    refused = outcomes.keys() - {"ok", "sent"}
    return _FINE if not refused else _SOME if outcomes.keys() & {"ok", "sent"} else _NONE


def _words(outcomes: Counter[str]) -> str:
    """Return the text of a cell, such as `12 · 3 ConsumerBusy`.

    The number without a name counts the successful requests.
    """
    good = outcomes["ok"] + outcomes["sent"]
    bad = [f"{count:,} {name}" for name, count in outcomes.most_common() if name not in ("ok", "sent")]
    shown = bad[:1] if len(bad) < 2 else [bad[0], f"{len(bad) - 1} more"]
    return " · ".join([f"{good:,}"] * bool(good) + shown)


def _name(row: Row) -> str:
    name = printable(f"{row['client']} {row['client_version'] or ''}".strip())
    return name.replace("$", r"\$")  # matplotlib would read `$` as mathematics


def _client(row: Row) -> str:
    version = row["protocol_version"]
    return f"{_name(row)}\n{'not connected' if version is None else f'protocol {version}'}"


def _duration(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds:g} µs"
