"""Audit questions about file contents: pages, training steps, impact, withdrawal.

`lineage` only knows files, hashes and jobs. This package combines it with the packages that read
their content: `c4` for pages of the crawl, `inputs` for the rows of a training step.

| module | question |
|---|---|
| `find` | which raw source does the auditor mean: a file, a URL or a domain? |
| `pages` | which crawl record became which corpus row? |
| `token_documents` | which document of the ids is a corpus row, and which row is a document? |
| `page_trace` | what happened to this URL, up to the training steps that saw it? |
| `steps` | which pre-training steps saw this document? |
| `score_pages` | which pages are behind this score, by domain and step? |
| `text_trace` | which pages have the longest passages of this text, and what was made from them? |
| `contamination` | which evaluated rows are in the corpus, and what are the scores without them? |
| `text_index` | where is the index of a corpus by its text, and is it of these ids? |
| `suffix_array` | where does a sequence of ids occur? |
| `suffix_build` | how is it built in bounded memory, so that a stopped build continues? |
| `impact` | which artifacts, scores too, depend on this source, now and at earlier revisions? |
| `withdraw` | which artifacts and scores does the withdrawal of a source take away? |
| `removal` | how is it carried out, so that a stopped one can be completed? |
| `withdrawal` | the answer of `withdraw`, which `removal` takes |

Every answer has `to_json` and `to_text`; `cli/audit.py` prints it. To add a question, add a module
that returns such an answer and a command there.
"""
