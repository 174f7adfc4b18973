"""keras-hub's `generate`, compiled as it comes."""

import os

import clock
import numpy as np

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def main() -> None:
    """Measure one search."""
    task = clock.task()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(task["threads"])
    import keras_hub

    backbone = keras_hub.models.T5Backbone(
        vocabulary_size=task["ids"],
        num_layers=task["layers"],
        num_heads=task["num_heads"],
        hidden_dim=task["d_model"],
        intermediate_dim=task["d_ff"],
        key_value_dim=task["d_kv"],
        use_gated_activation=False,
    )
    model = keras_hub.models.T5Seq2SeqLM(backbone)
    sampler = "greedy" if task["width"] == 1 else keras_hub.samplers.BeamSampler(task["width"])
    model.compile(sampler=sampler)
    rows, steps = task["rows"], task["steps"] + 1  # the first is where decoding starts from
    written = np.zeros((rows, steps), np.int32)
    inputs = {
        "encoder_token_ids": np.random.default_rng(0).integers(
            2, task["ids"], (rows, task["inputs"])
        ),
        "encoder_padding_mask": np.ones((rows, task["inputs"]), np.int32),
        "decoder_token_ids": written,
        "decoder_padding_mask": np.arange(steps)[None].repeat(rows, axis=0) < 1,
    }
    # No stop ids: every row runs to the end.
    clock.measure(lambda: model.generate(inputs, stop_token_ids=None), task["calls"])


if __name__ == "__main__":
    main()
