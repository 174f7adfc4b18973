"""The string below a field of a section describes the setting, and is read only when needed."""

import subprocess
import sys

from t5repro.config.descriptions import descriptions
from t5repro.config.schema import Settings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.setting_names import describe, leaf_names


def test_a_setting_is_described_by_the_string_below_its_field() -> None:
    assert describe("model.d_ff") == "Width inside the feed-forward layers; features."
    assert describe("model.d_ff") == descriptions(ModelSettings)["d_ff"]


def test_the_fields_of_a_base_class_are_described_as_well() -> None:
    assert "steps" in descriptions(PretrainSettings)


def test_neither_a_section_nor_an_unknown_name_has_a_description() -> None:
    assert describe("model") == describe("model.no_such") == describe("no_such.d_ff") == ""


def test_every_setting_has_a_description() -> None:
    assert [name for name in leaf_names() if not describe(name)] == []


def test_the_settings_are_imported_without_reading_their_source() -> None:
    code = (
        "import linecache, sys, t5repro.cli.main, t5repro.config.load\n"
        "assert not [name for name in linecache.cache if 't5repro' in name]\n"
        "assert 'tqdm' not in sys.modules"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_schema_has_the_descriptions_and_the_settings_still_validate() -> None:
    from t5repro.config.descriptions import describe_sections

    describe_sections()
    schema = Settings.model_json_schema()
    described = schema["$defs"]["ModelSettings"]["properties"]["d_ff"]["description"]
    assert described == describe("model.d_ff")
    assert Settings() == Settings.model_validate(Settings().model_dump(mode="json"))
