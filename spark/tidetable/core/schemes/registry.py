"""Which schemes there are: everything outside of a scheme's own file asks here."""

from __future__ import annotations

from tidetable.core.schemes.settings import Settings

SCHEMES: dict[str, type[Settings]] = {}
"""The settings of each scheme by its name, in the order of their registration."""


def register(settings: type[Settings]) -> None:
    """Makes a scheme known by its settings; its name must be free."""
    known = SCHEMES.setdefault(settings.name, settings)
    if known is not settings:
        raise ValueError(f"The scheme {settings.name} is {known.__name__} already; rename one.")
