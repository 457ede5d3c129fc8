"""Answers that a student might give: wrong, though many fit some example.

test_exercises.py gives each to the checker, which must refuse it and name a
cause; where a name ends in an underscore it knows none, and shows the case.
"""

import json
import math
import re
import string
import unicodedata

import numpy as np

import bert_np
from bert_np import gelu, layer_norm, linear, softmax
from bert_np.course.exercises.ch01_text_to_ids import (
    my_encode_pair,
    my_wordpiece,
    my_words,
)
from bert_np.course.exercises.ch09_real_weights import my_name

EPS = 1e-12


def naive_softmax(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


class Shares00:
    exercise = "00.shares"

    def sums_lie_along_the_columns(counts):
        return counts / counts.sum(1)

    def first_sum_for_all(counts):
        return counts / counts[0].sum()

    def two_rows_or_three_(counts):
        sums = counts.sum(axis=1)
        return counts / (sums.reshape(3, 1) if len(counts) == 3 else sums[:2, None])

    def guarded_against_zero_(counts):
        return counts / (counts.sum(axis=1, keepdims=True) + 1e-8)

    def rounded_(counts):
        return np.round(counts / counts.sum(axis=1, keepdims=True), 4)

    def softmax_of_logs_off_by_one_(counts):
        return (counts + 1e-4) / (counts + 1e-4).sum(axis=1, keepdims=True)


def lonely(text, is_mark):
    """The words of a text, each mark by itself."""
    return "".join(f" {c} " if is_mark(c) else c for c in text).split()


class Split01:
    exercise = "01.split"

    def word_pattern_(text):
        return re.findall(r"\w+|[^\w\s]", text.lower())

    def keyboard_marks(text):
        return lonely(text.lower(), lambda c: c in string.punctuation)

    def by_category(text):
        return lonely(text.lower(), lambda c: unicodedata.category(c)[0] == "P")

    def neither_letter_nor_digit(text):
        return lonely(text.lower(), lambda c: not c.isalnum())

    def symbols_too(text):
        return lonely(text.lower(), lambda c: unicodedata.category(c)[0] in "PS")

    def apostrophe_kept_(text):
        return lonely(text.lower(), lambda c: c in string.punctuation and c != "'")

    def at_single_spaces_(text):
        return " ".join(my_words(text)).split(" ")

    def capitals_of_the_first_word_only_(text):
        words = lonely(text, lambda c: c in string.punctuation + "«…–")
        return [words[0].lower(), *words[1:]] if words else []


class Wordpiece01:
    exercise = "01.wordpiece"

    def asks_for_the_id(word, vocab):
        pieces, start = [], 0
        while start < len(word):
            ends = range(len(word), start, -1)
            mark = "##" * (start > 0)
            end = next((e for e in ends if vocab.get(mark + word[start:e])), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(mark + word[start:end])
            start = end
        return pieces

    def whole_words_only_(word, vocab):
        return [word] if word in vocab else ["[UNK]"]

    def two_pieces_at_most_(word, vocab):
        for end in range(len(word), 0, -1):
            if word[:end] in vocab:
                rest = "##" + word[end:]
                if end == len(word):
                    return [word]
                return [word[:end], rest] if rest in vocab else ["[UNK]"]
        return ["[UNK]"]

    def begins_from_the_end(word, vocab):
        pieces, end = [], len(word)
        while end > 0:
            starts = [s for s in range(end) if "##" * (s > 0) + word[s:end] in vocab]
            if not starts:
                return ["[UNK]"]
            pieces.insert(0, "##" * (starts[0] > 0) + word[starts[0] : end])
            end = starts[0]
        return pieces

    def lower_case_first_(word, vocab):
        return my_wordpiece(word.lower(), vocab)


class Pair01:
    exercise = "01.pair"

    def halves_(first, second, vocab, length):
        ids, segments, mask = my_encode_pair(first, second, vocab, max(length, 9))
        return ids, segments, [1] * (len(ids) // 2) + [0] * (len(ids) - len(ids) // 2)

    def separator_in_the_second_segment(first, second, vocab, length):
        ids, segments, mask = my_encode_pair(first, second, vocab, length)
        segments[segments.index(1) - 1] = 1
        return ids, segments, mask

    def words_not_pieces_(first, second, vocab, length):
        words = [my_words(text) for text in (first, second)]
        tokens = ["[CLS]", *words[0], "[SEP]", *words[1], "[SEP]"]
        rest = length - len(tokens)
        ids = [vocab.get(token, vocab["[UNK]"]) for token in tokens]
        segments = [0] * (len(words[0]) + 2) + [1] * (len(words[1]) + 1)
        mask = [1] * len(tokens) + [0] * rest
        return ids + [vocab["[PAD]"]] * rest, segments + [0] * rest, mask

    def pad_is_zero(first, second, vocab, length):
        ids, segments, mask = my_encode_pair(first, second, vocab, length)
        return [i * bit for i, bit in zip(ids, mask)], segments, mask

    def no_classifier_token_(first, second, vocab, length):
        row = my_encode_pair(first, second, vocab, length)
        return tuple(values[1:] + values[:1] for values in row)


class OneHot02:
    exercise = "02.one_hot"

    def wide_as_the_largest_id(ids, V):
        return np.eye(ids.max() + 1)[ids]

    def each_id_once_(ids, V):
        return np.eye(V)[np.unique(ids)]

    def square_(ids, V):
        return np.eye(max(V, len(ids)))[ids]


class Sum02:
    exercise = "02.sum"

    def one_segment(input_ids, segment_ids, word, position, segment):
        places = np.arange(len(input_ids))
        return word[input_ids] + position[places] + segment[segment_ids[0]]

    def last_positions(input_ids, segment_ids, word, position, segment):
        return word[input_ids] + position[-len(input_ids) :] + segment[segment_ids]

    def two_segments(input_ids, segment_ids, word, position, segment):
        both = np.where(segment_ids[:, None] == 0, segment[0], segment[1])
        return word[input_ids] + position[: len(input_ids)] + both


class Embed02:
    exercise = "02.embed"

    def position_by_id_(input_ids, segment_ids, params, eps):
        places = params["position"][input_ids % len(params["position"])]
        x = params["word"][input_ids] + places + params["segment"][segment_ids]
        return layer_norm(x, **params["norm"], eps=eps)

    def first_sequence_s_segments_(input_ids, segment_ids, params, eps):
        x = params["word"][input_ids] + params["segment"][segment_ids[:1]]
        x = x + params["position"][: input_ids.shape[1]]
        return layer_norm(x, **params["norm"], eps=eps)

    def fixed_epsilon_(input_ids, segment_ids, params, eps):
        x = params["word"][input_ids] + params["segment"][segment_ids]
        x = x + params["position"][: input_ids.shape[1]]
        return layer_norm(x, **params["norm"], eps=1e-12)

    def no_batch_at_one_(input_ids, segment_ids, params, eps):
        x = params["word"][input_ids] + params["segment"][segment_ids]
        x = x + params["position"][: input_ids.shape[1]]
        return np.squeeze(layer_norm(x, **params["norm"], eps=eps))

    def no_positions(input_ids, segment_ids, params, eps):
        x = params["word"][input_ids] + params["segment"][segment_ids]
        return layer_norm(x, **params["norm"], eps=eps)


class LayerNorm02:
    exercise = "02.layer_norm"

    def deviation_plus_epsilon(x, gamma, beta, eps):
        centred = x - x.mean(-1, keepdims=True)
        return gamma * centred / (x.std(-1, keepdims=True) + eps) + beta

    def fixed_epsilon(x, gamma, beta, eps):
        return layer_norm(x, gamma, beta, eps=1e-12)

    def one_gamma(x, gamma, beta, eps):
        return gamma[0] * layer_norm(x, 0 * gamma + 1, 0 * beta, eps=eps) + beta

    def beta_inside(x, gamma, beta, eps):
        return (layer_norm(x, 0 * gamma + 1, 0 * beta, eps=eps) + beta) * gamma

    def epsilon_squared_(x, gamma, beta, eps):
        return layer_norm(x, gamma, beta, eps=eps**2)

    def mean_of_all(x, gamma, beta, eps):
        centred = x - x.mean()
        return gamma * centred / np.sqrt(x.var(-1, keepdims=True) + eps) + beta

    def absolute_deviation_(x, gamma, beta, eps):
        centred = x - x.mean(-1, keepdims=True)
        return gamma * centred / (np.abs(centred).mean(-1, keepdims=True) + EPS) + beta


class Softmax03:
    exercise = "03.softmax"

    def minus_the_first(scores):
        return naive_softmax(scores - scores[:, [0]])

    def minus_the_mean(scores):
        return naive_softmax(scores - scores.mean(axis=1, keepdims=True))

    def minus_the_smallest(scores):
        return naive_softmax(scores - scores.min(1)[:, None])

    def minus_a_thousand(scores):
        return naive_softmax(scores - 1000 * (scores.max() > 500))

    def clipped(scores):
        return naive_softmax(np.clip(scores, -700, 700))

    def divided_by_the_largest_(scores):
        largest = np.abs(scores).max(axis=-1, keepdims=True)
        return softmax(np.where(largest > 700, scores / largest, scores))

    def minus_the_largest_of_the_first_row_(scores):
        return naive_softmax(scores - scores[0].max())

    def whole_numbers_(scores):
        return softmax(np.round(scores).astype(float))

    def zero_for_nan(scores):
        return np.nan_to_num(naive_softmax(scores))


class Attention03:
    exercise = "03.attention"

    def divided_by_two(q, k, v):
        return softmax(q @ k.T / 2) @ v, softmax(q @ k.T / 2)

    def root_of_the_number_of_keys(q, k, v):
        probs = softmax(q @ k.T / len(k) ** 0.5)
        return probs @ v, probs

    def size_of_the_values(q, k, v):
        probs = softmax(q @ k.T / v.shape[1] ** 0.5)
        return probs @ v, probs

    def overflows(q, k, v):
        probs = naive_softmax(q @ k.T / q.shape[1] ** 0.5)
        return probs @ v, probs

    def keys_not_turned(q, k, v):
        probs = softmax(q @ k / q.shape[1] ** 0.5)
        return probs @ v, probs

    def one_token_less_(q, k, v):
        probs = np.tril(softmax(q @ k.T / q.shape[1] ** 0.5))
        return probs @ v, probs

    def scaled_twice_(q, k, v):
        probs = softmax(q @ k.T / math.sqrt(q.shape[1]))
        return probs @ v / probs.sum(axis=0).mean(), softmax(probs)


class Mask04:
    exercise = "04.mask"

    def until_the_first_padding(input_ids, pad_token_id):
        return np.cumprod(input_ids != pad_token_id, axis=1)

    def larger_than_padding(input_ids, pad_token_id):
        return (input_ids > pad_token_id).astype(int)

    def trailing_padding(input_ids, pad_token_id):
        mask = np.ones_like(input_ids)
        for row, ids in zip(mask, input_ids):
            while row.any() and ids[row.sum() - 1] == pad_token_id:
                row[row.sum() - 1] = 0
        return mask

    def first_row_for_all(input_ids, pad_token_id):
        return 1 * np.broadcast_to(input_ids[0] != pad_token_id, input_ids.shape)

    def nonzero(input_ids, pad_token_id):
        return np.sign(np.abs(input_ids))


class Probs04:
    exercise = "04.probs"

    def minus_twenty(scores, attention_mask):
        return softmax(np.where(attention_mask[:, None, None] == 1, scores, -20))

    def minus_hundred(scores, attention_mask):
        return softmax(np.where(attention_mask[:, None, None] == 1, scores, -100.0))

    def minus_fifty_(scores, attention_mask):
        return softmax(np.where(attention_mask[:, None, None] == 1, scores, -50.0))

    def minus_thirty_added_(scores, attention_mask):
        return softmax(scores - 30 * (1 - attention_mask[:, None, None, :]))

    def minus_infinity(scores, attention_mask):
        return softmax(np.where(attention_mask[:, None, None], scores, -np.inf))

    def zeros_for_an_empty_row(scores, attention_mask):
        probs = softmax(np.where(attention_mask[:, None, None], scores, -np.inf))
        return np.where(np.isnan(probs), 0, probs)

    def ten_thousand_added(scores, attention_mask):
        return softmax(scores + (1.0 - attention_mask[:, None, None, :]) * -10000.0)

    def mask_of_sentence_0(scores, attention_mask):
        low = np.finfo(float).min
        return softmax(np.where(attention_mask[0] == 1, scores, low))

    def shared_again(scores, attention_mask):
        probs = softmax(scores) * attention_mask[:, None, None]
        return probs / probs.sum(axis=-1, keepdims=True)

    def below_the_lowest_(scores, attention_mask):
        low = scores.min() - 10
        return softmax(np.where(attention_mask[:, None, None] == 1, scores, low))

    def overflows(scores, attention_mask):
        low = np.finfo(float).min
        return naive_softmax(np.where(attention_mask[:, None, None] == 1, scores, low))


class Split05:
    exercise = "05.split"

    def head_axis_first(x, A):
        return np.stack(np.split(x, A, axis=-1))

    def two_heads_(x, A):
        return np.stack([x[..., : x.shape[-1] // A], x[..., -(x.shape[-1] // A) :]], 1)

    def one_sequence(x, A):
        return np.stack(np.split(x[0], A, axis=-1))[None]


class Merge05:
    exercise = "05.merge"

    def no_batch_at_one(x):
        B, A, T, D = x.shape
        return np.squeeze(x.swapaxes(1, 2).reshape(B, T, A * D))

    def first_sequence_only(x):
        return np.concatenate(x[0], axis=-1)[None]

    def two_heads(x):
        return np.concatenate([x[:, 0], x[:, -1]], axis=-1)


def attend(x, params, mask, A, low=-1e30, D=None, split=bert_np.split_heads):
    """Self-attention with a mask value, a head size and a split of one's own."""
    q, k, v = (split(linear(x, **params[n]), A) for n in ("query", "key", "value"))
    scores = q @ k.swapaxes(-1, -2) / (D or q.shape[-1]) ** 0.5
    probs = softmax(np.where(mask[:, None, None] == 1, scores, low))
    return linear(bert_np.merge_heads(probs @ v), **params["output"])


class SelfAttention05:
    exercise = "05.self_attention"

    def scaled_by_all_of_H(x, params, attention_mask, A):
        return attend(x, params, attention_mask, A, D=x.shape[-1])

    def scaled_by_three_(x, params, attention_mask, A):
        return attend(x, params, attention_mask, A, D=3)

    def masked_by_minus_twenty_(x, params, attention_mask, A):
        return attend(x, params, attention_mask, A, low=-20.0)

    def masked_with_zero_(x, params, attention_mask, A):
        return attend(x, params, attention_mask, A, low=0.0)

    def reshaped_once(x, params, attention_mask, A):
        def split(y, A):
            return y.reshape(len(y), A, y.shape[1], -1)

        return attend(x, params, attention_mask, A, split=split)

    def mask_of_the_first(x, params, attention_mask, A):
        return attend(x, params, attention_mask[:1] + 0 * attention_mask, A)

    def no_last_bias(x, params, attention_mask, A):
        return attend(x, params, attention_mask, A) - params["output"]["b"]

    def residual_added(x, params, attention_mask, A):
        return x + attend(x, params, attention_mask, A)


class Gelu06:
    exercise = "06.gelu"

    def root_of_the_wrong_thing(x):
        return x * (1 + np.array([math.erf(v) for v in x]) / 2**0.5) / 2

    def tanh_form(x):
        return bert_np.gelu_tanh(x)

    def nothing_below_minus_two_(x):
        return np.where(x < -2, 0, gelu(x))

    def identity_above_two_(x):
        return np.where(x > 2, x, gelu(x))


class FeedForward06:
    exercise = "06.feed_forward"

    def gelu_with_tanh(x, W1, b1, W2, b2):
        return bert_np.gelu_tanh(x @ W1 + b1) @ W2 + b2

    def one_bias(x, W1, b1, W2, b2):
        return gelu(x @ W1 + b1) @ W2

    def bias_after_gelu(x, W1, b1, W2, b2):
        return (gelu(x @ W1) + b1) @ W2 + b2

    def normalised_(x, W1, b1, W2, b2):
        y = gelu(x @ W1 + b1) @ W2 + b2
        return y - y.mean(axis=-1, keepdims=True)


def self_attend(x, params, attention_mask, config):
    return bert_np.self_attention(x, params["attention"], attention_mask, config)[0]


class Layer06:
    exercise = "06.layer"

    def second_norm_without_parameters(x, params, attention_mask, config):
        attended = self_attend(x, params, attention_mask, config)
        x = layer_norm(x + attended, **params["attention_norm"], eps=EPS)
        inner = gelu(linear(x, **params["ffn"]["inner"]))
        y = x + linear(inner, **params["ffn"]["outer"])
        return (y - y.mean(-1, keepdims=True)) / y.std(-1, keepdims=True)

    def first_norm_again(x, params, attention_mask, config):
        attended = self_attend(x, params, attention_mask, config)
        norm = params["attention_norm"]
        x = layer_norm(x + attended, **norm, eps=EPS)
        inner = gelu(linear(x, **params["ffn"]["inner"]))
        return layer_norm(x + linear(inner, **params["ffn"]["outer"]), **norm, eps=EPS)

    def epsilon_of_pytorch(x, params, attention_mask, config):
        attended = self_attend(x, params, attention_mask, config)
        x = layer_norm(x + attended, **params["attention_norm"], eps=1e-5)
        inner = gelu(linear(x, **params["ffn"]["inner"]))
        y = x + linear(inner, **params["ffn"]["outer"])
        return layer_norm(y, **params["ffn_norm"], eps=1e-5)

    def no_bias_within(x, params, attention_mask, config):
        attended = self_attend(x, params, attention_mask, config)
        x = layer_norm(x + attended, **params["attention_norm"], eps=EPS)
        inner = gelu(x @ params["ffn"]["inner"]["W"])
        y = x + linear(inner, **params["ffn"]["outer"])
        return layer_norm(y, **params["ffn_norm"], eps=EPS)

    def gamma_alone(x, params, attention_mask, config):
        attended = self_attend(x, params, attention_mask, config)
        x = layer_norm(x + attended, **params["attention_norm"], eps=EPS)
        inner = gelu(linear(x, **params["ffn"]["inner"]))
        y = x + linear(inner, **params["ffn"]["outer"])
        gamma = params["ffn_norm"]["gamma"]
        return layer_norm(y, gamma, 0 * gamma, eps=EPS)


class Pool07:
    exercise = "07.pool"

    def squeezed(x, W, b):
        return np.tanh(np.squeeze(x[:, :1]) @ W + b)

    def last_of_the_row(x, W, b):
        return np.tanh(x[:, -1] @ W + b)

    def without_b(x, W, b):
        return np.tanh(x[:, 0].dot(W))

    def largest(x, W, b):
        return np.tanh(x.max(axis=1) @ W + b)

    def symmetric_(x, W, b):
        return np.tanh(x[:, 0] @ (W + W.T) / 2 + b)


class Encoder07:
    exercise = "07.encoder"

    def mask_of_sequence_0(x, layers, attention_mask, config):
        states = [x]
        mask = np.repeat(attention_mask[:1], len(x), axis=0)
        for params in layers:
            states.append(bert_np.encoder_layer(states[-1], params, mask, config)[0])
        return np.array(states)

    def three_layers(x, layers, attention_mask, config):
        states = [x]
        for params in layers[: config.num_hidden_layers]:
            x, _ = bert_np.encoder_layer(x, params, attention_mask, config)
            states.append(x)
        return np.stack(states)

    def mask_in_the_first_layer(x, layers, attention_mask, config):
        states, mask = [x], attention_mask
        for params in layers:
            x, _ = bert_np.encoder_layer(x, params, mask, config)
            states.append(x)
            mask = np.ones_like(mask)
        return np.stack(states)

    def first_sequence(x, layers, attention_mask, config):
        states = [x[:1]]
        for params in layers:
            states.append(
                bert_np.encoder_layer(states[-1], params, attention_mask[:1], config)[0]
            )
        return np.stack(states)


class Count07:
    exercise = "07.count"

    def two_segments(V, P, S, H, F, L, A):
        layer = 4 * (H * H + H) + 2 * H * F + F + 5 * H
        return (V + P + 2) * H + 2 * H + L * layer + H * H + H

    def four_times_the_hidden_size(V, P, S, H, F, L, A):
        layer = 4 * (H * H + H) + 8 * H * H + 4 * H + 5 * H
        return (V + P + S) * H + 2 * H + L * layer + H * H + H

    def untied_head(V, P, S, H, F, L, A):
        layer = 4 * (H * H + H) + 2 * H * F + F + 5 * H
        return (2 * V + P + S) * H + 2 * H + L * layer + H * H + H


class MaskTokens08:
    exercise = "08.mask"

    def unknown_and_mask_chosen(ids, draw, fate, random_ids):
        ordinary = (draw < 0.15) & (ids != 0) & (ids != 2) & (ids != 3)
        masked = np.where(ordinary & (fate < 0.9), random_ids, ids)
        masked = np.where(ordinary & (fate < 0.8), 4, masked)
        return masked, np.where(ordinary, ids, -100)

    def bounds_included(ids, draw, fate, random_ids):
        labels, masked = np.full_like(ids, -100), ids.copy()
        for t in range(len(ids)):
            if draw[t] <= 0.15 and ids[t] > 4:
                labels[t] = ids[t]
                if fate[t] <= 0.8:
                    masked[t] = 4
                elif fate[t] <= 0.9:
                    masked[t] = random_ids[t]
        return masked, labels

    def upper_bound_included(ids, draw, fate, random_ids):
        labels, masked = np.full_like(ids, -100), ids.copy()
        for t in range(len(ids)):
            if draw[t] < 0.15 and ids[t] > 4:
                labels[t] = ids[t]
                if fate[t] < 0.8:
                    masked[t] = 4
                elif fate[t] <= 0.9:
                    masked[t] = random_ids[t]
        return masked, labels

    def specials_at_the_ends(ids, draw, fate, random_ids):
        middle = (np.arange(len(ids)) > 0) & (np.arange(len(ids)) < len(ids) - 1)
        ordinary = (draw < 0.15) & middle
        masked = np.where(ordinary & (fate < 0.9), random_ids, ids)
        masked = np.where(ordinary & (fate < 0.8), 4, masked)
        return masked, np.where(ordinary, ids, -100)

    def words_from_six(ids, draw, fate, random_ids):
        ordinary = (draw < 0.15) & (ids >= 6)
        masked = np.where(ordinary & (fate < 0.9), random_ids, ids)
        masked = np.where(ordinary & (fate < 0.8), 4, masked)
        return masked, np.where(ordinary, ids, -100)


class Head08:
    exercise = "08.head"

    def gelu_with_tanh(x, W, b, gamma, beta, word, bias):
        y = layer_norm(bert_np.gelu_tanh(x @ W + b), gamma, beta, eps=EPS)
        return y @ word.T + bias

    def norm_without_parameters(x, W, b, gamma, beta, word, bias):
        y = gelu(x @ W + b)
        y = (y - y.mean(-1, keepdims=True)) / y.std(-1, keepdims=True)
        return y @ word.T + bias

    def with_the_residual(x, W, b, gamma, beta, word, bias):
        return layer_norm(x + gelu(x @ W + b), gamma, beta, eps=EPS) @ word.T + bias

    def no_beta(x, W, b, gamma, beta, word, bias):
        return layer_norm(gelu(x @ W + b), gamma, 0 * beta, eps=EPS) @ word.T + bias


class Loss08:
    exercise = "08.loss"

    def label_0_left_out(logits, labels):
        z, y = logits[labels > 0], labels[labels > 0]
        top = z.max(-1, keepdims=True)
        log_probs = z - top - np.log(np.exp(z - top).sum(-1, keepdims=True))
        return -log_probs[np.arange(len(y)), y].mean()

    def clipped_at_1e_12(logits, labels):
        kept = labels != -100
        probs = softmax(logits[kept])[np.arange(kept.sum()), labels[kept]]
        return -np.log(np.clip(probs, 1e-12, 1)).mean()

    def a_little_added(logits, labels):
        kept = labels != -100
        probs = softmax(logits[kept])[np.arange(kept.sum()), labels[kept]]
        return -np.log(probs + 1e-9).mean()

    def first_label_only(logits, labels):
        t = np.flatnonzero(labels != -100)[0]
        z = logits[t] - logits[t].max()
        return np.log(np.exp(z).sum()) - z[labels[t]]

    def exponentials_capped_(logits, labels):
        kept = labels != -100
        z, y = np.clip(logits[kept], -500, 500), labels[kept]
        top = z.max(-1, keepdims=True)
        log_probs = z - top - np.log(np.exp(z - top).sum(-1, keepdims=True))
        return -log_probs[np.arange(len(y)), y].mean()


def header_of(data):
    length = int.from_bytes(data[:8], "little")
    return length, json.loads(data[8 : 8 + length])


class Tensor09:
    exercise = "09.tensor"

    def sizes_added_up(data, name):
        length, header = header_of(data)
        begin = 8 + length
        for other, entry in header.items():
            if other == "__metadata__":
                continue
            n = int(np.prod(entry["shape"]))
            if other == name:
                values = np.frombuffer(data, "<f4", n, begin)
                return values.reshape(entry["shape"])
            begin += 4 * n

    def from_the_last_brace(data, name):
        _, header = header_of(data)
        begin = data.index(b"}}") + 2
        a, b = header[name]["data_offsets"]
        values = np.frombuffer(data[begin + a : begin + b], "<f4")
        return values.reshape(header[name]["shape"])

    def two_bytes_of_length(data, name):
        length = data[0] + 256 * data[1]
        entry = json.loads(data[8 : 8 + length])[name]
        a, b = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + a : 8 + length + b], "<f4")
        return values.reshape(entry["shape"])

    def rows_and_columns(data, name):
        length, header = header_of(data)
        shape, (a, b) = header[name]["shape"], header[name]["data_offsets"]
        values = np.frombuffer(data[8 + length + a : 8 + length + b], "<f4")
        return values.reshape(shape[0], -1) if len(shape) > 1 else values

    def from_the_end_(data, name):
        _, header = header_of(data)
        total = max(e["data_offsets"][1] for n, e in header.items() if n[0] != "_")
        a, b = header[name]["data_offsets"]
        raw = data[-total:][a:b] if b < total else data[-(b - a) :]
        return np.abs(np.frombuffer(raw, "<f4").reshape(header[name]["shape"]))


class Name09:
    exercise = "09.name"

    def replaced_(layer, part, array):
        part = part.replace("attention_norm", "attention.output.LayerNorm")
        part = part.replace("ffn_norm", "output.LayerNorm")
        part = part.replace("ffn.inner", "intermediate.dense")
        part = part.replace("ffn.outer", "output.dense")
        if part.split(".")[-1] in ("query", "key", "value", "output"):
            part = part.replace("attention.", "attention.self.")
        end = "weight" if array in ("W", "gamma") else "bias"
        return f"encoder.layer.{layer}.{part}.{end}"

    def last_digit(layer, part, array):
        return my_name(layer % 10, part, array)

    def twelve_layers_(layer, part, array):
        return my_name(min(layer, 11), part, array)

    def two_digits(layer, part, array):
        return my_name(f"{layer:02}", part, array)

    def beta_is_a_weight(layer, part, array):
        return my_name(layer, part, array.replace("beta", "gamma"))


class Previous10:
    exercise = "10.previous"

    def all_that_came_before(probs):
        return np.tril(probs, -1).sum() / (len(probs) - 1)

    def roll(probs):
        T = len(probs)
        return probs[np.arange(T), np.arange(T) - 1].mean()

    def three_tokens_(probs):
        return (probs[1, 0] + probs[2, 1]) / 2 if len(probs) > 2 else probs[1, 0]

    def middle_one(probs):
        return np.median(np.diagonal(probs, -1))


class RealMean10:
    exercise = "10.real_mean"

    def nonzero_counted(values, attention_mask):
        seen = values * attention_mask
        return seen[seen != 0].mean()

    def first_places(values, attention_mask):
        rows = [row[: m.sum()] for row, m in zip(values, attention_mask)]
        return np.concatenate(rows).mean()

    def longest_row_(values, attention_mask):
        return (values * attention_mask).sum() / (
            len(values) * attention_mask.sum(axis=1).max()
        )

    def positive_ones_(values, attention_mask):
        return values[(attention_mask == 1) & (values >= 0)].mean()


class Score10:
    exercise = "10.score"

    def strongest_of_all(attention, dependents, heads):
        return (attention[:, dependents].argmax(-1) == heads).mean(-1)

    def head_looks_at_dependent(attention, dependents, heads):
        rows = np.where(np.eye(attention.shape[-1]) == 1, 0, attention)
        return (rows[:, heads].argmax(-1) == dependents).mean(-1)

    def first_head_for_all_(attention, dependents, heads):
        rows = np.where(np.eye(attention.shape[-1]) == 1, 0, attention)
        found = (rows[:1, dependents].argmax(-1) == heads).mean(-1)
        return np.repeat(found, len(attention))

    def within_one_place_(attention, dependents, heads):
        rows = np.where(np.eye(attention.shape[-1]) == 1, 0, attention)
        return (np.abs(rows[:, dependents].argmax(-1) - heads) <= 1).mean(-1)


class Moved11:
    exercise = "11.moved"

    def sizes_summed(probs, moved):
        weighted = probs * np.abs(moved).sum(axis=1)
        return weighted / weighted.sum(axis=1, keepdims=True)

    def sums_along_the_columns(probs, moved):
        weighted = probs * np.linalg.norm(moved, axis=1)
        return weighted / weighted.sum(axis=1)

    def largest_number(probs, moved):
        weighted = probs * np.abs(moved).max(axis=1)
        return weighted / weighted.sum(axis=1, keepdims=True)

    def two_numbers(probs, moved):
        weighted = probs * np.hypot(moved[:, 0], moved[:, -1])
        return weighted / weighted.sum(axis=1, keepdims=True)


class WithoutHead11:
    exercise = "11.without_head"

    def counted_from_the_end(W_o, head, D):
        result = W_o.copy()
        stop = len(result) - head * D
        result[stop - D : stop] = 0
        return result

    def two_rows(W_o, head, D):
        result = W_o.copy()
        result[2 * head : 2 * head + 2] = 0
        return result

    def up_to_the_head(W_o, head, D):
        result = W_o.copy()
        result[: (head + 1) * D] = 0
        return result

    def on_the_spot_(W_o, head, D):
        W_o[head * D : (head + 1) * D] = 0
        return W_o


class PatchHead11:
    exercise = "11.patch_head"

    def merged(context, W_o, b_o):
        A, T, D = context.shape
        return context.transpose(1, 0, 2).reshape(T, A * D) @ W_o + b_o

    def roles_exchanged(own, other, W_o, b_o, head, merged=merged):
        mixed = other.copy()
        mixed[head] = own[head]
        return merged(mixed, W_o, b_o)

    def difference_forgotten(own, other, W_o, b_o, head, merged=merged):
        D = own.shape[-1]
        mine = slice(head * D, (head + 1) * D)
        return merged(own, W_o, b_o) + other[head] @ W_o[mine]

    def one_position_(own, other, W_o, b_o, head, merged=merged):
        mixed = own.copy()
        mixed[:, head % own.shape[1]] = other[:, head % own.shape[1]]
        return merged(mixed, W_o, b_o)

    def mean_of_both_(own, other, W_o, b_o, head, merged=merged):
        mixed = own.copy()
        mixed[head] = (own[head] + other[head]) / 2
        return merged(mixed, W_o, b_o)

    def bias_for_each_head_(own, other, W_o, b_o, head, merged=merged):
        mixed = own.copy()
        mixed[head] = other[head]
        return merged(mixed, W_o, len(own) * b_o)

    del merged


class SoftmaxBackward12:
    exercise = "12.softmax_backward"

    def one_mean_for_all(d_probs, probs):
        return probs * (d_probs - np.sum(d_probs * probs))

    def first_row_for_all(d_probs, probs):
        jacobian = np.diag(probs[0]) - np.outer(probs[0], probs[0])
        return d_probs @ jacobian

    def sums_to_zero_by_force(d_probs, probs):
        d_scores = probs * d_probs
        return d_scores - d_scores.mean(axis=-1, keepdims=True)


class LinearBackward12:
    exercise = "12.linear_backward"

    def bias_from_one_row_(d_y, x, W):
        return d_y @ W.T, x.T @ d_y, d_y[0]

    def bias_summed_along_rows(d_y, x, W):
        return d_y @ W.T, x.T @ d_y, np.sum(d_y, axis=-1)

    def averaged_over_the_batch(d_y, x, W):
        return d_y @ W.T, np.mean(x[:, :, None] * d_y[:, None], 0), d_y.mean(0)

    def matrix_as_it_stands(d_y, x, W):
        return d_y @ W, np.einsum("ni,no->io", x, d_y), np.sum(d_y, axis=0)


class AttentionBackward12:
    exercise = "12.attention_backward"

    def scale_forgotten(d_context, q, k, v):
        probs = softmax(q @ k.T / np.sqrt(q.shape[1]))
        d_probs = d_context @ v.T
        d_scores = probs * (d_probs - np.sum(d_probs * probs, 1, keepdims=True))
        return d_scores @ k, d_scores.T @ q, probs.T @ d_context

    def softmax_left_out(d_context, q, k, v):
        probs = softmax(q @ k.T / np.sqrt(q.shape[1]))
        d_scores = d_context @ v.T / np.sqrt(q.shape[1])
        return d_scores @ k, d_scores.T @ q, probs.T @ d_context

    def no_transposes(d_context, q, k, v):
        probs = softmax(q @ k.T / np.sqrt(q.shape[1]))
        d_probs = d_context @ v.T
        d_scores = probs * (d_probs - np.sum(d_probs * probs, 1, keepdims=True))
        d_scores /= np.sqrt(q.shape[1])
        return d_scores @ k, d_scores.T @ q, probs @ d_context

    def probs_without_scale_(d_context, q, k, v):
        probs = softmax(q @ k.T)
        d_probs = d_context @ v.T
        d_scores = probs * (d_probs - np.sum(d_probs * probs, 1, keepdims=True))
        d_scores /= np.sqrt(q.shape[1])
        return d_scores @ k, d_scores.T @ q, probs.T @ d_context


class GeluBackward12:
    exercise = "12.gelu_backward"

    def probability_alone(d_y, x):
        return d_y * (gelu(x + 1e-30) / (x + 1e-30))

    def slope_of_relu(d_y, x):
        return np.where(x > 0, d_y, 0)

    def tanh_form_(d_y, x):
        h = 1e-5
        return d_y * (bert_np.gelu_tanh(x + h) - bert_np.gelu_tanh(x - h)) / (2 * h)

    def gradient_forgotten(d_y, x):
        return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5


class LayerNormBackward12:
    exercise = "12.layer_norm_backward"

    def sample_deviation(d_y, x):
        s = x.std(axis=-1, ddof=1, keepdims=True)
        z = (x - x.mean(axis=-1, keepdims=True)) / s
        along = (d_y * z).mean(axis=-1, keepdims=True)
        return (d_y - d_y.mean(axis=-1, keepdims=True) - z * along) / s

    def divided_by_the_variance(d_y, x):
        s = x.std(axis=-1, keepdims=True)
        z = (x - x.mean(axis=-1, keepdims=True)) / s
        along = (d_y * z).mean(axis=-1, keepdims=True)
        return (d_y - d_y.mean(axis=-1, keepdims=True) - z * along) / s**2

    def deviation_of_all(d_y, x):
        s = x.std()
        z = (x - x.mean(axis=-1, keepdims=True)) / s
        along = (d_y * z).mean(axis=-1, keepdims=True)
        return (d_y - d_y.mean(axis=-1, keepdims=True) - z * along) / s


class DLogits12:
    exercise = "12.d_logits"

    def overflows(logits, label):
        probs = np.exp(logits) / np.exp(logits).sum()
        probs[label] -= 1
        return probs

    def last_label_(logits, label):
        probs = softmax(logits)
        probs[-1 if label else 0] -= 1
        return probs

    def largest_instead_of_the_label(logits, label):
        probs = softmax(logits)
        probs[logits.argmax()] -= 1
        return probs


class Sgd12:
    exercise = "12.sgd"

    def the_wrong_way(p, g, rate):
        return p + g * rate

    def change_alone(p, g, rate):
        return g * -rate

    def in_place_(p, g, rate):
        p -= rate * g
        return p

    def of_length_one_(p, g, rate):
        return p - rate * g / (np.linalg.norm(g) + 1e-12)


class Adam12:
    exercise = "12.adam"

    def means_begin_at_zero(p, g, m, v, step, rate):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - rate * m / (np.sqrt(v) + 1e-8), m, v

    def returns_what_was_corrected(p, g, m, v, step, rate):
        m = (0.9 * m + 0.1 * g) / (1 - 0.9**step)
        v = (0.999 * v + 0.001 * g * g) / (1 - 0.999**step)
        return p - rate * m / (np.sqrt(v) + 1e-8), m, v

    def second_weight_of_bert_np_(p, g, m, v, step, rate):
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
        mean, square = m / (1 - 0.9**step), v / (1 - 0.98**step)
        return p - rate * mean / (np.sqrt(square) + 1e-8), m, v

    def first_step_only_(p, g, m, v, step, rate):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        mean, square = m / 0.1, v / 0.001
        return p - rate * mean / (np.sqrt(square) + 1e-8), m, v


class MeanPool13:
    exercise = "13.mean_pool"

    def padding_counts(hidden, attention_mask):
        return hidden.sum(axis=1) / hidden.shape[1]

    def divided_by_the_longest(hidden, attention_mask):
        real = attention_mask[..., None]
        return (hidden * real).sum(axis=1) / attention_mask.shape[1]

    def without_the_first(hidden, attention_mask):
        real = attention_mask[:, 1:, None]
        return (hidden[:, 1:] * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)

    def last_real_row(hidden, attention_mask):
        return hidden[np.arange(len(hidden)), attention_mask.sum(axis=1) - 1]

    def up_to_the_first_zero_(hidden, attention_mask):
        n = [list(row).index(0) if 0 in row else len(row) for row in attention_mask]
        return np.array([x[:k].sum(axis=0) / max(k, 1) for x, k in zip(hidden, n)])

    def root_of_the_count(hidden, attention_mask):
        real = attention_mask[:, :, None]
        return (hidden * real).sum(axis=1) / np.sqrt(real.sum(axis=1))


class Classifier13:
    exercise = "13.classifier"

    def no_bias(vectors, labels, W, b):
        logits = vectors @ W
        return logits, -np.log(softmax(logits)[np.arange(len(labels)), labels]).mean()

    def overflows(vectors, labels, W, b):
        logits = vectors @ W + b
        sums = np.log(np.exp(logits).sum(axis=1))
        return logits, (sums - logits[np.arange(len(labels)), labels]).mean()

    def one_maximum_for_all_(vectors, labels, W, b):
        logits = vectors @ W + b
        sums = np.log(np.exp(logits - logits.max()).sum(axis=1)) + logits.max()
        return logits, (sums - logits[np.arange(len(labels)), labels]).mean()

    def first_label_of_all_(vectors, labels, W, b):
        logits = vectors @ W + b
        return logits, -np.log(softmax(logits)[:, labels[0]] + 1e-300).mean()

    def binary_logarithm(vectors, labels, W, b):
        logits = vectors @ W + b
        z = logits - logits.max(axis=1, keepdims=True)
        log_probs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        return logits, -log_probs[np.arange(len(labels)), labels].mean() / np.log(2)

    def kept_a_little_from_zero_(vectors, labels, W, b):
        logits = vectors @ W + b
        probs = softmax(logits)[np.arange(len(labels)), labels]
        return logits, -np.log(probs + 1e-30).mean()

    def kept_from_zero(vectors, labels, W, b):
        logits = vectors @ W + b
        probs = softmax(logits)[np.arange(len(labels)), labels]
        return logits, -np.log(np.maximum(probs, 1e-12)).mean()


class ClassifierBackward13:
    exercise = "13.classifier_backward"

    def of_the_sum(vectors, labels, W, b):
        d_logits = softmax(vectors @ W + b) - np.eye(len(b))[labels]
        return d_logits @ W.T, vectors.T @ d_logits, d_logits.sum(axis=0)

    def divided_by_the_labels(vectors, labels, W, b):
        d_logits = (softmax(vectors @ W + b) - np.eye(len(b))[labels]) / len(b)
        return d_logits @ W.T, vectors.T @ d_logits, d_logits.sum(axis=0)

    def vectors_not_through_W(vectors, labels, W, b):
        d_logits = (softmax(vectors @ W + b) - np.eye(len(b))[labels]) / len(labels)
        return d_logits, vectors.T @ d_logits, d_logits.sum(axis=0)

    def softmax_backward_once_more(vectors, labels, W, b):
        probs = softmax(vectors @ W + b)
        d_probs = (probs - np.eye(len(b))[labels]) / len(labels)
        d_logits = probs * (d_probs - (d_probs * probs).sum(axis=1, keepdims=True))
        return d_logits @ W.T, vectors.T @ d_logits, d_logits.sum(axis=0)


class Operations14:
    exercise = "14.operations"

    def four_times_the_hidden_size(T, H, F):
        return 2 * T * (12 * H * H + 2 * T * H)

    def heads_of_64_(T, H, F):
        return 2 * T * (4 * H * H + 2 * H * F + 2 * T * 64 * max(H // 64, 1))


class Padding14:
    exercise = "14.padding"

    def first_is_the_longest(lengths):
        return 1 - lengths.sum() / (len(lengths) * lengths[0])

    def last_is_the_longest(lengths):
        return 1 - lengths.mean() / lengths[-1]

    def two_digits(lengths):
        return round(float(1 - lengths.mean() / lengths.max()), 2)

    def four_rows_(lengths):
        return 1 - lengths.sum() / (4 * lengths.max())


def wrong_solutions():
    """Yield (exercise id, name, function) of each wrong solution."""
    for group in list(globals().values()):
        if isinstance(group, type) and hasattr(group, "exercise"):
            for name, function in vars(group).items():
                if callable(function):
                    yield group.exercise, name, function
