"""The closing lines of the tests."""

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell what each rule of the kept experiments was tried with."""
    lines = [
        str(told)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for key, told in report.user_properties
        if key == "tried"
    ]
    if lines:
        terminalreporter.section("mutated evidence: each change of the data, and the verdict then")
        for line in sorted(lines):
            terminalreporter.write_line(line)
