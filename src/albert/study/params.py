"""The parameter columns of Tables 1, 3 and 4, counted on real modules beside what the paper prints.

The backbone is counted, as in the paper: embeddings, projection, layers, pooler. One printed figure is out of reach:
xxlarge is 222.6M by its architecture, not 235M (nor the 233M of section 3.2, nor the 225M of Table 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from albert.model.accounting import count_parameters
from albert.model.config import AlbertConfig, Sharing
from albert.model.presets import preset

TABLE_1 = {
    "bert-base": "108M",
    "bert-large": "334M",
    "albert-base": "12M",
    "albert-large": "18M",
    "albert-xlarge": "60M",
    "albert-xxlarge": "235M",
}
TABLE_3: dict[tuple[Sharing, int], str] = {
    ("none", 64): "87M",
    ("none", 128): "89M",
    ("none", 256): "93M",
    ("none", 768): "108M",
    ("all", 64): "10M",
    ("all", 128): "12M",
    ("all", 256): "16M",
    ("all", 768): "31M",
}
TABLE_4: dict[tuple[Sharing, int], str] = {
    ("all", 768): "31M",
    ("attention", 768): "83M",
    ("ffn", 768): "57M",
    ("none", 768): "108M",
    ("all", 128): "12M",
    ("attention", 128): "64M",
    ("ffn", 128): "38M",
    ("none", 128): "89M",
}


@dataclass(frozen=True)
class ParameterRow:
    """One row of a table: what it is about, what the paper prints, what there is."""

    table: int
    paper: str
    parameters: int
    model: str | None = None
    sharing: Sharing | None = None
    embedding_size: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON, without the fields that don't apply."""
        fields: dict[str, Any] = {"table": self.table}
        if self.model is not None:
            fields["model"] = self.model
        else:
            fields |= {"sharing": self.sharing, "embedding_size": self.embedding_size}
        return fields | {"paper": self.paper, "parameters": self.parameters}


def parameter_rows() -> list[ParameterRow]:
    """Count every row of Tables 1, 3 and 4."""
    rows = [
        ParameterRow(1, paper, count_parameters(preset(model)).backbone, model=model)
        for model, paper in TABLE_1.items()
    ]
    for number, table in ((3, TABLE_3), (4, TABLE_4)):
        for (sharing, embedding_size), paper in table.items():
            config = AlbertConfig(sharing=sharing, embedding_size=embedding_size)
            count = count_parameters(config).backbone
            rows.append(ParameterRow(number, paper, count, sharing=sharing, embedding_size=embedding_size))
    return rows
