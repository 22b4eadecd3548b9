"""A Kafka broker inside this process: librdkafka's mock cluster, which ships in the confluent-kafka wheel.

It speaks the Kafka protocol on a local port, so that producers, consumers and the daemon use it unchanged. It
is called through librdkafka's public C interface (`rdkafka_mock.h`), which the Python package does not wrap.

Limits: every partition keeps only its last 5 MB or 100,000 batches, whichever is less; nothing is written to
disk; `offsets_for_times` returns nothing; there is no admin protocol (topics are made with `create_topic`, or
appear with four partitions when a client asks for them); transactions are incomplete.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Self

from streamwatch.edge.extras import command_for

_PRODUCER = 0  # rd_kafka_type_t
_CONF_OK = 0  # rd_kafka_conf_res_t
_ERROR_TEXT_BYTES = 512


class EmbeddedBrokerMissingError(RuntimeError):
    """The mock cluster is missing: the extra `demo` is not installed, or its wheel lacks the symbols."""


class EmbeddedBroker:
    """Kafka broker for demos and quick tests, which runs inside the `with` block.

    Examples
    --------
    >>> with EmbeddedBroker() as broker:  # doctest: +SKIP
    ...     broker.create_topic("predictions", partitions=2)
    ...     serve(broker.bootstrap_servers)

    Raises
    ------
    EmbeddedBrokerMissingError
        On entering, when confluent-kafka is not installed.
    """

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        self._handle: int | None = None
        self._cluster: int | None = None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` for any Kafka client.

        Raises
        ------
        RuntimeError
            Outside the `with` block.
        """
        library, cluster = self._alive()
        return str(library.rd_kafka_mock_cluster_bootstraps(cluster).decode())

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic.

        Raises
        ------
        ValueError
            If the topic exists already or `partitions` is below 1.
        """
        library, cluster = self._alive()
        if partitions < 1:
            raise ValueError(f"a topic has at least one partition, got {partitions} ({name})")
        code = library.rd_kafka_mock_topic_create(cluster, name.encode(), partitions, 1)
        if code:
            reason = library.rd_kafka_err2str(code).decode()
            raise ValueError(f"topic {name} was not created: {reason}")

    def set_down(self) -> None:
        """Drop every connection and refuse new ones, like a broker that is down; records are kept."""
        library, cluster = self._alive()
        library.rd_kafka_mock_broker_set_down(cluster, 1)

    def set_up(self) -> None:
        """Accept connections again after `set_down`."""
        library, cluster = self._alive()
        library.rd_kafka_mock_broker_set_up(cluster, 1)

    def __enter__(self) -> Self:
        library = _librdkafka()
        text = ctypes.create_string_buffer(_ERROR_TEXT_BYTES)
        conf = library.rd_kafka_conf_new()
        if library.rd_kafka_conf_set(conf, b"log_level", b"0", text, len(text)) != _CONF_OK:
            raise EmbeddedBrokerMissingError(f"librdkafka refused a setting: {text.value.decode()}")
        handle = library.rd_kafka_new(_PRODUCER, conf, text, len(text))
        if not handle:
            raise EmbeddedBrokerMissingError(f"librdkafka did not start: {text.value.decode()}")
        cluster = library.rd_kafka_mock_cluster_new(handle, 1)
        if not cluster:
            library.rd_kafka_destroy(handle)
            raise EmbeddedBrokerMissingError("librdkafka could not open a local port for its mock cluster")
        self._library, self._handle, self._cluster = library, handle, cluster
        return self

    def __exit__(self, *_: object) -> None:
        library, cluster = self._alive()
        handle, self._handle, self._cluster = self._handle, None, None
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(handle)

    def _alive(self) -> tuple[ctypes.CDLL, int]:
        if self._library is None or self._cluster is None:
            raise RuntimeError("the embedded broker is not running: use it inside its `with` block")
        return self._library, self._cluster


def _librdkafka() -> ctypes.CDLL:
    """Load the C library of the confluent-kafka wheel, with the signatures used here."""
    try:
        extension = importlib.import_module("confluent_kafka.cimpl")
        # Symbols of the libraries an extension module is linked to are found through the module's own handle.
        library = ctypes.CDLL(extension.__file__)
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        signatures = {
            "rd_kafka_conf_new": (pointer, []),
            "rd_kafka_conf_set": (ctypes.c_int, [pointer, text, text, text, ctypes.c_size_t]),
            "rd_kafka_new": (pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
            "rd_kafka_destroy": (None, [pointer]),
            "rd_kafka_err2str": (text, [ctypes.c_int]),
            "rd_kafka_mock_cluster_new": (pointer, [pointer, ctypes.c_int]),
            "rd_kafka_mock_cluster_destroy": (None, [pointer]),
            "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
            "rd_kafka_mock_topic_create": (ctypes.c_int, [pointer, text, ctypes.c_int, ctypes.c_int]),
            "rd_kafka_mock_broker_set_down": (ctypes.c_int, [pointer, ctypes.c_int32]),
            "rd_kafka_mock_broker_set_up": (ctypes.c_int, [pointer, ctypes.c_int32]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (ImportError, OSError, AttributeError) as error:
        raise EmbeddedBrokerMissingError(
            f"the embedded broker needs confluent-kafka ({error}): {command_for('demo')}"
        ) from error
    return library
