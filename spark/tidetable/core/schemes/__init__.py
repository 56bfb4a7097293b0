"""The schemes: each decides from the slot number and its layout what an update touches.

A scheme is one file, with its planner and its settings, and one line here that registers it.
"""

from tidetable.core.schemes.base import Drawn, Scheme
from tidetable.core.schemes.no_rebuild import NoRebuild, NoRebuildConfig
from tidetable.core.schemes.rebuild import Rebuild, RebuildConfig
from tidetable.core.schemes.registry import SCHEMES, register
from tidetable.core.schemes.settings import Settings
from tidetable.core.schemes.sweep import Sweep, SweepConfig
from tidetable.core.schemes.tiers import Tiers, TiersConfig

register(RebuildConfig)
register(NoRebuildConfig)
register(SweepConfig)
register(TiersConfig)

__all__ = [
    "SCHEMES",
    "Drawn",
    "NoRebuild",
    "NoRebuildConfig",
    "Rebuild",
    "RebuildConfig",
    "Scheme",
    "Settings",
    "Sweep",
    "SweepConfig",
    "Tiers",
    "TiersConfig",
    "register",
]
