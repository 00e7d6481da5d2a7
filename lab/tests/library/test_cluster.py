"""A sweep handed to a Dask cluster gives the aggregate of a run without one."""

from pathlib import Path

import pandas as pd
import pytest

from onym_lab import experiment as files
from onym_lab import life

distributed = pytest.importorskip("distributed")
LIBRARY = Path(__file__).parents[2] / "experiments"
FILE = LIBRARY / "content" / "content-paper.yaml"


def aggregate(root: Path, dask: str | None) -> pd.DataFrame:
    options = life.Options(root, "bench", dask=dask, report=False)
    run = life.Life(files.load(FILE), options, life.Listener()).go()
    assert all(run.replicate(*one).is_done for one in run.plan["order"])
    return run.aggregate


def test_a_cluster_gives_the_same_aggregate(tmp_path: Path) -> None:
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    )
    with cluster:
        swept = aggregate(tmp_path / "cluster", cluster.scheduler_address)
    alone = aggregate(tmp_path / "alone", None)
    pd.testing.assert_frame_equal(swept, alone)
