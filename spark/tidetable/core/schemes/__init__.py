"""The schemes: each decides from the slot number and its layout what an update touches."""

from tidetable.core.schemes.base import Scheme
from tidetable.core.schemes.no_rebuild import NoRebuild
from tidetable.core.schemes.rebuild import Rebuild
from tidetable.core.schemes.sweep import Sweep
from tidetable.core.schemes.tiers import Tiers

__all__ = ["NoRebuild", "Rebuild", "Scheme", "Sweep", "Tiers"]
