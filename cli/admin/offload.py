"""Offload policies, which the emulator stores without offloading anything."""

from __future__ import annotations

from typing import Any, Final

import click

from pulsarium.cli.admin.command import Values, option
from pulsarium.cli.admin.values import BYTES, LONG, MILLISECONDS, SECONDS
from pulsarium.rest.policies import OFFLOAD_DEFAULTS, OFFLOAD_DRIVERS

_S3: Final = ("S3", "aws-s3", "aliyun-oss")
_MAX_BLOCK_SIZE: Final = OFFLOAD_DEFAULTS["s3ManagedLedgerOffloadMaxBlockSizeInBytes"]
_READ_BUFFER_SIZE: Final = OFFLOAD_DEFAULTS["s3ManagedLedgerOffloadReadBufferSizeInBytes"]


def options(
    *role: str,
    block: tuple[str, ...],
    buffer: tuple[str, ...],
    size: tuple[str, ...],
    seconds: tuple[str, ...],
    lag: tuple[str, ...],
    units: bool,
) -> tuple[click.Option, ...]:
    """Return the options of offload policies under the names of a group.

    With `units`, sizes and times take a unit, as in 10M and 3h. Without, they are plain numbers.
    """
    byte, second, millisecond = (BYTES, SECONDS, MILLISECONDS) if units else (LONG, LONG, LONG)
    size_type = BYTES if units else click.IntRange(1, 2**31 - 1)
    return (
        option("--driver", "-d", required=True, help=f"One of {', '.join(OFFLOAD_DRIVERS)}."),
        option("--region", "-r", help="Region of the storage."),
        option("--bucket", "-b", help="Bucket for the ledgers."),
        option("--endpoint", "-e", help="Use this endpoint of the service."),
        option("--aws-id", "-i", help="AWS credential id."),
        option("--aws-secret", "-s", help="AWS credential secret."),
        option(*role, dest="s3_role", help="S3 role to assume."),
        option("--s3-role-session-name", "-rsn", help="Session name of that role."),
        option(*block, dest="block", type=size_type, default=str(_MAX_BLOCK_SIZE), help="Size of a block."),
        option(*buffer, dest="buffer", type=size_type, default=str(_READ_BUFFER_SIZE), help="Size of the read buffer."),
        option(*size, dest="size", type=byte, help="Offload from this size on."),
        option(*seconds, dest="seconds", type=second, help="Offload ledgers of this age."),
        option(*lag, dest="lag", type=millisecond, help="Delete from BookKeeper this long after offloading."),
        option(
            "--offloadedReadPriority",
            "-orp",
            dest="priority",
            type=click.Choice(["tiered-storage-first", "bookkeeper-first"]),
            help="Read ledgers that are in both stores from this one.",
        ),
    )


def body(values: Values) -> dict[str, Any]:
    """Return the offload policies as Pulsar's client sends them: only S3 and Google settings have their own fields."""
    driver = next((name for name in OFFLOAD_DRIVERS if name.lower() == values.driver.lower()), None)
    if driver is None:
        raise click.UsageError(
            f"The driver {values.driver} is not supported, (Possible values: {','.join(OFFLOAD_DRIVERS)})."
        )
    if driver in _S3 and not (values.region or values.endpoint):
        raise click.UsageError(f"The driver {values.driver} needs --region or --endpoint")
    found = dict(OFFLOAD_DEFAULTS)  # Pulsar's client sends all defaults
    found["managedLedgerOffloadDriver"] = values.driver
    _add(found, "managedLedgerOffloadThresholdInSeconds", values.seconds)
    _add(found, "managedLedgerOffloadThresholdInBytes", values.size)
    _add(found, "managedLedgerOffloadDeletionLagInMillis", values.lag)
    if values.priority is not None:
        found["managedLedgerOffloadedReadPriority"] = values.priority.replace("-", "_").upper()
    if driver in _S3:
        _add_storage(found, "s3ManagedLedger", values)
        _add(found, "s3ManagedLedgerOffloadServiceEndpoint", values.endpoint)
        _add(found, "s3ManagedLedgerOffloadCredentialId", values.aws_id)
        _add(found, "s3ManagedLedgerOffloadCredentialSecret", values.aws_secret)
        _add(found, "s3ManagedLedgerOffloadRole", values.s3_role)
        _add(found, "s3ManagedLedgerOffloadRoleSessionName", values.s3_role_session_name)
    if driver == "google-cloud-storage":
        _add_storage(found, "gcsManagedLedger", values)
    _add_storage(found, "managedLedger", values)
    _add(found, "managedLedgerOffloadServiceEndpoint", values.endpoint)
    found["s3Driver"] = driver in ("S3", "aws-s3")
    found["gcsDriver"] = driver == "google-cloud-storage"
    found["fileSystemDriver"] = driver == "filesystem"
    return found


def _add_storage(found: dict[str, Any], prefix: str, values: Values) -> None:
    _add(found, f"{prefix}OffloadRegion", values.region)
    _add(found, f"{prefix}OffloadBucket", values.bucket)
    found[f"{prefix}OffloadMaxBlockSizeInBytes"] = values.block
    found[f"{prefix}OffloadReadBufferSizeInBytes"] = values.buffer


def _add(found: dict[str, Any], name: str, value: object) -> None:
    if value is not None:
        found[name] = value
