"""The Content-Security-Policy of the pages: no network, only their own style sheet and script.

The texts of all pages are escaped; the policy is the second barrier should one not be.
"""

import base64
import hashlib


def content_security_policy(style: str, *, script: str = "", style_attributes: bool = False) -> str:
    """Return the policy of a page.

    Args:
        style: content of its only ``<style>`` element, exactly.
        script: content of its only ``<script>`` element, exactly; empty to allow no script.
        style_attributes: whether its elements have ``style`` attributes. They cannot be allowed by
            hash in all browsers, and cannot load anything under this policy.
    """
    sources = f"style-src {_source(style)}"
    if style_attributes:
        sources = f"style-src 'unsafe-inline'; style-src-elem {_source(style)}"
        sources += "; style-src-attr 'unsafe-inline'"
    if script:
        sources += f"; script-src {_source(script)}"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def _source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
