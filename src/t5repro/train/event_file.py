"""A file that TensorBoard reads, written by TensorBoard's own writer, without TensorFlow."""

import sys
import time
import types
from typing import Any

import keras

WITHOUT_TENSORFLOW = "tensorboard.compat.notf"  # TensorBoard looks for this module


class EventFile:
    """Numbers and texts of a training, by step.

    Args:
        folder: receives the file; a path or an address of Cloud Storage.
    """

    def __init__(self, folder: str) -> None:
        if keras.backend.backend() != "tensorflow":
            sys.modules.setdefault(WITHOUT_TENSORFLOW, types.ModuleType(WITHOUT_TENSORFLOW))
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(folder)

    def scalar(self, name: str, value: float, step: int) -> None:
        """Write a number."""
        from tensorboard.compat.proto import tensor_pb2, types_pb2
        from tensorboard.plugins.scalar import metadata

        tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, float_val=[value])
        self._write(name, tensor, metadata.create_summary_metadata(name, ""), step)

    def text(self, name: str, markdown: str, step: int) -> None:
        """Write a text in Markdown."""
        from tensorboard.compat.proto import tensor_pb2, types_pb2
        from tensorboard.plugins.text import metadata

        tensor = tensor_pb2.TensorProto(
            dtype=types_pb2.DT_STRING, string_val=[markdown.encode("utf-8")]
        )
        self._write(name, tensor, metadata.create_summary_metadata(name, ""), step)

    def _write(self, name: str, tensor: Any, description: Any, step: int) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2

        value = summary_pb2.Summary.Value(tag=name, tensor=tensor, metadata=description)
        summary = summary_pb2.Summary(value=[value])
        self._writer.add_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Write everything to the disk: a killed training keeps it."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
