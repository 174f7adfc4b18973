"""The page `docs/presets.md`: what each preset sets, its source, and the order of settings."""

import json
from collections.abc import Iterator

from t5repro.config.layers import LAYERS
from t5repro.config.presets.preset import Preset
from t5repro.config.presets.table import GROUPS, LABEL
from t5repro.config.tree import leaves_of

HEAD = """# Presets

Generated from `src/t5repro/config/presets`; `t5repro config presets` prints this page. A preset is
a named fragment of settings. A run file names presets in `use`; so may the `change` of an
experiment, and a group of `finetune.groups` (there only `mixtures`):

```yaml
use: [cleaning/tfds]
tasks: {names: [glue_sst2], segments: true}
experiments:
  - name: t5
  - name: bert
    change: {use: [systems/bert, sizes/bert_tiny]}
```

Of each group at most one preset is in force. A preset of an experiment replaces the one of the run
without a trace. To add a preset, add an entry to the dictionary of its group. A fragment of your
own is a run file that others `include`.

## Which value is used

The baseline ([settings](settings.md)) is changed by the run file with the command line, then by an
experiment, then by a group of its tasks. Each of them sets, later ones over earlier ones:

"""


def presets_page() -> str:
    """Return the text of the page."""
    order = [f"{number}. {layer.title}" for number, layer in enumerate(LAYERS, start=1)]
    return HEAD + "\n".join([*order, *_groups()]) + "\n"


def _groups() -> Iterator[str]:
    for group, content in GROUPS.items():
        yield from ("", f"## `{group}/`: {content.title}", "", "| preset | sets | source |")
        yield "|---|---|---|"
        for name, preset in content.presets.items():
            yield f"| `{group}/{name}` | {_effect(preset)} | {preset.source} |"


def _effect(preset: Preset) -> str:
    values = ", ".join(
        f"`{'.'.join(map(str, path))}`: {json.dumps(value)}"
        for path, value in leaves_of(preset.values)
        if path != LABEL
    )
    uses = "".join(f"; uses `{name}`" for name in preset.uses)
    return values + uses
