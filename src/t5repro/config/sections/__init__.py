"""Settings by section: one module per section of a run file, with the stages that read it.

The job of a stage receives exactly the fields of its ``…Stage`` class. A field that several stages
read is declared once, in a class that the section and these stages inherit. The string below a
field documents it; no stage runs it.
"""
