"""Client and cache of the schema registry, built from the `schema_registry` section."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yarl import URL

from streamwatch.assembly.authorities import checked_authorities
from streamwatch.daemon.merged_records import Topic
from streamwatch.edge.decoders.schemas.cache import SchemaCache, TopicSchemas, WantsSchemas
from streamwatch.edge.decoders.schemas.client import RegistryClient
from streamwatch.edge.decoders.schemas.schema import RegistrySpec
from streamwatch.edge.outgoing import refused
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import InternalEvent


def build_schema_cache(settings: Settings, emit: Callable[[InternalEvent], None]) -> SchemaCache | None:
    """Build the cache of the registry's schemas; None if no registry is set.

    Raises
    ------
    SettingsError
        If the URL or a file cannot be used.
    """
    client = registry_client(settings)
    return None if client is None else SchemaCache(client, emit)


def registry_client(settings: Settings) -> RegistryClient | None:
    """Build the client of the registry, reading secrets from their files; None if no registry is set.

    Raises
    ------
    SettingsError
        If the URL or a file cannot be used.
    """
    section = settings.schema_registry
    if section.url is None:
        return None
    host = URL(section.url).host
    if host is None or refused(host):
        raise SettingsError("schema_registry.url: expected a host that is no link-local address (not shown)")
    spec = RegistrySpec(
        url=section.url,
        username=section.username,
        password=section.read_password(),
        token=section.read_token(),
        ca_file=checked_authorities(section.ca_file, "schema_registry.ca_file"),
        timeout_seconds=section.timeout / 1_000,
    )
    return RegistryClient(spec)


def topic_schemas(cache: SchemaCache | None, topics: Mapping[str, Topic]) -> TopicSchemas | None:
    """Connect the decoders whose formats need schemas to the cache; None if no registry is set."""
    if cache is None:
        return None
    decoders = {name: topic.decoder for name, topic in topics.items()}
    return TopicSchemas(cache, {n: each for n, each in decoders.items() if isinstance(each, WantsSchemas)})
