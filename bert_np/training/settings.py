"""What decides the result of a run, apart from the model and the data."""

from typing import NamedTuple


class TrainingSettings(NamedTuple):
    """Everything but model and data that decides the result of a run.

    The defaults suit a model of a few hundred thousand parameters.
    BERT-Base took 1,000,000 steps, 10,000 of them warm-up, peak 1e-4.

    Source: Devlin et al. 2018, appendix A.2.
    """

    steps: int
    warmup_steps: int = 100  # the learning rate rises
    hold_steps: int = 0  # it stays at the peak, before it falls
    peak_rate: float = 1e-3
    weight_decay: float = 0.01
    max_norm: float = 1.0  # longer gradients are clipped
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    parts: int = 1  # a batch is cut into this many, to run in threads


class FineTuningSettings(NamedTuple):
    """Everything but model, examples and seed that decides a fine-tuning run.

    The paper trains everything: 2 to 4 epochs, batches of 16 or 32, rates
    of 2e-5 to 5e-5, dropout 0.1. The top layers alone tolerate higher rates.

    Source: Devlin et al. 2018, appendix A.3; Howard & Ruder 2018
    (1801.06146), section 3.2, for rates that differ from layer to layer.
    """

    task: str = "sequence"  # the head: "sequence", "token" or "span"
    problem: str | None = None  # of a sequence head; None: the labels tell
    pooling: str = "pooler"  # what a sequence head reads; or "mean"
    layers: int | None = None  # how many top ones to train; None: all, and embeddings
    epochs: int = 3
    batch_size: int = 32
    body_rate: float = 1e-4  # peak, of the pooler and of the top layer
    head_rate: float = 1e-3  # peak, of the new head
    layer_decay: float = 1.0  # the rate of a layer over that of the layer above
    warmup: float = 0.1  # fraction of the steps in which the rates rise
    dropout: float = 0.1  # in the trained layers and before the head
    weight_decay: float = 0.01
    max_norm: float = 1.0  # longer gradients are clipped
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    max_length: int = 128  # tokens; longer texts are cut
    held_out: float = 0.1  # fraction of the examples on which an epoch is chosen
    parts: int = 2  # a batch is cut into this many, to run in threads
