"""Draw costs over sizes as SVG, both on logarithmic scales. A line for each axis shows the cost over its first cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 60, 210, 20, 40
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")
STEPS = (0.5, 1, 2, 4, 8, 16)

Costs = Mapping[str, Sequence[tuple[int, float]]]


def svg(costs: Costs, limit: float) -> str:
    """Return a picture of the costs of each axis, with a dashed line at `limit`."""
    largest = max(size for points in costs.values() for size, _ in points)
    decades = max(1, math.ceil(math.log10(largest)))

    def x(size: float) -> float:
        return LEFT + math.log10(size) / decades * (WIDTH - LEFT - RIGHT)

    def y(growth: float) -> float:
        low, high = math.log2(STEPS[0]), math.log2(STEPS[-1])
        share = (math.log2(min(max(growth, STEPS[0]), STEPS[-1])) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for step in STEPS:
        dashes = ' stroke-dasharray="6 4"' if step == limit else ""
        color = "#666" if step == limit else "#ddd"
        lines.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(step):.1f}" y2="{y(step):.1f}" stroke="{color}"{dashes}/>'
        )
        lines.append(f'<text x="{LEFT - 8}" y="{y(step) + 4:.1f}" text-anchor="end">{step:g}x</text>')
    for decade in range(decades + 1):
        at = x(10**decade)
        lines.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{short(10**decade)}</text>')
    for place, (name, points) in enumerate(costs.items()):
        color, first = COLORS[place % len(COLORS)], points[0][1]
        drawn = [(x(size), y(cost / first)) for size, cost in points]
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in drawn)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        lines += [f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3" fill="{color}"/>' for across, up in drawn]
        lines.append(f'<text x="{WIDTH - RIGHT + 16}" y="{TOP + 20 + 18 * place}" fill="{color}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


def short(number: int) -> str:
    """Return a number with a unit: 10k, 100M, 1G."""
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= factor:
            return f"{number / factor:g}{unit}"
    return str(number)
