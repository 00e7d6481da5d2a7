"""The report of a run: one HTML page, one PDF, and every picture with its numbers."""

from onym_lab.report.write import write

__all__ = ["write"]
