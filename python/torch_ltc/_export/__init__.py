"""Exports traced programs and steps as files for other runtimes (docs/debugging.md)."""
