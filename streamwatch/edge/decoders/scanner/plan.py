"""Compiles a topic's mapping to a `Plan`, the arguments of the compiled loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.batch import LABEL, PREDICTION
from streamwatch.core.records.events import CARRIED, Side
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.fields import SEGMENT_SLOT, is_name
from streamwatch.edge.decoders.mapping import (
    AnyLocation,
    ClassOfLargest,
    ClassOfScore,
    Constant,
    FieldLocation,
    InArray,
    InFields,
    InHeader,
    InKey,
    InTopic,
    InValue,
    Joined,
    KindRule,
    Named,
    ScoreArray,
    Step,
    TimestampUnit,
    TopicMapping,
    is_each,
    parts_of,
)
from streamwatch.edge.decoders.scanner.contents import (
    BY_LARGEST,
    BY_THRESHOLD,
    ISO_8601,
    MICROSECONDS,
    MILLISECONDS,
    NAMED,
    NANOSECONDS,
    SECONDS,
    ScoreRule,
)
from streamwatch.edge.decoders.scanner.shape import (
    BY_INDEX,
    BY_NAME,
    EACH,
    EACH_FIELD,
    Fields,
)
from streamwatch.edge.decoders.scanner.tokens import TokenTable

# The compiled loop's arguments for a topic, as tuples of arrays.


class Plan(NamedTuple):
    """Leaves of a topic's contents by their meaning; -1 where records do not carry one."""

    fields: Fields
    key: int
    """Leaf of the record's key."""
    header_leaf: NDArray[np.int64]
    """By wanted header, like the next two: its leaf, and position and size of its name in `header_names`."""
    header_at: NDArray[np.int64]
    header_size: NDArray[np.int64]
    header_names: NDArray[np.uint8]
    id: NDArray[np.int64]
    """Leaves of the id: one, or several that are joined with `/`."""
    affixes: NDArray[np.uint8]
    """Prefix, then suffix, that are cut off an id of one content."""
    affix_sizes: NDArray[np.int64]
    """Sizes of prefix and suffix."""
    model: NDArray[np.int64]
    """Leaves of the model's name, in order; empty where the name is the same for all records."""
    fold: int
    model_of_fold: NDArray[np.int64]
    """Leaves of the model's name, then that of the fold, which together are one name; empty without folds."""
    prediction: int
    label: int
    prediction_threshold: int
    """Leaf of the threshold that decides a prediction's class; `label_threshold` decides a label's."""
    label_threshold: int
    timestamp: int
    label_probability: int
    label_requested: int
    least_probability: float
    """Smallest valid `label_probability`."""
    kind: int
    segments: NDArray[np.int64]
    """Leaves of the values of a prediction's segments, in order."""
    arrays_of_predictions: int
    """Bit set of the arrays whose elements are predictions; 0 where a record is a single one."""
    arrays_of_labels: int
    id_in_element: bool
    """Whether elements of arrays have ids of their own, or events are fields of an object; if neither, an
    element's id is `<id>#<index>`."""
    refused: NDArray[np.int64]
    """Leaves that must be absent: a record with one of them is unusual."""
    of_predictions: ScoreRule
    of_labels: ScoreRule
    of_array: NDArray[np.int64]
    """Numbers of the classes of scores that are an array, in order; empty where scores are an object."""
    model_number: int
    """Number of the model that is the same for all records, else -1; so are the next two for classes."""
    prediction_number: int
    label_number: int
    side: int
    """Side that the topic carries; -1 where `kind` decides."""
    kind_text: NDArray[np.uint8]
    """Texts of `kind` for a prediction, then for a label."""
    kind_sizes: NDArray[np.int64]
    unit: int
    """Unit of timestamps."""
    prefix: NDArray[np.uint8]
    """Text of keys before the id: the namespace."""


class Tables(NamedTuple):
    """Tables of names met before. A name of several contents has `SEPARATOR` after each."""

    models: TokenTable
    folds: TokenTable
    """Names of model and fold together."""
    predictions: TokenTable
    labels: TokenTable
    segments: TokenTable
    """Values of all segments together; the number is 1 + that in the vocabulary, 0 without segments."""


UNITS: Final[Mapping[TimestampUnit, int]] = {
    "ms": MILLISECONDS,
    "s": SECONDS,
    "us": MICROSECONDS,
    "ns": NANOSECONDS,
    "iso8601": ISO_8601,
}
"""Unit in a mapping → unit in the compiled loop."""
MAX_FIELDS: Final = 62
THRESHOLDS: Final[Mapping[str, str]] = {side: f"{side}_threshold" for side in ("prediction", "label")}
"""Slot of the class → slot of the threshold that decides it."""
_UNREAD: Final = tuple(field for each in CARRIED if each.name != "sampling" for field in each.fields)
"""Fields of carried numbers that the scanner does not read: records with one are unusual."""
_SIDES: Final[Mapping[Side, int]] = {"prediction": PREDICTION, "label": LABEL, "both": -1}
_CONSTANTS: Final = frozenset({"model", "prediction", "label"})
"""Slots that may be constant, the same for every record."""
_JOINED: Final = frozenset({"id", "model"})
"""Slots that may be joined from several contents."""


_NAMED_CLASS: Final = ScoreRule(NAMED, 0.0, -1, -1, probability=False, gives_scores=False)


class ScoreRules(NamedTuple):
    """Rules that make classes of scores, for both sides."""

    of_predictions: ScoreRule = _NAMED_CLASS
    of_labels: ScoreRule = _NAMED_CLASS
    of_scores: tuple[int, ...] = ()
    """Numbers of the classes of an array at the path of `scores`; empty where there is an object."""
    of_largest: tuple[int, ...] = ()
    """Numbers of the classes of an array at the path `largest` of the class rule; empty for an object."""


def score_rules(mapping: TopicMapping, number: Callable[[str], int]) -> ScoreRules | None:
    """Make the rules of a mapping; None where one of its classes has no number.

    Parameters
    ----------
    mapping
        Mapping of one topic.
    number
        Function from a class's name to its number; negative if it has none.
    """
    scores = mapping.scores.classes if isinstance(mapping.scores, ScoreArray) else ()
    largest = mapping.prediction.classes if isinstance(mapping.prediction, ClassOfLargest) else ()
    of_scores, of_largest = (
        tuple(number(mapping.classes.get(name, name)) for name in names) for names in (scores, largest)
    )
    rules = [_rule(rule, number) for rule in (mapping.prediction, mapping.label)]
    if min((0, *of_scores, *of_largest)) < 0 or not all(map(is_name, scores)) or None in rules:
        return None
    of_predictions, of_labels = (rule or _NAMED_CLASS for rule in rules)
    return ScoreRules(of_predictions, of_labels._replace(probability=False), of_scores, of_largest)


def _rule(rule: object, number: Callable[[str], int]) -> ScoreRule | None:
    """Make the rule that finds a class; None where a class has no number."""
    if isinstance(rule, ClassOfLargest):
        return _NAMED_CLASS._replace(rule=BY_LARGEST)
    if not isinstance(rule, ClassOfScore):
        return _NAMED_CLASS
    above, below = number(rule.above), number(rule.below)
    if min(above, below) < 0:
        return None
    threshold = math.nan if isinstance(rule.threshold, str) else float(rule.threshold)
    return ScoreRule(BY_THRESHOLD, threshold, above, below, probability=rule.probability, gives_scores=False)


_EACH: Final = -1
"""Step from an array to each of its elements."""
_EACH_FIELD: Final = -2
"""Step from an object to the content of each of its fields."""


class ContentTree:
    """Tree of a topic's paths: objects and arrays are nodes, contents are leaves, also outside values."""

    def __init__(self) -> None:
        self.nodes: list[dict[Step, int | str]] = [{}]
        self.leaves = 0
        self.shared = -1
        """Number of leaves of the whole record; -1 until a leaf in elements is added."""
        self.outside: dict[InKey | InHeader, int] = {}
        self.arrays: dict[int, int] = {}
        """Node → number of the array, for each array whose elements are wanted."""
        self._array_of: dict[int, int] = {}  # leaf in elements → number of its array
        self.named = -1
        """Leaf of the name of each field of an object whose fields are events; -1 without any."""
        self._named_node: int | None = None

    def content(self, location: FieldLocation) -> int | None:
        """Return the leaf at a location, added if it is new; None where the scanner cannot read it."""
        match location:
            case InArray(path, each) if any(isinstance(step, Named) for step in (*path, *(each or ()))):
                return None
            case InValue(path) | InArray(path, None):
                return self._leaf(path)
            case InArray(path, each):
                return self._leaf((*path, _EACH, *(each or ())))
            case InKey(()) | InHeader():
                if location not in self.outside:
                    self.outside[location] = self.leaves
                    self.leaves += 1
                return self.outside[location]
            case InFields(path, "", "", each) if path and not any(
                isinstance(step, Named) for step in (*path, *(each or ()))
            ):
                return self._name(path) if each is None else self._leaf((*path, _EACH_FIELD, *each))
            case InKey() | InFields() | Constant() | InTopic():
                return None

    def array_of(self, leaf: int) -> int | None:
        """Return the number of the array in whose elements a leaf is; None for a leaf of the whole record."""
        return self._array_of.get(leaf)

    def _name(self, path: Sequence[Step]) -> int | None:
        """Return the leaf of the names of an object's fields; None unless their contents are wanted, too."""
        node = 0
        for step in path:
            below = self.nodes[node].get(step)
            if not isinstance(below, str):
                return None
            node = int(below)
        return self.named if node == self._named_node else None

    def _leaf(self, path: Sequence[Step]) -> int | None:
        """Return the leaf at a path, added if it is new; None where it conflicts with other paths."""
        node, array = 0, None
        for step, following in pairwise((*path, None)):
            assert step is not None  # noqa: S101 - only the last `following` is None
            fields = self.nodes[node]
            if any(form_of(other) != form_of(step) for other in fields):
                return None
            if step in (_EACH, _EACH_FIELD):
                array = self.arrays.setdefault(node, len(self.arrays))
            if step == _EACH_FIELD and self._named_node is None:
                self._named_node, self.named = node, self.leaves
                self._array_of[self.leaves] = self.arrays[node]
                self.leaves += 1
            if step == _EACH_FIELD and self._named_node != node:
                return None
            if following is None:
                found = fields.setdefault(step, self.leaves)
                if isinstance(found, str):
                    return None
                if found == self.leaves:
                    self.leaves += 1
                    if array is not None:
                        self._array_of[found] = array
                return found
            below = fields.setdefault(step, f"{len(self.nodes)}")
            if isinstance(below, int):
                return None
            node = int(below)
            if node == len(self.nodes):
                self.nodes.append({})
        return None  # the value itself is no leaf


def form_of(step: Step) -> int:
    """Return the form that a node must have for this step."""
    if isinstance(step, str):
        return BY_NAME
    return {_EACH: EACH, _EACH_FIELD: EACH_FIELD}.get(cast("int", step), BY_INDEX)


def _in_elements(location: AnyLocation | None) -> bool:
    """Tell whether a location, or a part of it, is in each element of an array."""
    return any(map(is_each, parts_of(location)))


def _add_in_order(tree: ContentTree, locations: Iterable[AnyLocation | None]) -> None:
    """Add the leaves of the whole record before those in elements."""
    for in_elements in (False, True):
        if in_elements:
            tree.shared = tree.leaves
        for location in locations:
            for part in parts_of(location):
                if is_each(part) == in_elements:
                    tree.content(part)


def plan_of(  # noqa: C901, PLR0911, PLR0912 - a reason each; what each mapping says
    side: Side,
    mapping: TopicMapping,
    locations: Mapping[str, AnyLocation | None],
    numbers: Mapping[str, int],
    prefix: bytes,
    *,
    rules: ScoreRules | None,
    reads_folds: bool,
) -> Plan | None:
    """Make the plan of a topic; None where the compiled loop cannot read its records.

    Parameters
    ----------
    side
        What the topic carries.
    mapping
        Mapping of the topic.
    locations
        Location of each slot; those of id and model may be joined.
    numbers
        Numbers of the names that are the same for every record, by slot.
    prefix
        Text of keys before the id.
    rules
        Rules that make classes of scores; None where a class has no number: then there is no plan.
    reads_folds
        Whether every fold may predict every id; if not, records with a fold are unusual.
    """
    tree = ContentTree()
    _add_in_order(tree, locations.values())
    leaves: dict[str, int] = {}
    joined: dict[str, list[int]] = {}
    affixes = ("", "")
    for slot, location in locations.items():
        match location:
            case None:
                continue
            case Constant() | InTopic():
                if slot not in _CONSTANTS or numbers.get(slot, -1) < 0:
                    return None
            case Joined(parts, _, lost):
                if slot == "id" and any(map(any, lost)):
                    if len(parts) > 1:
                        return None
                    affixes = lost[0]
                found = [tree.content(part) for part in parts if not (slot == "model" and _is_fixed(part))]
                contents = [leaf for leaf in found if leaf is not None]
                if slot not in _JOINED or len(contents) < max(len(found), 1):
                    return None
                joined[slot] = contents
            case _:
                leaf = tree.content(location)
                if leaf is None:
                    return None
                leaves[slot] = leaf
    for slot in _JOINED & leaves.keys():
        joined[slot] = [leaves[slot]]
    if rules is None:
        return None
    by_largest = "prediction" in leaves and rules.of_predictions.rule == BY_LARGEST
    scored = leaves.get("prediction" if by_largest else "scores", -1)
    gives_scores = scored >= 0 and leaves.get("scores") == scored
    of_array = rules.of_largest if by_largest else rules.of_scores
    if gives_scores and of_array != rules.of_scores:
        return None
    fold = leaves.get("fold", -1) if reads_folds else -1
    unread = ("scores", *_UNREAD) if reads_folds else ("scores", "fold", *_UNREAD)
    refused = [leaves[slot] for slot in unread if slot in leaves]
    fields, outside = fields_of(tree, scored), tree.outside
    if fields is None or "id" not in joined or _in_elements(locations.get("kind")):
        return None
    headers = [(where.name.encode(), leaf) for where, leaf in outside.items() if isinstance(where, InHeader)]
    ends = [text.encode() for text in affixes]
    kind = mapping.kind or KindRule("", "", "")
    texts = [text.encode() for text in (kind.prediction, kind.label)]
    sizes = [len(name) for name, _ in headers]
    return Plan(
        fields=fields,
        key=outside.get(InKey(), -1),
        header_leaf=_integers([leaf for _, leaf in headers]),
        header_at=_starts(sizes),
        header_size=_integers(sizes),
        header_names=_padded(b"".join(name for name, _ in headers)),
        id=_integers(joined["id"]),
        affixes=_padded(b"".join(ends)),
        affix_sizes=_integers(list(map(len, ends))),
        model=_integers(joined.get("model", [])),
        fold=fold,
        model_of_fold=_integers([*joined.get("model", []), fold] if fold >= 0 else []),
        prediction=leaves.get("prediction", -1),
        label=leaves.get("label", -1),
        prediction_threshold=leaves.get(THRESHOLDS["prediction"], -1),
        label_threshold=leaves.get(THRESHOLDS["label"], -1),
        timestamp=leaves.get("timestamp", -1),
        label_probability=leaves.get("label_probability", -1),
        label_requested=leaves.get("label_requested", -1),
        least_probability=mapping.min_label_probability,
        kind=leaves.get("kind", -1),
        segments=_integers([leaf for slot, leaf in leaves.items() if slot.startswith(SEGMENT_SLOT)]),
        arrays_of_predictions=_arrays(tree, locations, of_labels=False),
        arrays_of_labels=_arrays(tree, locations, of_labels=True),
        id_in_element=_in_elements(locations["id"]) or tree.named >= 0,
        refused=_integers([leaf for leaf in refused if leaf != scored]),
        of_predictions=rules.of_predictions._replace(gives_scores=gives_scores),
        of_labels=rules.of_labels,
        of_array=_integers(of_array),
        model_number=numbers.get("model", -1),
        prediction_number=numbers.get("prediction", -1),
        label_number=numbers.get("label", -1),
        side=_SIDES[side],
        kind_text=_padded(b"".join(texts)),
        kind_sizes=_integers([len(text) for text in texts]),
        unit=UNITS[mapping.timestamp_unit],
        prefix=np.frombuffer(prefix, np.uint8),
    )


def _is_fixed(part: FieldLocation) -> bool:
    """Tell whether a part of a name is the same for every record."""
    return isinstance(part, Constant | InTopic)


def _arrays(tree: ContentTree, locations: Mapping[str, AnyLocation | None], *, of_labels: bool) -> int:
    """Return the bit set of arrays whose elements have contents of one side's events."""
    found: set[int] = set()
    for slot, location in locations.items():
        shared = slot in ("id", "model", "timestamp")
        if location is None or not (shared or (slot in ("label", THRESHOLDS["label"])) == of_labels):
            continue
        for part in parts_of(location):
            if is_each(part) and (leaf := tree.content(part)) is not None:
                found.add(cast("int", tree.array_of(leaf)))
    return sum(1 << array for array in found)


def fields_of(tree: ContentTree, scored: int = -1) -> Fields | None:
    """Convert a tree to arrays for the compiled loop; None where it has more than `MAX_FIELDS`.

    Parameters
    ----------
    tree
        Tree of the paths.
    scored
        Leaf of the scores; -1 without any.
    """
    steps = [step for node in tree.nodes for step in node]
    names = [step.encode() if isinstance(step, str) else b"" for step in steps]
    targets = [target for node in tree.nodes for target in node.values()]
    if len(names) > MAX_FIELDS:
        return None
    sizes = [len(name) for name in names]
    first = np.cumsum([0, *map(len, tree.nodes)]).tolist()
    shared = tree.leaves if tree.shared < 0 else tree.shared
    nodes = [-1 if isinstance(target, int) else int(target) for target in targets]

    def inside(node: int) -> int:
        """Return the bit set of the fields in a node and below it."""
        own = range(first[node], first[node + 1])
        return sum(1 << field | (inside(nodes[field]) if nodes[field] >= 0 else 0) for field in own)

    return Fields(
        first=_integers(first),
        form=_integers([form_of(next(iter(node), "")) for node in tree.nodes]),
        array=_integers([tree.arrays.get(node, -1) for node in range(len(tree.nodes))]),
        inside=np.array([inside(node) for node in range(len(tree.nodes))], np.uint64),
        at=_starts(sizes),
        size=_integers(sizes),
        word=np.array([int.from_bytes(name[:8], "little") for name in names], np.uint64),
        element=_integers([step if isinstance(step, int) else -1 for step in steps]),
        leaf=_integers([target if isinstance(target, int) else -1 for target in targets]),
        node=_integers(nodes),
        names=_padded(b"".join(names)),
        named=tree.named,
        scored=scored,
        shared=shared,
        width=tree.leaves - shared,
    )


def _integers(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def _starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the starts of concatenated texts of these sizes."""
    return np.cumsum([0, *sizes])[:-1].astype(np.int64)


def _padded(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content + bytes(PADDING), np.uint8)
