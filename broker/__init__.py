"""The emulator of the Pulsar broker.

In tests:

with pulsarium.broker.running() as broker:
    client = pulsar.Client(broker.service_url)
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["running"]


def on_first_use(package: str, module: str, *names: str) -> Callable[[str], object]:
    """Return a package's `__getattr__` that imports a module of it when a name of the module is first used.

    Without `names`, all names of the module. The whole broker comes with them, and every run of pytest imports the
    packages where Pulsarium is installed.
    """

    def get(name: str) -> object:
        if name in names or (not names and (name == "__all__" or not name.startswith("_"))):
            return getattr(import_module(f"{package}.{module}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


if TYPE_CHECKING:
    from pulsarium.broker.testing.starting import running
else:
    __getattr__ = on_first_use(__name__, "testing.starting", "running")
