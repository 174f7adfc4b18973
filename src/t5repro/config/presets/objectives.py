"""Objectives of later work that several settings make up together (`docs/recent_recipes.md`)."""

from typing import Any

from t5repro.config.presets.preset import Preset


def _denoisers() -> list[dict[str, Any]]:
    """Return the R, S and X denoisers of UL2, of equal weight."""
    return [
        {"noise_density": 0.15, "mean_noise_span_length": 3, "mode_token": "NLU"},
        {"noise_density": 0.15, "mean_noise_span_length": 8, "mode_token": "NLU"},
        {"objective": "prefix_lm", "noise_density": 0.25, "mode_token": "S2S"},
        {"noise_density": 0.5, "mean_noise_span_length": 3, "mode_token": "NLG"},
        {"noise_density": 0.5, "mean_noise_span_length": 8, "mode_token": "NLG"},
        {"noise_density": 0.15, "mean_noise_span_length": 64, "mode_token": "NLG"},
        {"noise_density": 0.5, "mean_noise_span_length": 64, "mode_token": "NLG"},
    ]


PRESETS = {
    "ul2": Preset(
        {"pretrain": {"objective": "mixture_of_denoisers", "denoisers": _denoisers()}},
        "Tay et al., 2022 (UL2), table 1 (D-047)",
    )
}
