"""Cold entries, which do not fit into the table: immutable runs of blocks, sorted by digest, in a store.

The join uses them through `ColdEntries`, between two batches and in this order:

1. `oldest_ms(queue)` bounds the record times of a queue's entries, and so their deadlines. When the clock
   reaches the first deadline, or before, `plan_oldest_search(queue, count)` plans a search of the runs, whose
   `run()` is called in a thread, and `finish_oldest_search` returns the oldest entries. They are inserted
   before all others in their queue of the table and fall due there, so that only the table's rules count,
   assume and expire.
2. `look_up(low, high)` returns the entries of a batch's ids, in order of arrival. In their chain, they are
   inserted before the first pending prediction that never left the table. They are guests: they are in no
   queue.
3. After the batch, `mark_dead` removes from the runs the guests that have changed; the others are only
   removed from the table.
4. When the table is full, `evict(queue, entries)` takes the first entries of a queue, whose order is kept in
   `arrival`. Dedup entries are evicted by generation; those before `floor` are dropped.
5. If `plan_merge()` plans a merge, its `run()` is called in a thread, too; `finish_merge` replaces the runs.
6. A commit writes the result of `changes()` in its atomic batch. Values that `run` and `evict` write before
   have no effect until then, and are removed at the next start if they are never committed.

The table counts waiting entries, models and results, and includes cold entries in its counts.
"""
