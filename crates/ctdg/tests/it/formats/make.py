"""Makes small well-formed files with other programs' writers. Needs numpy, pandas and pyarrow."""
import os
import numpy as np, pandas as pd, pyarrow as pa, pyarrow.parquet as pq

os.chdir(os.path.dirname(os.path.abspath(__file__)))

# DyGLib's trio as its preprocessing writes it: an unnamed index, ids from 1, a row of padding in both matrices.
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
