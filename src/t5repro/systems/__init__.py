"""Systems as values: network, rows, loss and answers of each family, a folder per family.

Three tables name the parts by the family of the settings (`config/families.py`): `pretraining.py`,
`finetuning.py` and `answering.py`, one for each stage, so that the code of a stage contains no
other stage. To add a system: a folder with its parts, a row in each table, and a row of
`ARCHITECTURES` in `config/families.py`.
"""
