"""t5repro's step of an encoder: python encoders_ours.py SYSTEM SIZE STEPS INSTRUCTION_SET."""

import sys

import encoders_shapes as encoders
import training_shapes as shared

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.engines.devices import prepare


def main(system: str, size: str, steps: int, instruction_set: str) -> None:
    """Train and print the time of a step."""
    devices = DevicesSettings(instruction_set=instruction_set)
    prepare(devices)
    import keras
    import tensorflow as tf

    from t5repro.train.fresh_model import fresh_model

    settings = PretrainStage(
        seed=0,
        vocab=VocabSettings(vocab_size=encoders.IDS - 228, extra_ids=100),
        model=encoders.size_of(system, size),
        devices=devices,
        pretrain=encoders.pretraining(system),
    )
    model = fresh_model(settings, seed=0)
    data = tf.data.Dataset.from_tensors(encoders.batch(system)).repeat()
    clock = shared.Clock()
    ticks = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: clock.tick())
    model.fit(data.take(steps + shared.WARM_UP_STEPS), epochs=1, callbacks=[ticks], verbose=0)
    clock.tell(encoders.ROWS * encoders.LENGTH, encoders.operations(system, size))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
