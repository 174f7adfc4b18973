"""Systems as values: network, rows, loss and answers of each family, a folder per family.

Four tables name the parts by the family of the settings (`config/families.py`). `networks.py` has
the constructors, the same for all stages. `pretraining.py`, `finetuning.py` and `answering.py` are
separate, so that the code of a stage does not contain another stage. To add a system: a folder with
its parts, a row in each table, and a row of `ARCHITECTURES` in `config/families.py`.
"""
