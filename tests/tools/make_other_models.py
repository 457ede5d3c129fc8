"""Write tests/hostile/other_models.json: what other architectures save.

    python tests/make_other_models.py

Names and shapes of all tensors, and config.json, of small models with
random weights, made with transformers; the values themselves do not
matter and are not kept.
"""

import json
import platform
from pathlib import Path

OUT = Path(__file__).parent / "hostile" / "other_models.json"
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
}
# Classes of transformers -> sizes beside those of SMALL.
MODELS = {
    "RobertaModel": {},
    "XLMRobertaModel": {},
    "CamembertModel": {},
    "Data2VecTextModel": {},
    "ErnieModel": {},
    "LayoutLMModel": {},
    "RobertaPreLayerNormModel": {},
    "MegatronBertModel": {},
    "SplinterModel": {},
    "BertGenerationEncoder": {},
    "LiltModel": {},
    "MarkupLMModel": {},
    "ElectraModel": {"embedding_size": 16},
    "AlbertModel": {"embedding_size": 16},
    "DistilBertModel": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "MPNetModel": {},
    "DebertaModel": {},
    "DebertaV2Model": {},
    "ConvBertModel": {},
    "MobileBertModel": {
        "embedding_size": 32,
        "intra_bottleneck_size": 32,
        "true_hidden_size": 32,
    },
    "RoFormerModel": {},
    "RemBertModel": {"input_embedding_size": 16},
    "SqueezeBertModel": {"embedding_size": 32},
    "FNetModel": {},
    "BigBirdModel": {"attention_type": "original_full"},
    "NystromformerModel": {},
    "YosoModel": {},
    "XmodModel": {"languages": ["en_XX"]},
    "CanineModel": {},
    "EsmModel": {"pad_token_id": 1},
    "GPT2Model": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24},
    "T5EncoderModel": {
        "d_model": 32,
        "d_ff": 64,
        "d_kv": 8,
        "num_layers": 2,
        "num_heads": 4,
    },
    "BartModel": {
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
    },
    "ModernBertModel": {
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "cls_token_id": 2,
        "sep_token_id": 3,
    },
}


def describe(name, sizes):
    """(names and shapes of the tensors, config.json) of one model."""
    import transformers

    kind = getattr(transformers, name)
    model = kind(kind.config_class(**SMALL | sizes))
    tensors = {
        n: list(t.shape)
        for n, t in model.state_dict().items()
        if t.dtype.is_floating_point
    }
    config = json.loads(model.config.to_json_string())
    return {"class": name, "config": config, "tensors": tensors}


def main():
    import torch
    import transformers

    models = []
    for name, sizes in MODELS.items():
        models.append(describe(name, sizes))
        print(name, len(models[-1]["tensors"]), models[-1]["config"]["model_type"])
    versions = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    lines = ",\n".join(json.dumps(model) for model in models)
    OUT.write_text(
        f'{{"versions": {json.dumps(versions)},\n"models": [\n{lines}\n]}}\n'
    )


if __name__ == "__main__":
    main()
