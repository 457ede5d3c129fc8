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
    parts: int = 1  # a batch is cut into so many, to run in threads
