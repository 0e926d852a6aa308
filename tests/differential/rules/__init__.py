"""What a program may do, by family; each family knows nothing of the others."""

from .administering import Administering
from .connecting import Connecting
from .consuming import Consuming
from .exchanging import Exchanging
from .looking import Looking
from .producing import Producing
from .subscribing import Subscribing


class Everything(Connecting, Producing, Subscribing, Exchanging, Consuming, Looking, Administering):
    """All rules."""


__all__ = ["Everything"]
