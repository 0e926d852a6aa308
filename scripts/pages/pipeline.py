"""Generate docs/pipeline-options.md: the options of the data source `pulsar`, from the tables beside their code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pulsarium.pipeline.connector import FAMILIES_INSTEAD, INSTEAD, NO_EFFECT
from pulsarium.pipeline.options import CONNECTION, OF_KAFKA, Described
from pulsarium.pipeline.sink.options import OPTIONS as SINK
from pulsarium.pipeline.sink.options import PRODUCER_OPTIONS as PRODUCERS
from pulsarium.pipeline.source.options import OPTIONS as SOURCE

HEAD = ("option", "default", "batch, stream", "meaning")


def pipeline_page() -> str:
    """Return the text of docs/pipeline-options.md."""
    shown = {each.name for each in CONNECTION}
    reading = [each for each in SOURCE if each.name not in shown]
    return "\n".join(
        (
            "# Options of the data source `pulsar`",
            "",
            "Pass these with `.option(name, value)`; [pipeline.md](pipeline.md) explains their use. Names are those of",
            "StreamNative's Spark connector where it has the option; case does not matter. Generated from `pipeline/`;",
            "do not edit.",
            *_table("Connection and authentication", CONNECTION),
            *_table("`spark.read`, `spark.readStream`", reading),
            *_table("`df.write`, `df.writeStream`", SINK),
            *_table("Producers of `df.write`, `df.writeStream`", PRODUCERS),
            *_of_connector(),
            *_of_kafka(),
            "",
        )
    )


def _table(title: str, options: Iterable[Described]) -> Iterator[str]:
    yield from ("", f"## {title}", "", _row(HEAD), _row(["---"] * len(HEAD)))
    for each in options:
        default = f"`{each.default}`" if each.default and " " not in each.default else each.default
        yield _row([f"`{each.name}`", default, each.used_by, each.meaning])


def _of_connector() -> Iterator[str]:
    yield from (
        "",
        "## Options of StreamNative's connector without effect",
        "",
        "The data source accepts these options. One warning names those that a query has.",
        "",
        _row(("option", "why")),
        _row(("---", "---")),
    )
    for name, why in NO_EFFECT.items():
        yield _row((f"`{name}`", why))
    yield from (
        "",
        "## Options of StreamNative's connector with another name here",
        "",
        "The data source refuses these options, except with the accepted value.",
        "",
        _row(("option", "accepted value", "in its place")),
        _row(("---", "---", "---")),
    )
    for name, each in INSTEAD.items():
        accepted = f"`{each.harmless}`" if each.harmless else ""
        yield _row((f"`{name}`", accepted, " ".join(each.text.split())))
    for prefix, instead in FAMILIES_INSTEAD.items():
        yield _row((f"`{prefix}*`", "", instead))


def _of_kafka() -> Iterator[str]:
    yield from (
        "",
        "## Options of Kafka's source",
        "",
        "Programs that move from Spark's source for Kafka find their options here. The names `minPartitions`,",
        "`maxRecordsPerPartition`, `startingOffsets`, `endingOffsets` and `failOnDataLoss`, and `topic` of a sink, are",
        "the same in both. Kafka's positions are numbers by partition, so write `index:N` for an offset N.",
        "",
        _row(("Kafka", "Pulsar")),
        _row(("---", "---")),
    )
    for name, instead in OF_KAFKA.items():
        yield _row((f"`{name}`", instead))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
