"""Raw inputs: fetch them, check their hashes, and divide the crawl into jobs.

- `fetch` (rule `data_fetch`) copies or downloads raw files into `data.folder`;
- `check` (rule `data`) compares them with the SHA-256 of the run file;
- `crawl_lists` divides the WET files of a crawl among the jobs of `c4_clean` and draws the sample
  for `c4_punkt`;
- `fetch_plan` estimates what fetching a crawl takes;
- `transfer` reads https, S3 and Google Cloud Storage; `archives` extracts members of archives;
- `paths` resolves names below `data.folder`.
"""
