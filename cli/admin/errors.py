"""What goes wrong between the command line and the broker, said on stderr as pulsar-admin says it."""

import re
import sys
from typing import IO, Any, Final

import click

_TIMESTAMP: Final = "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"
_INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"

# What turns a feature on that is off by default: part of the broker's reason, and the setting.
_OFF_BY_DEFAULT: Final = (
    (r"[Bb]roker entry metadata is (disabled|not present)", f"brokerEntryMetadataInterceptors={_TIMESTAMP},{_INDEX}"),
    (r"[Tt]opic level policies (are|is) disabled", "topicLevelPoliciesEnabled=true"),
    (r"doesn't allow forced? deletion of namespaces", "forceDeleteNamespaceAllowed=true"),
    (r"doesn't allow forced? deletion of tenants", "forceDeleteTenantAllowed=true"),
    (r"[Tt]ransactions? (are |is |coordinator )?(not enabled|disabled)", "transactionCoordinatorEnabled=true"),
    (r"acknowledgment at batch index level", "acknowledgmentAtBatchIndexLevelEnabled=true"),
)


class AdminError(click.ClickException):
    """Ends the command with 1, after `message`, an empty line and `Reason: ...`."""

    exit_code = 1

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = message if reason is None else reason

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{self.message}\n\nReason: {self.reason}", file=file or sys.stderr)


class ServerError(AdminError):
    """The broker refused; `status` is what it answered."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def show(self, file: IO[Any] | None = None) -> None:
        super().show(file)
        for pattern, setting in _OFF_BY_DEFAULT:
            if re.search(pattern, self.message):
                click.echo(f"\nThat is off by default. To turn it on: pulsarium serve --set {setting}", err=True)
                return


class Unreachable(AdminError):
    """No broker answered."""


class NotConnected(Unreachable):
    """The call was not sent: another broker may have it."""
