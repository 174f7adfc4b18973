"""C4: from WET files to a cleaned, deduplicated corpus by language (paper section 2.2).

The modules are the steps, in the order of `build`: `wet` reads pages, `clean` applies the rules
for one page, `sentences` counts and splits sentences, `dedup` decides which pages and which text
are repeats, `language` names a page's language, `badwords` looks for listed words. All but `wet`
and `build` are pure functions of their arguments, so another engine can call them on its batches.
"""
