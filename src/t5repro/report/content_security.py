"""The Content-Security-Policy of the pages: no network, no script, only their own style sheet.

The texts of both pages are escaped; the policy is the second barrier should one not be.
"""

import base64
import hashlib


def content_security_policy(style: str, *, style_attributes: bool = False) -> str:
    """Return the policy of a page.

    Args:
        style: content of its only ``<style>`` element, exactly.
        style_attributes: whether its elements have ``style`` attributes. They cannot be allowed by
            hash in all browsers, and cannot load anything under this policy.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    sources = f"style-src 'sha256-{digest}'"
    if style_attributes:
        sources = f"style-src 'unsafe-inline'; style-src-elem 'sha256-{digest}'"
        sources += "; style-src-attr 'unsafe-inline'"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
