"""Store what HuggingFace's BERT computes with the shipped toy model.

    python tests/tools/make_toy_golden.py

Needs torch and transformers; the tests do not. The versions used are
written into the file.
"""

import json
from pathlib import Path

import numpy as np

from bert_np.files.pretrained import PACKAGED
from bert_np.training.toy_language import MASK, create_grammar, sample_batch

GOLDEN = Path(__file__).parents[1] / "golden" / "toy.npz"


def passages():
    """Eight held-out passages, every fifth token masked."""
    batch = sample_batch(np.random.default_rng(0), 8, create_grammar(), held_out=True)
    ids = batch["input_ids"]
    ids[:, 4::5] = np.where(ids[:, 4::5] > MASK, MASK, ids[:, 4::5])
    return ids, batch["segment_ids"], batch["attention_mask"]


def transformers_logits(ids, segment_ids, attention_mask):
    """The MLM and NSP logits of transformers, float64."""
    import torch
    from transformers import BertForPreTraining

    model = BertForPreTraining.from_pretrained(PACKAGED["toy"]).double().eval()
    with torch.no_grad():
        out = model(
            input_ids=torch.tensor(ids),
            token_type_ids=torch.tensor(segment_ids),
            attention_mask=torch.tensor(attention_mask),
        )
    return out.prediction_logits.numpy(), out.seq_relationship_logits.numpy()


def main():
    import torch
    import transformers

    ids, segment_ids, attention_mask = passages()
    mlm, nsp = transformers_logits(ids, segment_ids, attention_mask)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, np)}
    np.savez_compressed(
        GOLDEN,
        input_ids=ids,
        segment_ids=segment_ids,
        attention_mask=attention_mask,
        mlm_logits=mlm,
        nsp_logits=nsp,
        versions=json.dumps(versions),
    )
    print(f"{GOLDEN.name}: {GOLDEN.stat().st_size} bytes, {versions}")


if __name__ == "__main__":
    main()
