# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The engine on a local Ray cluster of two nodes."""
import os
import threading
import time

import corpus_job
import pytest
from corpus_job import check_results, outputs, run, write_list

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(monkeypatch):
    """Cluster of a head without CPUs, and of two nodes."""
    ray = pytest.importorskip('ray', reason='Ray is missing')
    pytest.importorskip('ray.data', reason='Ray is missing')
    from ray.cluster_utils import Cluster
    # Workers import the job of this test.
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join(
        [os.path.dirname(corpus_job.__file__), os.environ['PYTHONPATH']]))
    memory = 100 * 2**20
    cluster = Cluster(initialize_head=True, head_node_args=dict(
        num_cpus=0, object_store_memory=memory, include_dashboard=False))
    cluster.nodes = [cluster.add_node(num_cpus=2, object_store_memory=memory)
                     for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_killed_node_loses_and_repeats_nothing(cluster, tmp_path):
    names = [f'v{i}' for i in range(10_000)]
    listed = write_list(tmp_path, names)
    run(tmp_path / 'quiet/out', [listed], shard_size=100)
    out = tmp_path / 'killed/out'

    def kill():
        while len([*out.glob('parts/*.parquet')]) < 20:
            time.sleep(0.05)
        cluster.remove_node(cluster.nodes.pop(), allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert run(out, [listed], shard_size=100, pause=0.002, processes=4,
               engine='ray') == {}
    killer.join()
    check_results(out, names)
    assert outputs(out) == outputs(tmp_path / 'quiet/out')
