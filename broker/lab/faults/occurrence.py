"""Which of the frames that a rule selects it strikes: once, the nth, every kth, so many, by chance."""

from __future__ import annotations

import random

from pulsarium.broker.lab.faults.errors import FaultError


class Occurrence:
    """Is asked once for each frame that was selected.

    skip: as many are let pass first. every: then the first of each `every` is struck. count: so many in all, None for
    ever. probability: of each that would be struck. seed: of chance, also of the bytes that are corrupted.
    """

    def __init__(
        self,
        skip: int = 0,
        every: int = 1,
        count: int | None = 1,
        probability: float = 1.0,
        seed: int | None = None,
    ) -> None:
        """Raises FaultError."""
        if skip < 0:
            raise FaultError(f"skip is {skip}; it is 0 or more")
        if every < 1:
            raise FaultError(f"every is {every}; it is 1 or more")
        if count is not None and count < 1:
            raise FaultError(f"count is {count}; it is 1 or more, or nothing for ever")
        if not 0 <= probability <= 1:
            raise FaultError(f"probability is {probability}; it is from 0 to 1")
        self.skip = skip
        self.every = every
        self.count = count
        self.probability = probability
        self.seed = random.randrange(2**32) if seed is None else seed
        self.chance = random.Random(self.seed)
        self._seen = 0
        self._struck = 0

    @property
    def spent(self) -> bool:
        """Whether nothing more is struck."""
        return self.count is not None and self._struck >= self.count

    def strikes(self) -> bool:
        """Whether it is this one's turn."""
        if self.spent:
            return False
        nth = self._seen - self.skip
        self._seen += 1
        if nth < 0 or nth % self.every or (self.probability < 1 and self.chance.random() >= self.probability):
            return False
        self._struck += 1
        return True

    def give_back(self) -> None:
        """One that was to be struck never came."""
        self._struck -= 1

    def take_back(self) -> bool:
        """It did come. Whether it is still its turn."""
        if self.spent:
            return False
        self._struck += 1
        return True
