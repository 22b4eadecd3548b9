"""Payloads of many shapes, one file for each family."""

from __future__ import annotations

from tests.lab.inspection.payloads.classes import CLASSES
from tests.lab.inspection.payloads.elements import ELEMENTS
from tests.lab.inspection.payloads.envelopes import ENVELOPES
from tests.lab.inspection.payloads.ids import IDS
from tests.lab.inspection.payloads.kinds import KINDS
from tests.lab.inspection.payloads.models import MODELS
from tests.lab.inspection.payloads.names import NAMES
from tests.lab.inspection.payloads.rarity import RARITY
from tests.lab.inspection.payloads.scores import SCORES
from tests.lab.inspection.payloads.servers import SERVERS
from tests.lab.inspection.payloads.tables import TABLES
from tests.lab.inspection.payloads.times import TIMES
from tests.lab.inspection.payloads.trades.places import PLACES
from tests.lab.inspection.payloads.trades.products import PRODUCTS
from tests.lab.inspection.payloads.trades.words import WORDS
from tests.lab.inspection.story import Maker

EVERY: tuple[Maker, ...] = (
    *IDS,
    *CLASSES,
    *RARITY,
    *SCORES,
    *TIMES,
    *NAMES,
    *ENVELOPES,
    *TABLES,
    *ELEMENTS,
    *SERVERS,
    *MODELS,
    *KINDS,
    *PRODUCTS,
    *WORDS,
    *PLACES,
)
