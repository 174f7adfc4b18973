"""The job of each stage."""

from typing import Any

from t5repro.jobs.contamination import ContaminationJob
from t5repro.jobs.corpus import (
    CleanJob,
    CorpusJob,
    DataJob,
    DedupJob,
    FetchJob,
    OwnTextJob,
    PunktJob,
    SentencesJob,
    TokensJob,
    VocabJob,
    VocabSampleJob,
)
from t5repro.jobs.finetune import FinetuneJob
from t5repro.jobs.predict import PredictJob
from t5repro.jobs.pretrain import PretrainJob
from t5repro.jobs.report import ReportJob
from t5repro.jobs.score import ScoreJob
from t5repro.jobs.tasks import TasksJob

JOBS: dict[str, type[Any]] = {
    "data_fetch": FetchJob,
    "data": DataJob,
    "c4_punkt": PunktJob,
    "c4_clean": CleanJob,
    "corpus": OwnTextJob,
    "c4_dedup": DedupJob,
    "c4": CorpusJob,
    "vocab_sample": VocabSampleJob,
    "vocab": VocabJob,
    "tokens": TokensJob,
    "sentences": SentencesJob,
    "pretrain": PretrainJob,
    "tasks": TasksJob,
    "finetune": FinetuneJob,
    "evaluate_predict": PredictJob,
    "evaluate_score": ScoreJob,
    "contamination": ContaminationJob,
    "report": ReportJob,
}
