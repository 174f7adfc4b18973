"""Systems as values: network, rows, loss and answers of each family, a folder per family.

All places of a system:

| place | content |
|---|---|
| `config/families.py` | `ARCHITECTURES`: its stacks, rows and kind of answers, for the settings |
| `networks.py` | constructor of its network, the same for all stages |
| `pretraining.py` | heads, loss and rows of its pre-training |
| `finetuning.py` | heads, loss and rows of its fine-tuning |
| `answering.py` | how it answers the examples of tasks |
| a folder here, such as `encoder/` | the parts that these tables name |
| `config/presets/systems.py`, `sizes.py` | its published training and shapes, as presets |
| `model/weight_names.py` | only to exchange it: names of its weights in other libraries |
| `report/system_tables.py` | only to compare it: its published scores |

The three tables of stages are separate, so that the code of a stage does not contain another stage.
To add a family, fill the first six places. A system of an existing family, as RoBERTa is an encoder
like BERT, is a preset only.
"""
