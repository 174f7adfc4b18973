"""keras-hub's T5 under fit: python training_keras_hub.py SHAPE STEPS."""

import os
import sys

import training_shapes as shared

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main(name: str, steps: int) -> None:
    """Train and print the time of a step."""
    import keras
    import keras_hub
    import numpy as np
    import tensorflow as tf

    shape = shared.SHAPES[name]
    backbone = keras_hub.models.T5Backbone(
        vocabulary_size=shape.ids,
        num_layers=shape.layers,
        num_heads=shape.num_heads,
        hidden_dim=shape.d_model,
        intermediate_dim=shape.d_ff,
        key_value_dim=64,
        dropout=shared.DROPOUT,
        activation="relu",
        use_gated_activation=False,
        tie_embedding_weights=True,
    )
    decoded = backbone.output["decoder_sequence_output"] * shape.d_model**-0.5
    model = keras.Model(backbone.input, backbone.token_embedding(decoded, reverse=True))
    model.compile(
        optimizer=keras.optimizers.Adafactor(learning_rate=shared.RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    ids = shared.batch(shape)
    features = {
        "encoder_token_ids": ids["inputs"],
        "encoder_padding_mask": np.ones_like(ids["inputs"]),
        "decoder_token_ids": ids["shifted"],
        "decoder_padding_mask": np.ones_like(ids["targets"]),
    }
    data = tf.data.Dataset.from_tensors((features, ids["targets"])).repeat()
    clock = shared.Clock()
    ticks = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: clock.tick())
    count = steps + shared.WARM_UP_STEPS
    model.fit(data.take(count), epochs=1, callbacks=[ticks], verbose=0)
    clock.tell(shared.tokens(shape), shared.flops(shape))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
