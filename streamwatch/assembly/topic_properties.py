"""What the settings say of each topic: side, namespace, formats."""

from __future__ import annotations

from streamwatch.core.events import Side
from streamwatch.edge.decoders.joined_text import fixed_text
from streamwatch.settings.formats import FormatSection
from streamwatch.settings.topics import TopicsSection


def sides(section: TopicsSection) -> dict[str, Side]:
    """Sides of all topics, in the order of the settings."""
    labels = {topic.name for topic in section.labels}
    found: dict[str, Side] = {
        topic.name: "both" if topic.name in labels else "prediction" for topic in section.predictions
    }
    for topic in section.labels:
        found.setdefault(topic.name, "label")
    return found


def namespaces(section: TopicsSection) -> dict[str, str]:
    """The namespace of each topic's ids."""
    return {topic.name: topic.namespace for topic in (*section.predictions, *section.labels)}


def shared_models(section: TopicsSection) -> dict[str, list[str]]:
    """Models that mappings name as constants in several namespaces: each is evaluated as one."""
    found: dict[str, set[str]] = {}
    for topic in section.predictions:
        for mapping in topic.all_mappings:
            if (model := fixed_text(mapping.model)) is not None:
                found.setdefault(model, set()).add(topic.namespace)
    return {model: sorted(spaces) for model, spaces in sorted(found.items()) if len(spaces) > 1}


def formats(section: TopicsSection) -> dict[str, FormatSection]:
    """Format of each topic's records."""
    return {topic.name: topic.format for topic in (*section.predictions, *section.labels)}


def key_formats(section: TopicsSection) -> dict[str, FormatSection]:
    """Format of the keys of each topic's records."""
    return {topic.name: topic.key_format for topic in (*section.predictions, *section.labels)}


def schema_formats(section: TopicsSection) -> dict[str, str]:
    """Formats of the topics that need schemas, of values or keys, in words."""
    keys = key_formats(section)
    named = {
        name: values.type if keys[name].type == "json" else f"{values.type} with keys of {keys[name].type}"
        for name, values in formats(section).items()
    }
    return {name: said for name, said in named.items() if said != "json"}
