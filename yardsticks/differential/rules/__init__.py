"""Steps of programs, by family. No family uses another family."""

from .administering import Administering
from .connecting import Connecting
from .consuming import Consuming
from .exchanging import Exchanging
from .looking import Looking
from .producing import Producing
from .subscribing import Subscribing


class Everything(Connecting, Producing, Subscribing, Exchanging, Consuming, Looking, Administering):
    """The rules of all families."""


__all__ = ["Everything"]
