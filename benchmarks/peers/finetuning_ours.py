"""t5repro's fine-tuning, packed: python finetuning_ours.py SHAPE STEPS FOLDER INSTRUCTION_SET."""

import sys
from pathlib import Path

import finetuning_shared as shared
import training_shapes as shapes

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import LearningRate
from t5repro.config.sections.vocab import VocabSettings
from t5repro.engines.devices import prepare

ROWS = 8


def main(name: str, steps: int, folder: Path, instruction_set: str) -> None:
    """Fine-tune and print the time of an example."""
    shape = shapes.SHAPES[name]
    devices = DevicesSettings(instruction_set=instruction_set)
    prepare(devices)
    import keras

    from t5repro.engines.engine import engine
    from t5repro.inputs.finetuning import load_task_inputs
    from t5repro.train.fresh_model import fresh_model

    vocab = VocabSettings(vocab_size=shared.PIECES, extra_ids=shared.EXTRA_IDS)
    training = FinetuneSettings(
        batch_size=ROWS,
        inputs_length=shared.MAX_LENGTHS[0],
        targets_length=shared.MAX_LENGTHS[1],
        dropout_rate=shapes.DROPOUT,
        learning_rate=LearningRate(schedule="constant", factor=shapes.RATE),
    )
    inputs = load_task_inputs(
        training,
        examples=shared.files_of(folder),
        vocabulary=folder / shared.VOCABULARY,
        vocab=vocab,
        seed=0,
    )
    settings = FinetuneStage(
        seed=0,
        vocab=vocab,
        model=shapes.settings(shape, ModelSettings),
        tasks={"names": sorted(shared.files_of(folder))},
        finetune=training,
        devices=devices,
    )
    model = fresh_model(settings, seed=0)
    clock = shared.Clock(shapes.WARM_UP_STEPS)
    ticks = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: clock.tick())
    count = steps + shapes.WARM_UP_STEPS
    batches = engine().feed(inputs.batches(first_step=0, steps=count))
    model.fit(batches, steps_per_epoch=count, shuffle=False, callbacks=[ticks], verbose=0)
    timed = inputs.rows(first_step=shapes.WARM_UP_STEPS, steps=steps).examples
    clock.tell(
        examples=len(timed),
        filled=int(inputs.mixture.lengths[timed, 0].sum()),
        positions=steps * ROWS * shared.MAX_LENGTHS[0],
        steps=steps,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
