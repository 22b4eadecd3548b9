"""Frozen specs of the daemon's parts, built from the settings, which the parts never see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamwatch.admin.series_count import too_few_series
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.probabilities import probabilities_under
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.join.cold.overflow import OverflowSpec
from streamwatch.core.merge import MergeSpec
from streamwatch.core.predictions.early_hints import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.observe import BUCKETS
from streamwatch.core.predictions.label_delays import LabelDelaysSpec
from streamwatch.core.predictions.sampled_labels import SampledLabelsSpec
from streamwatch.core.records.events import CARRIED
from streamwatch.core.specs import (
    DetectorSpec,
    FadingSpec,
    JoinSpec,
    ModelDetectors,
    MonitorsSpec,
    RegisterSpec,
    UtilitySpec,
    table_entries,
)
from streamwatch.edge.sources.kafka.spec import Ago, At, KafkaSpec, OAuthSpec, parse_start
from streamwatch.edge.stores import KINDS as STORES
from streamwatch.edge.stores import StoreKind
from streamwatch.folds import Scheme
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.estimators import model_detectors
from streamwatch.settings.monitors import CostsSection, MonitorsSection, Utility, comparison_specs
from streamwatch.settings.sections import KafkaSection, OnExpiry, SecuritySection


def label_detectors(settings: Settings) -> tuple[DetectorSpec, ...]:
    """Select the detectors that see outcomes in the order of evaluation.

    With `join.order: prediction_time` these are all, as outcomes are evaluated in the order of predictions.

    Raises
    ------
    SettingsError
        If a detector uses the clock `prediction` and models predict in folds.
    """
    monitors, clocks = settings.monitors, settings.monitors.detector_clocks
    if "prediction" not in clocks.values() or settings.join.order == "prediction_time":
        return monitors.detectors
    if settings.folds.scheme is not None:
        raise SettingsError(
            f"monitors.detector_clocks: expected label where models predict in folds (folds.scheme), "
            f"got {clocks}"
        )
    return tuple(each for each in monitors.detectors if clocks.get(each.name) != "prediction")


def detectors_by_model(
    monitors: MonitorsSection, detectors: tuple[DetectorSpec, ...]
) -> tuple[ModelDetectors, ...]:
    """Return the parameters by pattern of model of some of the detectors; empty without detectors."""
    names = {each.name for each in detectors}
    by_model = model_detectors(monitors.detectors, monitors.detectors_by_model) if detectors else ()
    return tuple(
        ModelDetectors(each.models, tuple(own for own in each.detectors if own.name in names))
        for each in by_model
    )


def segment_names(settings: Settings) -> frozenset[str]:
    """Collect the names of the segments that mappings of predictions define."""
    return frozenset(
        name
        for topic in settings.topics.predictions
        for mapping in topic.all_mappings
        for name in mapping.segments
    )


def labels_sampled(settings: Settings) -> bool:
    """Return whether any mapping of predictions has a path for `label_probability`."""
    return maps_field(settings, "label_probability")


def maps_field(settings: Settings, field: str) -> bool:
    """Return whether any mapping of predictions has a path for an optional field."""
    mappings = (mapping for topic in settings.topics.predictions for mapping in topic.all_mappings)
    return any(getattr(mapping, field) is not None for mapping in mappings)


def prediction_registers(settings: Settings) -> tuple[RegisterSpec, ...]:
    """Return the specs of registers of predictions, which are updated when predictions arrive.

    Raises
    ------
    SettingsError
        If there are any with `join.conflicts: last`, where later predictions may replace counted ones.
    """
    found: list[RegisterSpec] = []
    hints = settings.monitors.early_hints
    if settings.join.conflicts == "last":
        for key, given, expected in (
            ("early_hints", hints is not None, "null"),
            ("label_delays", settings.monitors.label_delays, "false"),
        ):
            if given:
                raise SettingsError(
                    f"monitors.{key}: expected {expected} with join.conflicts: last, as it looks at "
                    "predictions when they arrive, which others may replace"
                )
        if labels_sampled(settings):
            raise SettingsError(
                "topics.predictions.mapping.label_probability: expected none with join.conflicts: last, as "
                "it belongs to a prediction when it arrives, which others may replace"
            )
    if hints is not None:
        bucket_ms = -(-3 * settings.join.horizon // (2 * BUCKETS))  # as those of late labels
        found.append(EarlyHintsSpec(hints.predictions, hints.delta, hints.reach, hints.max_models, bucket_ms))
    if settings.monitors.label_delays:
        found.append(LabelDelaysSpec(settings.join.horizon))
    if labels_sampled(settings):
        monitors = settings.monitors
        found.append(SampledLabelsSpec(settings.join.horizon, monitors.confidence_delta, monitors.max_models))
    return tuple(found)


def shares_stream(settings: Settings) -> bool:
    """Return whether each fold tests only some ids, and the previous label is that of all ids' stream."""
    return settings.folds.scheme is not None and not settings.folds.prequential


def outcome_registers(settings: Settings) -> tuple[RegisterSpec, ...]:
    """Return the specs of registers of outcomes, which every model has beside its estimators.

    Raises
    ------
    SettingsError
        As from `label_detectors`.
    """
    monitors = settings.monitors
    assumes = isinstance(settings.join.on_expiry, OnExpiry)
    found: list[RegisterSpec] = [LateLabelsSpec(settings.join.horizon, assumes)]
    if (scores := monitors.probabilities) is not None:
        found.append(probabilities_under(monitors.forgetting, scores.auc_outcomes, scores.max_auc_classes))
    if named := segment_names(settings):
        chosen = monitors.segments
        found.append(
            SegmentsSpec(
                chosen.alpha,
                chosen.max_values,
                chosen.measures,
                monitors.max_classes,
                chosen.max_total,
                shares_stream(settings),
                named,
            )
        )
    if settings.join.conflicts == "both":
        found.append(RevisionsSpec(settings.join.horizon, monitors.revisions.alpha))
    label = label_detectors(settings)
    if late := tuple(each for each in monitors.detectors if each not in label):
        found.append(
            PredictionClockSpec(
                settings.join.horizon, late, detectors_by_model(monitors, late), monitors.max_unsettled
            )
        )
    if monitors.cohort_verdicts:
        found.append(
            CohortsSpec(
                settings.join.horizon,
                monitors.confidence_delta,
                monitors.verdict_outcomes,
                by_prediction=settings.join.order == "prediction_time",
                max_classes=monitors.max_classes,
                utilities=utilities(monitors),
            )
        )
    return tuple(found)


def checked_authorities(file: Path | None, key: str) -> str | None:
    """Return the path of a file of certificates to trust; None where the setting `key` names none.

    Raises
    ------
    SettingsError
        If the file has no certificates in PEM format.
    """
    if file is None:
        return None
    import ssl  # noqa: PLC0415 - slow, and few settings need it

    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise SettingsError(f"{key}: expected PEM certificates in {file}") from None
    return str(file)


def require_certificates(section: SecuritySection) -> None:
    """Check the files for TLS to the brokers, if the protocol uses it.

    Raises
    ------
    SettingsError
        If a file has no certificates in PEM format, or certificate, key and password do not fit each other.
    """
    if section.protocol not in ("SSL", "SASL_SSL"):
        return
    checked_authorities(section.ca_file, "kafka.security.ca_file")
    if section.certificate_file is None:
        return
    import ssl  # noqa: PLC0415 - likewise

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # Without a password, OpenSSL would ask a terminal for that of an encrypted key.
        context.load_cert_chain(section.certificate_file, section.key_file, section.read_key_password() or "")
    except (OSError, ValueError):  # SSLError is an OSError; ValueError: the password is too long
        in_file = section.key_file or "the same file (kafka.security.key_file is not set)"
        raise SettingsError(
            f"kafka.security.certificate_file: expected a PEM certificate in {section.certificate_file}, its "
            f"key in {in_file} and the key's password, if it has one, in kafka.security.key_password_file"
        ) from None


def kafka_spec(section: KafkaSection) -> KafkaSpec:
    """Build the spec of the connection to Kafka; reads secrets from their files.

    Raises
    ------
    SettingsError
        If a file of certificates or of a key cannot be used.
    """
    security = section.security
    require_certificates(security)
    return KafkaSpec(
        bootstrap_servers=",".join(section.bootstrap_servers),
        security_protocol=security.protocol,
        sasl_mechanism=security.mechanism,
        username=security.username,
        password=security.read_password(),
        oauth=_oauth_spec(security),
        aws_region=security.aws_region,
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


def _oauth_spec(security: SecuritySection) -> OAuthSpec | None:
    oauth, secret = security.oauth, security.oauth.read_secret()
    if security.mechanism != "OAUTHBEARER" or not (oauth.token_url and oauth.client_id and secret):
        return None
    return OAuthSpec(
        token_url=oauth.token_url,
        client_id=oauth.client_id,
        client_secret=secret,
        scope=oauth.scope,
        extensions=tuple(oauth.extensions.items()),
        cafile=str(oauth.ca_file) if oauth.ca_file else None,
    )


def start_ms(section: KafkaSection, now_ms: int) -> int | None:
    """Return the record time at which the first start begins to read; None: the beginning of the topics."""
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
    """Build the spec of the join.

    Raises
    ------
    SettingsError
        As from `prediction_registers`.
    """
    join = settings.join
    dedup_horizon = join.horizon if join.dedup_horizon is None else join.dedup_horizon
    return JoinSpec(
        horizon_ms=join.horizon,
        early_horizon_ms=join.early_horizon,
        dedup_horizon_ms=dedup_horizon,
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
        folds_share_stream=shares_stream(settings),
        comparisons=comparison_specs(settings.monitors.comparisons),
        prediction_registers=prediction_registers(settings),
        conflicts=join.conflicts,
        carried=tuple(each.name for each in CARRIED if maps_field(settings, each.fields[0])),
    )


def overflow_spec(settings: Settings) -> OverflowSpec:
    """Build the limit of the join's entries in memory, beyond which entries are moved to disk.

    Raises
    ------
    SettingsError
        As from `join_spec`, whose settings decide the size of an entry.
    """
    room = settings.state.join_memory_megabytes * 1_000_000
    return OverflowSpec(table_entries(room, join_spec(settings)))


def folds_scheme(settings: Settings) -> Scheme | None:
    """Build the scheme by which folds test ids; None if models do not predict in folds.

    Raises
    ------
    SettingsError
        If folds test only some ids (`folds.prequential: false`) with `join.order` other than `resolution`.
    """
    folds = settings.folds
    if folds.scheme is None:
        return None
    if not folds.prequential and settings.join.order != "resolution":
        raise SettingsError(
            f"join.order: expected resolution with folds.prequential: false, got {settings.join.order}"
        )
    return Scheme(folds.scheme, folds.k, folds.prequential)


def merge_spec(settings: Settings) -> MergeSpec:
    """Build the limits of how long records wait for those of other partitions."""
    time = settings.time
    return MergeSpec(
        settle_ms=time.settle,
        max_future_ms=time.max_future,
        max_hold_back_ms=time.max_hold_back,
        max_held_bytes=time.max_held_megabytes * 1_000_000,
    )


def store_kind(settings: Settings) -> StoreKind[Any]:
    """Return the kind of store that `state.kind` names.

    Raises
    ------
    SettingsError
        If there is no such kind.
    """
    kind = STORES.get(settings.state.kind)
    if kind is None:
        raise SettingsError(f"state.kind: expected one of {', '.join(STORES)}, got {settings.state.kind!r}")
    return kind


def utilities(monitors: MonitorsSection) -> tuple[UtilitySpec, ...]:
    """Build the utilities by which models are judged, those by pattern of model before the general one."""
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
    """Build the spec of the estimators, and check that `max_series` suffices for them.

    Raises
    ------
    SettingsError
        As `monitors_spec`, or if `max_series` is too small for the series that rules and dashboards read.
    """
    spec = monitors_spec(settings)
    if (problem := too_few_series(spec)) is not None:
        raise SettingsError(problem)
    return spec


def monitors_spec(settings: Settings) -> MonitorsSpec:
    """Build the spec of the estimators of every model.

    Raises
    ------
    SettingsError
        If a forgetting is listed twice, or `per_class` names none of them; or as from `label_detectors` and
        `folds_scheme`.
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
        all_series=monitors.series == "all",
        max_series=monitors.max_series,
        confidence_delta=monitors.confidence_delta,
        opponents=monitors.opponents,
        utilities=utilities(monitors),
        verdict_outcomes=monitors.verdict_outcomes,
        shadow_max_classes=monitors.shadow_max_classes,
        folds="" if (scheme := folds_scheme(settings)) is None else repr(scheme),
        folds_share_stream=shares_stream(settings),
        comparisons=comparison_specs(monitors.comparisons),
        max_comparisons=monitors.max_comparisons,
        history_days=monitors.history_days,
        registers=outcome_registers(settings),
    )
