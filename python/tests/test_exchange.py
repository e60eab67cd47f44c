"""Events go to networkx-temporal and raphtory and come back."""

from __future__ import annotations

import numpy as np
import pytest

import hopedgn

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture(scope="module", params=["integers", "text"])
def mail(request):
    """Whole times, some of them equal, and pairs that meet again."""
    random = np.random.RandomState(4)
    src, dst = random.randint(0, 12, (2, 200))
    dst = np.where(src == dst, (dst + 1) % 12, dst)
    if request.param == "text":
        src, dst = (np.asarray([f"user {i:02}" for i in ids], dtype=object) for ids in (src, dst))
    return hopedgn.Events.from_numpy(src, dst, np.sort(random.randint(0, 120, 200)))


def _sorted(events):
    """Events of one time have no order in graphs."""
    return sorted(events, key=lambda event: (event[2], event[0], event[1]))


class TestNetworkxTemporal:
    tx = property(lambda _: pytest.importorskip("networkx_temporal", reason="networkx-temporal is not installed"))

    def test_events_go_there_and_come_back(self, mail):
        graph = self.tx.from_events(list(mail), directed=True, multigraph=True, as_view=False)
        assert sum(graph.size()) == len(mail)
        src, dst, snapshot = zip(*self.tx.to_events(graph))
        # It counts snapshots, of which there is one for each time.
        times = np.unique(mail.time)[list(snapshot)]
        assert _sorted(hopedgn.Events.from_numpy(src, dst, times, sort=True)) == _sorted(mail)

    def test_data_frames_go_there_and_come_back(self, mail):
        frame = mail.to_pandas()
        graph = self.tx.from_pandas(frame, source="src", target="dst", directed=True)
        back = self.tx.to_pandas(graph)
        events = hopedgn.Events.from_pandas(back, sort=True)
        assert _sorted(events) == _sorted(mail) and events.n_nodes == mail.n_nodes


class TestRaphtory:
    raphtory = property(lambda _: pytest.importorskip("raphtory", reason="raphtory is not installed"))

    def _graph(self, mail):
        graph = self.raphtory.Graph()
        # Times of raphtory are integers.
        frame = mail.to_pandas().astype({"time": np.int64})
        graph.load_edges(frame, time="time", src="src", dst="dst", properties=["label"])
        return graph

    def test_events_go_there_and_come_back(self, mail):
        graph = self._graph(mail)
        assert graph.count_temporal_edges() == len(mail) and graph.count_nodes() == mail.n_nodes
        edges = graph.edges.explode()
        times = [time.t for time in edges.time]
        back = hopedgn.Events.from_numpy(list(edges.src.id), list(edges.dst.id), times, sort=True)
        assert _sorted(back) == _sorted(mail)

    def test_data_frames_come_back_with_properties_as_labels(self, mail):
        labels = (np.arange(len(mail)) % 3 == 0).astype(np.float32)
        labelled = hopedgn.Events.from_numpy(mail.src, mail.dst, mail.time, label=labels)
        frame = self._graph(labelled).edges.to_df(explode=True)
        back = hopedgn.Events.from_pandas(frame, time="update_history", sort=True)
        # Its data frames name nodes by text.
        expected = zip(mail.src.astype(str), mail.dst.astype(str), mail.time, labels)
        assert sorted(zip(back.src, back.dst, back.time, back.label)) == sorted(expected)

    def test_a_model_is_trained_on_the_events_of_a_graph(self, mail):
        frame = self._graph(mail).edges.to_df(explode=True).sort_values("update_history")
        events = hopedgn.Events.from_pandas(frame, time="update_history")
        model = hopedgn.LinkPredictor(epochs=1, device="cpu").fit(events, progress=False)
        best = model.recommend(str(mail.src[0]), k=3)
        assert [one.dst in set(events.dst) for one in best] == [True] * 3
