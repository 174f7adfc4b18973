"""What an auditor asks, where more than the lineage is needed: pages, steps, withdrawals.

`lineage` knows files and jobs and nothing of what is in them. Here it meets the parts that do:
`c4` for pages of the crawl, `inputs` for what a training step saw.
"""
