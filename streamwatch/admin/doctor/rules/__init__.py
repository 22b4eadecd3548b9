"""Every rule there is, one file each."""

from __future__ import annotations

from streamwatch.admin.doctor.rules import (
    classes_disjoint,
    clock_behind,
    detectors_silent,
    disk_low,
    early_hint_stands,
    evicted,
    held_back,
    horizon_short,
    labels_cut_off,
    labels_orphaned,
    labels_sorted,
    lag_grows,
    limits_reached,
    log_lost,
    not_durable,
    not_ready,
    nothing_joins,
    out_of_order,
    persistent_wins,
    segments_full,
    undecodable,
    undelivered,
)

RULES = (
    classes_disjoint.RULE,
    clock_behind.RULE,
    detectors_silent.RULE,
    disk_low.RULE,
    early_hint_stands.RULE,
    evicted.RULE,
    held_back.RULE,
    horizon_short.RULE,
    labels_cut_off.RULE,
    labels_orphaned.RULE,
    labels_sorted.RULE,
    lag_grows.RULE,
    limits_reached.RULE,
    log_lost.RULE,
    not_durable.RULE,
    not_ready.RULE,
    nothing_joins.RULE,
    out_of_order.RULE,
    persistent_wins.RULE,
    segments_full.RULE,
    undecodable.RULE,
    undelivered.RULE,
)
"""In alphabetical order; findings are ordered by their weight."""
