"""Why a record can be invalid: a closed set, the same for every format."""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "schema_registry_framing": "starts with the Confluent wire byte where plain JSON or text was expected",
    "invalid_utf8": "is not UTF-8",
    "invalid_json": "is not JSON, is nested too deeply, or has a number out of range",
    "not_an_object": "is JSON, but not an object",
    "missing_id": "has no id where the mapping looks for it",
    "missing_model": "has no model where the mapping looks for it",
    "missing_prediction": "has no predicted class where the mapping looks for it",
    "missing_label": "has no true class where the mapping looks for it",
    "missing_id_part": "has no content at one of the places that make its id together",
    "missing_model_part": "has no content at one of the places that make its model together",
    "missing_prediction_part": "has no content at one of the places that make its predicted class together",
    "missing_label_part": "has no content at one of the places that make its true class together",
    "invalid_id": "its id is not 1 to 128 bytes of text without control characters, nor a number",
    "invalid_model": "its model is not 1 to 128 bytes of visible text without controls, nor a number",
    "invalid_class": "its class is not 1 to 128 bytes of visible text without controls, nor a number",
    "invalid_timestamp": "its timestamp is not one in the configured unit, or outside 1970 to 9999",
    "invalid_scores": "its scores are not an object of class → probability, or too many",
    "invalid_score": "its score, of which a threshold makes the class, is no finite number or probability",
    "invalid_class_scores": "its scores, of which the largest makes the class, are no finite numbers",
    "missing_elements": "has no array, or an empty one, where the mapping looks for one event per element",
    "element_counts_differ": "arrays that the mapping reads element by element differ in length",
    "too_many_elements": "has more elements than are read of one record",
    "not_in_envelope": "has not the form of the envelope that the settings name for its topic",
    "fold_without_scheme": "is a prediction of one fold, and the settings have no folds.scheme",
    "invalid_fold": "its fold is not a whole number from 0 to folds.k - 1",
    "invalid_segment": "one of its segments is not 1 to 128 bytes of text without control characters",
    "invalid_key": "its key names no schema that is known, or is not what that schema says",
    "header_encoding": "has a header whose name is not UTF-8",
    "schema_missing": "names no schema, neither in its header nor before its contents",
    "schema_unavailable": "names a schema that was still waited for when the record's log was gone",
    "schema_unknown": "names a schema that the registry does not have",
    "schema_unusable": "names a schema that is not one of its format, or that no reader is made of",
    "invalid_avro": "is not what its Avro schema says",
    "invalid_protobuf": "is not what its Protocol Buffers schema says",
    "record_structure": "its lengths do not fit one another",
    "record_too_large": "has more bytes than kafka.max_record_bytes",
    "too_many_headers": "has more headers than are read",
    "unknown_kind": "what tells predictions from labels says neither",
}
"""Every reason a record can be invalid for, and what it says about the record."""
