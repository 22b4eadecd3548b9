"""Settings → the small frozen specs that parts receive; none of them ever sees Settings."""

from __future__ import annotations

from typing import Any, Final

from streamwatch.admin.series_room import too_few_series
from streamwatch.assembly.registers import (
    detectors_by_model,
    label_detectors,
    outcome_registers,
    prediction_registers,
)
from streamwatch.core.join.compiled.outside.spec import OverflowSpec
from streamwatch.core.merge import MergeSpec
from streamwatch.core.specs import (
    FadingSpec,
    JoinSpec,
    MonitorsSpec,
    UtilitySpec,
    columns_suffice,
    table_entries,
)
from streamwatch.edge.sources.kafka.spec import Ago, At, KafkaSpec, parse_start
from streamwatch.edge.stores import KINDS as STORES
from streamwatch.edge.stores import StoreKind
from streamwatch.edge.stores.rocksdb.spec import RocksSpec
from streamwatch.folds import Scheme
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.monitors.comparisons import comparison_specs
from streamwatch.settings.monitors.monitors import MonitorsSection
from streamwatch.settings.monitors.utility import CostsSection, Utility
from streamwatch.settings.sections import KafkaSection, OnExpiry

EVENTS_IN_COLUMNS: Final = 20_000
EVENTS_ROW_BY_ROW: Final = 5_000
"""Events of a commit where the settings name no number: some 10 ms of the event loop, and some 20."""


def kafka_spec(section: KafkaSection) -> KafkaSpec:
    """Addresses of the brokers and credentials; secrets are read from their files here."""
    security = section.security
    return KafkaSpec(
        bootstrap_servers=",".join(section.bootstrap_servers),
        security_protocol=security.protocol,
        sasl_mechanism=security.mechanism,
        username=security.username,
        password=security.read_password(),
        cafile=str(security.ca_file) if security.ca_file else None,
        certfile=str(security.certificate_file) if security.certificate_file else None,
        keyfile=str(security.key_file) if security.key_file else None,
        keyfile_password=security.read_key_password(),
        check_hostname=security.check_hostname,
        client_id=section.client_id,
        group_id=section.group_id,
        start_from=parse_start(section.start_from),
        on_data_loss=section.on_data_loss,
        max_batch_bytes=section.max_batch_bytes,
        max_record_bytes=section.max_record_bytes,
    )


def start_ms(section: KafkaSection, now_ms: int) -> int | None:
    """The record time at which reading begins; None at the beginning of the topics."""
    match parse_start(section.start_from):
        case "earliest":
            return None
        case "latest":
            return now_ms
        case At(timestamp_ms):
            return timestamp_ms
        case Ago(duration_ms):
            return now_ms - duration_ms


def join_spec(settings: Settings) -> JoinSpec:
    """Rules by which predictions meet their labels."""
    join = settings.join
    dedup_entries = join.horizon if join.dedup_horizon is None else join.dedup_horizon
    return JoinSpec(
        horizon_ms=join.horizon,
        early_horizon_ms=join.early_horizon,
        dedup_horizon_ms=dedup_entries,
        max_pending=join.max_pending,
        max_labels=join.max_labels,
        max_dedup_entries=join.max_dedup_entries,
        assume=join.on_expiry.assume if isinstance(join.on_expiry, OnExpiry) else None,
        order=join.order,
        reorder_window_ms=join.reorder_window,
        max_reordered=join.max_reordered,
        retain_unmatched=join.retain_unmatched,
        max_models=settings.monitors.max_models,
        folds=settings.folds.scheme is not None,
        folds_share_stream=_shares_stream(settings),
        comparisons=comparison_specs(settings.monitors.comparisons),
        prediction_registers=prediction_registers(settings),
        conflicts=join.conflicts,
    )


def joins_in_columns(settings: Settings) -> bool:
    """Tell whether the compiled join is used: columns suffice, and on disk its table may have any room."""
    has_room = not store_kind(settings).durable or settings.state.join_memory_megabytes > 0
    return columns_suffice(join_spec(settings)) and has_room


def overflow_spec(settings: Settings) -> OverflowSpec:
    """Entries of the compiled join that stay in memory, where the others go to disk."""
    return OverflowSpec(table_entries(settings.state.join_memory_megabytes * 1_000_000))


def commit_events(settings: Settings) -> int:
    """Events that a commit waits for at most: a packed one costs the event loop a tenth as much for each."""
    given = settings.state.commit_events
    return given or (EVENTS_IN_COLUMNS if joins_in_columns(settings) else EVENTS_ROW_BY_ROW)


def keys_are_digests(settings: Settings) -> bool:
    """Tell whether ids are known by their digests alone: on disk, and where they are joined in columns."""
    return store_kind(settings).durable or joins_in_columns(settings)


def folds_scheme(settings: Settings) -> Scheme | None:
    """Scheme by which folds test ids; None where no model predicts in folds.

    Raises
    ------
    SettingsError
        Folds that test some ids only, with an order of outcomes that is not that of their resolution.
    """
    folds = settings.folds
    if folds.scheme is None:
        return None
    if not folds.prequential and settings.join.order != "resolution":
        raise SettingsError(
            f"join.order: expected resolution with folds.prequential: false, got {settings.join.order}"
        )
    return Scheme(folds.scheme, folds.k, folds.prequential)


def _shares_stream(settings: Settings) -> bool:
    return settings.folds.scheme is not None and not settings.folds.prequential


def merge_spec(settings: Settings) -> MergeSpec:
    """Limits of the time for which records wait for those of other partitions."""
    time = settings.time
    return MergeSpec(
        settle_ms=time.settle,
        max_future_ms=time.max_future,
        max_hold_back_ms=time.max_hold_back,
        max_held_bytes=time.max_held_megabytes * 1_000_000,
    )


def store_kind(settings: Settings) -> StoreKind[Any]:
    """The kind of store the settings ask for.

    Raises
    ------
    SettingsError
        There is no such kind.
    """
    kind = STORES.get(settings.state.kind)
    if kind is None:
        raise SettingsError(f"state.kind: expected one of {', '.join(STORES)}, got {settings.state.kind!r}")
    return kind


def rocks_spec(settings: Settings) -> RocksSpec:
    """Directory of the state, and how much of it is served from memory."""
    return RocksSpec(
        directory=settings.state.directory,
        horizon_ms=settings.join.horizon,
        early_horizon_ms=settings.join.early_horizon,
        cache_entries=settings.state.cache_entries,
        in_columns=joins_in_columns(settings),
    )


def utilities(monitors: MonitorsSection) -> tuple[UtilitySpec, ...]:
    """By what models are judged, exceptions first."""
    by_pattern: dict[str, Utility] = {**monitors.utility_by_model, "*": monitors.utility}
    return tuple(_utility(pattern, utility) for pattern, utility in by_pattern.items())


def _utility(pattern: str, utility: Utility) -> UtilitySpec:
    if not isinstance(utility, CostsSection):
        return UtilitySpec(pattern, utility)
    costs = (
        (true_class, answer, cost)
        for true_class, row in utility.costs.items()
        for answer, cost in row.items()
    )
    return UtilitySpec(pattern, "costs", tuple(costs), utility.other)


def shown_monitors(settings: Settings) -> MonitorsSpec:
    """Estimators of every model, whose series a scrape has room for.

    Raises
    ------
    SettingsError
        As `monitors_spec`; or `max_series` is too small for what rules and dashboards read.
    """
    spec = monitors_spec(settings)
    if (problem := too_few_series(spec)) is not None:
        raise SettingsError(problem)
    return spec


def monitors_spec(settings: Settings) -> MonitorsSpec:
    """Estimators of every model.

    Raises
    ------
    SettingsError
        Two entries give series of the same name, or `per_class` names none of them.
    """
    monitors = settings.monitors
    names = [spec.name for spec in monitors.forgetting]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"monitors.forgetting: {name} is listed twice")
    fading = [spec.name for spec in monitors.forgetting if isinstance(spec, FadingSpec)]
    per_class = (fading or names)[0] if monitors.per_class is None else monitors.per_class
    if per_class and per_class not in names:
        raise SettingsError(
            f"monitors.per_class: expected one of {', '.join(names)} or an empty text, got {per_class!r}"
        )
    detectors = label_detectors(settings)
    return MonitorsSpec(
        forgetting=monitors.forgetting,
        detectors=detectors,
        detectors_by_model=detectors_by_model(monitors, detectors),
        drift_weighted=monitors.drift_weighted,
        max_models=monitors.max_models,
        max_classes=monitors.max_classes,
        per_class=per_class,
        max_series=monitors.max_series,
        confidence_delta=monitors.confidence_delta,
        opponents=monitors.opponents,
        utilities=utilities(monitors),
        verdict_outcomes=monitors.verdict_outcomes,
        shadow_max_classes=monitors.shadow_max_classes,
        folds="" if (scheme := folds_scheme(settings)) is None else repr(scheme),
        folds_share_stream=_shares_stream(settings),
        comparisons=comparison_specs(monitors.comparisons),
        max_comparisons=monitors.max_comparisons,
        history_days=monitors.history_days,
        registers=outcome_registers(settings),
    )
