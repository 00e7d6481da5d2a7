"""What `pip install ./lab` brings, without being editable."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]


def test_every_package_and_every_folder_of_experiments_is_installed() -> None:
    told = tomllib.loads((LAB / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    code = {
        ".".join(file.parent.relative_to(LAB).parts) for file in LAB.glob("onym_lab/**/__init__.py")
    }
    data = {
        ".".join(("onym_lab", *file.parent.relative_to(LAB).parts))
        for folder in ("experiments", "topologies")
        for file in (LAB / folder).rglob("*.*")
    }
    assert set(told) == code | data


def test_an_installed_laboratory_lists_its_experiments(tmp_path: Path) -> None:
    """Built from a copy, as from an archive, and started away from the source tree."""
    target, source = tmp_path / "site", tmp_path / "source"
    left = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "tests", "build")
    shutil.copytree(LAB, source, ignore=left)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-compile", "--no-build-isolation"),
            *("--target", str(target), str(source)),
        ],
        check=True,
    )
    program = (
        f"import sys; sys.path.insert(0, {str(target)!r}); from onym_lab import cli, experiment"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{program}; print(experiment.LIBRARY); sys.exit(cli.main(['list']))",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(target) in done.stdout.splitlines()[0]
    assert "ccnx-fig8" in done.stdout
    assert "cache-abilene" in done.stdout
