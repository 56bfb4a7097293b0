"""Tidetable: Delta tables whose rows expire."""

__version__ = "0.1.0"
