"""A packed batch laid out as transformers wants it: rows, a mask, and labels -100 where nothing is to be predicted."""

from __future__ import annotations

import numpy as np

from albert.batch import Batch, PretrainingBatch

NO_LABEL = -100


def pad(batch: Batch) -> dict[str, np.ndarray]:
    """Return the arguments of a model of transformers, with its labels if the batch has some."""
    mask = np.arange(batch.lengths.max()) < batch.lengths[:, None]

    def rows(values: np.ndarray, *, fill: int = 0) -> np.ndarray:
        array = np.full(mask.shape, fill, dtype=np.int64)
        array[mask] = values
        return array

    arrays = {
        "input_ids": rows(batch.token_ids),
        "token_type_ids": rows(batch.segment_ids),
        "attention_mask": mask.astype(np.int64),
    }
    if isinstance(batch, PretrainingBatch):
        labels = np.full(batch.token_ids.size, NO_LABEL)
        labels[batch.masked_positions] = batch.masked_labels
        arrays |= {"labels": rows(labels, fill=NO_LABEL), "sentence_order_label": batch.order_labels}
    return arrays
