"""An S3-protocol server of the same machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "t5repro"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@contextmanager
def serve_bucket() -> Iterator[str]:
    """Yield the address of a server with an empty bucket; `CREDENTIALS` open it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    address = f"http://127.0.0.1:{port}"
    bucket = open_bucket(address)
    bucket.create()
    bucket.objects.delete()  # moto keeps what an earlier server of this process got
    try:
        yield address
    finally:
        server.stop()


def open_bucket(address: str) -> Any:
    """Return the bucket of the server at `address`."""
    store = boto3.resource(
        "s3",
        endpoint_url=address,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
    )
    return store.Bucket(BUCKET)
