"""Settings: broker.conf keys, behavior profiles, and the options of a run."""

from pulsarium.broker.config.file import LoadedConfig, load
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.config.options import Durability, ServeOptions
from pulsarium.broker.config.profile import PIP, PROFILES, PULSAR_4_2, Profile, profile_of

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
