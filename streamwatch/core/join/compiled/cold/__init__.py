"""Entries that do not fit into the table: immutable runs, sorted by digest, in blocks that a store keeps.

How the join is to use them (`ColdEntries`), between two batches and in this order:

1. `oldest_ms(queue)` tells from when on entries may fall due. Well before the clock reaches it,
   `taking(queue, count)` plans a look through the runs, whose `run()` belongs into a thread, and
   `finish_taking` hands the oldest entries over. They stand before all others in their queue of the table,
   and fall due there: so nothing is counted, assumed or expired by other rules than the table's.
2. `look_up(low, high)` of the ids of a batch gives their entries, in order of arrival. Their place in the
   chain is behind those that were taken back before and before all others in the table. They are guests: they
   are in no queue.
3. After the batch, `take_out` removes those guests that have changed; the others leave the table unchanged.
4. When the table is full, `evict(queue, entries)` takes the first of a queue, whose order is kept in
   `arrival`. Dedup entries go out by generations; `floor` says which are dropped.
5. When `merging()` plans something, its `run()` belongs into the thread, too; `finish_merging` swaps runs.
6. A commit writes what `changes()` gives in its atomic batch. What `run` and `evict` write before it has no
   meaning until then, and is removed at the next start if it never gets one.

Counts of what waits, of models and of results are the table's, which counts its cold entries along.
"""
