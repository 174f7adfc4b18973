"""t5repro's training step: python training_ours.py SHAPE STEPS INSTRUCTION_SET ENGINE."""

import sys

import training_shapes as shared

from t5repro.config.sections.devices import DevicesSettings, EngineName
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.training import LearningRate
from t5repro.config.sections.vocab import VocabSettings
from t5repro.engines.devices import prepare


def main(name: str, steps: int, instruction_set: str, engine_name: EngineName) -> None:
    """Train and print the time of a step."""
    shape = shared.SHAPES[name]
    devices = DevicesSettings(engine=engine_name, instruction_set=instruction_set)
    prepare(devices)
    import keras
    import numpy as np

    from t5repro.engines.engine import engine
    from t5repro.inputs.batches import Batches
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
    clock = shared.Clock()
    # The loss is waited for: JAX returns from a step before it is computed.
    ticks = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: (float(logs["loss"]), clock.tick())
    )
    count = steps + shared.WARM_UP_STEPS
    batches = Batches(lambda step: (features, ids["targets"]), 0, count)
    fed = engine().feed(batches)
    model.fit(fed, epochs=1, steps_per_epoch=count, callbacks=[ticks], verbose=0)
    clock.tell(shared.tokens(shape), shared.flops(shape))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
