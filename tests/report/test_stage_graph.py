"""The picture of the stages: boxes and connections, for jobs of one run or of two."""

import hashlib
import re
from collections.abc import Sequence

from t5repro.lineage.graph import Artifact, Graph, Job
from t5repro.report.stage_graph import ROW_HEIGHT, stage_graph, state_of_jobs


def artifact(path: str) -> Artifact:
    return Artifact(path, hashlib.sha256(path.encode()).hexdigest(), 3)


def job(name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Job:
    return Job(
        name=name,
        rule=name.split("/")[1],
        manifest=f"results/{name}/manifest.json",
        settings={},
        inputs=tuple(map(artifact, inputs)),
        outputs=tuple(map(artifact, outputs)),
        counters={},
    )


def picture(jobs: Sequence[Job]) -> tuple[dict[str, int], int]:
    """Return rule -> its row in the picture, from 0, and the number of connections."""
    graph = Graph(list(jobs))
    svg = str(stage_graph(graph, state_of_jobs(graph, {})))
    boxes = re.findall(r'href="#stage:(\w+)".*?<rect x="\d+" y="(\d+)"', svg)
    return {rule: int(y) // ROW_HEIGHT for rule, y in boxes}, svg.count("<path")


def test_a_stage_is_one_row_below_its_lowest_input() -> None:
    jobs = [
        job("r/c4/a", [], ["corpus"]),
        job("r/vocab/a", ["corpus"], ["vocab"]),
        job("r/tokens/a", ["corpus", "vocab"], ["ids"]),
    ]
    assert picture(jobs) == ({"c4": 0, "vocab": 1, "tokens": 2}, 3)


def test_a_run_may_start_from_the_fine_tuned_weights_of_another() -> None:
    jobs = [
        job("demo/pretrain/a", [], ["demo/pretrained"]),
        job("demo/finetune/a", ["demo/pretrained"], ["demo/finetuned"]),
        job("mine/pretrain/a", ["demo/finetuned"], ["mine/pretrained"]),
        job("mine/finetune/a", ["mine/pretrained"], ["mine/finetuned"]),
    ]
    # The stages of both runs share boxes; a connection upwards would cross them.
    assert picture(jobs) == ({"pretrain": 0, "finetune": 1}, 1)


def test_an_experiment_may_start_from_a_published_checkpoint_and_another_pretrain() -> None:
    jobs = [
        job("r/data/a", [], ["checkpoint", "crawl"]),
        job("r/c4/a", ["crawl"], ["corpus"]),
        job("r/tokens/a", ["corpus"], ["ids"]),
        job("r/pretrain/published", ["checkpoint"], ["published"]),
        job("r/pretrain/baseline", ["ids"], ["pretrained"]),
        job("r/finetune/a", ["published", "pretrained"], ["finetuned"]),
    ]
    rows, connections = picture(jobs)
    assert rows == {"data": 0, "c4": 1, "tokens": 2, "pretrain": 3, "finetune": 4}
    assert connections == 5


def test_a_rule_without_a_row_in_the_table_of_stages_comes_last() -> None:
    jobs = [job("r/new_rule/a", [], ["x"]), job("r/c4/a", ["x"], ["corpus"])]
    assert picture(jobs) == ({"c4": 0, "new_rule": 0}, 0)
