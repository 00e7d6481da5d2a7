"""Experiment files: read, and checked with line and reason."""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from onym_lab import paths
from onym_lab.resolve import Resolver
from onym_lab.spec import Spec

HERE = Path(__file__).resolve().parent


def beside(name: str) -> Path:
    """Find a folder of the laboratory: in the source tree, or in the installed package."""
    source = HERE.parent / name
    return source if source.is_dir() and HERE.parent.name == "lab" else HERE / name


LIBRARY = beside("experiments")
BACKENDS = ("sim", "netns", "loopback", "bench")


class ExperimentError(Exception):
    """An experiment file that cannot be used: where, and why."""

    def __init__(self, file: Path | str, line: int, why: str) -> None:
        super().__init__(f"{file}:{line}: {why}" if line else f"{file}: {why}")
        self.file, self.line, self.why = str(file), line, why


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file."""

    path: Path
    text: str
    data: dict[str, Any]
    lines: Mapping[tuple[str | int, ...], int]

    @property
    def name(self) -> str:
        """How the library calls it."""
        return str(self.data["name"])

    @property
    def backends(self) -> list[str]:
        """Where it is known to run; the first is the usual one."""
        return list(self.data.get("backends", ["sim"]))

    def error(self, place: tuple[str | int, ...], why: str) -> ExperimentError:
        """Make the error for a place of the file, or for the nearest place above it."""
        at = place
        while at and at not in self.lines:
            at = at[:-1]
        return ExperimentError(self.path, self.lines.get(at, 1), why)

    def spec(self, settings: Mapping[str, Any], seed: int) -> Spec:
        """Put the settings (path to value) in and give the replicate in plain units."""
        data = copy.deepcopy(self.data)
        for path, value in settings.items():
            paths.put(data, path, value)
        return Resolver(self, data).spec(seed)


@cache
def _validator() -> Any:
    schema = json.loads((HERE / "schema.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def _plain(node: yaml.Node, place: tuple[str | int, ...], lines: dict[Any, int], file: Path) -> Any:
    """Make values of YAML nodes, noting their lines; a key that comes twice is refused."""
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in mapping:
                raise ExperimentError(file, line, f"{key!r} comes twice")
            mapping[key] = _plain(value_node, (*place, key), lines, file)
            lines[(*place, key)] = line
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, (*place, n), lines, file) for n, one in enumerate(node.value)]
    loader = yaml.SafeLoader("")
    # YAML 1.1 calls on and off truth values; here they are words of the schema.
    if node.tag == "tag:yaml.org,2002:bool" and node.value.lower() in ("on", "off", "yes", "no"):
        return node.value.lower()
    return loader.construct_object(node)


def _reason(error: jsonschema.ValidationError) -> tuple[tuple[str | int, ...], str]:
    place = tuple(error.absolute_path)
    if error.validator == "oneOf" and error.context:
        # The alternative that came nearest is the one that was meant.
        deepest = max(error.context, key=lambda one: len(one.absolute_path))
        if len(deepest.absolute_path) > len(place) or deepest.validator in (
            "additionalProperties",
            "required",
        ):
            return _reason(deepest)
    name = ".".join(str(part) for part in place) or "the file"
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = error.schema.get("properties", {})
        unknown = next((key for key in error.instance if key not in known), None)
        if unknown is not None:
            why = f"there is no {unknown!r}{meant(str(unknown), known)}"
            return (*place, unknown), f"{name}: {why}"
    return place, f"{name}: {error.message}"


def find(name: str) -> Path:
    """Find an experiment: a file, or a name of the library.

    Raises:
        ExperimentError: There is neither.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return path
    found = sorted(LIBRARY.rglob(f"{name}.yaml"))
    if not found:
        why = "is neither a .yaml file nor an experiment of the library (`onym-lab list`)"
        raise ExperimentError(name, 0, why + meant(name, [one.stem for one in library()]))
    return found[0]


def meant(word: str, words: Iterable[str]) -> str:
    """Ask whether a word that is known was meant; nothing when none is near."""
    near = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def library() -> list[Path]:
    """List the files of the library, the first steps first."""
    return sorted(LIBRARY.rglob("*.yaml"), key=lambda path: (path.parent != LIBRARY, path))


def load(path: Path | str) -> Experiment:
    """Read and check an experiment file.

    Raises:
        ExperimentError: With the line and the reason.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExperimentError(path, 0, error.strerror or str(error)) from error
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ExperimentError(path, mark.line + 1 if mark else 1, str(error.problem)) from error
    if root is None:
        raise ExperimentError(path, 1, "the file is empty")
    data = _plain(root, (), lines, path)
    if isinstance(data, dict) and "bench" in data:
        # A measurement that is no network: one node that nobody sees.
        data.setdefault("topology", {"preset": "line", "n": 1})
        data.setdefault("apps", [{"id": "bench", "node": "n1", "kind": "command", "run": ["-"]}])
        data.setdefault("phases", {"measure": "600s"})
    experiment = Experiment(path, text, data, lines)
    errors = sorted(_validator().iter_errors(data), key=lambda e: len(e.absolute_path))
    if errors:
        raise experiment.error(*_reason(errors[0]))
    check(experiment)
    return experiment


def check(experiment: Experiment) -> None:
    """Check what a schema cannot say: names that must exist, units, factors."""
    from onym_lab import design

    cells = design.cells(experiment)
    for cell in cells:
        experiment.spec(cell.settings, 1)
    for path in experiment.data.get("scale", []):
        value = paths.get(experiment.data, path)
        if value is None:
            raise experiment.error(("scale",), f"scale: {path} is not in the file")
    _check_rules(experiment)


def _check_rules(experiment: Experiment) -> None:
    factors = experiment.data.get("factors", {})
    labels = {name: set(labels_of(factor)) for name, factor in factors.items()}
    paper = experiment.data.get("paper", {})

    def cells(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield entry.get("cell", {})
        yield from entry.get("cells", [])
        for side in ("of", "to"):
            yield entry.get(side, {}).get("cell", {})

    for part in ("values", "rules"):
        for number, entry in enumerate(paper.get(part, [])):
            for cell in cells(entry):
                for factor, label in cell.items():
                    if factor not in labels:
                        why = f"{entry['id']}: {factor!r} is no factor"
                        raise experiment.error(("paper", part, number), why)
                    if str(label) not in labels[factor]:
                        why = f"{entry['id']}: {label!r} is no level of {factor}"
                        raise experiment.error(("paper", part, number), why)


def label_of(level: Any) -> str:
    """Give a level's label as the results show it."""
    if isinstance(level, Mapping):
        return str(level["label"])
    return str(level)


def labels_of(factor: Mapping[str, Any]) -> list[str]:
    """Give the labels of a factor's levels in their order."""
    return [label_of(level) for level in factor["levels"]]


def scaled(experiment: Experiment, scale: float) -> Experiment:
    """Multiply what the experiment says can be scaled; whole numbers stay at least 1.

    Raises:
        ExperimentError: Nothing of it can be scaled.
    """
    if scale == 1:
        return experiment
    if not experiment.data.get("scale"):
        raise experiment.error(("scale",), "nothing of it can be scaled: the file has no `scale`")
    data = copy.deepcopy(experiment.data)
    paths.multiply(data, data.get("scale", []), scale)
    return Experiment(experiment.path, experiment.text, data, experiment.lines)
