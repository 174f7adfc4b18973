"""What a raw file touches."""

from pathlib import Path

from made_graphs import RESULT

from t5repro.lineage.graph import load_graph
from t5repro.lineage.impact import impact
from t5repro.lineage.store import Folder


def test_a_shard_touches_its_own_pages_and_all_that_follows(run: Path) -> None:
    graph = load_graph(Folder(run))
    result = impact(graph, [graph.find("data/crawl/1.wet")], state="here")
    assert [job.name for job in result.jobs] == [
        "r/c4_clean/a/1",
        "r/c4/a",
        "r/finetune/a",
        "r/evaluate_predict/a",
        "r/evaluate_score/a",
    ]
    assert list(result.outputs) == ["cleaned pages", "corpus", "weights", "predictions", "scores"]
    assert len(result.outputs["predictions"]) == 3


def test_a_task_file_does_not_touch_the_corpus(run: Path) -> None:
    graph = load_graph(Folder(run))
    result = impact(graph, [graph.find("data/tasks/two.tsv")], state="here")
    assert "corpus" not in result.outputs
    assert [artifact.path for artifact in result.outputs["examples"]] == [
        f"{RESULT}/tasks/two/train.jsonl",
        f"{RESULT}/tasks/two/manifest.json",
    ]
