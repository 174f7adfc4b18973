"""The job of fine-tuning: what it reads, and that it writes weights, optimizer and history.

| below ``results/<run>/finetune/<node>/`` | content |
|---|---|
| `weights.safetensors` | all weights after the last step |
| `optimizer.safetensors` | slots of the trained weights, and the step |
| `history.csv` | loss, learning rate, target tokens |
| `step-<n>/weights.safetensors` | kept weights, with `finetune.keep_checkpoints: all` |
| `manifest.json` | received settings, inputs and outputs with hashes, counters |

Its inputs are below, as files; `plan/inputs.py` says which files of which nodes they are.
Speeds, samples and TensorBoard files are in ``logs/<run>/finetune/<node>/``; checkpoints of an
unfinished training are in ``work/``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from t5repro.artifacts import OPTIMIZER, WEIGHTS
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.jobs.fields import BY_FOLDER, IDS, RESOURCE, Read, Vocabulary
from t5repro.jobs.pretrain import Training


@dataclass(frozen=True)
class FinetuneJob(Training):
    """Fine-tune on the mixture of tasks.

    Attributes:
        settings: settings of the stage.
        weights: manifest of the training to start from; weights and optimizer are in its folder.
        examples: task -> training examples; the folder names the task.
        vocabulary: SentencePiece model.
        tokens: manifest of the ids, if the mixture contains the corpus.
        sample_examples: task -> validation examples to predict during the training, to `monitor`.
        sample_every_steps: interval of these predictions; steps.
        sample_count: examples of each task to predict.
    """

    settings: FinetuneStage
    weights: Annotated[Path, Read(listed=(WEIGHTS, OPTIMIZER))]
    examples: Annotated[Mapping[str, Path], BY_FOLDER]
    vocabulary: Vocabulary
    tokens: Annotated[Path | None, Read(listed=IDS)] = None
    sample_examples: Annotated[Mapping[str, Path], BY_FOLDER] = field(default_factory=dict)
    sample_every_steps: Annotated[int, RESOURCE] = 0
    sample_count: Annotated[int, RESOURCE] = 0
