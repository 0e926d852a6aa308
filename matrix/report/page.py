"""`python -m pulsarium.matrix.report.page matrix.json`: the page of the documentation."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pulsarium.matrix.cell import Result
from pulsarium.matrix.report.markdown import markdown
from pulsarium.matrix.report.table import Table

_HEAD = """\
# Clients and what works with them

The state of today, written by `scripts/matrix`: small programs of each client (`matrix/`) against a broker of ours, on
both profiles. A reason stands below where something does not work. `pulsarium matrix` makes such a table of the clients
that a machine has; its page leads from each cell to what client and broker said, frame by frame.

"""


def page(results: Sequence[Result]) -> str:
    return _HEAD + markdown(Table(results))


if __name__ == "__main__":
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(page([Result.of_row(row) for row in rows]))
