"""Makes small well-formed files with other programs' writers. Needs numpy, pandas and pyarrow."""
import decimal, os
import numpy as np, pandas as pd, pyarrow as pa, pyarrow.parquet as pq

os.chdir(os.path.dirname(os.path.abspath(__file__)))

# DyGLib's three files as its preprocessing writes them: an unnamed index, ids from 1, a row of padding in both matrices.
events = pd.DataFrame({"u": [1, 2, 1], "i": [4, 4, 3], "ts": [0.0, 2.0, 2.0], "label": [0.0, 1.0, 0.0], "idx": [1, 2, 3]})
events.to_csv("ml_toy.csv")
np.save("ml_toy.npy", np.array([[0, 0], [1, 2], [3, 4], [5, 6]], dtype=np.float64))
np.save("ml_toy_node.npy", np.zeros((5, 172)))

# Timestamps, nullable columns and a dictionary of names, as pandas and pyarrow write them.
when = pd.to_datetime(["2024-01-01 00:00:00.5", "2024-01-01 00:00:02.0"])
table = pa.table({
    "sender": pa.array(["bob", "alice"]).dictionary_encode(),
    "receiver": pa.array(["alice", "carol"]),
    "timestamp": pa.array(when, type=pa.timestamp("ms")),
    "amount": pa.array([1.5, 2.5], type=pa.float32()),
})
pq.write_table(table, "pandas.parquet", compression="snappy")

# Types that a careless reader takes for plain signed integers.
table = pa.table({
    "src": pa.array([3_000_000_000, 3_000_000_001], type=pa.uint32()),
    "dst": pa.array([1, 2], type=pa.int16()),
    "time": pa.array([1, 2], type=pa.date32()),
    "unsigned": pa.array([3_000_000_000, 3_000_000_001], type=pa.uint32()),
    "millis": pa.array([1001, 2000], type=pa.timestamp("ms")),
    "decimal": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.75")], type=pa.decimal128(9, 2)),
})
pq.write_table(table, "types.parquet", store_decimal_as_integer=True)
text = pa.table({"src": ["10", "7"], "dst": ["7", "b"], "time": [1.0, 2.0]})
pq.write_table(text, "text_ids.parquet")

# Node features of saved.csv, rows in bytewise order of names (ann, bob, eve, çelik). saved.ctdg is `hopedgn data convert
# saved.csv saved.ctdg` by version 0.1.0: it shows that old files stay readable and must not be made again.
np.save("saved_node_features.npy", np.array([[1], [2], [4], [8]], dtype=np.float32))
