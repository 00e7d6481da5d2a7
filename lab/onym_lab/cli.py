"""The command `onym-lab`.

Exit codes: 0 done, 1 failed otherwise, 2 wrong file or usage, 3 the environment, 4 a check failed,
5 stopped before the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from onym_lab import __doc__ as about
from onym_lab import aggregate, design, doctor, life, progress, provenance
from onym_lab import experiment as files
from onym_lab.backend.base import BackendError, Refused
from onym_lab.experiment import ExperimentError
from onym_lab.results import Run, runs
from onym_lab.tools import MissingToolError

OK, FAILED, USAGE, ENVIRONMENT, CHECK, STOPPED = range(6)


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="onym-lab",
        description=(about or "").splitlines()[0],
        epilog="exit codes: 0 done, 1 failed otherwise, 2 wrong file or usage, 3 environment, "
        "4 a check failed, 5 stopped before the end",
    )
    top.add_argument(
        "--results",
        type=Path,
        default=Path(os.environ.get("ONYM_LAB_RESULTS", "results")),
        metavar="DIR",
        help="where runs are kept (ONYM_LAB_RESULTS, else results)",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("list", help="the library of experiments, and the runs that are kept")
    show = commands.add_parser("show", help="what an experiment does: cells, order, time")
    show.add_argument("experiment")
    show.add_argument("--backend", choices=files.BACKENDS)
    show.add_argument("--scale", type=_scale, default=1.0)

    run = commands.add_parser("run", help="run an experiment, or go on with it")
    run.add_argument("experiment", nargs="+", help="a name of the library, or a file")
    _run_options(run)
    resume = commands.add_parser("resume", help="go on with runs that did not end")
    resume.add_argument("experiment", nargs="?")
    resume.add_argument("run", nargs="?")
    resume.add_argument("--any-binary", action="store_true", help="by another onym, too")
    resume.add_argument("--plain", action="store_true", help="one line for each step")
    whole = commands.add_parser(
        "all", help="run the whole library, or the named ones, and go on with what is not finished"
    )
    whole.add_argument("experiment", nargs="*", help="a name of the library; all without")
    whole.add_argument("--scale", type=_scale, default=1.0, help="of those that have a scale")
    whole.add_argument("--replications", type=_count, help="instead of each file's number")
    whole.add_argument("--dry-run", action="store_true", help="what would run, and what is refused")
    whole.add_argument("--any-binary", action="store_true", help="measure by another onym, too")
    whole.add_argument("--plain", action="store_true", help="one line for each step")

    for name, what in (
        ("report", "write report and pictures again from what was measured"),
        ("derive", "compute tables and measures again from what was measured"),
        ("verify", "compare a run's files with its manifest"),
        ("cite", "say how a result can be cited"),
    ):
        one = commands.add_parser(name, help=what)
        one.add_argument("experiment")
        one.add_argument("run", nargs="?")
    diff = commands.add_parser("diff", help="say in what two runs differ")
    diff.add_argument("left", help="EXPERIMENT or EXPERIMENT/RUN")
    diff.add_argument("right", help="EXPERIMENT or EXPERIMENT/RUN")
    archive = commands.add_parser("archive", help="put a run into one file")
    archive.add_argument("experiment")
    archive.add_argument("run", nargs="?")
    archive.add_argument("-o", "--output", type=Path, help="FILE.tar.zst")
    restore = commands.add_parser("restore", help="unpack an archive")
    restore.add_argument("file", type=Path)

    commands.add_parser("doctor", help="what this machine can do, and how to mend what it cannot")
    quick = commands.add_parser("quickstart", help="a first report in less than a minute")
    quick.add_argument("--backend", choices=("sim", "loopback"), default="sim")
    quick.add_argument("--plain", action="store_true", help="one line for each step")
    several = commands.add_parser(
        "machines", help="write what machines at addresses are given to run an experiment"
    )
    several.add_argument("experiment")
    several.add_argument("--at", required=True, metavar="NODE=ADDRESS,…", help="of every node")
    several.add_argument("--cell", metavar="ID", help="as `show` lists them; the first without")
    several.add_argument("--port", type=int, default=6363, help="of every node (6363)")
    several.add_argument("--scale", type=_scale, default=1.0)
    several.add_argument("-o", "--output", type=Path, required=True, metavar="DIR",
                         help="a folder that is new; on the machines the same one")  # fmt: skip
    topo = commands.add_parser("topology", help="read a Mini-NDN .conf or ndnSIM .txt and show it")
    topo.add_argument("file", type=Path)
    return top


def _scale(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no scale: a number above 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of replications: 1 or more")
    return value


def _run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--backend", choices=files.BACKENDS, help="the file's first one without it")
    run.add_argument("--scale", type=_scale, default=1.0, help="multiply what the file says can be")
    run.add_argument("--name", help="name of the run; the backend and the scale without it")
    run.add_argument("--replications", type=_count, help="instead of the file's number")
    run.add_argument("--interactive", action="store_true", help="ask at the paper's gates")
    run.add_argument("--dask", metavar="ADDRESS", help="hand replicates to a Dask cluster")
    run.add_argument("--dry-run", action="store_true", help="show the plan only")
    run.add_argument(
        "--any-binary", action="store_true", help="measure an onym that other sources made, too"
    )
    run.add_argument("--no-report", action="store_true", help="measure only")
    run.add_argument("--plain", action="store_true", help="one line for each step")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    args = parser().parse_args(argv)
    # Being asked to end gives everything back, as Ctrl-C does.
    signal.signal(signal.SIGTERM, _asked_to_end)
    try:
        code = _COMMANDS[args.command](args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # A reader that went away (`onym-lab list | head`) has what it wanted; what is left in the
        # buffer goes nowhere, so that the interpreter does not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except ExperimentError as error:
        print(f"onym-lab: {error}", file=sys.stderr)
        return USAGE
    except Refused as refused:
        for reason in refused.reasons:
            print(f"onym-lab: {refused.backend}: {reason}", file=sys.stderr)
        return ENVIRONMENT
    except MissingToolError as error:
        print(f"onym-lab: {error}", file=sys.stderr)
        return ENVIRONMENT
    except (BackendError, life.RunExistsError, ValueError, OSError) as error:
        print(f"onym-lab: {error}", file=sys.stderr)
        return FAILED
    except (KeyboardInterrupt, life.AbortedError) as error:
        print(f"onym-lab: stopped {error}; `onym-lab resume` goes on", file=sys.stderr)
        return STOPPED


def _asked_to_end(number: int, frame: object) -> None:
    del number, frame
    raise KeyboardInterrupt


def _list(args: argparse.Namespace) -> int:
    group = None
    for path in files.library():
        try:
            one = files.load(path)
        except ExperimentError as error:
            print(f"! {error}", file=sys.stderr)
            continue
        if one.data.get("group") != group:
            group = one.data.get("group")
            print(f"{group}:" if group else "")
        print(f"  {one.name:28} {one.data['title']} [{', '.join(one.backends)}]")
    kept = runs(args.results)
    if kept:
        print(f"runs in {args.results}:")
    for run in kept:
        phase = run.state.get("phase")
        done = sum(1 for _ in run.replicates())
        total = len(run.plan["order"])
        print(f"  {run.folder.parent.name}/{run.folder.name:20} {done}/{total} {phase}")
    return OK


def _show(args: argparse.Namespace) -> int:
    one = files.scaled(files.load(files.find(args.experiment)), args.scale)
    cells = design.cells(one)
    count = design.replications(one)
    print(f"{one.name}: {one.data['title']}")
    print(textwrap.fill(one.data.get("description", "").strip(), 100))
    paper = one.data.get("paper")
    if paper:
        figure = f", figure {paper['figure']}" if "figure" in paper else ""
        says = f"after {paper['id']}{figure}: {paper.get('says', '').strip()}"
        print(textwrap.fill(says, 100))
    cells_word = "cell" if len(cells) == 1 else "cells"
    print(f"{len(cells)} {cells_word} x {count} replications, backends {', '.join(one.backends)}")
    for cell in cells:
        print(f"  {cell.id}  {cell.label}")
    if "bench" not in one.data:
        longest = max(one.spec(cell.settings, 1).at_most for cell in cells)
        seconds = len(cells) * count * longest
        print(f"at most {seconds / 60:.1f} minutes of measuring in real time")
    if args.backend:
        options = life.Options(args.results, args.backend)
        for name, why in life.refusals(one, cells, options, 1).items():
            print(f"{args.backend} skips {name}: {why}")
    return OK


def _options(args: argparse.Namespace, one: files.Experiment) -> life.Options:
    return life.Options(
        root=args.results,
        backend=args.backend or one.backends[0],
        scale=args.scale,
        name=args.name,
        replications=args.replications,
        interactive=args.interactive,
        dask=args.dask,
        report=not args.no_report,
        any_binary=args.any_binary,
    )


def _run(args: argparse.Namespace) -> int:
    worst = OK
    for name in args.experiment:
        one = files.load(files.find(name))
        if args.dry_run:
            args.experiment = name
            _show(args)
            continue
        worst = max(worst, _go(one, _options(args, one), args.plain))
    return worst


def _go(one: files.Experiment, options: life.Options, plain: bool) -> int:
    with progress.shown(one.name, plain) as listener:
        run = life.Life(one, options, listener).go()
    checks = run.checks
    failed = checks[~checks["passed"].astype(bool)]
    print(f"{run.folder}")
    page = run.folder / "report.html"
    if page.is_file():
        print(f"{page}")
    for row in failed.itertuples():
        print(f"check failed: {row.cell} r{row.replication} {row.check}: {row.value} ({row.limit})")
    return CHECK if len(failed) else OK


def _resume(args: argparse.Namespace) -> int:
    worst = OK
    found = [run for run in runs(args.results, args.experiment)
             if args.run in (None, run.folder.name)]  # fmt: skip
    if not found and args.experiment:
        raise ValueError(f"there is no run of {args.experiment} in {args.results}")
    left = [run for run in found if run.state.get("phase") != "done"]
    if not left:
        print("nothing is left to do")
    for run in left:
        one = files.load(run.folder / "experiment.yaml")
        plan = run.plan
        options = life.Options(
            root=args.results,
            backend=plan["backend"],
            scale=plan["scale"],
            name=run.folder.name,
            replications=plan["replications"],
            any_binary=args.any_binary,
        )
        worst = max(worst, _go(one, options, args.plain))
    return worst


def _all(args: argparse.Namespace) -> int:
    from onym_lab import campaign

    wanted = campaign.Wanted(
        args.results, args.experiment, args.scale, args.replications, args.any_binary
    )
    if args.dry_run:
        for line in campaign.plan(wanted):
            print(line)
        return OK
    ended = campaign.go(wanted, lambda one, options: _go(one, options, args.plain))
    for line in campaign.told(ended):
        print(line)
    return FAILED if any(one.failed for one in ended) else OK


def pick(args: argparse.Namespace) -> Run:
    """Find the run that was typed, or the newest of the experiment."""
    return named(args.results, args.experiment, args.run)


def named(results: Path, name: str, run: str | None = None) -> Run:
    """Find a run by EXPERIMENT (its newest), EXPERIMENT/RUN, or the folder of a run.

    Raises:
        ValueError: There is none.
    """
    if run is None and (Path(name) / "plan.json").is_file():
        return Run(Path(name))
    if "/" in name and run is None:
        name, _, run = name.partition("/")
    found = [one for one in runs(results, name) if run in (None, one.folder.name)]
    if not found:
        which = f"run {run!r} of {name}" if run else f"run of {name}"
        raise ValueError(f"there is no {which} in {results}: `onym-lab list` shows what there is")
    return found[-1]


def _report(args: argparse.Namespace) -> int:
    run = pick(args)
    aggregate.write(run)
    why = life.report(run)
    if why:
        print(f"onym-lab: {why}", file=sys.stderr)
        return FAILED
    print(run.folder / "report.html")
    return OK


def _derive(args: argparse.Namespace) -> int:
    import json

    from onym_lab import derive
    from onym_lab.results import write_json

    run = pick(args)
    one = files.load(run.folder / "experiment.yaml")
    one = files.scaled(one, run.plan["scale"])
    for replicate in run.replicates():
        cell = run.cell(replicate.cell)
        seed = design.seed_of(run.plan["seed"], replicate.replication)
        spec = one.spec(cell["settings"], seed)
        write_json(replicate.folder / "checks.json", derive.checks(spec, replicate.folder))
        derive.Deriver(spec, replicate.folder).run()
        rows = json.loads((replicate.derived / "measures.json").read_text())
        print(f"{cell['label']} r{replicate.replication}: {len(rows)} measures")
    aggregate.write(run)
    return OK


def _verify(args: argparse.Namespace) -> int:
    wrong = provenance.verify(pick(args))
    for line in wrong:
        print(line)
    print("every file is as the manifest says" if not wrong else f"{len(wrong)} files are not")
    return CHECK if wrong else OK


def _cite(args: argparse.Namespace) -> int:
    print(provenance.citation(pick(args)))
    return OK


def _diff(args: argparse.Namespace) -> int:
    left, right = (named(args.results, name) for name in (args.left, args.right))
    for run in (left, right):
        if run.state.get("phase") != "done":
            raise ValueError(f"{run.folder} did not end: `onym-lab resume` goes on")
    for line in provenance.diff(left, right):
        print(line)
    return OK


def _archive(args: argparse.Namespace) -> int:
    run = pick(args)
    target = args.output or Path(f"{run.folder.parent.name}-{run.folder.name}.tar.zst")
    provenance.archive(run, target)
    print(target)
    return OK


def _restore(args: argparse.Namespace) -> int:
    print(provenance.restore(args.file, args.results).folder)
    return OK


def _doctor(_: argparse.Namespace) -> int:
    return doctor.show()


def _quickstart(args: argparse.Namespace) -> int:
    one = files.load(files.find("quickstart"))
    name = args.backend
    options = life.Options(root=args.results, backend=name, name=name)
    code = _go(one, options, args.plain)
    print("next: onym-lab list; onym-lab show ccnx-fig8; docs/lab-tutorial.md")
    return code


def _machines(args: argparse.Namespace) -> int:
    from onym_lab import machines

    one = files.scaled(files.load(files.find(args.experiment)), args.scale)
    found = {cell.id: cell for cell in design.cells(one)}
    if args.cell and args.cell not in found:
        raise ValueError(f"{one.name} has no cell {args.cell}")
    cell = found[args.cell] if args.cell else next(iter(found.values()))
    pairs = [pair.partition("=") for pair in args.at.split(",")]
    if not all(node and address for node, _, address in pairs):
        raise ValueError("--at: NODE=ADDRESS, separated by commas")
    addresses = {node: address for node, _, address in pairs}
    spec = one.spec(cell.settings, design.seed_of(design.base_seed(one), 1))
    for folder in machines.plan(one.name, spec, addresses, args.output, args.port):
        print(f"{folder.name} at {addresses[folder.name]}: {folder}")
    print(f"{args.output / 'go.sh'}: every step on all of them ({', '.join(machines.STEPS)})")
    return OK


def _topology(args: argparse.Namespace) -> int:
    from onym_lab import topology

    try:
        made = topology.read(args.file)
    except topology.TopologyError as error:
        print(f"onym-lab: {error}", file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"onym-lab: {args.file}: {error.strerror}", file=sys.stderr)
        return USAGE
    print(f"{len(made.nodes)} nodes, {len(made.links)} links")
    for a, b, keys in made.links:
        print(f"  {a}-{b} " + " ".join(f"{key}={value}" for key, value in keys.items()))
    return OK


_COMMANDS = {
    "list": _list,
    "show": _show,
    "run": _run,
    "resume": _resume,
    "all": _all,
    "report": _report,
    "derive": _derive,
    "verify": _verify,
    "cite": _cite,
    "diff": _diff,
    "archive": _archive,
    "restore": _restore,
    "doctor": _doctor,
    "quickstart": _quickstart,
    "machines": _machines,
    "topology": _topology,
}

if __name__ == "__main__":
    sys.exit(main())
