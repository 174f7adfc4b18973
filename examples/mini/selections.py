"""The lists that choose addresses: news domains as RealNews has them, addresses as OpenWebText.

The real lists are raw files of their own; these have their layouts and name pages of this crawl.
"""

import hashlib
import json
from collections.abc import Iterable

DOMAINS_FILE = "lists/realnews_domains.json"
URLS_FILE = "lists/openwebtext_urls.txt"

# domain -> its allowed subdomains; anything but a list allows all.
NEWS_DOMAINS = {
    "harwick-post.example": ["", "sport"],
    "the-daily-kettle.example": True,
    "dorfblatt.example": [""],
    "gazette-valbonne.example": [""],
    "ziarul-vaii.example": [""],
    "old-mill-notes.example": ["news"],  # whose pages are all on the bare domain: none is allowed
    "no-such-site.example": [""],
}
LISTED_SHARE = 3  # one address of so many is listed
FOREIGN_URLS = ("https://elsewhere.example/story", "http://www.nowhere.example/a?utm_source=x")


def selection_files(urls: Iterable[str]) -> dict[str, str]:
    """Return path -> text of both lists.

    Args:
        urls: addresses of all pages of the crawl.
    """
    listed = {
        url
        for url in urls
        if int(hashlib.md5(url.encode(), usedforsecurity=False).hexdigest(), 16) % LISTED_SHARE == 0
    }
    # As another crawl met them: with the other scheme, a campaign or a slash at the end.
    written = [
        (url.replace("https://", "http://"), url + "?utm_campaign=list", url + "/")[at % 3]
        for at, url in enumerate(sorted(listed))
    ]
    return {
        DOMAINS_FILE: json.dumps(NEWS_DOMAINS, indent=2, sort_keys=True) + "\n",
        URLS_FILE: "".join(f"{url}\n" for url in sorted([*written, *FOREIGN_URLS])),
    }
