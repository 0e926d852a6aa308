"""Share the parts of a client among its producers, consumers and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.producer.room import Limit
from pulsarium.client.schema.versions import Versions
from pulsarium.client.transaction.coordinator import Coordinators

if TYPE_CHECKING:
    from pulsarium.client.admin.admin import Admin


class Core:
    """The parts of a `Client`, hidden from applications."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.memory: Limit = Limit(brokers.settings.memory_limit)
        """The memory limit of all messages without a receipt."""
        self.schemas: Versions = Versions(brokers)
        """The schemas with which messages were written."""
        self.coordinators: Coordinators = Coordinators(brokers)
        """The transaction coordinators."""
        self._admin: Admin | None = None
        self._lender: Core | None = None

    @property
    def admin(self) -> Admin:
        """Return the client of the REST API at `admin_url`. Raise the errors of `Client.admin`."""
        self.brokers.check_open()
        if self._lender is not None:
            return self._lender.admin
        if self._admin is None:
            settings = self.brokers.settings
            if settings.admin_url is None:
                raise InvalidConfiguration("the client has no admin_url: pass connect(admin_url=...)")
            from pulsarium.client.admin.admin import admin_at  # its import takes 50 ms

            self._admin = admin_at(settings.admin_url, settings)
        return self._admin

    def use_admin_of(self, other: Core) -> None:
        """Use the admin client of another client, which has other credentials and is closed later."""
        self._lender = other

    async def aclose(self) -> None:
        """Close all connections. Everything that is open on them ends with `AlreadyClosed`."""
        try:
            await self.brokers.aclose()
        finally:
            if self._admin is not None:
                await self._admin.aclose()
