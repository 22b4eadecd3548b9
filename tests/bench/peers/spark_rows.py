"""A job on Spark as one would write it: join of two streams, then each model row by row, with river.

    python -m tests.bench.peers.spark_rows FOLDER

Reads FOLDER/predictions/*.json and FOLDER/labels/*.json, a file a micro-batch. It has no order by time across
batches, no expiry, duplicates or corrections, and tells nobody but how many outcomes there were; the state of
a model is its pickle. Its estimates are those of a model by default (`row_estimators`).
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr, timestamp_seconds
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from tests.bench.peers.row_estimators import RowEstimators
from tests.spark.one_machine import CONFIGURATION

BUCKETS = 3


def evaluate(key: Any, batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Feed the outcomes of one model, row by row, to its estimators."""
    estimators = pickle.loads(state.get[0]) if state.exists else RowEstimators()  # noqa: S301 - its own
    for frame in batches:
        for true_class, predicted_class in zip(frame["label"], frame["prediction"], strict=True):
            estimators.update(true_class, predicted_class)
    state.update((pickle.dumps(estimators),))
    yield pd.DataFrame({"model": [key[0]], "outcomes": [estimators.outcomes]})


def main(folder: str) -> None:
    """Read all there is, and say how many outcomes there were."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", BUCKETS)
    for name, value in CONFIGURATION.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()

    def read(side: str, columns: str) -> Any:
        stream = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(f"{folder}/{side}")
        seconds = col(f"{side}_ms") / 1_000
        return stream.withColumn(side, timestamp_seconds(seconds)).withWatermark(side, "1 hour")

    predictions = read("predictions", "id string, model string, prediction string, predictions_ms long")
    labels = read("labels", "id string, label string, labels_ms long").withColumnRenamed("id", "label_id")
    soon = "id = label_id and labels >= predictions and labels <= predictions + interval 1 hour"
    told = (
        predictions.join(labels, expr(soon))
        .select("model", "prediction", "label")
        .groupBy("model")
        .applyInPandasWithState(
            evaluate,
            "model string, outcomes long",
            "state binary",
            "append",
            GroupStateTimeout.NoTimeout,
        )
    )
    found: dict[str, int] = {}

    def take(frame: Any, _: int) -> None:
        found.update({row.model: row.outcomes for row in frame.collect()})

    query = (
        told.writeStream.outputMode("append")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .foreachBatch(take)
        .start()
    )
    query.awaitTermination()
    print(sum(found.values()))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
