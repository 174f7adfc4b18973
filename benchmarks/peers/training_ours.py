"""t5repro's training step: python training_ours.py SHAPE STEPS INSTRUCTION_SET."""

import sys

import training_shapes as shared

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.training import LearningRate
from t5repro.config.sections.vocab import VocabSettings
from t5repro.engines.devices import prepare


def main(name: str, steps: int, instruction_set: str) -> None:
    """Train and print the time of a step."""
    shape = shared.SHAPES[name]
    devices = DevicesSettings(instruction_set=instruction_set)
    prepare(devices)
    import keras
    import numpy as np
    import tensorflow as tf

    from t5repro.train.fresh_model import fresh_model

    settings = PretrainStage(
        seed=0,
        vocab=VocabSettings(vocab_size=shape.ids - 100, extra_ids=100),
        model=shared.settings(shape, ModelSettings),
        devices=devices,
        pretrain=PretrainSettings(
            batch_size=shape.rows,
            inputs_length=shape.inputs,
            targets_length=shape.targets,
            dropout_rate=shared.DROPOUT,
            learning_rate=LearningRate(schedule="constant", factor=shared.RATE),
        ),
    )
    model = fresh_model(settings, seed=0)
    ids = shared.batch(shape)
    features = {
        "encoder_ids": ids["inputs"],
        "encoder_segments": np.ones_like(ids["inputs"]),
        "decoder_ids": ids["shifted"],
        "decoder_segments": np.ones_like(ids["targets"]),
    }
    data = tf.data.Dataset.from_tensors((features, ids["targets"])).repeat()
    clock = shared.Clock()
    ticks = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: clock.tick())
    count = steps + shared.WARM_UP_STEPS
    model.fit(data.take(count), epochs=1, callbacks=[ticks], verbose=0)
    clock.tell(shared.tokens(shape), shared.flops(shape))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
