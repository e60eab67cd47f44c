#!/usr/bin/env python3
"""Times one model of DyGLib with DyGLib's own code, unchanged.

    python3 scripts/peers/time_dyglib.py --checkout DyGLib --data uci.csv.gz --model TGN

The data becomes DyGLib's files, with 172 features of nodes and edges: zeros, or random ones with --features random, which cost DyGLib the
same and a program that leaves out zeros more. Settings are DyGLib's best ones for --dataset, in batches of 200. A step is the body of the loop
of `train_link_prediction.py` without its metrics. Steps are spread over the epoch; a model with a memory is trained from the start
of the epoch to its middle, where the steps are timed.
"""

import contextlib
import io
import os
import random
import sys
import time
import warnings

from common import BATCH, WITH_MEMORY, Clock, arguments, inside, report

WIDTH = 172


def convert(csv, name, folder, features):
    """Writes `ml_NAME.csv` and the tables of features, as DyGLib's preprocessing does."""
    import numpy as np
    import pandas as pd

    folder = inside(os.path.join(folder, "processed_data", name))
    if os.path.exists(os.path.join(folder, f"ml_{name}_node.npy")):
        return
    frame = pd.read_csv(csv).rename(columns={"src": "u", "dst": "i", "timestamp": "ts"})[["u", "i", "ts", "label"]]
    frame["ts"] = frame["ts"].astype(float)
    frame["idx"] = range(1, len(frame) + 1)
    frame.to_csv(os.path.join(folder, f"ml_{name}.csv"))
    numbers = np.random.default_rng(0)
    for table, n_rows in (("", len(frame)), ("_node", int(frame[["u", "i"]].to_numpy().max()))):
        values = np.zeros((n_rows + 1, WIDTH))
        if features == "random":
            values[1:] = numbers.standard_normal((n_rows, WIDTH))
        np.save(os.path.join(folder, f"ml_{name}{table}.npy"), values)


def main():
    parser = arguments(__doc__, "github.com/yule-BUAA/DyGLib")
    parser.add_argument("--dataset", default="uci", help="DyGLib's name of the data, for its settings")
    parser.add_argument("--features", default="zeros", choices=["zeros", "random"])
    parser.add_argument("--only-convert", action="store_true", help="write DyGLib's files and end")
    ask = parser.parse_args()
    csv, checkout, work = os.path.abspath(ask.data), os.path.abspath(ask.checkout), inside(ask.work)
    convert(csv, ask.dataset, work, ask.features)
    if ask.only_convert:
        return
    os.chdir(work)
    sys.path.insert(0, checkout)
    warnings.filterwarnings("ignore")
    # Since Python 3.11 no sample is drawn from a set; before, a tuple was made of it.
    of_sequence = random.sample
    random.sample = lambda population, k: of_sequence(tuple(population), k)

    import numpy as np
    import torch
    from evaluate_models_utils import evaluate_model_link_prediction
    from models.CAWN import CAWN
    from models.DyGFormer import DyGFormer
    from models.GraphMixer import GraphMixer
    from models.MemoryModel import MemoryModel, compute_src_dst_node_time_shifts
    from models.modules import MergeLayer
    from models.TCL import TCL
    from models.TGAT import TGAT
    from utils.DataLoader import get_idx_data_loader, get_link_prediction_data
    from utils.load_configs import get_link_prediction_args
    from utils.utils import NegativeEdgeSampler, convert_to_gpu, create_optimizer, get_neighbor_sampler, set_random_seed

    name = ask.model
    sys.argv = ["train_link_prediction.py", "--dataset_name", ask.dataset, "--model_name", name, "--load_best_configs"]
    sys.argv += ["--gpu", "0" if ask.device == "cuda" else "-1"]
    with contextlib.redirect_stdout(sys.stderr):
        args = get_link_prediction_args(is_evaluation=False)
        data = get_link_prediction_data(dataset_name=ask.dataset, val_ratio=0.15, test_ratio=0.15)
    nodes, edges, full, train, _, test, _, _ = data
    set_random_seed(seed=0)

    def sampler_of(events, seed):
        options = dict(sample_neighbor_strategy=args.sample_neighbor_strategy, time_scaling_factor=args.time_scaling_factor)
        return get_neighbor_sampler(data=events, seed=seed, **options)

    sampler = sampler_of(train, 0)
    given = dict(node_raw_features=nodes, edge_raw_features=edges, neighbor_sampler=sampler, time_feat_dim=args.time_feat_dim)
    given.update(dropout=args.dropout, device=args.device, num_layers=args.num_layers)
    if name == "TGAT":
        backbone = TGAT(num_heads=args.num_heads, **given)
    elif name in WITH_MEMORY:
        shifts = compute_src_dst_node_time_shifts(train.src_node_ids, train.dst_node_ids, train.node_interact_times)
        named = ["src_node_mean_time_shift", "src_node_std_time_shift", "dst_node_mean_time_shift_dst", "dst_node_std_time_shift"]
        backbone = MemoryModel(model_name=name, num_heads=args.num_heads, **dict(zip(named, shifts)), **given)
    elif name == "CAWN":
        del given["num_layers"]
        walks = dict(walk_length=args.walk_length, num_walk_heads=args.num_walk_heads)
        backbone = CAWN(position_feat_dim=args.position_feat_dim, **walks, **given)
    elif name == "TCL":
        backbone = TCL(num_heads=args.num_heads, num_depths=args.num_neighbors + 1, **given)
    elif name == "GraphMixer":
        backbone = GraphMixer(num_tokens=args.num_neighbors, **given)
    else:
        patches = dict(patch_size=args.patch_size, max_input_sequence_length=args.max_input_sequence_length)
        backbone = DyGFormer(channel_embedding_dim=args.channel_embedding_dim, num_heads=args.num_heads, **patches, **given)
    head = MergeLayer(input_dim1=WIDTH, input_dim2=WIDTH, hidden_dim=WIDTH, output_dim=1)
    model = torch.nn.Sequential(backbone, head)
    optimizer = create_optimizer(model, args.optimizer, args.learning_rate, args.weight_decay)
    model = convert_to_gpu(model, device=args.device)
    negatives = NegativeEdgeSampler(src_node_ids=train.src_node_ids, dst_node_ids=train.dst_node_ids)
    loss_of = torch.nn.BCELoss()
    model.train()
    if name != "JODIE":
        backbone.set_neighbor_sampler(sampler)
    if name in WITH_MEMORY:
        backbone.memory_bank.__init_memory_bank__()
    options = {} if name == "DyGFormer" else {"num_neighbors": args.num_neighbors}
    if name == "GraphMixer":
        options["time_gap"] = args.time_gap

    def embed(src, dst, at, of_memory):
        of_memory = of_memory if name in WITH_MEMORY else {}
        both = backbone.compute_src_dst_node_temporal_embeddings
        return both(src_node_ids=src, dst_node_ids=dst, node_interact_times=at, **of_memory, **options)

    def step(batch):
        """The body of the loop over batches in `train_link_prediction.py`."""
        rows = np.arange(batch * BATCH, min((batch + 1) * BATCH, len(train.src_node_ids)))
        src, dst, at = train.src_node_ids[rows], train.dst_node_ids[rows], train.node_interact_times[rows]
        _, other = negatives.sample(size=len(src))
        kinds = [(other, dict(edge_ids=None, edges_are_positive=False)), (dst, dict(edge_ids=train.edge_ids[rows], edges_are_positive=True))]
        # Models with a memory take the negatives first.
        pairs = [embed(src, to, at, more) for to, more in (kinds if name in WITH_MEMORY else kinds[::-1])]
        negative, positive = pairs if name in WITH_MEMORY else pairs[::-1]
        scores = [head(input_1=one, input_2=two).squeeze(dim=-1).sigmoid() for one, two in (positive, negative)]
        loss = loss_of(torch.cat(scores), torch.cat([torch.ones_like(scores[0]), torch.zeros_like(scores[1])]))
        loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if name in WITH_MEMORY:
            backbone.memory_bank.detach_memory_bank()

    n_batches = -(-len(train.src_node_ids) // BATCH)
    n_steps = min(ask.steps, n_batches)
    clock = Clock(ask.device)
    if name in WITH_MEMORY:
        first = (n_batches - n_steps) // 2
        before, timed = range(first), range(first, first + n_steps)
    else:
        before, timed = [n_batches // 2], [(2 * at + 1) * n_batches // (2 * n_steps) for at in range(n_steps)]
    for batch in before:
        step(batch)
    clock.wait()
    for batch in timed:
        clock.step(lambda batch=batch: step(batch))

    seconds = 0.0
    if ask.evaluate:
        some = list(range(min(ask.evaluate * BATCH, len(test.src_node_ids))))
        loader = get_idx_data_loader(some, batch_size=BATCH, shuffle=False)
        others = NegativeEdgeSampler(src_node_ids=full.src_node_ids, dst_node_ids=full.dst_node_ids, seed=2)
        of_all = sampler_of(full, 1)
        limits = dict(num_neighbors=args.num_neighbors, time_gap=args.time_gap)
        start = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):
            evaluate_model_link_prediction(name, model, of_all, loader, others, test, loss_of, **limits)
        clock.wait()
        seconds = time.perf_counter() - start
    report("DyGLib", ask, clock.seconds, n_batches, ask.evaluate and len(loader), seconds)


if __name__ == "__main__":
    main()
