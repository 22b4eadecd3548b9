"""Which models predict on the stream: at most so many at a time; an idle one gives up its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Activity:
    """One model's share of the join."""

    name: str
    pending: int
    held: int
    """Outcomes in the order buffer."""
    last_ms: int
    """Latest record time of an accepted prediction."""


@dataclass(frozen=True, slots=True)
class RegistryState:
    """Everything a registry knows."""

    models: list[Activity]
    next_look_ms: int


class Registry:
    """Models by name, in order of first appearance.

    A model is idle when both watermarks are `idle_ms` past its last accepted prediction and nothing of it is pending
    or held back.
    """

    __slots__ = ("_idle_ms", "_maximum", "_next_look_ms", "models")

    def __init__(self, maximum: int, idle_ms: int) -> None:
        self._maximum = maximum
        self._idle_ms = idle_ms
        self._next_look_ms = -1
        self.models: dict[str, Activity] = {}

    def place(self, model: str, at_ms: int) -> Activity | None:
        """The model's place, new if it has none yet; None when all are taken."""
        activity = self.models.get(model)
        if activity is not None:
            return activity
        if len(self.models) >= self._maximum:
            return None
        activity = self.models[model] = Activity(model, 0, 0, at_ms)
        return activity

    def retire(self, watermark_ms: int) -> list[str]:
        """Remove and name the models that are idle by now (looked at no more than once a second of record time)."""
        if watermark_ms < self._next_look_ms or not self.models:
            return []
        limit_ms = watermark_ms - self._idle_ms
        idle = [
            name
            for name, activity in self.models.items()
            if activity.last_ms <= limit_ms and activity.pending == 0 and activity.held == 0
        ]
        for name in idle:
            del self.models[name]
        oldest_ms = min((activity.last_ms for activity in self.models.values()), default=watermark_ms)
        self._next_look_ms = max(oldest_ms + self._idle_ms, watermark_ms + 1000)
        return idle

    def state(self) -> RegistryState:
        """What `restore` continues from."""
        return RegistryState(list(self.models.values()), self._next_look_ms)

    def restore(self, state: RegistryState) -> None:
        """Continue from a `state`."""
        self.models = {activity.name: activity for activity in state.models}
        self._next_look_ms = state.next_look_ms
