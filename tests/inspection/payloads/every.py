"""Payloads of many shapes, one file for each family."""

from __future__ import annotations

from tests.inspection.payloads.classes import CLASSES
from tests.inspection.payloads.elements import ELEMENTS
from tests.inspection.payloads.envelopes import ENVELOPES
from tests.inspection.payloads.fields import FIELDS
from tests.inspection.payloads.ids import IDS
from tests.inspection.payloads.kinds import KINDS
from tests.inspection.payloads.models import MODELS
from tests.inspection.payloads.names import NAMES
from tests.inspection.payloads.rarity import RARITY
from tests.inspection.payloads.scores import SCORES
from tests.inspection.payloads.servers import SERVERS
from tests.inspection.payloads.tables import TABLES
from tests.inspection.payloads.times import TIMES
from tests.inspection.payloads.trades.products import PRODUCTS
from tests.inspection.payloads.trades.unusual_paths import PATHS
from tests.inspection.payloads.trades.words import WORDS
from tests.inspection.story import Maker

EVERY: tuple[Maker, ...] = (
    *IDS,
    *CLASSES,
    *RARITY,
    *SCORES,
    *TIMES,
    *NAMES,
    *ENVELOPES,
    *FIELDS,
    *TABLES,
    *ELEMENTS,
    *SERVERS,
    *MODELS,
    *KINDS,
    *PRODUCTS,
    *WORDS,
    *PATHS,
)
