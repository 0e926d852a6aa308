"""Let Python import the installed pyspark in place of Spark's archive of the same package.

Spark puts the archive first on the path of its Python processes. The archive has no byte code, so each process would
compile pyspark again, for half a second. Python imports a module of this name before all others.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

HERE = str(Path(__file__).parent)


def put_archives_last(path: list[str]) -> None:
    """Move the archives of a pyspark that is itself on the path behind all other entries."""
    archives = tuple(str(Path(each, "pyspark", "python", "lib", "")) for each in path if each)
    path.sort(key=lambda each: str(Path(each).parent) in archives)


if __name__ == "sitecustomize":
    sys.path.remove(HERE)
    put_archives_last(sys.path)
    this = sys.modules.pop(__name__)
    with suppress(ImportError):  # the environment's own module of this name, which this one hides
        import_module(__name__)
    sys.modules.setdefault(__name__, this)
