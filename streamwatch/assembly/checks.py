"""Checks of `streamwatch check`: settings, source, topics, state, and worst-case memory, disk and series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from streamwatch.admin.capacity import (
    DiskSpec,
    Limits,
    check_directory,
    check_state,
    check_worst_case,
    reachable,
)
from streamwatch.admin.kafka_check import (
    CheckResult,
    Content,
    check_group,
    check_ids,
    check_kafka,
    check_ledger,
    check_payload,
    check_schemas,
    first_records,
)
from streamwatch.admin.series_count import check_series
from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.assembly.changes import check_changes, read_mark
from streamwatch.assembly.publishing import election_spec, require_publishable, transactions_spec
from streamwatch.assembly.specs import segment_names
from streamwatch.assembly.topics import build_schema_cache, build_topics, mappings_of, topic_schemas
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.ports import Record, Source
from streamwatch.core.records.events import Event, EventGroup
from streamwatch.core.specs import MonitorsSpec
from streamwatch.daemon.merged_records import Topic
from streamwatch.edge.decoders.mapping import notation, paths_of
from streamwatch.edge.decoders.schemas.cache import SchemaCache
from streamwatch.edge.sources import KINDS
from streamwatch.edge.stores.rocksdb.opening import RocksSpec
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import InternalEvent, SchemaRejected


async def check_all(settings: Settings) -> Sequence[CheckResult]:
    """Check everything that can be known before a start; writes nothing, reads some records of each topic.

    With `source: results`, of which nothing is joined or evaluated, the topic of results is what is read, and
    there is no worst case of memory and disk.
    """
    if settings.source == "results":
        return await _check_results(settings)
    try:
        specs.kafka_spec(settings.kafka)
        require_publishable(settings)
        monitors = specs.monitors_spec(settings)
        _check_alerts(settings)
        events: list[InternalEvent] = []
        cache = build_schema_cache(settings, events.append)
        topics = build_topics(settings, cache, ids_as_text=True)
    except SettingsError as error:
        return [CheckResult(str(error), good=False)]
    limits = capacity_limits(settings)
    forgetting = ", ".join(spec.name for spec in monitors.forgetting)
    detectors = ", ".join(spec.name for spec in monitors.detectors) or "none"
    of_source = await _check_source(settings)
    return [
        CheckResult("settings", good=True, details=(f"forgetting: {forgetting}", f"detectors: {detectors}")),
        *_namespace_findings(settings),
        *_standby_findings(settings),
        *_http_findings(settings),
        *of_source,
        *(await _check_samples(settings, topics, cache) if all(result.good for result in of_source) else ()),
        *(
            CheckResult(f"schema {event.schema}: {event.error}", good=False)
            for event in events
            if isinstance(event, SchemaRejected)
        ),
        *check_state(limits),
        *check_changes(settings),
        check_worst_case(limits),
        _check_series(settings, monitors),
    ]


async def _check_results(settings: Settings) -> Sequence[CheckResult]:
    """Check a daemon that shows the results of a Spark job."""
    from streamwatch.assembly.job_settings import buckets_spec  # noqa: PLC0415 - loads Numba

    try:
        specs.kafka_spec(settings.kafka)
        require_publishable(settings)
        monitors = buckets_spec(settings).monitors
        _check_alerts(settings)
    except SettingsError as error:
        return [CheckResult(str(error), good=False)]
    return [
        CheckResult("settings", good=True, details=("results of a Spark job are shown",)),
        *_http_findings(settings),
        *(await _check_source(settings)),
        check_directory(
            settings.state.directory if specs.store_kind(settings).durable else None,
            settings.state.min_free_megabytes * 1_000_000,
        ).result,
        *check_changes(settings),
        _check_series(settings, monitors),
    ]


def _check_series(settings: Settings, monitors: MonitorsSpec) -> CheckResult:
    """Compute how many series there are if every limit is reached."""
    return check_series(
        monitors,
        len(segment_names(settings)),
        settings.folds.k if monitors.folds else 0,
        sampled=specs.labels_sampled(settings),
    )


def _check_alerts(settings: Settings) -> None:
    """Build receivers and rules as `run` does; raises SettingsError if it would."""
    from streamwatch.assembly.alerts import alarms_spec, build_receivers  # noqa: PLC0415 - loads the HTTP client

    alarms_spec(settings)
    build_receivers(settings)


def _sampling_source(settings: Settings, topics: Sequence[str]) -> Source:
    """Build a source that reads the first records of topics and commits nothing."""
    spec = replace(specs.kafka_spec(settings.kafka), group_id=None, start_from="earliest")
    return KINDS["kafka"].build(spec, topics, lambda _: None, lambda: "")


async def _check_source(settings: Settings) -> Sequence[CheckResult]:
    """Check access to the topics to be read and written, their partitions, and use of the consumer group."""
    spec = specs.kafka_spec(settings.kafka)
    read: Mapping[str, Content] = topic_properties.sides(settings.topics)
    named = {
        "kafka.dead_letter_topic": settings.kafka.dead_letter_topic,
        "outcomes.topic": settings.outcomes.topic,
        "events.topic": settings.events.topic,
    }
    if settings.source == "results":
        read = {settings.spark.results_topic: "results"}
        named = {}
    written = {setting: topic for setting, topic in named.items() if topic is not None}
    found = [*await check_kafka(spec, read, written)]
    if found[0].good and (publishing := transactions_spec(settings)) is not None:
        found.append(await check_ledger(spec, publishing.ledger_topic))
    if not all(result.good for result in found):
        return found
    return [*found, *(await check_group(spec, list(read), lambda: read_mark(settings)))]


async def _check_samples(
    settings: Settings, topics: Mapping[str, Topic], cache: SchemaCache | None
) -> Sequence[CheckResult]:
    """Decode the first records of each topic."""
    source = _sampling_source(settings, list(topics))
    try:
        samples = await first_records(source, list(topics))
    except KINDS["kafka"].refusals as error:
        return [CheckResult(str(error), good=False)]
    formats = topic_properties.schema_formats(settings.topics)
    found = [
        *_check_payloads(settings, {name: topics[name] for name in topics.keys() - formats.keys()}, samples),
        *(await _check_formats(settings, formats, topics, samples, cache) if formats else ()),
    ]
    if len(_namespaces(settings)) > 1:
        return found  # ids of different namespaces are not meant to meet
    ids = check_ids(_events(topics, samples))
    return found if ids is None else [*found, ids]


def _events(topics: Mapping[str, Topic], samples: Mapping[str, Sequence[Record]]) -> Iterator[Event]:
    """Decode the samples of all topics, whose schemas must have been fetched."""
    for name, records in samples.items():
        for decoded in topics[name].decoder.decode_all(records, [record.timestamp for record in records]):
            yield from decoded.events if isinstance(decoded, EventGroup) else (decoded,)


def _check_payloads(
    settings: Settings, topics: Mapping[str, Topic], samples: Mapping[str, Sequence[Record]]
) -> Sequence[CheckResult]:
    """Decode samples of topics without schemas, and report whether the mappings fit."""
    paths = {
        name: notation(paths_of(each.mapping, "prediction"))
        for name, mappings in mappings_of(settings.topics).items()
        for each in mappings
        if each.side == "prediction"
    }
    revised = settings.join.conflicts != "first"
    return [
        check_payload(name, paths.get(name), samples[name], topics[name].decoder, revised=revised)
        for name in sorted(topics)
    ]


async def _check_formats(
    settings: Settings,
    formats: Mapping[str, str],
    topics: Mapping[str, Topic],
    samples: Mapping[str, Sequence[Record]],
    cache: SchemaCache | None,
) -> Sequence[CheckResult]:
    """Fetch the schemas of samples whose formats need them, decode the samples, and report."""
    schemas = topic_schemas(cache, topics)
    try:
        decoders = {name: topics[name].decoder for name in formats}
        revised = settings.join.conflicts != "first"
        return await check_schemas(formats, samples, decoders, schemas, revised=revised)
    finally:
        if schemas is not None:
            await schemas.close()


def _namespaces(settings: Settings) -> set[str]:
    """Return the namespaces of ids."""
    return {topic.namespace for topic in topic_properties.topics_by_name(settings.topics).values()}


def _namespace_findings(settings: Settings) -> Sequence[CheckResult]:
    """List the namespaces of ids, and the models that occur in several of them; empty for one namespace."""
    spaces = sorted(_namespaces(settings))
    if len(spaces) == 1:
        return []
    events = ["models are named across namespaces: records of one name are evaluated as one model"]
    for model, found in topic_properties.shared_models(settings.topics).items():
        events.append(f"{model} is one model in {', '.join(map(repr, found))}")
    return [CheckResult(f"namespaces: {', '.join(map(repr, spaces))}", good=True, details=tuple(events))]


def _http_findings(settings: Settings) -> Sequence[CheckResult]:
    """Describe what others than this machine can read, and how; empty if only it can connect.

    A certificate that cannot be served is a problem in any case.
    """
    section = settings.http
    if section.tls is not None:
        from streamwatch.assembly.http import access_of  # noqa: PLC0415 - loads the HTTP server
        from streamwatch.edge.web.connections import ListenError  # noqa: PLC0415

        try:
            access_of(section).ssl_context()
        except ListenError as error:
            return [CheckResult(str(error), good=False)]
    if section.host in {"127.0.0.1", "::1", "localhost"}:
        return []
    from streamwatch.assembly.http import access_of  # noqa: PLC0415 - loads the HTTP server
    from streamwatch.edge.web.access import is_loopback  # noqa: PLC0415

    if is_loopback(section.host):
        return []
    what = f"HTTP at {section.listen} can be reached from other machines"
    return [CheckResult(what, good=True, details=tuple(access_of(section).weaknesses(section.host)))]


def _standby_findings(settings: Settings) -> Sequence[CheckResult]:
    """Describe how replicas elect a holder, and what they need beyond one daemon; empty without standby."""
    if not settings.standby.enabled:
        return []
    election, name = election_spec(settings), settings.ledger.transactional_id
    seconds = election.session.timeout
    needs = [
        f"rights: READ on group {election.group}, READ and WRITE on {election.topic}, WRITE on id {name}",
        f"of the brokers: group.min.session.timeout.ms of at most {settings.standby.session_timeout}",
        "of the replicas: the same settings, each with a state.directory of its own",
        f"topic {election.topic} should be this deployment's alone: transactions of others delay a takeover",
    ]
    if settings.kafka.dead_letter_topic is not None:
        needs.append(
            "the holder alone writes invalid records to kafka.dead_letter_topic; those around a takeover may "
            "be there twice"
        )
    what = f"standby: replicas of {name!r}, of which another takes over {seconds:g} s after one fell silent"
    return [CheckResult(what, good=True, details=tuple(needs))]


def capacity_limits(settings: Settings) -> Limits:
    """Return all limits of the settings that bound memory and disk."""
    monitors = specs.monitors_spec(settings)
    segments = len(segment_names(settings))
    registers = tuple(
        reachable(spec, segments, monitors.max_models) if isinstance(spec, SegmentsSpec) else spec
        for spec in monitors.registers
    )
    return Limits(
        join=specs.join_spec(settings),
        monitors=replace(monitors, registers=registers),
        disk=disk_spec(settings),
        directory=settings.state.directory,
        min_free_bytes=settings.state.min_free_megabytes * 1_000_000,
    )


def disk_spec(settings: Settings) -> DiskSpec | None:
    """Return the limits of a state on disk; None if the state is in memory."""
    state = settings.state
    if not specs.store_kind(settings).durable:
        return None
    return DiskSpec(
        RocksSpec(state.directory),
        state.journal_outcomes,
        specs.overflow_spec(settings).entries,
    )
