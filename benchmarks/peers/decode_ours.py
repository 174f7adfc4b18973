"""This project's decoding."""

import clock
import numpy as np

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.engines.devices import prepare


def main() -> None:
    """Measure one search."""
    task = clock.task()
    prepare(
        DevicesSettings(intra_op_threads=task["threads"], instruction_set=task["instruction_set"])
    )
    from t5repro.model.beam import beam_search
    from t5repro.model.decode import greedy
    from t5repro.model.transformer import EncoderDecoder
    from t5repro.vocab.special_ids import EOS_ID

    model = EncoderDecoder(
        ModelSettings(
            num_encoder_layers=task["layers"],
            num_decoder_layers=task["layers"],
            **{name: task[name] for name in ("d_model", "d_ff", "num_heads", "d_kv")},
        ),
        embedding_rows=task["ids"],
        dropout_rate=0.0,
        seed=0,
    )
    logits = model.logits
    never = np.where(np.arange(task["ids"]) == EOS_ID, np.float32(-1e9), np.float32(0))
    model.logits = lambda *arrays: logits(*arrays) + never
    ids = np.random.default_rng(0).integers(2, task["ids"], (task["rows"], task["inputs"]))
    ids = ids.astype(np.int32)

    def call() -> np.ndarray:
        if task["width"] == 1:
            return greedy(model, ids, max_decode_length=task["steps"])
        return beam_search(
            model, ids, max_decode_length=task["steps"], width=task["width"], length_penalty=0.6
        )

    clock.measure(call, task["calls"])


if __name__ == "__main__":
    main()
