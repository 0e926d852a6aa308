"""Hold together what the producers, consumers and transactions of one client share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.producer.outbox import MemoryLimit
from pulsarium.client.schema.versions import Versions
from pulsarium.client.transaction.coordinator import Coordinators

if TYPE_CHECKING:
    from pulsarium.client.admin.admin import Admin


class Core:
    """The parts behind a `Client`: applications see none of them."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.memory: MemoryLimit = MemoryLimit(brokers.settings.memory_limit)
        """Counts the bytes of all messages without a receipt."""
        self.schemas: Versions = Versions(brokers)
        """Finds the schema with which a message was written."""
        self.coordinators: Coordinators = Coordinators(brokers)
        """Begins and ends transactions."""
        self._admin: Admin | None = None

    @property
    def admin(self) -> Admin:
        """Return the REST API at `admin_url`. Raises as `Client.admin`."""
        self.brokers.check_open()
        if self._admin is None:
            settings = self.brokers.settings
            if settings.admin_url is None:
                raise InvalidConfiguration("this needs connect(admin_url=...)")
            from pulsarium.client.admin.admin import admin_at  # its import takes 50 ms

            self._admin = admin_at(settings.admin_url, settings)
        return self._admin

    async def aclose(self) -> None:
        """Close every connection; everything that was open on them ends with AlreadyClosed."""
        try:
            await self.brokers.aclose()
        finally:
            if self._admin is not None:
                await self._admin.aclose()
