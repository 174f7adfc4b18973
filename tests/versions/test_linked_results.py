"""Results behind a link out of the checkout, which DVC cannot version."""

from pathlib import Path

import pytest

from t5repro.versions.seal import linked_results


@pytest.mark.parametrize("folder", ["results", "results/demo"])
def test_results_behind_a_link_out_of_the_checkout_are_named_with_the_target(
    folder: str, tmp_path: Path
) -> None:
    checkout, disk = tmp_path / "checkout", tmp_path / "disk"
    (checkout / folder).parent.mkdir(parents=True)
    disk.mkdir()
    (checkout / folder).symlink_to(disk)
    message = linked_results("demo", checkout)
    assert message.startswith(f"{checkout}/{folder} is a link to {disk}, outside of the checkout")
    assert "mount --bind" in message
    assert (linked_results("other", checkout) == "") == (folder == "results/demo")


def test_folders_absent_results_and_links_that_stay_inside_are_versioned(tmp_path: Path) -> None:
    assert linked_results("demo", tmp_path) == ""
    (tmp_path / "elsewhere/demo").mkdir(parents=True)
    (tmp_path / "results").symlink_to("elsewhere")
    assert linked_results("demo", tmp_path) == ""
