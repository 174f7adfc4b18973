"""Uploads a published folder to the Hugging Face Hub as one commit."""

import re
from pathlib import Path

from t5repro.config.hub_address import HubOrigin
from t5repro.data.hub_access import LOG_IN, hub_errors, hub_library
from t5repro.errors import SettingsError

# As the library checks it, which says so only after the work.
REPOSITORY = re.compile(r"(?=.{3,96}$)\w[\w.-]*/\w[\w.-]*(?<![.-])")


def check_upload(repository: str) -> None:
    """Refuse an upload that cannot succeed, before the folder is written.

    Raises:
        SettingsError: the name has another form, or there is no token that the Hub knows.
        TransferError: the Hub does not answer.
    """
    if not REPOSITORY.fullmatch(repository) or re.search(r"--|\.\.|\.git$", repository):
        raise SettingsError(
            f"--upload is {repository!r}; it must be OWNER/NAME, such as user/t5_demo, of letters, "
            "digits, `-`, `_` and `.`"
        )
    library = hub_library()
    if not library.get_token():
        raise SettingsError(f"--upload {repository} needs a token of the Hub: {LOG_IN}")
    with hub_errors(f"--upload {repository}", _page(repository), refusal=SettingsError):
        library.HfApi().whoami()


def upload(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload a folder; return the address of the commit.

    Args:
        folder: written by `publish`.
        repository: `OWNER/NAME`; it is made if it does not exist.
        private: whether a new repository is private; an existing one stays as it is.

    Raises:
        SettingsError: the Hub refuses it.
        TransferError: the connection broke off.
    """
    api = hub_library().HfApi()
    name = f"the upload of {folder}, which is complete, to {repository}"
    with hub_errors(name, _page(repository), refusal=SettingsError):
        api.create_repo(repository, private=private or None, exist_ok=True)
        commit = api.upload_folder(
            folder_path=folder, repo_id=repository, commit_message=f"Upload {folder.name}"
        )
    return str(commit.commit_url)


def _page(repository: str) -> str:
    return HubOrigin("model", repository, "main", "").page
