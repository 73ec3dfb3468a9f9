"""What stands on the encoder: one small module per head, from packed states to logits.

The masked-LM head scores the vocabulary only at the positions asked for: with 30,000 pieces, scoring every position
is half the time of a small model. `HEADS` names them all; a model has any set of them. The conditional span head
is Google's for SQuAD 2.0: the end depends on the start, and a separate score says whether there is an answer.

Legend: B texts, T tokens in all, P masked positions, S longest, H hidden, E embedding, V vocabulary, K beam.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from albert.model.config import AlbertConfig
from albert.model.encoder import Encoded, activate
from albert.model.kernels import vocabulary_loss
from albert.model.norm import LayerNorm
from albert.model.packing import Packed

BEAM = 5  # start_n_top and end_n_top of Google's run_squad_v2
IMPOSSIBLE = -1e30  # Google's p_mask value


class MaskedLMHead(nn.Module):
    """H → E, activation, norm, then the word embedding itself as decoder, plus a bias."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.activation = config.hidden_act
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor, positions: Tensor, word_embedding: Tensor) -> Tensor:
        return nn.functional.linear(self._guess(states, positions), word_embedding, self.bias)  # [P, V]

    def loss(self, states: Tensor, positions: Tensor, word_embedding: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the summed cross-entropy at some positions, and how many are right."""
        return vocabulary_loss(self._guess(states, positions), word_embedding, self.bias, labels)

    def _guess(self, states: Tensor, positions: Tensor) -> Tensor:
        x = states.index_select(0, positions)  # [P, H]
        return self.norm(activate(self.dense(x), self.activation))  # [P, E]


class PooledHead(nn.Module):
    """Dropout and a linear layer on the pooled [CLS]: classification, regression, choice."""

    def __init__(self, config: AlbertConfig, *, outputs: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.classifier_dropout_prob)
        self.linear = nn.Linear(config.hidden_size, outputs)

    def forward(self, pooled: Tensor) -> Tensor:
        return self.linear(self.dropout(pooled))  # [B, outputs]


class OrderHead(nn.Linear):
    """Sentence order, or next sentence: a linear layer on the pooled [CLS], without dropout (as Google's)."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__(config.hidden_size, 2)


class TagHead(nn.Module):
    """Dropout and a linear layer on every token."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.classifier_dropout_prob)
        self.linear = nn.Linear(config.hidden_size, len(config.labels))

    def forward(self, states: Tensor) -> Tensor:
        return self.linear(self.dropout(states))  # [T, labels]


class SpanHead(nn.Linear):
    """Where an answer starts and ends: two scores per token."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__(config.hidden_size, 2)


@dataclass(frozen=True)
class SpanBeam:
    """The best starts of each text, the best ends for each of them, and the score that there is no answer."""

    start_scores: Tensor  # [B, K] log-probabilities
    starts: Tensor  # [B, K] positions in the text
    end_scores: Tensor  # [B, K, K] log-probabilities given the start
    ends: Tensor  # [B, K, K]
    no_answer: Tensor  # [B] logits


@dataclass(frozen=True)
class SpanScores:
    """Training scores of the conditional head, given the true starts."""

    start_logits: Tensor  # [B, S]
    end_logits: Tensor  # [B, S]
    no_answer: Tensor  # [B] logits


class ConditionalSpanHead(nn.Module):
    """Start, end given the start, and answerability (SQuAD 2.0, the XLNet-style head of Google's ALBERT)."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.start = nn.Linear(width, 1)
        self.end_dense = nn.Linear(2 * width, width)
        self.end_norm = LayerNorm(width, eps=config.layer_norm_eps)
        self.end = nn.Linear(width, 1)
        self.answer_dense = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(config.classifier_dropout_prob)
        self.answer = nn.Linear(width, 1, bias=False)

    def forward(self, states: Tensor, packed: Packed, *, allowed: Tensor, true_starts: Tensor) -> SpanScores:
        """Score starts, and ends given the true starts; `allowed` [T] marks tokens that may be in an answer."""
        rows, allowed_rows = _to_rows(states, packed), _to_rows(allowed, packed)  # [B, S, H], [B, S]
        start_logits = self._start(rows, allowed_rows)
        start_states = states.index_select(0, packed.starts + true_starts)  # [B, H]
        end_logits = self._end(rows, start_states.unsqueeze(1), allowed_rows).squeeze(1)  # [B, S]
        return SpanScores(start_logits, end_logits, self._no_answer(rows, start_logits))

    def beam(self, states: Tensor, packed: Packed, *, allowed: Tensor) -> SpanBeam:
        """Find the best starts and, for each, the best ends."""
        rows, allowed_rows = _to_rows(states, packed), _to_rows(allowed, packed)
        start_logits = self._start(rows, allowed_rows)  # [B, S]
        k = min(BEAM, rows.shape[1])
        start_scores, starts = start_logits.log_softmax(-1).topk(k)  # [B, K]
        flat = (packed.starts.unsqueeze(1) + starts.minimum(_last(packed, rows).unsqueeze(1))).reshape(-1)
        start_states = states.index_select(0, flat).view(rows.shape[0], k, -1)  # [B, K, H]
        end_scores, ends = self._end(rows, start_states, allowed_rows).log_softmax(-1).topk(k)  # [B, K, K]
        return SpanBeam(start_scores, starts, end_scores, ends, self._no_answer(rows, start_logits))

    def _start(self, rows: Tensor, allowed: Tensor) -> Tensor:
        return self.start(rows).squeeze(-1).float().masked_fill(~allowed, IMPOSSIBLE)  # [B, S]

    def _end(self, rows: Tensor, start_states: Tensor, allowed: Tensor) -> Tensor:
        count, length = start_states.shape[1], rows.shape[1]
        both = torch.cat(
            [
                rows.unsqueeze(1).expand(-1, count, -1, -1),
                start_states.unsqueeze(2).expand(-1, -1, length, -1),
            ],
            dim=-1,
        )  # [B, K, S, 2H]
        scores = self.end(self.end_norm(torch.tanh(self.end_dense(both)))).squeeze(-1).float()  # [B, K, S]
        return scores.masked_fill(~allowed.unsqueeze(1), IMPOSSIBLE)

    def _no_answer(self, rows: Tensor, start_logits: Tensor) -> Tensor:
        feature = torch.einsum("bs,bsh->bh", start_logits.softmax(-1), rows)
        both = torch.cat([feature, rows[:, 0]], dim=-1)  # [B, 2H] with the state of [CLS]
        return self.answer(self.dropout(torch.tanh(self.answer_dense(both)))).squeeze(-1)  # [B]


def _last(packed: Packed, rows: Tensor) -> Tensor:
    return torch.tensor(packed.lengths, device=rows.device) - 1


def _to_rows(values: Tensor, packed: Packed) -> Tensor:
    """Lay packed values out as rows, zero (False) past the end of a text: [T, …] → [B, S, …]."""
    return nn.utils.rnn.pad_sequence(list(torch.split(values, list(packed.lengths))), batch_first=True)


def pool(encoded: Encoded, packed: Packed, *, how: str = "mean") -> Tensor:
    """Return one vector per text, [B, H]: the mean of its tokens' states, or the state of [CLS]."""
    if how == "cls":
        return encoded.states.index_select(0, packed.starts)
    assert how == "mean", how
    text = torch.arange(len(packed.lengths), device=packed.starts.device)
    lengths = torch.tensor(packed.lengths, device=packed.starts.device)
    text_of_token = text.repeat_interleave(lengths)  # [T]
    total = encoded.states.new_zeros(len(packed.lengths), encoded.states.shape[1])
    return total.index_add(0, text_of_token, encoded.states) / lengths.unsqueeze(1)
