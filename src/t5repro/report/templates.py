"""Templates of the pages: all share one style sheet, and everything in them is escaped."""

import importlib.resources
from typing import Any

import jinja2
from markupsafe import Markup

from t5repro.report.charts import style_class
from t5repro.report.content_security import content_security_policy


def render(template: str, *, script: str = "", style_attributes: bool = False, **view: Any) -> str:
    """Return a page; everything but the style sheet, the script and the charts is escaped.

    Args:
        template: file name of the template.
        script: file name of its only script; empty for a page without one.
        style_attributes: whether elements of the page have ``style`` attributes.
        view: variables of the template.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["style_class"] = style_class
    css = _text("report.css")
    code = _text(script) if script else ""
    policy = content_security_policy(css, script=code, style_attributes=style_attributes)
    return environment.get_template(template).render(
        css=Markup(css),  # noqa: S704
        script=Markup(code),  # noqa: S704
        policy=policy,
        **view,
    )


def _text(name: str) -> str:
    return importlib.resources.files("t5repro.report").joinpath(name).read_text(encoding="utf-8")
