"""Notes on valid settings that do not do what their names suggest; planning and a run say them."""

from collections.abc import Iterator

from t5repro.config.experiments import settings_by_name
from t5repro.config.schema import Settings


def notes(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each experiment that masks fewer pieces than its share says.

    `pretrain.targets_length` limits the masked pieces of a row. ALBERT's released data have such a
    limit, 20 pieces in rows of 512.
    """
    settings_of = settings_by_name(settings)
    for experiment in settings.experiments:
        training = settings_of(experiment.name).pretrain
        selected = round(training.noise_density * training.inputs_length)
        masked = training.targets_length
        if training.objective == "masked_lm" and masked < selected:
            yield (
                f"experiment {experiment.name!r}: pretrain.targets_length {masked} limits the "
                f"masked pieces of a row of {training.inputs_length} to {masked} of the {selected} "
                f"that pretrain.noise_density {training.noise_density:g} selects, a share of "
                f"{masked / training.inputs_length:.1%}"
            )
