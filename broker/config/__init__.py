"""Settings: broker.conf keys, behaviour profiles, and the options of a run."""

from .errors import ConfigError
from .file import LoadedConfig, load
from .keys import Config
from .options import Durability, ServeOptions
from .profile import PIP, PROFILES, PULSAR_4_2, Profile, profile_of

__all__ = [
    "PIP",
    "PROFILES",
    "PULSAR_4_2",
    "Config",
    "ConfigError",
    "Durability",
    "LoadedConfig",
    "Profile",
    "ServeOptions",
    "load",
    "profile_of",
]
