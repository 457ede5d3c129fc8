"""One-line faults for negative_controls.py: what a wrong edit looks like.

Module of bert_np -> (fault, source text, what replaces it); the text must
stand in the module exactly once.
"""

MODEL = {
    "functional": [
        ("the bias is left out", "    y += b\n", ""),
        (
            "variance divided by n - 1",
            "np.square(y).mean(axis=-1, keepdims=True)",
            "np.square(y).sum(axis=-1, keepdims=True) / (y.shape[-1] - 1)",
        ),
        (
            "epsilon outside the root",
            "np.sqrt(variance + eps)",
            "np.sqrt(variance) + eps",
        ),
        ("no gamma", "    y *= gamma\n", ""),
        ("no beta", "    y += beta\n", ""),
        (
            "norm over the wrong axis",
            "x.mean(axis=-1, keepdims=True)",
            "x.mean(axis=0, keepdims=True)",
        ),
        (
            "naive softmax",
            "np.subtract(part, part.max(axis=axis, keepdims=True), out=probs)",
            "np.add(part, 0, out=probs)",
        ),
        (
            "softmax ignores its axis",
            "probs.sum(axis=axis, keepdims=True)",
            "probs.sum(axis=-1, keepdims=True)",
        ),
        (
            "tanh GELU for the erf form",
            "return np.multiply(x, (1 + erf(x * math.sqrt(0.5))) / 2, out=out)",
            "return gelu_tanh(x, out)",
        ),
        (
            "tanh GELU for the erf form in float32",
            "u = _atanh_erf(part * math.sqrt(0.5))",
            "u = part * (1 + 0.044715 * part * part) * math.sqrt(2 / math.pi)",
        ),
        (
            "the last block left out",
            "range(0, len(x), rows)",
            "range(0, max(1, len(x) - rows), rows)",
        ),
        ("softmax cut across its axis", "or axis != -1 or", "or"),
        ("a block written to a copy", " or not y.flags.c_contiguous", ""),
        (
            "GELU without sqrt(2)",
            "_atanh_erf(part * math.sqrt(0.5))",
            "_atanh_erf(part)",
        ),
        ("a digit of tanh GELU", "u *= 0.044715", "u *= 0.044175"),
        ("a digit of erf", "1.027654815e-1", "1.027564815e-1"),
        (
            "erf returns float64",
            "squared * ERF_COEFFICIENTS[-1]",
            "squared * np.float64(ERF_COEFFICIENTS[-1])",
        ),
        (
            "ReLU lets negative values through",
            "np.maximum(x, 0, out=out)",
            "np.abs(x, out=out)",
        ),
        ("dropout without rescaling", "mask /= 1 - rate", "mask /= 1"),
        ("dropout keeps what it should drop", ">= rate)", "< rate)"),
        ("dropout always on", "if rng is None or rate == 0:", "if rate == 0:"),
    ],
    "embeddings": [
        (
            "positions start at 1",
            '["position"][: input_ids.shape[1]]',
            '["position"][1 : input_ids.shape[1] + 1]',
        ),
        ("no positions", "total = word + position", "total = word + 0 * position"),
        ("no segments", "    total += segment\n", ""),
        (
            "a recorded array is written to",
            "total = word + position",
            "total = word; total += position",
        ),
        ("epsilon not from the config", "eps=config.layer_norm_eps", "eps=1e-12"),
        ("no dropout", "    x = dropout(x, mask)\n", ""),
    ],
    "attention": [
        (
            "derived mask inverted",
            "(input_ids != pad_token_id)",
            "(input_ids == pad_token_id)",
        ),
        ("mask inverted", "where=~visible", "where=visible"),
        (
            "mask added as -10000",
            "np.copyto(scores, np.finfo(scores.dtype).min, where=~visible)",
            "scores += np.where(visible, 0, -10000).astype(scores.dtype)",
        ),
        ("mask of -inf", "np.finfo(scores.dtype).min", "-np.inf"),
        ("mask on the queries", "[:, None, None, :]", "[:, None, :, None]"),
        ("no mask", "    if visible is not None:", "    if False:"),
        ("no scale", "    scores /= math.sqrt(q.shape[-1])\n", ""),
        (
            "scaled by the hidden size",
            "math.sqrt(q.shape[-1])",
            "math.sqrt(q.shape[1] * q.shape[-1])",
        ),
        ("scaled by D", "math.sqrt(q.shape[-1])", "q.shape[-1]"),
        (
            "softmax over the queries",
            "softmax(scores, out=scores)",
            "softmax(scores, axis=-2, out=scores)",
        ),
        (
            "probabilities transposed",
            "return dropout(probs, mask) @ v",
            "return dropout(probs, mask).swapaxes(-1, -2) @ v",
        ),
        (
            "attention after dropout returned",
            "return dropout(probs, mask) @ v, probs",
            "return dropout(probs, mask) @ v, dropout(probs, mask)",
        ),
        (
            "heads split by reshape alone",
            "x.reshape(B, T, num_heads, H // num_heads).transpose(0, 2, 1, 3)",
            "x.reshape(B, num_heads, T, H // num_heads)",
        ),
        (
            "heads interleaved",
            "x.reshape(B, T, num_heads, H // num_heads).transpose(0, 2, 1, 3)",
            "x.reshape(B, T, H // num_heads, num_heads).transpose(0, 3, 1, 2)",
        ),
        (
            "heads merged by reshape alone",
            "x.transpose(0, 2, 1, 3).reshape(B, T, A * D)",
            "x.reshape(B, T, A * D)",
        ),
        (
            "query and key swapped",
            '("query", "key", "value")',
            '("key", "query", "value")',
        ),
        (
            "value made by the key's matrix",
            '("query", "key", "value")',
            '("query", "key", "key")',
        ),
        ("no output map", 'linear(context, **params["output"])', "context"),
    ],
    "feed_forward": [
        (
            "activation not from the config",
            "getattr(functional, config.activation)",
            "functional.gelu",
        ),
        ("ReLU for GELU", "getattr(functional, config.activation)", "functional.relu"),
        (
            "no activation",
            "activated = activation(inner, out=inner)",
            "activated = inner",
        ),
        (
            "recorded after it is overwritten",
            "    record(trace, inner=inner)\n    activated = activation(inner, out=inner)",
            "    activated = activation(inner, out=inner)\n"
            "    record(trace, inner=inner)",
        ),
    ],
    "encoder": [
        ("no residual", "x + dropout(update, mask)", "dropout(update, mask)"),
        (
            "dropout of the residual",
            "x + dropout(update, mask)",
            "dropout(x + update, mask)",
        ),
        (
            "the two norms exchanged",
            'x, attended, params["attention_norm"]',
            'x, attended, params["ffn_norm"]',
        ),
        (
            "feed-forward skips attention",
            "feed_forward(x, params",
            "feed_forward(attended, params",
        ),
        (
            "every layer has the first one's parameters",
            "x, layer_params, attention_mask",
            "x, params[0], attention_mask",
        ),
        ("last layer left out", "in params:", "in params[:-1]:"),
        (
            "no dropout after feed-forward",
            'branch(trace, "ffn_norm"), rng=rng',
            'branch(trace, "ffn_norm"), rng=None',
        ),
        ("attention kept in spite of the option", "if return_attention:", "if True:"),
    ],
    "pooler": [
        ("pools the tokens of the first sequence", "linear(x[:, 0]", "linear(x[0]"),
        ("pools the last token", "linear(x[:, 0]", "linear(x[:, -1]"),
        ("pools the mean", "linear(x[:, 0]", "linear(x.mean(axis=1)"),
        ("no tanh", "np.tanh(dense)", "dense"),
    ],
    "heads": [
        ("no activation", "activated = activation(transform)", "activated = transform"),
        (
            "no norm",
            'layer_norm(activated, **mlm["norm"], eps=config.layer_norm_eps)',
            "activated",
        ),
        ("no bias", '.T, mlm["bias"])', '.T, 0 * mlm["bias"])'),
        (
            "next-sentence columns reversed",
            "linear(pooler_output, **nsp)",
            "linear(pooler_output, **nsp)[:, ::-1]",
        ),
    ],
    "model": [
        ("id V accepted", "array >= limit", "array > limit"),
        ("negative ids wrap", "(array < 0) | (array >= limit)", "array >= limit"),
        (
            "ids cast before they are checked",
            "_as_array(name, ids)",
            "_as_array(name, ids).astype(int)",
        ),
        ("a position too many", "if T > limit:", "if T > limit + 1:"),
        (
            "pad id not from the config",
            "input_ids, config.pad_token_id",
            "input_ids, 0",
        ),
        (
            "given mask not used",
            "return mask.astype(bool)",
            "return np.ones_like(mask, bool)",
        ),
        (
            "mask of 0.5 accepted",
            "(mask == 0) | (mask == 1)",
            "(mask >= 0) & (mask <= 1)",
        ),
        (
            "segments ignored",
            "input_ids, segment_ids, params[",
            "input_ids, 0 * segment_ids, params[",
        ),
        (
            "no dropout in the embeddings",
            'trace=branch(trace, "embeddings"), rng=rng',
            'trace=branch(trace, "embeddings"), rng=None',
        ),
    ],
    "config": [
        ("gelu_new means erf", '"gelu_new": "gelu_tanh"', '"gelu_new": "gelu"'),
        ("epsilon 1e-5 by default", "eps: float = 1e-12", "eps: float = 1e-5"),
        (
            "heads need not divide",
            "self.hidden_size % self.num_attention_heads:",
            "False:",
        ),
        (
            "true is a size",
            "type(value) is not int or",
            "not isinstance(value, int) or",
        ),
        ("any model type", "        _require_bert(values)\n", ""),
        ("a key may stand twice", "if len(values) < len(pairs):", "if False:"),
        (
            "pad id V accepted",
            "<= self.pad_token_id < self.vocab_size",
            "<= self.pad_token_id <= self.vocab_size",
        ),
    ],
    "parameters": [
        ("MLM bias of size H", '"bias": (V,)', '"bias": (H,)'),
        (
            "standard deviation squared",
            "*= config.initializer_range",
            "*= config.initializer_range**2",
        ),
        ("gamma starts at 0", "np.ones(shape, dtype)", "np.zeros(shape, dtype)"),
        ("two dtypes accepted", "if len(dtypes) > 1:", "if len(dtypes) > 2:"),
        ("unknown parameters accepted", "if missing or unknown:", "if missing:"),
        ("the ledger counts one layer", "L * layer)", "layer)"),
    ],
    "trace": [
        ("the trace shares memory", "np.array(array)", "np.asarray(array)"),
        ("None is recorded", "if array is not None:", "if True:"),
        (
            "the first entry for the largest",
            "np.argmax(np.nan_to_num(gap, nan=np.inf))",
            "0 * np.argmax(gap)",
        ),
        (
            "NaN agrees",
            "np.allclose(b, a, rtol=rtol, atol=atol)",
            "not (gap > atol + rtol * np.abs(a)).any()",
        ),
    ],
    "tokenizer": [
        (
            "a word may have 200 characters",
            "MAX_WORD_LENGTH = 100",
            "MAX_WORD_LENGTH = 200",
        ),
        ("only Unicode's punctuation counts", "ch in string.punctuation or ", ""),
        ("zero-width characters stay", '("Cc", "Cf", "Co")', '("Cc", "Co")'),
        ("accents stay", '"" if unicodedata.category(ch) == "Mn" else ch', "ch"),
        (
            "the shortest piece first",
            "range(most, len(prefix), -1)",
            "range(len(prefix) + 1, most + 1)",
        ),
        ("no ## within a word", 'prefix = "##"', 'prefix = ""'),
        (
            "one piece that is unknown",
            '        else:\n            return ["[UNK]"]',
            '        else:\n            return pieces + ["[UNK]"]',
        ),
        (
            "a tie shortens the second text",
            "(short, room - short) if first <= second else (room - short, short)",
            "(short, room - short) if first < second else (room - short, short)",
        ),
        (
            "one segment for a pair",
            "[segment] * (len(part) + 1)",
            "[0] * (len(part) + 1)",
        ),
        (
            "padding is not masked",
            'stack("attention_mask", 0)',
            'stack("attention_mask", 1)',
        ),
        (
            "padded with 0 whatever the vocabulary",
            'stack("input_ids", pad_token_id)',
            'stack("input_ids", 0)',
        ),
        ("offsets of the cleaned text", "sources[at + start]", "at + start"),
    ],
    "checkpoint": [
        (
            "square matrices stay transposed",
            "np.array(array.T, dtype",
            "np.array(array if array.shape[0] == array.shape[1] else array.T, dtype",
        ),
        (
            "depth read from one digit",
            're.findall("[0-9]+", path)',
            're.findall("[0-9]", path)',
        ),
        (
            "query and key exchanged",
            '"layers.{}.attention.query": "encoder.layer.{}.attention.self.query"',
            '"layers.{}.attention.query": "encoder.layer.{}.attention.self.key"',
        ),
        (
            "gamma read as bias",
            '"LayerNorm.gamma": "LayerNorm.weight"',
            '"LayerNorm.gamma": "LayerNorm.bias"',
        ),
        ("bfloat16 shifted by 15", "<< 16)", "<< 15)"),
        (
            "loaded arrays can be written to",
            "array.flags.writeable = False",
            "array.flags.writeable = True",
        ),
        ("NaN accepted", "if not allow_nonfinite and", "if False and"),
        (
            "another output matrix accepted",
            "elif not np.array_equal(arrays[path], array, equal_nan=True):",
            "elif False:",
        ),
        (
            "saved without the transpose",
            'array.T if place.endswith(".W") else array',
            "array",
        ),
        ("any prefix accepted", 'if prefix not in ("", "bert."):', "if False:"),
    ],
    "weight_files": [
        (
            "a link may leave the folder",
            "if not any(real.is_relative_to(place) for place in (home, *blobs)):",
            "if False:",
        ),
        (
            "a file of another length is read",
            "if size != announced:",
            "if size > announced + 10**9:",
        ),
        (
            "shards anywhere on the disk",
            "if not isinstance(file, str) or not SHARD.fullmatch(file):",
            "if not isinstance(file, str):",
        ),
    ],
    "pretrained": [
        (
            "the hash is not looked at",
            "if found != expected:",
            "if found[0] != expected[0]:",
        ),
    ],
    "mistakes": [
        ("every hint fits", "<= allowed:", ">= 0:"),
        ("gamma is taken for 1", "return gamma,", "return 1.0,"),
    ],
}

ANALYSIS = {
    "analysis": [
        ("entropy in bits", "logs = np.log(", "logs = np.log2("),
        (
            "entropy over all keys, masked ones too",
            "count = real.sum(axis=-1, keepdims=True)",
            "count = np.array([real.shape[-1]])",
        ),
        ("one visible key divides by log 2", "        entropy *= count > 1\n", ""),
        (
            "distance with its sign",
            "np.abs(places[:, None] - places)",
            "places[:, None] - places",
        ),
        (
            "next and previous exchanged",
            "previous[..., 1:] = np.diagonal(probs, -1,",
            "previous[..., 1:] = np.diagonal(probs, 1,",
        ),
        (
            "[CLS] is the first token",
            'share(names == "[CLS]")',
            "share(np.arange(names.shape[-1]) == 0)",
        ),
        (
            "only full stops are punctuation",
            "all(map(is_punctuation, token))",
            'token == "."',
        ),
        (
            "shares summed over the queries",
            "keys[..., None, :]).sum(axis=-1)",
            "keys[..., None, :]).sum(axis=-2)",
        ),
        (
            "masked queries count",
            "real[..., :, None] & real[..., None, :]",
            "real[..., None, :] | ~real[..., :, None]",
        ),
        (
            "each sentence counts alike",
            "values.sum(axis=(0, 2), dtype=np.float64)",
            "values.mean(axis=2).sum(axis=0)",
        ),
        (
            "the first token has a previous one",
            '"previous": total - N',
            '"previous": total',
        ),
        (
            "segments of pairs are lost",
            "batch.segment_ids[rows, :length]",
            "0 * batch.segment_ids[rows, :length]",
        ),
        (
            "the tokens of the first rows",
            "batch.tokens[row][:length] for row in rows",
            "batch.tokens[row][:length] for row in range(len(rows))",
        ),
        ("by_norm measures attention", "    if not by_norm:\n", "    if True:\n"),
        (
            "Jensen-Shannon without the middle's half",
            "_row_entropies((rows[head] + rows[head + 1 :]) / 2)",
            "_row_entropies(rows[head] + rows[head + 1 :])",
        ),
        (
            "padding counts in distances",
            "rows[:, np.broadcast_to(real.reshape(-1, T), (B, T)).ravel()]",
            "rows",
        ),
        (
            "heads and sentences exchanged",
            "rows.swapaxes(1, 2).reshape(-1, B * T, T)",
            "rows.reshape(-1, B * T, T)",
        ),
        (
            "rollout multiplied from the right",
            "mixed[layer] @ mixed[layer - 1]",
            "mixed[layer - 1] @ mixed[layer]",
        ),
        (
            "rollout without the residual",
            "    mixed += residual * np.eye(probs.shape[-1], dtype=probs.dtype)\n",
            "",
        ),
        (
            "rollout's shares exchanged",
            "(1 - residual) * probs.mean(axis=-3)",
            "residual * probs.mean(axis=-3)",
        ),
        (
            "norm of the value alone",
            "moved = v @ W.reshape(v.shape[1], -1, W.shape[1])",
            "moved = v",
        ),
        (
            "the heads' rows of Wo interleaved",
            "W.reshape(v.shape[1], -1, W.shape[1])",
            "W.reshape(-1, v.shape[1], W.shape[1]).swapaxes(0, 1)",
        ),
        (
            "the sum of norms for the norm of the sum",
            "i : i + QUERIES_AT_ONCE] @ moved, axis=-1)",
            "i : i + QUERIES_AT_ONCE, :, None] * moved[:, :, None], axis=-1).sum(-1)",
        ),
        (
            "norms divided over the queries",
            "sums = maps.sum(axis=-1, keepdims=True)",
            "sums = maps.sum(axis=-2, keepdims=True)",
        ),
        (
            "the lens reads each layer's attention",
            '_stage(trace, "layers", i, "output")',
            '_stage(trace, "layers", i, "attention_norm", "output")',
        ),
        (
            "the lens leaves the embeddings out",
            'states = [_stage(trace, "embeddings", "output")]',
            "states = []",
        ),
        (
            "columns of Wo for its rows",
            "W[head * D : (head + 1) * D] = 0",
            "W[:, head * D : (head + 1) * D] = 0",
        ),
        (
            "the layer after the one named",
            'params["layers"][:layer] + params',
            'params["layers"][: layer + 1] + params',
        ),
        (
            "change not relative to the state",
            "(change / np.linalg.norm(real, axis=-1)).mean()",
            "change.mean()",
        ),
        (
            "padding counts as change",
            '_compare_with(whole["last_hidden_state"], mask,',
            '_compare_with(whole["last_hidden_state"], mask | True,',
        ),
        (
            "KL the other way round",
            "np.exp(whole) * (whole - log_probs(ablated))",
            "np.exp(log_probs(ablated)) * (log_probs(ablated) - whole)",
        ),
        (
            "the layer above stays out too",
            'params["layers"][layer + 1 :], mask',
            'params["layers"][layer + 2 :], mask',
        ),
        (
            "params are written to",
            'attention["output"]["W"].copy()',
            'attention["output"]["W"]',
        ),
    ],
}

TRAINING = {
    "training/functional_backward": [
        ("linear: d_x doubled", "d_rows @ W.T", "d_rows @ W.T * 2"),
        (
            "linear: the bias takes the mean",
            "d_rows.sum(axis=0)",
            "d_rows.mean(axis=0)",
        ),
        (
            "norm: the mean is not taken out",
            "    d_x -= d_x.mean(axis=-1, keepdims=True)\n",
            "",
        ),
        ("norm: the stretch is not taken out", "    d_x -= z\n", ""),
        ("norm: gamma is forgotten", "d_x = d_y * gamma", "d_x = d_y * 1"),
        ("norm: not divided by s", "    d_x /= s\n", ""),
        ("norm: epsilon is forgotten", "keepdims=True) + eps)", "keepdims=True))"),
        (
            "norm: beta's gradient is gamma's",
            '"beta": d_y.sum(axis=axes)',
            '"beta": (d_y * z).sum(axis=axes)',
        ),
        (
            "norm: the gradient that came is written to",
            "d_x = d_y * gamma",
            "d_x = d_y; d_x *= gamma",
        ),
        (
            "softmax: the average is not taken out",
            "    d_x -= probs * d_x.sum(axis=-1, keepdims=True)\n",
            "",
        ),
        (
            "softmax: summed over the queries",
            "d_x.sum(axis=-1, keepdims=True)",
            "d_x.sum(axis=-2, keepdims=True)",
        ),
        ("gelu: no density", "    d_x += density\n", ""),
        ("gelu: density without x", "    density *= x\n", ""),
        ("gelu: exp(-x²)", "density *= -0.5", "density *= -1"),
        ("gelu: wrong at 0", "chance[x == 0] = 0.5", "chance[x == 0] = 0"),
        (
            "tanh gelu: a digit",
            "(1 + 3 * 0.044715 * x * x)",
            "(1 + 3 * 0.044175 * x * x)",
        ),
        ("tanh gelu: the 3 is lost", "(1 + 3 * 0.044715", "(1 + 0.044715"),
        ("relu: x for its sign", "d_y * (x > 0)", "d_y * x * (x > 0)"),
        ("dropout is ignored", "d_y if mask is None else d_y * mask", "d_y"),
        (
            "lookup: the last of equal ids wins",
            "np.add.reduceat(d_rows.reshape(-1, H)[order], starts, axis=0)",
            "d_rows.reshape(-1, H)[order][starts]",
        ),
        (
            "lookup: rows are not sorted with their ids",
            ".reshape(-1, H)[order]",
            ".reshape(-1, H)",
        ),
    ],
    "training/backward": [
        (
            "positions take the mean of the batch",
            "d_sum.sum(axis=0)",
            "d_sum.mean(axis=0)",
        ),
        (
            "embeddings: dropout is ignored",
            'd_norm = dropout_backward(d_output, trace.get("dropout_mask"))',
            "d_norm = d_output",
        ),
        (
            "segments by word id",
            "lookup_backward(d_sum, segment_ids,",
            "lookup_backward(d_sum, input_ids % 2,",
        ),
        (
            "attention: d_v from probabilities before dropout",
            "dropout(probs, mask).swapaxes(-1, -2)",
            "probs.swapaxes(-1, -2)",
        ),
        (
            "attention: probabilities not transposed",
            "dropout(probs, mask).swapaxes(-1, -2) @ d_context",
            "dropout(probs, mask) @ d_context",
        ),
        (
            "attention: dropout is ignored in d_probs",
            "dropout_backward(d_context @ v.swapaxes(-1, -2), mask)",
            "d_context @ v.swapaxes(-1, -2)",
        ),
        ("attention: no scale", "    d_scores /= math.sqrt(q.shape[-1])\n", ""),
        (
            "attention: a constant score gets a gradient",
            "    np.copyto(d_scores, 0, where=~visible)\n",
            "",
        ),
        (
            "attention: query and key exchanged",
            "return d_scores @ k, d_scores.swapaxes(-1, -2) @ q, d_v",
            "return d_scores.swapaxes(-1, -2) @ q, d_scores @ k, d_v",
        ),
        ("attention: d_x from the value alone", "d_x = d_x + d_part", "d_x = d_part"),
        (
            "attention: the output map is fed x",
            'd_output, trace["context"], params["output"]["W"]',
            'd_output, x, params["output"]["W"]',
        ),
        (
            "the activation is fed its own output",
            'd_activated, trace["inner"], trace["activated"]',
            'd_activated, trace["activated"], trace["activated"]',
        ),
        (
            "residual: dropout is ignored",
            'return d_x, dropout_backward(d_x, trace.get("dropout_mask")), grads',
            "return d_x, d_x, grads",
        ),
        ("no residual around the feed-forward", "d_middle + d_block,", "d_block,"),
        (
            "no residual around the attention",
            "return d_x + d_block, {",
            "return d_block, {",
        ),
        (
            "the layers' gradients in reverse order",
            "grads.insert(0, layer_grads)",
            "grads.append(layer_grads)",
        ),
        (
            "each layer is fed its own output",
            '[x] + [layer["output"] for layer in trace[:-1]]',
            '[layer["output"] for layer in trace]',
        ),
        (
            "pooler: no tanh",
            'd_output * (1 - np.square(trace["output"]))',
            "d_output * 1",
        ),
        (
            "pooler: tanh of the wrong stage",
            'np.square(trace["output"])',
            'np.square(trace["dense"])',
        ),
        (
            "MLM head: its norm is fed the transform",
            'd_norm, trace["activated"], mlm["norm"]["gamma"]',
            'd_norm, trace["transform"], mlm["norm"]["gamma"]',
        ),
    ],
    "training/pretraining": [
        (
            "tied table: the head's share is lost",
            '    embeddings["word"] += d_word\n',
            "",
        ),
        (
            "tied table: the lookup's share is lost",
            'embeddings["word"] += d_word',
            'embeddings["word"] = d_word',
        ),
        (
            "the MLM head does not teach the encoder",
            "    d_hidden[asked] += d_asked[0]\n",
            "",
        ),
        (
            "one row of [CLS] for both heads",
            "d_hidden[asked] += d_asked[0]",
            "d_hidden[asked] = d_asked[0]",
        ),
        (
            "no dropout in training",
            "trace=trace, rng=rng,\n        return_attention",
            "trace=trace, rng=None,\n        return_attention",
        ),
        (
            "the attention mask is not passed on",
            'attention_mask=batch["attention_mask"], trace',
            "trace",
        ),
        (
            "one dropout for all parts",
            "np.random.default_rng(seed) for seed in seeds",
            "np.random.default_rng(seeds[0]) for seed in seeds",
        ),
        ("the last part is lost", "for tree in trees[1:]]", "for tree in trees[1:-1]]"),
        ("NSP is not counted", '"loss": mlm_loss + nsp_loss', '"loss": mlm_loss'),
    ],
    "training/losses": [
        (
            "ignored positions count in the mean",
            "count = count or asked.size",
            "count = count or labels.size",
        ),
        (
            "a part divides by its own count",
            "count = count or asked.size",
            "count = asked.size",
        ),
        ("softmax without the one-hot label", "    probs[rows, right] -= 1\n", ""),
        (
            "the sign of the gradient",
            "d_logits[asked] = probs",
            "d_logits[asked] = -probs",
        ),
        ("naive softmax", "    z -= z.max(axis=-1, keepdims=True)\n", ""),
        (
            "word 0 is ignored",
            "np.flatnonzero(right != IGNORED)",
            "np.flatnonzero(right > 0)",
        ),
        (
            "right are those not wrong",
            "logits.argmax(axis=-1) == labels",
            "logits.argmin(axis=-1) != labels",
        ),
    ],
    "training/masking": [
        (
            "special tokens are chosen",
            "    chosen &= ~np.isin(input_ids, special_ids)\n",
            "",
        ),
        (
            "all of the chosen are hidden",
            "chosen & (fate < 0.9)",
            "chosen & (fate < 1)",
        ),
        ("half of them [MASK]", "fate < 0.8", "fate < 0.5"),
        (
            "special tokens as random words",
            "rng.choice(ordinary, input_ids.shape)",
            "rng.integers(vocab_size, size=input_ids.shape)",
        ),
        (
            "labels of hidden tokens only",
            "np.where(chosen, input_ids, IGNORED)",
            "np.where(hidden, input_ids, IGNORED)",
        ),
        (
            "labels of what the model sees",
            "np.where(chosen, input_ids, IGNORED)",
            "np.where(chosen, masked_ids, IGNORED)",
        ),
        (
            "whole columns are chosen",
            "rng.random(input_ids.shape) < rate",
            "np.tile(rng.random(input_ids.shape[1]) < rate, (len(input_ids), 1))",
        ),
    ],
    "training/adam": [
        (
            "decay for norms and biases too",
            'if path.rsplit(".", 1)[-1] not in NOT_DECAYED:',
            "if True:",
        ),
        ("no decay", "change += rate * weight_decay * p", "change += 0 * p"),
        ("decay not scaled by the rate", "rate * weight_decay * p", "weight_decay * p"),
        ("no correction of m", "rate / (1 - beta1**step)", "rate"),
        ("no correction of v", "squares[path] / (1 - beta2**step)", "squares[path]"),
        (
            "epsilon inside the root",
            "np.sqrt(squares[path] / (1 - beta2**step))\n        change += eps",
            "np.sqrt(squares[path] / (1 - beta2**step) + eps)",
        ),
        (
            "steps counted from 0",
            'step = state["step"] + 1\n    m',
            'step = state["step"] or 1\n    m',
        ),
        ("betas exchanged", "grads, beta1, lambda g: g)", "grads, beta2, lambda g: g)"),
        (
            "uphill",
            "np.subtract(p, change, out=change)",
            "np.add(p, change, out=change)",
        ),
        ("v of |g|", "beta2, np.square)", "beta2, np.abs)"),
        (
            "warm-up from 0",
            "peak * (step + 1) / warmup_steps",
            "peak * step / warmup_steps",
        ),
        (
            "the schedule does not end at 0",
            "min(1, (total_steps - step) /",
            "min(1, (total_steps - step + warmup_steps) /",
        ),
        (
            "the peak is not held",
            "    start = warmup_steps + hold_steps\n",
            "    start = warmup_steps\n",
        ),
        (
            "clipped array by array",
            "g * (max_norm / norm)",
            "g * (max_norm / global_norm({0: g}))",
        ),
        ("short gradients are made longer", "if norm <= max_norm:", "if False:"),
        (
            "params are written to",
            "np.subtract(p, change, out=change)",
            "np.subtract(p, change, out=p)",
        ),
    ],
    "training/train": [
        (
            "threads beside those of BLAS",
            "return None\n    return threadpool",
            "return nullcontext()\n    return threadpool",
        ),
        (
            "no clipping",
            "grads, norm = clip_by_global_norm(grads, settings.max_norm)",
            "_, norm = clip_by_global_norm(grads, settings.max_norm)",
        ),
        ("training without dropout", "rng=rng, parts=", "rng=None, parts="),
        (
            "the generator's state is not restored",
            '    rng.bit_generator.state = run["rng"]\n',
            "",
        ),
        (
            "the state of the generator before the step",
            '"rng": rng.bit_generator.state,',
            '"rng": run["rng"],',
        ),
        (
            "an interruption is not saved",
            "            save_run(checkpoint, run, config, settings)\n        raise",
            "            pass\n        raise",
        ),
        ("an interruption is swallowed", "        raise\n    return", "    return"),
        ("the end is not saved", "step % checkpoint_every == 0 or last", "False"),
        (
            "Adam's memory is lost",
            '        "adam": state,\n',
            '        "adam": run["adam"],\n',
        ),
    ],
    "training/run": [
        (
            "m and v exchanged",
            '"m": trees["m"], "v": trees["v"]',
            '"m": trees["v"], "v": trees["m"]',
        ),
        ("written in place", 'path.with_name(f"{path.name}.tmp")', "path"),
        (
            "settings are not compared",
            '"settings": settings._asdict()}',
            '"settings": {}}',
        ),
        (
            "the rest of a failed save stays",
            "            temporary.unlink()",
            "            pass",
        ),
        ("pickles are read", "allow_pickle=False", "allow_pickle=True"),
    ],
}

FAST_AND_COURSE = {
    "fast": [
        ("no scale", 'query["W"] * scale, key["W"]', 'query["W"], key["W"]'),
        ("the query's bias is not scaled", 'query["b"] * scale', 'query["b"]'),
        ("keys and values exchanged", 'key["W"], value["W"]]', 'value["W"], key["W"]]'),
        (
            "attention not divided",
            "    if maps is not None:\n        scores /= total\n",
            "",
        ),
        (
            "context not divided",
            "    gathered /= total  # D numbers a query, not T\n",
            "",
        ),
        (
            "one part where two are quicker",
            "min(processors, total // FEWEST_TOKENS)",
            "1",
        ),
        ("two threads where eight processors wait", "min(3, processors)", "2"),
        (
            "texts of a part mixed up",
            "slice(end - lengths[row], end)",
            "slice(0, lengths[row])",
        ),
        (
            "one residual left out",
            '    update = linear(inner, **params["ffn"]["outer"])\n    update += x\n',
            '    update = linear(inner, **params["ffn"]["outer"])\n',
        ),
        (
            "always the same GELU",
            "getattr(functional, config.activation)",
            "functional.gelu_tanh",
        ),
        ("hidden states of another text", "= x[place]", "= x[:lengths[row]]"),
        ("maps of another text", "maps[row, :, :n, :n]", "maps[0, :, :n, :n]"),
        (
            "padding at any place is packed",
            "if not lengths.all() or (mask",
            "if not lengths.all() or False and (mask",
        ),
        ("a row without a token is packed", "if not lengths.all() or", "if"),
        (
            "attention kept always",
            'for _ in prepared["qkv"] if return_attention]',
            'for _ in prepared["qkv"]]',
        ),
    ],
    "course/answers": [
        (
            "kind of number not compared",
            '(mine.dtype.kind == "b") !=',
            "False and True !=",
        ),
        ("shape not compared", "if mine.shape != right.shape:", "if False:"),
        ("tolerance not kept", "(gap <= tolerance).all()", "(gap <= 1).all()"),
        ("length not compared", "if len(answer) != len(expected):", "if False:"),
        ("NaN equals any number", "np.isnan(mine) & np.isnan(right)", "np.isnan(mine)"),
    ],
    "course/checker": [
        ("inputs may be written to", "if not same_inputs(given, case):", "if False:"),
        (
            "the case itself is handed out",
            "given = copy.deepcopy(case)",
            "given = case",
        ),
        (
            "mistakes are not looked up",
            "for mistake in exercise.mistakes:",
            "for mistake in ():",
        ),
        ("a stub counts as wrong", "if answer is None or answer is ...:", "if False:"),
        ("one right case is enough", "if not wrong:", "if len(wrong) < len(pairs):"),
        (
            "errors of the student go through",
            "except Exception as error:",
            "except ZeroDivisionError as error:",
        ),
        (
            "solutions never hidden",
            'os.environ.get("BERT_NP_SOLUTIONS") == "hidden"',
            "False",
        ),
    ],
    "course/lab": [
        (
            "patient 1 is well",
            '    1: {"softmax": _softmax_over_queries},',
            "    1: {},",
        ),
        ("patient 4 is well", '    4: {"mask": np.ones_like},', "    4: {},"),
    ],
}

EDITS = MODEL | ANALYSIS | TRAINING | FAST_AND_COURSE

# Where a fault shows, if not in the module's own tests and the model's.
TESTS = {
    "analysis": ["analysis"],
    "checkpoint": ["checkpoint"],
    "config": ["config"],
    "course/answers": ["course"],
    "course/checker": ["course"],
    "course/lab": ["course"],
    "fast": ["fast"],
    "mistakes": ["trace"],
    "parameters": ["parameters"],
    "pretrained": ["pretrained"],
    "tokenizer": ["tokenizer", "properties"],
    "trace": ["trace"],
    "training/adam": ["training"],
    "training/backward": ["backward"],
    "training/functional_backward": ["backward"],
    "training/losses": ["backward"],
    "training/masking": ["training"],
    "training/pretraining": ["backward"],
    "training/run": ["training"],
    "training/train": ["training"],
    "weight_files": ["checkpoint"],
}
