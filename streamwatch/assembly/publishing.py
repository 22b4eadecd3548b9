"""Publishing to the topics of results (outcomes, events and their ledger), built from the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from streamwatch.assembly import specs
from streamwatch.assembly import topics as topic_properties
from streamwatch.core.publishing.candidacy import Candidacy, SessionSpec
from streamwatch.core.publishing.publication_log import SECTION, PublicationLog
from streamwatch.core.publishing.publications import PublicationError, decoded
from streamwatch.daemon.publisher import Publisher, Publishing
from streamwatch.daemon.standby import SharedPublishing, StandbyPublisher
from streamwatch.edge.sources.kafka.dead_letters import DeadLetterTopic
from streamwatch.edge.sources.kafka.election import Election, ElectionSpec, steady_seconds
from streamwatch.edge.sources.kafka.spec import At
from streamwatch.edge.sources.kafka.transactions import KafkaTransactions, TransactionsSpec
from streamwatch.edge.stores.kind import StateDamaged
from streamwatch.settings import Settings, SettingsError
from streamwatch.telemetry import Telemetry

if TYPE_CHECKING:
    from streamwatch.core.estimators.comparisons.set import ComparisonVerdict
    from streamwatch.core.estimators.set import EstimatorSet
    from streamwatch.core.ports import DeadLetters, RecoveredState
    from streamwatch.daemon.alerting import Alerting


def transactions_spec(settings: Settings) -> TransactionsSpec | None:
    """Build the spec of the topics of results; None if no such topic and no standby is set."""
    if settings.outcomes.topic is None and settings.events.topic is None and not settings.standby.enabled:
        return None
    return TransactionsSpec(
        specs.kafka_spec(settings.kafka),
        settings.outcomes.topic,
        settings.events.topic,
        settings.ledger.topic,
        settings.ledger.transactional_id,
    )


def require_publishable(settings: Settings) -> None:
    """Check that the topics of results can be written with these settings.

    Raises
    ------
    SettingsError
        If the state is in memory, the daemon shows results of Spark, a topic also has another purpose, or
        replicas that start at different times would begin to read at different records.
    """
    spec = transactions_spec(settings)
    if spec is None:
        return
    asked = next(iter(spec.topics), "standby.enabled")
    if settings.source == "results":
        raise SettingsError(
            f"{asked}: expected none with source: results, as outcomes are not evaluated by this process"
        )
    if not specs.store_kind(settings).durable:
        raise SettingsError(
            f"{asked}: expected state.kind: rocksdb, got {settings.state.kind}: what is written once is "
            "known by the state"
        )
    taken = dict.fromkeys(topic_properties.sides(settings.topics), "is read")
    if settings.kafka.dead_letter_topic is not None:
        taken[settings.kafka.dead_letter_topic] = "is kafka.dead_letter_topic"
    for setting, topic in (*spec.topics.items(), ("ledger.topic", spec.ledger_topic)):
        if topic in taken:
            raise SettingsError(
                f"{setting}: expected a topic of its own, got {topic!r}, which {taken[topic]}"
            )
        taken[topic] = f"is {setting}"
    if settings.standby.enabled and specs.kafka_spec(settings.kafka).start_from != "earliest":
        start = specs.kafka_spec(settings.kafka).start_from
        if not isinstance(start, At):
            raise SettingsError(
                "kafka.start_from: expected earliest or a point in time with standby.enabled, got "
                f"{settings.kafka.start_from}: replicas that start at different times would begin at "
                "different records"
            )


def election_spec(settings: Settings) -> ElectionSpec:
    """Build the spec of the election of the holder among replicas."""
    timeout = settings.standby.session_timeout / 1_000
    return ElectionSpec(
        specs.kafka_spec(settings.kafka),
        f"{settings.ledger.transactional_id}-standby",
        settings.ledger.topic,
        SessionSpec(timeout, margin=timeout / 6, renewal=min(1.0, timeout / 6)),
    )


def build_publisher(settings: Settings, telemetry: Telemetry) -> Publisher | StandbyPublisher | None:
    """Build the publisher of outcomes and events; None if no topic for them and no standby is set.

    Raises
    ------
    SettingsError
        See `require_publishable`.
    """
    require_publishable(settings)
    spec = transactions_spec(settings)
    if spec is None:
        return None
    names = " and ".join(f"topic {topic}" for topic in spec.topics.values())
    if not settings.standby.enabled:
        return Publisher(KafkaTransactions(spec), names, telemetry.emit)
    election = election_spec(settings)
    candidacy = Candidacy(election.session)

    def elect(changed: Callable[[], None]) -> Election:
        return Election(election, candidacy, changed)

    # Shorter than the default, so that a holder soon notices a transaction that hangs.
    spec = replace(spec, transaction_seconds=max(5.0, 2 * election.session.timeout))
    return StandbyPublisher(
        KafkaTransactions(spec, follows=True),
        names or f"the ledger {spec.ledger_topic}",
        telemetry.emit,
        candidacy,
        elect,
        steady_seconds,
        deployment=spec.transactional_id,
        dead_letters=build_dead_letters(settings, telemetry),
    )


def build_dead_letters(settings: Settings, telemetry: Telemetry) -> DeadLetters | None:
    """Build the writer of the dead-letter topic; None if none is set."""
    topic = settings.kafka.dead_letter_topic
    return None if topic is None else DeadLetterTopic(specs.kafka_spec(settings.kafka), topic, telemetry.emit)


def shared_name(settings: Settings) -> str | None:
    """Return the name that replicas share; None without standby."""
    return settings.ledger.transactional_id if settings.standby.enabled else None


def publication_log(
    settings: Settings, identity: str, saved: RecoveredState, monitors: EstimatorSet
) -> PublicationLog:
    """Build the log that makes the publications of a state, continuing the numbers of its last commit.

    Raises
    ------
    StateDamaged
        If a publication in the state, or their section, cannot be decoded by this version.
    """

    def comparisons() -> Sequence[ComparisonVerdict]:
        return () if monitors.comparisons is None else monitors.comparisons.verdicts()

    try:
        for waiting in saved.publications.values():
            decoded(waiting)  # again when they are to be written, which is too late to refuse the state
        return PublicationLog(
            identity,
            saved.commits,
            outcomes=settings.outcomes.topic is not None,
            events=settings.events.topic is not None,
            ids_at_hand=settings.join.order == "resolution",
            comparisons=comparisons,
            section=saved.sections.get(SECTION),
            deployment=shared_name(settings),
        )
    except PublicationError as error:
        raise StateDamaged(f"the state in {settings.state.directory} is damaged: {error}") from error


def publishing_of(
    log: PublicationLog | None,
    publisher: Publisher | StandbyPublisher | None,
    saved: RecoveredState,
    alerting: Alerting,
) -> Publishing | SharedPublishing | None:
    """Connect the publications of a state to the publisher; None without topics of results."""
    if log is None or publisher is None:
        return None
    if isinstance(publisher, StandbyPublisher):
        return SharedPublishing(log, publisher, alerting, saved.publications)
    return Publishing(log, publisher, alerting, saved.commits, saved.publications)
