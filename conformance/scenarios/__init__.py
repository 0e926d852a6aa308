"""The scenarios, by subject. Importing the package fills the table."""

from importlib import import_module
from pathlib import Path
from typing import Final

from pulsarium.conformance.scenario import SCENARIOS

_FOLDER: Final = Path(__file__).parent

for _path in sorted(_FOLDER.rglob("*.py")):
    if _path.stem != "__init__":
        import_module(".".join((__name__, *_path.relative_to(_FOLDER).with_suffix("").parts)))

__all__ = ["SCENARIOS"]
