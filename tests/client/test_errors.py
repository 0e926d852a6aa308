"""Each error says what can be done, and has a code that stays."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import pulsarium.client
from pulsarium.client import FixError, GiveUpError, PulsarError, RetryError, errors
from pulsarium.client.admin import errors as admin_errors
from pulsarium.client.admin.errors import AdminError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

KINDS = (RetryError, FixError, GiveUpError)
RAISED: set[type[PulsarError]] = {
    error
    for module in (errors, admin_errors)
    for error in vars(module).values()
    if isinstance(error, type) and issubclass(error, PulsarError)
} - {PulsarError, AdminError, *KINDS}


@pytest.mark.parametrize("error", sorted(RAISED, key=str))
def test_each_error_is_of_one_kind(error: type[PulsarError]) -> None:
    assert sum(issubclass(error, kind) for kind in KINDS) == 1


def test_no_part_of_the_client_raises_an_error_without_a_kind() -> None:
    for module in pkgutil.walk_packages(pulsarium.client.__path__, "pulsarium.client."):
        importlib.import_module(module.name)
    rest = {*PulsarError.__subclasses__(), *AdminError.__subclasses__()} - {*KINDS, AdminError}
    assert {error for error in rest if not issubclass(error, KINDS)} == set()
    assert PulsarError.code == "PulsarError"


def test_codes_are_pulsars_and_tell_errors_apart() -> None:
    assert {error.code for error in RAISED} >= set(pb.ServerError.keys())
    assert len({error.code for error in RAISED}) == len(RAISED)
    assert errors.error_of(pb.ServiceNotReady, "").code == "ServiceNotReady"
    assert errors.ProducerQueueIsFull.code == "ProducerQueueIsFull"


def test_what_is_tried_again_is_worth_it() -> None:
    assert all(issubclass(error, RetryError) for error in errors.TRANSIENT)
    assert not any(issubclass(error, RetryError) for error in errors.FATAL)
