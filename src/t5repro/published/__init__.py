"""Tables of scores that papers print, as data: of T5, and of the systems before it.

`tables` reads `paper_tables.json` and `system_tables.json` and knows the names of their rows. To
add a table or a row, add it to one of the two files; nothing else registers it.
"""
