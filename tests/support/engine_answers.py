"""Answers of freshly initialised networks on the CPU, as a program.

python engine_answers.py ENGINE FILE.npz; python engine_answers.py jax FILE.npz 2 4
"""

import sys
from typing import Any

import numpy as np
import tiny_training as tiny

from t5repro.config.sections.devices import DevicesSettings, MeshSettings
from t5repro.engines.devices import prepare

STEPS = 10


def main(engine: Any, path: str, data: str = "1", model: str = "1") -> None:
    """Write the ids of greedy and beam decoding, and logits of labels."""
    mesh = MeshSettings(data=int(data), model=int(model))
    prepare(DevicesSettings(engine=engine, mesh=mesh))
    from t5repro.model.beam import beam_search
    from t5repro.model.decode import call_compiled, greedy
    from t5repro.model.encoder import Encoder
    from t5repro.model.transformer import Decoder, EncoderDecoder

    (features, _), (labelled, _) = tiny.batch(0), tiny.masked_batch(0)
    ids = features["encoder_ids"]
    shape: dict[str, Any] = {"embedding_rows": 128, "dropout_rate": 0.0}
    t5, other = (EncoderDecoder(tiny.SHAPE, seed=seed, **shape) for seed in (0, 1))
    joined = tiny.SHAPE.model_copy(update={"architecture": "prefix_language_model"})
    decoder = Decoder(joined, seed=0, **shape)
    encoder = Encoder(tiny.ENCODER, seed=0, labels=3, **shape)
    names = ("encoder_ids", "encoder_segments", "encoder_types")

    def logits_of(*arrays: Any) -> Any:
        return encoder.answer_logits(dict(zip(names, arrays, strict=True)))

    np.savez(
        path,
        greedy=greedy(t5, ids, max_decode_length=STEPS),
        greedy_of_one_row=greedy(t5, ids[:1], max_decode_length=STEPS),
        greedy_of_three_rows=greedy(t5, ids[:3], max_decode_length=STEPS),
        greedy_of_two=greedy(t5, ids, max_decode_length=STEPS, ensemble=[other]),
        greedy_of_a_decoder=greedy(decoder, ids, max_decode_length=STEPS),
        beam=beam_search(t5, ids, max_decode_length=STEPS, width=3, length_penalty=0.6),
        logits=call_compiled([encoder], "logits", logits_of, *(labelled[name] for name in names)),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
