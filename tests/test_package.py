"""A bare `import pulsarium` is cheap, and loads each part of the package on first use."""

from __future__ import annotations

import subprocess
import sys
from typing import assert_type

import pytest

from pulsarium.broker.testing import Running
from pulsarium.client import MessageId
from pulsarium.proto.installing import remedy

WITHOUT = "import sys; sys.modules[{package!r}] = None\n"


def python(program: str) -> str:
    """Return what a program prints, in a Python of its own."""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_broker_runs_after_one_import() -> None:
    program = "import pulsarium\nwith pulsarium.broker.running() as broker: print(broker.service_url)"
    assert python(program).startswith("pulsar://127.0.0.1:")


def test_the_names_of_tests_have_a_module_of_their_own() -> None:
    program = """
import pulsarium.testing, pulsarium.broker.testing
print(*(getattr(pulsarium.testing, name) is getattr(pulsarium.broker.testing, name) for name in ("running", "Close")))
"""
    assert python(program) == "True True"
    assert python("import pulsarium; print(pulsarium.testing.running.__name__)") == "running"


def test_the_client_is_there_after_one_import() -> None:
    assert python("import pulsarium; print(pulsarium.client.connect.__name__)") == "connect"


def test_the_import_alone_brings_no_other_module_of_ours() -> None:
    program = "import sys, pulsarium; print(*(name for name in sys.modules if name.startswith(('pulsarium', 'trio'))))"
    assert python(program) == "pulsarium"


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    import pulsarium

    with pytest.raises(AttributeError, match="module 'pulsarium' has no attribute 'brokr'"):
        _ = pulsarium.brokr  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", ["anyio", "typing_extensions"])
@pytest.mark.parametrize("use", ["import pulsarium.client", "import pulsarium; pulsarium.client.connect"])
def test_a_missing_extra_is_named(package: str, use: str) -> None:
    program = f"try:\n    {use}\nexcept ImportError as error: print(error.name, error)"
    said = f"{package} pulsarium.client needs {package}; {remedy('client')}"
    assert python(WITHOUT.format(package=package) + program) == said


def test_http_without_its_extra_is_named() -> None:
    program = """
from pulsarium.client.admin.transport import Transport
try:
    Transport("http://localhost:8080", authentication=None, tls=None)
except ImportError as error:
    print(error)
"""
    said = f"HTTP needs httpx; {remedy('client')}"
    assert python(WITHOUT.format(package="httpx") + program) == said


def test_both_are_typed() -> None:
    """Mypy sees the lazy attributes."""
    import pulsarium

    assert_type(pulsarium.broker.running(), Running)
    assert_type(pulsarium.client.MessageId.earliest, MessageId)
