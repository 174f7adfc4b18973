"""Settings by section: one module per section of a run file, with the stages that read it.

The jobs of a stage receive the fields of its ``…Stage`` class. A field that several stages read is
declared once, in a class that the section and these stages inherit. The string below a field is its
documentation: it appears in error messages, `docs/settings.md` and `configs/schema.json`.
"""
