"""Steps of training a transformer: what nodes compute, and what they send each other between.

Sizes are those of published models. A layer of width w has 12 w^2 weights, a token takes two operations for each of
them forwards and four backwards (Kaplan et al., Scaling Laws for Neural Language Models, 2020, section 2.1), and
weights, gradients and activations have two bytes. Embeddings, biases and the score part of attention are left out, as
there. The rate at which a node computes is what Narayanan et al. (SC 2021, table 1) measured per GPU for a model of 1.7
billion parameters, 137 Tflop/s.

A node that computes is not seen by the fabric. What it computes is the time between the flows it waits for and those it
sends, one time for each of them, so that all orders of computing and sending are exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from weft.errors import BadInput, require
from weft.units import MB, Size, param, s, show_number, us
from weft.workload.arrivals import check_fabric
from weft.workload.base import Workload
from weft.workload.collectives import ALGORITHMS, MOST, AllReduce, bound_facts, over, spread_us
from weft.workload.demand import Planned
from weft.workload.flows import Flows
from weft.workload.steps import START, Steps, busiest, later, longest, moment, rate, shares, together

NUMBER = 2  # bytes of a weight, a gradient, an activation
BUCKETS = 10_000  # of a step, at most
WEIGHTS = 12  # of a layer, times the width squared


class Model(NamedTuple):
    """What is published of a model."""

    layers: int
    width: int
    sequence: int  # tokens
    source: str

    @property
    def weights(self) -> int:
        """Weights of a layer."""
        return WEIGHTS * self.width**2


MODELS = {
    "bert-tiny": Model(2, 128, 512, "Turc et al., Well-Read Students Learn Better, 2019, table 1"),
    "bert-large": Model(24, 1024, 512, "Devlin et al., NAACL 2019, section 3"),
    "gpt2-xl": Model(
        48, 1600, 1024, "Radford et al., Language Models are Unsupervised Multitask Learners, 2019, table 2"
    ),
    "gpt3-xl": Model(24, 2048, 2048, "Brown et al., NeurIPS 2020, table 2.1"),
    "gpt3": Model(96, 12288, 2048, "Brown et al., NeurIPS 2020, table 2.1"),
    "llama-7b": Model(32, 4096, 2048, "Touvron et al., LLaMA, 2023, table 2"),
    "llama-65b": Model(80, 8192, 2048, "Touvron et al., LLaMA, 2023, table 2"),
}


class Laid(Workload):
    """Flows that are laid out step by step, with what nodes compute between; a group is a step."""

    waits = True

    def lay(self, nodes: int) -> tuple[Steps, list[tuple]]:
        """The flows of all steps, and what is done when each step is."""
        raise NotImplementedError  # derived classes say it

    def draw(self, *, nodes: int, link: int, seed: int) -> Flows:
        """The flows among all nodes; neither link nor seed matter."""
        check_fabric(nodes, link)
        count = len(self.planned(nodes))
        require(count <= MOST, "nodes and steps", f"few enough for {MOST:,} flows", count)
        return self.lay(nodes)[0].flows(nodes)

    def sections(self, fabric, flows, released, finish) -> dict:
        """Time of each step, what of it is computing, and how far it is from what the fabric allows."""
        _, done = self.lay(flows.nodes)
        place = np.argsort(flows.id)  # of each flow as it was laid, in the table
        ends = [0]
        for after in done:
            waited = [one[0] if isinstance(one, tuple) else one for one in after]
            if (finish[place[[f for f in waited if f != START]]] < 0).any():
                break
            ends.append(moment(after, finish[place]))
        times = np.diff(ends)
        steps = max(len(times), 1)  # bounds are of all that were done, because one may begin while another ends
        rows = np.flatnonzero(flows.group < steps)
        nothing, alone = np.zeros(len(flows), np.int64), fabric.ideal(flows)
        computing = moment(done[steps - 1], longest(flows, rows, nothing)[place]) / steps
        least = {"compute": computing, "links": busiest(flows, rows) * 8 * s / rate(fabric) / steps}
        if alone is not None:
            least["chain"] = moment(done[steps - 1], longest(flows, rows, alone)[place]) / steps
        mean = float(times.mean()) if times.size else None
        return {
            "training": {
                "done": int(times.size),
                "step_us": spread_us(times),
                "compute_us": computing / us,
                "network_us": None if mean is None else (mean - computing) / us,
                **over(least, mean),
            }
        }

    @staticmethod
    def facts(summary) -> Iterable[tuple[str, str]]:
        told = summary["training"]
        if told["over_bound"] is not None:
            mean, most = show_number(told["step_us"]["mean"]), show_number(told["step_us"]["max"])
            yield "training step", f"{mean} µs mean, {most} at most; {told['done']} done"
            compute, network = show_number(told["compute_us"]), show_number(told["network_us"])
            yield "of which", f"{compute} µs if the network took no time, {network} because it does"
            yield from bound_facts(told)


@dataclass(frozen=True, kw_only=True)
class Training(Laid):
    """What all training steps share: a model, how much of it, and how fast a node computes."""

    model: str = param(help=f"sizes of the layers: {', '.join(MODELS)}")
    layers: int | None = param(None, "layers of it; all of them unless given")
    batch: int = param(1, "sequences that a node computes at a time")
    tflops: float = param(137.0, "10^12 operations per second that a node computes")
    steps: int = param(1, "training steps, one after the other")

    def __post_init__(self):
        require(self.model in MODELS, "model", f"one of {', '.join(MODELS)}", self.model)
        most = MODELS[self.model].layers
        require(self.layers is None or 1 <= self.layers <= most, "layers", f"from 1 to {most}", self.layers)
        require(self.batch >= 1, "batch", "at least 1 sequence", self.batch)
        require(1e-3 <= self.tflops < 1e9, "tflops", "at least 0.001 and below 10^9", self.tflops)
        require(1 <= self.steps <= 10_000, "steps", "from 1 to 10000", self.steps)

    @property
    def depth(self) -> int:
        """Layers that are trained."""
        return self.layers or MODELS[self.model].layers

    def forwards(self, layers: float) -> int:
        """ps that a node takes for a batch through so many layers; backwards takes twice that."""
        model = MODELS[self.model]
        return round(layers * 2 * model.weights * self.batch * model.sequence * s / (self.tflops * 1e12))


@dataclass(frozen=True, kw_only=True)
class DataParallel(Training):
    """Every node trains the whole model on sequences of its own, and gradients are summed over all nodes.

    As PyTorch does it (Li et al., PyTorch Distributed, VLDB 2020): gradients are all-reduced in buckets of 25 MB, or as
    many of one smaller size, each as soon as going backwards through the layers has filled it and the one before is
    done at that node. The next step of a node begins when its last bucket is done.
    """

    bucket: Size = param(25 * MB, "bytes of gradients that are all-reduced together")
    algorithm: Literal["ring", "tree", "halving-doubling", "hierarchical"] = param("ring", "how they are all-reduced")
    group: int = param(8, "nodes of a group (hierarchical)")

    def __post_init__(self):
        super().__post_init__()
        require(self.bucket >= 1, "bucket", "at least 1 byte", self.bucket)
        least = -(-self.gradients // BUCKETS)
        require(self.bucket >= least, "bucket", f"at least {least} bytes, for {BUCKETS:,} buckets", self.bucket)
        require(self.algorithm in ALGORITHMS, "algorithm", f"one of {', '.join(ALGORITHMS)}", self.algorithm)
        require(self.group >= 1, "group", "at least 1 node", self.group)

    @property
    def gradients(self) -> int:
        """Bytes of the gradients of a step."""
        return self.depth * MODELS[self.model].weights * NUMBER

    def buckets(self) -> list[AllReduce]:
        """The all-reduces of a step, in their order."""
        sizes = shares(self.gradients, -(-self.gradients // self.bucket))
        return [AllReduce(bytes=size, algorithm=self.algorithm, group=self.group) for size in sizes]

    def planned(self, nodes):
        return Planned(nodes, self.steps * sum(bucket.flows_of(nodes) for bucket in self.buckets()), chained=True)

    def lay(self, nodes):
        laid, done = Steps(ordered=True), []
        everyone = list(range(nodes))
        began: dict[int, tuple] = dict.fromkeys(everyone, ())
        forwards = self.forwards(self.depth)
        for step in range(self.steps):
            have, filled = began, 0
            for k, bucket in enumerate(self.buckets()):
                filled += bucket.bytes
                computed = forwards + 2 * forwards * filled // self.gradients
                ready = {i: together(later(began[i], computed), have[i] if k else ()) for i in everyone}
                have = bucket.once(laid, everyone, ready, step)
            began = have
            done.append(together(*have.values()))
        return laid, done


@dataclass(frozen=True, kw_only=True)
class Pipeline(Training):
    """The model is cut into stages, a node each, and batches go through them, forwards and then backwards.

    `gpipe` sends all batches of a step forwards and then all of them backwards (Huang et al., NeurIPS 2019); `1f1b`
    lets every stage go backwards as soon as it can, so that fewer wait (Narayanan et al., PipeDream, SOSP 2019, with
    the flush of SC 2021). With more nodes than stages there are several such pipelines, and gradients of a stage are
    summed over them by a ring at the end of a step. A stage computes on while it sends.
    """

    stages: int | None = param(None, "stages of a pipeline; a node each, and all of them unless given")
    batches: int = param(8, "batches that go through a pipeline in a step")
    schedule: Literal["1f1b", "gpipe"] = param("1f1b", "the order in which a stage goes forwards and backwards")

    def __post_init__(self):
        super().__post_init__()
        require(self.stages is None or self.stages >= 2, "stages", "at least 2", self.stages)
        fits = self.stages is None or self.stages <= self.depth
        require(fits, "stages", f"at most the number of layers, {self.depth}", self.stages)
        require(1 <= self.batches <= 10_000, "batches", "from 1 to 10000", self.batches)
        require(self.schedule in ("1f1b", "gpipe"), "schedule", "1f1b or gpipe", self.schedule)

    def shape(self, nodes: int) -> tuple[int, int]:
        """(stages, pipelines) of so many nodes."""
        stages = self.stages or nodes
        if nodes % stages:
            raise BadInput(f"nodes must be a multiple of stages, {stages}, not {nodes}")
        if self.depth < stages:
            raise BadInput(f"layers must be at least as many as stages, {stages}, not {self.depth}")
        return stages, nodes // stages

    @property
    def activations(self) -> int:
        """Bytes that a batch has between two layers."""
        model = MODELS[self.model]
        return self.batch * model.sequence * model.width * NUMBER

    def planned(self, nodes):
        stages = self.stages or nodes
        pipelines = max(nodes // stages, 1)
        summed = 2 * nodes * (pipelines - 1)
        return Planned(nodes, self.steps * (2 * self.batches * (stages - 1) * pipelines + summed), chained=True)

    def order(self, stage: int, stages: int) -> list[tuple[bool, int]]:
        """(forwards, batch) of all that a stage does in a step, in its order."""
        m = self.batches
        first = m if self.schedule == "gpipe" else min(stages - stage - 1, m)
        does = [(True, b) for b in range(first)]
        for b in range(first, m):
            does += [(True, b), (False, b - first)]
        last = range(m - first, m)
        return does + [(False, b) for b in (reversed(last) if self.schedule == "gpipe" else last)]

    def lay(self, nodes):
        stages, pipelines = self.shape(nodes)
        laid, done = Steps(ordered=True), []
        ready: dict[int, tuple] = dict.fromkeys(range(nodes), ())
        cut = [self.depth * k // stages for k in range(stages + 1)]  # layers before each stage
        for step in range(self.steps):
            for p in range(pipelines):
                ready |= self._through(laid, p * stages, cut, ready, step)
            if pipelines > 1:
                for k in range(stages):
                    size = (cut[k + 1] - cut[k]) * MODELS[self.model].weights * NUMBER
                    alike = [p * stages + k for p in range(pipelines)]
                    ready |= AllReduce(bytes=size).once(laid, alike, ready, step)
            done.append(together(*ready.values()))
        return laid, done

    def _through(self, laid, base, cut, ready, step) -> dict:
        """All batches through the pipeline whose first stage is node `base`; node -> what is done when it is."""
        stages = len(cut) - 1
        came: dict[tuple[int, bool, int], tuple] = {}  # stage, forwards, batch -> what has to come
        have = {k: ready[base + k] for k in range(stages)}
        plans = {k: self.order(k, stages) for k in range(stages)}
        while any(plans.values()):
            for k, plan in plans.items():
                while plan and ((k, *plan[0]) in came or self._starts(k, stages, plan[0][0])):
                    forwards, b = plan.pop(0)
                    time = self.forwards(cut[k + 1] - cut[k]) * (1 if forwards else 2)
                    have[k] = later(together(have[k], came.get((k, forwards, b), ())), time)
                    to = k + 1 if forwards else k - 1
                    if 0 <= to < stages:
                        came[to, forwards, b] = laid.send(base + k, base + to, self.activations, have[k], step)
        return {base + k: some for k, some in have.items()}

    @staticmethod
    def _starts(stage, stages, forwards) -> bool:
        """Whether a stage needs nothing from another: the first forwards, the last backwards."""
        return stage == (0 if forwards else stages - 1)
