"""Hugging Face's `generate` with its key/value cache."""

import clock
import torch
from transformers import T5Config, T5ForConditionalGeneration


def main() -> None:
    """Measure one search."""
    task = clock.task()
    torch.set_num_threads(task["threads"])
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=task["ids"],
            num_layers=task["layers"],
            decoder_start_token_id=0,
            **{name: task[name] for name in ("d_model", "d_ff", "num_heads", "d_kv")},
        )
    ).eval()
    ids = torch.randint(2, task["ids"], (task["rows"], task["inputs"]))

    def call() -> torch.Tensor:
        with torch.inference_mode():
            return model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                num_beams=task["width"],
                max_new_tokens=task["steps"],
                min_new_tokens=task["steps"],
            )

    clock.measure(call, task["calls"])


if __name__ == "__main__":
    main()
