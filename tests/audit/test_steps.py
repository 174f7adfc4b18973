"""Only documents with a number, of the training split, have training steps."""

from pathlib import Path

from made_crawl import IDS
from made_graphs import RESULT, manifest

from t5repro.audit.pages import TokenDocument
from t5repro.audit.steps import JobSteps, steps_that_saw
from t5repro.config.schema import Settings
from t5repro.config.stage_settings import stage_settings
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder


def test_a_job_without_steps_saw_nothing_and_other_jobs_are_not_asked(crawl: Path) -> None:
    settings = Settings.model_validate({"pretrain": {"steps": 0}})
    for node, ids in (("a", IDS), ("b", f"{RESULT}/tokens/other/train.ids")):
        (crawl / ids).parent.mkdir(parents=True, exist_ok=True)
        (crawl / ids).touch()
        manifest(
            crawl,
            f"{RESULT}/pretrain/{node}/manifest.json",
            rule="pretrain",
            inputs=[ids],
            settings=stage_settings(settings, "pretrain"),
        )
    graph = load_graph(Folder(crawl))
    documents = [
        TokenDocument(IDS, 1, "train", "r/tokens/a"),
        TokenDocument(IDS, None, "train", "r/tokens/a"),
        TokenDocument(IDS, 0, "validation", "r/tokens/a"),
    ]
    assert steps_that_saw(graph, crawl, documents) == [JobSteps("r/pretrain/a", 1, [])]
