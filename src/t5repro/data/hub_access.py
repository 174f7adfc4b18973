"""The Hugging Face Hub through its own library: a raw file, and errors with what to do.

The library knows the Hub's protocol, mirrors (`HF_ENDPOINT`), the token of the user (`HF_TOKEN`, or
the one that `hf auth login` stored) and large files. Its messages are not quoted: a server could
repeat the token in them.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from t5repro.config.hub_address import HubOrigin
from t5repro.data.https import check_bytes
from t5repro.data.transfer import AbsentError, TransferError, copy_path
from t5repro.errors import RawDataError, T5ReproError

LOG_IN = "set HF_TOKEN to a token of https://huggingface.co/settings/tokens, or run `hf auth login`"
DENIED = (401, 403)


def hub_library() -> Any:
    """Return the module `huggingface_hub`, without its progress bars and warnings."""
    import huggingface_hub.errors
    import huggingface_hub.utils

    huggingface_hub.utils.disable_progress_bars()
    huggingface_hub.utils.logging.set_verbosity_error()
    return huggingface_hub


def fetch_from_hub(address: str, origin: HubOrigin, folder: Path) -> Path:
    """Return the copy of a file of the Hub below `folder`; fetch it if it is not there.

    A transfer that breaks off is continued by the next call.

    Args:
        address: of the file, for messages and for the name of the copy.
        origin: the same, in parts.
        folder: of the downloads.

    Raises:
        AbsentError: there is no such file, or only for those who may read it.
        TransferError: the connection broke off.
        RawDataError: the data set is gated, or the Hub refuses the request.
    """
    path = copy_path(address, folder)
    if path.is_file():
        return path
    library = hub_library()
    names = {"repo_type": origin.kind, "revision": origin.revision}
    partial = path.with_name(f".partial-{path.name}")
    with hub_errors(address, origin.page):
        url = library.hf_hub_url(origin.repository, origin.file, **names)
        check_bytes(address, library.get_hf_file_metadata(url).size or 0)
        copy = library.hf_hub_download(origin.repository, origin.file, local_dir=partial, **names)
    os.replace(copy, path)
    shutil.rmtree(partial)
    return path


@contextlib.contextmanager
def hub_errors(
    name: str, page: str, *, refusal: type[T5ReproError] = RawDataError
) -> Iterator[None]:
    """Explain a refusal of the Hub, with a cure.

    Args:
        name: the requested data set, model or file.
        page: address of its data set or model for people.
        refusal: type of an error that repetition does not cure.

    Raises:
        AbsentError: it does not exist, or only for those who may read it.
        TransferError: there is no connection, or the server fails.
    """
    errors = hub_library().errors
    transport = errors.HfHubHTTPError.__bases__  # also of errors without an answer
    try:
        yield
    except errors.GatedRepoError as error:
        raise refusal(
            f"{name} is gated: its owner asks for consent. Accept the conditions on {page} with "
            f"your account, then {LOG_IN} and run again"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise AbsentError(
            f"{name}: {page} does not exist, or is private; correct the name, or {LOG_IN}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise AbsentError(f"{name} names a revision that {page} does not have") from error
    except errors.LocalEntryNotFoundError as error:
        raise TransferError(
            f"{name} is not fetched: no connection to {page}, or HF_HUB_OFFLINE is set; run again"
        ) from error
    except errors.EntryNotFoundError as error:
        raise AbsentError(f"{name} does not exist; {page}/tree/main lists the files") from error
    except (OSError, *transport) as error:
        raise _refused(name, error, refusal) from error


def _refused(name: str, error: Any, refusal: type[T5ReproError]) -> T5ReproError:
    """Return the error of an answer with a status, or of none."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is None:
        return TransferError(f"{name}: the Hub does not answer ({type(error).__name__}); run again")
    if status in DENIED:
        return refusal(
            f"{name} is refused (status {status}): the token is missing, wrong or may not do this; "
            f"{LOG_IN}"
        )
    if status >= 500 or status == 429:
        return TransferError(f"{name}: the Hub answers with status {status}; run again later")
    return refusal(f"{name} is refused by the Hub (status {status}); check the name")
