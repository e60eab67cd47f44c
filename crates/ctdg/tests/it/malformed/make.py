"""Makes the malformed files that are not plain text. Needs numpy, pyarrow and zstandard."""
import gzip, io, os, struct
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, zstandard

os.chdir(os.path.dirname(os.path.abspath(__file__)))
rows = "src,dst,time\n" + "".join(f"{i % 7},{i % 5 + 7},{i}\n" for i in range(400))

packed = gzip.compress(rows.encode(), mtime=0)
open("truncated.csv.gz", "wb").write(packed[: len(packed) // 2])
damaged = bytearray(packed)
damaged[len(packed) // 2] ^= 0xFF
open("corrupt.csv.gz", "wb").write(damaged)
packed = zstandard.compress(rows.encode())
open("truncated.csv.zst", "wb").write(packed[: len(packed) // 2])
open("corrupt.csv.zst", "wb").write(packed[:4] + b"\xff" * 20 + packed[24:])

open("non-utf8.csv", "wb").write(b"src,dst,time\na,b,1\n\xff\xfe,b,2\n")
open("non-utf8-header.csv", "wb").write(b"src,dst\xff,time\n1,2,3\n")

def npy(name, array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    open(name, "wb").write(buffer.getvalue())
    return buffer.getvalue()

npy("feature-rows_features.npy", np.zeros((2, 3), np.float32))
npy("feature-type_features.npy", np.array([["a"], ["b"], ["c"]]))
npy("feature-nan_features.npy", np.array([[1.0], [np.nan], [2.0]]))
whole = npy("feature-truncated_features.npy", np.ones((3, 4), np.float64))
open("feature-truncated_features.npy", "wb").write(whole[:-9])
open("feature-garbage_features.npy", "wb").write(b"this is no npy file at all")
npy("node-rows_node_features.npy", np.ones((9, 2), np.float32))
for name in ["feature-rows", "feature-type", "feature-nan", "feature-truncated", "feature-garbage", "node-rows"]:
    open(f"{name}.csv", "w").write("src,dst,time\n0,1,1\n1,2,2\n0,2,3\n")

def parquet(name, **columns):
    pq.write_table(pa.table(columns), name)
    return open(name, "rb").read()

parquet("null.parquet", src=pa.array([1, 2, None]), dst=pa.array([2, 3, 4]), time=pa.array([1.0, 2.0, 3.0]))
parquet("float-id.parquet", src=pa.array([1.5]), dst=pa.array([2.0]), time=pa.array([1.0]))
parquet("list.parquet", src=pa.array([[1]]), dst=pa.array([2]), time=pa.array([1.0]))
parquet("text-time.parquet", src=pa.array([1]), dst=pa.array([2]), time=pa.array(["noon"]))
parquet("negative-id.parquet", src=pa.array([1, -4]), dst=pa.array([2, 3]), time=pa.array([1.0, 2.0]))
parquet("missing-column.parquet", a=pa.array([1]), b=pa.array([2]))
whole = parquet("truncated.parquet", src=pa.array([1]), dst=pa.array([2]), time=pa.array([1.0]))
open("truncated.parquet", "wb").write(whole[:-20])

magic = b"CTDG\r\n\x1a\n"
header = lambda version, *counts: magic + struct.pack("<9Q", version, *counts) + bytes(128 - 80)
open("truncated.ctdg", "wb").write(header(1, 3, 2, 0, 0, 0, 0, 0, 0)[:100])
open("cut-columns.ctdg", "wb").write(header(1, 3, 2, 0, 0, 0, 0, 0, 0) + bytes(30))
open("version.ctdg", "wb").write(header(9, 3, 2, 0, 0, 0, 0, 0, 0))
open("absurd.ctdg", "wb").write(header(1, 2**63, 2, 0, 0, 0, 0, 0, 0))
pad = lambda column: column + bytes(-len(column) % 64)
columns = pad(struct.pack("<d", 1.0)) + pad(struct.pack("<I", 0)) + pad(struct.pack("<I", 7)) + pad(struct.pack("<f", 0))
open("node-out-of-range.ctdg", "wb").write(header(1, 1, 2, 0, 0, 0, 0, 0, 0) + columns)
columns = pad(struct.pack("<d", float("nan"))) + pad(bytes(4)) * 2 + pad(bytes(4))
open("nan-time.ctdg", "wb").write(header(1, 1, 2, 0, 0, 0, 0, 0, 0) + columns)

# Bipartite, one source (0) and one destination (1), but the event leads the other way.
columns = pad(struct.pack("<d", 1.0)) + pad(struct.pack("<I", 1)) + pad(struct.pack("<I", 0)) + pad(struct.pack("<f", 0))
open("wrong-side.ctdg", "wb").write(header(1, 1, 2, 0, 0, 2, 0, 0, 0) + columns)
# Names out of order, and a name twice.
columns = pad(struct.pack("<d", 1.0)) + pad(struct.pack("<I", 0)) + pad(struct.pack("<I", 1)) + pad(struct.pack("<f", 0))
open("unsorted-names.ctdg", "wb").write(header(1, 1, 2, 0, 0, 0, 1, 0, 0) + columns + pad(struct.pack("<2Q", 7, 5)))
open("repeated-name.ctdg", "wb").write(header(1, 1, 2, 0, 0, 0, 2, 0, 2) + columns + pad(struct.pack("<2Q", 1, 2)) + b"aa")
# Version 2 says in which form times are; 7 is none.
open("time-format.ctdg", "wb").write(header(2, 1, 2, 0, 0, 0, 0, 0, 0)[:80] + struct.pack("<Q", 7) + bytes(40) + columns)
